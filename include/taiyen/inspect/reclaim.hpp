#pragma once
/// reclaim: frees what nothing in a heap leads to, in the heap itself.
///
/// Blocks leak when a process ends while objects outside have them: `auto x = std::move(parts.front())`, and then a crash. Nothing of the heap is wrong then, but nobody can free them.
/// The search is that of find_leaks(): conservative, by every word of every block that a named object leads to (taiyen/inspect/leaks.hpp says what is taken for a pointer).

#include <cstddef>
#include <cstdint>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>

namespace taiyen {

class ArchiveHeap;

/// What reclaim() freed, and what it left.
struct ReclaimReport {
    std::uint64_t freed_blocks = 0;
    std::size_t freed_bytes = 0;        ///< usable ones of these
    std::uint64_t doubtful_blocks = 0;  ///< no word is their address, but words lead into them, or to their end if no block begins there: they stay
};

/// Frees all blocks that no named object leads to. Call it right behind the opening: nothing that came out of the heap may be alive, so it is refused once anything may have been moved out.
/// What the program finds without the heap's help, by an address or offset that it keeps elsewhere, counts as leaked: give it a name first. So do words that aren't the address of a block (compressed or tagged pointers).
/// It is a change like any other: a transaction of its own on a TransactionalHeap (durable on return), a step named "reclaim" of a heap with a history; else it counts with the next save. Where nothing leaks nothing is changed.
/// Before, all pages are compared with their checksums, so that no damaged pointer hides a block that is in use.
/// Throws: Error{closed | read_only | poisoned | forked | …}; Error{scope_open}: this thread has a transaction or a scope open; Error{still_in_use}: since the opening a container was moved out of the heap, or its allocator copied (growing hash tables and deques do that);
/// Error{invalid_argument}: the heap has blocks and no named objects; Error{corrupt | io_error}: a page is damaged; std::bad_alloc; and as a commit does: nothing was freed.
/// Complexity: reads the whole heap. Memory: as find_leaks(). Thread rule: as a change of the heap; the other threads of a TransactionalHeap wait.
TAIYEN_EXPORT ReclaimReport reclaim(ArchiveHeap& heap, const Progress& progress = {});

}  // namespace taiyen
