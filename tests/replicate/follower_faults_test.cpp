// Followers and what goes wrong beside them: targets that are away or lose frames, damage, readers, crashes, former owners.

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <taiyen/taiyen.hpp>

#include "replicate/followed_heap.hpp"

using namespace taiyen;
using namespace taiyen::replicate::test;
using taiyen::test::throws;
using namespace std::chrono_literals;
using replicate::FrameHead;
using replicate::FrameKind;

namespace {

FrameHead head_of(const std::vector<std::byte>& frame) {
    FrameHead head;
    std::memcpy(&head, frame.data(), sizeof head);
    return head;
}

/// A frame behind the newest one, with its body and what `edit` makes of its head.
template <class F>
void append_like_the_newest(PretendedTarget& target, F&& edit) {
    const replicate::Frame newest(target, target.range().last);
    FrameHead head = newest.head();
    ++head.number;
    head.previous = newest.head().checksum;
    edit(head);
    const std::array pieces{newest.body()};
    target.put(head.number, replicate::encode(head, pieces));
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(replicate_follower_faults, FollowedFixture)

BOOST_AUTO_TEST_CASE(a_target_that_is_away_while_a_base_is_followed_is_asked_again) {
    const Quiet quiet_reports;
    put(1, "one");
    follow_hooked();
    settle();
    follower->stop();
    follower.reset();
    for (unsigned fails_at = 1; fails_at < 12; ++fails_at) {
        put(2, std::string(1'500'000, static_cast<char>('a' + fails_at)));  // larger than the log: it comes as pages
        replicate_all();
        unsigned reads = 0;
        hooked->on_read = [&](std::uint64_t, std::vector<std::byte>& frame) {
            if (head_of(frame).kind == FrameKind::pages && ++reads == fails_at) throw Error(errc::io_error, "hooked", "it is away for a moment");
        };
        follow_hooked();
        BOOST_TEST(follower->wait_for(heap->last_durable(), 60s));
        BOOST_TEST(get(follower->heap(), 2).front() == static_cast<char>('a' + fails_at));
        follower.reset();
        hooked->on_read = nullptr;
    }
}

BOOST_AUTO_TEST_CASE(a_frame_that_is_another_one_at_the_second_reading_is_not_taken) {
    const Quiet quiet_reports;
    put(1, "one");
    follow_hooked();
    settle();
    follower.reset();
    put(2, std::string(1'500'000, 'x'));
    replicate_all();
    std::map<std::uint64_t, int> reads;
    hooked->on_read = [&](std::uint64_t number, std::vector<std::byte>& frame) {
        FrameHead head = head_of(frame);
        if (head.kind != FrameKind::pages || ++reads[number] != 3) return;
        head.kind = FrameKind::epoch;
        const std::array<std::byte, 72> body{};
        const std::array pieces{std::span<const std::byte>(body)};
        frame = replicate::encode(head, pieces);
    };
    follow_hooked();
    BOOST_TEST(follower->wait_for(heap->last_durable(), 60s));
    follower.reset();
    hooked->on_read = nullptr;
}

BOOST_AUTO_TEST_CASE(who_reads_can_stop_and_is_told_that_he_can_not_promote) {
    put(1, "one");
    follow();
    settle();
    {
        const ReadLock lock(follower->heap());
        put(2, "two");
        replicate_all();
        std::this_thread::sleep_for(20ms);  // the thread waits for this reader
        BOOST_TEST(throws(errc::scope_open, [&] { (void)std::move(*follower).promote(options); }));
        follower->stop();
    }
    BOOST_TEST((follower->status().state == FollowerState::stopped));
    BOOST_TEST(get(std::move(*follower).promote(options), 2) == "two");
}

BOOST_AUTO_TEST_CASE(a_target_that_has_lost_its_end_is_told_to_who_promotes) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    settle();
    reopen();
    settle();
    replication.reset();
    const auto frames = target->frames();
    for (const std::uint64_t from : {target->range().last, std::uint64_t{1}}) {
        target->lose_from(from);
        BOOST_TEST(throws(errc::diverged, [&] { (void)std::move(*follower).promote(options); }));
    }
    for (const auto& [number, frame] : frames) target->put(number, frame);
    TransactionalHeap promoted = std::move(*follower).promote(options);
    BOOST_TEST(get(promoted, 1) == "one");
}

BOOST_AUTO_TEST_CASE(a_frame_that_speaks_of_frames_behind_it_leads_nowhere) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    settle();
    replication.reset();
    follower.reset();
    append_like_the_newest(*target, [](FrameHead& head) { head.newest_base = std::uint64_t{1} << 61U; });
    target->trim(target->range().last);
    follower.emplace(target, follower_path, how());
    BOOST_TEST(!follower->wait_for(Serial{1000}, 20ms));
    wait_until_away();
    follower->stop();
    BOOST_TEST(throws(errc::corrupt, [&] { (void)taiyen::restore(*target, directory / "restored.tyn", {.serial = Serial{1}}); }));
}

