#include "crash/fault_sweep.hpp"

#include <cerrno>
#include <new>
#include <span>

#include <taiyen/base/error.hpp>

#include <unistd.h>

#include "base/checksum.hpp"
#include "crash/fault_world.hpp"
#include "crash/heap_scenarios.hpp"
#include "crash/state_note.hpp"
#include "crash/txn_scenarios.hpp"
#include "store/scarce_memory.hpp"

namespace taiyen::crash {
namespace {

constexpr io::Call that_need_space = io::Call::write | io::Call::write_durable | io::Call::allocate | io::Call::sync | io::Call::create |
                                     io::Call::create_unnamed | io::Call::publish | io::Call::resize | io::Call::punch;

/// No scenario makes more calls or allocations; ends a sweep that fails every time.
constexpr std::uint64_t k_max = 60'000;
constexpr std::size_t told_max = 8;
/// A sample strikes one of so many first calls or allocations.
constexpr std::uint64_t sampled_k_max = 24;

void attempt(const std::function<void()>& what) {
    try {
        what();
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {}
}

bool live_with(const Scenario& scenario, const Image& base, const Scenario::Past& past, const Misfortune& misfortune, Bug bug) {
    World world(base, misfortune);
    History after;
    std::uint64_t acknowledged = 0;
    std::uint64_t issued = 0;
    bool struck = false;
    planted_bug = bug;
    {
        HeapLife life(world.faulty, nullptr, scenario.setup, past.states);
        const std::uint64_t before = life.issued();
        world.begin();
        const bool went_through = world.lives([&] { scenario.life(life); });
        struck = world.struck(went_through);
        const bool scarce_memory_struck = struck && misfortune.kind->what == FaultKind::What::memory;  // the model may have lost its thread, too
        if (life.is_open() && !went_through && !scarce_memory_struck && life.issued() > before && life.issued() > life.acknowledged())
            attempt([&] { life.save(); });  // once more: either it really saves, or the heap says that it is poisoned
        if (life.is_open() && misfortune.variant % 2 == 0) attempt([&] { life.close(); });
        acknowledged = life.acknowledged();
        issued = life.issued();
        after = life.history();
        world.end();
        end_the_world(world.disk, misfortune);
        life.abandon();
    }
    planted_bug = Bug::none;
    HeapSubject subject(scenario.setup, after, past.lost);
    compare_bounds(subject.check(world.disk, mix(misfortune.k, acknowledged)), acknowledged, issued);
    return struck;
}

bool live_with(const TxnScenario& scenario, const Image& base, const TxnScenario::Past& past, const Misfortune& misfortune, Bug bug) {
    World world(base, misfortune);
    TxnSetup setup = scenario.setup;
    setup.scarce = true;
    TxnHistory after;
    std::uint64_t acknowledged = 0;
    std::uint64_t issued = 0;
    bool struck = false;
    planted_bug = bug;
    {
        TxnLife life(world.faulty, nullptr, setup, past.states);
        world.begin();
        const bool went_through = world.lives([&] { scenario.life(life); });
        struck = world.struck(went_through);
        if (life.is_open() && life.is_transactional())
            attempt([&] { life.transact(misfortune.variant); });  // it really commits, or the heap says that it is poisoned
        if (life.is_open() && misfortune.variant % 2 == 0) attempt([&] { life.close(); });
        acknowledged = life.acknowledged();
        issued = life.issued();
        world.end();
        end_the_world(world.disk, misfortune);
        life.abandon();
        after = life.history();
    }
    planted_bug = Bug::none;
    TxnSubject subject(setup, after, past.lost);
    compare_bounds(subject.check(world.disk, misfortune.variant), acknowledged, issued);
    return struck;
}

template <class Piece>
std::vector<FaultScenario> fault_scenarios(const std::vector<Piece>& pieces, unsigned variants, double calls_apart, double allocations_apart) {
    std::vector<FaultScenario> all;
    for (const Piece& piece : pieces) {
        all.push_back({.name = piece.name,
                       .variants = variants,
                       .calls_apart = calls_apart,
                       .allocations_apart = allocations_apart,
                       .prepare = [piece](std::uint64_t) -> std::function<bool(const Misfortune&, Bug)> {
                           io::SimulatedStorage disk;
                           const auto past = piece.live_before(disk);
                           return [piece, past, base = image_of(disk)](const Misfortune& misfortune, Bug bug) {
                               return live_with(piece, base, past, misfortune, bug);
                           };
                       }});
    }
    return all;
}

/// Misfortunes of one kind that strike a scenario one by one, and what came of them.
class Strikes {
public:
    Strikes(const FaultScenario& scenario, const FaultKind& kind, std::uint64_t seed, Bug bug)
        : name_(scenario.name + " " + kind.name), seed_(seed), bug_(bug) {
        repeatable_random = seed | 1U;
        live_ = scenario.prepare(seed);
    }

    /// Whether it struck: there was a k-th one.
    bool one(const Misfortune& misfortune) {
        const std::string id = name_ + words(misfortune);
        bool struck = true;
        note_current_state(id);
        ::alarm(hang_seconds);
        repeatable_random = mix(seed_, misfortune.k) | 1U;
        try {
            struck = live_(misfortune, bug_);
        } catch (const std::exception& error) {
            planted_bug = Bug::none;
            scarce_memory.armed = false;
            if (found_.what.size() < told_max) found_.what.push_back(id + ": " + error.what());
            ++found_.wrong;
        }
        ::alarm(0);
        found_.faults += struck ? 1 : 0;
        return struck;
    }
    const SweepResult& found() const { return found_; }

private:
    static std::string words(const Misfortune& misfortune) {
        const std::uint64_t aftermath = misfortune.variant / 2 % 3;
        return (misfortune.sticky ? " from " : " at ") + std::to_string(misfortune.k) + (misfortune.variant % 2 == 0 ? ", closed" : "") +
               (aftermath == 0   ? ", the process dies"
                : aftermath == 1 ? ", power fails"
                                 : ", power fails and part of the cache survives");
    }

    const SilentReports silent_;
    std::string name_;
    std::uint64_t seed_;
    Bug bug_;
    std::function<bool(const Misfortune&, Bug)> live_;
    SweepResult found_;
};

}  // namespace

const std::vector<FaultKind>& fault_kinds() {
    static const std::vector<FaultKind> kinds{
        {.name = "EIO", .error = EIO},
        {.name = "ENOSPC", .error = ENOSPC, .calls = that_need_space},
        {.name = "EDQUOT", .error = EDQUOT, .short_bytes = 512, .calls = that_need_space},
        {.name = "short-write", .error = EIO, .short_bytes = 1536, .calls = io::Call::write | io::Call::write_durable},
        {.name = "EMFILE",
         .error = EMFILE,
         .calls = io::Call::open | io::Call::create | io::Call::create_unnamed | io::Call::sync_directory | io::Call::read_direct},
        {.name = "EACCES",
         .error = EACCES,
         .calls = io::Call::find | io::Call::open | io::Call::create | io::Call::publish | io::Call::rename | io::Call::remove},
        {.name = "ENOMEM", .error = ENOMEM, .calls = io::Call::map},
        {.name = "memory", .what = FaultKind::What::memory},
        {.name = "full-disk", .what = FaultKind::What::space},
    };
    return kinds;
}

ScarceMemoryHere::ScarceMemoryHere(const Misfortune& misfortune) {
    scarce_memory = {static_cast<std::int64_t>(misfortune.k) - 1, misfortune.kind->what == FaultKind::What::memory, misfortune.sticky, 0};
}
ScarceMemoryHere::~ScarceMemoryHere() { scarce_memory.armed = false; }
std::uint64_t ScarceMemoryHere::failed() { return scarce_memory.failed; }

std::vector<FaultScenario> all_fault_scenarios() {
    std::vector<FaultScenario> all = fault_scenarios(scenarios(), 3, 5, 20);
    for (FaultScenario& one : fault_scenarios(txn_scenarios(), 1, 8, 32)) all.push_back(std::move(one));
    for (FaultScenario& one : log_heap_fault_scenarios()) all.push_back(std::move(one));
    return all;
}

SweepResult sweep(const FaultScenario& scenario, const FaultKind& kind, std::uint64_t step, std::uint64_t seed, Bug bug) {
    Strikes strikes(scenario, kind, seed, bug);
    const unsigned variants = kind.what == FaultKind::What::memory ? 1 : scenario.variants;
    for (const bool sticky : {false, true}) {
        if (sticky && kind.what == FaultKind::What::space) break;
        bool struck = true;
        for (std::uint64_t k = 1 + seed % step; struck && k < k_max; k += step) {
            struck = false;
            for (unsigned v = 0; v < variants; ++v) {
                struck = strikes.one({.kind = &kind, .k = k, .sticky = sticky, .variant = mix(seed, k) / 6 * 6 + (2 * v + k / step) % 6}) || struck;
                if (bug != Bug::none && strikes.found().wrong != 0) return strikes.found();
            }
        }
    }
    return strikes.found();
}

SweepResult sample(const FaultScenario& scenario, const FaultKind& kind, std::uint64_t seed) {
    Strikes strikes(scenario, kind, seed, Bug::none);
    const std::string names = scenario.name + kind.name;
    std::uint64_t drawn = mix(seed, checksum(std::as_bytes(std::span(names)), 0));
    for (const bool sticky : {false, true}) {
        if (sticky && kind.what == FaultKind::What::space) break;
        drawn = mix(drawn, 1);
        // Where there are fewer calls than that, an earlier one.
        for (std::uint64_t k = 1 + drawn % sampled_k_max;
             k != 0 && !strikes.one({.kind = &kind, .k = k, .sticky = sticky, .variant = drawn / sampled_k_max}); k /= 2) {}
    }
    return strikes.found();
}

}  // namespace taiyen::crash
