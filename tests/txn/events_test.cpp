// What a heap with transactions tells the event handler, which may read the heap meanwhile.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

/// Counts events while it lives; a heap that it knows is read at each of them.
struct Counting {
    static inline std::array<std::atomic<std::uint64_t>, 16> counts{};
    static inline std::atomic<const TransactionalHeap*> read{nullptr};
    static inline std::atomic<std::int64_t> waited{0};  ///< microseconds, of the last one that waited
    static inline std::atomic<std::uint64_t> replayed{0};

    static std::uint64_t count(EventKind kind) { return counts[static_cast<std::size_t>(kind)]; }
    static void hear(const Event& event) noexcept {
        if (event.kind == EventKind::stalled || event.kind == EventKind::behind) waited = event.took.count();
        if (event.kind == EventKind::recovered) replayed = event.restoration->transactions_replayed;
        if (const TransactionalHeap* const heap = read) {
            if (heap->stats().live_blocks == 0 || heap->transaction_stats().log_capacity_bytes == 0) return;
        }
        ++counts[static_cast<std::size_t>(event.kind)];
    }
    Counting() {
        for (auto& count : counts) count = 0;
        set_event_handler(&hear);
    }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;
    ~Counting() {
        set_event_handler(nullptr);
        read = nullptr;
    }
};
}  // namespace

BOOST_FIXTURE_TEST_SUITE(transaction_events, TransactionFixture)

BOOST_AUTO_TEST_CASE(what_recovery_has_replayed_is_told_and_stands_in_the_file) {
    const Counting counting;
    for (int i = 0; i < 3; ++i) push(i);
    crash();
    set_event_handler(&Counting::hear);  // all was told then
    BOOST_TEST(Counting::count(EventKind::recovered) == 1U);
    BOOST_TEST(Counting::count(EventKind::opened) == 1U);
    BOOST_TEST(Counting::count(EventKind::closed) == 1U);  // the one that was left
    BOOST_TEST(Counting::replayed == 3U);
    BOOST_TEST((heap->restoration().cause == OpeningCause::crash));
    BOOST_TEST(read_parameters(path).last_restoration.value().transactions_replayed == 3U);
    push(3);
    heap->snapshot();
    set_event_handler(&Counting::hear);
    BOOST_TEST(Counting::count(EventKind::saved) >= 1U);
    reopen();
    BOOST_TEST((heap->restoration().cause == OpeningCause::closed));
    BOOST_TEST(read_parameters(path).last_restoration.value().transactions_replayed == 3U);
}

BOOST_AUTO_TEST_CASE(a_commit_that_waits_for_the_logs_room_is_told_to_a_handler_that_reads_the_heap, *boost::unit_test::label("threads")) {
    PersistentOptions full = small_heap();
    full.log_capacity = std::size_t{64} << 10U;
    replace(full);
    push(0);
    const Counting counting;
    Counting::read = &*heap;
    std::atomic<bool> done = false;
    std::thread committer([&] {
        for (int i = 1; !done; ++i) push(i % 100);
    });
    while (Counting::count(EventKind::stalled) == 0) {
        const auto saves = HeapAccess::file(*heap).files().hold_saves();
        std::this_thread::sleep_for(3 * stall_told_min);
    }
    done = true;
    committer.join();
    set_event_handler(nullptr);
    BOOST_TEST(Counting::waited >= std::chrono::microseconds(stall_told_min).count());
    BOOST_TEST(Counting::count(EventKind::saved) >= 1U);
}

BOOST_AUTO_TEST_CASE(a_commit_that_the_loss_window_holds_back_is_told) {
    PersistentOptions late = small_heap();
    late.durability = Durability::async;
    late.loss_window = std::chrono::microseconds(0);
    replace(late);
    const Counting counting;
    for (int i = 0; Counting::count(EventKind::behind) == 0; ++i) push(i % 100);
    BOOST_TEST(Counting::count(EventKind::poisoned) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
