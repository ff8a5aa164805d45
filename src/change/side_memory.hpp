#pragma once
/// SideMemory: anonymous memory beside a heap that becomes usable as the heap grows: twins, shadows, tables of pages.
///
/// Its address never changes and a signal handler may use it: what was grown into can be written without asking anybody. Unused pages cost nothing.
/// A forked child has none of it.
/// A limit on the process's data (ulimit -d, strict overcommit) is met as the heap grows, not for its whole capacity.
/// Thread rule: external lock for `grow`.

#include <algorithm>
#include <exception>

#include <taiyen/base/units.hpp>

#include "vm/address_space.hpp"

namespace taiyen::change {

class SideMemory {
public:
    SideMemory() = default;
    /// Throws: HeapFull{address_space}.
    explicit SideMemory(ByteCount capacity) : reservation_(vm::Reservation::anywhere(round_up(std::max<ByteCount>(capacity, 1), page_bytes))) {
        vm::prepare_heap_mapping(reservation_.data(), reservation_.size());
    }

    std::byte* data() const { return reservation_.data(); }
    /// Makes [0, bytes) usable; fresh bytes are zero. Throws: HeapFull{address_space}; then nothing changed.
    void grow(ByteCount bytes) {
        const ByteCount wanted = std::min<ByteCount>(round_up(bytes, step), reservation_.size());
        if (wanted <= usable_) return;
        vm::make_usable(data() + usable_, wanted - usable_);
        usable_ = wanted;
    }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(data());
    }
    /// Gives the memory of [from, to) back, as far as whole pages go: best effort; its content is lost.
    void release(ByteCount from, ByteCount to) noexcept {
        const ByteCount first = round_up(from, page_bytes);
        const ByteCount last = round_down(to, page_bytes);
        if (first >= last) return;
        try {
            vm::drop(data() + first, last - first);
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
            // It stays, with what it holds.
        }
    }

    /// Brings the memory of whole pages in at once: for ranges that are about to be filled. A signal handler may ask.
    void populate(ByteCount from, ByteCount to) const noexcept { vm::populate(data() + from, to - from); }

private:
    static constexpr ByteCount step = ByteCount{1} << 20U;
    vm::Reservation reservation_;
    ByteCount usable_ = 0;
};

}  // namespace taiyen::change
