#pragma once
/// PointerSearch: the words of a heap that are pointers into it, as types and shapes tell them, or guessed by their values (RelocationWords).
///
/// Thread rule: one thread; nobody changes the heap meanwhile.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/progress.hpp>
#include <taiyen/transfer/rebase.hpp>

#include "transfer/pointer_places.hpp"
#include "transfer/shape_types.hpp"

namespace taiyen::transfer {

/// What was found.
struct FoundPointers {
    std::unique_ptr<PointerPlaces> places;
    std::vector<std::uint64_t> reached;   ///< by types or shapes: the blocks, in the order in which they are met
    std::uint64_t held_outside = 0;       ///< blocks that these don't lead to, and that may hold pointers
    std::optional<std::uint64_t> either;  ///< by shapes: a place that a pointer leads to, where a block begins and another one ends
};

/// Throws: Error{type_mismatch}: pointers would have to be guessed in order to move the heap, and nobody has asked for that. `why`: what its shapes don't tell; empty: nobody has looked at them.
void refuse_guessing(const PointerOptions& options, const std::filesystem::path& path, std::string_view why = {});

/// The pointers of a heap: what declared types and its own shapes tell, and what is left to guesses.
class PointerSearch {
public:
    /// Requires: metadata that can be read. What it refers to must outlive it.
    PointerSearch(const HeapView& heap, const PointerOptions& given);

    /// As they were given, but that what shapes tell counts as declared.
    const PointerOptions& options() const { return options_; }
    /// Whether nothing is left to guesses.
    bool is_exact() const;
    /// Why not, as far as shapes tell.
    std::string why_not() const;
    /// Throws: Error{type_mismatch}: moving the heap takes guesses, and nobody has asked for that.
    void refuse_guessing() const;
    /// Looks at all of the heap: fills in what the report says of blocks, words and names; `report` has the addresses. Without types, whatever the options say, words are guessed.
    /// Requires: metadata that was checked; a heap that lies at its own address, if there are types, declared or told by shapes.
    /// Throws: Error{type_mismatch}: a named object whose type is not declared, or isn't laid out as here, or something beside what pointers lead to may be a pointer; what `options.guessed` throws.
    FoundPointers find(RebaseReport& report, const Progress& progress = {}) const;

private:
    const HeapView& heap_;
    const PointerOptions& given_;
    const ShapeTypes shapes_;
    const bool are_shapes_;
    const PointerOptions options_;
};

/// Whether pointers may be looked for where the heap itself means it to lie only.
inline bool needs_home(const PointerOptions& pointers) { return pointers.by_shapes || !pointers.types.empty(); }
/// `are_shapes`: some of the types are told by shapes, which don't say how many objects a pointer leads to. Requires and throws: as PointerSearch::find.
FoundPointers find_by_types(const HeapView& heap, const PointerOptions& options, RebaseReport& report, bool are_shapes,
                            const Progress& progress = {});
/// Walks the named objects, as walk_named, by types of which some are told by shapes. Returns a place that a plain pointer leads to, where a block begins and another one ends; nothing: there is none. Throws: as PointerSearch::find.
std::optional<std::uint64_t> walk_shapes(const HeapView& heap, const DeclaredTypes& types, RebaseReport& report, PointerWalk::State& state,
                                         const Progress& progress = {});
/// Throws: Error{foreign_pointer} for ambiguous words, if there mustn't be any.
void refuse_ambiguous(const RebaseReport& report, const PointerOptions& options, const std::filesystem::path& path);
/// Throws: Error{type_mismatch} for containers that would not find their elements any more. `one_by_one`: blocks move against one another.
void refuse_keys(const RebaseReport& report, const PointerOptions& options, bool one_by_one, const std::filesystem::path& path);

/// "0x230000000000".
std::string hexadecimal(std::uintptr_t address);
/// Throws: Error{invalid_argument}: no heap of that capacity can lie there.
void check_place(std::uintptr_t address, ByteCount capacity, const std::filesystem::path& path);
/// How far behind the beginning of its slot a heap lies once it has moved. Where pointers are guessed it stays there, so that of a text that stands where a pointer was only bytes change that are no text's.
std::uintptr_t within_slot(std::uintptr_t from, const PointerOptions& pointers);
/// Where pointers are guessed. Throws: Error{invalid_argument}: the lower halves of words would change.
void check_distance(std::uintptr_t from, std::uintptr_t to, const std::filesystem::path& path);

}  // namespace taiyen::transfer
