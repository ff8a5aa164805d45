#include "volatile/moved_pages.hpp"

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

MovedPages::Stretches MovedPages::stretches_of(PageRun run) const {
    Stretches stretches;
    const Page end = run.first + run.count;
    std::size_t piece = first_behind(run.first);
    for (Page at = run.first; at < end;) {
        if (stretches.count == source_pieces_max) return {};
        Page stop = end;
        if (piece < count_ && pieces_[piece].first <= at)
            stop = std::min(end, pieces_[piece++].end);
        else if (piece < count_)
            stop = std::min(end, pieces_[piece].first);
        stretches.of[stretches.count++] = {at, stop - at};
        at = stop;
    }
    return stretches;
}

unsigned MovedPages::move_stretches(const Stretches& stretches, std::byte* from, std::byte* to) const noexcept {
    for (unsigned i = 0; i < stretches.count; ++i) {
        const PageRun& stretch = stretches.of[i];
        const ByteCount at = (stretch.first - stretches.of[0].first) * page_bytes;
        if (!vm::move_mapping(from + at, to + at, stretch.count * page_bytes)) return i;
    }
    return stretches.count;
}

void MovedPages::note_moved(const Stretches& stretches, unsigned count, Page to) noexcept {
    if (count == 0) return;
    const Page first = stretches.of[0].first;
    forget({to, stretches.of[count - 1].first + stretches.of[count - 1].count - first});
    for (unsigned i = 0; i < count; ++i) {
        const Page begin = to + (stretches.of[i].first - first);
        insert({begin, begin + stretches.of[i].count});
    }
}

Page MovedPages::move(PageRun from, Page to) noexcept {
    if (!prepare()) return 0;
    const Stretches source = stretches_of(from);
    if (source.count == 0 || count_ + source.count + 2 > budget_) return 0;  // forgetting may split two
    const unsigned moved = move_stretches(source, span_ + from.first * page_bytes, span_ + to * page_bytes);
    note_moved(source, moved, to);
    return moved == 0 ? 0 : source.of[moved - 1].first + source.of[moved - 1].count - from.first;
}

Page MovedPages::exchange(PageRun from, Page to) noexcept {
    if (!prepare()) return 0;
    const Stretches source = stretches_of(from);
    const Stretches target = stretches_of({to, from.count});
    if (source.count == 0 || target.count == 0 || count_ + source.count + target.count + 4 > budget_) return 0;
    std::byte* const from_place = span_ + from.first * page_bytes;
    std::byte* const to_place = span_ + to * page_bytes;
    // Where whole page tables can move.
    constexpr ByteCount table = ByteCount{2} << 20U;
    std::byte* const aside = aside_ + (reinterpret_cast<std::uintptr_t>(to_place) - reinterpret_cast<std::uintptr_t>(aside_)) % table;
    const ByteCount length = from.count * page_bytes;
    if (length + table > aside_bytes_) return 0;
    if (move_stretches(target, to_place, aside) != target.count) {
        ::madvise(aside, length, MADV_DONTNEED);  // nobody's bytes
        return 0;
    }
    const unsigned moved = move_stretches(source, from_place, to_place);
    unsigned came = 0;
    if (moved == source.count) came = move_stretches(target, aside, from_place);
    if (came != target.count) ::madvise(aside, length, MADV_DONTNEED);
    note_moved(source, moved, to);
    note_moved(target, came, from.first);
    return moved == 0 ? 0 : source.of[moved - 1].first + source.of[moved - 1].count - from.first;
}

}  // namespace taiyen::heap
