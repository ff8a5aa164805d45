// Announced writes: what the recorder of stores and declared ranges keeps, cuts, takes back and applies.
#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>

#include "change/audit_shadow.hpp"
#include "change/captured_core.hpp"
#include "change/change_sets.hpp"
#include "change/logged_recorder.hpp"
#include "heap/test_span.hpp"

namespace taiyen::change {
namespace {

using test::CapturedCore;
using test::difference;
using test::ranges_of;
using test::same_bytes;
using Image = std::vector<std::byte>;

/// A write of the program that was declared.
void write(CapturedCore& core, std::uint64_t where, std::span<const std::byte> bytes) {
    core.recorder().touch({where}, bytes.size());
    std::memcpy(core.base() + where, bytes.data(), bytes.size());
}
void write_byte(CapturedCore& core, std::uint64_t where, int value) {
    const auto byte = static_cast<std::byte>(value);
    write(core, where, {&byte, 1});
}
void fill(CapturedCore& core, std::uint64_t where, ByteCount length, int value) {
    core.recorder().touch({where}, length);
    std::memset(core.base() + where, value, length);
}

bool is_uncaptured(const Error& error) { return error.code() == errc::uncaptured_store; }

}  // namespace

BOOST_AUTO_TEST_SUITE(logged_recorder)

BOOST_AUTO_TEST_CASE(a_cut_holds_the_bytes_before_and_after_and_nothing_else) {
    CapturedCore core;
    auto* const block = static_cast<std::byte*>(core.engine().allocate(200));
    std::memset(block, 1, 200);
    Recorder& recorder = core.capture(Capture::declared);
    BOOST_TEST(recorder.certainly_unchanged());
    fill(core, core.offset_of(block).value + 10, 3, 7);
    BOOST_TEST(!recorder.certainly_unchanged());
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(recorder.certainly_unchanged());
    BOOST_REQUIRE(ranges_of(set) == 1);
    set.for_each(Direction::forward, [&](const Entry& entry) {
        BOOST_TEST(entry.where.value == core.offset_of(block).value + 10);
        BOOST_TEST(entry.length == 3U);
        BOOST_TEST((entry.before[0] == std::byte{1} && entry.before[2] == std::byte{1}));
        BOOST_TEST((entry.after[0] == std::byte{7} && entry.after[2] == std::byte{7}));
    });
    ChangeSet next;
    recorder.cut(next);
    BOOST_TEST(next.empty());
}

BOOST_AUTO_TEST_CASE(bytes_that_were_written_with_their_old_value_are_no_change) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::declared);
    const std::uint64_t where = 3 << 20U;
    fill(core, where, 100, 9);
    BOOST_TEST(recorder.has_changed());
    fill(core, where, 100, 0);
    BOOST_TEST(!recorder.has_changed());
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(set.empty());
}

BOOST_AUTO_TEST_CASE(a_line_that_was_cut_is_kept_anew_when_it_changes_again) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::declared);
    const std::uint64_t where = 3 << 20U;
    for (int value = 1; value < 10; ++value) {
        write_byte(core, where, value);
        ChangeSet set;
        recorder.cut(set);
        BOOST_REQUIRE(ranges_of(set) == 1);
        set.for_each(Direction::forward, [&](const Entry& entry) {
            BOOST_TEST((entry.before[0] == static_cast<std::byte>(value - 1)));
            BOOST_TEST((entry.after[0] == static_cast<std::byte>(value)));
        });
    }
}

BOOST_AUTO_TEST_CASE(a_cut_appends_to_what_the_set_holds) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::declared);
    ChangeSet set;
    write_byte(core, 3 << 20U, 1);
    recorder.cut(set);
    write_byte(core, 3 << 20U, 2);
    recorder.cut(set);
    BOOST_TEST(ranges_of(set) == 2U);
    BOOST_TEST(recorder.counters().cuts == 2U);
}

