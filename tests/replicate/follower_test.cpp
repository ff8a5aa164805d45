// Followers: what a replicated heap commits is shown elsewhere, byte for byte, and one of them takes its place.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <taiyen/taiyen.hpp>

#include "base/planted.hpp"
#include "replicate/followed_heap.hpp"
#include "seed.hpp"

using namespace taiyen;
using namespace taiyen::replicate::test;
using taiyen::test::throws;

BOOST_FIXTURE_TEST_SUITE(replicate_follower, FollowedFixture)

BOOST_AUTO_TEST_CASE(what_is_committed_is_shown) {
    put(1, "before");
    follow();
    BOOST_TEST(get(follower->heap(), 1) == "before");
    const Serial serial = put(2, "behind");
    BOOST_TEST(follower->wait_for(serial, std::chrono::seconds(60)));
    BOOST_TEST(get(follower->heap(), 2) == "behind");
    BOOST_TEST(difference() == -1);
    BOOST_TEST(follower->heap().verify().findings.empty());
    const FollowerStatus status = follower->status();
    BOOST_TEST((status.state == FollowerState::following));
    BOOST_TEST(status.applied.value == serial.value);
    BOOST_TEST(status.newest.value == serial.value);
    BOOST_TEST(status.target == "pretended");
    BOOST_TEST(status.last_error == "");
    BOOST_TEST(!follower->wait_for({serial.value + 1}, std::chrono::milliseconds(5)));
}

BOOST_AUTO_TEST_CASE(a_heap_with_raw_pointers_is_shown_at_its_address) {
    ScratchDirectory elsewhere;
    PersistentOptions raw = options;
    raw.position_independent = false;
    const auto backup = std::make_shared<PretendedTarget>();
    {
        TransactionalHeap primary(create_only, elsewhere / "heap.tyn", raw);
        Replication replicated(primary, backup, quick());
        Transaction transaction(primary);
        primary.construct<Map>("map").emplace(7, "seven");
        const Serial serial = transaction.commit();
        BOOST_REQUIRE(replicated.wait_replicated(serial, std::chrono::seconds(60)));
        BOOST_TEST(throws(errc::address_in_use, [&] { Follower(backup, elsewhere / "follower.tyn", how()); }));
        primary.close();
    }
    const Follower shown(backup, elsewhere / "follower.tyn", how());
    const ReadLock lock(shown.heap());
    BOOST_TEST(std::string(shown.heap().find<Map>("map")->at(7)) == "seven");
}

/// A heap of raw pointers, open at its address while `follow` does something with its target, then closed.
template <class F>
void with_raw_heap(const ScratchDirectory& directory, const PersistentOptions& options, F&& follow) {
    const auto target = std::make_shared<PretendedTarget>();
    TransactionalHeap primary(create_only, directory / "heap.tyn", options);
    Replication replicated(primary, target, quick());
    const auto put = [&](std::uint64_t key, const std::string& text) {
        Transaction transaction(primary);
        primary.find_or_construct<Map>("map").insert_or_assign(key, taiyen::string(text.c_str()));
        const Serial serial = transaction.commit();
        BOOST_REQUIRE(replicated.wait_replicated(serial, std::chrono::seconds(60)));
        return serial;
    };
    put(1, "one");
    follow(target, put, [&] {
        replicated.stop();
        primary.close();
    });
}

