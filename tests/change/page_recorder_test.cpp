// Page protection: what the recorder keeps, cuts, takes back and applies, and how the hot set, windows and mappings behave.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>

#include "change/audit_shadow.hpp"
#include "change/captured_core.hpp"
#include "change/change_sets.hpp"
#include "change/page_recorder.hpp"
#include "heap/test_span.hpp"
#include "refused_calls.hpp"

namespace taiyen::change {
BOOST_AUTO_TEST_SUITE(page_recorder)

namespace {

using test::CapturedCore;
using test::difference;
using test::ranges_of;
using test::same_bytes;
using Image = std::vector<std::byte>;

/// Mappings of the process that lie in the heap's span.
std::uint64_t mappings_of(const CapturedCore& core) {
    const auto all = vm::mappings();
    return static_cast<std::uint64_t>(std::ranges::count_if(all, [&](const vm::Mapping& m) {
        return m.begin >= core.ranges().durable && m.begin < core.ranges().durable + core.ranges().durable_bytes;
    }));
}

constexpr std::uint64_t user = 2U << 20U;  ///< an offset that nobody but the test uses

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_reserved_is_applied_even_if_the_system_refuses_to_protect_from_then_on) {
    constexpr int no_filter = 77;
    // The child has a heap of its own: one that was opened before the fork is not for it.
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);
        CapturedCore core;
        std::memset(core.base() + user, 1, 3 * page_bytes);
        Recorder& recorder = core.capture(Capture::pages);
        std::memset(core.base() + user + 13, 7, 2 * page_bytes);
        ChangeSet set;
        recorder.cut(set);
        recorder.reserve_for(set.view());
        if (!refuse_mprotect()) ::_exit(no_filter);
        recorder.apply(set.view(), Direction::backward);
        ::_exit(core.base()[user + 13] == std::byte{1} && core.base()[user + 2 * page_bytes] == std::byte{1} ? 0 : 1);
    }
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == no_filter));
}

BOOST_AUTO_TEST_CASE(a_cut_holds_the_bytes_before_and_after_and_nothing_else) {
    CapturedCore core;
    std::memset(core.base() + user, 1, 300);
    Recorder& recorder = core.capture(Capture::pages);
    BOOST_TEST(recorder.certainly_unchanged());
    std::memset(core.base() + user + 13, 7, 3);
    BOOST_TEST(!recorder.certainly_unchanged());
    ChangeSet set;
    recorder.cut(set);
    BOOST_REQUIRE(ranges_of(set) == 1);
    set.for_each(Direction::forward, [&](const Entry& entry) {
        BOOST_TEST(entry.where.value == user + 13);
        BOOST_TEST(entry.length == 3U);
        BOOST_TEST((entry.before[0] == std::byte{1} && entry.before[2] == std::byte{1}));
        BOOST_TEST((entry.after[0] == std::byte{7} && entry.after[2] == std::byte{7}));
    });
    ChangeSet next;
    recorder.cut(next);
    BOOST_TEST(next.empty());
    BOOST_TEST(recorder.counters().faults == 1U);
}

BOOST_AUTO_TEST_CASE(bytes_that_were_written_with_their_old_value_are_no_change) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    std::memset(core.base() + user, 9, 100);
    std::memset(core.base() + user, 0, 100);
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(set.empty());
}

BOOST_AUTO_TEST_CASE(every_byte_of_a_range_counts_whatever_its_place_and_length) {
    CapturedCore core(1 << 20U);
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    const std::uint64_t page = 512U << 10U;
    for (std::uint64_t at = page - 70; at < page + 70; at += 13) {
        for (const ByteCount length : {1U, 2U, 8U, 63U, 64U, 65U, 129U, 4095U, 4096U, 4097U, 9000U}) {
            const Image before = core.image();
            std::memset(core.base() + at, 0x5a, length);
            ChangeSet set;
            recorder.cut(set);
            BOOST_REQUIRE(same_bytes(set, difference(before, core.image())));
            recorder.apply(set, Direction::backward);
            BOOST_REQUIRE(core.image() == before);
            recorder.begin_scope();
            recorder.end_scope();
        }
    }
}

