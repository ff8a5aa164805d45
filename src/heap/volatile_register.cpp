#include "heap/volatile_register.hpp"

#include <cstddef>
#include <new>

#include "heap/thread_table.hpp"
#include "heap/volatile_core.hpp"

namespace taiyen::heap {

VolatileRegister& VolatileRegister::of_process() noexcept {
    alignas(VolatileRegister) static std::byte memory[sizeof(VolatileRegister)];
    static VolatileRegister& one = *::new (memory) VolatileRegister;
    return one;
}

std::uint64_t VolatileRegister::next_serial() {
    static const bool prepared = [this] {
        has_key_ = ::pthread_key_create(&key_, end_thread) == 0;
        return has_key_ && ::pthread_atfork(lock_all, unlock_all, unlock_all) == 0;
    }();
    if (!prepared) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    return ++last_serial_;
}

std::unique_lock<std::mutex> VolatileRegister::add(VolatileCore& core) {
    std::unique_lock lock(mutex_);
    core.next_open = first_;
    first_ = &core;
    return lock;
}

void VolatileRegister::remove(VolatileCore& core) {
    const std::lock_guard lock(mutex_);
    for (VolatileCore** link = &first_; *link != nullptr; link = &(*link)->next_open)
        if (*link == &core) {
            *link = core.next_open;
            break;
        }
}

void VolatileRegister::watch_thread() noexcept { ::pthread_setspecific(key_, &thread_table); }

/// The thread's records go to the next threads that need one. A destructor that runs later and allocates again gets another record, and this is called once more.
void VolatileRegister::end_thread(void*) noexcept {
    ThreadTable& table = thread_table;
    VolatileRegister& all = of_process();
    const std::lock_guard lock(all.mutex_);
    for (std::uint32_t i = 0; i < table.count; ++i)
        for (VolatileCore* core = all.first_; core != nullptr; core = core->next_open)
            if (core->serial() == table.all[i].serial) {
                core->retire(*table.all[i].blocks);
                break;
            }
    table.count = 0;
    table.clear_memory();
    for (ThreadTable::Entry& entry : table.cache) entry = {};
    table.process = nullptr;
}

void VolatileRegister::lock_all() {
    VolatileRegister& all = of_process();
    all.mutex_.lock();
    for (VolatileCore* core = all.first_; core != nullptr; core = core->next_open) core->lock_for_fork();
}

void VolatileRegister::unlock_all() {
    VolatileRegister& all = of_process();
    for (VolatileCore* core = all.first_; core != nullptr; core = core->next_open) core->unlock_after_fork();
    all.mutex_.unlock();
}

}  // namespace taiyen::heap
