#include <taiyen/transfer/relocation.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "seed.hpp"

namespace {

struct Node {
    int value = 0;
    Node* next = nullptr;
    std::vector<Node*> children;
};

}  // namespace

template <>
struct taiyen::pointers_of<Node> {
    template <class Visit>
    static void describe(Node& node, Visit visit) {
        visit(node.next, node.children);
    }
};

namespace {

using taiyen::Relocation;
using Ranges = std::vector<Relocation::Range>;

int* at(std::uintptr_t address) { return reinterpret_cast<int*>(address); }

bool is_refused(const Ranges& ranges) {
    try {
        const Relocation relocation(ranges);
        return false;
    } catch (const taiyen::Error& error) {
        return error.code() == taiyen::errc::invalid_argument;
    }
}

BOOST_AUTO_TEST_SUITE(relocation)

BOOST_AUTO_TEST_CASE(a_range_takes_its_interior_and_its_end_along_and_nothing_else) {
    const Relocation moved(0x1000, 0x100, 0x9000);
    BOOST_TEST(moved.map(0x1000) == 0x9000U);
    BOOST_TEST(moved.map(0x10ff) == 0x90ffU);
    BOOST_TEST(moved.map(0x1100) == 0x9100U);
    BOOST_TEST(moved.map(0x1101) == 0x1101U);
    BOOST_TEST(moved.map(0x0fff) == 0x0fffU);
    BOOST_TEST(moved.moves(0x10ff));
    BOOST_TEST(!moved.moves(0x1100));
    BOOST_TEST(moved(static_cast<int*>(nullptr)) == nullptr);
    BOOST_TEST(moved(at(0x1004)) == at(0x9004));
    BOOST_TEST(Relocation().map(0x1000) == 0x1000U);
}

BOOST_AUTO_TEST_CASE(an_address_between_neighbours_begins_the_second_unless_it_is_asked_for_as_an_end) {
    const Relocation moved(Ranges{{0x2000, 0x100, 0x5000}, {0x1f00, 0x100, 0x8000}});
    BOOST_TEST(moved.map(0x2000) == 0x5000U);
    BOOST_TEST(moved.map_end(0x2000) == 0x8100U);
    BOOST_TEST(moved.end(at(0x2100)) == at(0x5100));
    BOOST_TEST(moved.map_end(0x1f00) == 0x8000U);
    BOOST_TEST(moved.map_end(0x1eff) == 0x1effU);
}

BOOST_AUTO_TEST_CASE(ranges_that_overlap_are_empty_or_wrap_around_are_refused) {
    BOOST_TEST(is_refused({{0x1000, 0x100, 0x5000}, {0x10ff, 1, 0x6000}}));
    BOOST_TEST(is_refused({{0x1000, 0, 0x5000}}));
    BOOST_TEST(is_refused({{~std::uintptr_t{0} - 10, 100, 0x5000}}));
    BOOST_TEST(is_refused({{0x1000, 100, ~std::uintptr_t{0} - 10}}));
    BOOST_TEST(!is_refused({{0x1000, 0x100, 0x1080}, {0x1100, 1, 0x1000}}));
}

BOOST_AUTO_TEST_CASE(many_ranges_map_as_a_search_through_all_of_them) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Ranges ranges;
    for (std::uintptr_t from = 4096; ranges.size() < 500;) {
        const std::size_t bytes = 16 + random() % 500;
        ranges.push_back({from, bytes, random() >> 20U});
        from += bytes + (random() % 2 == 0 ? 0 : 1 + random() % 100);
    }
    const std::uintptr_t last = ranges.back().from + ranges.back().bytes;
    Ranges shuffled = ranges;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const Relocation moved(shuffled);
    BOOST_TEST((moved.ranges() == ranges));
    for (int i = 0; i < 20'000; ++i) {
        const std::uintptr_t address = random() % (last + 50);
        std::uintptr_t begins = address;
        std::uintptr_t ends = address;
        bool lies = false;
        for (const auto& range : ranges) {
            if (address < range.from || address > range.from + range.bytes) continue;
            const std::uintptr_t to = range.to + (address - range.from);
            const bool is_end = address == range.from + range.bytes;
            lies = lies || !is_end;
            if (!is_end || begins == address) begins = to;
            if (address != range.from || ends == address) ends = to;
        }
        BOOST_REQUIRE(moved.map(address) == begins);
        BOOST_REQUIRE(moved.moves(address) == lies);
        if (lies || ends != address) BOOST_REQUIRE(moved.map_end(address) == ends);
    }
}

BOOST_AUTO_TEST_CASE(a_visit_corrects_the_pointers_of_a_program_wherever_they_are_nested) {
    const Relocation moved(0x1000, 0x1000, 0x7000);
    int* plain = at(0x1010);
    const char* text = reinterpret_cast<const char*>(0x1020);
    std::vector<std::pair<std::string, int*>> pairs{{"a", at(0x1030)}, {"b", nullptr}};
    std::map<std::string, std::optional<int*>> by_name{{"c", at(0x1040)}, {"d", std::nullopt}};
    std::array<std::tuple<int, double*>, 1> tuples{{{7, reinterpret_cast<double*>(0x1050)}}};
    Node node{1, reinterpret_cast<Node*>(0x1060), {reinterpret_cast<Node*>(0x1070), reinterpret_cast<Node*>(0x3000)}};
    moved.visit(plain, text, pairs, by_name, tuples, node);
    BOOST_TEST(plain == at(0x7010));
    BOOST_TEST(static_cast<const void*>(text) == at(0x7020));
    BOOST_TEST(pairs[0].second == at(0x7030));
    BOOST_TEST(pairs[1].second == nullptr);
    BOOST_TEST(*by_name["c"] == at(0x7040));
    BOOST_TEST(!by_name["d"].has_value());
    BOOST_TEST(std::get<1>(tuples[0]) == reinterpret_cast<double*>(0x7050));
    BOOST_TEST(node.next == reinterpret_cast<Node*>(0x7060));
    BOOST_TEST(node.children[0] == reinterpret_cast<Node*>(0x7070));
    BOOST_TEST(node.children[1] == reinterpret_cast<Node*>(0x3000));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