BOOST_AUTO_TEST_CASE(random_programs_give_the_set_that_comparing_all_pages_gives) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    CapturedCore core(2U << 20U);
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    std::vector<std::byte*> blocks;
    const auto find_blocks = [&] {
        blocks.clear();
        core.engine().for_each_block([&](const heap::Block& block) {
            blocks.push_back(core.base() + block.offset.value);
            return true;
        });
    };
    std::vector<Image> states{core.image()};
    std::vector<ChangeSet> sets;
    for (int scope = 0; scope < 200; ++scope) {
        const Image& before = states.back();
        const bool in_scope = random() % 5 != 0;  // else: what is stored outside scopes comes with the next cut
        if (in_scope) recorder.begin_scope();
        for (std::uint64_t step = random() % 20; step > 0; --step) {
            if (blocks.empty() || (random() % 3 == 0 && blocks.size() < 300)) {
                blocks.push_back(static_cast<std::byte*>(core.engine().allocate(random() % 10 == 0 ? random() % 60000 : random() % 300)));
                continue;
            }
            std::byte*& block = blocks[random() % blocks.size()];
            const ByteCount usable = core.engine().usable_size(block);
            if (random() % 5 == 0) {
                BOOST_REQUIRE((core.engine().deallocate(block) == heap::FreeResult::freed));
                block = blocks.back();
                blocks.pop_back();
            } else if (random() % 6 == 0) {
                block = static_cast<std::byte*>(core.engine().resize(block, 1 + random() % 30000));
            } else {
                const std::uint64_t from = random() % usable;
                std::memset(block + from, static_cast<int>(random() % 3), 1 + random() % (usable - from));
            }
        }
        const Image after = core.image();
        if (random() % 4 == 0) {
            recorder.restore();
            BOOST_REQUIRE((core.image() == before));
            find_blocks();
        } else {
            ChangeSet set;
            recorder.cut(set);
            BOOST_REQUIRE(same_bytes(set, difference(before, after)));
            sets.push_back(std::move(set));
            states.push_back(after);
        }
        if (in_scope) recorder.end_scope();
        BOOST_REQUIRE(heap::test::damage_text(core.engine()) == "");
        if (random() % 8 == 0) {  // some steps back, and some forth again
            const std::uint64_t back = random() % (sets.size() + 1);
            for (std::uint64_t i = 0; i < back; ++i) {
                BOOST_REQUIRE(!recorder.conflict(sets[sets.size() - 1 - i], Direction::backward));
                recorder.apply(sets[sets.size() - 1 - i], Direction::backward);
            }
            BOOST_REQUIRE((core.image() == states[states.size() - 1 - back]));
            ChangeSet none;
            recorder.cut(none);
            BOOST_REQUIRE(none.empty());
            const std::uint64_t forth = random() % (back + 1);
            for (std::uint64_t i = 0; i < forth; ++i) recorder.apply(sets[sets.size() - back + i], Direction::forward);
            sets.resize(sets.size() - back + forth);
            states.resize(sets.size() + 1);
            BOOST_REQUIRE((core.image() == states.back()));
            find_blocks();
        }
    }
    recorder.audit();
    BOOST_TEST(recorder.counters().faults > 0U);
    std::size_t live = 0;
    core.engine().for_each_block([&](const heap::Block&) { return ++live, true; });
    BOOST_TEST(live == blocks.size());
    for (std::byte* block : blocks) BOOST_REQUIRE((core.engine().deallocate(block) == heap::FreeResult::freed));
}

