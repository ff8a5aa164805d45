// When free pages lose their memory, and how much of it: by figures alone, without a heap.

#include "volatile/decay.hpp"

#include <boost/test/unit_test.hpp>

namespace taiyen::heap {
namespace {

std::chrono::milliseconds decay_time{};
std::chrono::steady_clock::time_point decay_now() noexcept { return std::chrono::steady_clock::time_point(decay_time); }

struct DecayFixture {
    DecayFixture() {
        decay_time = std::chrono::hours(1);
        decay.set_clock(&decay_now);
    }
    /// What free pages may keep of `free` bytes after so much was freed.
    ByteCount kept(ByteCount freed, ByteCount used, ByteCount free) {
        decay.freed(freed);
        BOOST_TEST(decay.wants_look());
        const auto found = decay.look({used, free, 0}, used + free);
        if (found) decay.purged();
        return found.value_or(free);
    }
    Decay decay;
};

BOOST_FIXTURE_TEST_SUITE(decay, DecayFixture)

BOOST_AUTO_TEST_CASE(half_of_the_free_memory_goes_once_in_a_second) {
    BOOST_TEST(kept(20_MiB, 400_MiB, 100_MiB) == 50_MiB);
    decay_time += std::chrono::milliseconds(999);
    BOOST_TEST(kept(200_MiB, 400_MiB, 100_MiB) == 100_MiB);
    decay_time += std::chrono::milliseconds(1);
    BOOST_TEST(kept(200_MiB, 400_MiB, 100_MiB) == 50_MiB);
}

BOOST_AUTO_TEST_CASE(what_is_more_than_nine_sixteenths_of_the_memory_in_use_goes_at_once) {
    kept(20_MiB, 160_MiB, 60_MiB);
    BOOST_TEST(kept(200_MiB, 160_MiB, 90_MiB) == 90_MiB);
    BOOST_TEST(kept(200_MiB, 160_MiB, 91_MiB) == 81_MiB);
}

BOOST_AUTO_TEST_CASE(sixteen_megabytes_stay_in_a_small_heap) {
    BOOST_TEST(kept(20_MiB, 1_MiB, 8_MiB) == 4_MiB);  // but for the half
    BOOST_TEST(kept(20_MiB, 1_MiB, 16_MiB) == 16_MiB);
}

BOOST_AUTO_TEST_CASE(little_that_was_freed_is_not_worth_a_look) {
    kept(20_MiB, 640_MiB, 360_MiB);
    BOOST_TEST(kept(200_MiB, 640_MiB, 360_MiB) == 360_MiB);
    decay.freed(1000_MiB / 64 - 1);  // of the extent
    BOOST_TEST(!decay.wants_look());
    decay.freed(1);
    BOOST_TEST(decay.wants_look());
}

BOOST_AUTO_TEST_CASE(what_was_purged_for_another_reason_is_not_counted_again) {
    kept(20_MiB, 400_MiB, 100_MiB);
    decay_time += std::chrono::seconds(2);
    decay.freed(200_MiB);
    decay.look({400_MiB, 1_MiB, 0}, 401_MiB);  // it is time, and halves even that
    decay.purged();
    decay_time += std::chrono::seconds(2);
    BOOST_TEST(!decay.look({400_MiB, 100_MiB, 0}, 500_MiB).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::heap
