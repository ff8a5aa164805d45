#pragma once
/// Counts the instructions that a piece of code executes in user mode, by single-stepping a child process through it.
///
/// Needs neither hardware counters (virtual machines often have none) nor a simulator that knows the processor's newest instructions. A repeated string instruction
/// counts once; what a system call does inside the kernel does not count.

#include <sched.h>

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>

namespace bench {

/// Real-time priority for a while, where that is allowed.
class RealTime {
public:
    RealTime() : policy_(::sched_getscheduler(0)) {
        ::sched_getparam(0, &parameter_);
        sched_param wanted{};
        wanted.sched_priority = 1;
        ::sched_setscheduler(0, SCHED_FIFO, &wanted);
    }
    RealTime(const RealTime&) = delete;
    RealTime& operator=(const RealTime&) = delete;
    ~RealTime() { ::sched_setscheduler(0, policy_, &parameter_); }

private:
    int policy_;
    sched_param parameter_{};
};

/// `prepare` runs in the child at full speed and returns what is counted. Nothing: ptrace is not allowed here, the child failed,
/// or this is not an x86-64 processor.
inline std::optional<std::uint64_t> count_instructions(const std::function<std::function<void()>()>& prepare) {
#if !defined(__x86_64__)
    (void)prepare;
    return std::nullopt;
#else
    std::fflush(stdout);
    // Two context switches per instruction: on a busy machine only real-time priority (where allowed) keeps that short.
    const RealTime real_time;
    const pid_t child = ::fork();
    if (child < 0) return std::nullopt;
    if (child == 0) {
        try {
            const std::function<void()> action = prepare();
            if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(3);
            std::raise(SIGSTOP);
            action();
            std::raise(SIGSTOP);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "while counting instructions: %s\n", error.what());
            ::_exit(1);
        }
        ::_exit(0);
    }
    int status = 0;
    std::optional<std::uint64_t> result;
    if (::waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP) {
        std::uint64_t steps = 0;
        long place_before = 0;
        while (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 && ::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
            if (WSTOPSIG(status) == SIGSTOP) {
                result = steps;
                break;
            }
            const long place = ::ptrace(PTRACE_PEEKUSER, child, offsetof(user_regs_struct, rip), nullptr);
            steps += place != place_before ? 1 : 0;
            place_before = place;
        }
    }
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) {
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
    }
    return result;
#endif
}

}  // namespace bench
