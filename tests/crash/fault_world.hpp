#pragma once
/// The world of one misfortune: a disk with what went before, on which something lives until it can't go on.

#include <cstdint>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>

#include <taiyen/base/error.hpp>

#include "crash/fault_sweep.hpp"
#include "crash/replay.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_storage.hpp"
#include "store/scarce_memory.hpp"

namespace taiyen::crash {

/// What the world does after the program gave up. Scarce memory ends in no power cut.
inline void end_the_world(io::SimulatedStorage& disk, const Misfortune& misfortune) {
    switch (misfortune.kind->what == FaultKind::What::memory ? 0 : misfortune.variant / 2 % 3) {
        case 0: disk.disconnect(); break;  // the process dies
        case 1: disk.power_cut(); break;
        default: disk.power_cut(misfortune.variant); break;
    }
}

/// While it lives, no allocation fails: a model needs some.
class PlentyOfMemory {
public:
    PlentyOfMemory() { scarce_memory.armed = false; }
    PlentyOfMemory(const PlentyOfMemory&) = delete;
    PlentyOfMemory& operator=(const PlentyOfMemory&) = delete;
    ~PlentyOfMemory() { scarce_memory.armed = was_armed_; }

private:
    bool was_armed_ = scarce_memory.armed;
};

/// A disk with what went before, and the misfortune.
struct World {
    World(const Image& base, const Misfortune& misfortune_now) : misfortune(misfortune_now) {
        add_directories(disk);
        { const Replay fills(disk, base); }
    }
    void begin() {
        const FaultKind& kind = *misfortune.kind;
        if (kind.what == FaultKind::What::call)
            faulty.arm({.at = misfortune.k, .error = kind.error, .sticky = misfortune.sticky, .calls = kind.calls, .short_bytes = kind.short_bytes});
        else if (kind.what == FaultKind::What::space)
            disk.set_space(disk.used_bytes() + (misfortune.k - 1) * 2 * page_bytes);
    }
    /// Runs it with scarce memory, if that is what is scarce. Returns whether it went through.
    bool lives(const std::function<void()>& life) {
        try {
            const ScarceMemoryHere scarce(misfortune);
            life();
        } catch (const Error&) {
            return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
        return true;
    }
    void end() {
        faulty.disarm();
        disk.set_space(~ByteCount{0});
    }
    bool struck(bool went_through) const {
        switch (misfortune.kind->what) {
            case FaultKind::What::call: return faulty.fired() != 0;
            case FaultKind::What::memory: return ScarceMemoryHere::failed() != 0;
            case FaultKind::What::space: return !went_through;
        }
        return false;
    }

    Misfortune misfortune;
    // A disk that is ready for power cuts needs memory of its own, which must not be scarce.
    io::SimulatedStorage disk{{.power_cuts = misfortune.kind->what != FaultKind::What::memory}};
    io::FaultyStorage faulty{disk};
};

inline void compare_bounds(std::uint64_t found, std::uint64_t acknowledged, std::uint64_t issued) {
    if (found < acknowledged || found > issued) {
        throw std::runtime_error("save " + std::to_string(found) + " was found; " + std::to_string(acknowledged) + " was acknowledged, " +
                                 std::to_string(issued) + " begun");
    }
}

}  // namespace taiyen::crash
