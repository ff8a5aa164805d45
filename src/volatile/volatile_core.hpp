#pragma once
/// VolatileCore: the compiled side of a VolatileHeap.
///
/// The span belongs to the engine of all heaps (engine.hpp), under a lock: it serves blocks above 2 KiB, and lends chunks of segments. Threads own segments and serve
/// small blocks from them without a lock (thread_blocks.hpp). When no segment can be had any more, the engine serves small blocks, too, out of what is left.
///
/// (V1) Who frees goes by the segment's owner word: the engine's, nobody's, mine, another thread's. No pointer is followed before a bit says that a live block starts there.
/// (V2) Lock order: the register of heaps, then a heap's lock. A fork takes all of them, so that the child finds no heap in the middle of a change; records of threads
///      that don't exist in the child stay as they are: what they parked is lost to it, nothing else.
/// Address space: [base, base + capacity) the span, from the next slot boundary on, beside it, owned_segments.hpp's metadata and the thread records.
/// Thread rule: safe; construction and destruction overlap with nothing.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <taiyen/base/error.hpp>
#include <taiyen/heap/volatile_heap.hpp>

#include "heap/core.hpp"
#include "volatile/block_guards.hpp"
#include "volatile/decay.hpp"
#include "volatile/moved_pages.hpp"
#include "volatile/thread_blocks.hpp"
#include "volatile/thread_table.hpp"

namespace taiyen::heap {

class VolatileCore final : public HeapCore, private SpanHost {
public:
    /// Throws: HeapFull{address_space}, Error{invalid_argument | out_of_address_space}.
    static std::unique_ptr<VolatileCore> open(const VolatileOptions& options);

    /// Writes a span as an engine has left it, having told `host` how far it reaches.
    using FillSpan = std::function<void(std::byte* span, SpanHost& host)>;
    /// A heap whose blocks are there from the beginning: the engine's, all of them. Guards know nothing of such blocks, so it has none. `place`: from `reserve`. Throws: as open, and what `fill` throws.
    static std::unique_ptr<VolatileCore> open(const VolatileOptions& options, vm::Reservation place, Links links, const FillSpan& fill);
    /// Address space for a heap of that capacity, there, or (0) where there is room, that far behind the beginning of a slot. Throws: as open; Error{address_in_use}.
    static vm::Reservation reserve(ByteCount capacity, std::uintptr_t address, std::uintptr_t within_slot = base_alignment,
                                   vm::Placement placement = vm::Placement::high);
    /// Memory for containers outside every heap (scratch.hpp). Throws: as open.
    static std::unique_ptr<VolatileCore> open_scratch(ByteCount capacity);
    static VolatileHeap heap_of(std::unique_ptr<VolatileCore> core) { return VolatileHeap(std::move(core)); }
    static VolatileCore* core_of(const VolatileHeap& heap) { return heap.core_.get(); }
    ~VolatileCore() override;

    void* allocate(ByteCount bytes, ByteCount alignment) {
        if (void* const block = allocate_parked(bytes, alignment)) [[likely]]
            return block;
        return allocate_or_throw(bytes, alignment);
    }
    void* try_allocate(ByteCount bytes, ByteCount alignment) noexcept;
    bool deallocate(void* block) noexcept { return park(block) || deallocate_slowly(block); }
    void* resize(void* block, ByteCount bytes);
    ByteCount usable_size(const void* block) const noexcept;
    VolatileStats stats() const;
    void trim() noexcept;
    /// Proves the metadata of the engine and of all segments. Requires: no other thread is in the heap.
    std::vector<Damage> check() const;
    /// Each live block, segments first; no other thread may be in the heap.
    void for_each_block(const std::function<void(const std::byte*, ByteCount)>& visit) const;

    const std::filesystem::path& path() const override;
    bool is_volatile() const noexcept override { return true; }
    void check_usable(bool) const override {}
    Engine& engine() override { return *engine_; }
    void* allocate_durable(ByteCount bytes, ByteCount alignment, Content) override { return allocate(bytes, alignment); }
    bool deallocate_durable(void* block) noexcept override { return deallocate(block); }
    bool deallocate_lent(void* block, std::uint32_t) noexcept override { return deallocate(block); }
    ByteCount usable_durable(const void* block) const noexcept override { return usable_size(block); }
    bool begins_block(const void* address) const override { return usable_size(address) != 0; }
    /// What is live, ascending. Requires: no other thread is in the heap.
    std::vector<Block> blocks() const;
    bool is_guarded() const noexcept { return guards_ != nullptr; }
    PageSize pages() const noexcept { return pages_; }
    LiveBlocks live_blocks(std::size_t listed_max) const;
    LiveBlocks leaked_blocks(std::size_t listed_max) const;
    void add_leak_root(const void* begin, ByteCount bytes);
    void remove_leak_root(const void* begin) noexcept;
    std::size_t check_guards() const noexcept { return guards_ != nullptr ? guards_->check() : 0; }
    std::unique_lock<std::mutex> lock_engine() const override { return std::unique_lock(mutex_); }

