#pragma once
/// Memory that runs out: this test program's operator new fails at a chosen allocation of the thread.

#include <cstdint>

struct ScarceMemory {
    std::int64_t left = 0;  ///< how many allocations succeed before one fails
    bool armed = false;
    bool sticky = false;  ///< all behind it fail, too
    std::uint64_t failed = 0;
};
extern constinit thread_local ScarceMemory scarce_memory;
