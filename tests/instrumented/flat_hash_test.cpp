// Flat hash tables in instrumented code: what the hooks saw is what changed, byte for byte, whether a slot is filled, erased or all of them move.
#include <taiyen/taiyen.hpp>

#include <random>
#include <string>

#include "instrumented/captured_scopes.hpp"
#include "seed.hpp"

namespace {

using namespace taiyen;
using change::test::Stage;

BOOST_AUTO_TEST_SUITE(instrumented_flat_hash)

BOOST_AUTO_TEST_CASE(elements_that_come_go_and_move_are_seen_in_random_programs) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Stage stage(ByteCount{8} << 20U);
    using Names = flat_hash_map<taiyen::string, taiyen::string>;
    using Numbers = flat_hash_set<std::int64_t>;
    Names& names = *stl::make<Names>(stage.core());
    Numbers& numbers = *stl::make<Numbers>(stage.core());
    const auto text = [&] { return "a text longer than a small buffer, " + std::to_string(random() % 200); };
    for (int step = 0; step < 300; ++step) {
        const auto run = [&] {
            for (std::uint64_t i = random() % 20; i != 0; --i) names.insert_or_assign(text().c_str(), text().c_str());
            for (std::uint64_t i = random() % 60; i != 0; --i) numbers.insert(static_cast<std::int64_t>(random() % 5000));
            for (std::uint64_t i = random() % 20; i != 0; --i) names.erase(text());
            if (random() % 20 == 0) names.clear();
            if (random() % 20 == 0) numbers.rehash(0);
            if (random() % 40 == 0) numbers = Numbers();
        };
        if (step % 5 == 0) {
            const std::size_t before = names.size();
            stage.taken_back("a step", run);
            BOOST_REQUIRE(names.size() == before);
        } else {
            stage.scope("a step", run);
        }
        BOOST_REQUIRE(!stage.failed());
        BOOST_REQUIRE((names.is_sound() && numbers.is_sound()));
    }
    stage.scope("destroying", [&] { stl::destroy_object(stage.core(), &names); });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
