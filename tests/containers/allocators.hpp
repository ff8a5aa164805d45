#pragma once
/// Allocators that count, fail when they are told to, and point with offsets.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>

#include <boost/interprocess/offset_ptr.hpp>

namespace taiyen::test {

struct Ledger {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    std::uint64_t until_failure = std::numeric_limits<std::uint64_t>::max();
};

/// Unequal if the ledgers are.
template <class T>
class CountingAllocator {
public:
    using value_type = T;
    explicit CountingAllocator(Ledger& ledger) noexcept : ledger_(&ledger) {}
    template <class U>
    CountingAllocator(const CountingAllocator<U>& other) noexcept : ledger_(other.ledger()) {}  // NOLINT: allocators convert
    T* allocate(std::size_t count) {
        if (ledger_->until_failure == 0) throw std::bad_alloc();
        --ledger_->until_failure;
        ++ledger_->blocks;
        ledger_->bytes += count * sizeof(T);
        return std::allocator<T>().allocate(count);
    }
    void deallocate(T* block, std::size_t count) noexcept {
        --ledger_->blocks;
        ledger_->bytes -= count * sizeof(T);
        std::allocator<T>().deallocate(block, count);
    }
    Ledger* ledger() const noexcept { return ledger_; }
    bool operator==(const CountingAllocator& other) const noexcept { return ledger_ == other.ledger_; }

private:
    Ledger* ledger_;
};

template <class T>
class OffsetPointerAllocator {
public:
    using value_type = T;
    using pointer = boost::interprocess::offset_ptr<T>;
    OffsetPointerAllocator() noexcept = default;
    template <class U>
    OffsetPointerAllocator(const OffsetPointerAllocator<U>&) noexcept {}  // NOLINT: allocators convert
    pointer allocate(std::size_t count) { return pointer(std::allocator<T>().allocate(count)); }
    void deallocate(const pointer& block, std::size_t count) noexcept { std::allocator<T>().deallocate(block.get(), count); }
    bool operator==(const OffsetPointerAllocator&) const noexcept { return true; }
};

}  // namespace taiyen::test
