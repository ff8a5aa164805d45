// What a heap commits reaches the target, whatever becomes of target, log and heap, and the heap is restored from there.

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/planted.hpp"
#include "replicate/replicated_heap.hpp"
#include "replicate/shipper.hpp"
#include "seed.hpp"

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
    BOOST_TEST((replication.status().state == ReplicationState::away));
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
    Replication replication(*heap, target, how);
    target->fate = [&](std::uint64_t) {
        ++inside;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        --inside;
        return Fate::works;
    };
    for (std::uint64_t key = 0; key < 400; ++key) put(key % 50, std::string(2000, 'x'));
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

BOOST_AUTO_TEST_CASE(the_heap_is_restored_as_of_each_transaction_that_came_as_such) {
    Replication replication(*heap, target, quick());
    const Serial first = put(0, "first");
    for (std::uint64_t key = 1; key < 30; ++key) put(key % 7, std::to_string(key));
    end(replication);
    for (std::uint64_t serial = first.value; serial <= newest().value; serial += 5)
        BOOST_TEST((restore_it({.serial = Serial{serial}}) == states[serial]));
    BOOST_TEST(throws(errc::not_found, [&] { (void)restore_it({.serial = Serial{newest().value + 1}}); }));
}

BOOST_AUTO_TEST_CASE(the_heap_is_restored_as_of_a_time) {
    Replication replication(*heap, target, quick());
    put(1, "early");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    const Serial early = newest();
    const auto time = std::chrono::system_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    put(2, "late");
    end(replication);
    BOOST_TEST((restore_it({.at = time}) == states[early.value]));
    BOOST_TEST((restore_it({.at = std::chrono::system_clock::now()}) == states[newest().value]));
    BOOST_TEST(throws(errc::not_found, [&] { (void)restore_it({.at = time - std::chrono::hours(1)}); }));
}

BOOST_AUTO_TEST_CASE(bases_shorten_what_is_read_and_older_frames_are_trimmed) {
    ReplicationOptions how = quick();
    how.keep = std::chrono::hours(0);
    Replication replication(*heap, target, how);
    for (std::uint64_t key = 0; key < 20; ++key) put(key, "a");
    replication.make_base();
    for (std::uint64_t key = 0; key < 20; ++key) put(key, "b");
    replication.make_base();
    put(99, "c");
    end(replication);
    BOOST_TEST(replication.status().bases == 2U);
    BOOST_TEST((restore_it() == states[newest().value]));
    BOOST_TEST((restore_it({.serial = Serial{newest().value - 5}}) == states[newest().value - 5]));
    // A base is old enough to be the first that is kept; nothing before it is needed.
    {
        Replication again(*heap, target, how);
        auto shipper = replicate::Shipper(HeapAccess::file(*heap), *txn::TransactionService::of(HeapAccess::file(*heap)), *target, 1);
        again.stop();
        shipper.attach();
        const std::array<std::uint8_t, 16> group{1};
        shipper.keep(group, Serial{2});
        shipper.trim(~std::uint64_t{0});
        BOOST_TEST(target->range().first <= 2U);
        shipper.keep(group, std::nullopt);
        shipper.trim(~std::uint64_t{0});
    }
    BOOST_TEST(target->range().first > 2U);
    BOOST_TEST((restore_it() == states[newest().value]));
    BOOST_TEST(throws(errc::not_found, [&] { (void)restore_it({.serial = Serial{2}}); }));
}

BOOST_AUTO_TEST_CASE(behind_a_damaged_newest_frame_nothing_is_appended) {
    put(1, "one");
    {
        Replication replication(*heap, target);
        end(replication);
    }
    const std::uint64_t last = target->range().last;
    std::vector<std::byte> damaged = target->read(last);
    damaged.back() ^= std::byte{4};
    target->put(last, damaged);
    try {
        Replication(*heap, target);
        BOOST_ERROR("attached");
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        BOOST_TEST(std::string(error.what()).find("replicate to another place") != std::string::npos, error.what());
    }
    BOOST_TEST(target->range().last == last);
}

