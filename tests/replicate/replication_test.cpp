// What a heap commits reaches the target, whatever becomes of target, log and heap, and the heap is restored from there.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <thread>

#include "replicate/replicated_heap.hpp"

using namespace taiyen;
using namespace taiyen::replicate::test;
using taiyen::test::throws;
using Fate = PretendedTarget::Fate;

BOOST_FIXTURE_TEST_SUITE(replication, ReplicatedFixture)

BOOST_AUTO_TEST_CASE(what_was_committed_before_and_after_attaching_is_restored) {
    put(1, "before");
    {
        Replication replication(*heap, target);
        put(2, "after");
        end(replication);
        const ReplicationStatus status = replication.status();
        BOOST_TEST((status.state == ReplicationState::stopped));
        BOOST_TEST(status.behind == 0U);
        BOOST_TEST(status.replicated.value == newest().value);
        BOOST_TEST(status.target == "pretended");
        BOOST_TEST(status.bases == 0U);
    }
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(a_heap_that_was_closed_goes_on_with_the_pages_that_changed_meanwhile) {
    fill(2000);
    {
        Replication replication(*heap, target);
        put(1, "replicated");
        end(replication);
    }
    std::size_t bytes_before = 0;
    for (const auto& [number, frame] : target->frames()) bytes_before += frame.size();
    reopen();  // closing gives free pages back, without a word in the log
    put(2, "nobody ships it");
    reopen();
    Replication replication(*heap, target);
    put(3, "shipped again");
    end(replication);
    std::size_t bytes = 0;
    for (const auto& [number, frame] : target->frames()) bytes += frame.size();
    BOOST_TEST(replication.status().bases == 0U);  // counted from attaching on
    BOOST_TEST(bytes - bytes_before < 3 * bytes_before);
    BOOST_TEST((restore_it() == states[newest().value]));
    const auto info = replica_info(*target, true);
    BOOST_REQUIRE(info.has_value());
    BOOST_TEST(info->epoch == 2U);
    BOOST_REQUIRE(info->bases.size() == 2U);
    BOOST_TEST(!info->bases[0].is_full);
    BOOST_TEST(info->bases[1].is_full);
}

BOOST_AUTO_TEST_CASE(a_target_that_is_away_stops_nobody_and_gets_everything_later) {
    const Quiet quiet_reports;
    Replication replication(*heap, target, quick());
    std::atomic<bool> away{true};
    target->fate = [&](std::uint64_t) { return away ? Fate::away : Fate::works; };
    const Serial first = put(1, "while it is away");
    BOOST_TEST(!replication.wait_replicated(first, std::chrono::milliseconds(20)));
    while (replication.status().state != ReplicationState::away) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    BOOST_TEST(!replication.status().last_error.empty());
    BOOST_TEST(throws(errc::io_error, [&] { replication.make_base(); }));
    put(2, "this, too");
    away = false;
    end(replication);
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(what_the_log_has_no_more_when_the_target_is_back_follows_as_pages) {
    const Quiet quiet_reports;
    Replication replication(*heap, target, quick());
    put(0, "in time");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    std::atomic<bool> away{true};
    target->fate = [&](std::uint64_t) { return away ? Fate::away : Fate::works; };
    for (std::uint64_t key = 1; key <= 400; ++key) put(key, std::string(4000, static_cast<char>('a' + key % 26)));  // several logs full
    away = false;
    end(replication);
    BOOST_TEST(replication.status().bases >= 1U);
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(a_lost_answer_makes_no_second_frame) {
    const Quiet quiet_reports;
    Replication replication(*heap, target, quick());
    std::atomic<unsigned> calls{0};
    target->fate = [&](std::uint64_t) { return ++calls % 3 != 0 ? Fate::loses_answer : Fate::works; };
    for (std::uint64_t key = 0; key < 50; ++key) put(key, std::to_string(key));
    end(replication);
    target->fate = nullptr;
    BOOST_TEST(replica_info(*target, true)->newest.value == newest().value);
    for (const std::uint64_t serial : {newest().value, newest().value - 7, std::uint64_t{1}})
        if (serial > 1) BOOST_TEST((restore_it({.serial = Serial{serial}}) == states[serial]));
}

BOOST_AUTO_TEST_CASE(the_next_frame_is_made_while_one_is_on_its_way) {
    options.log_capacity = std::size_t{8} << 20U;
    heap.reset();
    path = directory / "larger.tyn";
    heap.emplace(create_only, path, options);
    ReplicationOptions how = quick();
    how.frame_bytes = std::size_t{64} << 10U;
    how.codec = Codec::none;
    std::mt19937 random(1);
    for (const int refuses : {0, 1, 2, 3}) {
        // 0: it works; 1: it is away now and then; 2: answers are lost; 3: an append is still on its way while the next one is asked for.
        Replication replication(*heap, target, how);
        std::atomic<bool> waits{true};
        std::atomic<int> inside{0};
        std::atomic<int> most_inside{0};
        target->fate = [&](std::uint64_t number) {
            most_inside = std::max(most_inside.load(), ++inside);
            while (waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (refuses == 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            --inside;
            if (refuses == 1 && random() % 3 == 0) return Fate::away;
            if (refuses == 2 && number % 3 == 0 && random() % 2 == 0) return Fate::loses_answer;
            return Fate::works;
        };
        for (std::uint64_t key = 0; key < 400; ++key) put(key % 50, std::string(2000 + key % 7, static_cast<char>('a' + key % 26)));
        waits = false;
        end(replication);
        target->fate = nullptr;
        BOOST_TEST(most_inside == 1);
        BOOST_TEST(replica_info(*target, true)->newest.value == newest().value);
        for (const std::uint64_t serial : {newest().value, newest().value - 77})
            BOOST_TEST((restore_it({.serial = Serial{serial}}) == states[serial]));
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_on_its_way_any_more_when_it_has_stopped) {
    options.log_capacity = std::size_t{8} << 20U;
    heap.reset();
    path = directory / "larger.tyn";
    heap.emplace(create_only, path, options);
    ReplicationOptions how = quick();
    how.frame_bytes = std::size_t{64} << 10U;
    how.codec = Codec::none;
    how.close_timeout = std::chrono::milliseconds(1);
    std::atomic<int> inside{0};
    std::atomic<bool> waits{true};
    Replication replication(*heap, target, how);
    target->fate = [&](std::uint64_t) {
        ++inside;
        const bool is_first = waits;
        while (waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        --inside;
        return is_first ? Fate::works : Fate::away;
    };
    for (std::uint64_t key = 0; key < 400; ++key) put(key % 50, std::string(2000, 'x'));
    waits = false;
    replication.stop();
    BOOST_TEST(inside == 0);
    BOOST_TEST(replication.replicated().value < newest().value);
    target->fate = nullptr;
}

BOOST_AUTO_TEST_CASE(a_frame_that_is_refused_while_the_next_one_is_made_ends_replication) {
    options.log_capacity = std::size_t{8} << 20U;
    heap.reset();
    path = directory / "larger.tyn";
    heap.emplace(create_only, path, options);
    const Quiet quiet_now;
    ReplicationOptions how = quick();
    how.frame_bytes = std::size_t{64} << 10U;
    how.codec = Codec::none;
    Replication replication(*heap, target, how);
    put(1, "there");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    std::atomic<bool> waits{true};
    std::atomic<int> appends{0};
    target->fate = [&](std::uint64_t number) {
        while (waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (++appends == 3) target->put(number, {std::byte{1}});  // somebody else's
        return Fate::works;
    };
    for (std::uint64_t key = 0; key < 400; ++key) put(key % 50, std::string(2000, 'x'));
    waits = false;
    while (replication.status().state == ReplicationState::streaming) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    BOOST_TEST((replication.status().state == ReplicationState::fenced));
    BOOST_TEST(appends == 3);  // nothing behind it
    target->fate = nullptr;
}

BOOST_AUTO_TEST_CASE(a_transaction_larger_than_the_log_comes_as_pages) {
    Replication replication(*heap, target, quick());
    put(1, "small");
    put(2, std::string(300'000, 'L'));
    put(3, "small again");
    end(replication);
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(an_undo_history_is_replicated_and_works_in_the_restored_heap) {
    put(1, "one");
    {
        heap->attach_undo();
        Replication replication(*heap, target, quick());
        put(1, "two");
        put(1, "three");
        end(replication);
    }
    heap.reset();
    (void)taiyen::restore(*target, directory / "restored.tyn");
    TransactionalHeap again(open_only, directory / "restored.tyn", options);
    again.attach_undo();
    BOOST_TEST(model_of(again).at(1) == "three");
    BOOST_TEST(again.undo());
    BOOST_TEST(model_of(again).at(1) == "two");
    BOOST_TEST(again.undo());
    BOOST_TEST(model_of(again).at(1) == "one");
    BOOST_TEST(!again.undo());
}

BOOST_AUTO_TEST_CASE(a_history_that_begins_and_one_that_ends_while_the_heap_is_replicated_are_restored_so) {
    put(1, "one");
    Replication replication(*heap, target, quick());
    heap->attach_undo();
    put(1, "two");
    BOOST_REQUIRE(replication.wait_replicated(heap->last_durable(), std::chrono::seconds(60)));
    const Serial with = heap->last_durable();
    heap->end_undo();
    put(1, "three");
    BOOST_REQUIRE(replication.wait_replicated(heap->last_durable(), std::chrono::seconds(60)));
    replication.stop();
    heap.reset();
    {
        (void)taiyen::restore(*target, directory / "with.tyn", {.serial = with});
        TransactionalHeap again(open_only, directory / "with.tyn", options);
        again.attach_undo();
        BOOST_TEST(again.undo());
        BOOST_TEST(model_of(again).at(1) == "one");
    }
    (void)taiyen::restore(*target, directory / "without.tyn");
    TransactionalHeap again(open_only, directory / "without.tyn", options);
    again.attach_undo();
    BOOST_TEST(!again.undo());
    BOOST_TEST(model_of(again).at(1) == "three");
}

BOOST_AUTO_TEST_CASE(what_another_kind_of_heap_saved_meanwhile_is_replicated) {
    fill(500);
    {
        Replication replication(*heap, target, quick());
        end(replication);
    }
    heap.reset();
    Model model = states.rbegin()->second;
    {
        ArchiveHeap archive(open_only, path);
        (*archive.find<Map>("map"))[7] = "by hand";
        model[7] = "by hand";
        archive.snapshot();
    }
    set_capacity(path, std::size_t{128} << 20U);
    heap.emplace(open_only, path, options);
    {
        Replication replication(*heap, target, quick());
        replication.stop();
    }
    BOOST_TEST((restore_it() == model));
    heap.reset();
    BOOST_TEST(read_parameters(directory / "restored 1.tyn").capacity_bytes == std::size_t{128} << 20U);
}

BOOST_AUTO_TEST_CASE(a_heap_with_a_second_copy_that_may_lie_anywhere_is_replicated) {
    heap.reset();
    options.position_independent = true;
    options.data_file = directory / "second.data";
    heap.emplace(create_only, directory / "anywhere.tyn", options);
    {
        Transaction transaction(*heap);
        heap->construct<int>("number") = 7;
        transaction.commit();
    }
    Replication replication(*heap, target, quick());
    {
        Transaction transaction(*heap);
        *heap->find<int>("number") = 8;
        transaction.commit();
    }
    BOOST_REQUIRE(replication.wait_replicated(heap->last_durable(), std::chrono::seconds(60)));
    (void)taiyen::restore(*target, directory / "restored.tyn");  // beside the open one
    const ArchiveHeap restored(open_read_only, directory / "restored.tyn");
    BOOST_TEST(*restored.find<int>("number") == 8);
    BOOST_TEST(!restored.has_data_file());
}

BOOST_AUTO_TEST_CASE(a_target_that_loses_its_newest_frames_or_all_gets_them_again) {
    const Quiet quiet_reports;
    Replication replication(*heap, target, quick());
    for (std::uint64_t key = 0; key < 4; ++key) {
        put(key, "kept");
        BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    }
    target->lose_from(target->range().last - 1);
    put(5, "after the loss");
    while (replica_info(*target)->newest < newest()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    target->lose_from(1);
    put(6, "after losing all");
    while (target->range().empty() || replica_info(*target)->newest < newest()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    end(replication);
    BOOST_TEST((restore_it() == states[newest().value]));
    BOOST_TEST(replica_info(*target, true)->bases.size() >= 1U);
}

BOOST_AUTO_TEST_CASE(a_heap_that_grows_and_is_saved_while_a_base_is_sent_is_whole_in_it) {
    heap.reset();
    options.capacity = std::size_t{1} << 30U;
    options.log_capacity = std::size_t{4} << 20U;
    heap.emplace(create_only, directory / "growing.tyn", options);
    const auto more = [&](const char* name, std::size_t mebibytes) {
        Transaction transaction(*heap);
        heap->construct<taiyen::vector<char>>(name).resize(mebibytes << 20U, 'x');
        transaction.commit();
        heap->snapshot();
    };
    more("first", 81);  // more than is sent at once
    bool has_grown = false;
    target->fate = [&](std::uint64_t number) {
        if (number > 4 && !has_grown) {
            has_grown = true;
            more("second", 5);
        }
        return Fate::works;
    };
    {
        Replication replication(*heap, target, quick());
        replication.stop();
    }
    BOOST_TEST(has_grown);
    heap.reset();
    (void)taiyen::restore(*target, directory / "restored.tyn");
    const ArchiveHeap there(open_read_only, directory / "restored.tyn");
    BOOST_TEST(there.find<taiyen::vector<char>>("second")->size() == std::size_t{5} << 20U);
    BOOST_TEST(there.find<taiyen::vector<char>>("first")->back() == 'x');
}

BOOST_AUTO_TEST_CASE(for_ever_is_a_time_like_others) {
    ReplicationOptions how = quick();
    how.keep = how.base_every = std::chrono::hours::max();
    how.linger = std::chrono::milliseconds(0);
    how.close_timeout = std::chrono::milliseconds::max();
    Replication replication(*heap, target, how);
    put(1, "one");
    replication.make_base();
    replication.make_base();
    BOOST_TEST(target->range().first == 1U);
    put(2, "two");
    BOOST_TEST(replication.wait_replicated(newest(), std::chrono::milliseconds::max()));
    std::thread other([&] { replication.stop(); });
    replication.stop();
    other.join();
    BOOST_TEST((replication.status().state == ReplicationState::stopped));
}

BOOST_AUTO_TEST_CASE(a_base_is_not_made_within_a_transaction) {
    Replication replication(*heap, target, quick());
    put(1, "one");
    {
        const Transaction transaction(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { replication.make_base(); }));
    }
    {
        const ReadLock lock(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { replication.make_base(); }));
    }
    replication.make_base();
}

BOOST_AUTO_TEST_CASE(who_stops_or_closes_does_not_wait_for_a_base) {
    heap.reset();
    options.capacity = std::size_t{1} << 30U;
    options.log_capacity = std::size_t{4} << 20U;
    heap.emplace(create_only, directory / "large.tyn", options);
    {
        Transaction transaction(*heap);
        heap->construct<taiyen::vector<char>>("block").resize(std::size_t{60} << 20U, 'x');
        transaction.commit();
    }
    for (const bool closes : {false, true}) {
        target->fate = nullptr;
        ReplicationOptions how = quick();
        how.close_timeout = std::chrono::milliseconds(1);
        Replication replication(*heap, target, how);
        std::atomic<unsigned> frames{0};
        std::atomic<bool> goes_on{false};
        target->fate = [&](std::uint64_t) {
            ++frames;
            while (frames == 3 && !goes_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (frames > 3) std::this_thread::sleep_for(std::chrono::seconds(2));  // until whoever ends has ended
            return Fate::works;
        };
        std::thread asks([&] { BOOST_CHECK(throws(errc::closed, [&] { replication.make_base(); })); });
        while (frames < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::thread lets_go([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            goes_on = true;
        });
        closes ? heap->close() : replication.stop();
        lets_go.join();
        asks.join();
        BOOST_TEST(frames < 10U);  // a base has more than thirty
    }
}

BOOST_AUTO_TEST_CASE(short_lives_are_counted_together_until_a_base_is_due) {
    ReplicationOptions how = quick();
    how.base_after_bytes = 60'000;
    for (int life = 0; life < 12; ++life) {
        Replication replication(*heap, target, how);
        for (std::uint64_t key = 0; key < 3; ++key) {
            put(key, std::string(4000, static_cast<char>('a' + life)));
            BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
        }
        end(replication);
    }
    std::size_t full = 0;
    const auto info = replica_info(*target, true);
    for (const ReplicaBase& base : info->bases) full += base.is_full ? 1 : 0;
    BOOST_TEST(full >= 2U);
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(closing_the_heap_ends_replication) {
    Replication replication(*heap, target, quick());
    put(1, "one");
    heap->close();
    BOOST_TEST(throws(errc::closed, [&] {
        while (!replication.wait_replicated(Serial{1'000'000}, std::chrono::seconds(1))) {}
    }));
    BOOST_TEST((replication.status().state == ReplicationState::stopped));
}

BOOST_AUTO_TEST_CASE(threads_commit_while_bases_are_made, *boost::unit_test::label("threads")) {
    Replication replication(*heap, target, quick());
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 3; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::uint64_t i = 0; i < 120; ++i) {
                Transaction transaction(*heap);
                heap->find_or_construct<Map>("map").insert_or_assign(thread * 1000 + i % 40, taiyen::string(std::to_string(i).c_str()));
                transaction.commit();
            }
        });
    }
    for (int i = 0; i < 3; ++i) replication.make_base();
    for (std::thread& thread : threads) thread.join();
    const Model model = model_of(*heap);
    BOOST_REQUIRE(replication.wait_replicated(heap->last_durable(), std::chrono::seconds(60)));
    replication.stop();
    BOOST_TEST((restore_it() == model));
}

BOOST_AUTO_TEST_SUITE_END()
