// Commits that wait for the target, and transactions that wait where the log would give up what it hasn't got.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "replicate/followed_heap.hpp"
#include "replicate/frame_layout.hpp"
#include "replicate/replicated_heap.hpp"

using namespace taiyen;
using namespace taiyen::replicate::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using taiyen::test::throws;

namespace {

using Fate = PretendedTarget::Fate;

/// What it has come to when it counts no further.
unsigned halted_at(const std::atomic<unsigned>& counted) {
    unsigned before = 0;
    do {
        before = counted;
        std::this_thread::sleep_for(milliseconds(200));
    } while (counted != before || before == 0);
    return before;
}

/// Takes the first four frames of pages only behind another commit each.
class HeldPages final : public ReplicationTarget {
public:
    HeldPages(std::shared_ptr<ReplicationTarget> inner, const TransactionalHeap& heap)
        : inner_(std::move(inner)), heap_(heap), newest_(heap.last_durable()) {}
    std::atomic<unsigned> pages{4};  ///< so many were taken; 0: from the next one on

    std::string name() const override { return inner_->name(); }
    Range range() override { return inner_->range(); }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override {
        replicate::layout::FrameHead head{};
        std::memcpy(&head, frame.data(), sizeof head);
        if (head.kind == replicate::layout::FrameKind::pages && pages++ < 4) {
            while (heap_.last_durable() == newest_) std::this_thread::sleep_for(milliseconds(1));
            newest_ = heap_.last_durable();
        }
        return inner_->append(number, frame);
    }
    std::vector<std::byte> read(std::uint64_t number) override { return inner_->read(number); }
    void trim(std::uint64_t first) override { inner_->trim(first); }

private:
    const std::shared_ptr<ReplicationTarget> inner_;
    const TransactionalHeap& heap_;
    Serial newest_;
};

struct AcknowledgedFixture : ReplicatedFixture {
    std::atomic<bool> away{false};
    ReplicationOptions how = [] {
        ReplicationOptions how = quick();
        how.linger = milliseconds(0);
        return how;
    }();
    std::optional<Replication> replication;
    Quiet quiet;

    AcknowledgedFixture() {
        target->fate = [this](std::uint64_t) { return away ? Fate::away : Fate::works; };
    }
    ~AcknowledgedFixture() { away = false; }
    AcknowledgedFixture(const AcknowledgedFixture&) = delete;
    AcknowledgedFixture& operator=(const AcknowledgedFixture&) = delete;

