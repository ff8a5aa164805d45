#pragma once
/// Rebasing over any storage; taiyen/transfer/rebase.hpp says what it does.

#include <taiyen/transfer/rebase.hpp>

#include "store/heap_file.hpp"

namespace taiyen::transfer {

/// Whether the newest save holds steps of an undo history.
bool has_history(store::HeapFile& file);

/// Looks at the heap and, if it is no dry run, moves it by one save: its files lie at the new address then, and `file` itself is only good for being closed.
/// Requires: nothing was changed since the newest save; a writer that uses a journal, or a reader for a dry run.
RebaseReport rebase_file(store::HeapFile& file, std::uintptr_t address, const RebaseOptions& options);

}  // namespace taiyen::transfer
