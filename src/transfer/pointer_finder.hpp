#pragma once
/// PointerFinder: the words of a heap that are pointers into it, whoever has found them: conservatively (RelocationWords) or as types declare them (PointerPlaces).
///
/// (I1) Which words those are follows from the heap as it was; what was rewritten meanwhile changes no answer.
/// (I2) They lie in live blocks, at multiples of 8.
/// Thread rule: one thread; nobody changes the heap meanwhile.

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <taiyen/transfer/rebase.hpp>

#include "heap/engine.hpp"

namespace taiyen::transfer {

/// A heap's bytes, wherever they lie in memory, and the address that they are for.
struct HeapView {
    const heap::Engine& engine;  ///< over `metadata`
    const std::byte* bytes;
    std::uintptr_t base;
    ByteCount capacity;
    const std::filesystem::path& path;  ///< that errors name
    const std::byte* metadata = bytes;  ///< what `engine` is over, if its metadata lie apart from the bytes

    /// The heap's own range of addresses, scratch memory included.
    ByteCount range_bytes() const;
    /// The live block that has the byte there.
    std::optional<heap::Block> find_block(std::uint64_t offset) const { return engine.find_block(metadata + offset); }
};

class PointerFinder {
public:
    /// A page with pointers, and how many.
    struct Page {
        std::uint64_t number;
        std::uint16_t pointers;
    };

    virtual ~PointerFinder() = default;
    /// Rewrites the pointers in the image of a page; returns how many.
    virtual std::uint16_t patch(PageNumber page, std::span<std::byte> image, const Relocation& relocation) = 0;
};

class PointerPlaces;

/// What was found, and by whom.
struct FoundPointers {
    std::unique_ptr<PointerFinder> finder;
    PointerPlaces* places = nullptr;         ///< by declared types: that is the finder
    std::vector<PointerFinder::Page> pages;  ///< ascending
    std::vector<std::uint64_t> reached;      ///< by declared types: the blocks, in the order in which they are met
};

/// Looks at all of the heap: fills in what the report says of blocks, words and names. Requires: metadata that was checked; for declared types, a heap that lies at its own address.
/// Throws: Error{type_mismatch}: a named object whose type is not declared, or isn't laid out as here.
FoundPointers find_pointers(const HeapView& heap, const PointerOptions& options, RebaseReport& report,
                            const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});
/// Throws: Error{foreign_pointer} for ambiguous words, if there mustn't be any.
void refuse_ambiguous(const RebaseReport& report, const PointerOptions& options, const std::filesystem::path& path);
/// Throws: Error{type_mismatch} for containers that would not find their elements any more. `one_by_one`: blocks move against one another.
void refuse_keys(const RebaseReport& report, const PointerOptions& options, bool one_by_one, const std::filesystem::path& path);

/// "0x230000000000".
std::string hexadecimal(std::uintptr_t address);
/// Throws: Error{invalid_argument}: no heap of that capacity can lie there.
void check_place(std::uintptr_t to, ByteCount capacity, const std::filesystem::path& path);
/// How far behind the beginning of its slot a heap lies once it has moved. Where pointers are guessed it stays there, so that of a text that stands where a pointer was only bytes change that are no text's.
std::uintptr_t within_slot(std::uintptr_t from, const PointerOptions& pointers);
/// Throws: Error{invalid_argument}: pointers are guessed, and the lower halves of words would change.
void check_distance(std::uintptr_t from, std::uintptr_t to, const PointerOptions& pointers, const std::filesystem::path& path);

}  // namespace taiyen::transfer
