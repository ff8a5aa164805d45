/// What the grid finds is what looking at every entity finds.

#include <random>

#include "cad_heap.hpp"

namespace {

using namespace cad;
using namespace cad::test;

std::vector<EntityNumber> brute_force(const Drawing& drawing, const Box& window) {
    std::vector<EntityNumber> found;
    for (std::size_t i = 0; i < drawing.entities.size(); ++i)
        if (bounds(drawing.entities[i]).intersects(window)) found.push_back(static_cast<EntityNumber>(i));
    return found;
}

class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    double between(double low, double high) { return std::uniform_real_distribution(low, high)(engine_); }
    std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(engine_); }
    Box box_in(const Box& outer) {
        Box box;
        for (int i = 0; i < 2; ++i) {
            const double x = between(outer.low.x, outer.high.x);
            box.add(Point2{x, between(outer.low.y, outer.high.y)});
        }
        return box;
    }

private:
    std::mt19937_64 engine_;
};

void check_queries(const Drawing& drawing, const Box& world, Random& random, int count) {
    for (int i = 0; i < count; ++i) {
        const Box window = random.box_in(world);
        BOOST_REQUIRE(entities_in(drawing, window) == brute_force(drawing, window));
    }
    BOOST_TEST(entities_in(drawing, world) == brute_force(drawing, world), boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spatial_index)

BOOST_AUTO_TEST_CASE(queries_on_random_lines_equal_brute_force_also_after_changes) {
    DocumentInHeap in_heap;
    Drawing& drawing = in_heap.document.drawings.try_emplace("drawing").first->second;
    NamedLayer* const layer = &*drawing.layers.try_emplace("0").first;
    Random random(taiyen::test::seed_of_run());
    const Box world{{-100, -100}, {100, 100}};
    for (int round = 0; round < 6; ++round) {
        for (int i = 0; i < 60; ++i) {
            const Box place = random.box_in(world);
            const Point2 to = i % 10 == 0 ? place.high : place.low + Point2{random.between(-3, 3), random.between(-3, 3)};
            add(drawing, Entity{.layer = layer, .shape = Line{place.low, to}});
        }
        check_queries(drawing, world, random, 40);
        if (round % 2 == 0) {
            reindex(drawing);
        } else {
            erase(drawing, static_cast<EntityNumber>(drawing.entities.size() / 2));
            translate(drawing, {random.between(-5, 5), random.between(-5, 5)});
        }
        check_queries(drawing, world, random, 40);
        for (int i = 0; i < 30; ++i) {
            const auto number = static_cast<EntityNumber>(random.below(drawing.entities.size()));
            switch (i % 3) {
                case 0: move(drawing, number, {random.between(-50, 50), random.between(-50, 50)}); break;
                case 1: rotate(drawing, number, {random.between(-50, 50), 0}, random.between(-7, 7)); break;
                default: erase(drawing, number);
            }
            BOOST_REQUIRE_EQUAL(broken_invariant(in_heap.document), "");
        }
        check_queries(drawing, world, random, 40);
        const Box extents = drawing.extents;
        reindex(drawing);
        BOOST_TEST((drawing.extents == extents));
    }
}

BOOST_AUTO_TEST_CASE(queries_on_the_library_equal_brute_force, *boost::unit_test::precondition(library_is_installed)) {
    DocumentInHeap in_heap;
    Random random(taiyen::test::seed_of_run());
    const fs::path library = library_folder;
    for (const std::string name : {"plan/vegetation/v21", "plan/architect/Complete-Lib-V", "sheets/A3H", "misc/a3"}) {
        const Drawing& drawing = import_dxf(in_heap.document, name, library / (name + ".dxf"));
        check_queries(drawing, drawing.extents, random, 60);
    }
}

BOOST_AUTO_TEST_CASE(coordinates_that_are_no_places_break_nothing) {
    DocumentInHeap in_heap;
    Drawing& drawing = in_heap.document.drawings.try_emplace("drawing").first->second;
    NamedLayer* const layer = &*drawing.layers.try_emplace("0").first;
    const double infinite = std::numeric_limits<double>::infinity();
    add(drawing, Entity{.layer = layer, .shape = Line{{0, 0}, {1, 1}}});
    add(drawing, Entity{.layer = layer, .shape = Line{{1e300, -1e300}, {1e308, 0}}});
    add(drawing, Entity{.layer = layer, .shape = Line{{infinite, 0}, {0, infinite}}});
    reindex(drawing);
    const std::vector<EntityNumber> found = entities_in(drawing, {{0.5, 0.5}, {0.6, 0.6}});
    BOOST_TEST(found.front() == 0U);
    BOOST_TEST(found == brute_force(drawing, {{0.5, 0.5}, {0.6, 0.6}}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
