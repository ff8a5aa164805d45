#pragma once
/// ProcessBarrier: a full fence in every running thread of the process, executed by the thread that can wait: the others pay nothing for their side until it is asked for.
///
/// membarrier(2). In a virtual machine one call may take 20 µs, of the caller and of each thread that it interrupts.
/// The thread sanitizer doesn't know what membarrier does: under it nothing is asked for, and who relies on this must use sequentially consistent operations instead.
/// Thread rule: safe.

#include "base/sanitizers.hpp"

namespace taiyen::txn {

class ProcessBarrier {
public:
    /// Whether the system has it and allows it. What was allowed may be refused later: then `execute` finds another way, and this says false.
    static bool is_there() noexcept;
    /// Every running thread of the process executes a full fence between the call's begin and its return.
    static void execute() noexcept;

    /// For tests: asks the kernel, or plays one that refuses. Returns the call before; what was known of the system is forgotten.
    using Call = int (*)(int command) noexcept;
    static Call exchange_call(Call call) noexcept;
};

}  // namespace taiyen::txn
