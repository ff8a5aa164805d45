// Pages that are hidden until they are proven: what a touch opens, what it costs in mappings, and what can't be proven.
#include "store/first_touch.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/sanitizers.hpp"
#include "vm/address_space.hpp"

namespace taiyen::store::test {
namespace {

constexpr ByteCount granule_bytes = FirstTouch::granule_pages * page_bytes;

struct Hidden {
    explicit Hidden(ByteCount bytes) : place(vm::Reservation::anywhere(round_up(bytes, granule_bytes) + granule_bytes)), mapped(bytes) {
        vm::map_anonymous(place.data(), place.size());
        const auto prove = [this](PageNumber first, std::uint64_t count) {
            if (throws) throw std::runtime_error("no memory");
            proven.emplace_back(first.value, count);
            std::vector<FirstTouch::LostPage> found;
            for (const std::uint64_t page : lost)
                if (page >= first.value && page < first.value + count)
                    found.push_back({{page}, Error(errc::corrupt, "lost " + std::to_string(page))});
            return found;
        };
        touch.emplace(place.data(), mapped, prove, [this] { return writable; });
    }
    FirstTouch::Touch at(std::uint64_t granule, std::uint64_t page = 0) { return touch->touch({granule * FirstTouch::granule_pages + page}); }
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
    std::vector<std::uint64_t> lost;
    bool throws = false;
    bool writable = false;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> proven;
    std::optional<FirstTouch> touch;
};

/// No mapping of the process can be split any more.
class UsedUpMappings {
public:
    /// False: a system that has no such limit, or a sanitizer, which needs mappings of its own.
    static bool are_to_be_had() {
#if defined(TAIYEN_ADDRESS_SANITIZER) || defined(TAIYEN_THREAD_SANITIZER)
        return false;
#else
        return vm::mappings_max() <= 200'000;
#endif
    }
    UsedUpMappings() {
        const std::uint64_t pages = 2 * vm::mappings_max() + 16;
        place_ = static_cast<std::byte*>(::mmap(nullptr, pages * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        bytes_ = pages * page_bytes;
        for (std::uint64_t page = 1; page < pages && ::mprotect(place_ + page * page_bytes, page_bytes, PROT_READ) == 0; page += 2) {}
    }
    ~UsedUpMappings() { give_back(); }
    UsedUpMappings(const UsedUpMappings&) = delete;
    UsedUpMappings& operator=(const UsedUpMappings&) = delete;
    void give_back() { ::munmap(place_, std::exchange(bytes_, 0)); }

private:
    std::byte* place_;
    std::size_t bytes_;
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
    hidden.writable = true;
    BOOST_TEST((hidden.at(6) == Touch::opened));
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

BOOST_AUTO_TEST_CASE(a_lost_page_alone_stays_out_of_reach) {
    Hidden hidden(20 * granule_bytes);
    for (std::uint64_t granule = 0; granule < 4; ++granule) hidden.at(granule);  // the next window is of four
    constexpr std::uint64_t page = 6 * FirstTouch::granule_pages + 5;
    hidden.lost = {page, page + 1, page + 5};
    BOOST_TEST((hidden.at(4) == Touch::opened));
    BOOST_TEST((hidden.at(7) == Touch::was_open));
    const auto is_out_of_reach = [&](std::uint64_t number) { return hidden.is_out_of_reach(number * page_bytes, false); };
    for (std::uint64_t number = page - 2; number < page + 9; ++number) {
        const bool is_lost = std::ranges::count(hidden.lost, number) != 0;
        BOOST_TEST(is_out_of_reach(number) == is_lost);
        BOOST_TEST(hidden.touch->is_visible({number}) == !is_lost);
    }
    BOOST_CHECK_EXCEPTION(hidden.touch->touch({page}), Error,
                          [](const Error& error) { return std::string(error.what()).find("lost 101") != std::string::npos; });
    BOOST_TEST((hidden.proven.back() == std::pair{page, std::uint64_t{1}}));
    hidden.writable = true;
    BOOST_TEST(hidden.touch->protect({0}, 20 * FirstTouch::granule_pages, true));
    BOOST_TEST(is_out_of_reach(page));
    BOOST_TEST(!hidden.is_out_of_reach((page + 2) * page_bytes, true));
    const std::vector<vm::PageRun> visible = hidden.touch->visible({{10, 10}, {page - 1, 30}, {200, 10}});
    BOOST_TEST((visible == std::vector<vm::PageRun>{{10, 10}, {page - 1, 1}, {page + 2, 3}, {page + 6, 8 * FirstTouch::granule_pages - page - 6}}));
    hidden.lost = {page};
    BOOST_TEST((hidden.at(6, 6) == Touch::opened));  // somebody has restored it
    BOOST_TEST(!is_out_of_reach(page + 1));
    BOOST_TEST(is_out_of_reach(page));
    hidden.lost.clear();
    BOOST_TEST((hidden.at(6, 5) == Touch::opened));
    BOOST_TEST(!is_out_of_reach(page));
    BOOST_TEST((hidden.at(6, 5) == Touch::was_open));
}

BOOST_AUTO_TEST_CASE(a_granule_with_its_touched_page_lost_opens_all_the_same) {
    Hidden hidden(3 * granule_bytes);
    hidden.lost = {FirstTouch::granule_pages, 2 * FirstTouch::granule_pages - 1};
    BOOST_CHECK_THROW(hidden.at(1), Error);
    BOOST_TEST(hidden.is_out_of_reach(granule_bytes, false));
    BOOST_TEST(!hidden.is_out_of_reach(granule_bytes + page_bytes, false));
    BOOST_TEST(hidden.is_out_of_reach(2 * granule_bytes - 1, false));
    BOOST_TEST((hidden.at(1, 1) == Touch::was_open));
    hidden.touch->extended(4 * granule_bytes);
    BOOST_TEST((hidden.at(3) == Touch::was_open));
}

BOOST_AUTO_TEST_CASE(what_grows_behind_lost_pages_alone_is_visible) {
    Hidden hidden(granule_bytes + 2 * page_bytes);
    hidden.lost = {16, 17};
    hidden.writable = true;
    BOOST_CHECK_THROW(hidden.at(1), Error);
    hidden.touch->extended(3 * granule_bytes);
    BOOST_TEST(!hidden.touch->is_visible({17}));
    BOOST_TEST(hidden.touch->is_visible({18}));
    BOOST_TEST((hidden.touch->visible({{16, 20}}) == std::vector<vm::PageRun>{{18, 18}}));
    BOOST_CHECK_THROW(hidden.at(1, 1), Error);
    hidden.lost.clear();
    BOOST_TEST((hidden.at(1, 1) == Touch::opened));
    BOOST_TEST((hidden.touch->visible({{16, 20}}) == std::vector<vm::PageRun>{{17, 19}}));
}

BOOST_AUTO_TEST_CASE(what_could_not_be_proven_at_all_stays_hidden) {
    Hidden hidden(3 * granule_bytes);
    hidden.throws = true;
    BOOST_CHECK_THROW(hidden.at(1), std::runtime_error);
    BOOST_TEST(hidden.is_out_of_reach(granule_bytes, false));
    hidden.throws = false;
    BOOST_TEST((hidden.at(1) == Touch::opened));
}

/// With the process's mappings used up, what is touched opens together with what lies between it and the next open granule.
BOOST_AUTO_TEST_CASE(no_mapping_to_be_had_opens_more) {
    if (!UsedUpMappings::are_to_be_had()) return;
    Hidden hidden(40 * granule_bytes);
    hidden.at(20);
    hidden.at(30);
    UsedUpMappings none;
    hidden.proven.clear();
    BOOST_TEST((hidden.at(25) == Touch::opened));
    BOOST_TEST((hidden.proven.back() == std::pair{25 * FirstTouch::granule_pages, 5 * FirstTouch::granule_pages}));
    BOOST_TEST((hidden.at(35) == Touch::opened));
    BOOST_TEST((hidden.proven.back() == std::pair{31 * FirstTouch::granule_pages, 4 * FirstTouch::granule_pages + 1}));
    BOOST_TEST((hidden.at(35, 3) == Touch::opened));
    none.give_back();
    BOOST_TEST(!hidden.is_out_of_reach(25 * granule_bytes, false));
    BOOST_TEST(!hidden.is_out_of_reach(35 * granule_bytes + 3 * page_bytes, false));
    BOOST_TEST(hidden.is_out_of_reach(24 * granule_bytes, false));
    BOOST_TEST(hidden.is_out_of_reach(35 * granule_bytes + 4 * page_bytes, false));
    BOOST_TEST((hidden.at(35, 4) == Touch::opened));
}

BOOST_AUTO_TEST_CASE(no_mapping_to_be_had_and_a_lost_neighbour_keep_nobody_out) {
    if (!UsedUpMappings::are_to_be_had()) return;
    Hidden hidden(40 * granule_bytes);
    hidden.at(20);
    hidden.at(30);
    hidden.lost = {25 * FirstTouch::granule_pages + 3, 22 * FirstTouch::granule_pages};
    UsedUpMappings none;
    BOOST_TEST((hidden.at(25, 10) == Touch::opened));
    BOOST_CHECK_THROW(hidden.at(25, 3), Error);
    BOOST_TEST((hidden.at(21, 5) == Touch::opened));
    BOOST_CHECK_THROW(hidden.at(23), HeapFull);  // between two that are lost
    none.give_back();
    BOOST_TEST((hidden.at(23) == Touch::opened));
    for (const std::uint64_t page :
         {25 * FirstTouch::granule_pages + 10, 29 * FirstTouch::granule_pages, 21 * FirstTouch::granule_pages + 5, 23 * FirstTouch::granule_pages})
        BOOST_TEST(!hidden.is_out_of_reach(page * page_bytes, false));
    for (const std::uint64_t page : hidden.lost) BOOST_TEST(hidden.is_out_of_reach(page * page_bytes, false));
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
