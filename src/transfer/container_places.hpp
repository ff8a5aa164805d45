#pragma once
/// ContainerPlaces: words of a heap that stand where a container of the standard library keeps a pointer, as far as the words around them prove it to who knows no type.
///
/// What is proven, by the layouts that taiyen/stl/declared.hpp tells: the links of lists and trees, since nodes lead back to where one comes from; hash tables, by walking their nodes and counting them;
/// vectors, strings and deques, since their words agree with each other and with the length of the block. What these three have in reserve counts as theirs: a pointer that was left there leads nobody anywhere.
/// Not proven: forward_list, and pointers of the program's own.
/// (C1) One word with the value of an address proves nothing: at least a second one must agree, or the word lead to its own object.
/// Memory: a bit for each 8 bytes of pages with blocks. Thread rule: one thread; nobody changes the heap meanwhile.

#include <optional>

#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {

class ContainerPlaces {
public:
    /// Of the words in `pointers`. What it refers to must outlive it.
    ContainerPlaces(const HeapView& heap, const PointerPlaces& pointers);

    bool has(std::uint64_t place) const { return proven_.test(place); }

private:
    /// A live block's bytes, as offsets.
    struct Range {
        std::uint64_t begin;
        std::uint64_t end;
        bool has(std::uint64_t from, ByteCount bytes) const { return from >= begin && from <= end && bytes <= end - from; }
    };

    std::uint64_t word(std::uint64_t place) const;
    /// The word's value as an offset within the heap.
    std::uint64_t target(std::uint64_t place) const { return word(place) - heap_.base; }
    bool is_pointer(std::uint64_t place) const { return pointers_.has(place); }
    /// Whether it is one, and leads there.
    bool leads(std::uint64_t place, std::uint64_t to) const { return is_pointer(place) && target(place) == to; }
    std::optional<Range> block_at(std::uint64_t offset) const;

    void look_at(std::uint64_t place, const Range& owner);
    bool is_own(std::uint64_t place, const Range& owner) const;
    bool is_link(std::uint64_t place, const Range& owner, const Range& to) const;
    void look_for_short_text(std::uint64_t place, const Range& owner);
    void look_for_text(std::uint64_t place, const Range& owner, const Range& to);
    void look_for_vector(std::uint64_t place, unsigned words_each, const Range& owner, const Range& to);
    void look_for_deque(std::uint64_t place, const Range& owner, const Range& to);
    void look_for_table(std::uint64_t place, const Range& owner);
    void take(std::uint64_t place) { proven_.set(place); }
    void take_all(std::uint64_t from, std::uint64_t to);

    const HeapView& heap_;
    const PointerPlaces& pointers_;
    PlaceBits proven_;
    std::uint64_t steps_left_;  ///< along nodes of what may be hash tables: bounded, whatever the bytes are
};

}  // namespace taiyen::transfer
