#pragma once
/// compact: an open heap's blocks laid closer together, a bounded step at a time, while the program goes on working with it between the steps.
///
///     taiyen::CompactOptions options;
///     options.types.add<Drawing>();
///     for (taiyen::CompactReport done; (done = taiyen::compact(heap, options)).moved_blocks != 0;) done.relocation.visit(my_roots);
///
/// Blocks go where there is room: out of the segments (64 KiB) with the fewest live bytes first, into holes between other blocks, so that whole pages and segments become free; then pages
/// and large blocks go down into free pages. The pointers to them that declared types name, and named objects, follow. What no declared type covers stays, and so does whatever bytes that no type
/// covers may point to. Details: doc/moving.md.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/store/archive_heap.hpp>
#include <taiyen/transfer/declared.hpp>
#include <taiyen/transfer/relocation.hpp>

namespace taiyen {

/// What a step of compact() may move, and how long.
struct CompactOptions {
    /// Of the named objects. One whose type is not among them stays, with all that only it leads to.
    DeclaredTypes types;
    bool known_types = false;  ///< types that the heap's shapes tell whole count as declared (doc/moving.md)
    std::size_t bytes_max =
        std::size_t{16} << 20U;  ///< bytes of blocks that a step moves, but at least those of one page of small blocks; longer blocks stay
    /// From the call on; zero: no limit. It is looked at before each page's blocks, so that the rewriting of pointers, and what a commit takes, come on top; one page's blocks are moved in any case.
    std::chrono::microseconds time_max{0};
};

/// What a step of compact() did, and what it left.
struct CompactReport {
    std::uint64_t live_blocks = 0;
    std::size_t live_bytes = 0;
    std::uint64_t moved_blocks = 0;  ///< none: nothing is left to be done, or the disk is full
    std::size_t moved_bytes = 0;
    std::uint64_t left_blocks = 0;  ///< that further steps would move, as far as can be seen now (and memory allows)
    std::size_t left_bytes = 0;
    std::uint64_t pointers = 0;  ///< that were rewritten, of the heap's

    // Blocks that must not move; each counts once, for the first of these reasons.
    std::uint64_t undeclared_blocks = 0;  ///< no declared type covers them
    std::uint64_t held_blocks = 0;        ///< an object outside the heap has them
    std::uint64_t keyed_blocks = 0;       ///< a container finds elements by their addresses
    std::uint64_t suspected_blocks = 0;   ///< bytes that no declared type covers may point to them
    std::size_t pinned_bytes = 0;         ///< of all these
    std::uint64_t large_blocks = 0;       ///< there is room for them further down, but they are longer than bytes_max
    std::vector<std::string> undeclared;  ///< named objects whose type was not declared

    // Pages (4 KiB) and segments (64 KiB) with live bytes, before and after.
    std::uint64_t pages_before = 0;
    std::uint64_t pages_after = 0;
    std::uint64_t segments_before = 0;
    std::uint64_t segments_after = 0;

    /// For the program's own pointers into the heap. Blocks that stayed beside one that moved stand in it too, as themselves.
    Relocation relocation;

    bool done() const noexcept { return moved_blocks == 0 && left_blocks == 0; }
};

/// Moves blocks of an open heap within the budget.
/// It is a change like any other: of a transaction or a scope that this thread has open it is a part; else it is a transaction of its own on a TransactionalHeap (durable on return), and a step named "compact" of
/// a heap with a history. Where nothing is moved nothing is changed, and no step is made. Undone, rolled back or lost in a crash, all of it is: the blocks lie where they lay.
/// A block that moved counts as changed with all its bytes (there is no *pages moved* entry: capture compares pages). The program's own pointers to blocks that moved, iterators and references among them, dangle
/// until they are corrected by `relocation`; after an undo they have to be found anew.
/// Throws: Error{closed | read_only | poisoned | forked | scope_open}, Error{type_mismatch}: it is a position-independent heap, a container isn't laid out as this build's library does it, or a description names a copy of a pointer;
/// Error{corrupt}: the heap's file doesn't have what was saved, in a page with pointers or of a block that was to move (damage would get a fresh checksum, or keep an old address);
/// std::bad_alloc, and on a TransactionalHeap as Transaction::commit: nothing was moved. A full disk ends the step early.
/// Complexity: one walk over all objects that declared types lead to, one pass over the heap's metadata and the bytes that no type covers, and the checksums of all these pages, whatever the budget;
/// what is moved and how many pointers' pages are written follow the budget. Memory: about 100 bytes a block. Thread rule: as a change of the heap: nobody else uses it meanwhile, except for a TransactionalHeap, whose other threads wait.
TAIYEN_EXPORT CompactReport compact(ArchiveHeap& heap, const CompactOptions& options);

}  // namespace taiyen
