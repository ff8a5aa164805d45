#pragma once
/// PointerPlaces: the words that declared types say are pointers; a walk from the named objects takes them down.
///
/// Memory: 128 bytes for each page with pointers, 64 for each page with blocks, and the objects that pointers lead to.
/// Thread rule: one thread.

#include <array>
#include <unordered_map>
#include <unordered_set>

#include "transfer/relocation_words.hpp"

namespace taiyen::transfer {

class PointerPlaces final : public PointerFinder {
public:
    /// A word: where it stands within the heap, its value, and whether it means the end of something.
    using Visit = std::function<void(std::uint64_t place, std::uint64_t value, bool is_end)>;

    /// `heap` is referred to.
    explicit PointerPlaces(const HeapView& heap) : bytes_(heap.bytes) {}

    void add(std::uint64_t place, bool is_end);
    std::uint16_t patch(PageNumber page, std::span<std::byte> image, const Relocation& relocation) override;
    /// Calls `visit` for the pointers in [from, to), which lies within live blocks.
    void visit(std::uint64_t from, std::uint64_t to, const Visit& visit) const;
    std::vector<Page> pages() const;

private:
    /// Bit n: the word at 8 · n of the page.
    struct Marks {
        std::array<std::uint64_t, 8> pointers{};
        std::array<std::uint64_t, 8> ends{};
    };
    const Marks* find(std::uint64_t page) const;

    const std::byte* bytes_;
    std::unordered_map<std::uint64_t, Marks> pages_;
    std::uint64_t newest_page_ = ~std::uint64_t{0};
    Marks* newest_ = nullptr;
};

inline std::uintptr_t moved(const Relocation& relocation, std::uint64_t value, bool is_end) {
    return is_end ? relocation.map_end(value) : relocation.map(value);
}

}  // namespace taiyen::transfer

/// What a walk by declared types has met so far.
struct taiyen::PointerWalk::State {
    State(const transfer::HeapView& heap, transfer::PointerPlaces& places, RebaseReport& report, std::size_t listed_max)
        : heap(heap), words(heap), places(places), report(report), listed_max(listed_max) {}

    /// An object, as what it is walked.
    struct Target {
        std::uint64_t offset;
        Step step;
        bool operator==(const Target&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Target& target) const noexcept;
    };

    std::optional<std::uint64_t> offset_of_word(const void* word) const;
    void doubt(std::uint64_t place, std::uint64_t value);
    /// Walks what waits.
    void finish(PointerWalk& walk);

    const transfer::HeapView& heap;
    transfer::RelocationWords words;
    transfer::PointerPlaces& places;
    RebaseReport& report;
    const std::size_t listed_max;
    std::unordered_set<Target, Hash> seen;
    std::vector<Target> waiting;
    std::unordered_set<std::uint64_t> reached;
    std::vector<std::uint64_t> order;
    std::string name;  ///< of the object that the walk began at
    bool hashed = false;
    bool ordered = false;
};
