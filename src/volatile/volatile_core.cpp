#include "volatile/volatile_core.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "volatile/volatile_register.hpp"

namespace taiyen::heap {

namespace {

constexpr ByteCount huge_bytes = ByteCount{2} << 20U;
constexpr std::uint32_t huge_segments = static_cast<std::uint32_t>(huge_bytes / segment_bytes);
constexpr ByteCount class_bytes_max = class_granules_max * layout::granule_bytes;
constexpr ByteCount records_max = 4096;  ///< threads at once; further ones share the engine
constexpr ByteCount map_step_min = ByteCount{1} << 20U;
constexpr ByteCount map_step_max = ByteCount{256} << 20U;
/// Pages change places when this many lie there: copying costs less before.
constexpr ByteCount exchanged_bytes_min = ByteCount{512} << 10U;

std::uintptr_t word_of(const ThreadBlocks& blocks) { return reinterpret_cast<std::uintptr_t>(&blocks); }

vm::Reservation reserve_somewhere(ByteCount length, std::uintptr_t within_slot, vm::Placement placement) {
    constexpr unsigned attempts = 16;  // another thread may take the place that was found
    for (unsigned attempt = 1;; ++attempt) {
        std::optional<std::uintptr_t> place;
        for (const vm::Zone& zone : {vm::volatile_zone(), vm::spare_zone()})
            if (!place) place = vm::find_free(within_slot + length, slot_bytes, placement, zone.first, zone.last);
        if (!place) {
            throw Error(errc::out_of_address_space, "the addresses that volatile heaps can have are used up: no " + std::to_string(length) +
                                                        " bytes of them are free in one piece, and no limit of the system is in the way; close "
                                                        "other heaps, or give each less capacity");
        }
        try {
            return vm::Reservation(*place + within_slot, length);
        } catch (const Error& error) {
            if (error.code() != errc::address_in_use || attempt == attempts) throw;
        }
    }
}

/// mbind(2) without a library: pages of the range come from that node.
void bind_to_node(void* address, ByteCount length, int node) {
    constexpr int preferred = 1;  // MPOL_PREFERRED: elsewhere rather than not at all
    constexpr unsigned bits = 1024;
    unsigned long mask[bits / (8 * sizeof(unsigned long))] = {};
    mask[static_cast<unsigned>(node) / (8 * sizeof(unsigned long))] |= 1UL << (static_cast<unsigned>(node) % (8 * sizeof(unsigned long)));
    // The system looks at one bit less than it is told, and would ignore the last node.
    if (::syscall(SYS_mbind, address, length, preferred, mask, static_cast<unsigned long>(bits + 1), 0U) != 0 && errno != ENOSYS)
        throw Error(errc::invalid_argument, "memory can't be taken from NUMA node " + std::to_string(node) + ": " + std::strerror(errno));
}

/// What the metadata's slots have left, for exchanging pages.
std::byte* exchange_begin(const CoreRanges& ranges) {
    return reinterpret_cast<std::byte*>(ranges.beside) +
           round_up(OwnedMap::bytes_for(ranges.durable_bytes) + records_max * sizeof(ThreadBlocks), huge_bytes);
}
ByteCount exchange_bytes(const CoreRanges& ranges) {
    const std::uintptr_t end = ranges.end();
    const auto begin = reinterpret_cast<std::uintptr_t>(exchange_begin(ranges));
    return begin < end ? end - begin : 0;
}

MemoryTool tool_for(const VolatileOptions& options) { return options.tell_memory_tools ? running_tool() : MemoryTool::none; }
bool wants_guards(const VolatileOptions& options) { return options.guarded || tool_for(options) != MemoryTool::none; }

}  // namespace

// Opening and closing.

namespace {

ByteCount capacity_for(ByteCount wanted) {
    const ByteCount capacity = wanted > layout::capacity_max ? 0 : round_up(std::max(wanted, Engine::capacity_min), page_bytes);
    if (capacity == 0) throw Error(errc::invalid_argument, "a heap's capacity is at most 8 TiB, not " + std::to_string(wanted));
    return capacity;
}

ByteCount bytes_beside(ByteCount capacity) { return round_up(OwnedMap::bytes_for(capacity) + records_max * sizeof(ThreadBlocks), page_bytes); }

CoreRanges ranges_at(std::uintptr_t base, ByteCount capacity) {
    const std::uintptr_t beside = round_up(base + capacity, huge_bytes);
    // What the last slot has left serves the exchange of pages; more than the span itself has would be for nothing.
    const ByteCount needed = bytes_beside(capacity);
    return {base, capacity, beside, std::min(round_up(beside + needed, slot_bytes) - beside, round_up(needed + capacity, huge_bytes))};
}

}  // namespace

void VolatileCore::require_address(const VolatileOptions& options) {
    if (options.address == 0) return;
    const std::uintptr_t within = options.address % slot_bytes;
    const ByteCount total = ranges_at(within, capacity_for(options.capacity)).end() - within;
    if (options.address % base_alignment != 0 || options.address < slot_bytes || options.address >= vm::address_end - total)
        throw Error(errc::invalid_argument, options.name,
                    "the address of a heap must be a multiple of 2 GiB from 4 GiB on, and the heap must end below 128 TiB");
    if (!has_free_slots(options.address, total))
        throw Error(errc::address_in_use, options.name, "a heap that is open in this process has a part of these addresses");
}

vm::Reservation VolatileCore::reserve(ByteCount capacity, std::uintptr_t address, std::uintptr_t within_slot, vm::Placement placement) {
    const std::uintptr_t within = address == 0 ? within_slot : address % slot_bytes;
    const ByteCount total = ranges_at(within, capacity_for(capacity)).end() - within;
    return address == 0 ? reserve_somewhere(total, within, placement) : vm::Reservation(address, total);
}

std::unique_ptr<VolatileCore> VolatileCore::open_empty(const VolatileOptions& options, Listed listed) {
    const ByteCount capacity = capacity_for(options.capacity);
    const FillSpan format = [capacity](std::byte* span, SpanHost& host) { Engine::format(span, capacity, host); };
    require_address(options);
    const vm::Placement placement = options.placement == Placement::low ? vm::Placement::low : vm::Placement::high;
    try {
        return std::unique_ptr<VolatileCore>(
            new VolatileCore(reserve(capacity, options.address, base_alignment, placement), options, format, listed));
    } catch (const HeapFull& full) {
        throw full.about(options.name);
    }
}

std::unique_ptr<VolatileCore> VolatileCore::open(const VolatileOptions& options) { return open_empty(options, Listed::yes); }

std::unique_ptr<VolatileCore> VolatileCore::open_scratch(ByteCount capacity) { return open_empty({.capacity = capacity}, Listed::no); }

std::unique_ptr<VolatileCore> VolatileCore::open(const VolatileOptions& options, vm::Reservation place, Links links, const FillSpan& fill) {
    VolatileOptions unguarded = options;
    unguarded.guarded = false;
    unguarded.tell_memory_tools = false;
    std::unique_ptr<VolatileCore> core(new VolatileCore(std::move(place), unguarded, fill));
    core->set_links(links);
    return core;
}

VolatileCore::VolatileCore(vm::Reservation reservation, const VolatileOptions& options, const FillSpan& fill, Listed listed)
    : HeapCore(ranges_at(reservation.address(), capacity_for(options.capacity)), reservation.size(), listed),
      serial_(VolatileRegister::of_process().next_serial()), parked_serial_(wants_guards(options) ? ~std::uint64_t{0} : serial_),
      tool_(tool_for(options)), guards_(wants_guards(options) ? new BlockGuards(options, tool_, ranges().durable, ranges().durable_bytes) : nullptr),
      reports_leaks_(options.report_leaks), pages_(options.pages), numa_node_(options.numa_node), name_(options.name),
      reservation_(std::move(reservation)),
      moved_(reinterpret_cast<std::byte*>(ranges().durable), exchange_begin(ranges()), exchange_bytes(ranges())) {
    if (options.numa_node < -1 || options.numa_node >= 1024)
        throw Error(errc::invalid_argument, "there is no NUMA node " + std::to_string(options.numa_node));
    auto* const span = reinterpret_cast<std::byte*>(ranges().durable);
    auto* const metadata = reinterpret_cast<std::byte*>(ranges().beside);
    const ByteCount capacity = ranges().durable_bytes;
    vm::map_anonymous(metadata, bytes_beside(capacity));
    map_ = OwnedMap(span, capacity, metadata);
    records_begin_ = metadata + OwnedMap::bytes_for(capacity);
    fill(span, *this);
    engine_.reset(new Engine(span, capacity, *this));
    set_durable_extent(engine_->extent());
    const auto no_fork = VolatileRegister::of_process().add(*this);
    if (tool_ != MemoryTool::none) tool_root(span, capacity, true);
    complete();
}

VolatileCore::~VolatileCore() {
    if (reports_leaks_) report_leaks();
    if (guards_ != nullptr) guards_->check();
    unregister();
    if (tool_ != MemoryTool::none) {
        guards_->forget_all();
        tool_open(tool_ == MemoryTool::address_sanitizer ? tool_ : MemoryTool::none, map_.base, engine_->extent());
        tool_root(map_.base, ranges().durable_bytes, false);
    }
    VolatileRegister::of_process().remove(*this);
}

const std::filesystem::path& VolatileCore::path() const { return name_; }

void VolatileCore::extend(ByteCount extent_bytes) {
    const ByteCount capacity = ranges().durable_bytes;
    if (extent_bytes > mapped_) {
        const ByteCount generous = std::clamp<ByteCount>(mapped_ / 8, map_step_min, map_step_max);
        ByteCount wanted = std::min(round_up(std::max(extent_bytes, mapped_ + generous), map_step_min), capacity);
        std::byte* const fresh = map_.base + mapped_;
        try {
            vm::map_anonymous(fresh, wanted - mapped_);
        } catch (const HeapFull&) {  // a system that promises no more memory than it has may still give what is needed now
            if (wanted == extent_bytes) throw;
            wanted = extent_bytes;
            vm::map_anonymous(fresh, wanted - mapped_);
        }
        if (numa_node_ >= 0) bind_to_node(fresh, wanted - mapped_, numa_node_);
        mapped_ = wanted;
    }
    set_durable_extent(extent_bytes);
}

// Threads.

ThreadBlocks* VolatileCore::mine_known() const noexcept {
    if (ThreadBlocks* const known = mine_if_any()) return known;
    return thread_table.find(serial_);
}

ThreadBlocks* VolatileCore::mine() noexcept {
    if (ThreadBlocks* const known = mine_known()) return known;
    ThreadBlocks* blocks = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (idle_records_ != nullptr) {
            blocks = idle_records_;
            idle_records_ = blocks->next_idle;
        } else if (record_count_ < records_max) {
            blocks = ::new (records_begin_ + record_count_++ * sizeof(ThreadBlocks)) ThreadBlocks(map_);
            blocks->next_record = records_;
            records_ = blocks;
        } else {
            return nullptr;
        }
        blocks->idle = false;
    }
    if (!thread_table.add(serial_, blocks)) {
        retire(*blocks);
        return nullptr;
    }
    VolatileRegister::of_process().watch_thread();
    return blocks;
}

