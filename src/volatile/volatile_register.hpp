#pragma once
/// VolatileRegister: all open volatile heaps of the process: threads that end and forks ask for them.
///
/// Its lock comes before those of the heaps; a fork takes all of them (V2 of volatile_core.hpp).
/// Thread rule: safe.

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>

namespace taiyen::heap {

class VolatileCore;

class VolatileRegister {
public:
    /// Never destroyed: threads may end after the statics.
    static VolatileRegister& of_process() noexcept { return one; }

    /// That no heap had before. Throws: std::bad_alloc: the process could not be made to tell of threads that end, and of forks.
    std::uint64_t next_serial();
    /// The register's lock: while it is held nobody forks, so that the heap may be completed.
    [[nodiscard]] std::unique_lock<std::mutex> add(VolatileCore& core);
    void remove(VolatileCore& core);
    /// What this thread has in heaps goes back to them when it ends.
    void watch_thread() noexcept;

private:
    static constexpr std::uint64_t no_key = ~std::uint64_t{0};
    static VolatileRegister one;

    [[gnu::constructor]] static void prepare_at_load() noexcept;
    void prepare();
    static void end_thread(void*) noexcept;
    static void lock_all();
    static void unlock_all();

    std::mutex mutex_;
    VolatileCore* first_ = nullptr;
    std::uint64_t last_serial_ = 0;
    std::atomic<std::uint64_t> key_ = no_key;  ///< of thread-specific data
    std::atomic<bool> is_prepared_ = false;
};

static_assert(std::is_trivially_destructible_v<VolatileRegister>);

}  // namespace taiyen::heap
