#include "txn/readers_here.hpp"

#include <array>
#include <cstddef>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

namespace taiyen::txn {
namespace {

constexpr std::size_t heaps_max = 32;

struct Reader {
    const TransactionService* service;
    std::size_t locks;
};
struct Readers {
    std::array<Reader, heaps_max> of;
    std::size_t count;
};
thread_local constinit Readers readers{};

Reader* find(const TransactionService& service) noexcept {
    for (std::size_t i = 0; i < readers.count; ++i) {
        if (readers.of[i].service == &service) return &readers.of[i];
    }
    return nullptr;
}

}  // namespace

bool ReadersHere::holds(const TransactionService& service) noexcept { return find(service) != nullptr; }

bool ReadersHere::add_inner(const TransactionService& service) noexcept {
    Reader* const found = find(service);
    if (found != nullptr) ++found->locks;
    return found != nullptr;
}

void ReadersHere::require_room() {
    if (readers.count == heaps_max) throw Error(errc::invalid_argument, "a thread can read 32 heaps at once; end some of its ReadLocks first");
}

void ReadersHere::add(const TransactionService& service) noexcept { readers.of[readers.count++] = {&service, 1}; }

bool ReadersHere::remove(const TransactionService& service) noexcept {
    Reader* const found = find(service);
    TAIYEN_CHECK(found != nullptr);  // a ReadLock ends on the thread that it began on
    if (--found->locks != 0) return false;
    *found = readers.of[--readers.count];
    return true;
}

}  // namespace taiyen::txn
