#include "crash/state_note.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <malloc.h>
#include <unistd.h>

namespace taiyen::crash {
namespace {

/// The state being checked, for the signal handlers.
std::array<char, current_state_bytes> own_current_state{};
char* current_state = own_current_state.data();

void died(int signal) {
    const char* const what = signal == SIGALRM ? "\nhang in crash state " : "\nfatal signal in crash state ";
    (void)!::write(STDERR_FILENO, what, std::strlen(what));
    (void)!::write(STDERR_FILENO, current_state, ::strnlen(current_state, current_state_bytes));
    (void)!::write(STDERR_FILENO, "\n", 1);
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

}  // namespace

void note_current_state(const std::string& id) {
    const std::size_t count = std::min(id.size(), current_state_bytes - 1);
    std::memcpy(current_state, id.data(), count);
    current_state[count] = 0;
}

void keep_current_state_in(char* place) { current_state = place; }

void watch_for_crashes() {
    // Memory that was freed is kept: page faults of fresh memory would cost more than recovering a small heap.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
    ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, died);
}

}  // namespace taiyen::crash
