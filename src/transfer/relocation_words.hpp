#pragma once
/// RelocationWords: which words of a heap are pointers into it, as far as bytes can tell.
///
/// (I1) Whether a word is a pointer follows from its value, its place and the engine's metadata alone.
/// (I2) Words outside live blocks are none: free memory, metadata, the directory of names.
/// Thread rule: one thread; nobody changes the heap meanwhile.

#include <cstdint>
#include <functional>
#include <optional>

#include <taiyen/transfer/rebase.hpp>

#include "heap/survey.hpp"
#include "transfer/heap_view.hpp"

namespace taiyen::transfer {

class PointerPlaces;
class PlaceBits;

class RelocationWords {
public:
    /// What it refers to must outlive it.
    explicit RelocationWords(const HeapView& heap);

    /// Looks at all live blocks, but for words that `known` has (null: none): takes down the pointers in `places`, and the ambiguous words in the report.
    void find(PointerPlaces& places, const PlaceBits* known, RebaseReport& report, std::size_t listed_max,
              const std::function<void(std::uint64_t, std::uint64_t)>& progress);

    /// Whether the value is the address of a live block, of a place in one, or of the end of one.
    bool is_pointer(std::uint64_t value);
    /// What a value that is no pointer points to, if it lies in the heap's range of addresses.
    std::optional<AmbiguousTarget> ambiguity(std::uint64_t value);

private:
    /// A block that was found lately: most words follow one another.
    using Lately = std::optional<heap::Block>;

    bool lies_in_block(std::uint64_t offset, Lately& lately) const;
    void look_at(const heap::Block& block, PointerPlaces& places, const PlaceBits* known, RebaseReport& report, std::size_t listed_max);

    const HeapView heap_;
    const std::byte* const bytes_;
    const std::uintptr_t base_;
    const ByteCount range_bytes_;  ///< of the heap's own addresses
    const ByteCount extent_;
    const heap::Survey survey_;
    Lately target_;
};

}  // namespace taiyen::transfer
