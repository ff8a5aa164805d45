// A heap with a lease commits nothing more once its target doesn't answer, and who takes its place waits for as long: no two files commit at once.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "replicate/followed_heap.hpp"
#include "replicate/replicated_heap.hpp"

using namespace taiyen;
using namespace taiyen::replicate::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using taiyen::test::throws;

namespace {

using Fate = PretendedTarget::Fate;
using Clock = std::chrono::steady_clock;

struct LeasedFixture : ReplicatedFixture {
    std::atomic<bool> away{false};
    ReplicationOptions how = [] {
        ReplicationOptions how = quick();
        how.linger = milliseconds(0);
        how.lease = milliseconds(300);
        return how;
    }();
    std::optional<Replication> replication;
    Quiet quiet;

    LeasedFixture() {
        target->fate = [this](std::uint64_t) { return away ? Fate::away : Fate::works; };
    }
    ~LeasedFixture() {
        away = false;
        replication.reset();
    }
    LeasedFixture(const LeasedFixture&) = delete;
    LeasedFixture& operator=(const LeasedFixture&) = delete;

    void replicate() { replication.emplace(*heap, target, how); }
    /// Until one is refused; so many were committed.
    unsigned commit_until_refused() {
        unsigned committed = 0;
        while (!throws(errc::unreachable, [&] { put(committed % 20, "number " + std::to_string(committed)); })) {
            ++committed;
            std::this_thread::sleep_for(milliseconds(2));
        }
        return committed;
    }
    /// Waits until one is let through again.
    void commit_again() {
        while (throws(errc::unreachable, [&] { put(7, "again"); })) std::this_thread::sleep_for(milliseconds(2));
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lease, LeasedFixture)

BOOST_AUTO_TEST_CASE(nothing_is_committed_once_it_has_ended) {
    replicate();
    put(1, "one");
    away = true;
    const Clock::time_point begun = Clock::now();
    commit_until_refused();
    BOOST_TEST((Clock::now() - begun >= milliseconds(100)));  // not at once: the half of it that is left at least
    const Serial last = ReadLock(*heap).serial();
    for (int i = 0; i < 20; ++i) BOOST_TEST(throws(errc::unreachable, [&] { put(2, "two"); }));
    BOOST_TEST((ReadLock(*heap).serial() == last));
    BOOST_TEST((heap->find<Map>("map")->size() <= 20U));  // readers go on
    away = false;
    commit_again();
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    replication.reset();
    BOOST_TEST((restore_it() == states.rbegin()->second));
}

BOOST_AUTO_TEST_CASE(a_heap_in_which_nothing_happens_for_long_goes_on) {
    how.lease = milliseconds(20);
    replicate();
    for (int i = 0; i < 5; ++i) {
        std::this_thread::sleep_for(milliseconds(50));
        commit_again();
    }
    const std::uint64_t epoch = replica_info(*target)->epoch;
    BOOST_TEST(epoch > 1U);  // frames that said so
    BOOST_TEST((replica_info(*target)->lease == milliseconds(20)));
}

BOOST_AUTO_TEST_CASE(a_transaction_that_takes_longer_is_rolled_back) {
    replicate();
    put(1, "one");
    away = true;
    {
        Transaction transaction(*heap);
        heap->find<Map>("map")->at(1) = "two";
        std::this_thread::sleep_for(milliseconds(400));
        BOOST_TEST(throws(errc::unreachable, [&] { transaction.commit(); }));
    }
    BOOST_TEST((heap->find<Map>("map")->at(1) == "one"));
    away = false;
    commit_again();
    {
        // Asked for in good time, it lasts.
        Transaction transaction(*heap);
        heap->find<Map>("map")->at(1) = "three";
        transaction.commit();
    }
}

BOOST_AUTO_TEST_CASE(commits_that_went_on_would_be_seen) {
    replicate();
    put(1, "one");
    const Planted bug(Bug::lease_unlimited);
    away = true;
    std::this_thread::sleep_for(milliseconds(400));
    put(2, "two");
}

BOOST_AUTO_TEST_CASE(transactions_may_wait_for_the_next_one) {
    how.when_behind = WhenBehind::block;
    how.lease = milliseconds(50);
    replicate();
    put(1, "one");
    away = true;
    std::this_thread::sleep_for(milliseconds(100));
    std::atomic<bool> is_committed{false};
    std::jthread program([&] {
        put(2, "two");
        is_committed = true;
    });
    std::this_thread::sleep_for(milliseconds(100));
    BOOST_TEST(!is_committed);
    away = false;
    program.join();
    BOOST_TEST(is_committed);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_refused) {
    for (const milliseconds bad : {milliseconds(-1), milliseconds(5), milliseconds(3'600'001)}) {
        how.lease = bad;
        BOOST_TEST(throws(errc::invalid_argument, [&] { replicate(); }));
    }
    how.lease = milliseconds(300);
    heap.reset();
    options.durability = Durability::async;
    heap.emplace(open_only, path, options);
    BOOST_TEST(throws(errc::invalid_argument, [&] { replicate(); }));
}

BOOST_AUTO_TEST_CASE(when_it_is_stopped_nothing_waits_for_it) {
    replicate();
    put(1, "one");
    away = true;
    commit_until_refused();
    replication->stop();
    put(2, "two");
}

BOOST_AUTO_TEST_SUITE_END()

// ---- who takes the place

namespace {

struct LeasedFollowerFixture : FollowedFixture {
    const Quiet quiet;
    LeasedFollowerFixture() { replicate_with(milliseconds(400)); }
    /// Through the target that can be cut off; the follower reaches it.
    void replicate_with(milliseconds lease) {
        replication.reset();
        ReplicationOptions with = quick();
        with.lease = lease;
        replication.emplace(*heap, hooked, with);
    }
    /// How long that takes.
    Clock::duration promote() {
        const Clock::time_point begun = Clock::now();
        TransactionalHeap promoted = std::move(*follower).promote(options);
        const Clock::duration took = Clock::now() - begun;
        put(promoted, 5, "of the promoted one");
        return took;
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lease_of_the_one_before, LeasedFollowerFixture)

BOOST_AUTO_TEST_CASE(who_is_promoted_waits_for_its_end) {
    put(1, "one");
    replicate_all();
    follow();
    BOOST_TEST((promote() >= milliseconds(400)));
}

BOOST_AUTO_TEST_CASE(who_has_to_begin_anew_waits_again) {
    put(1, "one");
    replicate_all();
    follow();
    // Its frame is there, and it doesn't know.
    const std::uint64_t epoch = replica_info(*target)->epoch;
    std::atomic<bool> is_lost{false};
    target->fate = [&](std::uint64_t) { return is_lost.exchange(true) ? Fate::works : Fate::loses_answer; };
    BOOST_TEST(throws(errc::io_error, [&] { promote(); }));
    BOOST_TEST(replica_info(*target)->epoch == epoch + 1);
    BOOST_TEST((replica_info(*target)->lease == milliseconds(400)));
    follower.reset();
    follower.emplace(target, follower_path, how());
    BOOST_TEST((promote() >= milliseconds(400)));
    target->fate = nullptr;
}

/// Whether the former owner commits what it begins behind the end of the promotion.
struct OverlapFixture : LeasedFollowerFixture {
    bool overlaps(Bug bug, milliseconds lease) {
        replicate_with(lease);
        put(1, "one");
        replicate_all();
        follow();
        std::atomic<Clock::rep> newest{0};
        std::jthread program([&] {
            try {
                while (true) {
                    const Clock::time_point begun = Clock::now();
                    put(1, "goes on");
                    newest = begun.time_since_epoch().count();
                }
            } catch (const Error&) {}  // it has ended
        });
        while (newest == 0) std::this_thread::yield();
        hooked->away = true;
        {
            const Planted planted_now(bug);
            promote();
        }
        const Clock::rep done = Clock::now().time_since_epoch().count();
        program.join();
        return newest > done;
    }
};

BOOST_FIXTURE_TEST_CASE(no_two_commit_at_once, OverlapFixture, *boost::unit_test::label("threads")) {
    BOOST_TEST(!overlaps(Bug::none, milliseconds(400)));
}

BOOST_FIXTURE_TEST_CASE(without_waiting_they_would, OverlapFixture, *boost::unit_test::label("threads")) {
    BOOST_TEST(overlaps(Bug::promoted_in_lease, seconds(3)));
}

BOOST_AUTO_TEST_SUITE_END()