BOOST_AUTO_TEST_CASE(a_steady_workload_on_64_pages_takes_no_faults) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    const auto scope = [&](int value) {
        recorder.begin_scope();
        for (std::uint64_t page = 0; page < 64; ++page) core.base()[user + page * 2 * page_bytes + 8U * static_cast<unsigned>(value)] = std::byte{1};
        ChangeSet set;
        recorder.cut(set);
        BOOST_REQUIRE(ranges_of(set) == 64);
        recorder.end_scope();
    };
    scope(0);
    scope(1);
    const auto warm = recorder.counters();
    for (int i = 2; i < 500; ++i) scope(i);
    BOOST_TEST(recorder.counters().faults == warm.faults);
    BOOST_TEST(recorder.counters().pages_compared - warm.pages_compared == 498U * 64U);
    BOOST_TEST(recorder.counters().pages_hot == 64U);
}

BOOST_AUTO_TEST_CASE(a_page_that_is_not_used_any_more_is_protected_again) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    core.base()[user] = std::byte{1};
    for (int i = 0; i < 100; ++i) {
        recorder.begin_scope();
        ChangeSet set;
        recorder.cut(set);
        recorder.end_scope();
    }
    BOOST_TEST(recorder.certainly_unchanged());
    BOOST_TEST(recorder.counters().pages_hot == 0U);
    BOOST_TEST(recorder.counters().pages_compared < 70U);
    core.base()[user] = std::byte{2};
    BOOST_TEST(recorder.counters().faults == 2U);
}

BOOST_AUTO_TEST_CASE(a_page_used_once_goes_after_7_scopes_and_one_that_came_back_after_63) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    const auto scope = [&](bool stores) {
        recorder.begin_scope();
        if (stores) core.base()[user] = core.base()[user] ^ std::byte{1};
        ChangeSet set;
        recorder.cut(set);
        recorder.end_scope();
    };
    const auto scopes_until_closed = [&] {
        int scopes = 0;
        for (; recorder.counters().pages_hot != 0; ++scopes) scope(false);
        return scopes;
    };
    scope(true);
    BOOST_TEST(scopes_until_closed() == 8);
    scope(true);
    BOOST_TEST(scopes_until_closed() == 64);
    BOOST_TEST(recorder.counters().faults == 2U);
    // Unused for long, it begins anew.
    scope(true);
    BOOST_TEST(scopes_until_closed() == 8);
}

BOOST_AUTO_TEST_CASE(four_pages_used_once_go_at_the_scopes_end_and_stay_when_they_come_back) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    const auto scope = [&](std::uint64_t pages) {
        recorder.begin_scope();
        for (std::uint64_t page = 0; page < pages; ++page) core.base()[user + page * 5 * page_bytes] ^= std::byte{1};
        ChangeSet set;
        recorder.cut(set);
        recorder.end_scope();
        BOOST_REQUIRE(ranges_of(set) == pages);
    };
    scope(3);
    BOOST_TEST(recorder.counters().pages_hot == 3U);
    scope(4);  // three of them are used again, one is new
    BOOST_TEST(recorder.counters().pages_hot == 4U);
    recorder.begin_scope();
    for (std::uint64_t page = 100; page < 104; ++page) core.base()[user + page * 5 * page_bytes] = std::byte{1};
    ChangeSet set;
    recorder.cut(set);
    recorder.end_scope();
    BOOST_TEST(recorder.counters().pages_hot == 3U);  // the one that was new went with these four
    const std::uint64_t faults = recorder.counters().faults;
    scope(4);
    scope(4);
    BOOST_TEST(recorder.counters().faults == faults + 1);
    BOOST_TEST(recorder.counters().pages_hot == 4U);
}

BOOST_AUTO_TEST_CASE(a_scope_that_ends_without_a_cut_loses_nothing) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    const Image before = core.image();
    for (int i = 0; i < 100; ++i) {
        recorder.begin_scope();
        if (i == 1) std::memset(core.base() + user, 1, 2000 * page_bytes);
        recorder.end_scope();
    }
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(same_bytes(set, difference(before, core.image())));
}