BOOST_AUTO_TEST_CASE(followers_that_only_store_lie_beside_the_heap) {
    for (const Bug bug : {Bug::none, Bug::elsewhere_kept}) {
        const Planted planted_now(bug);
        BOOST_TEST_CONTEXT(static_cast<int>(bug)) {
            ScratchDirectory elsewhere;
            PersistentOptions raw = options;
            raw.position_independent = false;
            with_raw_heap(elsewhere, raw, [&](const auto& backup, const auto& put, const auto& close_primary) {
                FollowerOptions stores = how();
                stores.heap = raw;
                stores.store_only = true;
                std::optional<Follower> one(std::in_place, backup, elsewhere / "one.tyn", stores);
                std::optional<Follower> other(std::in_place, backup, elsewhere / "other.tyn", stores);
                BOOST_TEST(throws(errc::invalid_argument, [&] { (void)one->heap(); }));
                Serial last;
                for (std::uint64_t key = 2; key < 300; ++key) last = put(key, std::string(200, 'x') + std::to_string(key));
                BOOST_REQUIRE(one->wait_for(last, std::chrono::seconds(60)));
                BOOST_REQUIRE(other->wait_for(last, std::chrono::seconds(60)));
                if (bug == Bug::none) {
                    // Where the heap is open, its address is taken: whoever wants it is told before anything has happened.
                    BOOST_TEST(throws(errc::address_in_use, [&] { (void)std::move(*one).promote(); }));
                    BOOST_TEST((one->status().state == FollowerState::following));
                    last = put(2, "still followed");
                    BOOST_REQUIRE(one->wait_for(last, std::chrono::seconds(60)));
                }
                one.reset();
                close_primary();
                const auto address = read_parameters(elsewhere / "heap.tyn").address;
                BOOST_TEST((read_parameters(elsewhere / "one.tyn").address == address) == (bug == Bug::none));
                if (bug != Bug::none) return;
                {
                    const TransactionalHeap heap(open_read_only, elsewhere / "one.tyn");
                    BOOST_TEST(heap.verify().findings.empty());
                    const Map& map = *heap.find<Map>("map");
                    BOOST_TEST(map.size() == 299U);
                    BOOST_TEST(std::string(map.at(2)) == "still followed");
                    BOOST_TEST(std::string(map.at(299)) == std::string(200, 'x') + "299");
                }
                TransactionalHeap promoted = std::move(*other).promote();
                const Map& map = *promoted.find<Map>("map");
                BOOST_TEST(std::string(map.at(2)) == "still followed");
                BOOST_TEST(std::string(map.at(298)) == std::string(200, 'x') + "298");
            });
        }
    }
}

BOOST_AUTO_TEST_CASE(a_follower_goes_on_where_it_was) {
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    const std::uint64_t read = follower->status().frames;
    follower.reset();
    put(2, "two");
    erase(1);
    follow();
    BOOST_TEST(difference() == -1);
    BOOST_TEST(follower->status().frames > read);
    BOOST_TEST(get(follower->heap(), 2) == "two");
}

BOOST_AUTO_TEST_CASE(frames_that_wait_become_durable_together) {
    put(1, "one");
    follow_hooked();
    const auto wait_for_frames = [&](unsigned count) {
        Serial last;
        for (unsigned i = 0; i < count; ++i) {
            last = put(i % 20, "number " + std::to_string(i));
            BOOST_REQUIRE(replication->wait_replicated(last, std::chrono::seconds(60)));  // each in a frame of its own
        }
        return last;
    };
    hooked->away = true;
    wait_until_away();
    std::atomic<std::uint64_t> newest{0};
    std::atomic<std::uint64_t> bad{0};
    std::atomic<unsigned> looks{0};
    hooked->on_read = [&](std::uint64_t number, std::vector<std::byte>& frame) {
        if (number == newest) looks = hooked->looks.load();
        if (number == bad) frame.back() ^= std::byte{1};
    };
    const Serial last = wait_for_frames(200);
    const std::uint64_t frames = target->range().last;
    newest = frames;
    hooked->looks = 0;
    hooked->away = false;
    BOOST_REQUIRE(follower->wait_for(last, std::chrono::seconds(60)));
    BOOST_TEST(looks > 0U);
    BOOST_TEST(looks < 40U);
    BOOST_TEST(difference() == -1);

    // One of them is damaged for now: those in front of it are shown, those behind it once it is whole.
    hooked->away = true;
    const Serial damaged = wait_for_frames(30);
    bad = frames + 15;
    hooked->away = false;
    BOOST_REQUIRE(follower->wait_for({last.value + 14}, std::chrono::seconds(60)));
    BOOST_TEST(!follower->wait_for({last.value + 15}, std::chrono::milliseconds(50)));
    bad = 0;
    BOOST_REQUIRE(follower->wait_for(damaged, std::chrono::seconds(60)));
    BOOST_TEST(difference() == -1);
    follower.reset();  // it reads through what stands here
}

