// ids and their entries: what is found, what stays where it is while the table grows.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "object/object_table.hpp"
#include "seed.hpp"
#include "threads.hpp"

using taiyen::object::Entry;
using taiyen::object::ObjectTable;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::test::seed_of_run;
namespace word = taiyen::object::word;

BOOST_AUTO_TEST_SUITE(object_table)

namespace {

using Id = std::int64_t;

void take(Entry& entry) {
    for (std::uint64_t nobody = 0; !entry.word.compare_exchange_weak(nobody, word::writer);) nobody = 0;
}

/// Requires: it is taken.
void remove(ObjectTable& table, Entry& entry) {
    table.unlink(entry);
    entry.word.exchange(word::dead);
    table.give_back(entry);
}

void* object_of(Id id) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(id) * 8 + 8);
}  // NOLINT(performance-no-int-to-ptr): any address will do

}  // namespace

BOOST_AUTO_TEST_CASE(entries_left_behind_are_bounded_by_what_the_table_held_when_it_grew) {
    constexpr Id count = 20'000;
    ObjectTable table(0);
    std::set<const Entry*> seen;
    std::size_t after_first_round = 0;
    for (Id round = 0; round < 10; ++round) {
        // All of them are taken, so each growth leaves all of them behind; then all go.
        std::vector<Entry*> taken;
        for (Id id = 0; id < count; ++id) {
            taken.push_back(table.insert(id + round, word::writer, object_of(id)).first);
            seen.insert(taken.back());
        }
        for (Entry* const entry : taken) remove(table, *entry);
        BOOST_TEST(table.size() == 0U);
        if (round == 0) after_first_round = seen.size();
    }
    BOOST_TEST(after_first_round == static_cast<std::size_t>(count));  // nobody's entry served another one meanwhile
    // What growth left serves nobody any more: the others come once, not in each round.
    BOOST_TEST(seen.size() < 4U * count);
}

