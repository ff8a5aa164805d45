#pragma once
/// Which heaps this thread reads under a ReadLock, so that a second lock costs nothing and a transaction that would wait for its own thread is refused.
/// Thread rule: each thread has its own.

#include <array>
#include <cstddef>

#include "txn/reader_slots.hpp"

namespace taiyen::txn {

class TransactionService;

struct ReadersHere {
    struct Reader {
        const TransactionService* service;
        std::size_t locks;
        ReaderSlot* slot;  ///< of the heap's lock; null: it was locked the other way
    };

    /// Null: this thread has no ReadLock on the heap. Valid until the next `add` or `remove`.
    static Reader* find(const TransactionService& service) noexcept {
        for (std::size_t i = 0; i < here.count; ++i)
            if (here.of[i].service == &service) return &here.of[i];
        return nullptr;
    }
    static bool holds(const TransactionService& service) noexcept { return find(service) != nullptr; }
    /// Throws: Error{invalid_argument}: this thread reads too many heaps at once.
    static void require_room() {
        if (here.count == heaps_max) [[unlikely]]
            throw_full();
    }
    /// Requires: !holds, require_room.
    static void add(const TransactionService& service, ReaderSlot* slot) noexcept { here.of[here.count++] = {&service, 1, slot}; }
    static void remove(Reader& reader) noexcept { reader = here.of[--here.count]; }

private:
    static constexpr std::size_t heaps_max = 32;
    struct Readers {
        std::array<Reader, heaps_max> of;
        std::size_t count;
    };
    [[noreturn]] static void throw_full();

    static thread_local constinit Readers here;
};

}  // namespace taiyen::txn
