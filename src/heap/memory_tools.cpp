#include "heap/memory_tools.hpp"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define TAIYEN_VALGRIND 1
#endif

extern "C" {
// The run times of the sanitizers; null where there are none.
void __asan_poison_memory_region(void const volatile* address, std::size_t bytes) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile* address, std::size_t bytes) __attribute__((weak));
void __lsan_register_root_region(void const* begin, std::size_t bytes) __attribute__((weak));
void __lsan_unregister_root_region(void const* begin, std::size_t bytes) __attribute__((weak));
}

namespace taiyen::heap {

constinit std::atomic<bool> memory_tools_wanted{true};

MemoryTool running_tool() noexcept {
    if (!memory_tools_wanted.load(std::memory_order_relaxed)) return MemoryTool::none;
    if (&__asan_poison_memory_region != nullptr && &__asan_unpoison_memory_region != nullptr) return MemoryTool::address_sanitizer;
#if defined(TAIYEN_VALGRIND)
    if (RUNNING_ON_VALGRIND != 0) return MemoryTool::valgrind;
#endif
    return MemoryTool::none;
}

void tool_open(MemoryTool tool, const void* begin, ByteCount bytes) noexcept {
    if (tool == MemoryTool::address_sanitizer) __asan_unpoison_memory_region(begin, bytes);
#if defined(TAIYEN_VALGRIND)
    if (tool == MemoryTool::valgrind) static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(begin, bytes));
#endif
}

void tool_close(MemoryTool tool, const void* begin, ByteCount bytes) noexcept {
    if (tool == MemoryTool::address_sanitizer) __asan_poison_memory_region(begin, bytes);
#if defined(TAIYEN_VALGRIND)
    if (tool == MemoryTool::valgrind) static_cast<void>(VALGRIND_MAKE_MEM_NOACCESS(begin, bytes));
#endif
}

void tool_block_begins(MemoryTool tool, const void* block, ByteCount bytes, [[maybe_unused]] ByteCount red_zone) noexcept {
    if (tool == MemoryTool::address_sanitizer) __asan_unpoison_memory_region(block, bytes);
#if defined(TAIYEN_VALGRIND)
    if (tool == MemoryTool::valgrind) VALGRIND_MALLOCLIKE_BLOCK(block, bytes, red_zone, 0);
#endif
}

void tool_block_ends(MemoryTool tool, const void* block, ByteCount bytes, [[maybe_unused]] ByteCount red_zone) noexcept {
    if (tool == MemoryTool::address_sanitizer) __asan_poison_memory_region(block, bytes);
#if defined(TAIYEN_VALGRIND)
    if (tool == MemoryTool::valgrind) VALGRIND_FREELIKE_BLOCK(block, red_zone);
#endif
}

void tool_defined([[maybe_unused]] MemoryTool tool, [[maybe_unused]] const void* begin, [[maybe_unused]] ByteCount bytes) noexcept {
#if defined(TAIYEN_VALGRIND)
    if (tool == MemoryTool::valgrind) static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(begin, bytes));
#endif
}

void tool_root(const void* begin, ByteCount bytes, bool is_root) noexcept {
    if (&__lsan_register_root_region == nullptr || &__lsan_unregister_root_region == nullptr) return;
    is_root ? __lsan_register_root_region(begin, bytes) : __lsan_unregister_root_region(begin, bytes);
}

}  // namespace taiyen::heap