BOOST_AUTO_TEST_CASE(what_is_taken_stays_where_it_is_while_the_table_grows) {
    ObjectTable table(0);
    std::vector<Entry*> taken;
    for (Id id = 0; id < 40; ++id) {
        taken.push_back(table.insert(id, 0, object_of(id)).first);
        taken.back()->word.fetch_add(id % 2 == 0 ? word::writer : word::one_reader);
    }
    Entry* const free = table.insert(40, 0, object_of(40)).first;
    for (Id id = 41; id < 20'000; ++id) table.insert(id, 0, object_of(id));
    for (Id id = 0; id < 40; ++id) BOOST_TEST(table.find(id) == taken[static_cast<std::size_t>(id)]);
    BOOST_TEST(table.find(40) != free);
    BOOST_TEST(table.find(40)->object.load() == object_of(40));
    BOOST_TEST(table.size() == 20'000U);
    // Given back, and moved by the next growth; or removed where they are.
    for (Id id = 0; id < 40; ++id) {
        Entry& entry = *taken[static_cast<std::size_t>(id)];
        if (id % 4 < 2)
            entry.word.store(0);
        else
            remove(table, entry);
    }
    for (Id id = 20'000; id < 60'000; ++id) table.insert(id, 0, object_of(id));
    for (Id id = 0; id < 40; ++id) {
        Entry* const found = table.find(id);
        BOOST_TEST((found != nullptr) == (id % 4 < 2));
        if (found != nullptr) {
            BOOST_TEST(found != taken[static_cast<std::size_t>(id)]);
            BOOST_TEST(found->object.load() == object_of(id));
            // Where it was nobody is, or another one.
            const Entry& before = *taken[static_cast<std::size_t>(id)];
            BOOST_TEST(((before.word.load() & word::dead) != 0U || before.id.load() != id));
        }
        BOOST_TEST(table.insert(id, 0, object_of(id)).second == (found == nullptr));
    }
    BOOST_TEST(table.size() == 60'000U);
}

BOOST_AUTO_TEST_CASE(more_objects_than_fit_into_memory_are_refused) {
    BOOST_CHECK_THROW(ObjectTable(~std::size_t{0}), std::bad_alloc);
    BOOST_CHECK_THROW(ObjectTable(~std::size_t{0} / 100), std::bad_alloc);
}

BOOST_AUTO_TEST_CASE(what_was_taken_and_is_free_moves_into_chains_however_many_there_are) {
    // Ids that share a bucket however large their shard is: all but two of them need an entry of a chain.
    std::vector<Id> ids;
    for (Id id = 0; ids.size() < 82; ++id) {
        const std::uint64_t mixed = ObjectTable::mix(id);
        if (mixed >> 58U == 0 && ((mixed >> 16U) & 127U) == 0) ids.push_back(id);
    }
    ObjectTable table(0);
    std::vector<Entry*> entries;
    const auto add_taken = [&](std::size_t until) {
        while (entries.size() < until) entries.push_back(table.insert(ids[entries.size()], word::writer, object_of(ids[entries.size()])).first);
    };
    add_taken(40);
    add_taken(80);  // the shard has grown: the first 40 are where they were
    for (std::size_t i = 0; i < 40; ++i) entries[i]->word.store(0);
    add_taken(82);  // it grows again, and they move
    for (std::size_t i = 0; i < ids.size(); ++i) {
        Entry* const found = table.find(ids[i]);
        BOOST_REQUIRE(found != nullptr);
        BOOST_TEST((found == entries[i]) == (i >= 40));
        BOOST_TEST(found->object.load() == object_of(ids[i]));
    }
    // The table is as it should be: everything can go, and come again.
    for (const Id id : ids) {
        Entry* const found = table.find(id);
        if (found->word.load() == 0) take(*found);
        remove(table, *found);
        BOOST_TEST(table.find(id) == nullptr);
    }
    BOOST_TEST(table.size() == 0U);
    for (const Id id : ids) BOOST_TEST(table.insert(id, 0, object_of(id)).second);
}

BOOST_AUTO_TEST_CASE(random_steps_agree_with_a_map) {
    const std::uint64_t seed = seed_of_run();
    std::mt19937_64 random(seed);
    for (int round = 0; round < 6; ++round) {
        // Ids of few buckets make long chains, ids of all make it grow.
        const bool crowded = round % 2 == 0;
        std::vector<Id> ids;
        for (Id id = 0; ids.size() < (crowded ? 60U : 6'000U); ++id)
            if (!crowded || ObjectTable::first_bucket_of(id) < 2) ids.push_back(id);
        ObjectTable table(round < 3 ? 0 : 1'000);
        std::map<Id, Entry*> model;
        for (int step = 0; step < 40'000; ++step) {
            const Id id = ids[random() % ids.size()];
            const auto known = model.find(id);
            Entry* const found = table.find(id);
            BOOST_REQUIRE((found != nullptr) == (known != model.end()));
            if (found == nullptr) {
                const auto [made, is_new] = table.insert(id, 0, object_of(id));
                BOOST_REQUIRE(is_new);
                model.emplace(id, made);
                continue;
            }
            BOOST_REQUIRE(found->object.load() == object_of(id));
            BOOST_REQUIRE(found->id.load() == id);
            const std::uint64_t now = found->word.load();
            if (now != 0) {
                // Taken: where it was when it was taken.
                BOOST_REQUIRE(found == known->second);
                if (random() % 3 == 0) {
                    remove(table, *found);
                    model.erase(known);
                } else {
                    found->word.store(0);
                }
            } else if (random() % 2 == 0) {
                found->word.store(word::writer);
                known->second = found;
            } else {
                take(*found);
                remove(table, *found);
                model.erase(known);
            }
        }
        BOOST_TEST(table.size() == model.size());
    }
}

BOOST_AUTO_TEST_CASE(look_ups_find_what_is_there_while_others_make_the_table_grow, *boost::unit_test::label("threads")) {
    constexpr Id kept = 64;
    constexpr Id more = 3'000;
    for (int round = 0; round < 10; ++round) {
        ObjectTable table(0);
        for (Id id = 0; id < kept; ++id) table.insert(id, 0, object_of(id));
        std::atomic<bool> done{false};
        at_once(3, [&](unsigned number) {
            if (number == 0) {
                for (Id id = kept; id < more; ++id) table.insert(id, 0, object_of(id));
                for (Id id = kept; id < more; id += 2) {
                    Entry* const entry = table.find(id);
                    require(entry != nullptr, "what was inserted is found");
                    take(*entry);
                    remove(table, *entry);
                }
                done = true;
                return;
            }
            for (Id id = number; !done; id = (id + 7) % kept) {
                Entry* const entry = table.find(id);
                require(entry != nullptr, "what nobody removes is found");
                // As a request takes it: by its word, then the id.
                std::uint64_t nobody = 0;
                if (!entry->word.compare_exchange_strong(nobody, word::writer)) continue;
                if (entry->id.load() == id) require(entry->object.load() == object_of(id), "an entry has its id's object");
                entry->word.fetch_sub(word::writer);
            }
        });
        BOOST_TEST(table.size() == static_cast<std::uint64_t>(kept + (more - kept) / 2));
    }
}

BOOST_AUTO_TEST_SUITE_END()
