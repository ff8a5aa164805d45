#pragma once
/// Objects in a heap, found by name or by pointer: construct, find, destroy, make.
///
/// Construction hands the heap to everything that takes an allocator, at every level of nesting; a constructor that throws leaves nothing behind.
/// The functions on a HeapCore are the members of the heap classes without the class. Thread rule: as the heap.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <taiyen/base/report.hpp>
#include <taiyen/change/arguments.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/heap/volatile_heap.hpp>
#include <taiyen/stl/allocator.hpp>
#include <taiyen/stl/detail/fingerprint.hpp>
#include <taiyen/stl/detail/shape_of.hpp>
#include <taiyen/stl/detail/stored_hash.hpp>
#include <taiyen/store/archive_heap.hpp>

namespace taiyen {
namespace stl {

template <class T>
consteval void check_object() {
    static_assert(std::is_object_v<T> && !std::is_array_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T>,
                  "taiyen: objects of a heap are classes and values; for arrays use taiyen::vector or std::array");
    check_storable<T>();
}

/// Whether an object may get a pointer when it is made: its type holds one, as far as the compiler knows, or it has a constructor of its own. All else is copied from what is given.
template <class T>
inline constexpr bool may_be_made_with_pointers =
    !position_independent<T> || !std::is_trivially_default_constructible_v<T> || !std::is_trivially_copyable_v<T>;

/// A block's bytes are what it held before, and a constructor may leave some of them: then they aren't to look like pointers to the program's memory. Volatile, else the constructor ends what was stored before it.
inline void drop_stale_pointers(void* block, std::size_t bytes) {
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
        auto& word = *reinterpret_cast<volatile std::uint64_t*>(static_cast<std::byte*>(block) + at);
        if (word >> 47U == 0 && word >> 44U >= 5) word = 0;
    }
}

/// What a class type's bytes may be copied from; a pointer that is given as such is meant.
template <class A>
heap::ObjectBytes source_bytes(const A& argument) {
    if constexpr (std::is_class_v<A> || std::is_union_v<A>)
        return {std::addressof(argument), sizeof(A)};
    else
        return {nullptr, 0};
}

/// An object of the heap that has no name yet. Throws: Error{foreign_pointer}: it points to the program's own memory.
template <class T, class... A>
T* make_for(heap::HeapCore& core, std::string_view name, A&&... arguments) {
    check_object<T>();
    if constexpr (!position_independent<T>) heap::check_addresses_allowed(core);
    struct Undo {
        void* block;
        T* object;
        ~Undo() {
            if (object != nullptr) std::destroy_at(object);
            heap::deallocate(block);
        }
    } undo{heap::allocate_durable(core, sizeof(T), alignof(T), content_of<T>), nullptr};
    auto* const object = static_cast<T*>(undo.block);
    if constexpr (may_be_made_with_pointers<T>) drop_stale_pointers(undo.block, sizeof(T));
    persistent_allocator<T>(core).construct(object, std::forward<A>(arguments)...);
    undo.object = object;
    if constexpr (may_be_made_with_pointers<T>) {
        const std::array<heap::ObjectBytes, sizeof...(A)> sources{source_bytes(arguments)...};
        heap::check_made(core, {object, sizeof(T)}, name, sources);
    }
    undo.object = nullptr;
    undo.block = nullptr;
    return object;
}

/// An object of the heap without a name.
template <class T, class... A>
T* make(heap::HeapCore& core, A&&... arguments) {
    return make_for<T>(core, {}, std::forward<A>(arguments)...);
}

/// Destroys what `make` made. Null: nothing happens. A pointer that isn't a live object of the heap is reported and left alone.
template <class T>
void destroy_object(heap::HeapCore& core, T* object) {
    check_object<T>();
    if (object == nullptr) return;
    if (!heap::in_durable(core, object)) {
        report({errc::foreign_pointer, object, "an object was to be destroyed that lies outside the heap; it is left alone"});
    } else if (heap::usable_size(core, object) < sizeof(T)) {
        report(
            {errc::double_free, object,
             "an object was to be destroyed that is not the start of a live block (destroyed twice, or part of another object); it is left alone"});
    } else {
        std::destroy_at(object);
        heap::deallocate(object);
    }
}

/// The object's address if it exists. Throws: Error{type_mismatch}.
template <class T>
T* find(const heap::HeapCore& core, std::string_view name) {
    check_object<T>();
    const auto found = heap::find_named(core, name);
    if (!found) return nullptr;
    const std::string asked = fingerprint<T>();
    if (found->fingerprint != asked) heap::check_type(core, name, found->fingerprint, asked, type_shape<T>);
    heap::check_shape(core, name, type_shape<T>, asked);
    auto* const object = static_cast<T*>(found->object);
    check_keys(core, name, *object);
    return object;
}

/// The same where the heap may be changed. With `accept` the object is taken for a T whatever lies inside.
template <class T>
T* find(heap::HeapCore& core, std::string_view name, bool accept = false) {
    check_object<T>();
    const auto found = heap::find_named(core, name);
    if (!found) return nullptr;
    const std::string asked = fingerprint<T>();
    if (found->fingerprint != asked) heap::settle_type(core, name, found->fingerprint, asked, type_shape<T>, accept);
    heap::settle_shape(core, name, type_shape<T>, asked, accept);
    auto* const object = static_cast<T*>(found->object);
    if (!accept) check_keys(core, name, *object);
    return object;
}

template <class T, class... A>
T& construct(heap::HeapCore& core, std::string_view name, A&&... arguments) {
    check_object<T>();
    if (heap::find_named(core, name)) heap::throw_name_taken(core, name);
    struct Undo {
        heap::HeapCore& core;
        T* object;
        ~Undo() {
            if (object == nullptr) return;
            std::destroy_at(object);
            heap::deallocate(object);
        }
    } undo{core, make_for<T>(core, name, std::forward<A>(arguments)...)};
    heap::add_named(core, name, {undo.object, sizeof(T), 1, fingerprint<T>()}, &type_shape<T>);
    return *std::exchange(undo.object, nullptr);
}

template <class T, class... A>
T& find_or_construct(heap::HeapCore& core, std::string_view name, A&&... arguments) {
    if (T* const found = find<T>(core, name)) return *found;
    return construct<T>(core, name, std::forward<A>(arguments)...);
}

template <class T>
bool destroy(heap::HeapCore& core, std::string_view name) {
    T* const object = find<T>(std::as_const(core), name);
    if (object == nullptr) return false;
    heap::remove_named(core, name);  // first: it may throw, and then nothing has happened
    std::destroy_at(object);
    heap::deallocate(object);
    return true;
}

inline heap::HeapCore& open_core(heap::HeapCore* core) {
    if (core == nullptr) heap::throw_closed();
    return *core;
}

}  // namespace stl

