#include "heap/core.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "base/sanitizers.hpp"
#include "base/sentence.hpp"
#include "vm/address_space.hpp"

namespace taiyen::heap {

// Zero pages until a heap opens.
constinit std::array<std::atomic<HeapCore*>, slot_count> slot_table{};

namespace {

/// The same heaps as a list: a scan for foreign pointers asks for all of them. A heap leaves it before anything of it is taken apart.
/// Lock order: this one, then a heap's scratch lock. Never destroyed: heaps in static storage may outlive this file's statics.
struct OpenList {
    std::mutex mutex;
    std::vector<HeapCore*> cores;
    std::atomic<std::size_t> count{0};  ///< of `cores`
};
OpenList& open_list() {
    static OpenList& list = *new OpenList;
    return list;
}

/// Any thread may close the heap that is current here: the pointer counts as long as its slot says the same.
struct Current {
    HeapCore* core = nullptr;
    std::uint32_t slot = 0;
};
thread_local constinit Current current;
/// The heap that was made current here last: the next one is nearly always the same, and is found to be open without the list.
thread_local constinit Current recent;

HeapCore* at_slot(std::uint64_t slot) noexcept { return slot < slot_count ? slot_table[slot].load(std::memory_order_acquire) : nullptr; }

ByteCount scratch_bytes_for(ByteCount capacity) {
#if defined(TAIYEN_THREAD_SANITIZER)
    (void)capacity;
    return slot_bytes;  // the sanitizer leaves us about 256 slots in all
#else
    return std::min<ByteCount>(round_up(capacity, slot_bytes), 16 * slot_bytes);
#endif
}

/// Tells the handler about a free that can't be done.
void report_bad_free(errc code, const void* block, std::string_view text) noexcept { report({code, block, text}); }

/// The type name at the front of a fingerprint, readable where the compiler's name can be undone.
std::string readable_type(std::string_view fingerprint) {
    const std::string mangled(fingerprint.substr(0, fingerprint.find(' ')));
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
    std::string name = status == 0 && text ? text.get() : mangled;
    if (const auto rest = fingerprint.find(' '); rest != std::string_view::npos) name.append(" (").append(fingerprint.substr(rest + 1)).append(")");
    return name;
}

}  // namespace

bool tell(FreeResult result, const void* block) noexcept {
    switch (result) {
        case FreeResult::freed: return true;
        case FreeResult::foreign:
            report_bad_free(errc::foreign_pointer, block, "a pointer that is no block of the heap was freed; the free is ignored");
            return false;
        case FreeResult::not_a_block: break;
    }
    report_bad_free(errc::double_free, block,
                    "a pointer was freed that is not the start of a live block (freed twice, dangling or interior); the free is ignored");
    return false;
}

/// The scratch engine with the memory under it. The engine is made at the first allocation: most heaps never need it.
struct HeapCore::Scratch final : SpanHost {
    /// Memory is mapped in steps of this size, so that a growing scratch range costs few system calls.
    static constexpr ByteCount step = ByteCount{1} << 20U;

    explicit Scratch(const CoreRanges& r) : ranges(r) {}

    void extend(ByteCount extent_bytes) override {
        const ByteCount wanted = std::min<ByteCount>(round_up(extent_bytes, step), ranges.scratch_bytes);
        const ByteCount now = mapped.load(std::memory_order_relaxed);
        if (wanted <= now) return;
        vm::map_anonymous(reinterpret_cast<void*>(ranges.scratch + now), wanted - now);
        mapped.store(wanted, std::memory_order_release);
    }
    void restore_blocks(HeapOffset, ByteCount) override {}  // anonymous memory has no disk blocks

    Engine& ready() {
        if (engine) return *engine;
        auto* const span = reinterpret_cast<std::byte*>(ranges.scratch);
        // A first attempt that ran out of memory may have left bytes behind; `format` wants zeros.
        if (const ByteCount used = mapped.load(std::memory_order_relaxed); used != 0) vm::map_anonymous(span, used);
        Engine::format(span, ranges.scratch_bytes, *this);
        engine = std::make_unique<Engine>(span, ranges.scratch_bytes, *this);
        return *engine;
    }
    bool in_child() const noexcept { return this_process() != process; }

