#pragma once
/// The process's SIGSEGV handler: a store into a protected page of a heap goes to that heap's StoreListener, everything else to whoever had the signal before.
///
/// (I1) Only write faults on mapped pages of a durable span are offered; what the listener doesn't take is a real fault and reaches the handlers before ours, at last the
///      default action at the faulting instruction.
/// (I2) The handler allocates nothing, takes no lock of its own and leaves errno as it was. It runs on the thread's alternate stack if there is one.
/// Thread rule: safe.

namespace taiyen::change {

/// Sees to it that the handler is in place and that this thread lets the signal through. A handler that came after ours becomes the first one ours passes on to: it may
/// call ours in turn. Throws: Error{stray_write} if ours can't be put in place.
void ensure_fault_handler();

}  // namespace taiyen::change