void VolatileCore::retire(ThreadBlocks& blocks) noexcept {
    const std::lock_guard lock(mutex_);
    blocks.idle = true;
    blocks.next_idle = idle_records_;
    idle_records_ = &blocks;
}

void VolatileCore::harvest(ThreadBlocks& blocks) noexcept {
    blocks.harvest([](const std::byte* block) { tell(FreeResult::not_a_block, block); });
}

// Allocating.

void* VolatileCore::allocate_or_throw(ByteCount bytes, ByteCount alignment) {
    std::optional<HeapFull> full;
    void* const block = allocate_slowly(bytes, alignment, full);
    if (block == nullptr) throw HeapFull(*full);
    return block;
}

void* VolatileCore::try_allocate(ByteCount bytes, ByteCount alignment) noexcept {
    try {
        if (void* const block = allocate_parked(bytes, alignment)) return block;
        std::optional<HeapFull> full;
        return allocate_slowly(bytes, alignment, full);
    } catch (...) {
        return nullptr;
    }
}

void* VolatileCore::allocate_raw(ByteCount bytes, ByteCount alignment, std::optional<HeapFull>& full) {
    if (!std::has_single_bit(alignment) || alignment > Engine::alignment_max)
        throw Error(errc::invalid_argument, "an alignment is a power of two up to 2 MiB, not " + std::to_string(alignment));
    for (bool reclaimed = false;; reclaimed = true) {
        if (bytes <= class_bytes_max && alignment <= 1024)
            if (void* const block = allocate_small(class_tables.rounded[(bytes + layout::granule_bytes - 1) / layout::granule_bytes], alignment))
                return block;
        const bool parkable = ParkedRuns::serves(bytes, alignment) && parked_serial_ == serial_;
        if (parkable)
            if (void* const block = allocate_parked_run(bytes, alignment)) return block;
        const std::lock_guard lock(mutex_);
        try {
            void* const block = allocate_in_engine(bytes, std::max<ByteCount>(alignment, layout::granule_bytes));
            if (parkable) {
                const ByteCount granules = engine_->usable_size(block) / layout::granule_bytes;
                if (granules >= ParkedRuns::granules_min && granules <= ParkedRuns::granules_max)
                    RunMark(map_, map_.granule_of(block)).set_live(static_cast<std::uint32_t>(granules));
            }
            return block;
        } catch (const HeapFull& error) {
            full.emplace(error);
        }
        if (reclaimed) return nullptr;
        reclaim(mine_known());  // other sizes may have kept the room
    }
}