    /// From this thread's magazine; null: it is empty, or the block needs something else.
    [[gnu::always_inline]] void* allocate_parked(ByteCount bytes, ByteCount alignment) noexcept {
        if (bytes > class_granules_max * layout::granule_bytes || alignment > layout::granule_bytes) [[unlikely]]
            return nullptr;
        const ThreadTable::Entry& entry = cached();
        if (entry.serial != parked_serial_) [[unlikely]]
            return nullptr;
        return entry.blocks->allocate_parked(bytes);
    }
    /// Into this thread's magazine; false: see ThreadBlocks::park.
    [[gnu::always_inline]] bool park(void* block) noexcept {
        const ThreadTable::Entry& entry = cached();
        return entry.serial == parked_serial_ && entry.blocks->park(block);
    }
    /// This thread's record if it has one.
    ThreadBlocks* mine_known() const noexcept;

    std::uint64_t serial() const noexcept { return serial_; }
    /// For tests: what decay goes by instead of the system's clock.
    void set_clock(Decay::Clock clock) { decay_.set_clock(clock); }
    /// For tests: how many pieces of memory may lie where they were moved to. Beyond it blocks move by copying.
    void set_moved_pieces_max(std::size_t pieces) { moved_.set_budget(pieces); }
    std::size_t moved_pieces() const { return moved_.pieces(); }
    /// A thread that had the record has ended.
    void retire(ThreadBlocks& blocks) noexcept;
    VolatileCore* next_open = nullptr;  ///< in the VolatileRegister
    void lock_for_fork();
    void unlock_after_fork();

private:
    /// Throws: Error{invalid_argument | address_in_use}: it can't lie there.
    static void require_address(const VolatileOptions& options);
    static std::unique_ptr<VolatileCore> open_empty(const VolatileOptions& options, Listed listed);
    VolatileCore(vm::Reservation reservation, const VolatileOptions& options, const FillSpan& fill, Listed listed = Listed::yes);
    void extend(ByteCount extent_bytes) override;
    std::string_view name() const noexcept override { return name_.native(); }
    bool moves_pages() const override { return true; }
    MovedBytes move_pages(HeapOffset from, HeapOffset to, ByteCount length, bool target_has_memory) noexcept override;
    /// Fresh pages over a part of the extent; false: the system refused, and what was there is still mapped.
    bool renew(HeapOffset offset, ByteCount length) noexcept;

    /// What this thread used last under the heap's place in the cache; it is this heap's record if the serial is.
    const ThreadTable::Entry& cached() const noexcept {
        return *reinterpret_cast<const ThreadTable::Entry*>(reinterpret_cast<const std::byte*>(thread_table.cache) + cache_offset_);
    }
    ThreadBlocks* mine_if_any() const noexcept {
        const ThreadTable::Entry& entry = cached();
        return entry.serial == serial_ ? entry.blocks : nullptr;
    }
    /// This thread's record; null: none to be had.
    [[gnu::noinline]] ThreadBlocks* mine() noexcept;

