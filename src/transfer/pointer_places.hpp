#pragma once
/// PointerPlaces: the words of a heap that are pointers into it; PointerWalk::State takes down those that declared types name.
///
/// (I1) Which words those are follows from the heap as it was; what was rewritten meanwhile changes no answer.
/// (I2) They lie in live blocks, at multiples of 8.
/// Memory: by declared types four bits for each 8 bytes of pages with blocks, more of those that pointers of further types lead to, and 8 bytes for each block that is met; else one.
/// Thread rule: one thread.

#include <bit>
#include <map>

#include "heap/word_walk.hpp"
#include "transfer/place_bits.hpp"
#include "transfer/relocation_words.hpp"

namespace taiyen::transfer {

class PointerPlaces {
public:
    /// A page with pointers, and how many.
    struct Page {
        std::uint64_t number;
        std::uint16_t pointers;
    };

    /// `heap` is referred to.
    explicit PointerPlaces(const HeapView& heap)
        : bytes_(heap.bytes), pointers_(heap.engine.extent()), ends_(heap.engine.extent()), pages_(heap.engine.extent() / page_bytes / 64 + 1) {}

    void add(std::uint64_t place, bool is_end) {
        pointers_.set(place);
        if (is_end) ends_.set(place);
        pages_[place / page_bytes / 64] |= std::uint64_t{1} << (place / page_bytes % 64);
    }
    bool has(std::uint64_t place) const { return pointers_.test(place); }
    /// Rewrites the pointers in the image of a page; returns how many have changed.
    std::uint16_t patch(PageNumber page, std::span<std::byte> image, const Relocation& relocation) const;
    /// Calls `visit(place, value, is_end)` for the pointers in [from, to), which begins at a multiple of 8 and ends within the extent: where the word stands within the heap, its value,
    /// and whether it means the end of something.
    template <class Visit>
    void visit(std::uint64_t from, std::uint64_t to, Visit&& visit) const;
    std::vector<Page> pages() const;

private:
    const std::byte* bytes_;
    PlaceBits pointers_;
    PlaceBits ends_;
    std::vector<std::uint64_t> pages_;  ///< a bit for each that has pointers
};

template <class Visit>
void PointerPlaces::visit(std::uint64_t from, std::uint64_t to, Visit&& visit) const {
    for (std::uint64_t index = from / PlaceBits::word_span; index * PlaceBits::word_span < to; ++index) {
        for (std::uint64_t left = pointers_.word(index); left != 0; left &= left - 1) {
            const std::uint64_t place = index * PlaceBits::word_span + static_cast<unsigned>(std::countr_zero(left)) * PlaceBits::place_bytes;
            if (place < from) continue;
            if (place >= to) return;
            visit(place, heap::word_at(bytes_ + place), ends_.test(place));
        }
    }
}

inline std::uintptr_t moved(const Relocation& relocation, std::uint64_t value, bool is_end) {
    return is_end ? relocation.map_end(value) : relocation.map(value);
}

}  // namespace taiyen::transfer

/// What a walk by declared types has met so far.
struct taiyen::PointerWalk::State {
    State(const transfer::HeapView& heap, transfer::PointerPlaces& places, RebaseReport& report, std::size_t listed_max)
        : heap(heap), words(heap), places(places), report(report), listed_max(listed_max), reached(heap.engine.extent()) {}

    /// How much of the blocks declared types know, for who moves some of them only.
    struct Coverage {
        /// Bytes of the heap that are known, in a block of which maybe not all is.
        struct Part {
            std::uint64_t begin;
            std::uint64_t end;
        };
        explicit Coverage(ByteCount extent) : whole(extent) {}

        transfer::PlaceBits whole;  ///< beginnings of blocks of which all is known
        std::vector<Part> parts;
        std::vector<std::uint64_t> keys;   ///< places by which containers find their elements
        std::vector<std::uint64_t> fixed;  ///< places that pointers lead to which can't be rewritten
    };
    /// An object, as what it is walked.
    struct Target {
        std::uint64_t offset;
        Step step;
    };
    /// One of these, or several in a row.
    struct Waiting {
        Target first;
        std::size_t bytes_each;
        std::size_t count;
    };

    std::uint64_t offset_of(const void* place) const { return reinterpret_cast<std::uintptr_t>(place) - heap.base; }
    /// The word's place if its value is a pointer that can be taken down.
    std::optional<std::uint64_t> place_of_pointer(const void* word, std::uint64_t value);
    /// Bytes of the live block from there on; 0: there is none.
    ByteCount room_at(std::uint64_t offset) const;
    /// The live block there, if there is one, in the order in which they are met.
    std::optional<heap::Block> meet(std::uint64_t offset);
    /// All of the block there is known.
    void reach(std::uint64_t offset);
    /// So many bytes of the block there are known.
    void reach_part(std::uint64_t offset, ByteCount bytes);
    /// Walks what waits.
    void finish(PointerWalk& walk);

    const transfer::HeapView& heap;
    transfer::RelocationWords words;
    transfer::PointerPlaces& places;
    RebaseReport& report;
    const std::size_t listed_max;
    std::map<Step, transfer::PlaceBits> seen;                          ///< objects, by what they were walked as
    std::map<Step, std::map<std::uint64_t, std::size_t>> seen_arrays;  ///< where, and how many elements of them
    std::vector<Waiting> waiting;
    transfer::PlaceBits reached;  ///< beginnings of blocks
    std::vector<std::uint64_t> order;
    Coverage* coverage = nullptr;  ///< null: nobody asks
    bool within_key = false;
    std::uint64_t values = 0;  ///< that were looked at by shapes
    std::string name;          ///< of the object that the walk began at
    bool hashed = false;
    bool ordered = false;
};

namespace taiyen::transfer {

/// Walks the named objects of a heap that lies at its own address. `undeclared`: gets the names of those whose type nobody declared.
/// Throws: Error{type_mismatch}: a container isn't laid out as here, and, without `undeclared`, a type is not declared.
void walk_named(const HeapView& heap, const DeclaredTypes& types, RebaseReport& report, PointerWalk::State& state,
                const std::function<void(std::uint64_t, std::uint64_t)>& progress, std::vector<std::string>* undeclared = nullptr);

}  // namespace taiyen::transfer
