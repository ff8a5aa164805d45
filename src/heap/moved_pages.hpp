#pragma once
/// Moving pages within a span by their mappings instead of their bytes, with a bound on the mappings that this costs.
///
/// A range that was moved is a mapping of its own from then on: the system joins it with no neighbour. What is known here are these pieces, sorted; all other pages of the
/// span belong to mappings that the system joins as it can. A source of many pieces, or one that would exceed the budget, is not moved: its copy is one mapping again.
/// (M1) No hole: the source stays mapped, without memory, so that nobody else's mapping can come to lie there. A source that was a piece needs a fresh mapping before it counts as joined.
/// Thread rule: external lock.

#include <cstddef>
#include <cstdint>

#include "heap/page_map.hpp"

namespace taiyen::heap {

class MovedPages {
public:
    /// A source of more pieces is copied.
    static constexpr unsigned source_pieces_max = 4;

    explicit MovedPages(std::byte* span) : span_(span) {}
    MovedPages(const MovedPages&) = delete;
    MovedPages& operator=(const MovedPages&) = delete;
    ~MovedPages();

    /// Moves what it can from the front of the run to the pages from `to` on, and returns how many. What lay there is gone, and the source's content is unspecified.
    Page move(PageRun from, Page to) noexcept;
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

    bool prepare() noexcept;
    /// Index of the first piece that ends behind the page.
    std::size_t first_behind(Page page) const;
    void insert(Piece piece) noexcept;

    std::byte* const span_;
    Piece* pieces_ = nullptr;  ///< sorted by `first`, disjoint
    std::size_t count_ = 0;
    std::size_t budget_ = pieces_max;
    bool asked_system_ = false;
};

}  // namespace taiyen::heap