void* VolatileCore::allocate_in_engine(ByteCount bytes, ByteCount alignment) {
    // Large blocks begin where whole page tables can be moved, if there is such a place.
    if (bytes >= 2 * huge_bytes && alignment < huge_bytes) {
        try {
            return engine_->allocate(bytes, huge_bytes);
        } catch (const HeapFull&) {}
    }
    return engine_->allocate(bytes, alignment);
}

void* VolatileCore::allocate_small(unsigned size_class, ByteCount alignment) noexcept {
    ThreadBlocks* const blocks = mine();
    if (blocks == nullptr) return nullptr;
    if (blocks->has_mail()) harvest(*blocks);
    if (blocks->has_empty_to_spare()) share_empty(*blocks, ThreadBlocks::spare_segments);
    const ByteCount bytes = class_granules(size_class) * layout::granule_bytes;
    for (;;) {
        if (alignment > layout::granule_bytes) {
            if (void* const block = blocks->allocate_aligned(size_class, static_cast<unsigned>(alignment))) return block;
        } else {
            if (void* const block = blocks->allocate_parked(bytes)) return block;
            if (blocks->refill(size_class, blocks->should_mix())) return blocks->allocate_parked(bytes);
        }
        const std::lock_guard lock(mutex_);
        // An adopted segment may lack an aligned place; it is one of finitely many.
        if (!give_segment(*blocks, class_granules(size_class)))
            return alignment <= layout::granule_bytes && blocks->refill(size_class, true) ? blocks->allocate_parked(bytes) : nullptr;
    }
}

