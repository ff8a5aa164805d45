// Calls on the storage seam fail under a transactional heap, once and for good. Whatever happens ends in a typed error or in success, nobody is told durable what isn't, and what was told is
// there after reopening.

#include <cerrno>
#include <cstdio>
#include <new>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "crash/budget.hpp"
#include "crash/heap_scenarios.hpp"
#include "crash/txn_scenarios.hpp"
#include "io/faulty_storage.hpp"

namespace taiyen::crash {
namespace {

struct FaultKind {
    const char* name;
    int error;
    ByteCount short_bytes;
    io::Call calls;
};

constexpr io::Call that_need_space = io::Call::write | io::Call::write_durable | io::Call::allocate | io::Call::sync | io::Call::create | io::Call::create_unnamed |
                                     io::Call::publish | io::Call::resize | io::Call::punch;

constexpr FaultKind any_call{"EIO", EIO, 0, io::Call::any};
constexpr FaultKind full_disk{"ENOSPC", ENOSPC, 0, that_need_space};
constexpr FaultKind short_write{"short-write", EIO, 1536, io::Call::write | io::Call::write_durable};

/// No scenario makes more calls; ends a sweep that fails every time.
constexpr std::uint64_t calls_max = 5000;

struct Found {
    std::uint64_t faults = 0;
    std::uint64_t wrong = 0;
    std::string first;  ///< what was wrong
};

/// One life with one fault. Returns whether the fault struck. Throws std::runtime_error if anything is wrong.
bool live_with_fault(const TxnScenario& scenario, const Image& base, const TxnHistory& past, const io::Fault& fault, std::uint64_t variant, Bug bug) {
    io::SimulatedStorage disk({.power_cuts = true});
    disk.add_directory("/disk");
    { const Replay fills(disk, base); }
    io::FaultyStorage faulty(disk);
    TxnHistory after;
    std::uint64_t acknowledged = 0;
    std::uint64_t issued = 0;
    planted_bug = bug;
    {
        TxnLife life(faulty, nullptr, scenario.setup, past);
        faulty.arm(fault);
        const auto attempt = [](const std::function<void()>& what) {
            try {
                what();
            } catch (const Error&) {
            } catch (const std::bad_alloc&) {
            }
        };
        attempt([&] { scenario.life(life); });
        if (life.is_open() && life.is_transactional()) attempt([&] { life.transact(variant); });  // it really commits, or the heap says that it is poisoned
        if (life.is_open() && variant % 2 == 0) attempt([&] { life.close(); });
        acknowledged = life.acknowledged();
        issued = life.issued();
        faulty.disarm();
        switch (variant / 2 % 3) {
            case 0: disk.disconnect(); break;  // the process dies
            case 1: disk.power_cut(); break;
            default: disk.power_cut(variant); break;
        }
        life.abandon();
        after = life.history();
    }
    planted_bug = Bug::none;
    TxnSubject subject(scenario.setup, after);
    const std::uint64_t found = subject.check(disk, variant);
    if (found < acknowledged || found > issued) {
        throw std::runtime_error("state " + std::to_string(found) + " was found; " + std::to_string(acknowledged) + " was told durable, " + std::to_string(issued) + " begun");
    }
    return faulty.fired() != 0;
}

Found sweep(const TxnScenario& scenario, const std::vector<FaultKind>& kinds, std::uint64_t step, std::uint64_t seed, Bug bug = Bug::none) {
    const SilentReports silent;
    Found found;
    repeatable_random = seed | 1U;
    Image base;
    TxnHistory past{TxnState{}};
    if (scenario.before) {
        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        past = live_before(scenario, disk);
        base = image_of(disk);
    }
    for (const FaultKind& kind : kinds) {
        for (const bool sticky : {false, true}) {
            for (std::uint64_t k = 1 + seed % step;; k += step) {
                const std::uint64_t variant = mix(seed, k) / 2 * 2 + (k & 1U);
                const std::string id = std::string(scenario.name) + " " + kind.name + (sticky ? " from call " : " at call ") + std::to_string(k) + (variant % 2 == 0 ? ", closed" : "");
                note_current_state(id);
                repeatable_random = mix(seed, k) | 1U;
                bool struck = false;
                try {
                    struck = live_with_fault(scenario, base, past, {.at = k, .error = kind.error, .sticky = sticky, .calls = kind.calls, .short_bytes = kind.short_bytes}, variant, bug);
                } catch (const std::exception& error) {
                    planted_bug = Bug::none;
                    if (found.wrong++ == 0) found.first = id + ": " + error.what();
                    if (bug != Bug::none) return found;
                    BOOST_ERROR(id << ": " << error.what());
                    struck = k < calls_max;
                }
                if (!struck) break;
                ++found.faults;
            }
        }
    }
    return found;
}

BOOST_AUTO_TEST_SUITE(a_transactional_heap_on_a_failing_disk)

BOOST_AUTO_TEST_CASE(loses_nothing_that_was_told_durable_whichever_call_fails) {
    watch_for_crashes();
    const std::uint64_t seed = seed_of_this_run();
    const auto step = static_cast<std::uint64_t>(std::max(1.0, 2.0 / budget()));  // small budgets look at every n-th call only
    std::uint64_t total = 0;
    for (const TxnScenario& scenario : txn_scenarios()) {
        const Found found = sweep(scenario, {any_call, full_disk, short_write}, step, seed);
        std::printf("%-20s %10llu faults\n", scenario.name, static_cast<unsigned long long>(found.faults));
        std::fflush(stdout);
        total += found.faults;
    }
    std::printf("total: %llu faults\n", static_cast<unsigned long long>(total));
    BOOST_TEST(total > 0U);
}

BOOST_AUTO_TEST_CASE(with_a_safeguard_missing_is_caught_by_a_fault) {
    watch_for_crashes();
    const std::uint64_t seed = seed_of_this_run();
    struct PlantedBug {
        Bug bug;
        const char* name;
        const char* scenario;
        FaultKind fault;
    };
    const auto scenarios = txn_scenarios();
    for (const PlantedBug& planted : {PlantedBug{Bug::wake_before_poison, "wake_before_poison", "txn-commit", short_write}}) {
        for (const TxnScenario& scenario : scenarios) {
            if (std::string_view(scenario.name) != planted.scenario) continue;
            BOOST_TEST(sweep(scenario, {planted.fault}, 1, seed).wrong == 0U);
            const Found found = sweep(scenario, {planted.fault}, 1, seed, planted.bug);
            std::printf("%-28s %s\n", planted.name, found.wrong != 0 ? found.first.c_str() : "NOT CAUGHT");
            BOOST_CHECK_MESSAGE(found.wrong != 0, planted.name << " was not caught");
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
