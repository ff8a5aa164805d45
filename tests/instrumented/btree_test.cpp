// B-trees in instrumented code: what the hooks saw is what changed, byte for byte, whichever leaf or inner node grows, splits or joins; and one store changes little.
#include <taiyen/taiyen.hpp>

#include <random>
#include <string>

#include "instrumented/captured_scopes.hpp"
#include "seed.hpp"

namespace {

using namespace taiyen;
using change::test::Stage;

BOOST_AUTO_TEST_SUITE(instrumented_btree)

BOOST_AUTO_TEST_CASE(leaves_and_inner_nodes_that_grow_split_and_join_are_seen) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Stage stage(ByteCount{8} << 20U);
    using Numbers = btree_map<std::uint64_t, std::uint64_t>;
    Numbers& numbers = *stl::make<Numbers>(stage.core());
    std::vector<std::uint64_t> keys(15'000);
    for (std::uint64_t& key : keys) key = random();
    const auto each = [&](std::size_t from, auto&& action) {
        for (std::size_t k = from; k < from + 1500; ++k) action(keys[k]);
    };
    for (std::size_t i = 0; i < keys.size(); i += 1500) {
        const auto insert = [&] { each(i, [&](std::uint64_t key) { numbers.emplace(key, key + 1); }); };
        stage.taken_back("inserting", insert);
        BOOST_TEST(numbers.size() == i);
        stage.scope("inserting", insert);
    }
    BOOST_TEST(numbers.is_sound());
    BOOST_TEST(numbers.tree().height() == 2U);
    stage.taken_back("assigning", [&] {
        for (auto&& [key, value] : numbers) value += key;
    });
    for (std::size_t i = 0; i < keys.size(); i += 1500) {
        const auto erase = [&] { each(i, [&](std::uint64_t key) { numbers.erase(key); }); };
        stage.taken_back("erasing", erase);
        BOOST_TEST(numbers.contains(keys[i]));
        stage.scope("erasing", erase);
    }
    BOOST_TEST(numbers.empty());
    stage.scope("destroying", [&] { stl::destroy_object(stage.core(), &numbers); });
}

BOOST_AUTO_TEST_CASE(texts_and_equal_keys_are_seen_in_random_programs) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Stage stage(ByteCount{8} << 20U);
    using Names = btree_multimap<taiyen::string, taiyen::string, ranked<>>;
    Names& names = *stl::make<Names>(stage.core());
    const auto text = [&] { return "a text longer than a small buffer, " + std::to_string(random() % 200); };
    for (int step = 0; step < 300; ++step) {
        const auto run = [&] {
            for (std::uint64_t i = random() % 20; i != 0; --i) names.emplace(text().c_str(), text().c_str());
            if (random() % 3 == 0) names.erase(text());
            if (random() % 3 == 0 && !names.empty()) names.begin()->second += "!";
            if (random() % 50 == 0) names.erase(names.begin(), names.lower_bound(text()));
        };
        if (step % 5 == 0) {
            const std::size_t before = names.size();
            stage.taken_back("a step", run);
            BOOST_REQUIRE(names.size() == before);
        } else {
            stage.scope("a step", run);
        }
        BOOST_REQUIRE(!stage.failed());
        BOOST_REQUIRE(names.is_sound());
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
