#pragma once
/// A crash state in words, for who reads that it fails.

#include <string>

#include "crash/replay.hpp"

namespace taiyen::crash {

/// What was being done at the cut, and which units of which pending operations reached the disk (`names_surviving`), or didn't.
std::string words_of(const Replay& replay, const Replay::Selection& selection, const io::Trace& trace, std::size_t cut, bool names_surviving);

}  // namespace taiyen::crash
