#pragma once
/// Counts what this thread allocates with `new`, in the program that has counted_memory.cpp.

#include <cstdint>

extern constinit thread_local std::uint64_t allocations;
