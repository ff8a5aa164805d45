#pragma once
/// Leaks and reachability: what the named objects of a heap hold, and what nothing holds.
///
/// The walk is conservative: it begins at the named objects, and each 8-byte word of a reached block that is the address of a live block reaches that one. It knows no types. All standard
/// containers keep the addresses of their blocks, so what they hold is never called a leak. Blocks that are only hinted at, by words that lead into their middle or are
/// the end of a block (a vector's end is the address of the block behind its own), are told apart: LeakKind::doubtful. The other way round a leak can hide behind a word that is its
/// address by chance: in unused capacity or padding, whose bytes were a pointer once. What is not stored as an address (`offset_ptr` in a heap at a fixed address, tagged or compressed pointers) is not seen.
///
/// Where the heap knows the shapes of all its types (taiyen/shape/shape.hpp) what is held by its pointers alone is found, too: blocks that only other words lead to are LeakKind::hidden. They count as no leak, since a program
/// may keep an address as a number.
///
/// In a position-independent heap distances are the pointers: each even word of a reached block, added to the place where it stands, and none is taken for an end. What its containers hold is never called a leak there either, wherever it is
/// mapped. A leak hides more easily: behind any number that is the distance of its beginning.
///
/// Memory: sets of block addresses, at most one bit for every 8 bytes of the heap in use and usually far less, what is listed, and at most 32 MiB for program pointers.
/// Thread rule: as the heap's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>

namespace taiyen {

class ArchiveHeap;

/// How much find_leaks() lists, and whom it tells how far it is.
struct LeakOptions {
    std::size_t listed_max = 100;  ///< leaks, dangling pointers, and places of program pointers, that are listed one by one
    Progress progress;             ///< may be empty
    ProgramSearch program_pointers = ProgramSearch::none;
};

/// How a leaked block is told from one that is held.
enum class LeakKind {
    direct,    ///< no live block points to it
    indirect,  ///< only leaked blocks point to it: it goes with them
    doubtful,  ///< words hint at it, and none is its address
    hidden     ///< words are its address, and by the shapes of all types none of these is a pointer: numbers, bytes of unused capacity
};

/// A live block that no named object leads to.
struct LeakedBlock {
    static constexpr std::size_t beginning_max = 16;

    LeakKind kind = LeakKind::direct;
    std::uint64_t offset = 0;  ///< in the heap
    std::size_t bytes = 0;     ///< usable
    /// Age: the newest save that changed anything in the two megabytes around it, as the file knows it; the block is at least as old or was part of that save. 0: not known.
    std::uint64_t generation = 0;
    std::array<std::byte, beginning_max> beginning{};  ///< its first bytes, as many as it has
};

/// A word of a reached block that points into free space. Not an error by itself: bytes of unused capacity that were a pointer once look the same.
/// In a position-independent heap: one that is the address of something live in the heap, where it is mapped now, and would be wrong elsewhere.
struct DanglingPointer {
    std::uint64_t offset = 0;  ///< of the word
    std::uint64_t target = 0;  ///< offset in the heap
    std::string holder;        ///< the named object that holds the word's block
};

/// Words of reached blocks that are pointers to a program's own memory, as far as LeakOptions::program_pointers asks for them: after a restart they lead to nothing. An offset, an id or a name in their place would stay true.
/// One entry stands for all of them at the same offset in blocks of the same size; in blocks above 1 KiB, at any offset.
struct ProgramPointer {
    std::uint64_t offset = 0;  ///< of the first such word, in the heap
    std::uint64_t block = 0;   ///< where its block begins, in the heap
    std::size_t block_bytes = 0;
    std::uint64_t target = 0;  ///< the address it is
    std::uint64_t words = 0;   ///< how many there are; not all of thousands are looked at
    std::string holder;        ///< the named object that holds the block
    std::string type;          ///< of that object, if the word stands in its own bytes; else empty
    std::string leads_to;      ///< ProgramSearch::this_process: what lies there; else empty
};

/// What a named object holds: itself and everything that can be reached from it and from none of the objects listed before it.
struct Holding {
    std::string name;
    std::uint64_t blocks = 0;
    std::size_t bytes = 0;
    std::uint64_t shared_words = 0;  ///< words in it that lead into what an object listed before it holds
};

/// Leaked blocks of a size: more than half of `bytes_max`, at most `bytes_max`.
struct LeakSize {
    std::size_t bytes_max = 0;
    std::uint64_t blocks = 0;
    std::size_t bytes = 0;
};

/// What the named objects hold, and what none of them does.
struct LeakReport {
    std::uint64_t live_blocks = 0;
    std::size_t live_bytes = 0;
    std::uint64_t leaked_blocks = 0;  ///< direct and indirect ones
    std::size_t leaked_bytes = 0;
    std::uint64_t direct_blocks = 0;
    std::uint64_t doubtful_blocks = 0;
    std::size_t doubtful_bytes = 0;
    std::uint64_t hidden_blocks = 0;  ///< 0 unless `is_by_shapes`
    std::size_t hidden_bytes = 0;
    bool is_by_shapes = false;  ///< the shapes of all types tell which words are pointers, so that `hidden` is known
    std::string why_not;        ///< else what they don't tell
    std::uint64_t dangling_pointers = 0;
    std::uint64_t program_pointers = 0;        ///< words; they are no leaks
    std::uint64_t program_places = 0;          ///< of them: an offset in blocks of a size is one
    std::uint64_t program_words_unjudged = 0;  ///< words that may be more of them, for which the search had no memory
    bool position_independent = false;         ///< distances were followed, not addresses
    std::vector<Holding> holdings;             ///< by name
    std::vector<LeakSize> sizes;               ///< of leaked blocks, ascending
    std::vector<LeakedBlock> leaks;            ///< direct, then indirect, then doubtful ones; the largest first
    std::vector<DanglingPointer> dangling;     ///< the first ones found
    std::vector<ProgramPointer> program;       ///< the first ones in the heap
};

/// Throws: Error{closed | corrupt | …}, std::bad_alloc. Complexity: reads every live block; a look-up for each word that looks like an address of the heap.
TAIYEN_EXPORT LeakReport find_leaks(const ArchiveHeap& heap, const LeakOptions& options = {});

}  // namespace taiyen