BOOST_AUTO_TEST_CASE(scopes_that_wander_do_not_drag_all_their_pages_along) {
    CapturedCore core(256U << 20U);
    Recorder& recorder = core.capture(Capture::pages);
    std::mt19937_64 random(1);
    for (int i = 0; i < 400; ++i) {
        recorder.begin_scope();
        for (int k = 0; k < 10; ++k) core.base()[user + random() % (200U << 20U)] = std::byte{1};
        ChangeSet set;
        recorder.cut(set);
        recorder.end_scope();
        BOOST_REQUIRE(recorder.counters().pages_hot <= 128U + 10U);
    }
}

BOOST_AUTO_TEST_CASE(sequential_stores_open_growing_windows) {
    CapturedCore core(128U << 20U);
    Recorder& recorder = core.capture(Capture::pages, Audit::snapshot);
    const Image before = core.image();
    constexpr ByteCount length = 64U << 20U;
    for (const bool downwards : {false, true}) {
        const std::uint64_t faults = recorder.counters().faults;
        recorder.begin_scope();
        for (std::uint64_t page = 0; page < length / page_bytes; ++page)
            std::memset(core.base() + user + (downwards ? length - (page + 1) * page_bytes : page * page_bytes), downwards ? 2 : 1, page_bytes);
        BOOST_TEST(recorder.counters().faults - faults <= 8U + length / page_bytes / 256U + 2U);
        ChangeSet set;
        recorder.cut(set);
        BOOST_TEST(mappings_of(core) < 10U);
        recorder.end_scope();
        if (!downwards) BOOST_TEST(recorder.counters().pages_hot == 0U);  // the second time they are worth keeping
        recorder.apply(set, Direction::backward);
        BOOST_TEST((core.image() == before));
        recorder.audit();
        recorder.end_scope();
    }
}

BOOST_AUTO_TEST_CASE(a_very_large_scope_can_be_taken_back_or_go_on_after_its_cut) {
    CapturedCore core(64U << 20U);
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    const Image before = core.image();
    recorder.begin_scope();
    std::memset(core.base() + user, 1, 20U << 20U);
    recorder.restore();
    BOOST_TEST((core.image() == before));
    std::memset(core.base() + user, 1, 20U << 20U);
    const Image half = core.image();
    ChangeSet first;
    recorder.cut(first);
    for (std::uint64_t at = user; at < user + (20U << 20U); at += 3 * page_bytes) core.base()[at + 5] = std::byte{9};
    const Image after = core.image();
    ChangeSet second;
    recorder.cut(second);
    recorder.end_scope();
    BOOST_TEST(same_bytes(first, difference(before, half)));
    BOOST_TEST(same_bytes(second, difference(half, after)));
    recorder.apply(second, Direction::backward);
    recorder.apply(first, Direction::backward);
    BOOST_TEST((core.image() == before));
}