    Replication& replicate() { return replication.emplace(*heap, target, how); }
    /// The target gets it, on a machine that is too busy for `confirm_timeout`, too.
    Serial put_there(std::uint64_t key, const std::string& value) {
        try {
            return put(key, value);
        } catch (const Error& error) {
            if (error.code() != errc::unconfirmed) throw;
        }
        const Serial serial = heap->last_durable();
        BOOST_REQUIRE(replication->wait_replicated(serial, seconds(60)));
        note(serial, key, value);
        return serial;
    }
    /// Commits that the target lacks, one by one, until something else happens; how many.
    template <class F>
    unsigned commit_until(F&& is_enough) {
        for (unsigned i = 0;; ++i) {
            if (is_enough()) return i;
            put(i % 50, std::string(2000, static_cast<char>('a' + i % 26)));
        }
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(acknowledge, AcknowledgedFixture)

BOOST_AUTO_TEST_CASE(a_commit_returns_when_the_target_has_it, *boost::unit_test::label("threads")) {
    how.acknowledge = Acknowledge::replicated;
    how.linger = seconds(60);  // nobody waits for that
    replicate();
    for (std::uint64_t i = 0; i < 50; ++i) {
        const Serial serial = put(i, std::to_string(i));
        BOOST_TEST(replication->replicated().value >= serial.value);
    }
    {
        Transaction outer(*heap);
        {
            Transaction inner(*heap);
            heap->find_or_construct<Map>("map")[1000] = "inner";
            away = true;
            inner.commit();  // part of the one around it
            away = false;
        }
        const Serial serial = outer.commit();
        BOOST_TEST(replication->replicated().value >= serial.value);
    }
    BOOST_TEST(replication->status().unconfirmed == 0U);
}

// What would be without it.
BOOST_AUTO_TEST_CASE(a_commit_that_did_not_wait_would_be_seen) {
    how.acknowledge = Acknowledge::replicated;
    replicate();
    target->fate = [this](std::uint64_t) {
        std::this_thread::sleep_for(milliseconds(20));
        return away ? Fate::away : Fate::works;
    };
    const Planted bug(Bug::commit_unconfirmed);
    bool is_seen = false;
    for (std::uint64_t i = 0; i < 50 && !is_seen; ++i) is_seen = replication->replicated() < put(i, std::to_string(i));
    BOOST_TEST(is_seen);
}

BOOST_AUTO_TEST_CASE(a_commit_that_is_not_confirmed_says_so_and_has_happened) {
    how.acknowledge = Acknowledge::replicated;
    how.confirm_timeout = milliseconds(30);
    replicate();
    put_there(1, "there");
    const std::uint64_t before = replication->status().unconfirmed;
    away = true;
    for (unsigned i = 0; i < 2; ++i) BOOST_TEST(throws(errc::unconfirmed, [&] { put(2 + i, "here"); }));  // nothing degrades
    BOOST_TEST(replication->status().unconfirmed == before + 2);
    {
        const ReadLock lock(*heap);
        BOOST_TEST((heap->find<Map>("map")->at(3) == "here"));
        BOOST_TEST(lock.serial().value == heap->last_durable().value);
    }
    BOOST_TEST(throws(errc::unconfirmed, [&] { transact(*heap, [&] { heap->find<Map>("map")->at(3) = "again"; }); }));
    away = false;
    BOOST_TEST(replication->wait_replicated(heap->last_durable(), seconds(60)));
    put_there(4, "both");
    replication.reset();
    const Model found = restore_it();
    BOOST_TEST(found.at(2) == "here");
    BOOST_TEST(found.at(3) == "again");
    BOOST_TEST(found.at(4) == "both");
}

BOOST_AUTO_TEST_CASE(an_undo_step_that_is_not_confirmed_is_a_step) {
    heap->attach_undo();
    how.acknowledge = Acknowledge::replicated;
    how.confirm_timeout = milliseconds(30);
    replicate();
    put_there(1, "before");
    away = true;
    BOOST_TEST(throws(errc::unconfirmed, [&] {
        UndoScope scope(*heap, "change");
        heap->find<Map>("map")->at(1) = "after";
        scope.commit();
    }));
    BOOST_TEST(throws(errc::unconfirmed, [&] { heap->undo(); }));
    away = false;
    const ReadLock lock(*heap);
    BOOST_TEST((heap->find<Map>("map")->at(1) == "before"));
}

BOOST_AUTO_TEST_CASE(transactions_of_many_threads_travel_together, *boost::unit_test::label("threads")) {
    how.acknowledge = Acknowledge::replicated;
    how.confirm_timeout = seconds(60);
    replicate();
    std::atomic<std::uint64_t> awaited{0};
    target->fate = [&](std::uint64_t) {
        while (heap->last_durable().value < awaited) std::this_thread::sleep_for(milliseconds(1));
        return Fate::works;
    };
    put(100, "there");
    constexpr unsigned at_a_time = 8;
    for (unsigned round = 0; round < 20; ++round) {
        const std::uint64_t before = replication->status().frames;
        awaited = newest().value + (round + 1) * at_a_time;
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < at_a_time; ++i) {
            threads.emplace_back([&, i] {
                Transaction transaction(*heap);
                heap->find_or_construct<Map>("map")[i] = std::to_string(round);
                const Serial serial = transaction.commit();
                if (replication->replicated() < serial) throw std::runtime_error("a commit has returned before the target has it");
            });
        }
        threads.clear();
        BOOST_TEST(replication->status().frames - before <= 3U);  // the first one waits until all of them are durable
    }
}

BOOST_AUTO_TEST_CASE(commits_that_came_together_are_awaited_together, *boost::unit_test::label("threads")) {
    how.acknowledge = Acknowledge::replicated;
    std::atomic<bool> is_held{false};
    std::atomic<bool> is_slow{false};
    std::atomic<bool> holds{false};
    target->fate = [&](std::uint64_t) {
        const bool was_held = is_held;
        holds = was_held;
        while (is_held) std::this_thread::sleep_for(milliseconds(1));
        if (!was_held && is_slow.exchange(false)) std::this_thread::sleep_for(milliseconds(200));
        return Fate::works;
    };
    replicate();
    const auto commit = [&](std::uint64_t key) { transact(*heap, [&] { heap->find_or_construct<Map>("map")[key] = "one of many"; }); };
    const auto commit_took = [&] {
        const auto begun = std::chrono::steady_clock::now();
        commit(100);
        return std::chrono::steady_clock::now() - begun;
    };
    commit(0);
    // Again where one of them came to wait too late.
    bool is_awaited = false;
    for (unsigned tries = 0; tries < 20 && !is_awaited; ++tries) {
        {
            holds = false;
            is_held = true;
            const std::uint64_t before = heap->last_durable().value;
            std::vector<std::jthread> threads;
            threads.emplace_back([&] { commit(1); });
            while (!holds) std::this_thread::yield();  // the frame with that one alone
            for (const std::uint64_t key : {2U, 3U}) threads.emplace_back([&, key] { commit(key); });
            while (heap->last_durable().value < before + 3) std::this_thread::yield();
            is_slow = true;
            is_held = false;  // the first one goes by itself, the two others in a frame that takes 200 ms
        }
        is_awaited = commit_took() >= milliseconds(90);  // two are expected, for half of that
    }
    BOOST_TEST(is_awaited);
    replication.reset();
}

BOOST_AUTO_TEST_CASE(once_it_is_stopped_commits_wait_for_this_machine_alone) {
    how.acknowledge = Acknowledge::replicated;
    how.close_timeout = milliseconds(0);
    replicate();
    away = true;
    replication->stop();
    put(1, "here");
    BOOST_TEST(replication->status().unconfirmed == 0U);
    how.confirm_timeout = milliseconds(20);
    away = false;
    replicate();
    away = true;
    BOOST_TEST(throws(errc::unconfirmed, [&] { put(2, "here"); }));
    replication.reset();
    put(3, "here");
}

BOOST_AUTO_TEST_CASE(where_commits_wait_for_no_disk_they_can_not_wait_for_another) {
    heap.reset();
    options.durability = Durability::async;
    heap.emplace(open_only, path, options);
    how.acknowledge = Acknowledge::replicated;
    BOOST_TEST(throws(errc::invalid_argument, [&] { replicate(); }));
    how.acknowledge = Acknowledge::local;
    replicate();
}

BOOST_AUTO_TEST_CASE(transactions_are_refused_before_the_log_gives_up_what_was_not_sent) {
    how.when_behind = WhenBehind::fail;
    replicate();
    put(1, "one");
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    const std::uint64_t bases = replication->status().bases;
    away = true;
    bool is_refused = false;
    commit_until([&] {
        is_refused = throws(errc::unreachable, [&] { const Transaction transaction(*heap); });
        return is_refused || states.size() > 5000;
    });
    BOOST_TEST(is_refused);
    BOOST_TEST(states.size() > 50U);  // the log had room for most of it
    away = false;
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    while (throws(errc::unreachable, [&] { const Transaction transaction(*heap); })) std::this_thread::sleep_for(milliseconds(1));
    put(7, "goes on");
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    BOOST_TEST(replication->status().bases == bases);  // each of them went, none as pages
    replication.reset();
    const std::uint64_t some = newest().value - 40;
    BOOST_TEST((restore_it({.serial = Serial{some}}) == states[some]));
}

BOOST_AUTO_TEST_CASE(transactions_that_went_on_would_be_given_up) {
    how.when_behind = WhenBehind::fail;
    replicate();
    put(1, "one");
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    const std::uint64_t bases = replication->status().bases;
    away = true;
    const Planted bug(Bug::begun_while_behind);
    commit_until([&] { return states.size() > 500; });
    away = false;
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    BOOST_TEST(replication->status().bases > bases);
}

BOOST_AUTO_TEST_CASE(transactions_wait_until_the_target_has_what_the_log_would_give_up, *boost::unit_test::label("threads")) {
    how.when_behind = WhenBehind::block;
    replicate();
    put(1, "one");
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    const std::uint64_t bases = replication->status().bases;
    away = true;
    std::atomic<unsigned> committed{0};
    std::jthread program([&] {
        for (unsigned i = 0; i < 400; ++i) {
            put(i % 50, std::string(2000, static_cast<char>('a' + i % 26)));
            ++committed;
        }
    });
    const unsigned before = halted_at(committed);
    BOOST_TEST(before < 400U);
    {
        const ReadLock lock(*heap);  // readers go on
        BOOST_TEST((heap->find<Map>("map")->at(0).size() == 2000U));
    }
    away = false;
    program.join();
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    BOOST_TEST(replication->status().bases == bases);
    replication.reset();
    BOOST_TEST((restore_it() == states.rbegin()->second));
}

BOOST_AUTO_TEST_CASE(transactions_go_on_behind_a_frame_of_all_of_them_that_was_refused_once, *boost::unit_test::label("threads")) {
    how.when_behind = WhenBehind::block;
    how.frame_bytes = std::size_t{16} << 20U;
    how.linger = milliseconds(500);  // until they wait for room
    replicate();
    put(1, "one");
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    std::atomic<bool> is_refused{false};
    target->fate = [&](std::uint64_t) { return is_refused.exchange(true) ? Fate::works : Fate::away; };
    std::atomic<unsigned> committed{0};
    std::jthread program([&] {
        for (unsigned i = 0; i < 200; ++i) {
            put(i % 50, std::string(2000, static_cast<char>('a' + i % 26)));
            ++committed;
        }
    });
    unsigned before = 0;
    do {
        before = committed;
        for (unsigned i = 0; i < 100 && committed == before; ++i) std::this_thread::sleep_for(milliseconds(200));
    } while (committed != before && committed != 200);
    BOOST_TEST(committed == 200U);
    replication->stop();  // who waits for the target goes on
    program.join();
    target->fate = nullptr;
}

BOOST_AUTO_TEST_CASE(who_waits_for_the_target_does_not_hold_up_whoever_closes_the_heap, *boost::unit_test::label("threads")) {
    how.when_behind = WhenBehind::block;
    how.close_timeout = milliseconds(0);
    replicate();
    put(1, "one");
    BOOST_TEST(replication->wait_replicated(newest(), seconds(60)));
    away = true;
    std::atomic<unsigned> committed{0};
    std::atomic<bool> is_closed{false};
    std::jthread program([&] {
        is_closed = throws(errc::closed, [&] {
            for (unsigned i = 0;; ++i) {
                put(i % 50, std::string(2000, static_cast<char>('a' + i % 26)));
                ++committed;
            }
        });
    });
    halted_at(committed);
    heap->close();
    program.join();
    BOOST_TEST(is_closed);
}

BOOST_AUTO_TEST_CASE(one_that_takes_anothers_place_is_waited_for, *boost::unit_test::label("threads")) {
    how.acknowledge = Acknowledge::replicated;
    how.confirm_timeout = milliseconds(30);
    replicate();
    put_there(1, "one");
    target = std::make_shared<PretendedTarget>();
    target->fate = [this](std::uint64_t) { return away ? Fate::away : Fate::works; };
    *replication = Replication(*heap, target, how);
    const Serial serial = put_there(2, "two");
    BOOST_TEST(replication->replicated().value >= serial.value);
    away = true;
    BOOST_TEST(throws(errc::unconfirmed, [&] { put(3, "three"); }));
}

BOOST_AUTO_TEST_CASE(once_it_is_gone_nobody_waits_and_nothing_is_kept, *boost::unit_test::label("threads")) {
    for (const bool is_fenced : {false, true}) {
        how.acknowledge = Acknowledge::replicated;
        how.confirm_timeout = milliseconds(20);
        how.when_behind = WhenBehind::fail;
        target = std::make_shared<PretendedTarget>();
        replicate();
        put_there(1, "one");
        if (is_fenced) {
            // Another attachment of another file stands there.
            std::vector<std::byte> epoch = target->read(1);
            epoch.resize(sizeof(replicate::FrameHead));
            replicate::FrameHead head;
            std::memcpy(&head, epoch.data(), sizeof head);
            head.number = target->range().last + 1;
            head.heap[0] ^= 1U;
            head.kind = replicate::FrameKind::records;
            target->put(head.number, replicate::encode(head, {}));
            BOOST_TEST(throws(errc::unconfirmed, [&] { put(2, "two"); }));
            const auto end = std::chrono::steady_clock::now() + seconds(60);
            while (replication->status().state < ReplicationState::fenced && std::chrono::steady_clock::now() < end)
                std::this_thread::sleep_for(milliseconds(1));
            BOOST_TEST((replication->status().state == ReplicationState::fenced));
        }
        replication.reset();
        BOOST_TEST(target.use_count() == 1);
        put(3, "three");
    }
}

BOOST_AUTO_TEST_CASE(many_threads_do_not_go_further_than_one, *boost::unit_test::label("threads")) {
    for (const Durability durability : {Durability::sync, Durability::async}) {
        heap.reset();
        options.durability = durability;
        heap.emplace(open_only, path, options);
        how.when_behind = WhenBehind::block;
        target = std::make_shared<PretendedTarget>();
        target->fate = [this](std::uint64_t) { return away ? Fate::away : Fate::works; };
        replicate();
        {
            Transaction transaction(*heap);
            heap->find_or_construct<Map>("map");
            transaction.commit();
        }
        heap->wait_durable(ReadLock(*heap).serial());
        BOOST_TEST(replication->wait_replicated(heap->last_durable(), seconds(60)));
        const std::uint64_t bases = replication->status().bases;
        away = true;
        std::atomic<unsigned> committed{0};
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < 12; ++i) {
            threads.emplace_back([&, i] {
                for (unsigned k = 0; k < 12; ++k) {
                    Transaction transaction(*heap);
                    (*heap->find<Map>("map"))[i] = taiyen::string(20'000, static_cast<char>('a' + k));
                    transaction.commit();
                    ++committed;
                }
            });
        }
        const unsigned before = halted_at(committed);
        BOOST_TEST(before < 144U);
        away = false;
        threads.clear();
        heap->wait_durable(ReadLock(*heap).serial());
        BOOST_TEST(replication->wait_replicated(heap->last_durable(), seconds(60)));
        BOOST_TEST(replication->status().bases == bases);
        replication.reset();
    }
}

BOOST_AUTO_TEST_CASE(commits_are_confirmed_while_a_base_is_sent, *boost::unit_test::label("threads")) {
    how.acknowledge = Acknowledge::replicated;
    how.confirm_timeout = seconds(60);
    {
        Transaction transaction(*heap);
        heap->construct<taiyen::vector<std::byte>>("much", std::size_t{24} << 20U, std::byte{1});
        transaction.commit();
    }
    how.codec = Codec::none;
    const auto held = std::make_shared<HeldPages>(target, *heap);
    replication.emplace(*heap, held, how);
    held->pages = 0;
    std::atomic<bool> is_sent{false};
    std::jthread base([&] {
        replication->make_base();
        is_sent = true;
    });
    while (held->pages == 0) std::this_thread::sleep_for(milliseconds(1));
    unsigned confirmed = 0;
    for (std::uint64_t i = 0; !is_sent; ++i) {
        put(i % 10, std::to_string(i));
        confirmed += is_sent ? 0 : 1;
    }
    BOOST_TEST(confirmed >= 3U);
    base.join();
    put(77, "behind it");
    replication.reset();
    BOOST_TEST((restore_it().at(77) == "behind it"));
}

BOOST_AUTO_TEST_CASE(what_was_not_committed_or_is_not_durable_waits_for_nobody) {
    how.acknowledge = Acknowledge::replicated;
    how.confirm_timeout = seconds(600);
    replicate();
    put(1, "one");
    away = true;
    {
        Transaction looks(*heap);
        BOOST_TEST((heap->find<Map>("map")->at(1) == "one"));
        looks.commit();
    }
    {
        const RelaxedLoading loading(*heap);
        put(2, "two");
        away = false;
    }
    put(3, "three");
    BOOST_TEST(replication->status().unconfirmed == 0U);
}

BOOST_AUTO_TEST_CASE(a_report_of_replication_may_write_to_the_heap, *boost::unit_test::label("threads")) {
    how.acknowledge = Acknowledge::replicated;
    how.when_behind = WhenBehind::block;
    how.confirm_timeout = seconds(600);
    replicate();
    put(1, "one");
    static TransactionalHeap* written = nullptr;
    static std::atomic<int> outcome{0};
    written = &*heap;
    outcome = 0;
    const ReportHandler before = set_report_handler([](const Incident&) noexcept {
        if (outcome.exchange(1) != 0) return;
        outcome = throws(errc::unconfirmed, [] { transact(*written, [] { written->find<Map>("map")->at(1) = "told"; }); }) ? 2 : 3;
    });
    away = true;
    std::jthread program([&] { put(2, "two"); });
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    while (outcome < 2 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
    BOOST_TEST(outcome == 2);
    away = false;
    program.join();
    set_report_handler(before);
}

BOOST_AUTO_TEST_CASE(going_back_many_steps_goes_on_where_one_is_not_confirmed) {
    heap->attach_undo();
    how.acknowledge = Acknowledge::replicated;
    how.confirm_timeout = milliseconds(20);
    replicate();
    put_there(1, "first");
    const UndoMark mark = heap->undo_mark();
    for (int i = 0; i < 4; ++i) put_there(1, "later " + std::to_string(i));
    away = true;
    BOOST_TEST(throws(errc::unconfirmed, [&] { heap->go_to(mark); }));
    const ReadLock lock(*heap);
    BOOST_TEST((heap->find<Map>("map")->at(1) == "first"));
    away = false;
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(acknowledge_fence, FollowedFixture)

BOOST_AUTO_TEST_CASE(whoever_lost_its_place_confirms_nothing) {
    const Quiet quiet;
    ReplicationOptions how = taiyen::replicate::test::quick();
    how.acknowledge = Acknowledge::replicated;
    replication.reset();
    replication.emplace(*heap, target, how);
    put(1, "one");
    follow();
    const TransactionalHeap promoted = std::move(*follower).promote();
    BOOST_TEST(get(promoted, 1) == "one");
    BOOST_TEST(throws(errc::unconfirmed, [&] { put(2, "two"); }));
    BOOST_TEST(throws(errc::fenced, [&] { put(3, "three"); }));
}

BOOST_AUTO_TEST_SUITE_END()
