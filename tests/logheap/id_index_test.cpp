// Ids and places: any number of them, erased and set again, read beside the writer.
#include "logheap/id_index.hpp"

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/epochs.hpp"
#include "seed.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(id_index)

using taiyen::EpochGuard;
using taiyen::logheap::IdIndex;
using taiyen::logheap::Place;

BOOST_AUTO_TEST_CASE(places_keep_what_they_were_made_of) {
    const Place place = Place::at(16'777'214, 2'097'088, 2'097'080);
    BOOST_TEST(place.segment() == 16'777'214U);
    BOOST_TEST(place.offset() == 2'097'088U);
    BOOST_TEST(place.bytes() == 2'097'080U);
    BOOST_TEST(!place.is_large());
    BOOST_TEST(Place::run_at(3, 64).is_large());
    BOOST_TEST(Place::run_at(3, 64).segment() == 3U);
    BOOST_TEST(!Place{});
}

BOOST_AUTO_TEST_CASE(it_does_what_a_map_does) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (const std::uint64_t range : {10U, 1000U, 1'000'000U}) {
        std::mt19937_64 random(seed + range);
        IdIndex index;
        std::map<std::uint64_t, std::uint64_t> model;
        for (int i = 0; i < 100'000; ++i) {
            const std::uint64_t id = 1 + random() % range;
            const auto known = model.find(id);
            const std::uint64_t before = known == model.end() ? 0 : known->second;
            if (random() % 3 == 0) {
                BOOST_REQUIRE(index.erase(id).word == before);
                model.erase(id);
            } else {
                const Place place = Place::at(1 + static_cast<std::uint32_t>(random() % 1000), 64, 32);
                index.prepare(IdIndex::shard_of(id));
                BOOST_REQUIRE(index.set(id, place, place.word + id).word == before);
                model[id] = place.word;
            }
            const auto now = model.find(id);
            BOOST_REQUIRE(index.born(id) == (now == model.end() ? 0 : now->second + id));
            BOOST_REQUIRE(index.size() == model.size());
        }
        std::map<std::uint64_t, std::uint64_t> found;
        for (std::size_t shard = 0; shard < IdIndex::shard_count; ++shard)
            index.for_each_in(shard, [&](std::uint64_t id, Place place, std::uint64_t) { found.emplace(id, place.word); });
        BOOST_TEST((found == model));
        for (std::uint64_t id = 1; id <= std::min<std::uint64_t>(range, 1000); ++id) {
            const auto known = model.find(id);
            BOOST_REQUIRE(index.find(id).word == (known == model.end() ? 0 : known->second));
        }
    }
}

BOOST_AUTO_TEST_CASE(its_memory_is_bounded) {
    IdIndex index;
    // Ids that come and go take no more room than those that are there.
    for (std::uint64_t id = 1; id <= 1'000'000; ++id) {
        index.prepare(IdIndex::shard_of(id));
        index.set(id, Place::at(1, 64, 32), 1);
        if (id > 1000) index.erase(id - 1000);
    }
    BOOST_TEST(index.size() == 1000U);
    BOOST_TEST(index.bytes() < 200'000U);
    IdIndex full;
    for (std::uint64_t id = 1; id <= 1'000'000; ++id) {
        full.prepare(IdIndex::shard_of(id));
        full.set(id, Place::at(1, 64, 32), 1);
    }
    BOOST_TEST(full.bytes() < 56U * 1'000'000U);
}

BOOST_AUTO_TEST_CASE(readers_find_what_is_there_throughout, *boost::unit_test::label("threads")) {
    IdIndex index;
    constexpr std::uint64_t kept = 500;
    for (std::uint64_t id = 1; id <= kept; ++id) {
        index.prepare(IdIndex::shard_of(id));
        index.set(id, Place::at(static_cast<std::uint32_t>(id), 64, 32), 1);
    }
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> readers;
    for (unsigned r = 0; r < 2; ++r) {
        readers.emplace_back([&, r] {
            std::mt19937_64 random(r);
            while (!done.load(std::memory_order_relaxed)) {
                const EpochGuard guard;
                const std::uint64_t id = 1 + random() % kept;
                if (index.find(id).segment() != id) wrong.fetch_add(1);
            }
        });
    }
    for (std::uint64_t id = kept + 1; id <= 60'000; ++id) {
        index.prepare(IdIndex::shard_of(id));
        index.set(id, Place::at(1, 64, 32), 1);
        if (id % 3 != 0) index.erase(id);
    }
    done = true;
    for (std::thread& reader : readers) reader.join();
    BOOST_TEST(wrong.load() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