BOOST_AUTO_TEST_CASE(another_heap_does_not_get_into_the_target) {
    { Replication replication(*heap, target); }
    TransactionalHeap other(create_only, directory / "other.tyn", options);
    BOOST_TEST(throws(errc::mismatch, [&] { Replication(other, target); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { Replication(other, nullptr); }));
}

BOOST_AUTO_TEST_CASE(a_copy_of_the_heap_is_fenced_off) {
    put(1, "original");
    {
        Replication replication(*heap, target);
        end(replication);
    }
    write_copy(*heap, directory / "copy.tyn");
    heap.reset();
    TransactionalHeap copy(open_only, directory / "copy.tyn", options);
    BOOST_TEST(throws(errc::fenced, [&] { Replication(copy, target); }));
}

BOOST_AUTO_TEST_CASE(an_older_image_of_the_file_that_went_its_own_way_is_refused) {
    put(1, "both have it");
    {
        Replication replication(*heap, target);
        end(replication);
    }
    heap.reset();
    const auto image = directory / "image.tyn";
    std::filesystem::copy_file(path, image);
    heap.emplace(open_only, path, options);
    {
        Replication replication(*heap, target);
        put(2, "only the target has it");
        put(3, "and this");
        end(replication);
    }
    heap.reset();
    std::filesystem::remove(path);
    std::filesystem::copy_file(image, path);
    const auto frames = target->range().last;
    for (int transactions = 0; transactions < 3; ++transactions) {  // behind the target, and beyond it
        heap.emplace(open_only, path, options);
        BOOST_TEST(throws(errc::diverged, [&] { Replication(*heap, target); }));
        Transaction transaction(*heap);
        heap->find_or_construct<Map>("map")[77] = "another history";
        transaction.commit();
        heap.reset();
    }
    BOOST_TEST(target->range().last == frames);
}

BOOST_AUTO_TEST_CASE(an_older_image_would_go_on_unseen_if_opening_it_left_no_mark) {
    put(1, "both have it");
    const auto image = directory / "image.tyn";
    const auto copy_files = [](const std::filesystem::path& from, const std::filesystem::path& to) {
        for (const char* suffix : {"", ".log"})
            std::filesystem::copy_file(from.string() + suffix, to.string() + suffix, std::filesystem::copy_options::overwrite_existing);
    };
    {
        Replication replication(*heap, target);
        BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
        heap->snapshot();
        {
            const auto saves = HeapAccess::file(*heap).files().hold_saves();
            copy_files(path, image);
        }
        put(2, "only the target has it");  // shipped by the life that the image is of
        end(replication);
    }
    const auto attaches_after_going_its_own_way = [&] {
        heap.reset();
        copy_files(image, path);
        heap.emplace(open_only, path, options);
        for (int i = 0; i < 3; ++i) {
            Transaction transaction(*heap);
            heap->find_or_construct<Map>("map")[77] = "another history";
            transaction.commit();
        }
        return !throws(errc::diverged, [&] { Replication(*heap, target); });
    };
    BOOST_TEST(!attaches_after_going_its_own_way());
    const Planted planted(Bug::reopening_unmarked);
    BOOST_TEST(attaches_after_going_its_own_way());
}

BOOST_AUTO_TEST_CASE(pages_of_a_partial_base_lie_on_the_base_before_it_and_on_nothing_newer) {
    const auto is_restored = [&] {
        target = std::make_shared<PretendedTarget>();
        const std::filesystem::path to = directory / ("restored far " + std::to_string(++restored) + ".tyn");
        const auto commit = [&](auto&& change) {
            Transaction transaction(*heap);
            change();
            return transaction.commit();
        };
        using Far = taiyen::vector<char>;
        commit([&] { heap->find_or_construct<Far>("far").resize(std::size_t{6} << 20U, 'x'); });  // several pages of the checksum table
        {
            Replication replication(*heap, target, quick());
            const Serial far = commit([&] {
                Far& there = *heap->find<Far>("far");
                there[there.size() / 2] = static_cast<char>('a' + restored);  // of a table page that nothing else changes
            });
            BOOST_REQUIRE(replication.wait_replicated(far, std::chrono::seconds(60)));
            heap->snapshot();
            put(1, "its frame says that this save is covered " + std::to_string(restored));
            end(replication);
        }
        reopen();
        put(2, "saved while nobody replicates " + std::to_string(restored));
        reopen();
        {
            Replication replication(*heap, target, quick());
            put(3, "last " + std::to_string(restored));
            end(replication);
        }
        heap.reset();
        const bool restores = !throws(errc::corrupt, [&] { (void)taiyen::restore(*target, to); });
        if (restores) {
            const ArchiveHeap there(open_read_only, to);
            const Far& far = *there.find<Far>("far");
            BOOST_TEST(far[far.size() / 2] == static_cast<char>('a' + restored));
            BOOST_TEST((model_of(there) == states[newest().value]));
        }
        heap.emplace(open_only, path, options);
        return restores;
    };
    BOOST_TEST(is_restored());
    const Planted planted(Bug::delta_from_newer);
    BOOST_TEST(!is_restored());
}

BOOST_AUTO_TEST_CASE(a_reader_that_did_not_compare_frames_would_restore_what_never_was) {
    Replication replication(*heap, target, quick());
    put(1, "one");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    put(2, "two");
    end(replication);
    // The last frame of another history, with its number right.
    const Serial last = newest();
    const std::uint64_t number = target->range().last;
    replicate::Frame frame(*target, number);
    replicate::FrameHead head = frame.head();
    ++head.previous;
    const std::array pieces{frame.body()};
    target->put(number, replicate::encode(head, pieces));
    BOOST_TEST(throws(errc::corrupt, [&] { (void)restore_it(); }));
    const Planted planted(Bug::frame_chain_unchecked);
    BOOST_TEST((restore_it() == states[last.value]));
}

BOOST_AUTO_TEST_CASE(a_base_whose_end_was_read_while_saves_go_on_would_not_hold_together) {
    put(1, "one");
    static ReplicatedFixture* fixture = nullptr;
    fixture = this;
    const auto attach = [&] {
        Replication replication(*heap, target, quick());
        replication.stop();
    };
    {
        const Planted planted(Bug::base_without_hold);
        at_planted_step = +[]() noexcept {
            fixture->put(2, "committed and saved meanwhile");
            fixture->heap->snapshot();
        };
        attach();
    }
    BOOST_TEST(throws(errc::corrupt, [&] { (void)restore_it(); }));
    target = std::make_shared<PretendedTarget>();
    attach();
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(who_appended_what_was_refused_would_make_two_histories_one) {
    const Quiet quiet_reports;
    put(1, "one");
    Replication replication(*heap, target, quick());
    put(2, "two");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    // Somebody takes the target over.
    const replicate::Frame newest_frame(*target, target->range().last);
    replicate::FrameHead head = newest_frame.head();
    head.kind = replicate::FrameKind::epoch;
    head.previous = newest_frame.head().checksum;
    ++head.number;
    ++head.epoch;
    head.epoch_frame = head.number;
    const std::vector<std::byte> body(sizeof(replicate::layout::EpochBody));
    const std::array pieces{std::span<const std::byte>(body)};
    const std::vector<std::byte> taken_over = replicate::encode(head, pieces);
    target->put(head.number, taken_over);
    const auto goes_on = [&](std::uint64_t key) {
        const Serial serial = put(key, "refused");
        try {
            while (!replication.wait_replicated(serial, std::chrono::seconds(1))) {}
            return true;
        } catch (const Error& error) {
            BOOST_TEST((error.code() == errc::fenced));
            return false;
        }
    };
    {
        const Planted planted(Bug::refused_appended_anyway);
        BOOST_TEST(goes_on(3));
    }
    target->put(target->range().last + 1, taken_over);
    BOOST_TEST(!goes_on(4));
}

BOOST_AUTO_TEST_CASE(a_second_owner_ends_the_first) {
    const Quiet quiet_reports;
    Replication replication(*heap, target, quick());
    put(1, "mine");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    target->put(target->range().last + 1, std::vector<std::byte>(8, std::byte{1}));  // somebody else's frame
    const Serial serial = put(2, "refused");
    BOOST_TEST(throws(errc::fenced, [&] {
        while (!replication.wait_replicated(serial, std::chrono::seconds(1))) {}
    }));
    BOOST_TEST((replication.status().state == ReplicationState::fenced));
    BOOST_TEST(throws(errc::fenced, [&] { replication.make_base(); }));
    put(3, "the heap goes on");
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

BOOST_AUTO_TEST_CASE(a_target_that_loses_this_attachment_gets_another_one) {
    const Quiet quiet_reports;
    put(1, "one");
    {
        Replication replication(*heap, target, quick());
        end(replication);
    }
    const std::uint64_t before = target->range().last;
    Replication replication(*heap, target, quick());
    put(2, "two");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    target->lose_from(before + 1);
    put(3, "three");
    end(replication);
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(an_attachment_elsewhere_that_fails_leaves_the_one_that_was) {
    put(1, "one");
    {
        Replication replication(*heap, target, quick());
        end(replication);
    }
    const auto elsewhere = std::make_shared<PretendedTarget>();
    elsewhere->fate = [](std::uint64_t) { return Fate::away; };
    BOOST_TEST(throws(errc::io_error, [&] { Replication(*heap, elsewhere); }));
    Replication replication(*heap, target, quick());
    put(2, "two");
    end(replication);
    BOOST_TEST((restore_it() == states[newest().value]));
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

BOOST_AUTO_TEST_CASE(what_comes_to_stand_there_while_the_heap_is_restored_stays) {
    put(1, "one");
    {
        Replication replication(*heap, target, quick());
        end(replication);
    }
    heap.reset();
    const auto to = directory / "restored.tyn";
    RestoreOptions how;
    how.progress = [&](std::uint64_t, std::uint64_t) { std::ofstream(to) << "somebody's only copy"; };
    BOOST_TEST(throws(errc::already_exists, [&] { (void)taiyen::restore(*target, to, how); }));
    BOOST_TEST(std::filesystem::file_size(to) == 20U);
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

BOOST_AUTO_TEST_CASE(nothing_is_attached_within_a_transaction) {
    const Transaction transaction(*heap);
    BOOST_TEST(throws(errc::scope_open, [&] { Replication(*heap, target); }));
    BOOST_TEST(target->range().empty());
}

BOOST_AUTO_TEST_CASE(an_image_that_was_refused_is_not_accepted_by_way_of_another_target) {
    put(1, "both have it");
    const auto image = directory / "image.tyn";
    {
        Replication replication(*heap, target);
        BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
        heap->snapshot();
        {
            const auto saves = HeapAccess::file(*heap).files().hold_saves();
            for (const char* suffix : {"", ".log"}) std::filesystem::copy_file(path.string() + suffix, image.string() + suffix);
        }
        put(2, "only the target has it");
        end(replication);
    }
    heap.reset();
    for (const char* suffix : {"", ".log"})
        std::filesystem::copy_file(image.string() + suffix, path.string() + suffix, std::filesystem::copy_options::overwrite_existing);
    heap.emplace(open_only, path, options);
    BOOST_TEST(throws(errc::diverged, [&] { Replication(*heap, target); }));
    { Replication elsewhere(*heap, std::make_shared<PretendedTarget>()); }
    put(3, "another history");
    put(4, "that is longer");
    BOOST_TEST(throws(errc::diverged, [&] { Replication(*heap, target); }));
}

BOOST_AUTO_TEST_CASE(a_base_that_is_damaged_is_followed_by_another_one) {
    fill(300);
    {
        Replication replication(*heap, target, quick());
        put(1, "on top of it");
        end(replication);
    }
    const std::uint64_t base = replica_info(*target)->bases.front().frame;
    std::vector<std::byte> bytes = target->read(base);
    bytes.back() ^= std::byte{1};
    target->put(base, bytes);
    BOOST_TEST(throws(errc::corrupt, [&] { (void)restore_it(); }));
    {
        Replication replication(*heap, target, quick());
        put(1, "behind it");
        end(replication);
    }
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(damage_at_the_end_does_not_hide_what_came_before) {
    put(1, "one");
    {
        ReplicationOptions how = quick();
        how.frame_bytes = 1;
        Replication replication(*heap, target, how);
        for (std::uint64_t key = 2; key < 6; ++key) {
            put(key, "shipped");
            BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
        }
        replication.make_base();
        end(replication);
    }
    // The newest frame is the end of the newest base.
    const std::uint64_t last = target->range().last;
    std::vector<std::byte> bytes = target->read(last);
    bytes[bytes.size() / 2] ^= std::byte{1};
    target->put(last, bytes);
    BOOST_TEST(throws(errc::corrupt, [&] { (void)restore_it(); }));
    for (std::uint64_t serial = 1; serial <= newest().value; ++serial) BOOST_TEST((restore_it({.serial = Serial{serial}}) == states[serial]));
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_replicate) {
    Replication replication(*heap, target, quick());
    put(1, "one");
    const pid_t child = ::fork();
    if (child == 0) {
        const bool refused = throws(errc::forked, [&] { (void)replication.status(); }) && throws(errc::forked, [&] { replication.make_base(); });
        replication.stop();
        { const Replication gone(std::move(replication)); }
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    put(2, "two");
    end(replication);
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

BOOST_AUTO_TEST_CASE(a_reader_does_not_replicate) {
    heap.reset();
    TransactionalHeap reader(open_read_only, path, options);
    BOOST_TEST(throws(errc::read_only, [&] { Replication(reader, target); }));
}

BOOST_AUTO_TEST_CASE(damaged_lost_and_foreign_frames_are_told_and_nothing_is_restored) {
    fill(600);
    {
        ReplicationOptions how = quick();
        how.frame_bytes = 1;
        Replication replication(*heap, target, how);
        for (std::uint64_t key = 0; key < 5; ++key) {
            put(key, "shipped");
            BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
        }
        end(replication);
    }
    heap.reset();
    const auto frames = target->frames();
    const auto refused = [&](errc code) {
        const auto to = directory / "refused.tyn";
        const bool was_refused = throws(code, [&] { (void)taiyen::restore(*target, to); });
        return was_refused && !std::filesystem::exists(to);
    };
    for (const auto& [number, frame] : frames) {
        BOOST_TEST_CONTEXT("frame " << number) {
            std::vector<std::byte> damaged = frame;
            damaged[damaged.size() / 2] ^= std::byte{4};
            target->put(number, damaged);
            const bool is_read = number != 1;  // who attached is no part of the heap
            if (is_read) BOOST_TEST(refused(errc::corrupt));
            target->put(number, frame);
        }
    }
    const std::uint64_t last = frames.rbegin()->first;
    target->lose(last - 1);
    BOOST_TEST(refused(errc::corrupt));
    target->put(last - 1, frames.at(last - 1));
    target->put(last - 1, frames.at(last));
    BOOST_TEST(refused(errc::corrupt));
    target->put(last - 1, frames.at(last - 1));
    BOOST_TEST((model_in([&] {
                    (void)taiyen::restore(*target, directory / "sound.tyn");
                    return directory / "sound.tyn";
                }()) == states[newest().value]));
    BOOST_TEST(throws(errc::already_exists, [&] { (void)taiyen::restore(*target, directory / "sound.tyn"); }));
}

BOOST_AUTO_TEST_CASE(nothing_is_restored_from_nothing) {
    BOOST_TEST(throws(errc::not_found, [&] { (void)taiyen::restore(*target, directory / "nothing.tyn"); }));
    BOOST_TEST(!replica_info(*target).has_value());
}

BOOST_AUTO_TEST_CASE(random_lives_are_restored_as_of_random_transactions) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    BOOST_TEST_CONTEXT("seed " << seed) {
        const Quiet quiet_reports;
        std::mt19937_64 random(seed);
        std::atomic<unsigned> trouble{0};
        std::mt19937_64 fates(seed + 1);
        target->fate = [&](std::uint64_t) {
            if (trouble == 0) return Fate::works;
            const auto roll = fates() % 10;
            return roll < trouble ? Fate::away : roll < 2 * trouble ? Fate::loses_answer : Fate::works;
        };
        std::vector<std::uint64_t> gaps;
        for (int life = 0; life < 3; ++life) {
            ReplicationOptions how = quick();
            how.frame_bytes = 1U << (random() % 18);
            how.codec = static_cast<Codec>(random() % 3);
            trouble = 0;
            std::optional<Replication> replication(std::in_place, *heap, target, how);
            trouble = static_cast<unsigned>(random() % 4);
            for (unsigned step = 0; step < 60; ++step) {
                const std::uint64_t roll = random() % 40;
                const std::size_t size = roll == 0 ? 200'000 : random() % 3000;
                put(random() % 50, std::string(size, static_cast<char>('a' + random() % 26)));
                if (roll == 1) heap->snapshot();
            }
            trouble = 0;
            try {
                if (random() % 2 == 0) replication->make_base();
            } catch (const Error& error) {
                BOOST_REQUIRE((error.code() == errc::io_error));  // what was tried when it was asked for has failed
            }
            end(*replication);
            replication.reset();
            BOOST_REQUIRE((restore_it() == states[newest().value]));
            const std::uint64_t serial = newest().value - random() % 40;
            try {
                BOOST_REQUIRE((restore_it({.serial = Serial{serial}}) == states[serial]));
            } catch (const Error& error) {
                BOOST_REQUIRE((error.code() == errc::not_found));  // it came as pages, within a gap
            }
        }
    }
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