// Segments, under the lock.

bool VolatileCore::give_segment(ThreadBlocks& blocks, unsigned granules) {
    if (waiting_ == nullptr) {
        for (ThreadBlocks* idle = idle_records_; idle != nullptr; idle = idle->next_idle) {
            harvest(*idle);
            idle->settle();
            if (blocks.adopt(*idle, granules)) return true;
        }
        if (!lend_chunk()) return false;
    }
    SegmentHead& segment = *waiting_;
    unlink_waiting(segment);
    --map_.segments[segment.chunk].chunk_idle;
    blocks.take(segment);
    return true;
}

bool VolatileCore::lend_chunk() {
    std::uint32_t wanted =
        pages_ == PageSize::huge ? huge_segments : std::clamp<std::uint32_t>(std::bit_floor(lent_count_ / 4 + 1), 1, huge_segments);
    void* chunk = nullptr;
    for (; wanted != 0 && chunk == nullptr; wanted = chunk == nullptr ? wanted / 2 : wanted) {
        try {
            chunk = engine_->allocate(wanted * segment_bytes, wanted * segment_bytes);
        } catch (...) {
            if (wanted == 1) return false;
            continue;
        }
        break;
    }
    if (chunk == nullptr) return false;
    if (wanted == huge_segments && pages_ != PageSize::base) vm::prefer_huge_pages(chunk, huge_bytes);
    const auto first = static_cast<std::uint32_t>(map_.granule_of(chunk) >> segment_granule_shift);
    for (std::uint32_t number = first + wanted; number-- > first;) {
        SegmentHead& segment = map_.segments[number];
        segment.chunk = first;
        segment.chunk_segments = 0;
        segment.previous = nullptr;
        segment.next = waiting_;
        if (waiting_ != nullptr) waiting_->previous = &segment;
        waiting_ = &segment;
        std::uintptr_t word = segment.owner.load(std::memory_order_relaxed);
        while (!segment.owner.compare_exchange_weak(word, segment_of_nobody | (word & segment_queued))) {}
    }
    map_.segments[first].chunk_segments = wanted;
    map_.segments[first].chunk_idle = wanted;
    waiting_count_ += wanted;
    lent_count_ += wanted;
    return true;
}

