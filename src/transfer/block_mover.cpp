#include "transfer/block_mover.hpp"

#include <algorithm>
#include <cstring>

#include "base/planted.hpp"
#include "heap/engine_layout.hpp"

namespace taiyen::transfer {
namespace {

/// In the unit of budgets: one without an end has no nanoseconds.
std::chrono::microseconds elapsed_since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began);
}

}  // namespace

BlockMover::BlockMover(store::HeapFile& file, const HeapView& heap, const CompactionPlan& plan, CompactReport& report)
    : file_(file), heap_(heap), plan_(plan), report_(report), span_(reinterpret_cast<std::byte*>(file.ranges().durable)),
      observer_(file.participant() != nullptr ? file.participant()->observer() : nullptr), left_pages_(heap.engine.extent() / page_bytes),
      proven_pages_(left_pages_.size()), segments_(plan.segments()) {}

void BlockMover::copy(const CompactOptions& options, std::chrono::steady_clock::time_point began) {
    for (const CompactionPlan::Group& group : plan_.groups()) {
        if (has_moved() && report_.moved_bytes + group.bytes > options.bytes_max) return;
        if (has_moved() && options.time_max.count() != 0 && elapsed_since(began) >= options.time_max) return;
        if (!copy_group(group)) return;
        ++groups_done_;
        count(group);
    }
}

bool BlockMover::take_places(const CompactionPlan::Group& group) {
    std::size_t next = group.first;
    const auto move = [&](std::size_t i) -> const CompactionPlan::Move& { return plan_.moves()[i]; };
    const auto give_back = [&] {
        while (next-- > group.first) file_.engine().deallocate(span_ + move(next).to);
    };
    try {
        while (next < group.end &&
               file_.engine().allocate_at(span_ + move(next).to, move(next).bytes, move(next).bytes % 16 == 0 ? 16 : 8, move(next).content))
            ++next;
        if (next == group.end) return true;
    } catch (const HeapFull&) {  // free pages without disk blocks, and the disk is full
    } catch (...) {
        give_back();
        throw;
    }
    give_back();
    return false;
}

void BlockMover::prove(std::uint64_t place, ByteCount bytes) {
    for (std::uint64_t page = place / page_bytes; page * page_bytes < place + bytes; ++page) {
        if (proven_pages_[page]) continue;
        file_.proofs().prove_saved({page * page_bytes}, page_bytes);
        proven_pages_[page] = true;
    }
}

bool BlockMover::copy_group(const CompactionPlan::Group& group) {
    moved_.reserve(std::max(moved_.size() + (group.end - group.first), moved_.size() * 2));
    for (std::size_t i = group.first; i < group.end; ++i) {
        prove(plan_.moves()[i].from, plan_.moves()[i].bytes);
        prove(plan_.moves()[i].to, plan_.moves()[i].bytes);
    }
    if (!take_places(group)) return false;
    for (std::size_t i = group.first; i < group.end; ++i) {
        const CompactionPlan::Move& move = plan_.moves()[i];
        announce(move.to, move.bytes);
        std::memcpy(span_ + move.to, span_ + move.from, move.bytes);
        for (std::uint64_t page = move.from / page_bytes; page * page_bytes < move.from + move.bytes; ++page) left_pages_[page] = true;
        moved_.push_back(move);
        report_.moved_bytes += move.bytes;
    }
    report_.moved_blocks = moved_.size();
    return true;
}

void BlockMover::count(const CompactionPlan::Group& group) {
    const auto segment = [this](heap::Page page) -> std::uint16_t& { return segments_[page / heap::layout::segment_pages]; };
    for (heap::Page page = group.to; page < group.to + group.taken; ++page) report_.segments_after += segment(page)++ == 0 ? 1 : 0;
    for (heap::Page page = group.from; page < group.from + group.freed; ++page) report_.segments_after -= --segment(page) == 0 ? 1 : 0;
    report_.pages_after = report_.pages_after + group.taken - group.freed;
}

void BlockMover::count_left() {
    for (std::size_t i = groups_done_; i < plan_.groups().size(); ++i) {
        report_.left_blocks += plan_.groups()[i].end - plan_.groups()[i].first;
        report_.left_bytes += plan_.groups()[i].bytes;
    }
}

Relocation BlockMover::relocation() const {
    std::vector<std::uint64_t> theirs;  // blocks that moved, where they lay and where they lie
    theirs.reserve(moved_.size() * 2);
    for (const CompactionPlan::Move& move : moved_) theirs.insert(theirs.end(), {move.from, move.to});
    std::sort(theirs.begin(), theirs.end());
    std::vector<Relocation::Range> ranges;
    ranges.reserve(moved_.size() * 2);
    const auto add_still = [&](std::uint64_t place) {
        const auto block = heap_.engine.find_block(heap_.bytes + place);
        if (!block || std::binary_search(theirs.begin(), theirs.end(), block->offset.value)) return;
        const std::uintptr_t address = heap_.base + block->offset.value;
        ranges.push_back({address, block->usable_bytes, address});
    };
    for (const CompactionPlan::Move& move : moved_) {
        ranges.push_back({heap_.base + move.from, move.bytes, heap_.base + move.to});
        add_still(move.from - 1);
        add_still(move.from + move.bytes);
    }
    std::sort(ranges.begin(), ranges.end(), [](const Relocation::Range& a, const Relocation::Range& b) { return a.from < b.from; });
    ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
    return Relocation(std::move(ranges));
}

bool BlockMover::is_near(std::uint64_t place) const {
    const std::uint64_t page = place / page_bytes;
    if (page < left_pages_.size() && left_pages_[page]) return true;
    return place % page_bytes == 0 && page != 0 && page <= left_pages_.size() && left_pages_[page - 1];
}

void BlockMover::find_names(const Relocation& relocation) {
    for (heap::Root& root : heap_.engine.roots()) {
        if (!is_near(root.object.value)) continue;
        const HeapOffset now{relocation.map(heap_.base + root.object.value) - heap_.base};
        if (now.value == root.object.value) continue;
        names_.push_back({std::move(root.name), now});
    }
}

void BlockMover::rewrite(const PointerPlaces& places, const Relocation& relocation) {
    places.visit(0, heap_.engine.extent(), [&](std::uint64_t place, std::uint64_t value, bool is_end) {
        if (!is_near(value - heap_.base)) return;
        const std::uint64_t now = moved(relocation, value, is_end);
        if (now == value) return;
        // Found in the old block, which is as it was; what counts is the new one.
        const std::uint64_t at = left_pages_[place / page_bytes] ? relocation.map(heap_.base + place) - heap_.base : place;
        if (!planted(Bug::compact_pointers_unheard)) announce(at, sizeof now);
        std::memcpy(span_ + at, &now, sizeof now);
        ++report_.pointers;
    });
    for (const Name& name : names_) file_.engine().move_root(name.text, name.object);
}

void BlockMover::free_old() {
    for (const CompactionPlan::Move& move : moved_) {
        file_.retire_guard(span_ + move.from);
        file_.engine().deallocate(span_ + move.from);
        file_.held().freed(span_ + move.from);  // whoever gets the place next was never lent
    }
    file_.engine().release_empty_pages();
}

void BlockMover::free_new() noexcept {
    for (const CompactionPlan::Move& move : moved_) file_.engine().deallocate(span_ + move.to);
}

void BlockMover::announce(std::uint64_t offset, ByteCount length) {
    if (observer_ != nullptr) observer_->about_to_write({offset}, length);
}

}  // namespace taiyen::transfer
