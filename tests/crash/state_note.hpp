#pragma once
/// The note of which crash state is being tried: it is written to standard error if the program is killed by a signal or hangs.

#include <cstddef>
#include <string>

namespace taiyen::crash {

/// What takes longer than that for one state or one fault hangs; the machine may be busy.
inline constexpr unsigned hang_seconds = 120;

/// Whoever is killed by a signal from now on, SIGALRM included, says so. Memory that is freed from now on is kept by the process, which saves page faults.
void watch_for_crashes();
void note_current_state(const std::string& id);
/// Where the note is kept from now on: memory that another process sees. Requires: at least `current_state_bytes`.
void keep_current_state_in(char* place);
inline constexpr std::size_t current_state_bytes = 512;

}  // namespace taiyen::crash