void VolatileCore::unlink_waiting(SegmentHead& segment) {
    if (segment.next != nullptr) segment.next->previous = segment.previous;
    if (segment.previous != nullptr)
        segment.previous->next = segment.next;
    else
        waiting_ = segment.next;
    --waiting_count_;
}

void VolatileCore::take_back(SegmentHead& segment, bool all) {
    segment.previous = nullptr;
    segment.next = waiting_;
    if (waiting_ != nullptr) waiting_->previous = &segment;
    waiting_ = &segment;
    ++waiting_count_;
    SegmentHead& first = map_.segments[segment.chunk];
    if (++first.chunk_idle == first.chunk_segments && (all || waiting_count_ > first.chunk_segments + lent_count_ / 8)) return_chunk(first);
}

void VolatileCore::return_chunk(SegmentHead& first) {
    const std::uint32_t number = map_.number_of(first);
    const std::uint32_t count = first.chunk_segments;
    for (std::uint32_t i = 0; i < count; ++i) {
        SegmentHead& segment = map_.segments[number + i];
        unlink_waiting(segment);
        std::uintptr_t word = segment.owner.load(std::memory_order_relaxed);
        while (!segment.owner.compare_exchange_weak(word, segment_of_engine | (word & segment_queued))) {}
    }
    first.chunk_segments = 0;
    first.chunk_idle = 0;
    lent_count_ -= count;
    TAIYEN_CHECK(engine_->deallocate(map_.base + number * segment_bytes) == FreeResult::freed);
    decay_.freed(count * segment_bytes);
}

void VolatileCore::share_empty(ThreadBlocks& blocks, unsigned kept) noexcept {
    const std::lock_guard lock(mutex_);
    while (SegmentHead* const segment = blocks.surrender_empty(kept)) take_back(*segment, false);
    decay(0);
}

void VolatileCore::reclaim(ThreadBlocks* blocks) {
    const auto empty = [this](ThreadBlocks& from) {
        harvest(from);
        from.settle();
        release_runs(from, true);
        while (SegmentHead* const segment = from.surrender_empty(0)) take_back(*segment, true);
    };
    for (ThreadBlocks* idle = idle_records_; idle != nullptr; idle = idle->next_idle) empty(*idle);
    if (blocks != nullptr) empty(*blocks);
    for (SegmentHead* segment = waiting_; segment != nullptr;) {
        SegmentHead& first = map_.segments[segment->chunk];
        if (first.chunk_idle == first.chunk_segments) {
            return_chunk(first);
            segment = waiting_;  // the list has lost several
        } else {
            segment = segment->next;
        }
    }
}

void VolatileCore::decay(ByteCount freed) noexcept {
    decay_.freed(freed);
    if (!decay_.wants_look()) return;
    if (const auto kept = decay_.look(engine_->page_totals(), engine_->extent())) try {
            purge(Decay::piece_bytes_min, *kept);
        } catch (...) {}  // the list of runs found no memory: next time
}

void VolatileCore::purge(ByteCount minimum, ByteCount kept) {
    decay_.purged();
    for (const FreeRun& run : engine_->release_free_pages(minimum, kept))
        if (!moved_.forget({static_cast<Page>(run.offset.value / page_bytes), static_cast<Page>(run.length / page_bytes)}) ||
            !renew(run.offset, run.length))
            ::madvise(map_.base + run.offset.value, run.length, MADV_DONTNEED);
}

