// A heap out of frames: as of each transaction, as of a time, on bases; and what damaged ones are told to be.

#include <boost/test/unit_test.hpp>

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

BOOST_FIXTURE_TEST_SUITE(restoring, ReplicatedFixture)

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

BOOST_AUTO_TEST_SUITE_END()
