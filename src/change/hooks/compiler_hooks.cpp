// What instrumented code calls before each store. Nothing else refers to this object file, so it is part of a program exactly if some of the program's code is
// instrumented, and its constructor says so.
#include "change/hooks/announce.hpp"

#include <cstring>

#include "base/planted.hpp"
#include "change/instrumented.hpp"

using taiyen::Bug;
using taiyen::planted;
using taiyen::change::hooks::announce;

namespace {
[[gnu::constructor]] void say_so() { taiyen::change::register_instrumented_code(); }
}  // namespace

// Own copies in each program and shared library: hidden, so that they never stand in for a sanitizer's functions elsewhere in the process.
#pragma GCC visibility push(hidden)
extern "C" {

void __asan_store1_noabort(std::uintptr_t address) { announce(address, 1); }
void __asan_store2_noabort(std::uintptr_t address) { announce(address, 2); }
void __asan_store4_noabort(std::uintptr_t address) { announce(address, 4); }
void __asan_store8_noabort(std::uintptr_t address) { announce(address, 8); }
void __asan_store16_noabort(std::uintptr_t address) { announce(address, 16); }
void __asan_storeN_noabort(std::uintptr_t address, std::size_t length) { announce(address, length - (planted(Bug::hook_misses_last_byte) ? 1 : 0)); }

// Clang calls these instead of the plain functions.
void* __asan_memcpy(void* to, const void* from, std::size_t length) {
    announce(to, length);
    return std::memcpy(to, from, length);
}
void* __asan_memmove(void* to, const void* from, std::size_t length) {
    announce(to, length);
    return std::memmove(to, from, length);
}
void* __asan_memset(void* to, int value, std::size_t length) {
    announce(to, length);
    return std::memset(to, value, length);
}

// Reads are not instrumented; a compiler may still check those of a call it knows.
void __asan_load1_noabort(std::uintptr_t) {}
void __asan_load2_noabort(std::uintptr_t) {}
void __asan_load4_noabort(std::uintptr_t) {}
void __asan_load8_noabort(std::uintptr_t) {}
void __asan_load16_noabort(std::uintptr_t) {}
void __asan_loadN_noabort(std::uintptr_t, std::size_t) {}

void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const char*) {}
void __asan_after_dynamic_init() {}
void __asan_register_globals(void*, std::size_t) {}
void __asan_unregister_globals(void*, std::size_t) {}
void __asan_poison_stack_memory(std::uintptr_t, std::size_t) {}
void __asan_unpoison_stack_memory(std::uintptr_t, std::size_t) {}
void __asan_alloca_poison(std::uintptr_t, std::size_t) {}
void __asan_allocas_unpoison(std::uintptr_t, std::uintptr_t) {}

}  // extern "C"
#pragma GCC visibility pop
