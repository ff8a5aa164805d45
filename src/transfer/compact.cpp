#include <taiyen/transfer/compact.hpp>

#include <algorithm>
#include <optional>

#include <taiyen/base/error.hpp>

#include "heap/survey.hpp"
#include "store/heap_access.hpp"
#include "transfer/block_mover.hpp"
#include "transfer/change_step.hpp"
#include "transfer/pinned_blocks.hpp"
#include "transfer/shape_types.hpp"

namespace taiyen {
namespace transfer {
namespace {

HeapView view_of_open(const store::HeapFile& file) {
    const heap::CoreRanges& ranges = file.ranges();
    return {file.engine(), reinterpret_cast<const std::byte*>(ranges.durable), ranges.durable, ranges.durable_bytes, file.path()};
}

/// What a step is decided by: metadata, names, small blocks, and larger ones that hold pointers, or bytes that no type covers. What else moves is looked at when it does.
std::vector<bool> pages_that_decide(const HeapView& heap, const PointerPlaces& places, const PointerWalk::State::Coverage& known) {
    std::vector<bool> decide(heap.engine.extent() / page_bytes);
    for (const PointerPlaces::Page& page : places.pages()) decide[page.number] = true;
    const heap::Survey survey(heap.bytes, heap.capacity);
    survey.visit([&](const heap::PagesInUse& found) {
        if (heap::is_nobodys(found.use)) return true;
        const auto first = decide.begin() + static_cast<std::ptrdiff_t>(found.first);
        const auto end = first + static_cast<std::ptrdiff_t>(found.count);
        const bool is_quiet = found.use == heap::PageUse::run && known.whole.test(found.first * page_bytes) && std::find(first, end, true) == end;
        if (!is_quiet) std::fill(first, end, true);
        return true;
    });
    return decide;
}

/// What reads the heap before anything moves. Words that make no sense to it may be rot: then the page is named, and how to heal it.
template <class Read>
auto look(store::HeapFile& file, Read&& read) {
    try {
        return read();
    } catch (const Error&) {
        file.proofs().prove_unwritten(std::vector<bool>(file.engine().capacity() / page_bytes, true));
        throw;
    }
}

/// What moves, moves. False: nothing does.
bool move_blocks(BlockMover& mover, ChangeStep& step, const PointerPlaces& places, const CompactOptions& options,
                 std::chrono::steady_clock::time_point began, CompactReport& report) {
    step.change();
    try {
        mover.copy(options, began);
        report.relocation = mover.relocation();
        mover.find_names(report.relocation);
    } catch (...) {
        mover.free_new();
        step.leave();
        throw;
    }
    if (!mover.has_moved()) return false;
    mover.rewrite(places, report.relocation);
    mover.free_old();
    return true;
}

/// What became free may be room for more. Without memory nobody can tell: the blocks have moved, and the program must hear where they went.
void count_next(const HeapView& heap, const PinnedBlocks& pinned, ByteCount block_bytes_max, CompactReport& report) {
    try {
        const CompactionPlan next(heap, pinned.offsets(), block_bytes_max);
        for (const CompactionPlan::Group& group : next.groups()) {
            report.left_blocks += group.end - group.first;
            report.left_bytes += group.bytes;
        }
    } catch (const std::bad_alloc&) {}
}

CompactReport compact_file(store::HeapFile& file, const CompactOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    file.check_usable(false);
    if (file.links() == heap::Links::distances) {
        throw Error(errc::type_mismatch, file.path(),
                    "a position-independent heap keeps distances between its blocks, which can't move against one another");
    }
    CompactReport report;
    ChangeStep step(file, "compact");
    const HeapView heap = view_of_open(file);
    std::optional<ShapeTypes> shapes;
    if (options.known_types) shapes.emplace(heap.engine, options.types);
    PointerPlaces places(heap);
    PointerWalk::State::Coverage known(heap.engine.extent());
    const PinnedBlocks pinned = look(file, [&] {
        RebaseReport walk;
        PointerWalk::State walked(heap, places, walk, 0);
        walked.coverage = &known;
        walk_named(heap, shapes ? shapes->types() : options.types, walk, walked, {}, &report.undeclared);
        return PinnedBlocks(heap, known, file.held().is_idle() ? std::vector<HeapOffset>() : file.held_blocks(), report);
    });
    const CompactionPlan plan = look(file, [&] { return CompactionPlan(heap, pinned.offsets(), options.bytes_max); });
    report.large_blocks = plan.large_blocks();
    report.pages_before = report.pages_after = plan.pages_in_use();
    report.segments_before = report.segments_after = plan.segments_in_use();
    if (plan.groups().empty()) return report;
    // A pointer that rot hides would go on leading to where its block lay.
    file.proofs().prove_unwritten(pages_that_decide(heap, places, known));
    BlockMover mover(file, heap, plan, report);
    const bool has_moved = move_blocks(mover, step, places, options, began, report);
    mover.count_left();
    if (!has_moved) {
        step.leave();
        return report;
    }
    if (mover.has_done_all()) count_next(heap, pinned, options.bytes_max, report);
    step.commit();
    return report;
}

}  // namespace
}  // namespace transfer

CompactReport compact(ArchiveHeap& heap, const CompactOptions& options) { return transfer::compact_file(HeapAccess::file(heap), options); }

}  // namespace taiyen