BOOST_AUTO_TEST_CASE(scattered_stores_stay_within_the_budget_of_mappings) {
    CapturedCore core(512U << 20U);
    Recorder& recorder = core.capture(Capture::pages);
    recorder.begin_scope();
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::vector<std::uint64_t> pages(120'000);
    for (std::uint64_t i = 0; i < pages.size(); ++i) pages[i] = i;
    std::ranges::shuffle(pages, random);
    pages.resize(20'000);
    for (const std::uint64_t page : pages) core.base()[user + page * page_bytes + page % page_bytes] = std::byte{1};
    BOOST_TEST(mappings_of(core) <= vm::mappings_max() / 4 + 10);
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(ranges_of(set) == 20'000U);
    recorder.end_scope();
    BOOST_TEST(recorder.counters().pages_hot == 0U);
    BOOST_TEST(mappings_of(core) <= 3U);
    recorder.restore();
    for (const std::uint64_t page : pages) recorder.touch({user + page * page_bytes}, 1);
    BOOST_TEST(mappings_of(core) <= vm::mappings_max() / 4 + 10);
    recorder.end_scope();
    recorder.apply(set, Direction::backward);
    BOOST_TEST(mappings_of(core) <= vm::mappings_max() / 4 + 10);
    const std::byte* const first = core.base() + user;
    BOOST_TEST((std::find_if(first, first + (480U << 20U), [](std::byte b) { return b != std::byte{0}; }) == first + (480U << 20U)));
}

BOOST_AUTO_TEST_CASE(mappings_of_a_private_file_mapping_are_joined_again) {
    CapturedCore core(128U << 20U);
    constexpr ByteCount length = 100U << 20U;
    const int file = ::memfd_create("pages", MFD_CLOEXEC);
    BOOST_REQUIRE(file >= 0);
    BOOST_REQUIRE(::ftruncate(file, length) == 0);
    BOOST_REQUIRE(::mmap(core.base() + user, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) != MAP_FAILED);
    ::close(file);
    Recorder& recorder = core.capture(Capture::pages);
    std::uint64_t most = 0;
    for (int i = 0; i < 4; ++i) {
        recorder.begin_scope();
        for (std::uint64_t page = static_cast<unsigned>(i); page < length / page_bytes; page += 5)
            core.base()[user + page * page_bytes] = static_cast<std::byte>(i + 1);
        most = std::max(most, mappings_of(core));
        ChangeSet set;
        recorder.cut(set);
        recorder.end_scope();
    }
    BOOST_TEST(most <= vm::mappings_max() / 4 + 10);
    for (int i = 0; i < 70; ++i) {
        recorder.begin_scope();
        ChangeSet set;
        recorder.cut(set);
        recorder.end_scope();
    }
    BOOST_TEST(recorder.counters().pages_hot == 0U);
    BOOST_TEST(mappings_of(core) <= 10U);
}

BOOST_AUTO_TEST_CASE(writes_of_the_engine_and_touched_ranges_take_no_fault) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    const Image before = core.image();
    for (int i = 0; i < 200; ++i) core.engine().allocate(100);
    recorder.touch({user}, 3 * page_bytes);
    std::memset(core.base() + user, 1, 3 * page_bytes);
    BOOST_TEST(recorder.counters().faults == 0U);
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(same_bytes(set, difference(before, core.image())));
    const auto refused = [](const Error& error) { return error.code() == errc::invalid_argument; };
    const std::uint64_t end = core.ranges().durable_bytes;
    BOOST_CHECK_EXCEPTION(recorder.touch({end - 5}, 6), Error, refused);
    BOOST_CHECK_EXCEPTION(recorder.touch({0}, ~ByteCount{0}), Error, refused);
    recorder.touch({end}, 0);
}

BOOST_AUTO_TEST_CASE(moved_pages_and_zeroed_runs_are_applied_in_both_directions) {
    CapturedCore core(1 << 20U);
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    const std::uint64_t source = 512U << 10U;
    const std::uint64_t target = 600U << 10U;
    std::memset(core.base() + source, 5, page_bytes);
    std::memset(core.base() + target, 6, page_bytes);
    ChangeSet unused;
    recorder.cut(unused);
    const Image before = core.image();
    ChangeSet set;
    set.add_pages_moved({source}, {target}, {core.base() + target, page_bytes});
    set.add_zeroed_run({source}, page_bytes);
    recorder.apply(set, Direction::forward);
    BOOST_TEST((core.base()[target] == std::byte{5} && core.base()[target + page_bytes - 1] == std::byte{5}));
    BOOST_TEST((core.base()[source] == std::byte{0} && core.base()[source + page_bytes - 1] == std::byte{0}));
    recorder.apply(set, Direction::backward);
    BOOST_TEST(std::memcmp(core.base() + target, before.data() + target, page_bytes) == 0);
    ChangeSet none;
    recorder.cut(none);
    BOOST_TEST(none.empty());
}

BOOST_AUTO_TEST_CASE(a_conflict_names_the_first_byte_that_is_not_as_recorded) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    ChangeSet set;
    std::memset(core.base() + user + 100, 1, 50);
    recorder.cut(set);
    std::memset(core.base() + user + 120, 2, 50);  // overlaps: within one set of two scopes
    recorder.cut(set);
    BOOST_TEST((!recorder.conflict(set, Direction::backward)));
    BOOST_TEST((recorder.conflict(set, Direction::forward) == HeapOffset{user + 100}));
    core.base()[user + 99] = std::byte{9};
    core.base()[user + 170] = std::byte{9};
    ChangeSet other;
    recorder.cut(other);
    BOOST_TEST((!recorder.conflict(set, Direction::backward)));
    core.base()[user + 105] = std::byte{9};
    recorder.cut(other);
    BOOST_TEST((recorder.conflict(set, Direction::backward) == HeapOffset{user + 105}));
    core.base()[user + 105] = std::byte{1};
    recorder.cut(other);
    recorder.apply(set, Direction::backward);
    BOOST_TEST((!recorder.conflict(set, Direction::forward)));
}

BOOST_AUTO_TEST_CASE(a_span_that_grew_is_captured_up_to_its_new_end) {
    CapturedCore core(4U << 20U);
    PageRecorder recorder(core, 1U << 20U, Audit::scope);
    recorder.start();
    const std::uint64_t old_end = 1U << 20U;
    BOOST_CHECK_THROW(recorder.touch({old_end}, 1), Error);
    recorder.extended(old_end, 3U << 20U);
    std::memset(core.base() + old_end - 1, 7, 2U << 20U);
    ChangeSet set;
    recorder.cut(set);
    recorder.apply(set, Direction::backward);
    BOOST_TEST((core.base()[old_end - 1] == std::byte{0} && core.base()[old_end + (2U << 20U) - 2] == std::byte{0}));
    BOOST_CHECK_THROW(recorder.touch({3U << 20U}, 1), Error);
}

BOOST_AUTO_TEST_CASE(a_stopped_recorder_leaves_the_heap_writable) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    core.base()[user] = std::byte{1};
    recorder.stop();
    BOOST_TEST((core.listener() == nullptr));
    core.base()[user] = std::byte{2};
    core.base()[user + 100 * page_bytes] = std::byte{2};
    BOOST_TEST(recorder.counters().faults == 1U);
    recorder.start();
    core.base()[user] = std::byte{3};
    ChangeSet set;
    recorder.cut(set);
    BOOST_REQUIRE(ranges_of(set) == 1);
    set.for_each(Direction::forward, [&](const Entry& entry) { BOOST_TEST((entry.before[0] == std::byte{2} && entry.after[0] == std::byte{3})); });
}