void VolatileCore::trim() noexcept {
    const std::lock_guard lock(mutex_);
    try {
        reclaim(mine_known());
        purge(page_bytes, 0);
    } catch (...) {}  // a trim is a wish
}

// Freeing.

bool VolatileCore::deallocate_raw(void* block) noexcept {
    if (block == nullptr) return true;
    const std::uint64_t granule = std::rotr(static_cast<std::uint64_t>(static_cast<std::byte*>(block) - map_.base), 4);
    if (granule >= map_.granule_end) {
        if (may_be_packed(block)) return tell(free_in_engine(block), block);
        return tell(granule << 4U < ranges().durable_bytes ? FreeResult::not_a_block : FreeResult::foreign, block);
    }
    SegmentHead& segment = map_.segment_of(granule);
    ThreadBlocks* const blocks = mine_known();
    const std::uintptr_t word = segment.owner.load(std::memory_order_acquire);
    const std::uintptr_t owner = word & ~segment_queued;
    if (blocks != nullptr && owner == word_of(*blocks)) {
        if (word != owner) {
            harvest(*blocks);
            // Announced, and not yet in the inbox: the other thread's free is the first.
            if ((map_.pending[granule / 64].load(std::memory_order_relaxed) >> (granule % 64) & 1U) != 0) return tell(FreeResult::not_a_block, block);
        }
        return tell(blocks->free(granule) ? FreeResult::freed : FreeResult::not_a_block, block);
    }
    if (owner == segment_of_engine) {
        if (blocks != nullptr)
            if (const auto parked = park_run(*blocks, block)) return tell(*parked, block);
        return tell(free_in_engine(block), block);
    }
    if (owner == segment_of_nobody || !is_live(map_, granule)) return tell(FreeResult::not_a_block, block);
    const std::uint64_t bit = std::uint64_t{1} << (granule % 64);
    if ((map_.pending[granule / 64].fetch_or(bit, std::memory_order_seq_cst) & bit) != 0) return tell(FreeResult::not_a_block, block);
    if ((segment.owner.load(std::memory_order_seq_cst) & segment_queued) != 0) return true;
    const std::uintptr_t before = segment.owner.fetch_or(segment_queued, std::memory_order_seq_cst);
    if ((before & segment_queued) != 0) return true;
    if (before == segment_of_engine || before == segment_of_nobody) {
        // Somebody else's announcement made the owner free this block, and the segment, meanwhile.
        std::uintptr_t queued = before | segment_queued;
        segment.owner.compare_exchange_strong(queued, before);
        return true;
    }
    reinterpret_cast<ThreadBlocks*>(before)->announce(segment);
    return true;
}

FreeResult VolatileCore::free_in_engine(void* block) noexcept {
    const std::lock_guard lock(mutex_);
    if ((map_.segment_of(map_.granule_of(block)).owner.load(std::memory_order_relaxed) & ~segment_queued) != segment_of_engine)
        return FreeResult::not_a_block;  // a block that was freed long ago
    RunMark mark(map_, map_.granule_of(block));
    if (mark.state() != RunMark::State::none && mark.park() == 0) return FreeResult::not_a_block;
    mark.clear();
    const ByteCount bytes = engine_->usable_size(block);
    const FreeResult result = engine_->deallocate(block);
    if (result == FreeResult::freed && bytes >= page_bytes) decay(bytes);
    return result;
}

void* VolatileCore::allocate_parked_run(ByteCount bytes, ByteCount alignment) noexcept {
    ThreadBlocks* const blocks = mine();
    std::byte* const block = blocks != nullptr ? blocks->runs.take(bytes, std::max<ByteCount>(alignment, 1)) : nullptr;
    if (block != nullptr) {
        RunMark mark(map_, map_.granule_of(block));
        mark.revive();
    }
    return block;
}

std::optional<FreeResult> VolatileCore::park_run(ThreadBlocks& blocks, void* block) noexcept {
    RunMark mark(map_, map_.granule_of(block));
    if (mark.state() == RunMark::State::none) return std::nullopt;
    const std::uint32_t granules = mark.park();
    if (granules == 0) return FreeResult::not_a_block;
    if (blocks.runs.put(static_cast<std::byte*>(block), granules)) return FreeResult::freed;
    const std::lock_guard lock(mutex_);
    release_runs(blocks, false);
    if (blocks.runs.put(static_cast<std::byte*>(block), granules)) return FreeResult::freed;
    mark.clear();
    return engine_->deallocate(block);
}

