#pragma once
/// A system that refuses a call from some moment on, for good: for a child process.

#include <cerrno>
#include <cstddef>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace taiyen {

/// False: the system has no seccomp filters, and nothing is refused.
inline bool refuse_call(unsigned number, unsigned error) {
    sock_filter program[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | error},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const sock_fprog filter{4, program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

inline bool refuse_mprotect() { return refuse_call(SYS_mprotect, ENOMEM); }

/// No thread can be made, and no process.
inline bool refuse_threads() { return refuse_call(SYS_clone, EAGAIN) && refuse_call(SYS_clone3, EAGAIN); }

}  // namespace taiyen