BOOST_AUTO_TEST_CASE(two_heaps_are_captured_apart) {
    CapturedCore first;
    CapturedCore second;
    first.capture(Capture::pages);
    second.capture(Capture::pages);
    std::memcpy(first.base() + user, "first", 5);
    std::memcpy(second.base() + user + page_bytes, "second", 6);
    ChangeSet of_first;
    ChangeSet of_second;
    first.recorder().cut(of_first);
    second.recorder().cut(of_second);
    BOOST_REQUIRE((ranges_of(of_first) == 1 && ranges_of(of_second) == 1));
    of_first.for_each(Direction::forward, [](const Entry& entry) { BOOST_TEST((entry.where.value == user && entry.length == 5U)); });
    of_second.for_each(Direction::forward, [](const Entry& entry) { BOOST_TEST((entry.where.value == user + page_bytes && entry.length == 6U)); });
}

BOOST_AUTO_TEST_CASE(a_very_large_cut_that_fails_has_changed_nothing_although_its_twins_were_given_up) {
    CapturedCore core(64U << 20U);
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    constexpr ByteCount length = 24U << 20U;
    // Every other page was not empty before: both kinds of entries.
    recorder.begin_scope();
    for (std::uint64_t at = 0; at < length; at += 2 * page_bytes) std::memset(core.base() + user + at, 3, page_bytes);
    ChangeSet earlier;
    recorder.cut(earlier);
    recorder.end_scope();
    const Image before = core.image();
    for (const bool restored : {true, false}) {
        recorder.begin_scope();
        std::memset(core.base() + user, 1, length);
        for (std::uint64_t at = 0; at < length; at += 8 * page_bytes) core.base()[user + at + 100] = std::byte{3};  // as it was, or not
        // The audit ends the cut after all was compared: a page was made writable by somebody else.
        std::byte* const escaped = core.base() + (56U << 20U);
        vm::protect(escaped, page_bytes, true);
        *escaped = std::byte{1};
        ChangeSet set;
        BOOST_CHECK_THROW(recorder.cut(set), Error);
        BOOST_TEST(set.empty());
        *escaped = std::byte{0};
        vm::protect(escaped, page_bytes, false);
        if (restored) {
            recorder.restore();
            BOOST_TEST((core.image() == before));
        } else {
            const Image after = core.image();
            recorder.cut(set);
            BOOST_TEST(same_bytes(set, difference(before, after)));
            recorder.apply(set, Direction::backward);
            BOOST_TEST((core.image() == before));
        }
        recorder.end_scope();
    }
}

