#pragma once
/// Moving pages within a span by their mappings instead of their bytes, with a bound on the mappings that this costs.
///
/// A range that was moved is a mapping of its own from then on: the system joins it with no neighbour. What is known here are these pieces, sorted; all other pages of the
/// span belong to mappings that the system joins as it can. A source of many pieces, or one that would exceed the budget, is not moved: its copy is one mapping again.
/// (M1) No hole: the source stays mapped, without memory, so that nobody else's mapping can come to lie there. A source that was a piece needs a fresh mapping before it counts as joined.
/// (M2) A move to pages that have memory would lose it, and whoever gets the source next would have to fetch new memory from the system at many times the price. So the two change places,
///      by way of a range beside the span.
/// Thread rule: external lock.

#include <array>
#include <cstddef>
#include <cstdint>

#include "heap/page_map.hpp"

namespace taiyen::heap {

class MovedPages {
public:
    /// A source of more pieces is copied.
    static constexpr unsigned source_pieces_max = 4;

    /// `aside`: address space of ours for exchanges, of `aside_bytes`; empty between them.
    MovedPages(std::byte* span, std::byte* aside, ByteCount aside_bytes) : span_(span), aside_(aside), aside_bytes_(aside_bytes) {}
    MovedPages(const MovedPages&) = delete;
    MovedPages& operator=(const MovedPages&) = delete;
    ~MovedPages();

    /// Moves what it can from the front of the run to the pages from `to` on, and returns how many. What lay there is gone, and the source's content is unspecified.
    Page move(PageRun from, Page to) noexcept;
    /// The same, but what lay there comes to lie in the source's place, if the system goes along.
    Page exchange(PageRun from, Page to) noexcept;
    /// Fresh pages are being mapped over the run; true if pieces lay there.
    bool forget(PageRun run) noexcept;
    /// Whether pieces lie there.
    bool any(PageRun run) const;

    std::size_t pieces() const { return count_; }
    void set_budget(std::size_t pieces) { budget_ = pieces < pieces_max ? pieces : pieces_max; }

private:
    struct Piece {
        Page first;
        Page end;
    };
    static constexpr std::size_t pieces_max = 8000;  ///< two mappings each, with what lies between

    /// A run's parts of one mapping each, as far as is known; `count` 0: they are too many.
    struct Stretches {
        unsigned count = 0;
        std::array<PageRun, source_pieces_max> of{};
    };

    bool prepare() noexcept;
    Stretches stretches_of(PageRun run) const;
    /// Moves the stretches to places as far behind each other, and returns how many it could.
    unsigned move_stretches(const Stretches& stretches, std::byte* from, std::byte* to) const noexcept;
    /// The pages from `to` on are now what these stretches were.
    void note_moved(const Stretches& stretches, unsigned count, Page to) noexcept;
    /// Index of the first piece that ends behind the page.
    std::size_t first_behind(Page page) const;
    void insert(Piece piece) noexcept;

    std::byte* const span_;
    std::byte* const aside_;
    const ByteCount aside_bytes_;
    Piece* pieces_ = nullptr;  ///< sorted by `first`, disjoint
    std::size_t count_ = 0;
    std::size_t budget_ = pieces_max;
    bool asked_system_ = false;
};

}  // namespace taiyen::heap