void VolatileCore::release_runs(ThreadBlocks& blocks, bool all) noexcept {
    ByteCount released = 0;
    blocks.runs.relieve(all, [&](std::byte* block) {
        RunMark(map_, map_.granule_of(block)).clear();
        released += engine_->usable_size(block);
        TAIYEN_CHECK(engine_->deallocate(block) == FreeResult::freed);
    });
    decay(released);
}

// Dynamic blocks.

ByteCount VolatileCore::usable_size(const void* block) const noexcept {
    return guards_ != nullptr ? guards_->size_of(block).value_or(0) : usable_raw(block);
}

ByteCount VolatileCore::usable_raw(const void* block) const noexcept {
    const std::uint64_t granule = std::rotr(static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - map_.base), 4);
    if (granule >= map_.granule_end) {
        if (!may_be_packed(block)) return 0;
        const std::lock_guard lock(mutex_);
        return engine_->usable_size(block);
    }
    const std::uintptr_t owner = map_.segment_of(granule).owner.load(std::memory_order_acquire) & ~segment_queued;
    if (owner == segment_of_nobody) return 0;
    if (owner != segment_of_engine) {
        if (!is_live(map_, granule)) return 0;
        const ThreadBlocks* const blocks = mine_known();
        return (blocks != nullptr && owner == word_of(*blocks) ? granules_at(map_, granule) : granules_of_others(map_, granule)) *
               layout::granule_bytes;
    }
    const std::lock_guard lock(mutex_);
    if ((map_.segment_of(granule).owner.load(std::memory_order_relaxed) & ~segment_queued) != segment_of_engine) return 0;
    if (is_parked_run({granule * layout::granule_bytes})) return 0;
    return engine_->usable_size(block);
}

SpanHost::MovedBytes VolatileCore::move_pages(HeapOffset from, HeapOffset to, ByteCount length, bool target_has_memory) noexcept {
    const Page first = static_cast<Page>(from.value / page_bytes);
    const PageRun run{first, static_cast<Page>(length / page_bytes)};
    if (target_has_memory)
        return {length < exchanged_bytes_min ? 0 : moved_.exchange(run, static_cast<Page>(to.value / page_bytes)) * page_bytes, false};
    const Page moved = moved_.move(run, static_cast<Page>(to.value / page_bytes));
    // What is left of a piece would stay a mapping of its own; elsewhere the source is empty, and as good as new.
    if (moved != 0 && moved_.any({first, moved}) && renew(from, moved * page_bytes)) moved_.forget({first, moved});
    return {moved * page_bytes, moved != 0};
}

bool VolatileCore::renew(HeapOffset offset, ByteCount length) noexcept {
    try {
        vm::map_anonymous(map_.base + offset.value, length);
        if (numa_node_ >= 0) bind_to_node(map_.base + offset.value, length, numa_node_);
        return true;
    } catch (...) {
        return false;
    }
}

void* VolatileCore::resize_in_engine(void* block, ByteCount bytes) {
    RunMark(map_, map_.granule_of(block)).clear();
    try {
        return engine_->resize(block, bytes);
    } catch (const HeapFull&) {
        reclaim(mine_known());
    }
    return engine_->resize(block, bytes);
}

