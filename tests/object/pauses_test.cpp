// Saves, checks and walks of a heap on which many threads are at work: in a pause of the ObjectManager they see it between two requests, never within one.

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include <taiyen/taiyen.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "threads.hpp"

namespace pauses_test {

/// What money is moved between; the sum stays.
struct Accounts {
    static constexpr std::size_t count = 64;
    static constexpr std::int64_t each = 1000;
    std::array<std::int64_t, count> money;

    std::int64_t sum() const { return std::accumulate(money.begin(), money.end(), std::int64_t{0}); }
};

}  // namespace pauses_test

namespace {

using namespace taiyen;
using namespace pauses_test;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::test::seed_of_run;

constexpr std::int64_t total = Accounts::each * static_cast<std::int64_t>(Accounts::count);

struct PausesFixture {
    const ScratchDirectory directory;
    PersistentOptions options = [] {
        PersistentOptions found;
        found.capacity = std::size_t{64} << 20U;
        return found;
    }();

    /// `look` is called in a pause, so often, while three threads move money; then the heap is gone, with what wasn't saved.
    template <class Look>
    void work(int times, Look&& look) {
        SnapshotHeap heap(open_or_create, directory / "heap.tyn", options);
        Accounts* accounts = heap.find<Accounts>("accounts");
        if (accounts == nullptr) {
            accounts = &heap.construct<Accounts>("accounts");
            accounts->money.fill(Accounts::each);
            heap.snapshot();
        }
        ObjectManager<std::int64_t> manager({.load = [&](std::int64_t id) { return &accounts->money[static_cast<std::size_t>(id)]; }});
        const std::uint64_t seed = seed_of_run();
        std::atomic<bool> over{false};
        at_once(4, [&](unsigned number) {
            if (number == 0) {
                for (int i = 0; i < times; ++i) {
                    const std::uint64_t before = manager.statistics().granted;
                    while (manager.statistics().granted < before + 50) std::this_thread::yield();
                    const auto quiet = manager.pause();
                    look(heap, *accounts);
                }
                over = true;
                return;
            }
            std::mt19937_64 random(seed + number);
            while (!over) {
                const auto from = static_cast<std::int64_t>(random() % Accounts::count);
                const auto to = static_cast<std::int64_t>(random() % Accounts::count);
                auto both = manager.checkout({from, to});
                const auto amount = static_cast<std::int64_t>(random() % 50);
                both.edit(from) -= amount;
                if (random() % 4 == 0) std::this_thread::yield();  // somebody is in the middle of it now
                both.edit(to) += amount;
            }
        });
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pauses, PausesFixture)

BOOST_AUTO_TEST_CASE(what_is_saved_in_a_pause_holds_no_request_half) {
    for (int round = 0; round < 4; ++round) {
        work(6, [](SnapshotHeap& heap, const Accounts&) { heap.snapshot(); });
        SnapshotHeap again(open_only, directory / "heap.tyn", options);
        BOOST_TEST(again.find<Accounts>("accounts")->sum() == total);
    }
}

BOOST_AUTO_TEST_CASE(a_walk_over_the_heap_in_a_pause_finds_it_whole) {
    work(6, [](SnapshotHeap& heap, const Accounts& accounts) {
        require(accounts.sum() == total, "nobody is within a request");
        require(heap.verify().ok(), "the heap is whole");
        require(find_leaks(heap).leaks.empty(), "nothing is lost");
    });
}

BOOST_AUTO_TEST_SUITE_END()