BOOST_AUTO_TEST_CASE(a_former_owner_learns_it_when_its_frames_are_trimmed_or_damaged) {
    for (const bool is_trimmed : {true, false}) {
        const Quiet quiet_reports;
        put(1, "one");
        follow();
        settle();
        follower->stop();
        const std::uint64_t before = target->range().last;
        if (is_trimmed) {
            replication.reset();
            heap->close();
        }
        TransactionalHeap promoted = std::move(*follower).promote(options);
        follower.reset();
        if (is_trimmed) {
            Replication goes_on(promoted, target, quick());
            put(promoted, 2, "goes on");
            goes_on.make_base();
            target->trim(replicate::Frame(*target, replica_info(*target)->bases.front().frame).head().begin);
        } else {
            std::vector<std::byte> frame = target->read(before);
            frame.back() ^= std::byte{1};
            target->put(before, frame);
        }
        const auto image = directory / (std::to_string(is_trimmed) + " former.tyn");
        if (is_trimmed) {  // it comes back only now
            heap.emplace(open_only, path, options);
            put(3, "lost");
            BOOST_TEST(throws(errc::fenced, [&] { Replication(*heap, target); }));
        } else {
            const Serial lost = put(3, "lost");
            BOOST_TEST(throws(errc::fenced, [&] { (void)replication->wait_replicated(lost, 60s); }));
            replication.reset();
        }
        BOOST_TEST(throws(errc::fenced, [&] { put(4, "refused"); }));
        heap.reset();
        BOOST_TEST(throws(errc::fenced, [&] { TransactionalHeap(open_only, path, options); }));
        promoted.close();
        // Another life.
        path = image;
        follower_path = directory / (std::to_string(is_trimmed) + " next.tyn");
        target = std::make_shared<PretendedTarget>();
        heap.emplace(create_only, path, options);
        replication.emplace(*heap, target, quick());
    }
}

BOOST_AUTO_TEST_CASE(what_was_not_up_to_date_since_it_was_opened_is_not_fresh) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    settle();
    follower.reset();
    put(1, "two");
    replicate_all();
    hooked->away = true;
    follower.emplace(hooked, follower_path, how());
    std::this_thread::sleep_for(5ms);
    BOOST_TEST(get(follower->heap(), 1) == "one");
    BOOST_TEST(throws(errc::stale, [&] { follower->require_fresh(std::chrono::hours(1)); }));
    BOOST_TEST((follower->status().age == std::chrono::milliseconds::max()));
    hooked->away = false;
    BOOST_TEST(follower->wait_for(heap->last_durable(), 60s));
    while (follower->status().age > 1h) std::this_thread::sleep_for(1ms);
    follower->require_fresh(1h);
}

BOOST_AUTO_TEST_CASE(as_many_frames_as_were_lost_are_seen_before_the_place_is_taken) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    for (int i = 0; i < 40; ++i) {
        put(2, std::to_string(i));
        replicate_all();
    }
    settle();
    replication.reset();
    const std::uint64_t end = target->range().last;
    follower->stop();
    put(3, "acknowledged");
    const Serial wanted = heap->last_durable();
    target->lose_from(end - 12);
    while (target->range().last < end) {
        replication.emplace(*heap, target, quick());
        BOOST_REQUIRE(replication->wait_replicated(wanted, 60s));
        if (target->range().last < end) replication->make_base();
        replication.reset();
    }
    TransactionalHeap promoted = std::move(*follower).promote(options);
    BOOST_TEST(get(promoted, 3) == "acknowledged");
    const std::uint64_t last = target->range().last;
    replicate::Frame(*target, last).require_follows(replicate::Frame(*target, last - 1).head());
}

BOOST_AUTO_TEST_CASE(a_promotion_that_can_not_open_the_heap_says_that_it_has_the_place) {
    put(1, "one");
    follow();
    settle();
    replication.reset();
    PersistentOptions wrong = options;
    wrong.log_file = directory / "nowhere" / "heap.log";
    try {
        (void)std::move(*follower).promote(wrong);
        BOOST_ERROR("it opens");
    } catch (const Error& error) {
        BOOST_TEST(std::string(error.what()).find("has the place already") != std::string::npos, error.what());
    }
    follower.reset();
    TransactionalHeap promoted(open_only, follower_path, options);
    BOOST_TEST(put(promoted, 2, "two").value == 2U);
}

BOOST_AUTO_TEST_CASE(a_crash_takes_nothing_back_that_came_without_a_transaction) {
    const Quiet quiet_reports;
    put(1, "one");
    put(2, "two");
    follow();
    settle();
    for (const char* const text : {"A", "B"}) {  // the serial stays
        replication.reset();
        heap.reset();
        {
            SnapshotHeap plain(open_only, path, options);
            plain.find<Texts>("texts")->set(plain, 1, text);
            plain.snapshot();
        }
        heap.emplace(open_only, path, options);
        replication.emplace(*heap, target, quick());
        settle();
    }
    BOOST_TEST(get(follower->heap(), 1) == "B");
    const auto copy = directory / "crashed.tyn";
    for (const char* const suffix : {"", ".log"}) std::filesystem::copy_file(follower_path.string() + suffix, copy.string() + suffix);
    follower.reset();
    // Each step of the one that comes back shows no older state.
    hooked->away = true;
    const Follower back(hooked, copy, how());
    hooked->on_read = [&](std::uint64_t, std::vector<std::byte>&) { BOOST_CHECK(back.applied().value == 2U); };
    std::atomic<bool> is_older{false};
    hooked->away = false;
    for (int look = 0; look < 50; ++look) {
        if (get(back.heap(), 1) != "B") is_older = true;
        std::this_thread::sleep_for(1ms);
    }
    BOOST_TEST(!is_older);
}

