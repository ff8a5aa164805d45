#include "change/twin_pool.hpp"

#include <map>
#include <random>
#include <set>

#include <boost/test/unit_test.hpp>

#include "heap/test_span.hpp"

namespace taiyen::change {
namespace {

BOOST_AUTO_TEST_SUITE(twin_pool)

BOOST_AUTO_TEST_CASE(the_lowest_free_slot_is_taken_and_no_slot_twice) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    TwinPool pool(2000);
    pool.grow(2000);
    std::set<TwinPool::Slot> taken;
    std::map<TwinPool::Slot, std::uint64_t> owners;
    for (int i = 0; i < 20'000; ++i) {
        if (taken.size() < 2000 && (taken.empty() || random() % 2 == 0)) {
            TwinPool::Slot lowest = 0;
            while (taken.contains(lowest)) ++lowest;
            const TwinPool::Slot slot = pool.take({static_cast<std::uint64_t>(i), 0, 0});
            BOOST_REQUIRE(slot == lowest);
            taken.insert(slot);
            owners[slot] = static_cast<std::uint64_t>(i);
        } else {
            const TwinPool::Slot slot = *std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
            pool.put_back(slot);
            taken.erase(slot);
            owners.erase(slot);
        }
        if (i % 1000 == 0) pool.give_back(10);
    }
    std::set<std::uint64_t> pages;
    pool.for_each_owner([&](const TwinPool::Owner& owner) { pages.insert(owner.page); });
    std::set<std::uint64_t> expected;
    for (const auto& [slot, page] : owners) expected.insert(page);
    BOOST_TEST((pages == expected));
}

BOOST_AUTO_TEST_CASE(memory_of_free_slots_is_given_back_and_that_of_taken_ones_stays) {
    TwinPool pool(100);
    pool.grow(100);
    for (unsigned i = 0; i < 100; ++i) {
        const TwinPool::Slot slot = pool.take({i, 0, 0});
        *pool.at(slot) = std::byte{7};
    }
    for (TwinPool::Slot slot = 0; slot < 100; ++slot)
        if (slot % 10 != 3) pool.put_back(slot);
    pool.give_back(90);  // not more than that
    BOOST_TEST((*pool.at(0) == std::byte{7}));
    pool.give_back(89);
    for (TwinPool::Slot slot = 0; slot < 100; ++slot) BOOST_REQUIRE((*pool.at(slot) == (slot % 10 == 3 ? std::byte{7} : std::byte{0})));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::change