    [[gnu::noinline]] void* allocate_or_throw(ByteCount bytes, ByteCount alignment);
    /// Null: `full` says why.
    void* allocate_slowly(ByteCount bytes, ByteCount alignment, std::optional<HeapFull>& full) {
        return guards_ != nullptr ? allocate_guarded(bytes, alignment, full) : allocate_raw(bytes, alignment, full);
    }
    void* allocate_raw(ByteCount bytes, ByteCount alignment, std::optional<HeapFull>& full);
    [[gnu::noinline]] void* allocate_guarded(ByteCount bytes, ByteCount alignment, std::optional<HeapFull>& full);
    void* allocate_in_engine(ByteCount bytes, ByteCount alignment);
    void* allocate_small(unsigned size_class, ByteCount alignment) noexcept;
    [[gnu::noinline]] bool deallocate_slowly(void* block) noexcept { return guards_ != nullptr ? deallocate_guarded(block) : deallocate_raw(block); }
    bool deallocate_raw(void* block) noexcept;
    [[gnu::noinline]] bool deallocate_guarded(void* block) noexcept;
    ByteCount usable_raw(const void* block) const noexcept;
    /// Whether the block may be one of the engine's that begins within a granule: from a heap with packed pages.
    bool may_be_packed(const void* block) const noexcept {
        const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - map_.base);
        return offset < ranges().durable_bytes && offset % layout::granule_bytes == layout::granule_bytes / 2 &&
               (map_.segment_of(offset / layout::granule_bytes).owner.load(std::memory_order_acquire) & ~segment_queued) == segment_of_engine;
    }
    void* resize_guarded(void* block, ByteCount bytes);
    /// Frees what leaves the quarantine until it holds no more than that.
    void shorten_quarantine(ByteCount kept_bytes) noexcept;
    void report_leaks() const noexcept;
    /// Each live block, with its bytes as asked for in a guarded heap.
    template <class Visit>
    void for_each_live(const Visit& visit) const;
    /// A block of 2 to 32 KiB without the lock; null: the thread has none.
    void* allocate_parked_run(ByteCount bytes, ByteCount alignment) noexcept;
    /// Parks it. Nothing: it is none that can be parked.
    std::optional<FreeResult> park_run(ThreadBlocks& blocks, void* block) noexcept;
    FreeResult free_in_engine(void* block) noexcept;
    void harvest(ThreadBlocks& blocks) noexcept;
    /// Gives empty segments that the thread has too many of to the heap.
    void share_empty(ThreadBlocks& blocks, unsigned kept) noexcept;

    // Under the lock.
    bool give_segment(ThreadBlocks& blocks, unsigned granules);
    bool lend_chunk();
    void take_back(SegmentHead& segment, bool all);
    void return_chunk(SegmentHead& first);
    void unlink_waiting(SegmentHead& segment);
    /// Gives runs that the thread has parked back to the engine.
    void release_runs(ThreadBlocks& blocks, bool all) noexcept;
    /// All that can be given back to the engine without the help of other threads.
    void reclaim(ThreadBlocks* blocks);
    /// Pages of so many bytes were freed: it may be time to give some back.
    void decay(ByteCount freed) noexcept;
    void* resize_in_engine(void* block, ByteCount bytes);
    /// Gives free pages in pieces of `minimum` bytes and more back to the system; with `kept` the highest ones, until no more than that is left.
    void purge(ByteCount minimum, ByteCount kept);
    /// Live for the engine and free for everybody else.
    bool is_parked_run(HeapOffset offset) const {
        const std::uint64_t granule = offset.value / layout::granule_bytes;
        return map_.segment_of(granule).owner.load(std::memory_order_relaxed) == segment_of_engine &&
               RunMark(map_, granule).state() == RunMark::State::parked;
    }
    void visit_segments(const std::function<void(const SegmentHead&)>& visit) const;

    OwnedMap map_;
    const std::uint64_t serial_;
    const std::uint64_t parked_serial_;  ///< the same, but nobody's in a guarded heap, whose blocks all pass the guards
    const std::size_t cache_offset_ = serial_ % ThreadTable::cached * sizeof(ThreadTable::Entry);
    const MemoryTool tool_;
    const std::unique_ptr<BlockGuards> guards_;  ///< null: not guarded
    const bool reports_leaks_;
    const PageSize pages_;
    const int numa_node_;
    const std::filesystem::path name_;  ///< empty: none
    vm::Reservation reservation_;
    mutable std::mutex mutex_;
    ByteCount mapped_ = 0;
    MovedPages moved_;
    std::map<const void*, ByteCount> leak_roots_;  ///< beginnings and lengths
    std::unique_ptr<Engine> engine_;
    std::byte* records_begin_ = nullptr;
    unsigned record_count_ = 0;
    ThreadBlocks* records_ = nullptr;
    ThreadBlocks* idle_records_ = nullptr;
    SegmentHead* waiting_ = nullptr;  ///< segments that are nobody's
    std::uint32_t waiting_count_ = 0;
    std::uint32_t lent_count_ = 0;
    Decay decay_;
};

}  // namespace taiyen::heap
