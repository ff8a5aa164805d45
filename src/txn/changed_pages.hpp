#pragma once
/// ChangedPages: how many pages were changed since the count began anew. A page that changes again and again counts once.
///
/// Two bytes beside each page of the heap say in which count it was counted last. A count that begins anew forgets nothing but its number: all pages count again.
/// After 65,535 counts the numbers come again, and a page that was last changed exactly so many counts ago is missed: it is an estimate for who decides when to save.
/// Thread rule: `begin_anew` any thread; the rest external lock.

#include <atomic>
#include <cstdint>

#include <taiyen/base/units.hpp>

#include "change/side_memory.hpp"

namespace taiyen::txn {

class ChangedPages {
public:
    /// For a span of at most so many bytes. Throws: HeapFull{address_space}.
    explicit ChangedPages(ByteCount capacity) : counts_(capacity / page_bytes * sizeof(Count)) {}

    /// The span has so many bytes. Throws: HeapFull{address_space}; then nothing changed.
    void extended(ByteCount bytes) { counts_.grow(bytes / page_bytes * sizeof(Count)); }

    void begin_anew() noexcept {
        Count next = static_cast<Count>(count_.load(std::memory_order_relaxed) + 1);
        if (next == 0) next = 1;  // 0: never counted
        count_.store(next, std::memory_order_relaxed);
    }

    /// How many of the pages that the range lies in weren't counted yet; from now on they are. Requires: inside the span; not empty.
    std::uint64_t add(HeapOffset where, ByteCount length) noexcept {
        const Count count = count_.load(std::memory_order_relaxed);
        const std::uint64_t last = (where.value + length - 1) / page_bytes;
        std::uint64_t fresh = 0;
        for (std::uint64_t page = where.value / page_bytes; page <= last; ++page) {
            Count& counted = counts_.as<Count>()[page];
            if (counted == count) continue;
            counted = count;
            ++fresh;
        }
        return fresh;
    }

private:
    using Count = std::uint16_t;
    change::SideMemory counts_;
    std::atomic<Count> count_{1};
};

}  // namespace taiyen::txn