BOOST_AUTO_TEST_CASE(a_base_leads_past_a_damaged_frame) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    settle();
    follower.reset();
    put(2, "two");
    replicate_all();
    const std::uint64_t last = target->range().last;
    std::vector<std::byte> frame = target->read(last);
    frame.back() ^= std::byte{1};
    target->put(last, frame);
    put(3, "three");
    replicate_all();
    follower.emplace(target, follower_path, how());
    BOOST_TEST(!follower->wait_for(heap->last_durable(), 20ms));
    replication->make_base();
    put(4, "four");
    BOOST_TEST(difference() == -1);
    BOOST_TEST(get(follower->heap(), 4) == "four");
}

BOOST_AUTO_TEST_CASE(a_frame_that_continues_nothing_is_not_read_again_and_again) {
    const Quiet quiet_reports;
    put(1, "one");
    replication->make_base();
    follow_hooked();
    settle();
    follower.reset();
    replication.reset();
    append_like_the_newest(*target, [](FrameHead& head) {
        head.kind = FrameKind::epoch;
        head.previous = 12345;
    });
    std::atomic<unsigned> reads{0};
    hooked->on_read = [&](std::uint64_t, std::vector<std::byte>&) { ++reads; };
    FollowerOptions patient = how();
    patient.retry = 10s;
    follower.emplace(hooked, follower_path, patient);
    std::this_thread::sleep_for(100ms);
    wait_until_away();
    follower.reset();
    BOOST_TEST(reads < 100U);
    hooked->on_read = nullptr;
}

BOOST_AUTO_TEST_CASE(of_two_that_promote_at_once_one_commits) {
    for (int round = 0; round < 8; ++round) {
        const Quiet quiet_reports;
        put(1, "one");
        follow();
        settle();
        Follower second(target, directory / (std::to_string(round) + " second.tyn"), how());
        replication.reset();
        heap.reset();
        std::array<std::optional<TransactionalHeap>, 2> promoted;
        std::array<errc, 2> refusals{};
        const auto promote = [&](Follower& one, std::size_t which) {
            try {
                promoted[which].emplace(std::move(one).promote(options));
            } catch (const Error& error) {
                refusals[which] = static_cast<errc>(error.code().value());
            }
        };
        std::thread other([&] { promote(second, 1); });
        promote(*follower, 0);
        other.join();
        // Who comes later on purpose takes over from the one before; at the same moment the second one is refused.
        BOOST_TEST((promoted[0] || promoted[1]));
        for (std::size_t which = 0; which < 2; ++which)
            if (!promoted[which]) BOOST_TEST((refusals[which] == errc::fenced));
        unsigned owners = 0;
        for (auto& one : promoted) {
            if (!one) continue;
            try {
                Replication onward(*one, target, quick());
                ++owners;
            } catch (const Error& error) {
                BOOST_TEST((error.code() == errc::fenced));
                BOOST_TEST(throws(errc::fenced, [&] { put(*one, 2, "refused"); }));
            }
        }
        BOOST_TEST(owners == 1U);
        for (auto& one : promoted) one.reset();
        follower.reset();
        path = directory / (std::to_string(round) + " heap.tyn");
        follower_path = directory / (std::to_string(round) + " follower.tyn");
        target = std::make_shared<PretendedTarget>();
        heap.emplace(create_only, path, options);
        replication.emplace(*heap, target, quick());
    }
}

BOOST_AUTO_TEST_CASE(a_call_from_before_the_heap_was_attached_comes_as_pages) {
    using Numbers = std::array<std::int32_t, 5000>;
    static const auto add = [](ProcedureHeap& of, std::int32_t summand) {
        for (std::int32_t& value : *of.find<Numbers>("numbers")) value += summand;
    };
    register_procedure("follower faults add", add, [](ProcedureHeap& of, std::int32_t summand) { add(of, -summand); });
    {
        Transaction transaction(*heap);
        heap->construct<Numbers>("numbers").fill(0);
        transaction.commit();
    }
    follow();
    settle();
    for (std::int32_t i = 1; i < 12; ++i) {
        reopen();
        replicate_all();
        replication.reset();
        heap.reset();
        heap.emplace(open_only, path, options);
        {
            Transaction transaction(*heap);
            transaction.call("follower faults add", std::int32_t{1});
            transaction.commit();
        }
        replication.emplace(*heap, target, quick());
        BOOST_REQUIRE(follower->wait_for(heap->last_durable(), 60s));
        const ReadLock lock(follower->heap());
        BOOST_REQUIRE(follower->heap().find<Numbers>("numbers")->back() == i);
    }
}

BOOST_AUTO_TEST_SUITE_END()
