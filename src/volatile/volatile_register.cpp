#include "volatile/volatile_register.hpp"

#include <new>

#include "volatile/thread_table.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen::heap {

namespace {

/// How many times the handlers of the fork under way have begun: several threads may have registered them.
constinit thread_local unsigned preparations __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace

constinit VolatileRegister VolatileRegister::one;

std::uint64_t VolatileRegister::next_serial() {
    if (!is_prepared_.load(std::memory_order_acquire)) prepare();
    const std::lock_guard lock(mutex_);
    return ++last_serial_;
}

/// A fork runs in the child only the handlers that were registered when it began: registered at the first use, while another thread forks, they would leave the child a lock that nobody gives back.
void VolatileRegister::prepare_at_load() noexcept {
    try {
        if (!of_process().is_prepared_) of_process().prepare();
    } catch (...) {}  // the first use tries again and says so
}

/// Without a lock or a guarded static: a child that is forked meanwhile by another thread would wait for ever. Who is not the first to register has prepared once more, which does no harm.
void VolatileRegister::prepare() {
    if (key_.load(std::memory_order_acquire) == no_key) {
        pthread_key_t made{};
        if (::pthread_key_create(&made, end_thread) != 0) throw std::bad_alloc();
        std::uint64_t known = no_key;
        if (!key_.compare_exchange_strong(known, made, std::memory_order_acq_rel)) ::pthread_key_delete(made);
    }
    if (::pthread_atfork(lock_all, unlock_all, unlock_all) != 0) throw std::bad_alloc();
    is_prepared_.store(true, std::memory_order_release);
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

void VolatileRegister::watch_thread() noexcept {
    ::pthread_setspecific(static_cast<pthread_key_t>(key_.load(std::memory_order_relaxed)), &thread_table);
}

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
    if (preparations++ != 0) return;
    VolatileRegister& all = of_process();
    all.mutex_.lock();
    for (VolatileCore* core = all.first_; core != nullptr; core = core->next_open) core->lock_for_fork();
}

void VolatileRegister::unlock_all() {
    if (--preparations != 0) return;
    VolatileRegister& all = of_process();
    for (VolatileCore* core = all.first_; core != nullptr; core = core->next_open) core->unlock_after_fork();
    all.mutex_.unlock();
}

}  // namespace taiyen::heap
