#pragma once
/// `storable<T>`: what may lie in a heap that outlives the program. Rejected as far as the compiler can know.
///
/// Bytes are stored as they are and found again by another process of another build, at the same address: pointers into the heap stay good, pointers to code
/// (virtual functions, `std::function`, function pointers) and to memory of the program (`std::string`, `std::vector`, smart pointers) do not. Standard
/// wrappers, containers of this library and aggregates are looked through; a class with constructors of its own is believed.

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace taiyen {
namespace stl {

/// The compiler's text for a type; something may follow it.
template <class T>
consteval std::string_view spelled() {
    const std::string_view name = __PRETTY_FUNCTION__;
    return name.substr(name.find("T = ") + 4);
}

/// Whether it is the class or class template of that name in namespace std. By its name, so that nobody needs the headers of classes that a program doesn't use.
template <class T>
consteval bool is_std(std::string_view name) {
    constexpr std::string_view space = "std::";
    std::string_view text = spelled<T>();
    if (!text.starts_with(space)) return false;
    text.remove_prefix(space.size());
    if (!text.starts_with(name)) return false;
    text.remove_prefix(name.size());
    return text.empty() || text.front() == '<' || text.front() == ']' || text.front() == ';';
}

/// By its name, as is_std.
template <class C>
consteval bool is_known_for_constants() {
    std::string_view name = spelled<C>();
    name = name.substr(0, name.find('<'));
    const auto ends = [name](auto... ending) { return (name.ends_with(ending) || ...); };
    if (name.starts_with("absl::")) return ends("_hash_map", "_hash_set", "::btree_map", "::btree_set", "::btree_multimap", "::btree_multiset");
    if (name.starts_with("boost::")) return ends("::unordered_flat_map", "::unordered_flat_set");
    if (name.starts_with("tsl::")) return ends("::robin_map", "::robin_set", "::hopscotch_map", "::hopscotch_set");
    return false;
}

/// Whether it is a class without a name of its own, as anonymous unions are.
template <class T>
consteval bool has_no_name() {
    if constexpr (!std::is_union_v<T> && !(std::is_class_v<T> && std::is_aggregate_v<T>)) {
        return false;
    } else {
        constexpr std::string_view name = spelled<T>();
        return name.find("<unnamed ") != std::string_view::npos || name.find("(unnamed ") != std::string_view::npos ||
               name.find("(anonymous union") != std::string_view::npos || name.find("(anonymous struct") != std::string_view::npos ||
               name.find("(anonymous class") != std::string_view::npos;
    }
}

}  // namespace stl

/// Whether a hash gives the same values in every process: what an unordered container in a heap counts on. Abseil's don't. Specialise it for a hash of your own that
/// doesn't, or for one that does against appearances.
template <class H>
inline constexpr bool is_stable_hash = !stl::spelled<std::remove_cv_t<H>>().starts_with("absl::");

/// Whether an empty container of that type points to a constant of the program, which the next process finds elsewhere. Known by its name for those of Abseil, Boost and Tessil; a class derived
/// from one has another name. Specialise it for a container of your own, or to false for a program that opens its heaps in one process only.
template <class C>
inline constexpr bool points_to_constant = stl::is_known_for_constants<C>();

/// Whether containers with this allocator that lie in a heap keep all of their memory in it: only those may be stored. Specialise it for an allocator of your own.
template <class A>
inline constexpr bool is_durable_allocator = false;

namespace stl {

/// What is wrong with a type.
enum class Flaw {
    none,
    reference,
    function,
    code_pointer,
    polymorphic,
    type_erased,
    smart_pointer,
    foreign_container,
    outside_memory,
    nested_reference,
    member,
    unstable_hash,
    shared_constant,  ///< a container that points to a constant of the program while it is empty
    raw_pointer,      ///< only where position independence is asked for
    raw_container     ///< the same: a container whose allocator gives addresses
};

/// Allocators whose pointers are distances specialise this, too.
template <class A>
inline constexpr bool keeps_distances = false;

/// Ahead of the types that are looked at: raw pointers are flaws, too.
struct AnyAddress {};
template <class... Seen>
inline constexpr bool at_any_address = (std::is_same_v<Seen, AnyAddress> || ...);

template <class T>
concept has_allocator = requires { typename T::allocator_type; };

template <class T, class... Seen>
consteval Flaw flaw_of();

template <class... T>
struct Types {};

/// The first flaw among the types.
template <class Seen, class... T>
struct FirstFlaw;
template <class... Seen, class... T>
struct FirstFlaw<Types<Seen...>, T...> {
    static consteval Flaw value() {
        Flaw flaw = Flaw::none;
        ((flaw = flaw == Flaw::none ? flaw_of<T, Seen...>() : flaw), ...);
        return flaw;
    }
};

/// Wrappers of the standard library that hold their arguments' values.
template <class T, class Seen>
struct Members {
    static constexpr bool known = false;
};
template <class Seen, class... T>
struct KnownMembers {
    static constexpr bool known = true;
    using List = Types<T...>;
    static consteval Flaw flaw() { return FirstFlaw<Seen, T...>::value(); }
};
template <class A, class B, class Seen>
struct Members<std::pair<A, B>, Seen> : KnownMembers<Seen, A, B> {};
template <class... T, class Seen>
struct Members<std::tuple<T...>, Seen> : KnownMembers<Seen, T...> {};
template <template <class...> class W, class... T, class Seen>
    requires(is_std<W<T...>>("variant"))
struct Members<W<T...>, Seen> : KnownMembers<Seen, T...> {};
template <class T, class Seen>
struct Members<std::optional<T>, Seen> : KnownMembers<Seen, T> {};
template <class T, std::size_t N, class Seen>
struct Members<std::array<T, N>, Seen> : KnownMembers<Seen, T> {};

template <class T>
inline constexpr bool is_smart_pointer = is_std<T>("unique_ptr") || is_std<T>("shared_ptr") || is_std<T>("weak_ptr");
template <class T>
inline constexpr bool is_type_erased = is_std<T>("any") || is_std<T>("function");
template <class T>
inline constexpr bool is_outside_text = is_std<T>("filesystem::path") || is_std<T>("filesystem::__cxx11::path") || is_std<T>("error_code");

template <class T>
inline constexpr bool is_view = is_std<T>("reference_wrapper");
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;

/// Elements, keys, mapped values, comparison and hash of a container.
template <class C, class... Seen>
consteval Flaw flaw_of_container() {
    if constexpr (!is_durable_allocator<typename C::allocator_type>) {
        return Flaw::foreign_container;
    } else if constexpr (at_any_address<Seen...> && !keeps_distances<typename C::allocator_type>) {
        return Flaw::raw_container;
    } else if constexpr (points_to_constant<C>) {
        return Flaw::shared_constant;
    } else {
        Flaw flaw = flaw_of<typename C::value_type, Seen...>();
        if constexpr (requires { typename C::key_compare; }) flaw = flaw == Flaw::none ? flaw_of<typename C::key_compare, Seen...>() : flaw;
        if constexpr (requires { typename C::hasher; }) {
            if (!is_stable_hash<typename C::hasher>) return Flaw::unstable_hash;
            flaw = flaw == Flaw::none ? flaw_of<typename C::hasher, Seen...>() : flaw;
        }
        if constexpr (requires { typename C::key_equal; }) flaw = flaw == Flaw::none ? flaw_of<typename C::key_equal, Seen...>() : flaw;
        return flaw;
    }
}

// Aggregates are walked without naming their members: a probe that converts to anything shows how many initialisers the aggregate takes; one that converts to
// flawed types only must not be taken in place of any of them. Never evaluated, so never defined, also where that makes Clang wonder: for types of anonymous namespaces.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
struct AnyValue {
    template <class T>
    operator T() const noexcept;  // NOLINT(google-explicit-constructor)
};
struct AnyReference {
    template <class T>
    operator T&() const noexcept;  // NOLINT(google-explicit-constructor)
};
struct NoValue {};  // taken only by constructors that take everything: they prove nothing
template <class... Seen>
struct FlawedValue {
    template <class T>
        requires(flaw_of<T, Seen...>() != Flaw::none)
    operator T() const noexcept;  // NOLINT(google-explicit-constructor)
};
/// Where addresses are flaws: taken by wrappers that hold none. `optional<offset_ptr<T>>` takes a `T*` to make one of it, and holds no `T*`.
template <class... Seen>
struct GoodWrapper {
    template <class T>
        requires(Members<T, Types<Seen..., T>>::known && flaw_of<T, Seen...>() == Flaw::none)
    operator T() const noexcept;  // NOLINT(google-explicit-constructor)
};
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
template <class Probe, std::size_t>
using Repeated = Probe;

inline constexpr std::size_t walked_members_max = 64;  ///< members behind these (elements of C arrays count each) are believed

template <class T, std::size_t... I>
consteval bool takes_values(std::index_sequence<I...>) {
    return requires { T{Repeated<AnyValue, I>{}...}; };
}

/// Whether the aggregate takes the probe behind `Before` values and before `After` others.
template <class T, class Probe, std::size_t... Before, std::size_t... After>
consteval bool takes_at(std::index_sequence<Before...>, std::index_sequence<After...>) {
    return requires { T{Repeated<AnyValue, Before>{}..., Probe{}, Repeated<AnyValue, After>{}...}; };
}

/// How many initialisers the aggregate takes, at most walked_members_max; 0 also if none of these numbers fits.
template <class T, std::size_t N = 0, bool Began = false>
consteval std::size_t initialisers() {
    constexpr bool fits = takes_values<T>(std::make_index_sequence<N>());
    if constexpr (Began && !fits)
        return N - 1;
    else if constexpr (N == walked_members_max || N > sizeof(T) * 8)
        return fits ? N : 0;
    else
        return initialisers<T, N + 1, fits>();
}

template <class T, std::size_t... I>
consteval bool takes_reference(std::index_sequence<I...>) {
    return (
        (takes_at<T, AnyReference>(std::make_index_sequence<I>(), std::index_sequence<>()) && !takes_values<T>(std::make_index_sequence<I + 1>())) ||
        ...);
}

template <class T, class Flawed, class Unflawed, std::size_t... I>
consteval bool takes_flawed(std::index_sequence<I...>) {
    constexpr std::size_t count = sizeof...(I);
    return ((takes_at<T, Flawed>(std::make_index_sequence<I>(), std::make_index_sequence<count - 1 - I>()) &&
             !takes_at<T, Unflawed>(std::make_index_sequence<I>(), std::make_index_sequence<count - 1 - I>())) ||
            ...);
}

template <class T, class... Seen>
consteval Flaw flaw_of_aggregate() {
    constexpr std::size_t count = initialisers<T>();
    if constexpr (!std::is_copy_assignable_v<T> && !std::is_move_assignable_v<T>) {
        if constexpr (takes_reference<T>(std::make_index_sequence<count == 0 ? 8 : count + 1>())) return Flaw::nested_reference;
    }
    if constexpr (!takes_flawed<T, FlawedValue<Seen..., T>, NoValue>(std::make_index_sequence<count>())) {
        return Flaw::none;
    } else if constexpr (!at_any_address<Seen...> ||
                         takes_flawed<T, FlawedValue<Seen..., T>, GoodWrapper<Seen..., T>>(std::make_index_sequence<count>())) {
        return Flaw::member;
    } else {
        return Flaw::none;
    }
}

template <class T, class... Seen>
consteval Flaw flaw_of() {
    using Plain = std::remove_cv_t<T>;
    using Known = Members<Plain, Types<Seen..., Plain>>;
    if constexpr (std::is_reference_v<T>)
        return Flaw::reference;
    else if constexpr ((std::is_same_v<Plain, Seen> || ...))
        return Flaw::none;  // looked at further out
    else if constexpr (std::is_function_v<T> || std::is_void_v<T>)
        return Flaw::function;
    else if constexpr (std::is_array_v<T>)
        return flaw_of<std::remove_extent_t<T>, Seen...>();
    else if constexpr (std::is_member_function_pointer_v<T>)
        return Flaw::code_pointer;
    else if constexpr (std::is_pointer_v<T>)
        return std::is_function_v<std::remove_pointer_t<T>> ? Flaw::code_pointer : at_any_address<Seen...> ? Flaw::raw_pointer : Flaw::none;
    else if constexpr (!std::is_class_v<Plain>)
        return Flaw::none;
    else if constexpr (is_type_erased<Plain>)
        return Flaw::type_erased;
    else if constexpr (is_smart_pointer<Plain>)
        return Flaw::smart_pointer;
    else if constexpr (is_outside_text<Plain>)
        return Flaw::outside_memory;
    else if constexpr (at_any_address<Seen...> && is_view<Plain>)
        return Flaw::raw_pointer;
    else if constexpr (Known::known)
        return Known::flaw();
    else if constexpr (has_allocator<Plain>)
        return flaw_of_container<Plain, Seen..., Plain>();
    else if constexpr (std::is_polymorphic_v<Plain>)
        return Flaw::polymorphic;
    else if constexpr (std::is_aggregate_v<Plain> && !std::is_empty_v<Plain>)
        return flaw_of_aggregate<Plain, Seen...>();
    else
        return Flaw::none;
}

/// Refuses to compile, saying why, if a T can't be stored.
template <class T>
consteval void check_storable() {
    constexpr Flaw flaw = flaw_of<T>();
    static_assert(flaw != Flaw::reference && flaw != Flaw::nested_reference,
                  "taiyen: a reference can't be stored in a heap; use a pointer to something in the heap");
    static_assert(flaw != Flaw::function, "taiyen: functions and void can't be stored in a heap");
    static_assert(flaw != Flaw::code_pointer, "taiyen: pointers to functions can't be stored in a heap: code lies elsewhere in the next process");
    static_assert(flaw != Flaw::polymorphic,
                  "taiyen: a type with virtual functions can't be stored in a heap: its table lies elsewhere in the next process; use std::variant");
    static_assert(flaw != Flaw::type_erased,
                  "taiyen: std::function and std::any can't be stored in a heap: they point to code and to memory of this process");
    static_assert(flaw != Flaw::smart_pointer,
                  "taiyen: smart pointers can't be stored in a heap; use a container, or heap.make<T>() and a raw pointer");
    static_assert(
        flaw != Flaw::foreign_container,
        "taiyen: a container that keeps its memory outside the heap can't be stored in it; use taiyen::string, taiyen::vector, … at every level");
    static_assert(flaw != Flaw::member,
                  "taiyen: a member of the type can't be stored in a heap (std::string, a std container, a smart pointer, std::function, a hash that "
                  "changes with the process or the like, at some level); use taiyen::string, taiyen::vector, …");
    static_assert(flaw != Flaw::unstable_hash,
                  "taiyen: the container's hash changes with the process, and the next one would find no key; use taiyen::hash, or specialise "
                  "taiyen::is_stable_hash if that is not so");
    static_assert(flaw != Flaw::shared_constant,
                  "taiyen: the container points to a constant of the program while it is empty, and the next process finds it elsewhere; use "
                  "taiyen::flat_hash_map or taiyen::btree_map, or specialise taiyen::points_to_constant if that is not so");
    static_assert(flaw != Flaw::outside_memory, "taiyen: std::filesystem::path and std::error_code keep memory outside the heap");
}

/// Refuses to compile, saying why, if a T can't be stored, or holds a raw pointer.
template <class T>
consteval void check_position_independent() {
    check_storable<T>();
    constexpr Flaw flaw = flaw_of<T, AnyAddress>();
    static_assert(flaw != Flaw::raw_pointer, "taiyen: a raw pointer would lead nowhere in a heap that is mapped elsewhere; use taiyen::offset_ptr");
    static_assert(flaw != Flaw::raw_container,
                  "taiyen: a container of persistent_allocator keeps raw pointers, which would lead nowhere in a heap that is mapped elsewhere; use "
                  "taiyen::offset::string, taiyen::offset::map, … at every level");
    static_assert(flaw != Flaw::member || flaw_of<T>() != Flaw::none,
                  "taiyen: a member of the type holds a raw pointer, which would lead nowhere in a heap that is mapped elsewhere; use "
                  "taiyen::offset_ptr and taiyen::offset::string, taiyen::offset::map, …");
}

}  // namespace stl

/// Whether a T may lie in a heap.
template <class T>
concept storable = stl::flaw_of<T>() == stl::Flaw::none;

/// Whether a T may lie in a heap that is mapped anywhere: it is storable and holds no raw pointer, as far as the compiler can know.
template <class T>
concept position_independent = stl::flaw_of<T, stl::AnyAddress>() == stl::Flaw::none;

}  // namespace taiyen
