// Rebalancing happens in the shared standard library: random insertions and removals, every scope checked, on trees deep enough for every case of the algorithm.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "heap/test_span.hpp"
#include "instrumented/captured_scopes.hpp"

namespace {

using taiyen::change::test::Stage;

/// Nodes far apart: each on a line of its own, or a missed node would hide behind its neighbour.
struct Wide {
    int key = 0;
    char filler[200] = {};
    bool operator<(const Wide& other) const { return key < other.key; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(trees)

BOOST_AUTO_TEST_CASE(every_insertion_and_removal_of_a_set_is_seen_whole) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Stage stage(taiyen::ByteCount{1} << 20U);
    auto& set = *taiyen::stl::make<taiyen::set<Wide>>(stage.core());
    std::vector<int> keys;
    for (int step = 0; step < 6000; ++step) {
        const bool growing = step % 2000 < 1000;
        const bool insert = keys.empty() || (random() % 10 < (growing ? 7U : 3U) && keys.size() < 700);
        if (insert) {
            const int key = step % 400 < 100 ? step : static_cast<int>(random() % 100000);
            stage.scope("insertion", [&] {
                if (set.insert(Wide{key, {}}).second) keys.push_back(key);
            });
        } else {
            const std::size_t chosen = random() % keys.size();
            stage.scope("removal", [&] { set.erase(Wide{keys[chosen], {}}); });
            keys[chosen] = keys.back();
            keys.pop_back();
        }
        BOOST_REQUIRE(!stage.failed());
    }
}

BOOST_AUTO_TEST_CASE(links_of_lists_are_seen_whole) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Stage stage(taiyen::ByteCount{1} << 20U);
    auto& a = *taiyen::stl::make<taiyen::list<Wide>>(stage.core());
    auto& b = *taiyen::stl::make<taiyen::list<Wide>>(stage.core());
    const auto place = [&](taiyen::list<Wide>& list) { return std::next(list.begin(), static_cast<std::ptrdiff_t>(random() % (list.size() + 1))); };
    for (int step = 0; step < 1500; ++step) {
        const auto key = static_cast<int>(random() % 1000);
        switch (random() % 9) {
            case 0:
            case 1: stage.scope("insert", [&] { a.insert(place(a), Wide{key, {}}); }); break;
            case 2: stage.scope("insert", [&] { b.insert(place(b), Wide{key, {}}); }); break;
            case 3:
                if (!a.empty()) stage.scope("erase", [&] { a.pop_front(); });
                break;
            case 4: stage.scope("splice", [&] { a.splice(place(a), b); }); break;
            case 5: stage.scope("reverse", [&] { a.reverse(); }); break;
            case 6: stage.scope("swap", [&] { a.swap(b); }); break;
            case 7: stage.scope("sort", [&] { a.sort(); }); break;
            default:
                stage.scope("merge", [&] {
                    a.sort();
                    b.sort();
                    a.merge(b);
                });
                break;
        }
        if (a.size() > 300) stage.scope("clear", [&] { a.clear(); });
        BOOST_REQUIRE(!stage.failed());
    }
}

BOOST_AUTO_TEST_SUITE_END()