BOOST_AUTO_TEST_CASE(every_byte_of_a_range_counts_whatever_its_place_and_length) {
    CapturedCore core(1 << 20U);
    Recorder& recorder = core.capture(Capture::declared);
    const std::uint64_t page = 512U << 10U;
    for (std::uint64_t at = page - 70; at < page + 70; at += 3) {
        for (const ByteCount length : {1U, 2U, 8U, 63U, 64U, 65U, 127U, 129U, 4095U, 4096U, 4097U, 9000U}) {
            const Image before = core.image();
            fill(core, at, length, 0x5a);
            ChangeSet set;
            recorder.cut(set);
            BOOST_REQUIRE(same_bytes(set, difference(before, core.image())));
            recorder.apply(set, Direction::backward);
            BOOST_REQUIRE(core.image() == before);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_end_of_the_span_can_be_written_and_nothing_behind_it_touched) {
    CapturedCore core(1 << 20U);
    Recorder& recorder = core.capture(Capture::declared);
    const std::uint64_t end = core.ranges().durable_bytes;
    fill(core, end - 5, 5, 1);
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(ranges_of(set) == 1U);
    const auto refused = [](const Error& error) { return error.code() == errc::invalid_argument; };
    BOOST_CHECK_EXCEPTION(recorder.touch({end - 5}, 6), Error, refused);
    BOOST_CHECK_EXCEPTION(recorder.touch({end + 1}, 0), Error, refused);
    BOOST_CHECK_EXCEPTION(recorder.touch({0}, ~ByteCount{0}), Error, refused);
    BOOST_TEST(recorder.certainly_unchanged());
}

BOOST_AUTO_TEST_CASE(a_range_of_many_megabytes_is_taken_back_whole) {
    CapturedCore core(64U << 20U);
    Recorder& recorder = core.capture(Capture::declared);
    const Image before = core.image();
    const std::uint64_t where = (4 << 20U) + 100;
    fill(core, where, 40U << 20U, 3);
    recorder.restore();
    BOOST_TEST((core.image() == before));
    BOOST_TEST(recorder.certainly_unchanged());
    fill(core, where, 40U << 20U, 3);
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(same_bytes(set, difference(before, core.image())));
}

BOOST_AUTO_TEST_CASE(random_writes_and_allocations_give_the_set_that_comparing_all_pages_gives) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    CapturedCore core(2U << 20U);
    Recorder& recorder = core.capture(Capture::declared, Audit::scope);
    std::vector<std::byte*> blocks;
    std::vector<Image> states{core.image()};
    std::vector<ChangeSet> sets;
    for (int scope = 0; scope < 300; ++scope) {
        const Image& before = states.back();
        for (std::uint64_t step = random() % 30; step > 0; --step) {
            if (blocks.empty() || (random() % 3 == 0 && blocks.size() < 300)) {
                blocks.push_back(static_cast<std::byte*>(core.engine().allocate(random() % 20 == 0 ? random() % 20000 : random() % 300)));
            } else {
                const std::size_t chosen = random() % blocks.size();
                const ByteCount usable = core.engine().usable_size(blocks[chosen]);
                if (random() % 5 == 0) {
                    BOOST_REQUIRE((core.engine().deallocate(blocks[chosen]) == heap::FreeResult::freed));
                    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(chosen));
                } else {
                    const std::uint64_t from = random() % usable;
                    std::vector<std::byte> bytes(1 + random() % (usable - from));
                    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 3);
                    write(core, core.offset_of(blocks[chosen]).value + from, bytes);
                }
            }
        }
        const Image after = core.image();
        const bool taken_back = random() % 4 == 0;
        if (taken_back) {
            recorder.restore();
            BOOST_REQUIRE((core.image() == before));
            // Blocks may have come or gone.
            blocks.clear();
            core.engine().for_each_block([&](const heap::Block& block) {
                blocks.push_back(core.base() + block.offset.value);
                return true;
            });
            continue;
        }
        ChangeSet set;
        recorder.cut(set);
        BOOST_REQUIRE(same_bytes(set, difference(before, after)));
        sets.push_back(std::move(set));
        states.push_back(after);
        BOOST_REQUIRE(heap::test::damage_text(core.engine()) == "");
    }
    for (std::size_t i = sets.size(); i > 0; --i) {
        BOOST_REQUIRE(!recorder.conflict(sets[i - 1], Direction::backward));
        recorder.apply(sets[i - 1], Direction::backward);
        BOOST_REQUIRE((core.image() == states[i - 1]));
    }
    for (std::size_t i = 0; i < sets.size(); ++i) {
        recorder.apply(sets[i], Direction::forward);
        BOOST_REQUIRE((core.image() == states[i + 1]));
    }
    recorder.audit();
    // The engine sees what came back, not what it remembered.
    BOOST_TEST(heap::test::damage_text(core.engine()) == "");
    std::size_t live = 0;
    core.engine().for_each_block([&](const heap::Block&) { return ++live, true; });
    BOOST_TEST(live == blocks.size());
    for (std::byte* block : blocks) BOOST_REQUIRE((core.engine().deallocate(block) == heap::FreeResult::freed));
}

