#pragma once
/// The process's SIGSEGV handler: an access to a protected page of a heap goes to that heap (HeapCore::on_touch), a store that it doesn't take to its StoreListener, everything else to whoever had the signal before.
///
/// (I1) Only faults on mapped pages of a durable span are offered; what nobody takes is a real fault and reaches the handlers before ours, at last the default action at the
///      faulting instruction.
/// (I2) The handler allocates nothing, takes no lock of its own and leaves errno as it was. It runs on the thread's alternate stack if there is one.
/// Thread rule: safe.

#include <taiyen/base/detail/export.hpp>

namespace taiyen::heap {

/// Sees to it that the handler is in place and that this thread lets the signal through. A handler that came after ours becomes the first one ours passes on to: it may
/// call ours in turn. Throws: Error{stray_write} if ours can't be put in place.
void ensure_fault_handler();

/// Does nothing. Called for every fault that no heap takes, before those who handled the signal before ours: debuggers set a breakpoint here (doc/taiyen.gdb).
TAIYEN_EXPORT void unclaimed_fault(const void* address) noexcept;

}  // namespace taiyen::heap
