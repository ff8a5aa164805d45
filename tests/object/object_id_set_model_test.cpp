// Random programs on sets of ids against models: std::set where that is possible, a map of intervals where ids are too many.
#include <taiyen/object/object_id_set.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "campaign_factor.hpp"
#include "containers/allocators.hpp"
#include "object/interval_model.hpp"
#include "seed.hpp"

BOOST_AUTO_TEST_SUITE(object_id_set_model)

namespace {

using namespace taiyen;
using namespace taiyen::object::test;
using taiyen::test::CountingAllocator;
using taiyen::test::Ledger;
using taiyen::test::OffsetPointerAllocator;

using Set = object_id_set<std::allocator<Id>>;
using OffsetSet = object_id_set<OffsetPointerAllocator<Id>>;

template <class S>
void run_programs(int programs, std::size_t steps, Spread spread) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (int i = 0; i < taiyen::test::rounds(programs); ++i) {
        const std::string found = report<S>(random_program(seed + static_cast<std::uint64_t>(i), steps, spread));
        BOOST_REQUIRE_MESSAGE(found.empty(), "seed " << seed << " + " << i << ": " << found);
    }
}

/// Ids of a kind that leads to one form of chunk.
Id id_of_kind(std::mt19937_64& random, int kind) {
    switch (kind) {
        case 0: return static_cast<Id>(random() % 70'000);                                       // dense
        case 1: return static_cast<Id>(random() % 30'000) * 2 - 20'000;                          // alternating
        case 2: return static_cast<Id>(random() % 300) * 400 + static_cast<Id>(random() % 90);   // clustered
        case 3: return static_cast<Id>(random());                                                // sparse
        default: return static_cast<Id>(random() % 600) * 65'536 - (random() % 2 == 0 ? 1 : 0);  // at the borders of chunks
    }
}

BOOST_AUTO_TEST_CASE(programs_near_every_edge_give_what_a_map_of_intervals_gives) { run_programs<Set>(40, 300, Spread::edges); }
BOOST_AUTO_TEST_CASE(programs_in_a_few_chunks_give_what_a_map_of_intervals_gives) { run_programs<Set>(40, 400, Spread::chunks); }
BOOST_AUTO_TEST_CASE(programs_in_trees_of_many_nodes_give_what_a_map_of_intervals_gives) { run_programs<Set>(40, 300, Spread::trees); }
BOOST_AUTO_TEST_CASE(programs_with_offset_pointers_give_what_a_map_of_intervals_gives) {
    run_programs<OffsetSet>(8, 300, Spread::edges);
    run_programs<OffsetSet>(8, 300, Spread::chunks);
    run_programs<OffsetSet>(8, 300, Spread::trees);
}

BOOST_AUTO_TEST_CASE(single_ids_of_each_kind_give_what_std_set_gives) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int kind = 0; kind < 5; ++kind) {
        Set set;
        std::set<Id> model;
        for (int round = 0; round < 6; ++round) {
            const bool grows = round % 2 == 0;
            for (int i = 0; i < 60'000; ++i) {
                Id id = id_of_kind(random, kind);
                if (random() % 4 != 0 ? grows : !grows) {
                    BOOST_REQUIRE_EQUAL(set.insert(id), model.insert(id).second);
                } else {
                    if (kind == 3 && !model.empty()) id = *model.lower_bound(std::min(id, *model.rbegin()));
                    BOOST_REQUIRE_EQUAL(set.erase(id), model.erase(id) != 0);
                }
            }
            BOOST_REQUIRE(set.is_sound());
            BOOST_REQUIRE(std::equal(set.begin(), set.end(), model.begin(), model.end()));
            BOOST_REQUIRE(std::equal(set.rbegin(), set.rend(), model.rbegin(), model.rend()));
            Set shrunk_set = set;
            shrunk_set.shrink_to_fit();
            BOOST_REQUIRE(shrunk_set == set);
            BOOST_REQUIRE(std::equal(shrunk_set.begin(), shrunk_set.end(), model.begin(), model.end()));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_set_that_is_filled_in_any_order_and_emptied_in_any_order_ends_with_no_memory) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Ledger ledger;
    object_id_set<CountingAllocator<Id>> set{CountingAllocator<Id>(ledger)};
    std::vector<Id> ids;
    for (Id chunk = -300; chunk < 300; ++chunk)
        for (Id i = 0; i < 40; ++i) ids.push_back(chunk * 65536 + i * i * (chunk % 7 == 0 ? 1 : 29));
    for (Id id = 0; id < 3 * 65536; ++id) ids.push_back(id + (Id{1} << 40U));
    for (int order = 0; order < 3; ++order) {
        if (order != 0) std::shuffle(ids.begin(), ids.end(), random);
        for (const Id id : ids) set.insert(id);
        BOOST_REQUIRE(set.is_sound());
        BOOST_REQUIRE_EQUAL(set.size(), ids.size());
        BOOST_REQUIRE_EQUAL(set.memory_bytes(), ledger.bytes);
        if (order != 0) std::shuffle(ids.begin(), ids.end(), random);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            BOOST_REQUIRE(set.erase(ids[i]));
            if (i % 20'000 == 0) BOOST_REQUIRE(set.is_sound());
        }
        BOOST_REQUIRE(set.empty());
        BOOST_REQUIRE_EQUAL(ledger.blocks, 0U);
    }
}

BOOST_AUTO_TEST_CASE(an_insertion_or_erasure_that_runs_out_of_memory_changes_nothing) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    std::mt19937_64 random(seed);
    Ledger ledger;
    {
        object_id_set<CountingAllocator<Id>> set{CountingAllocator<Id>(ledger)};
        IntervalModel model;
        set.insert_interval(Id{1} << 50U, (Id{1} << 50U) + 600'000);
        model.insert(Id{1} << 50U, (Id{1} << 50U) + 600'000);
        int failures = 0;
        for (int i = 0; i < 60'000; ++i) {
            const Id id =
                random() % 8 == 0 ? (Id{1} << 50U) + static_cast<Id>(random() % 600'000) : id_of_kind(random, static_cast<int>(random() % 5));
            const bool inserts = random() % 3 != 0;
            ledger.until_failure = random() % 3;
            try {
                if (inserts) {
                    set.insert(id);
                    model.insert(id, id);
                } else {
                    set.erase(id);
                    model.erase(id, id);
                }
            } catch (const std::bad_alloc&) {
                ++failures;
                BOOST_REQUIRE_EQUAL(set.contains(id), model.contains(id));
            }
            if (i % 5000 == 0) check_equal(set, model);
        }
        check_equal(set, model);
        BOOST_TEST(failures > 50);
        ledger.until_failure = std::numeric_limits<std::uint64_t>::max();
    }
    BOOST_TEST(ledger.blocks == 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