BOOST_AUTO_TEST_CASE(what_was_accepted_is_in_no_later_cut_and_is_not_taken_back) {
    for (const ByteCount length : {ByteCount{64} << 10U, ByteCount{20} << 20U}) {
        CapturedCore core(64U << 20U);
        Recorder& recorder = core.capture(Capture::pages);
        recorder.begin_scope();
        std::memset(core.base() + user, 1, length);
        recorder.accept();
        recorder.end_scope();
        const Image accepted = core.image();
        recorder.begin_scope();
        for (std::uint64_t at = user; at < user + length; at += 3 * page_bytes) core.base()[at + 5] = std::byte{9};
        recorder.restore();
        BOOST_TEST((core.image() == accepted));
        core.base()[user + 7] = std::byte{8};
        const Image after = core.image();
        ChangeSet set;
        recorder.cut(set);
        recorder.end_scope();
        BOOST_TEST(same_bytes(set, difference(accepted, after)));
    }
}

BOOST_AUTO_TEST_CASE(the_audit_finds_a_write_behind_the_recorder) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    auto* const block = static_cast<std::byte*>(core.engine().allocate(5000));
    ChangeSet set;
    recorder.cut(set);
    const ByteCount size = set.size();
    core.base()[user] = std::byte{1};
    // Another page is made writable by somebody else.
    std::byte* const page = core.base() + round_down(core.offset_of(block).value + 4500, page_bytes);
    vm::protect(page, page_bytes, true);
    page[17] = std::byte{1};
    const auto named = [&](const Error& error) {
        return error.code() == errc::uncaptured_store && error.offset() == core.offset_of(page).value + 17;
    };
    BOOST_CHECK_EXCEPTION(recorder.cut(set), Error, named);
    BOOST_TEST(set.size() == size);
    page[17] = std::byte{0};
    recorder.cut(set);
    BOOST_TEST(set.size() > size);
    recorder.audit();
}

BOOST_AUTO_TEST_CASE(stores_of_several_threads_are_captured, *boost::unit_test::label("threads")) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    const Image before = core.image();
    for (int round = 0; round < 20; ++round) {
        recorder.begin_scope();
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 4; ++t) {
            threads.emplace_back([&core, t, round] {
                for (std::uint64_t page = 0; page < 200; ++page)
                    core.base()[user + page * page_bytes * (t % 2 + 1) + t * 64] = static_cast<std::byte>(round + 1);
            });
        }
        for (std::thread& thread : threads) thread.join();
        const Image after = core.image();
        ChangeSet set;
        recorder.cut(set);
        BOOST_REQUIRE(same_bytes(set, difference(before, after)));
        recorder.apply(set, Direction::backward);
        recorder.end_scope();
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
