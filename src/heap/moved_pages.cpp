#include "heap/moved_pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "vm/address_space.hpp"

namespace taiyen::heap {

MovedPages::~MovedPages() {
    if (pieces_ != nullptr) ::munmap(pieces_, (pieces_max + 2) * sizeof(Piece));
}

bool MovedPages::prepare() noexcept {
    if (pieces_ != nullptr) return true;
    if (asked_system_) return false;
    asked_system_ = true;
    set_budget(std::min<std::size_t>(budget_, vm::mappings_max() / 8));
    // Not from malloc, which may be one of our heaps.
    void* const memory = ::mmap(nullptr, (pieces_max + 2) * sizeof(Piece), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    pieces_ = static_cast<Piece*>(memory);
    return true;
}

std::size_t MovedPages::first_behind(Page page) const {
    return static_cast<std::size_t>(std::partition_point(pieces_, pieces_ + count_, [page](const Piece& piece) { return piece.end <= page; }) -
                                    pieces_);
}

void MovedPages::insert(Piece piece) noexcept {
    const std::size_t at = first_behind(piece.first);
    std::copy_backward(pieces_ + at, pieces_ + count_, pieces_ + count_ + 1);
    pieces_[at] = piece;
    ++count_;
}

bool MovedPages::any(PageRun run) const {
    const std::size_t at = count_ == 0 ? 0 : first_behind(run.first);
    return at < count_ && pieces_[at].first < run.first + run.count;
}

bool MovedPages::forget(PageRun run) noexcept {
    if (count_ == 0) return false;
    const Page end = run.first + run.count;
    const std::size_t begin = first_behind(run.first);
    std::size_t behind = begin;
    Piece before{};
    Piece after{};
    for (; behind < count_ && pieces_[behind].first < end; ++behind) {
        if (pieces_[behind].first < run.first) before = {pieces_[behind].first, run.first};
        if (pieces_[behind].end > end) after = {end, pieces_[behind].end};
    }
    if (behind == begin) return false;
    std::copy(pieces_ + behind, pieces_ + count_, pieces_ + begin);
    count_ -= behind - begin;
    if (before.end != 0) insert(before);
    if (after.end != 0) insert(after);
    return true;
}

Page MovedPages::move(PageRun from, Page to) noexcept {
    if (!prepare()) return 0;
    // The source's stretches of one mapping each, as far as is known.
    std::array<PageRun, source_pieces_max> stretches;
    unsigned count = 0;
    const Page end = from.first + from.count;
    std::size_t piece = first_behind(from.first);
    for (Page at = from.first; at < end; ++count) {
        if (count == source_pieces_max) return 0;
        Page stop = end;
        if (piece < count_ && pieces_[piece].first <= at)
            stop = std::min(end, pieces_[piece++].end);
        else if (piece < count_)
            stop = std::min(end, pieces_[piece].first);
        stretches[count] = {at, stop - at};
        at = stop;
    }
    if (count_ + count + 2 > budget_) return 0;  // forgetting may split two
    Page moved = 0;
    unsigned done = 0;
    for (; done < count; ++done) {
        const PageRun& stretch = stretches[done];
        if (!vm::move_mapping(span_ + stretch.first * page_bytes, span_ + (to + moved) * page_bytes, stretch.count * page_bytes)) break;
        moved += stretch.count;
    }
    if (moved == 0) return 0;
    forget({to, moved});
    for (unsigned i = 0; i < done; ++i) {
        insert({to, to + stretches[i].count});
        to += stretches[i].count;
    }
    return moved;
}

}  // namespace taiyen::heap
