// Every call on the storage seam fails in turn: k = 1, 2, 3 … until none fails any more, once and sticky, with several errors. Whatever happens ends in a typed error
// or in success, and what was acknowledged is there after reopening.

#include <cerrno>
#include <cstdio>
#include <new>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "crash/budget.hpp"
#include "crash/heap_scenarios.hpp"
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

constexpr FaultKind fault_kinds[] = {
    {"EIO", EIO, 0, io::Call::any},
    {"ENOSPC", ENOSPC, 0, that_need_space},
    {"EDQUOT", EDQUOT, 512, that_need_space},
    {"short-write", EIO, 1536, io::Call::write | io::Call::write_durable},
    {"EMFILE", EMFILE, 0, io::Call::open | io::Call::create | io::Call::create_unnamed | io::Call::sync_directory | io::Call::read_direct},
};

/// What the world does after the program gave up.
enum class Aftermath { process_dies, power_fails, power_fails_somewhere };

const char* name_of(Aftermath aftermath) {
    return aftermath == Aftermath::process_dies ? "the process dies" : aftermath == Aftermath::power_fails ? "power fails" : "power fails and part of the cache survives";
}

/// No scenario makes more calls; ends a sweep that fails every time.
constexpr std::uint64_t calls_max = 5000;

/// One life with one fault. Returns whether the fault struck. Throws std::runtime_error if anything is wrong.
bool live_with_fault(const Scenario& scenario, const Image& base, const Past& past, const io::Fault& fault, Aftermath aftermath, bool closes) {
    io::SimulatedStorage disk({.power_cuts = true});
    disk.add_directory("/disk");
    { const Replay fills(disk, base); }
    io::FaultyStorage faulty(disk);
    History after;
    std::uint64_t acknowledged = 0;
    std::uint64_t issued = 0;
    {
        HeapLife life(faulty, nullptr, scenario.setup, past.history);
        faulty.arm(fault);
        const std::uint64_t before = life.issued();
        try {
            scenario.life(life);
        } catch (const Error&) {
        } catch (const std::bad_alloc&) {
        }
        if (life.is_open() && life.issued() > before && life.issued() > life.acknowledged()) {
            // A save failed. Once more: either it really saves, or the heap says that it is poisoned.
            try {
                life.save();
            } catch (const Error&) {
            } catch (const std::bad_alloc&) {
            }
        }
        if (life.is_open() && closes) {
            try {
                life.close();
            } catch (const Error&) {
            }
        }
        acknowledged = life.acknowledged();
        issued = life.issued();
        after = life.history();
        faulty.disarm();
        switch (aftermath) {
            case Aftermath::process_dies: disk.disconnect(); break;
            case Aftermath::power_fails: disk.power_cut(); break;
            case Aftermath::power_fails_somewhere: disk.power_cut(mix(fault.at, static_cast<std::uint64_t>(fault.error))); break;
        }
        life.abandon();
    }
    HeapSubject subject(scenario.setup, after, past.lost);
    const std::uint64_t found = subject.check(disk, mix(fault.at, acknowledged));
    if (found < acknowledged || found > issued) {
        throw std::runtime_error("save " + std::to_string(found) + " was found; " + std::to_string(acknowledged) + " was acknowledged, " + std::to_string(issued) + " begun");
    }
    return faulty.fired() != 0;
}

BOOST_AUTO_TEST_SUITE(a_heap_on_a_failing_disk)

BOOST_AUTO_TEST_CASE(loses_nothing_acknowledged_whichever_call_fails) {
    watch_for_crashes();
    const SilentReports silent;
    const std::uint64_t seed = seed_of_this_run();
    const auto step = static_cast<std::uint64_t>(std::max(1.0, 1.0 / (budget() * 20.0)));  // small budgets look at every n-th call only
    std::uint64_t total = 0;
    std::printf("%-20s %10s\n", "scenario", "faults");
    for (const Scenario& scenario : scenarios()) {
        repeatable_random = seed | 1U;
        Image base;
        Past past{History{Model{}}, std::nullopt};
        if (scenario.before) {
            io::SimulatedStorage disk;
            disk.add_directory("/disk");
            past = live_before(scenario, disk);
            base = image_of(disk);
        }
        std::uint64_t faults = 0;
        for (const FaultKind& kind : fault_kinds) {
            for (const bool sticky : {false, true}) {
                for (std::uint64_t k = 1;; k += step) {
                    bool struck = false;
                    for (const Aftermath aftermath : {Aftermath::process_dies, Aftermath::power_fails, Aftermath::power_fails_somewhere}) {
                        const bool closes = (k / step + static_cast<std::uint64_t>(aftermath)) % 2 == 0;
                        const std::string id = std::string(scenario.name) + " " + kind.name + (sticky ? " from call " : " at call ") + std::to_string(k) +
                                               (closes ? ", closed, " : ", ") + name_of(aftermath);
                        note_current_state(id);
                        repeatable_random = mix(seed, k) | 1U;
                        try {
                            struck = live_with_fault(scenario, base, past,
                                                     {.at = k, .error = kind.error, .sticky = sticky, .calls = kind.calls, .short_bytes = kind.short_bytes}, aftermath, closes);
                        } catch (const std::exception& error) {
                            BOOST_ERROR(id << ": " << error.what());
                            struck = k < calls_max;
                        }
                        faults += struck ? 1 : 0;
                    }
                    if (!struck) {
                        break;
                    }
                }
            }
        }
        std::printf("%-20s %10llu\n", scenario.name, static_cast<unsigned long long>(faults));
        std::fflush(stdout);
        total += faults;
    }
    std::printf("total: %llu faults\n", static_cast<unsigned long long>(total));
    BOOST_TEST(total > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
