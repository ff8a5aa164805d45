#include "log/group_log.hpp"

#include <atomic>
#include <condition_variable>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "counted_memory.hpp"
#include "group_log_fixture.hpp"
#include "seed.hpp"
#include "threads.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;
using taiyen::test::at_once;
using taiyen::test::require;

namespace {

using Groups = std::vector<std::size_t>;
using boost::unit_test::label;

}  // namespace

BOOST_AUTO_TEST_SUITE(group_log)

// ---- one thread

BOOST_AUTO_TEST_CASE(records_that_wait_together_share_a_write) {
    GroupLogFixture fixture;
    for (int i = 0; i < 5; ++i) fixture.append(150);
    BOOST_TEST(fixture.file->writes() == 0U);
    BOOST_TEST((fixture.log->appended() == Serial{5} && fixture.log->durable() == Serial{0}));
    fixture.log->wait_durable({2});
    BOOST_TEST(fixture.file->writes() == 1U);
    BOOST_TEST((fixture.log->durable() == Serial{5}));
    fixture.log->wait_durable({5});
    BOOST_TEST(fixture.file->writes() == 1U);
    BOOST_TEST(fixture.groups() == Groups{5}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_nobody_waited_for_is_not_there_after_the_end) {
    GroupLogFixture fixture;
    fixture.commit(10);
    fixture.append(10);
    fixture.log.reset();
    BOOST_TEST(fixture.groups() == Groups{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_durable_point_is_where_the_next_group_begins) {
    GroupLogFixture fixture(64_KiB, {}, 40_KiB);
    BOOST_TEST((fixture.log->durable_point().next == fixture.start));
    fixture.commit(100);
    fixture.append(100);
    const auto point = fixture.log->durable_point();
    BOOST_TEST((point.serial == Serial{1}));
    fixture.commit(100);
    BOOST_TEST(fixture.groups(point.next, 2) == Groups{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(records_of_every_size_come_back) {
    GroupLogFixture fixture(8_MiB, {.group_bytes_max = 16_KiB});
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int i = 0; i < 300; ++i) {
        const Serial serial = fixture.append(random() % 8 == 0 ? random() % 20'000 : random() % 600);
        if (random() % 3 == 0) fixture.log->wait_durable(serial);
    }
    fixture.log->wait_durable(fixture.log->appended());
    const Groups groups = fixture.groups();
    BOOST_TEST(std::accumulate(groups.begin(), groups.end(), std::size_t{0}) == 300U);
}

BOOST_AUTO_TEST_CASE(groups_go_round_the_ring) {
    GroupLogFixture fixture(32_KiB);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    RingStart start = fixture.start;
    std::uint64_t first = 1;
    while (fixture.log->durable_point().next.position < 40 * 32_KiB) {
        const std::uint64_t records = 1 + random() % 5;
        for (std::uint64_t i = 0; i < records; ++i) fixture.append(random() % 2'500);
        fixture.log->wait_durable(fixture.log->appended());
        fixture.groups(start, first);
        if (fixture.log->used() > 8_KiB) {
            const auto point = fixture.log->durable_point();
            start = point.next;
            first = point.serial.value + 1;
            fixture.log->release(start.position);
            BOOST_TEST(fixture.log->used() == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_record_larger_than_a_group_gets_one_of_its_own) {
    GroupLogFixture fixture(1_MiB, {.group_bytes_max = 4_KiB});
    fixture.append(100);
    fixture.append(100'000);
    fixture.append(100);
    fixture.log->wait_durable({3});
    BOOST_TEST(fixture.groups() == (Groups{1, 1, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_record_fits_if_it_takes_at_most_half_of_the_ring) {
    GroupLogFixture fixture(64_KiB);
    std::size_t largest = 0;
    while (fixture.log->fits(largest + 1)) ++largest;
    BOOST_TEST(Ring::record_bytes(8 + 8 + round_up(largest, 8)) == 32_KiB);
    BOOST_TEST(Ring::record_bytes(8 + 8 + round_up(largest + 1, 8)) > 32_KiB);
    for (int i = 0; i < 2; ++i) fixture.commit(largest);
    BOOST_TEST(fixture.log->used() == 64_KiB);
    BOOST_TEST(!fixture.log->fits(~ByteCount{0}));
}

BOOST_AUTO_TEST_CASE(pressure_is_told_once_for_each_release) {
    GroupLogFixture fixture(64_KiB);
    int told = 0;
    fixture.log->on_pressure = [&] { ++told; };
    while (fixture.log->used() < 28_KiB) fixture.commit(100);
    BOOST_TEST(told == 0);
    for (int i = 0; i < 4; ++i) fixture.commit(100);
    BOOST_TEST(told == 1);
    fixture.log->release(4_KiB);
    fixture.commit(100);
    BOOST_TEST(told == 2);
    fixture.log->release(fixture.log->durable_point().next.position);
    fixture.commit(100);
    BOOST_TEST(told == 2);
}

BOOST_AUTO_TEST_CASE(a_full_ring_is_said_to_be_full_to_who_cannot_wait) {
    GroupLogFixture fixture(32_KiB);
    int told = 0;
    fixture.log->on_pressure = [&] { ++told; };
    for (int i = 0; i < 8; ++i) fixture.commit(100);
    const auto bytes = record_of(9, 100);
    const std::span<const std::byte> piece(bytes);
    told = 0;
    BOOST_TEST(!fixture.log->try_append({9}, {&piece, 1}));
    BOOST_TEST(told == 1);
    BOOST_TEST((fixture.log->appended() == Serial{8}));
    fixture.log->release(4_KiB);
    BOOST_TEST(fixture.log->try_append({9}, {&piece, 1}));
    fixture.log->wait_durable({9});
}

BOOST_AUTO_TEST_CASE(what_is_held_stays_until_it_stands_in_a_records_way) {
    GroupLogFixture fixture(64_KiB);
    fixture.commit(100);
    GroupLog::Hold hold(*fixture.log);
    BOOST_TEST((hold.begin().serial == Serial{1}));
    // The files need none of it, so the log has half its room left by what it says, and no pressure.
    int told = 0;
    fixture.log->on_pressure = [&] { ++told; };
    const auto commit_and_release = [&] {
        fixture.commit(3000);
        fixture.log->release(fixture.log->durable_point().next.position);
        BOOST_TEST(fixture.log->used() == 0U);
    };
    for (int i = 0; i < 15; ++i) {
        commit_and_release();
        BOOST_TEST(fixture.groups(hold.begin().next, 2).size() == static_cast<std::size_t>(i + 1));
    }
    BOOST_TEST(!hold.is_lost());
    commit_and_release();  // the ring holds 16 of them
    BOOST_TEST(!hold.is_lost());
    BOOST_TEST(fixture.groups(hold.begin().next, 2).size() == 16U);
    commit_and_release();
    BOOST_TEST(hold.is_lost());
    BOOST_TEST(told == 0);
}

BOOST_AUTO_TEST_CASE(a_hold_that_moves_on_is_never_lost) {
    GroupLogFixture fixture(64_KiB);
    GroupLog::Hold idle(*fixture.log);
    GroupLog::Hold hold(*fixture.log);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    RingStart start = hold.begin().next;
    std::uint64_t first = 1;
    ByteCount since = 0;
    while (start.position < 20 * 64_KiB) {
        const std::size_t size = random() % 2500;
        fixture.commit(size);
        since += 8_KiB;
        if (random() % 2 == 0) fixture.log->release(fixture.log->durable_point().next.position);
        if (fixture.log->used() > 24_KiB) fixture.log->release(fixture.log->durable_point().next.position);
        if (since < 32_KiB) continue;
        since = 0;
        const auto point = fixture.log->durable_point();
        fixture.groups(start, first);
        BOOST_REQUIRE(!hold.is_lost());
        start = point.next;
        first = point.serial.value + 1;
        hold.move_on(start.position);
    }
    BOOST_TEST(idle.is_lost());
}

BOOST_AUTO_TEST_CASE(who_follows_the_log_finds_what_was_written_last_in_memory_as_it_stands_in_the_ring) {
    GroupLogFixture fixture(16_MiB);
    fixture.commit(100);
    GroupLog::Hold hold(*fixture.log);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::vector<std::uint64_t> begins;
    for (int i = 0; i < 100; ++i) {
        begins.push_back(fixture.log->durable_point().next.position);
        fixture.commit(random() % 5000);
    }
    const auto in_ring = [&](std::uint64_t from) {
        std::vector<Record> found;
        Ring::scan(fixture.log->file(), fixture.log->identity(), hold.begin().next, [&](const Record& record) {
            if (record.position >= from) found.push_back(record);
            return true;
        });
        return found;
    };
    for (const std::size_t from : {std::size_t{0}, std::size_t{1}, std::size_t{57}, begins.size() - 1}) {
        const auto recent = hold.recent(begins[from]);
        const std::vector<Record> written = in_ring(begins[from]);
        BOOST_TEST_REQUIRE(recent.size() == written.size());
        for (std::size_t i = 0; i < written.size(); ++i) {
            BOOST_TEST(recent[i]->kind == written[i].kind);
            BOOST_TEST(recent[i]->number == written[i].number);
            BOOST_TEST(recent[i]->position == written[i].position);
            BOOST_TEST((recent[i]->payload == written[i].payload));
        }
    }
    BOOST_TEST(hold.recent(begins[1] + 1).empty());
    BOOST_TEST(hold.recent(fixture.log->durable_point().next.position).empty());
    // A megabyte of them, and none beside a larger one.
    for (int i = 0; i < 300; ++i) fixture.commit(5000);
    BOOST_TEST(hold.recent(begins.back()).empty());
    const std::uint64_t late = fixture.log->durable_point().next.position;
    fixture.commit(5000);
    BOOST_TEST(hold.recent(late).size() == 1U);
    fixture.commit(1'200'000);
    BOOST_TEST(hold.recent(late).empty());
    // Kept for who holds.
    { const GroupLog::Hold gone(*fixture.log); }
    const std::uint64_t last = fixture.log->durable_point().next.position;
    fixture.commit(10);
    BOOST_TEST(hold.recent(last).size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_hold_from_an_earlier_point_is_lost_if_that_room_was_given_back_or_the_ring_is_another_one) {
    GroupLogFixture fixture(64_KiB);
    const Uuid ring = fixture.log->identity().ring;
    fixture.commit(100);
    const GroupLog::Point point = fixture.log->durable_point();
    fixture.commit(100);
    {
        const GroupLog::Hold hold(*fixture.log, ring, point);
        BOOST_TEST(!hold.is_lost());
        BOOST_TEST((hold.begin().serial == point.serial));
        BOOST_TEST(hold.begin().next.position == point.next.position);
        BOOST_TEST((hold.file().get() == &fixture.log->file()));
        fixture.groups(point.next, point.serial.value + 1);
        const GroupLog::Hold another(*fixture.log, random_uuid(), point);
        BOOST_TEST(another.is_lost());
    }
    fixture.log->release(fixture.log->durable_point().next.position);
    const GroupLog::Hold late(*fixture.log, ring, point);
    BOOST_TEST(late.is_lost());
}

BOOST_AUTO_TEST_CASE(a_hold_outlives_the_log_and_keeps_no_file_open) {
    GroupLogFixture fixture(64_KiB);
    fixture.commit(100);
    GroupLog::Hold hold(*fixture.log);
    fixture.log.reset();
    BOOST_TEST(hold.is_lost());
    BOOST_TEST(fixture.file.use_count() == 1);
    hold.move_on(0);
}

BOOST_AUTO_TEST_CASE(who_follows_the_log_wakes_when_something_is_durable_or_he_shall_stop, *label("threads")) {
    GroupLogFixture fixture(1_MiB);
    std::stop_source stop;
    std::atomic<std::uint64_t> seen{0};
    std::thread follower([&] {
        while (!stop.stop_requested()) {
            fixture.log->wait_beyond({seen}, stop.get_token());
            seen = fixture.log->durable().value;
        }
    });
    for (std::uint64_t serial = 1; serial <= 20; ++serial) {
        fixture.commit(100);
        while (seen < serial) std::this_thread::yield();
    }
    fixture.log->skip_to({25});
    while (seen < 25) std::this_thread::yield();
    stop.request_stop();
    follower.join();
    fixture.log->wait_beyond({100}, stop.get_token());  // at once
}

BOOST_AUTO_TEST_CASE(after_the_end_nothing_can_be_appended_but_waited_for) {
    GroupLogFixture fixture;
    fixture.append(100);
    fixture.log->stop();
    BOOST_TEST(throws(errc::closed, [&] { fixture.append(100); }));
    fixture.log->wait_durable({1});
    BOOST_TEST(fixture.groups() == Groups{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_failed_write_poisons) {
    GroupLogFixture fixture;
    int failures = 0;
    fixture.log->on_failure = [&] {
        ++failures;
        BOOST_TEST(!fixture.log->poisoned());
    };
    fixture.commit(100);
    fixture.append(100);
    fixture.file->fail();
    BOOST_TEST(throws(errc::poisoned, [&] { fixture.log->wait_durable({2}); }));
    BOOST_TEST(failures == 1);
    BOOST_TEST(fixture.log->poisoned());
    BOOST_TEST((fixture.log->durable() == Serial{1}));
    BOOST_TEST((fixture.log->durable_point().serial == Serial{1}));
    BOOST_TEST(throws(errc::poisoned, [&] { fixture.append(100); }));
    BOOST_TEST(throws(errc::poisoned, [&] { fixture.log->wait_durable({2}); }));
    fixture.log->wait_durable({1});  // it is
    BOOST_TEST(failures == 1);
}

BOOST_AUTO_TEST_CASE(hostile_groups_are_refused_or_stay_inside) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Record sound{record_transactions, 1, 1, 0, {}};
    const auto put = [&](std::uint32_t number) {
        for (unsigned i = 0; i < 4; ++i) sound.payload.push_back(static_cast<std::byte>(number >> (8 * i)));
    };
    put(3), put(0);
    for (const std::uint32_t size : {5U, 0U, 16U}) {
        put(size), put(0);
        sound.payload.resize(sound.payload.size() + round_up(size, 8));
    }
    std::size_t records = 0;
    BOOST_TEST(for_each_in_group(sound, [&](Serial serial, std::span<const std::byte>) { records += serial.value; }));
    BOOST_TEST(records == 1U + 2U + 3U);
    for (std::uint32_t kind = 0; kind < 3; ++kind) {
        Record other = sound;
        other.kind = kind;
        BOOST_TEST(count_in_group(other) == -1);
    }
    std::size_t refused = 0;
    for (int round = 0; round < 20'000; ++round) {
        Record hostile = sound;
        for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
            switch (random() % 3) {
                case 0: hostile.payload[random() % sound.payload.size()] = static_cast<std::byte>(random()); break;
                case 1: hostile.payload[random() % sound.payload.size() / 4 * 4] ^= static_cast<std::byte>(1U << random() % 8); break;
                default: hostile.payload.resize(sound.payload.size() - random() % 3);
            }
            hostile.payload.resize(sound.payload.size());
        }
        hostile.payload.resize(sound.payload.size() - (random() % 8 == 0 ? random() % sound.payload.size() : 0));
        hostile.payload.shrink_to_fit();
        std::uint64_t sum = 0;
        if (!for_each_in_group(hostile, [&](Serial, std::span<const std::byte> bytes) {
                for (const std::byte byte : bytes) sum += static_cast<std::uint64_t>(byte);
            })) {
            ++refused;
        }
        BOOST_REQUIRE_LE(sum, 255 * hostile.payload.size());
    }
    BOOST_TEST(refused > 5'000U);
}

BOOST_AUTO_TEST_CASE(serials_that_became_durable_elsewhere_are_skipped) {
    GroupLogFixture fixture;
    fixture.commit(100);
    fixture.log->skip_to({4});
    fixture.sizes.resize(4);
    BOOST_TEST((fixture.log->durable() == Serial{4}));
    const auto point = fixture.log->durable_point();
    BOOST_TEST((point.serial == Serial{4}));
    fixture.log->wait_durable({4});
    fixture.commit(100);
    BOOST_TEST((fixture.log->durable() == Serial{5}));
    BOOST_TEST(fixture.groups(point.next, 5) == Groups{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_commit_allocates_nothing) {
    for (const bool flusher : {false, true}) {
        GroupLogFixture fixture(1_MiB, {.flusher = flusher});
        const std::vector<std::byte> bytes(150);
        const std::span<const std::byte> piece(bytes);
        std::uint64_t before = 0;
        for (std::uint64_t serial = 1; serial <= 1'000; ++serial) {
            if (serial == 100) before = allocations;
            fixture.log->append({serial}, {&piece, 1});
            if (serial % 3 == 0) fixture.log->wait_durable({serial});
            if (serial % 100 == 0) fixture.log->release(fixture.log->durable_point().next.position);
        }
        BOOST_TEST(before > 0U);
        BOOST_TEST(allocations == before);
    }
}

// ---- several threads

BOOST_AUTO_TEST_CASE(what_comes_during_a_write_shares_the_next_one, *label("threads")) {
    GroupLogFixture fixture;
    fixture.file->hold();
    std::vector<std::thread> threads;
    threads.emplace_back([&] { fixture.commit(100); });
    fixture.file->wait_for_a_write();
    for (int i = 0; i < 6; ++i) threads.emplace_back([&] { fixture.commit(200); });
    while (fixture.log->appended() != Serial{7}) std::this_thread::yield();
    BOOST_TEST((fixture.log->durable() == Serial{0}));
    fixture.file->let_go();
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST((fixture.log->durable() == Serial{7}));
    BOOST_TEST(fixture.groups() == (Groups{1, 6}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_failed_write_is_durable_to_nobody, *label("threads")) {
    GroupLogFixture fixture;
    std::atomic<bool> told{false};
    fixture.log->on_failure = [&] { told = true; };
    fixture.file->hold();
    fixture.file->fail();
    std::vector<std::thread> threads;
    std::atomic<int> poisoned{0};
    std::atomic<int> told_before{0};
    const auto commit = [&] {
        const Serial serial = fixture.append(100);
        if (throws(errc::poisoned, [&] { fixture.log->wait_durable(serial); })) ++poisoned;
        if (told) ++told_before;
    };
    // Three in the first group, three in the one that waits behind it.
    for (int i = 0; i < 3; ++i) fixture.append(100);
    for (std::uint64_t serial = 1; serial <= 3; ++serial) {
        threads.emplace_back([&, serial] {
            if (throws(errc::poisoned, [&] { fixture.log->wait_durable({serial}); })) ++poisoned;
            if (told) ++told_before;
        });
    }
    fixture.file->wait_for_a_write();
    for (int i = 0; i < 3; ++i) threads.emplace_back(commit);
    while (fixture.log->appended() != Serial{6}) std::this_thread::yield();
    fixture.file->let_go();
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(poisoned == 6);
    BOOST_TEST(told_before == 6);
    BOOST_TEST((fixture.log->durable() == Serial{0}));
    BOOST_TEST(fixture.groups().empty());
    BOOST_TEST(fixture.file->writes() == 1U);
}

BOOST_AUTO_TEST_CASE(who_finds_the_ring_full_waits_for_a_release, *label("threads")) {
    GroupLogFixture fixture(32_KiB);
    std::atomic<int> pressure{0};
    fixture.log->on_pressure = [&] { ++pressure; };
    for (int i = 0; i < 8; ++i) fixture.commit(100);
    const int before = pressure;
    std::atomic<bool> released{false};
    std::atomic<bool> returned_early{false};
    std::thread thread([&] {
        fixture.append(100);
        returned_early = !released;
    });
    while (pressure == before) std::this_thread::yield();
    BOOST_TEST((fixture.log->appended() == Serial{8}));
    released = true;
    fixture.log->release(4_KiB);
    thread.join();
    BOOST_TEST(!returned_early);
    fixture.log->wait_durable({9});
}

BOOST_AUTO_TEST_CASE(who_reads_beside_the_writer_has_read_the_right_thing_or_knows_that_it_has_not, *label("threads")) {
    GroupLogFixture fixture(64_KiB);
    constexpr std::size_t size = 1000;
    fixture.sizes.reserve(100'000);
    std::atomic<bool> done = false;
    std::atomic<std::uint64_t> whole = 0;
    std::thread reader([&] {
        while (!done) {
            const GroupLog::Hold hold(*fixture.log);
            std::uint64_t wrong = 0;
            std::uint64_t seen = hold.begin().serial.value;
            while (!done && fixture.log->durable().value == seen) std::this_thread::yield();  // what comes from here on is held
            const std::uint64_t durable = fixture.log->durable().value;
            if (durable == seen) continue;
            Ring::scan(*fixture.file, fixture.identity, hold.begin().next, [&](const Record& group) {
                for_each_in_group(group, [&](Serial at, std::span<const std::byte> bytes) {
                    const auto expected = record_of(++seen, size);
                    wrong += at.value == seen && std::ranges::equal(bytes, expected) ? 0 : 1;
                });
                return seen < durable;
            });
            if (hold.is_lost()) continue;
            require(wrong == 0 && seen >= durable, "what was read and not lost is whole");
            ++whole;
        }
    });
    for (int i = 0; i < 2000; ++i) {
        fixture.commit(size);
        fixture.log->release(fixture.log->durable_point().next.position);
    }
    while (whole == 0) {  // slowly: the ring takes dozens of them, and the reader one
        fixture.commit(size);
        fixture.log->release(fixture.log->durable_point().next.position);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    done = true;
    reader.join();
}

BOOST_AUTO_TEST_CASE(who_waits_for_room_is_sent_away_at_the_end, *label("threads")) {
    GroupLogFixture fixture(32_KiB);
    std::atomic<int> pressure{0};
    fixture.log->on_pressure = [&] { ++pressure; };
    for (int i = 0; i < 8; ++i) fixture.commit(100);
    const int before = pressure;
    std::atomic<bool> sent_away{false};
    std::thread thread([&] { sent_away = throws(errc::closed, [&] { fixture.append(100); }); });
    while (pressure == before) std::this_thread::yield();
    fixture.log->stop();
    thread.join();
    BOOST_TEST(sent_away);
}

BOOST_AUTO_TEST_CASE(the_flusher_writes_what_nobody_waits_for, *label("threads")) {
    GroupLogFixture fixture(64_KiB, {.window = std::chrono::microseconds(500), .flusher = true});
    for (int i = 0; i < 20; ++i) {
        const Serial serial = fixture.append(100);
        if (i % 4 == 0)
            while (fixture.log->durable() < serial) std::this_thread::yield();
    }
    fixture.log->wait_durable(fixture.log->appended());
    fixture.groups();
}

BOOST_AUTO_TEST_CASE(a_commit_does_not_return_while_an_older_one_is_beyond_its_window, *label("threads")) {
    using namespace std::chrono_literals;
    GroupLogFixture fixture(64_KiB, {.window = 1ms, .flusher = true});
    fixture.file->hold();
    fixture.append(100);
    fixture.file->wait_for_a_write();
    std::this_thread::sleep_for(2ms);  // now it is older than the window
    std::atomic<bool> let_go{false};
    std::atomic<bool> returned_early{false};
    std::thread thread([&] {
        fixture.append(100);
        returned_early = !let_go;
    });
    std::this_thread::sleep_for(20ms);  // time for a wrong one to return
    BOOST_TEST((fixture.log->appended() == Serial{1}));
    let_go = true;
    fixture.file->let_go();
    thread.join();
    BOOST_TEST(!returned_early);
}

BOOST_AUTO_TEST_CASE(however_slow_the_disk_is_what_can_be_lost_was_committed_within_one_window, *label("threads")) {
    using namespace std::chrono_literals;
    using Clock = std::chrono::steady_clock;
    constexpr auto window = 2ms;
    GroupLogFixture fixture(1_MiB, {.window = window, .flusher = true});
    fixture.file->hold();
    fixture.append(8);
    const Clock::time_point oldest = Clock::now();  // it is older than that
    std::atomic<bool> let_go{false};
    unsigned beyond = 0;
    std::thread thread([&] {
        while (!let_go && Clock::now() < oldest + 50 * window) {
            const Clock::time_point begin = Clock::now();
            fixture.append(8);
            if (begin >= oldest + window && !let_go) ++beyond;
            std::this_thread::sleep_for(20us);
        }
    });
    fixture.file->wait_for_a_write();
    std::this_thread::sleep_for(10 * window);  // time for wrong ones to return
    let_go = true;
    fixture.file->let_go();
    thread.join();
    BOOST_TEST(beyond < 16U);  // where the system's tick comes late, each 16th record asks the exact clock
    fixture.log->wait_durable(fixture.log->appended());
    fixture.groups();
}

BOOST_AUTO_TEST_CASE(not_more_bytes_than_the_window_holds_can_be_lost, *label("threads")) {
    constexpr std::size_t size = 100;
    constexpr ByteCount window = 8_KiB;
    GroupLogFixture fixture(1_MiB, {.window = std::chrono::hours(1), .window_bytes = window, .flusher = true});
    fixture.file->hold();
    std::atomic<bool> too_much{false};
    std::thread thread([&] {
        for (int i = 0; i < 1'000; ++i) {
            const Serial serial = fixture.append(size);
            // Durable only grows: what is counted here is at least what could have been lost when `append` returned.
            if ((serial.value - fixture.log->durable().value) * size > window) too_much = true;
        }
    });
    fixture.file->wait_for_a_write();
    fixture.file->let_go();
    thread.join();
    BOOST_TEST(!too_much);
    fixture.log->wait_durable(fixture.log->appended());
    fixture.groups();
}

BOOST_AUTO_TEST_CASE(a_failed_write_of_the_flusher_poisons_who_comes_next, *label("threads")) {
    GroupLogFixture fixture(64_KiB, {.window = std::chrono::microseconds(100), .flusher = true});
    fixture.file->fail();
    fixture.append(100);
    while (!fixture.log->poisoned()) std::this_thread::yield();
    BOOST_TEST(throws(errc::poisoned, [&] { fixture.append(100); }));
    BOOST_TEST((fixture.log->durable() == Serial{0}));
}

/// Threads commit, and one gives room back when it is asked to.
void commit_at_once(const GroupLog::Options& options, bool wait_always) {
    GroupLogFixture fixture(128_KiB, options);
    std::mutex mutex;
    std::condition_variable called;
    bool pressed = false;
    bool over = false;
    fixture.log->on_pressure = [&] {
        const std::lock_guard lock(mutex);
        pressed = true;
        called.notify_one();
    };
    RingStart start = fixture.start;
    std::uint64_t first = 1;
    std::thread releaser([&] {
        for (std::unique_lock lock(mutex);;) {
            called.wait(lock, [&] { return pressed || over; });
            if (over) return;
            pressed = false;
            const auto point = fixture.log->durable_point();
            start = point.next;
            first = point.serial.value + 1;
            lock.unlock();
            fixture.log->release(point.next.position);
            lock.lock();
        }
    });
    const std::uint64_t seed = taiyen::test::seed_of_run();
    at_once(4, [&](unsigned thread) {
        std::mt19937_64 random(seed + thread);
        for (int i = 0; i < 300; ++i) {
            const Serial serial = fixture.append(random() % 5 == 0 ? random() % 9'000 : random() % 500);
            if (!wait_always && random() % 4 != 0) continue;
            fixture.log->wait_durable(serial);
            require(fixture.log->durable() >= serial, "who waited has a durable record");
        }
    });
    fixture.log->wait_durable(fixture.log->appended());
    {
        const std::lock_guard lock(mutex);
        over = true;
        called.notify_one();
    }
    releaser.join();
    BOOST_TEST((fixture.log->durable() == Serial{1'200}));
    fixture.groups(start, first);
}

BOOST_AUTO_TEST_CASE(threads_that_commit_at_once_find_all_their_records, *label("threads")) {
    commit_at_once({.group_bytes_max = 8_KiB}, true);
    commit_at_once({.group_bytes_max = 8_KiB}, false);
}

BOOST_AUTO_TEST_CASE(threads_that_commit_at_once_beside_a_flusher_find_all_their_records, *label("threads")) {
    commit_at_once({.window = std::chrono::microseconds(200), .window_bytes = 16_KiB, .flusher = true}, true);
    commit_at_once({.window = std::chrono::microseconds(200), .window_bytes = 16_KiB, .flusher = true}, false);
}

BOOST_AUTO_TEST_SUITE_END()
