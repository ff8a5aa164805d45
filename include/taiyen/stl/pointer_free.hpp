#pragma once
/// `is_pointer_free<T>`: elements of that type lie in blocks that no search for pointers reads.
///
/// So the bytes of numbers and text are never taken for pointers: by saves, which look for pointers that lead out of the heap, by `leaks`, and by moves to another address. Saves get faster, too.

#include <cstddef>
#include <type_traits>
#include <utility>

#include <taiyen/heap/detail/access.hpp>
#include <taiyen/stl/storable.hpp>

namespace taiyen {
namespace stl {

template <class T>
consteval bool holds_no_pointer();

}  // namespace stl

/// Whether an object of that type never holds a pointer into the heap. Numbers, enumerations, text, and what consists of them: arrays, pairs, tuples, optionals, variants, durations, and aggregates of up to 63 members
/// (elements of C arrays count each) that are copied byte by byte and aligned as their members are.
///
/// Not the types in which programs keep addresses and objects of any type: `std::uintptr_t` and other unsigned numbers as wide, `unsigned char`, `std::byte`, and what contains them; nor unions, nor classes with
/// constructors. Specialise it for those of your own. To say yes of a type that holds a pointer after all has what it leads to look like a leak, and leaves the pointer as it is where the heap goes to another address.
template <class T>
inline constexpr bool is_pointer_free = stl::holds_no_pointer<T>();

namespace stl {

/// The same of something within: what is empty, too. On its own, an empty class stands for raw memory of its alignment, as libraries ask for it.
template <class T>
inline constexpr bool is_pointer_free_part = is_pointer_free<T> || std::is_empty_v<T>;

template <class T>
concept is_duration = requires {
    typename T::rep;
    typename T::period;
    requires sizeof(T) == sizeof(typename T::rep);
};
template <class T>
concept is_time_point = requires {
    typename T::clock;
    requires is_duration<typename T::duration>;
    requires sizeof(T) == sizeof(typename T::duration);
};

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
/// Converts to what may hold pointers.
struct PointerValue {
    template <class T>
        requires(!is_pointer_free_part<std::remove_cv_t<T>>)
    operator T() const noexcept;  // NOLINT(google-explicit-constructor)
};
/// Converts to what has that alignment by itself.
template <std::size_t Alignment>
struct AlignedValue {
    template <class T>
        requires(alignof(T) == Alignment)
    operator T() const noexcept;  // NOLINT(google-explicit-constructor)
};
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class T, class Probe, std::size_t... I>
consteval bool takes_somewhere(std::index_sequence<I...>) {
    return (takes_at<T, Probe>(std::make_index_sequence<I>(), std::make_index_sequence<sizeof...(I) - 1 - I>()) || ...);
}

/// Whether something follows the first `I…` members: counting ends at one that takes no probe.
template <class T, std::size_t... I>
consteval bool takes_one_more(std::index_sequence<I...>) {
    return requires { T{Repeated<AnyValue, I>{}..., {}}; };
}

template <class T>
consteval bool aggregate_holds_no_pointer() {
    if constexpr (!std::is_trivially_copy_constructible_v<T> || !std::is_copy_assignable_v<T> || std::is_same_v<T, std::max_align_t>) {
        return false;  // a reference, or what libraries allocate for objects of any type
    } else {
        constexpr std::size_t count = initialisers<T>();
        if constexpr (count == 0 || count >= walked_members_max) {
            return false;
        } else {
            constexpr auto members = std::make_index_sequence<count>();
            // Memory for objects of another type is aligned for them.
            return !takes_one_more<T>(members) && !takes_somewhere<T, PointerValue>(members) && takes_somewhere<T, AlignedValue<alignof(T)>>(members);
        }
    }
}

template <class List>
inline constexpr bool are_pointer_free = false;
template <class... T>
inline constexpr bool are_pointer_free<Types<T...>> = (is_pointer_free_part<std::remove_cv_t<T>> && ...);

template <class T>
consteval bool holds_no_pointer() {
    using Plain = std::remove_cv_t<T>;
    using Known = Members<Plain, Types<Plain>>;
    if constexpr (!std::is_same_v<Plain, T>)
        return is_pointer_free<Plain>;
    else if constexpr (std::is_array_v<T>)
        return is_pointer_free<std::remove_extent_t<T>>;
    else if constexpr (std::is_same_v<T, unsigned char> || std::is_same_v<T, std::byte> || (std::is_unsigned_v<T> && sizeof(T) >= sizeof(void*)))
        return false;
    else if constexpr (std::is_enum_v<T>)
        return !std::is_unsigned_v<std::underlying_type_t<T>> || sizeof(T) < sizeof(void*);
    else if constexpr (std::is_arithmetic_v<T>)
        return true;
    else if constexpr (!std::is_class_v<T> || std::is_empty_v<T>)
        return false;
    else if constexpr (Known::known)
        return are_pointer_free<typename Known::List>;
    else if constexpr (is_std<T>("complex"))
        return true;
    else if constexpr (is_duration<T>)
        return is_pointer_free<typename T::rep>;
    else if constexpr (is_time_point<T>)
        return is_pointer_free<typename T::duration>;
    else if constexpr (std::is_aggregate_v<T>)
        return aggregate_holds_no_pointer<T>();
    else
        return false;
}

/// Of blocks of such elements.
template <class T>
inline constexpr heap::Content content_of = is_pointer_free<std::remove_cv_t<T>> ? heap::Content::pointer_free : heap::Content::any;

}  // namespace stl
}  // namespace taiyen