    const CoreRanges ranges;
    const ProcessNumber process = this_process();  ///< the one that opened the heap
    mutable std::mutex mutex;
    std::unique_ptr<Engine> engine;
    bool given_up = false;  ///< the heap is closed
    std::atomic<ByteCount> mapped{0};
};

ByteCount CoreRanges::total_bytes(ByteCount capacity) { return round_up(capacity, slot_bytes) + scratch_bytes_for(capacity); }

CoreRanges CoreRanges::at(std::uintptr_t base, ByteCount capacity) {
    return {base, capacity, base + round_up(capacity, slot_bytes), scratch_bytes_for(capacity)};
}

HeapCore::HeapCore(const CoreRanges& ranges) : ranges_(ranges), durable_extent_(ranges.durable_bytes) {
    scratch_ = std::make_unique<Scratch>(ranges);
    TAIYEN_CHECK(ranges.durable % slot_bytes == 0 && ranges.scratch % slot_bytes == 0 && ranges.durable_bytes != 0);
    TAIYEN_CHECK(ranges.durable + ranges.durable_bytes <= ranges.scratch);
    const std::uint64_t first = ranges.durable >> slot_shift;
    const std::uint64_t last = (ranges.scratch + ranges.scratch_bytes) >> slot_shift;
    TAIYEN_CHECK(last <= slot_count);
    for (std::uint64_t slot = first; slot < last; ++slot) {
        HeapCore* nobody = nullptr;
        TAIYEN_CHECK(slot_table[slot].compare_exchange_strong(nobody, this, std::memory_order_acq_rel));  // (I1)
    }
    registered_ = true;
    OpenList& list = open_list();
    const std::lock_guard lock(list.mutex);
    list.cores.push_back(this);
    list.count.store(list.cores.size(), std::memory_order_relaxed);
}

HeapCore::~HeapCore() { unregister(); }

void HeapCore::unregister() noexcept {
    if (!registered_) return;
    registered_ = false;
    {
        OpenList& list = open_list();
        const std::lock_guard lock(list.mutex);
        std::erase(list.cores, this);
        list.count.store(list.cores.size(), std::memory_order_relaxed);
    }
    const std::uint64_t last = (ranges_.scratch + ranges_.scratch_bytes) >> slot_shift;
    for (std::uint64_t slot = ranges_.durable >> slot_shift; slot < last; ++slot) slot_table[slot].store(nullptr, std::memory_order_release);
    if (scratch_->in_child()) return;
    const std::lock_guard lock(scratch_->mutex);
    scratch_->given_up = true;
    scratch_->engine.reset();  // before the owner of the reservation unmaps the span under it
}

bool HeapCore::protect(HeapOffset offset, ByteCount length, bool writable) noexcept {
    return vm::try_protect(reinterpret_cast<std::byte*>(ranges_.durable) + offset.value, length, writable);
}

void* HeapCore::allocate_durable(ByteCount bytes, ByteCount alignment) {
    check_changeable();
    return engine().allocate(bytes, alignment);
}

bool HeapCore::deallocate_durable(void* block) noexcept {
    try {
        check_changeable();
        return tell(engine().deallocate(block), block);
    } catch (const Error& error) {
        report_bad_free(static_cast<errc>(error.code().value()), block, error.what());
    } catch (const std::exception& error) {
        report_bad_free(errc::foreign_pointer, block, error.what());
    }
    return false;
}

bool HeapCore::deallocate_lent(void* block, std::uint32_t) noexcept { return deallocate_durable(block); }

void* HeapCore::allocate_scratch(ByteCount bytes, ByteCount alignment) {
    if (scratch_->in_child()) throw Error(errc::forked, path(), "the heap was opened before this process was forked; open it in this process");
    const std::lock_guard lock(scratch_->mutex);
    if (scratch_->given_up) throw_closed();
    void* const block = scratch_->ready().allocate(bytes, alignment);
    scratch_live_.fetch_add(1, std::memory_order_relaxed);
    return block;
}

bool HeapCore::deallocate_scratch(void* block) noexcept {
    if (scratch_->in_child()) return true;
    FreeResult result = FreeResult::not_a_block;
    {
        const std::lock_guard lock(scratch_->mutex);
        if (scratch_->engine) result = scratch_->engine->deallocate(block);
    }
    if (result == FreeResult::freed) scratch_live_.fetch_sub(1, std::memory_order_relaxed);
    return tell(result, block);
}

bool HeapCore::is_scratch_block_start(const void* address) const noexcept {
    if (!in_scratch(*this, address) || scratch_->in_child()) return false;
    const std::lock_guard lock(scratch_->mutex);
    return scratch_->engine && scratch_->engine->usable_size(address) != 0;
}

std::pair<std::uintptr_t, std::uintptr_t> HeapCore::scratch_used() const noexcept {
    return {ranges_.scratch, ranges_.scratch + scratch_->mapped.load(std::memory_order_acquire)};
}

void announce_store(HeapCore& core, std::uintptr_t address, ByteCount length) noexcept {
    if (address - core.ranges().durable >= core.ranges().durable_bytes) return;
    if (StoreListener* const listener = core.listener(); listener != nullptr) listener->on_store(reinterpret_cast<void*>(address), length);
}

void visit_open_cores(const std::function<bool(const HeapCore&)>& visit) {
    OpenList& list = open_list();
    const std::lock_guard lock(list.mutex);
    for (const HeapCore* core : list.cores) {
        if (!visit(*core)) return;
    }
}

std::string who_takes_address(std::uintptr_t base, ByteCount capacity, const Error& refusal) {
    const ByteCount bytes = CoreRanges::total_bytes(capacity);
    std::string text = "the heap's address is taken: " + sentence_of(refusal);
    visit_open_cores([&](const HeapCore& core) {
        const std::uintptr_t begin = core.ranges().durable;
        const bool overlaps = begin < base + bytes && base < begin + CoreRanges::total_bytes(core.ranges().durable_bytes);
        if (overlaps && core.is_complete()) {
            text = "the heap's address is taken by " + (core.path().empty() ? "a volatile heap" : "the heap " + core.path().string()) +
                   ", which is open in this process";
        }
        return !overlaps;
    });
    return text;
}

std::size_t open_core_count() noexcept { return open_list().count.load(std::memory_order_relaxed); }

Place place_of(const void* address) noexcept {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    HeapCore* const core = at_slot(value >> slot_shift);
    if (core == nullptr) return {};
    const CoreRanges& ranges = core->ranges();
    return {core, value - ranges.durable < ranges.durable_bytes, value - ranges.scratch < ranges.scratch_bytes};
}

HeapCore* core_at(const void* address) noexcept {
    const Place place = place_of(address);
    return place.durable || place.scratch ? place.core : nullptr;
}

HeapCore* core_of_slot(std::uint32_t slot) noexcept {
    HeapCore* const core = at_slot(slot);
    return core != nullptr && slot_of(*core) == slot ? core : nullptr;
}

std::uint32_t slot_of(const HeapCore& core) noexcept { return static_cast<std::uint32_t>(core.ranges().durable >> slot_shift); }

bool in_durable(const HeapCore& core, const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - core.ranges().durable < core.ranges().durable_bytes;
}

bool in_scratch(const HeapCore& core, const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - core.ranges().scratch < core.ranges().scratch_bytes;
}

void* allocate_durable(HeapCore& core, std::size_t bytes, std::size_t alignment) { return core.allocate_durable(bytes, alignment); }

void* allocate_scratch(HeapCore& core, std::size_t bytes, std::size_t alignment) { return core.allocate_scratch(bytes, alignment); }

void deallocate(void* block) noexcept {
    if (block == nullptr) return;
    const Place place = place_of(block);
    if (place.durable) {
        place.core->deallocate_durable(block);
    } else if (place.scratch) {
        place.core->deallocate_scratch(block);
    } else {
        report_bad_free(errc::foreign_pointer, block,
                        "a block was freed that belongs to no open heap (its heap was closed, or it never came from one); the free is ignored");
    }
}

void deallocate_lent(void* block, std::uint32_t scope) noexcept {
    if (const Place place = place_of(block); place.durable) {
        place.core->deallocate_lent(block, scope);
    } else {
        deallocate(block);
    }
}

bool lent_came_back(std::uint32_t slot, std::uint32_t scope) noexcept {
    const HeapCore* const core = scope == 0 ? nullptr : core_of_slot(slot);
    return core != nullptr && core->lent_came_back(scope);
}

HeapCore* current_core() noexcept { return current.core != nullptr && at_slot(current.slot) == current.core ? current.core : nullptr; }

HeapCore* exchange_current_core(HeapCore* core) noexcept {
    HeapCore* const before = current_core();
    current = {};
    if (core == nullptr) return before;
    if (core == recent.core && at_slot(recent.slot) == core) {
        current = recent;
        return before;
    }
    // A scope that ends puts back what was current before it, and that heap may be closed, even destroyed, by now.
    OpenList& list = open_list();
    const std::lock_guard lock(list.mutex);
    if (std::find(list.cores.begin(), list.cores.end(), core) != list.cores.end()) current = recent = {core, slot_of(*core)};
    return before;
}

std::size_t usable_size(const HeapCore& core, const void* block) {
    core.check_usable(true);
    return core.usable_durable(block);
}

std::optional<NamedObject> find_named(const HeapCore& core, std::string_view name) {
    core.check_usable(true);
    const auto lock = core.lock_engine();
    const std::optional<Root> root = core.engine().find_root(name);
    if (!root) return std::nullopt;
    return NamedObject{reinterpret_cast<void*>(core.ranges().durable + root->object.value), root->bytes, root->count, root->fingerprint};
}

void add_named(HeapCore& core, std::string_view name, const NamedObject& object) {
    core.check_changeable();
    const auto lock = core.lock_engine();
    if (core.engine().find_root(name)) throw_name_taken(core, name);
    TAIYEN_CHECK(in_durable(core, object.object));
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object.object) - core.ranges().durable;
    core.engine().add_root({std::string(name), object.fingerprint, HeapOffset{offset}, object.bytes, object.count});
}

