#pragma once
/// What every store hook begins with: is it a heap's address at all? Nearly always it isn't, and two loads tell.
///
/// The files of this folder are no part of the library: they make the archive taiyen_stores, which instrumented targets link. They may use nothing of the rooms that
/// isn't exported by the shared library.

#include <cstddef>
#include <cstdint>

#include "heap/core.hpp"

namespace taiyen::change::hooks {

/// The heap whose address slot it is; its durable span may still end before.
inline heap::HeapCore* heap_near(std::uintptr_t address) noexcept {
    const std::uintptr_t slot = address >> heap::slot_shift;
    return slot < heap::slot_count ? heap::slot_table[slot].load(std::memory_order_acquire) : nullptr;
}

inline void announce(std::uintptr_t address, std::size_t length) noexcept {
    if (heap::HeapCore* const core = heap_near(address); core != nullptr) [[unlikely]]
        heap::announce_store(*core, address, length);
}
inline void announce(const volatile void* address, std::size_t length) noexcept { announce(reinterpret_cast<std::uintptr_t>(address), length); }

}  // namespace taiyen::change::hooks
