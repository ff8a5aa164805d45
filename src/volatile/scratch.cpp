#include "heap/scratch.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>

#include "vm/memory_limit.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen::heap {
namespace {

constinit std::atomic<VolatileCore*> scratch{nullptr};  // (S1) never destroyed

constexpr ByteCount capacity_min = ByteCount{64} << 20U;
constexpr ByteCount capacity_max = ByteCount{4} << 40U;

/// Address space for twice what the machine has; less where the process is not allowed that much.
std::unique_ptr<VolatileCore> open() {
#if defined(TAIYEN_THREAD_SANITIZER)
    ByteCount capacity = slot_bytes;  // the sanitizer leaves us about 256 slots in all
#else
    ByteCount capacity = std::clamp(std::bit_ceil(2 * vm::usable_memory()), capacity_min, capacity_max);
#endif
    for (;; capacity /= 2) {
        try {
            return VolatileCore::open_scratch(capacity);
        } catch (const HeapFull&) {
            if (capacity <= capacity_min) throw;
        } catch (const Error& error) {
            if (error.code() != errc::out_of_address_space || capacity <= capacity_min) throw;
        }
    }
}

/// Two threads may make one each; no lock, so that a fork can't leave it locked.
VolatileCore& made() {
    std::unique_ptr<VolatileCore> fresh = open();
    VolatileCore* known = nullptr;
    return scratch.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel) ? *fresh.release() : *known;
}

const VolatileCore* holder_of(const void* address) noexcept {
    const VolatileCore* const core = scratch.load(std::memory_order_acquire);
    return core != nullptr && in_durable(*core, address) ? core : nullptr;
}

}  // namespace

void* allocate_scratch(std::size_t bytes, std::size_t alignment) {
    VolatileCore* const core = scratch.load(std::memory_order_acquire);
    return (core != nullptr ? *core : made()).allocate(bytes, alignment);
}

bool deallocate_scratch(void* block) noexcept {
    if (holder_of(block) == nullptr) return false;
    scratch.load(std::memory_order_relaxed)->deallocate(block);
    return true;
}

bool in_scratch(const void* address) noexcept { return holder_of(address) != nullptr; }

bool is_scratch_block_start(const void* address) noexcept {
    const VolatileCore* const core = holder_of(address);
    return core != nullptr && core->usable_size(address) != 0;
}

std::pair<std::uintptr_t, std::uintptr_t> scratch_used() noexcept {
    const VolatileCore* const core = scratch.load(std::memory_order_acquire);
    if (core == nullptr) return {};
    return {core->ranges().durable, core->ranges().durable + core->durable_extent()};
}

std::uint64_t scratch_live_blocks() {
    const VolatileCore* const core = scratch.load(std::memory_order_acquire);
    return core == nullptr ? 0 : core->live_blocks(0).count;
}

}  // namespace taiyen::heap

namespace taiyen {

VolatileStats scratch_stats() {
    const heap::VolatileCore* const core = heap::scratch.load(std::memory_order_acquire);
    return core == nullptr ? VolatileStats{} : core->stats();
}

}  // namespace taiyen
