#pragma once
/// Arguments of procedures, as a call stores them; and the heap as a procedure sees it. What registers procedures: procedure.hpp.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/heap/detail/access.hpp>

namespace taiyen {

/// The heap as a procedure sees it.
class TAIYEN_EXPORT ProcedureHeap {
public:
    explicit ProcedureHeap(heap::HeapCore& core) noexcept : core_(&core) {}
    heap::HeapCore* core() const noexcept { return core_; }
    /// The named object, null if there is none; defined in taiyen/stl/named.hpp. Throws: Error{type_mismatch}.
    template <class T>
    T* find(std::string_view name) const;

private:
    heap::HeapCore* core_;
};

namespace change {

/// Argument bytes in and out. Throws: Error{invalid_argument} (bytes of another signature; a pointer that leads out of the heap).
class TAIYEN_EXPORT ArgumentWriter {
public:
    explicit ArgumentWriter(const heap::HeapCore& core) : core_(core) {}
    void put(const void* bytes, std::size_t size);
    void put_text(std::string_view text);
    void put_pointer(const void* object);
    std::vector<std::byte> bytes;

private:
    const heap::HeapCore& core_;
};

class TAIYEN_EXPORT ArgumentReader {
public:
    ArgumentReader(const heap::HeapCore& core, std::span<const std::byte> bytes) : core_(core), rest_(bytes) {}
    void get(void* bytes, std::size_t size);
    std::string get_text();
    void* get_pointer();

private:
    const heap::HeapCore& core_;
    std::span<const std::byte> rest_;
};

/// The type that an argument is stored as.
template <class A>
using stored_t = std::conditional_t<std::is_convertible_v<const A&, std::string_view>, std::string, std::decay_t<A>>;

template <class T>
inline constexpr bool is_argument =
    std::is_same_v<T, std::string> || (std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::is_member_pointer_v<T> &&
                                       !(std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>));

template <class T>
void put_argument(ArgumentWriter& out, const T& value) {
    static_assert(is_argument<T>, "taiyen: arguments of procedures are trivially copyable values, texts, and pointers to objects in the heap");
    if constexpr (std::is_same_v<T, std::string>)
        out.put_text(value);
    else if constexpr (std::is_pointer_v<T>)
        out.put_pointer(value);
    else
        out.put(&value, sizeof value);
}

template <class T>
T get_argument(ArgumentReader& in) {
    if constexpr (std::is_same_v<T, std::string>) {
        return in.get_text();
    } else if constexpr (std::is_pointer_v<T>) {
        return static_cast<T>(in.get_pointer());
    } else {
        T value{};
        in.get(&value, sizeof value);
        return value;
    }
}

/// The stored types of a list of arguments, as text: both supported compilers give a type the same name.
template <class... T>
std::string signature() {
    return typeid(void (*)(T...)).name();
}

}  // namespace change
}  // namespace taiyen