bool remove_named(HeapCore& core, std::string_view name) {
    core.check_changeable();
    const auto lock = core.lock_engine();
    return core.engine().remove_root(name);
}

void throw_type_mismatch(const HeapCore& core, std::string_view name, std::string_view stored, std::string_view asked) {
    throw Error(errc::type_mismatch, core.path(),
                "object '" + std::string(name) + "' was constructed as " + readable_type(stored) + " but is asked for as " + readable_type(asked) +
                    "; use the type it was constructed with, or destroy it with that type first");
}

void throw_name_taken(const HeapCore& core, std::string_view name) {
    throw Error(errc::name_taken, core.path(),
                "there is an object named '" + std::string(name) + "' already; use find_or_construct, or destroy it first");
}

void throw_no_current_heap() {
    throw Error(errc::no_current_heap,
                "a container outside every heap needs memory and was given no heap; pass the heap to its constructor, or put it under a CurrentHeap, "
                "UndoScope or Transaction");
}

void check_addresses_allowed(const HeapCore& core) {
    if (core.links() == Links::addresses) [[likely]]
        return;
    throw Error(
        errc::raw_pointer, core.path(),
        "the heap may be mapped anywhere, and raw pointers in it would be wrong elsewhere; use taiyen::offset::string, taiyen::offset::map, … "
        "and taiyen::offset_ptr at every level, or a heap that is not position_independent");
}

void throw_closed() { throw Error(errc::closed, "the heap is closed; open it again"); }

}  // namespace taiyen::heap