BOOST_AUTO_TEST_CASE(what_is_applied_is_no_change) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::declared);
    write_byte(core, 3 << 20U, 1);
    ChangeSet set;
    recorder.cut(set);
    recorder.apply(set, Direction::backward);
    BOOST_TEST(recorder.certainly_unchanged());
    ChangeSet none;
    recorder.cut(none);
    BOOST_TEST(none.empty());
}

BOOST_AUTO_TEST_CASE(moved_pages_and_zeroed_runs_are_applied_in_both_directions) {
    CapturedCore core(1 << 20U);
    Recorder& recorder = core.capture(Capture::declared);
    const std::uint64_t source = 512U << 10U;
    const std::uint64_t target = 600U << 10U;
    fill(core, source, page_bytes, 5);
    fill(core, target, page_bytes, 6);
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
    BOOST_TEST(recorder.certainly_unchanged());
}

BOOST_AUTO_TEST_CASE(the_audit_finds_a_write_that_nobody_announced) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::declared, Audit::scope);
    auto* const block = static_cast<std::byte*>(core.engine().allocate(100));
    ChangeSet set;
    recorder.cut(set);
    const ByteCount size = set.size();
    write_byte(core, 3 << 20U, 1);
    block[90] = std::byte{1};
    BOOST_CHECK_EXCEPTION(recorder.cut(set), Error,
                          [&](const Error& error) { return is_uncaptured(error) && error.offset() == core.offset_of(block).value + 90; });
    // Nothing of the cut has happened: what was announced can still be taken back, or cut once the stray byte is gone.
    BOOST_TEST(set.size() == size);
    BOOST_TEST(!recorder.certainly_unchanged());
    block[90] = std::byte{0};
    recorder.cut(set);
    BOOST_TEST(set.size() > size);
    recorder.audit();
}

BOOST_AUTO_TEST_CASE(a_program_without_instrumented_code_cannot_capture_stores) {
    CapturedCore core;
    BOOST_CHECK_EXCEPTION(core.capture(Capture::stores), Error, [](const Error& error) { return error.code() == errc::not_instrumented; });
    BOOST_TEST((core.listener() == nullptr));
}

BOOST_AUTO_TEST_CASE(declared_mode_does_not_listen_to_stores) {
    CapturedCore core;
    core.capture(Capture::declared);
    BOOST_TEST((core.listener() == nullptr));
}

BOOST_AUTO_TEST_CASE(stores_are_heard_from_start_to_stop) {
    CapturedCore core;
    LoggedRecorder recorder(Capture::stores, core, core.ranges().durable_bytes, Audit::off);
    BOOST_TEST((core.listener() == nullptr));
    recorder.start();
    BOOST_REQUIRE((core.listener() == &recorder));
    std::byte* const place = core.base() + (3 << 20U);
    core.listener()->on_store(place, 8);
    place[7] = std::byte{1};
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(ranges_of(set) == 1U);
    BOOST_TEST(recorder.counters().stores == 1U);
    recorder.stop();
    BOOST_TEST((core.listener() == nullptr));
    recorder.about_to_write({0}, 8);
    BOOST_TEST(recorder.certainly_unchanged());
}

BOOST_AUTO_TEST_CASE(a_store_that_runs_over_the_end_of_the_span_is_kept_up_to_there) {
    CapturedCore core(1 << 20U);
    LoggedRecorder recorder(Capture::stores, core, core.ranges().durable_bytes, Audit::off);
    recorder.start();
    std::byte* const place = core.base() + core.ranges().durable_bytes - 3;
    recorder.on_store(place, ~ByteCount{0});
    place[2] = std::byte{1};
    recorder.restore();
    BOOST_TEST((place[2] == std::byte{0}));
}

BOOST_AUTO_TEST_CASE(a_span_that_grew_is_captured_up_to_its_new_end) {
    CapturedCore core(4U << 20U);
    LoggedRecorder recorder(Capture::declared, core, 1U << 20U, Audit::scope);
    recorder.start();
    const std::uint64_t old_end = 1U << 20U;
    BOOST_CHECK_THROW(recorder.touch({old_end}, 1), Error);
    recorder.extended(old_end, 3U << 20U);
    recorder.touch({old_end - 1}, 2U << 20U);
    std::memset(core.base() + old_end - 1, 7, 2U << 20U);
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(!set.empty());
    recorder.apply(set, Direction::backward);
    BOOST_TEST((core.base()[old_end - 1] == std::byte{0} && core.base()[old_end + (2U << 20U) - 2] == std::byte{0}));
    BOOST_CHECK_THROW(recorder.touch({3U << 20U}, 1), Error);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