BOOST_AUTO_TEST_CASE(what_free_pages_hold_counts) {
    // Closing the heap gives free pages back: zeros, and no transaction says so. What is stored there later is logged against them.
    for (const auto& [bug, is_right] : {std::pair{Bug::none, true}, {Bug::follower_passes_bases, false}, {Bug::follower_gives_back, false}}) {
        const Planted planted_now(bug);
        BOOST_TEST_CONTEXT(static_cast<int>(bug)) {
            follower.reset();
            std::filesystem::remove(follower_path);
            std::filesystem::remove(follower_path.string() + ".log");
            const std::string large(900'000, 'x');
            put(1, large);
            follow();
            BOOST_TEST(difference() == -1);
            erase(1);
            bool is_same = difference() == -1;
            if (bug == Bug::follower_gives_back) {
                follower.reset();
                follow();
            } else {
                reopen();
            }
            is_same = is_same && difference() == -1;
            put(2, large);
            is_same = is_same && difference() == -1;
            BOOST_TEST(is_same == is_right);
            erase(2);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_transaction_larger_than_the_log_is_shown) {
    follow();
    put(2, std::string(1'600'000, 'l'));
    put(1, "behind it");
    BOOST_TEST(difference() == -1);
    BOOST_TEST(get(follower->heap(), 2).size() == 1'600'000U);
}

BOOST_AUTO_TEST_CASE(a_follower_whose_log_is_smaller_makes_it_larger) {
    heap->replace_log(std::size_t{4} << 20U);
    replicate_all();
    FollowerOptions small = how();
    small.heap.log_capacity = std::size_t{64} << 10U;
    follower.emplace(target, follower_path, small);
    put(1, std::string(600'000, 'y'));
    put(2, "behind it");
    BOOST_TEST(difference() == -1);
}

BOOST_AUTO_TEST_CASE(a_reader_sees_one_state_as_long_as_it_likes) {
    put(1, "one");
    follow();
    {
        const ReadLock lock(follower->heap());
        const Serial serial = put(1, "two");
        BOOST_TEST(!follower->wait_for(serial, std::chrono::milliseconds(30)));
        BOOST_TEST(follower->heap().find<Texts>("texts")->text(1) == "one");
    }
    BOOST_TEST(difference() == -1);
    BOOST_TEST(get(follower->heap(), 1) == "two");
}

BOOST_AUTO_TEST_CASE(a_follower_is_only_read) {
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    auto& shown = const_cast<TransactionalHeap&>(follower->heap());
    BOOST_TEST(throws(errc::follower, [&] { const Transaction transaction(shown); }));
    follower.reset();
    BOOST_TEST(throws(errc::follower, [&] { TransactionalHeap(open_only, follower_path, options); }));
    BOOST_TEST(throws(errc::follower, [&] { ArchiveHeap(open_only, follower_path); }));
    BOOST_TEST(throws(errc::follower, [&] { set_capacity(follower_path, std::size_t{128} << 20U); }));
    const TransactionalHeap reader(open_read_only, follower_path, options);
    BOOST_TEST(get(reader, 1) == "one");
}

BOOST_AUTO_TEST_CASE(a_file_that_did_not_say_so_would_be_changed) {
    const Planted planted_now(Bug::follower_unmarked);
    put(1, "one");
    replicate_all();
    BOOST_TEST(throws(errc::already_exists, [&] { follow(); }));  // it is a heap like others
    { TransactionalHeap changed(open_only, follower_path, options); }
}

BOOST_AUTO_TEST_CASE(a_heap_that_follows_nobody_is_left_alone) {
    follower_path = directory / "other.tyn";
    { const TransactionalHeap other(create_only, follower_path, options); }
    BOOST_TEST(throws(errc::already_exists, [&] { follow(); }));
    BOOST_TEST(throws(errc::not_found, [&] { Follower(std::make_shared<PretendedTarget>(), directory / "nothing.tyn"); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { Follower(nullptr, directory / "nothing.tyn"); }));
    BOOST_TEST(!std::filesystem::exists(directory / "nothing.tyn"));
}

BOOST_AUTO_TEST_CASE(another_heap_is_not_followed) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    follower.reset();
    const auto elsewhere = std::make_shared<PretendedTarget>();
    TransactionalHeap other(create_only, directory / "other.tyn", options);
    Replication replicated(other, elsewhere, quick());
    put(other, 1, "another one");
    BOOST_REQUIRE(replicated.wait_replicated(other.last_durable(), std::chrono::seconds(60)));
    Follower wrong(elsewhere, follower_path, how());
    BOOST_TEST(throws(errc::mismatch, [&] { (void)wrong.wait_for(Serial{1000}, std::chrono::seconds(60)); }));
    BOOST_TEST((wrong.status().state == FollowerState::failed));
    BOOST_TEST(get(wrong.heap(), 1) == "one");
}

BOOST_AUTO_TEST_CASE(a_base_that_is_older_than_what_is_here_takes_nothing_back) {
    put(1, "before");
    follow();
    BOOST_TEST(difference() == -1);
    // A transaction comes while the base's pages go: it stands before the base's end.
    std::atomic<bool> once{false};
    const std::uint64_t pages = target->range().last + 2;
    Serial serial;
    target->fate = [&](std::uint64_t number) {
        if (number == pages && !once.exchange(true)) serial = put(1, "meanwhile");
        return PretendedTarget::Fate::works;
    };
    replication->make_base();
    target->fate = nullptr;
    const Serial covered = replica_info(*target)->bases.front().serial;
    BOOST_TEST(covered.value < serial.value);
    BOOST_TEST(difference() == -1);
    BOOST_TEST(get(follower->heap(), 1) == "meanwhile");
}

BOOST_AUTO_TEST_CASE(a_target_that_loses_its_newest_frames_is_followed_from_its_next_base) {
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    const std::uint64_t before = target->range().last;
    put(2, "two");
    BOOST_TEST(difference() == -1);
    target->lose_from(before + 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    put(3, "three");
    BOOST_TEST(difference() == -1);
    BOOST_TEST(get(follower->heap(), 3) == "three");
}

BOOST_AUTO_TEST_CASE(a_follower_that_was_away_while_frames_were_trimmed_goes_on_from_a_base) {
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    follower.reset();
    for (std::uint64_t key = 2; key < 10; ++key) {
        put(key, "meanwhile");
        replication->make_base();
    }
    target->trim(replica_info(*target)->bases.front().frame - 3);
    put(10, "behind");
    follow();
    BOOST_TEST(difference() == -1);
}

BOOST_AUTO_TEST_CASE(where_nothing_goes_on_from_is_told) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    put(2, "two");
    BOOST_TEST(difference() == -1);
    follower.reset();
    target->trim(target->range().last + 1);
    target->lose_from(target->range().last);  // all that is left is a frame that continues nothing
    put(3, "three");
    replication.reset();
    Follower lost(target, follower_path, how());
    BOOST_TEST(!lost.wait_for(Serial{1000}, std::chrono::milliseconds(20)));
    BOOST_TEST(get(lost.heap(), 2) == "two");
}

BOOST_AUTO_TEST_CASE(a_target_that_is_away_makes_what_is_shown_old) {
    const Quiet quiet_reports;
    put(1, "one");
    replicate_all();
    follower.emplace(hooked, follower_path, how());
    while (follower->status().age > std::chrono::hours(1)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    follower->require_fresh(std::chrono::seconds(60));
    hooked->away = true;
    put(1, "two");
    wait_until_away();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    BOOST_TEST(throws(errc::stale, [&] { follower->require_fresh(std::chrono::milliseconds(10)); }));
    BOOST_TEST(follower->status().last_error != "");
    BOOST_TEST(get(follower->heap(), 1) == "one");
    hooked->away = false;
    BOOST_TEST(difference() == -1);
}

BOOST_AUTO_TEST_CASE(a_damaged_frame_is_not_followed) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    follower.reset();
    put(2, "two");
    replicate_all();
    const std::uint64_t last = target->range().last;
    const std::vector<std::byte> sound = target->read(last);
    std::vector<std::byte> damaged = sound;
    damaged[damaged.size() - 3] ^= std::byte{1};
    target->put(last, damaged);
    follower.emplace(target, follower_path, how());
    BOOST_TEST(!follower->wait_for(heap->last_durable(), std::chrono::milliseconds(20)));
    wait_until_away();
    BOOST_TEST(get(follower->heap(), 2) == "");
    target->put(last, sound);
    BOOST_TEST(difference() == -1);
}

BOOST_AUTO_TEST_CASE(calls_of_procedures_are_followed_as_what_they_changed) {
    for (const auto& [bug, is_right] : {std::pair{Bug::none, true}, {Bug::calls_replicated, false}}) {
        const Planted planted_now(bug);
        const Quiet quiet_reports;
        using Numbers = std::array<std::int32_t, 5000>;
        static const auto add = [](ProcedureHeap& of, std::int32_t summand) {
            for (std::int32_t& value : *of.find<Numbers>("numbers")) value += summand;
        };
        if (!is_right) {
            follower.reset();
            std::filesystem::remove(follower_path);
            std::filesystem::remove(follower_path.string() + ".log");
            replication.reset();
            heap.reset();
            path = directory / "other.tyn";
            target = std::make_shared<PretendedTarget>();
            heap.emplace(create_only, path, options);
            replication.emplace(*heap, target, quick());
        } else {
            register_procedure("follower add", add, [](ProcedureHeap& of, std::int32_t summand) { add(of, -summand); });
        }
        {
            Transaction transaction(*heap);
            heap->construct<Numbers>("numbers").fill(1);
            transaction.commit();
        }
        follow();
        BOOST_TEST(difference() == -1);
        {
            Transaction transaction(*heap);
            transaction.call("follower add", std::int32_t{41});
            transaction.commit();
        }
        BOOST_TEST(heap->find<Numbers>("numbers")->back() == 42);
        replicate_all();
        const auto shown = [&] { return follower->wait_for(heap->last_durable(), std::chrono::seconds(60)); };
        if (is_right)
            BOOST_TEST(shown());
        else
            BOOST_TEST(!follower->wait_for(heap->last_durable(), std::chrono::milliseconds(30)));
        BOOST_TEST(follower->heap().find<Numbers>("numbers")->back() == (is_right ? 42 : 1));
        if (!is_right) {  // as frames of an earlier version: a base leads past them
            replication->make_base();
            BOOST_TEST(shown());
            BOOST_TEST(follower->heap().find<Numbers>("numbers")->back() == 42);
        }
    }
}

BOOST_AUTO_TEST_CASE(an_undo_history_goes_on_in_the_promoted_heap) {
    put(1, "one");
    follow();
    heap->attach_undo();
    put(1, "two");
    put(2, std::string(100'000, 'h'));  // the history grows
    put(1, "three");
    BOOST_TEST(difference() == -1);
    follower.reset();
    follow();
    heap->undo();
    BOOST_TEST(difference() == -1);
    replication->stop();
    heap.reset();
    TransactionalHeap promoted = std::move(*follower).promote(options);
    promoted.attach_undo();
    BOOST_TEST(get(promoted, 1) == "two");
    BOOST_TEST(promoted.redo());
    BOOST_TEST(get(promoted, 1) == "three");
    BOOST_TEST(promoted.undo());
    BOOST_TEST(promoted.undo());
    BOOST_TEST(promoted.undo());
    BOOST_TEST(get(promoted, 1) == "one");
}

// ---- promotion

BOOST_AUTO_TEST_CASE(a_promoted_follower_takes_the_place_and_the_former_owner_commits_nothing_more) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    put(2, "confirmed");
    replicate_all();
    TransactionalHeap promoted = std::move(*follower).promote(options);
    BOOST_TEST(get(promoted, 2) == "confirmed");
    put(promoted, 3, "goes on");
    Replication goes_on(promoted, target, quick());
    put(promoted, 4, "and is replicated");
    BOOST_REQUIRE(goes_on.wait_replicated(promoted.last_durable(), std::chrono::seconds(60)));
    // The former owner learns of it with the next frame.
    const Serial lost = put(5, "lost");
    BOOST_TEST(throws(errc::fenced, [&] { (void)replication->wait_replicated(lost, std::chrono::seconds(60)); }));
    BOOST_TEST((replication->status().state == ReplicationState::fenced));
    BOOST_TEST(throws(errc::fenced, [&] { put(6, "refused"); }));
    BOOST_TEST(get(*heap, 5) == "lost");
    replication.reset();
    heap->close();
    heap.reset();
    BOOST_TEST(throws(errc::fenced, [&] { TransactionalHeap(open_only, path, options); }));
    BOOST_TEST(throws(errc::fenced, [&] { ArchiveHeap(open_only, path); }));
    {
        const TransactionalHeap reader(open_read_only, path, options);
        BOOST_TEST(get(reader, 5) == "lost");
    }
    // Who follows goes on with the new owner; so does who restores.
    Follower next(target, directory / "next.tyn", how());
    BOOST_TEST(next.wait_for(promoted.last_durable(), std::chrono::seconds(60)));
    BOOST_TEST(get(next.heap(), 4) == "and is replicated");
    BOOST_TEST(get(next.heap(), 5) == "");
}

BOOST_AUTO_TEST_CASE(a_former_owner_that_comes_back_learns_it_when_it_attaches) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    replication.reset();
    heap.reset();
    {
        TransactionalHeap promoted = std::move(*follower).promote(options);
        follower.reset();
        for (int life = 0; life < 2; ++life) {
            Replication goes_on(promoted, target, quick());
            put(promoted, 2, "goes on");
            BOOST_REQUIRE(goes_on.wait_replicated(promoted.last_durable(), std::chrono::seconds(60)));
        }
    }
    heap.emplace(open_only, path, options);
    put(1, "nobody has told it yet");
    BOOST_TEST(throws(errc::fenced, [&] { Replication(*heap, target); }));
    BOOST_TEST(throws(errc::fenced, [&] { put(1, "refused"); }));
    heap.reset();
    BOOST_TEST(throws(errc::fenced, [&] { TransactionalHeap(open_only, path, options); }));
    // A file that never had the place is refused, and left alone.
    (void)taiyen::restore(*target, directory / "restored.tyn");
    TransactionalHeap restored(open_only, directory / "restored.tyn", options);
    BOOST_TEST(throws(errc::fenced, [&] { Replication(restored, target); }));
    put(restored, 3, "goes its own way");
}

BOOST_AUTO_TEST_CASE(a_former_owner_makes_room_for_a_follower_with_all_its_files) {
    const Quiet quiet_reports;
    const std::filesystem::path elsewhere = directory / "elsewhere";
    std::filesystem::create_directory(elsewhere);
    heap->replace_log(256_KiB, elsewhere / "log");
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    options.log_file = elsewhere / "log";
    FollowerOptions replaces = how();
    replaces.replace_deposed = true;
    replaces.heap.log_file = options.log_file;
    BOOST_TEST(throws(errc::busy, [&] { Follower(target, path, replaces); }));
    TransactionalHeap promoted = std::move(*follower).promote();
    follower.reset();
    Replication goes_on(promoted, target, quick());
    put(promoted, 2, "goes on");
    BOOST_REQUIRE(goes_on.wait_replicated(promoted.last_durable(), std::chrono::seconds(60)));
    replication.reset();
    heap.reset();
    BOOST_TEST(throws(errc::already_exists, [&] { Follower(target, path, replaces); }));  // nobody has told it yet
    heap.emplace(open_only, path, options);
    put(1, "never sent");
    BOOST_TEST(throws(errc::fenced, [&] { Replication(*heap, target); }));
    heap.reset();
    const std::string aside = path.string() + ".deposed";
    std::ofstream(elsewhere / "log.deposed") << "somebody's";
    // What is another heap's is left alone, and without one to follow nothing is touched.
    TransactionalHeap(create_only, directory / "another.tyn", PersistentOptions{}).close();
    FollowerOptions wrong = replaces;
    wrong.heap.log_file = directory / "another.tyn.log";
    BOOST_TEST(throws(errc::mismatch, [&] { Follower(target, path, wrong); }));
    BOOST_TEST(throws(errc::not_found, [&] { Follower(std::make_shared<PretendedTarget>(), path, replaces); }));
    BOOST_TEST(std::filesystem::exists(wrong.heap.log_file));
    BOOST_TEST(std::filesystem::exists(path));
    {
        Follower follows(target, path, replaces);
        BOOST_TEST(follows.wait_for(promoted.last_durable(), std::chrono::seconds(60)));
        BOOST_TEST(get(follows.heap(), 2) == "goes on");
    }
    BOOST_TEST(!std::filesystem::exists(aside));
    PersistentOptions kept = options;
    kept.log_file = elsewhere / "log.deposed-2";
    BOOST_TEST(get(TransactionalHeap(open_read_only, aside + "-2", kept), 1) == "never sent");
}

BOOST_AUTO_TEST_CASE(a_former_owner_that_heard_nothing_would_make_a_second_history) {
    const Planted planted_now(Bug::deposed_goes_on);
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    TransactionalHeap promoted = std::move(*follower).promote(options);
    const Serial lost = put(2, "lost");
    BOOST_TEST(throws(errc::fenced, [&] { (void)replication->wait_replicated(lost, std::chrono::seconds(60)); }));
    put(3, "nobody knows");
}

BOOST_AUTO_TEST_CASE(other_followers_go_on_with_the_new_owner) {
    put(1, "one");
    follow();
    Follower second(target, directory / "second.tyn", how());
    put(2, "two");
    replicate_all();
    replication->stop();
    TransactionalHeap promoted = std::move(*follower).promote(options);
    follower.reset();
    heap.reset();
    put(promoted, 3, "three");
    Replication goes_on(promoted, target, quick());
    put(promoted, 4, "four");
    BOOST_REQUIRE(goes_on.wait_replicated(promoted.last_durable(), std::chrono::seconds(60)));
    BOOST_REQUIRE(second.wait_for(promoted.last_durable(), std::chrono::seconds(60)));
    const ReadLock here(promoted);
    const ReadLock there(second.heap());
    BOOST_TEST(first_difference(bytes_of_span(promoted), bytes_of_span(second.heap())) == -1);
}

BOOST_AUTO_TEST_CASE(a_place_that_frames_have_come_to_meanwhile_is_taken_behind_them) {
    for (const auto& [bug, is_right] : {std::pair{Bug::none, true}, {Bug::promoted_before_end, false}}) {
        const Planted planted_now(bug);
        const Quiet quiet_reports;
        put(1, "one");
        follow();
        BOOST_TEST(difference() == -1);
        follower->stop();
        put(2, "while it did not look");
        replicate_all();
        std::atomic<bool> once{false};
        const auto promotes = std::this_thread::get_id();
        target->fate = [&](std::uint64_t) {
            if (std::this_thread::get_id() == promotes && !once.exchange(true)) {
                put(3, "in the last moment");
                replicate_all();
            }
            return PretendedTarget::Fate::works;
        };
        TransactionalHeap promoted = std::move(*follower).promote(options);
        target->fate = nullptr;
        BOOST_TEST((get(promoted, 2) == "while it did not look") == is_right);
        BOOST_TEST((get(promoted, 3) == "in the last moment") == is_right);
        promoted.close();
        follower.reset();
        // Another life, with another target.
        replication.reset();
        heap.reset();
        path = directory / (std::to_string(is_right) + " heap.tyn");
        follower_path = directory / (std::to_string(is_right) + " follower.tyn");
        target = std::make_shared<PretendedTarget>();
        heap.emplace(create_only, path, options);
        replication.emplace(*heap, target, quick());
    }
}

BOOST_AUTO_TEST_CASE(a_promotion_that_is_not_answered_is_made_again) {
    const Quiet quiet_reports;
    put(1, "one");
    follow();
    BOOST_TEST(difference() == -1);
    replication->stop();
    for (const auto fate : {PretendedTarget::Fate::away, PretendedTarget::Fate::loses_answer}) {
        target->fate = [fate](std::uint64_t) { return fate; };
        BOOST_TEST(throws(errc::io_error, [&] { (void)std::move(*follower).promote(options); }));
        BOOST_TEST((follower->status().state == FollowerState::stopped));
        follower.reset();
        target->fate = nullptr;
        BOOST_TEST(throws(errc::follower, [&] { TransactionalHeap(open_only, follower_path, options); }));
        follower.emplace(target, follower_path, how());
    }
    TransactionalHeap promoted = std::move(*follower).promote(options);
    put(promoted, 2, "two");
    Replication goes_on(promoted, target, quick());
    BOOST_TEST(goes_on.wait_replicated(promoted.last_durable(), std::chrono::seconds(60)));
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_follow) {
    put(1, "one");
    follow();
    const pid_t child = ::fork();
    if (child == 0) {
        const bool refused = throws(errc::forked, [&] { (void)follower->status(); }) && throws(errc::forked, [&] { (void)follower->heap(); }) &&
                             throws(errc::forked, [&] { (void)std::move(*follower).promote(); });
        follower->stop();
        { const Follower gone(std::move(*follower)); }
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    put(2, "two");
    BOOST_TEST(difference() == -1);
}

BOOST_AUTO_TEST_CASE(random_lives_are_followed_byte_for_byte) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    BOOST_TEST_CONTEXT("seed " << seed) {
        const Quiet quiet_reports;
        std::mt19937_64 random(seed);
        follow();
        for (int life = 0; life < 4; ++life) {
            for (unsigned step = 0; step < 40; ++step) {
                const std::uint64_t roll = random() % 60;
                const std::size_t size = roll == 0 ? 300'000 : random() % 4000;
                if (random() % 4 == 0)
                    erase(random() % 40);
                else
                    put(random() % 40, std::string(size, static_cast<char>('a' + random() % 26)));
                if (roll == 1) heap->snapshot();
                if (roll == 2) replication->make_base();
                if (roll == 3) {
                    follower.reset();
                    follower.emplace(target, follower_path, how());
                }
                if (roll == 4) BOOST_REQUIRE(difference() == -1);
                if (roll == 5) HeapAccess::file(follower->heap()).save();
                if (roll == 6) {
                    target->lose_from(target->range().last);
                    put(0, "told of " + std::to_string(step));  // replication learns of it with its next frame
                }
            }
            if (life == 2) heap->attach_undo();
            BOOST_REQUIRE(difference() == -1);
            if (random() % 2 == 0) {
                reopen();
            } else if (random() % 2 == 0) {
                // The follower goes on as the heap.
                replicate_all();
                replication.reset();
                heap->close();
                heap.reset();
                heap.emplace(std::move(*follower).promote(options));
                follower.reset();
                std::swap(path, follower_path);
                for (const char* suffix : {"", ".log"}) std::filesystem::remove(follower_path.string() + suffix);
                replication.emplace(*heap, target, quick());
                follow();
            }
        }
        BOOST_REQUIRE(difference() == -1);
        BOOST_TEST(follower->heap().verify().findings.empty());
    }
}

BOOST_AUTO_TEST_CASE(threads_read_while_it_follows, *boost::unit_test::label("threads")) {
    using Pair = std::pair<std::uint64_t, std::uint64_t>;
    {
        Transaction transaction(*heap);
        heap->construct<Pair>("pair");
        transaction.commit();
    }
    follow();
    std::atomic<bool> done{false};
    std::atomic<unsigned> torn{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
        readers.emplace_back([&] {
            Serial before;
            while (!done) {
                const ReadLock lock(follower->heap());
                const Pair& pair = *follower->heap().find<Pair>("pair");
                if (pair.first != pair.second || lock.serial() < before) ++torn;
                before = lock.serial();
            }
        });
    }
    for (std::uint64_t i = 1; i <= 300; ++i) {
        Transaction transaction(*heap);
        Pair& pair = *heap->find<Pair>("pair");
        pair.first = pair.second = i;
        transaction.commit();
        if (i % 100 == 0) replication->make_base();
    }
    BOOST_TEST(difference() == -1);
    done = true;
    for (std::thread& reader : readers) reader.join();
    BOOST_TEST(torn == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
