#include "base/process.hpp"

#include <new>

#include <pthread.h>
#include <sys/mman.h>

#include <taiyen/base/units.hpp>

namespace taiyen::process {

constinit std::atomic<std::atomic<ProcessNumber>*> number{nullptr};

namespace {

/// The last that was given to this process or a parent; a child begins with its parent's. Never below what the page holds.
constinit std::atomic<ProcessNumber> last{0};

void wipe() {
    if (std::atomic<ProcessNumber>* const page = number.load(std::memory_order_relaxed)) page->store(0, std::memory_order_relaxed);
}

std::atomic<ProcessNumber>* make_page() {
    void* const page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::bad_alloc();
    auto* const made = ::new (page) std::atomic<ProcessNumber>(0);
    if (::madvise(page, page_bytes, MADV_WIPEONFORK) != 0 && ::pthread_atfork(nullptr, nullptr, wipe) != 0) {
        ::munmap(page, page_bytes);
        throw std::bad_alloc();
    }
    return made;
}

}  // namespace

ProcessNumber determine_number() {
    std::atomic<ProcessNumber>* page = number.load(std::memory_order_acquire);
    if (page == nullptr) {
        // Two threads may make one each; no lock, so that a fork can't leave it locked.
        std::atomic<ProcessNumber>* const made = make_page();
        if (number.compare_exchange_strong(page, made, std::memory_order_acq_rel))
            page = made;
        else
            ::munmap(made, page_bytes);
    }
    ProcessNumber known = page->load();
    if (known != 0) return known;
    const ProcessNumber mine = last.fetch_add(1) + 1;
    return page->compare_exchange_strong(known, mine) ? mine : known;
}

}  // namespace taiyen::process
