#include "heap/fault_handler.hpp"

#include <pthread.h>
#include <ucontext.h>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include <taiyen/base/error.hpp>

#include "heap/core.hpp"

namespace taiyen::heap {
namespace {

using Action = struct sigaction;

/// The handlers that were in place when ours was put there, oldest first.
struct Chain {
    std::array<Action, 8> actions;
    std::atomic<unsigned> count{0};
    std::mutex changing;
};
constinit Chain chain{};

/// How many of ours are running on this thread: a handler that was put in place after ours passes on to ours, and then it is its predecessor's turn.
__attribute__((tls_model("initial-exec"))) thread_local constinit unsigned depth = 0;

bool is_write([[maybe_unused]] const void* context) noexcept {
#if defined(__x86_64__)
    constexpr long long write_bit = 2;
    return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & write_bit) != 0;
#else
    return true;  // the listener knows which of its pages can't be read
#endif
}

/// Ends the process the way it would have ended without us: the default action, at the faulting instruction.
void take_default_action(int signal, const siginfo_t* info) noexcept {
    Action action{};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
    if (info->si_code <= 0) ::raise(signal);  // sent by somebody: it wouldn't come again by itself
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
    const unsigned count = chain.count.load(std::memory_order_acquire);
    if (depth >= count) return take_default_action(signal, info);
    const Action& action = chain.actions[count - 1 - depth];
    const bool takes_info = (action.sa_flags & SA_SIGINFO) != 0;
    if (!takes_info && action.sa_handler == SIG_DFL) return take_default_action(signal, info);
    if (!takes_info && action.sa_handler == SIG_IGN) {
        if (info->si_code > 0) take_default_action(signal, info);  // the system doesn't let a fault be ignored
        return;
    }
    sigset_t wanted = action.sa_mask;
    if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&wanted, signal);
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &wanted, &before);
    ++depth;
    if (takes_info)
        action.sa_sigaction(signal, info, context);
    else
        action.sa_handler(signal);
    --depth;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void handle(int signal, siginfo_t* info, void* context) noexcept {
    const int error = errno;
    bool taken = false;
    if (info->si_code == SEGV_ACCERR) {
        if (HeapCore* const core = core_at(info->si_addr); core != nullptr) {
            const bool writes = is_write(context);
            const Touched touched = core->on_touch(info->si_addr, writes);
            StoreListener* const listener = core->listener();
            taken =
                touched == Touched::opened || (touched == Touched::not_taken && writes && listener != nullptr && listener->on_fault(info->si_addr));
        }
    }
    if (!taken) {
        unclaimed_fault(info->si_addr);
        pass_on(signal, info, context);
    }
    errno = error;
}

bool is_ours(const Action& action) { return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &handle; }

bool in_place() {
    Action now{};
    return ::sigaction(SIGSEGV, nullptr, &now) == 0 && is_ours(now);
}

bool are_equal(const Action& a, const Action& b) {
    if (((a.sa_flags ^ b.sa_flags) & SA_SIGINFO) != 0) return false;
    return (a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler;
}

void put_in_place() {
    const std::lock_guard lock(chain.changing);
    Action now{};
    ::sigaction(SIGSEGV, nullptr, &now);
    if (is_ours(now)) return;
    const unsigned count = chain.count.load(std::memory_order_relaxed);
    const bool known = count != 0 && are_equal(chain.actions[count - 1], now);
    if (known || count < chain.actions.size()) {
        if (!known) {
            chain.actions[count] = now;
            chain.count.store(count + 1, std::memory_order_release);
        }
        Action ours{};
        ours.sa_sigaction = &handle;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&ours.sa_mask);
        if (::sigaction(SIGSEGV, &ours, nullptr) == 0 && in_place()) return;
        if (!known) chain.count.store(count, std::memory_order_release);
    }
    throw Error(errc::stray_write,
                "another part of the program keeps the handler of SIGSEGV to itself, so stores into the heap can't be captured; install that handler "
                "before the heap's "
                "first scope (sanitizers: handle_segv=1), or open the heap with Capture::stores");
}

}  // namespace

__attribute__((noinline)) void unclaimed_fault(const void* address) noexcept {
    asm volatile("" : : "r"(address) : "memory");  // else the compiler leaves out calls that do nothing
}

void ensure_fault_handler() {
    if (!in_place()) put_in_place();
    depth = 0;  // a handler may have left by longjmp
    sigset_t fault;
    sigemptyset(&fault);
    sigaddset(&fault, SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &fault, nullptr);
}

}  // namespace taiyen::heap