void* VolatileCore::resize(void* block, ByteCount bytes) {
    if (block == nullptr) return allocate(bytes, layout::granule_bytes);
    if (guards_ != nullptr) return resize_guarded(block, bytes);
    const std::uint64_t offset = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - map_.base);
    if (offset >= ranges().durable_bytes) throw Error(errc::foreign_pointer, "resize: the block belongs to another heap or to none");
    const ByteCount usable = usable_size(block);
    if (usable == 0) throw Error(errc::double_free, {}, offset, "resize: no live block starts there");
    const bool engines =
        (map_.segment_of(offset / layout::granule_bytes).owner.load(std::memory_order_relaxed) & ~segment_queued) == segment_of_engine;
    if (bytes <= usable && bytes > usable / 2 && (!engines || usable <= class_bytes_max)) return block;
    if (engines && bytes > class_bytes_max) {
        const std::lock_guard lock(mutex_);
        void* const resized = resize_in_engine(block, bytes);
        // A source that was moved by its mappings has no memory left, but then the others count: copies and what was cut off.
        if (usable > bytes && usable - bytes >= page_bytes) decay(usable - bytes);
        return resized;
    }
    void* const moved = try_allocate(bytes, layout::granule_bytes);
    if (moved == nullptr) {
        if (bytes <= usable) return block;
        throw HeapFull(bytes, 0, HeapFull::Cause::capacity, name());
    }
    std::memcpy(moved, block, std::min(bytes, usable));
    deallocate(block);
    return moved;
}

// Guarded heaps.

void* VolatileCore::allocate_guarded(ByteCount bytes, ByteCount alignment, std::optional<HeapFull>& full) {
    bytes = std::max<ByteCount>(bytes, 1);
    const ByteCount front = std::has_single_bit(alignment) ? BlockGuards::front_bytes(alignment) : 0;
    const ByteCount wanted = bytes > ranges().durable_bytes ? bytes : front + bytes + BlockGuards::canary_bytes;
    for (ByteCount kept = guards_->quarantine_max();; kept = 0) {
        shorten_quarantine(kept);
        void* const raw = allocate_raw(wanted, alignment, full);
        if (raw != nullptr) {
            try {
                return guards_->admit(raw, usable_raw(raw), bytes, alignment);
            } catch (...) {
                deallocate_raw(raw);
                full.emplace(bytes, 0);
                return nullptr;
            }
        }
        if (kept == 0) return nullptr;
    }
}

bool VolatileCore::deallocate_guarded(void* block) noexcept {
    if (block == nullptr) return true;
    const bool freed = guards_->retire(block);
    shorten_quarantine(guards_->quarantine_max());
    return freed;
}

void VolatileCore::shorten_quarantine(ByteCount kept_bytes) noexcept {
    while (void* const raw = guards_->leave_quarantine(kept_bytes)) deallocate_raw(raw);
}

void* VolatileCore::resize_guarded(void* block, ByteCount bytes) {
    const auto before = guards_->size_of(block);
    if (!before) {
        const std::uint64_t offset = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - map_.base);
        throw Error(offset < ranges().durable_bytes ? errc::double_free : errc::foreign_pointer, {}, offset, "resize: " + guards_->describe(block));
    }
    // Always to another place: who keeps the old pointer is found out.
    void* const moved = allocate(bytes, layout::granule_bytes);
    std::memcpy(moved, block, std::min(*before, bytes));
    deallocate_guarded(block);
    return moved;
}

void VolatileCore::report_leaks() const noexcept {
    try {
        constexpr std::size_t listed = 20;
        const LiveBlocks live = live_blocks(0);
        const LiveBlocks leaked = leaked_blocks(listed);
        if (leaked.count == 0) return;
        const std::string who = name_.empty() ? "" : name_.string() + ": ";
        std::string sums =
            who + "a heap is closed with " + std::to_string(live.count) + " live blocks of " + std::to_string(live.bytes) + " bytes in all";
        if (leaked.count != live.count)
            sums += "; no root leads to " + std::to_string(leaked.count) + " of them, of " + std::to_string(leaked.bytes) + " bytes";
        report({errc::still_in_use, map_.base, sums});
        for (const LiveBlock& block : leaked.listed) {
            LiveBlocks one;
            one.listed.push_back(block);
            std::string text = one.text();
            text = text.substr(text.find('\n') + 1);
            while (!text.empty() && text.back() == '\n') text.pop_back();
            report({errc::still_in_use, block.address, who + "leaked:" + text});
        }
    } catch (...) {}  // nothing can be said without memory
}

void VolatileCore::lock_for_fork() {
    if (guards_ != nullptr) guards_->mutex().lock();
    mutex_.lock();
}

void VolatileCore::unlock_after_fork() {
    mutex_.unlock();
    if (guards_ != nullptr) guards_->mutex().unlock();
}

}  // namespace taiyen::heap
