#pragma once
/// durable_allocator: for libraries that make their allocators out of nothing (`AllocatorType<T> a; a.allocate(1)`), so that none could tell where an object lies.
///
/// It has no state: what it allocates is durable memory of the heap that the thread's innermost DurableScope names, for objects within the heap and for temporaries alike. All of them are equal, so
/// containers with it hand over memory whenever they move: keep a scope open around everything that changes such an object, and don't mix heaps; what was mixed is errc::foreign_pointer at the
/// next save. Objects outside that own such memory end before the scope, transaction or undo step does: nothing knows of them.
/// Thread rule: a scope begins and ends on one thread; memory obeys the heap's rule.

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/stl/allocator.hpp>
#include <taiyen/stl/storable.hpp>

namespace taiyen {

/// While it lives, durable_allocator takes memory of this heap, on this thread. Scopes nest; destroy them in reverse order.
class TAIYEN_EXPORT DurableScope {
public:
    /// Throws: Error{closed}.
    template <heap_like H>
    explicit DurableScope(H& heap) : DurableScope(heap.core()) {}
    ~DurableScope();
    DurableScope(const DurableScope&) = delete;
    DurableScope& operator=(const DurableScope&) = delete;

    /// The heap of the thread's innermost scope. Throws: Error{invalid_argument}: there is none; Error{closed}.
    static heap::HeapCore& current();

private:
    explicit DurableScope(heap::HeapCore* core);
    heap::HeapCore* core_;
    std::uint32_t slot_;
    DurableScope* before_;
};

template <class T>
class durable_allocator {
public:
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    durable_allocator() noexcept = default;
    template <class U>
    durable_allocator(const durable_allocator<U>&) noexcept {}  // NOLINT: allocators convert

    /// Throws: HeapFull, std::bad_array_new_length, Error{invalid_argument (no DurableScope) | closed | read_only | raw_pointer | no_transaction | …}.
    [[nodiscard]] T* allocate(std::size_t count) {
        stl::check_storable<T>();
        if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        heap::HeapCore& core = DurableScope::current();
        heap::check_addresses_allowed(core);
        return static_cast<T*>(heap::allocate_durable(core, count * sizeof(T), alignof(T), stl::content_of<T>));
    }
    /// By the block's own heap; a bad pointer is reported and changes nothing.
    void deallocate(T* block, std::size_t) noexcept { heap::deallocate(const_cast<std::remove_cv_t<T>*>(block)); }

    template <class U>
    bool operator==(const durable_allocator<U>&) const noexcept {
        return true;
    }
};

template <class T>
inline constexpr bool is_durable_allocator<durable_allocator<T>> = true;

}  // namespace taiyen
