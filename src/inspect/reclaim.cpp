#include <taiyen/inspect/reclaim.hpp>

#include "inspect/block_walk.hpp"
#include "store/heap_access.hpp"
#include "transfer/change_step.hpp"

namespace taiyen {
namespace {

using heap::Block;
using inspect::BlockSet;
using inspect::BlockWalk;

/// Tells how far a search is; keeps nothing.
class Teller final : public BlockWalk::Listener {
public:
    Teller(const Progress& progress, std::size_t whole) : progress_(progress), whole_(whole) {}
    void reached(const Block& block) override {
        done_ += block.usable_bytes;
        ++blocks_;
        if (progress_ && done_ - told_ >= told_step) {
            told_ = done_;
            progress_(done_, whole_);
        }
    }
    std::uint64_t blocks() const { return blocks_; }

private:
    static constexpr std::size_t told_step = std::size_t{1} << 20U;

    const Progress& progress_;
    const std::size_t whole_;
    std::size_t done_ = 0;
    std::size_t told_ = 0;
    std::uint64_t blocks_ = 0;
};

/// What no named object leads to. Counts what stays, though no object has its address.
BlockSet leaked_blocks(const store::HeapFile& file, const std::vector<heap::Root>& roots, const Progress& progress, ReclaimReport& report) {
    Teller teller(progress, file.engine().stats().live_bytes);
    BlockWalk walk(file);
    for (const heap::Root& root : roots) walk.from(root.object, teller);
    const std::uint64_t certain = teller.blocks();
    walk.from_hinted(teller);
    report.doubtful_blocks = teller.blocks() - certain;
    BlockSet leaked;
    file.engine().for_each_block([&](const Block& block) {
        if (walk.visited().contains(inspect::id_of(block.offset))) return true;
        leaked.insert(inspect::id_of(block.offset));
        ++report.freed_blocks;
        report.freed_bytes += block.usable_bytes;
        return true;
    });
    return leaked;
}

void require_unused(store::HeapFile& file, const transfer::ChangeStep& step) {
    if (step.is_part()) {
        throw Error(errc::scope_open, file.path(),
                    "reclaim: this thread has a transaction or a scope open on the heap, which may have taken blocks out of it; end it first");
    }
    if (file.held().has_lent()) {
        throw Error(errc::still_in_use, file.path(),
                    "reclaim: containers were moved out of the heap since it was opened, or copied their allocator, and may have blocks of it; "
                    "destroy them, open the heap again, and reclaim first");
    }
}

}  // namespace

ReclaimReport reclaim(ArchiveHeap& heap, const Progress& progress) {
    store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(false);
    transfer::ChangeStep step(file, "reclaim");
    require_unused(file, step);
    ReclaimReport report;
    const std::vector<heap::Root> roots = file.engine().roots();
    if (roots.empty()) {
        if (file.engine().stats().live_blocks == 0) return report;
        throw Error(errc::invalid_argument, file.path(),
                    "reclaim: the heap has no named objects, so nothing tells what is in use; give the objects that lead to all others a name");
    }
    // A word that rot changed leads nowhere, and what it led to would be freed.
    file.proofs().prove_unwritten(std::vector<bool>(file.engine().capacity() / page_bytes, true));
    const BlockSet leaked = leaked_blocks(file, roots, progress, report);
    if (leaked.empty()) return report;
    step.change();
    auto* const span = reinterpret_cast<std::byte*>(file.ranges().durable);
    for (const std::int64_t id : leaked) file.deallocate_durable(span + inspect::block_of(id).value);
    step.commit();
    return report;
}

}  // namespace taiyen
