// Pages that are hidden until they are proven: what a touch opens, what it costs in mappings, and what can't be proven.
#include "store/first_touch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "vm/address_space.hpp"

namespace taiyen::store::test {
namespace {

constexpr ByteCount granule_bytes = FirstTouch::granule_pages * page_bytes;

struct Hidden {
    explicit Hidden(ByteCount bytes) : place(vm::Reservation::anywhere(round_up(bytes, granule_bytes) + granule_bytes)), mapped(bytes) {
        vm::map_anonymous(place.data(), place.size());
        touch.emplace(place.data(), mapped, [this](PageNumber first, std::uint64_t count) {
            if (first <= refused && refused.value < first.value + count) throw std::runtime_error("nobody has it whole");
            proven.emplace_back(first.value, count);
        });
    }
    FirstTouch::Touch at(std::uint64_t granule, bool writable = false) { return touch->touch({granule * FirstTouch::granule_pages}, writable); }
    /// Whether a load, or a store, ends a child.
    bool is_out_of_reach(ByteCount offset, bool stores) const {
        const pid_t child = ::fork();
        if (child == 0) {
            ::signal(SIGSEGV, SIG_DFL);
            volatile std::byte* const byte = place.data() + offset;
            const std::byte value = *byte;
            if (stores) *byte = value;
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return !WIFEXITED(status);
    }

    vm::Reservation place;
    ByteCount mapped;
    PageNumber refused{~std::uint64_t{0}};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> proven;
    std::optional<FirstTouch> touch;
};

using Touch = FirstTouch::Touch;
using Pages = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

}  // namespace

BOOST_AUTO_TEST_SUITE(first_touch)

BOOST_AUTO_TEST_CASE(what_is_touched_opens_and_the_rest_stays_out_of_reach) {
    Hidden hidden(8 * granule_bytes);
    BOOST_TEST(hidden.is_out_of_reach(3 * granule_bytes, false));
    BOOST_TEST((hidden.at(3) == Touch::opened));
    BOOST_TEST((hidden.proven == Pages{{48, 16}}));
    BOOST_TEST(!hidden.is_out_of_reach(3 * granule_bytes, false));
    BOOST_TEST(!hidden.is_out_of_reach(4 * granule_bytes - 1, false));
    BOOST_TEST(hidden.is_out_of_reach(3 * granule_bytes, true));
    BOOST_TEST(hidden.is_out_of_reach(3 * granule_bytes - 1, false));
    BOOST_TEST(hidden.is_out_of_reach(4 * granule_bytes, false));
    BOOST_TEST((hidden.at(3) == Touch::was_open));
    BOOST_TEST((hidden.at(6, true) == Touch::opened));
    BOOST_TEST(!hidden.is_out_of_reach(6 * granule_bytes, true));
    BOOST_TEST((hidden.at(8) == Touch::outside));
    BOOST_TEST(hidden.proven.size() == 2U);
}

BOOST_AUTO_TEST_CASE(the_last_granule_may_be_a_part_and_grows_open) {
    Hidden hidden(granule_bytes + 3 * page_bytes);
    BOOST_TEST((hidden.at(1) == Touch::opened));
    BOOST_TEST((hidden.proven == Pages{{16, 3}}));
    hidden.touch->extended(2 * granule_bytes + page_bytes);
    BOOST_TEST((hidden.at(2) == Touch::was_open));
    BOOST_TEST((hidden.at(1) == Touch::was_open));
    BOOST_TEST((hidden.at(0) == Touch::opened));
}

BOOST_AUTO_TEST_CASE(sequential_touches_open_more_and_more_at_once) {
    Hidden hidden(100 * granule_bytes);
    std::vector<std::uint64_t> windows;
    for (std::uint64_t granule = 0; granule < 100; ++granule) {
        const std::size_t before = hidden.proven.size();
        if (hidden.at(granule) == Touch::opened) windows.push_back(hidden.proven[before].second / FirstTouch::granule_pages);
    }
    BOOST_TEST((windows == std::vector<std::uint64_t>{1, 1, 2, 4, 8, 16, 16, 16, 16, 16, 4}));
}

BOOST_AUTO_TEST_CASE(a_neighbour_that_nobody_asked_for_keeps_nobody_out) {
    Hidden hidden(20 * granule_bytes);
    for (std::uint64_t granule = 0; granule < 4; ++granule) hidden.at(granule);  // the next window is of four
    hidden.refused = {6 * FirstTouch::granule_pages + 5};
    BOOST_TEST((hidden.at(4) == Touch::opened));
    BOOST_TEST(hidden.is_out_of_reach(5 * granule_bytes, false));
    BOOST_TEST((hidden.at(5) == Touch::opened));
    BOOST_CHECK_THROW(hidden.at(6), std::runtime_error);
    BOOST_TEST(hidden.is_out_of_reach(6 * granule_bytes, false));
    BOOST_TEST((hidden.at(7) == Touch::opened));
    hidden.refused = {~std::uint64_t{0}};
    BOOST_TEST((hidden.at(6) == Touch::opened));
}

BOOST_AUTO_TEST_CASE(protection_passes_over_what_is_hidden) {
    Hidden hidden(6 * granule_bytes);
    hidden.at(1);
    hidden.at(4);
    BOOST_TEST(hidden.touch->protect({0}, 6 * FirstTouch::granule_pages, true));
    for (std::uint64_t granule = 0; granule < 6; ++granule) {
        const bool is_open = granule == 1 || granule == 4;
        BOOST_TEST(hidden.is_out_of_reach(granule * granule_bytes, true) == !is_open);
        BOOST_TEST(hidden.is_out_of_reach((granule + 1) * granule_bytes - 1, true) == !is_open);
    }
    BOOST_TEST(hidden.touch->protect({FirstTouch::granule_pages + 2}, 1, false));
    BOOST_TEST(hidden.is_out_of_reach(granule_bytes + 2 * page_bytes, true));
    BOOST_TEST(!hidden.is_out_of_reach(granule_bytes + 3 * page_bytes, true));
}

BOOST_AUTO_TEST_CASE(touches_all_over_stay_within_their_share_of_the_mappings) {
    const std::uint64_t runs = vm::mappings_max() / 16;
    if (runs > 100'000) return;  // a system that has no such limit
    const std::uint64_t granules = 2 * runs + 200;
    Hidden hidden(granules * granule_bytes);
    for (std::uint64_t granule = 0; granule < granules; granule += 2) hidden.at(granule);
    const auto begin = hidden.place.address();
    std::size_t mappings = 0;
    for (const vm::Mapping& mapping : vm::mappings()) mappings += mapping.begin >= begin && mapping.end <= begin + hidden.place.size() ? 1 : 0;
    BOOST_TEST(mappings <= 2 * runs + 2);
    for (std::uint64_t granule = 0; granule < granules; granule += 2) BOOST_REQUIRE((hidden.at(granule) == Touch::was_open));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace taiyen::store::test