template <class T>
T* ProcedureHeap::find(std::string_view name) const {
    return stl::find<T>(std::as_const(*core_), name);
}

template <class T>
persistent_allocator<T> ArchiveHeap::allocator() {
    return persistent_allocator<T>(stl::open_core(core()));
}

template <class T, class... A>
T& ArchiveHeap::construct(std::string_view name, A&&... arguments) {
    return stl::construct<T>(stl::open_core(core()), name, std::forward<A>(arguments)...);
}

template <class T, class... A>
T& ArchiveHeap::find_or_construct(std::string_view name, A&&... arguments) {
    return stl::find_or_construct<T>(stl::open_core(core()), name, std::forward<A>(arguments)...);
}

template <class T>
T* ArchiveHeap::find(std::string_view name) {
    return stl::find<T>(stl::open_core(core()), name);
}

template <class T>
T* ArchiveHeap::find(std::string_view name, accept_layout_t) {
    return stl::find<T>(stl::open_core(core()), name, true);
}

template <class T>
const T* ArchiveHeap::find(std::string_view name) const {
    return stl::find<T>(std::as_const(stl::open_core(core())), name);
}

template <class T>
bool ArchiveHeap::destroy(std::string_view name) {
    return stl::destroy<T>(stl::open_core(core()), name);
}

template <class T, class... A>
T* ArchiveHeap::make(A&&... arguments) {
    return stl::make<T>(stl::open_core(core()), std::forward<A>(arguments)...);
}

template <class T>
void ArchiveHeap::destroy_object(T* object) {
    stl::destroy_object(stl::open_core(core()), object);
}

template <class T>
persistent_allocator<T> VolatileHeap::allocator() {
    return persistent_allocator<T>(stl::open_core(core()));
}

template <class T, class... A>
T& VolatileHeap::construct(std::string_view name, A&&... arguments) {
    return stl::construct<T>(stl::open_core(core()), name, std::forward<A>(arguments)...);
}

template <class T, class... A>
T& VolatileHeap::find_or_construct(std::string_view name, A&&... arguments) {
    return stl::find_or_construct<T>(stl::open_core(core()), name, std::forward<A>(arguments)...);
}

template <class T>
T* VolatileHeap::find(std::string_view name) {
    return stl::find<T>(stl::open_core(core()), name);
}

template <class T>
T* VolatileHeap::find(std::string_view name, accept_layout_t) {
    return stl::find<T>(stl::open_core(core()), name, true);
}

template <class T>
const T* VolatileHeap::find(std::string_view name) const {
    return stl::find<T>(std::as_const(stl::open_core(core())), name);
}

template <class T>
bool VolatileHeap::destroy(std::string_view name) {
    return stl::destroy<T>(stl::open_core(core()), name);
}

template <class T, class... A>
T* VolatileHeap::make(A&&... arguments) {
    return stl::make<T>(stl::open_core(core()), std::forward<A>(arguments)...);
}

template <class T>
void VolatileHeap::destroy_object(T* object) {
    stl::destroy_object(stl::open_core(core()), object);
}

}  // namespace taiyen
