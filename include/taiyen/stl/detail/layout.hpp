#pragma once
/// The layout of everything inside a type as one number, computed by the compiler: what a fingerprint adds to the type's own name and size.
///
/// Each type that lies inside is looked at once: its size, its alignment, its `layout_tag`, and sizes, alignments and kinds (floating point, pointer, anything else) of its parts in their order. Parts
/// are the arguments of pair, tuple, optional, variant, array and complex, elements, keys, comparison and hash of containers, and the members of aggregates. A class with constructors
/// of its own, with bases or with virtual functions, a union, and an aggregate that has a `layout_tag`, can't be made from `{}`, or has more than 32 members or a member without a name
/// count as one piece. What pointers lead to is not looked at: a type may be complete in one source file and not in the next.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#if __has_include(<boost/version.hpp>)
#include <boost/version.hpp>
#endif

#include <taiyen/stl/hash.hpp>
#include <taiyen/stl/storable.hpp>

namespace taiyen {
namespace stl {

/// The version of the library that a container comes from, where its sizes alone would not tell: 0 for those whose layout is promised.
template <class T>
consteval std::uint64_t library_version() {
#if defined(BOOST_VERSION)
    if constexpr (has_allocator<T>) {
        if (spelled<T>().starts_with("boost::")) return BOOST_VERSION;
    }
#endif
    if constexpr (requires { T::layout_version; }) return T::layout_version;
    return 0;
}

}  // namespace stl

/// What of a class's layout sizes and alignments don't tell; another value is another type to heaps. Specialise it for containers of other libraries (their version), or for a class of your own
/// whose bytes mean something else than before; the members of an aggregate that has one are not looked at.
template <class T>
inline constexpr std::uint64_t layout_tag = stl::library_version<T>();

namespace stl {

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
/// Taken by a base of T.
template <class T>
struct BaseOf {
    template <class U>
        requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
    operator U() const noexcept;  // NOLINT(google-explicit-constructor)
};
/// Taken by anonymous members, and by members of a type without a name.
struct NamelessValue {
    template <class U>
        requires(has_no_name<U>())
    operator U() const noexcept;  // NOLINT(google-explicit-constructor)
};
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

struct TypesOf {
    template <class... T>
    constexpr Types<T...> operator()(const T&...) const {
        return {};
    }
};

// A pack expansion can't repeat `{}`, and structured bindings want their names written down: eight at a time, behind those of the groups before.
#define TAIYEN_BRACES {}, {}, {}, {}, {}, {}, {}, {},
#define TAIYEN_BRACED(n, ...) \
    if constexpr (N == (n)) return requires { T{__VA_ARGS__ Tail{}...}; };
#define TAIYEN_BRACED_GROUP(n, ...)                             \
    TAIYEN_BRACED((n) + 0, __VA_ARGS__)                         \
    TAIYEN_BRACED((n) + 1, __VA_ARGS__{}, )                     \
    TAIYEN_BRACED((n) + 2, __VA_ARGS__{}, {}, )                 \
    TAIYEN_BRACED((n) + 3, __VA_ARGS__{}, {}, {}, )             \
    TAIYEN_BRACED((n) + 4, __VA_ARGS__{}, {}, {}, {}, )         \
    TAIYEN_BRACED((n) + 5, __VA_ARGS__{}, {}, {}, {}, {}, )     \
    TAIYEN_BRACED((n) + 6, __VA_ARGS__{}, {}, {}, {}, {}, {}, ) \
    TAIYEN_BRACED((n) + 7, __VA_ARGS__{}, {}, {}, {}, {}, {}, {}, )
#define TAIYEN_NAMES(x) x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7,
#define TAIYEN_BOUND(n, ...)                          \
    if constexpr (N == (n)) {                         \
        auto& [__VA_ARGS__] = object;                 \
        if constexpr (requires { use(__VA_ARGS__); }) \
            return use(__VA_ARGS__);                  \
        else                                          \
            return Unusable();                        \
    }
#define TAIYEN_BOUND_GROUP(n, x, ...)                                           \
    TAIYEN_BOUND((n) + 1, __VA_ARGS__ x##0)                                     \
    TAIYEN_BOUND((n) + 2, __VA_ARGS__ x##0, x##1)                               \
    TAIYEN_BOUND((n) + 3, __VA_ARGS__ x##0, x##1, x##2)                         \
    TAIYEN_BOUND((n) + 4, __VA_ARGS__ x##0, x##1, x##2, x##3)                   \
    TAIYEN_BOUND((n) + 5, __VA_ARGS__ x##0, x##1, x##2, x##3, x##4)             \
    TAIYEN_BOUND((n) + 6, __VA_ARGS__ x##0, x##1, x##2, x##3, x##4, x##5)       \
    TAIYEN_BOUND((n) + 7, __VA_ARGS__ x##0, x##1, x##2, x##3, x##4, x##5, x##6) \
    TAIYEN_BOUND((n) + 8, __VA_ARGS__ x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7)

inline constexpr std::size_t bound_members_max = 32;  ///< aggregates of more members count as one piece

/// Whether the aggregate T can be made from N times `{}` and the tail. Each `{}` is one member, an array, too.
template <class T, std::size_t N, class... Tail>
consteval bool takes_braces() {
    TAIYEN_BRACED_GROUP(0, )
    TAIYEN_BRACED_GROUP(8, TAIYEN_BRACES)
    TAIYEN_BRACED_GROUP(16, TAIYEN_BRACES TAIYEN_BRACES)
    TAIYEN_BRACED_GROUP(24, TAIYEN_BRACES TAIYEN_BRACES TAIYEN_BRACES)
    TAIYEN_BRACED_GROUP(32, TAIYEN_BRACES TAIYEN_BRACES TAIYEN_BRACES TAIYEN_BRACES)
    return false;
}

struct Unusable {};

/// What `use` returns for the N members; Unusable where it can't take them: references to bit-fields.
template <std::size_t N, class T, class Use>
constexpr auto with_members(T& object, Use use) {
    TAIYEN_BOUND_GROUP(0, a, )
    TAIYEN_BOUND_GROUP(8, b, TAIYEN_NAMES(a))
    TAIYEN_BOUND_GROUP(16, c, TAIYEN_NAMES(a) TAIYEN_NAMES(b))
    TAIYEN_BOUND_GROUP(24, d, TAIYEN_NAMES(a) TAIYEN_NAMES(b) TAIYEN_NAMES(c))
}

#undef TAIYEN_BRACES
#undef TAIYEN_BRACED
#undef TAIYEN_BRACED_GROUP
#undef TAIYEN_NAMES
#undef TAIYEN_BOUND
#undef TAIYEN_BOUND_GROUP

/// How many `{}` the aggregate takes, at most bound_members_max + 1.
template <class T, std::size_t N = 0>
consteval std::size_t braces_taken() {
    if constexpr (N > bound_members_max)
        return N;
    else if constexpr (takes_braces<T, N + 1>())
        return braces_taken<T, N + 1>();
    else
        return N;
}

template <class T, std::size_t... I>
consteval bool has_nameless_member(std::index_sequence<I...>) {
    return (takes_braces<T, I, NamelessValue>() || ...);
}

/// How many members of the aggregate structured bindings would bind; 0 where that is not certain.
template <class T>
consteval std::size_t bound_members() {
    if constexpr (std::is_empty_v<T> || !takes_braces<T, 0>() || requires { std::tuple_size<T>::value; }) {
        return 0;
    } else {
        constexpr std::size_t count = braces_taken<T>();
        if constexpr (count > bound_members_max || takes_braces<T, count, AnyValue>() || takes_braces<T, 0, BaseOf<T>>() ||
                      has_nameless_member<T>(std::make_index_sequence<count>())) {
            return 0;
        } else {
            return count;
        }
    }
}

/// Elements, comparison and hash of a container.
template <class C>
consteval auto parts_of_container() {
    if constexpr (requires { typename C::key_compare; }) {
        return Types<typename C::value_type, typename C::key_compare>();
    } else if constexpr (requires {
                             typename C::hasher;
                             typename C::key_equal;
                         }) {
        return Types<typename C::value_type, typename C::hasher, typename C::key_equal>();
    } else {
        return Types<typename C::value_type>();
    }
}

/// The types that lie inside a T, one level down.
template <class T>
consteval auto parts_of() {
    if constexpr (std::is_array_v<T>) {
        return Types<std::remove_extent_t<T>>();
    } else if constexpr (!std::is_class_v<T>) {
        return Types<>();
    } else if constexpr (Members<T, Types<>>::known) {
        return typename Members<T, Types<>>::List();
    } else if constexpr (has_allocator<T>) {
        return parts_of_container<T>();
    } else if constexpr (std::is_aggregate_v<T> && !std::is_polymorphic_v<T> && layout_tag<T> == 0) {
        constexpr std::size_t count = bound_members<T>();
        if constexpr (count != 0)
            return decltype(with_members<count>(std::declval<const T&>(), TypesOf()))();
        else
            return Types<>();
    } else {
        return Types<>();
    }
}

/// Types with nothing inside: their size and alignment stand in what they are part of.
template <class T>
inline constexpr bool is_leaf = !std::is_class_v<T> && !std::is_union_v<T> && !std::is_array_v<T>;

/// The types that lie inside, at any depth, each once, in the order in which they are met.
template <class... Met>
struct Inside {
    template <class T>
    static consteval auto with(Types<T>) {
        if constexpr (is_leaf<T> || (std::is_same_v<T, Met> || ...))
            return Inside();
        else
            return Inside<Met..., T>::with_all(decltype(parts_of<T>())());
    }
    template <class... T>
    static consteval auto with_all(Types<T...>) {
        return (Inside() + ... + Types<std::remove_cv_t<T>>());
    }
    template <class T>
    consteval auto operator+(Types<T> next) const {
        return decltype(with(next))();
    }
};

/// A part as what contains it sees it.
template <class T>
constexpr std::uint64_t hash_part(std::uint64_t before) {
    const std::uint64_t kind = std::is_floating_point_v<T> ? 1 : std::is_pointer_v<T> ? 2 : 0;
    return hash_combine(before, sizeof(T) << 16U | alignof(T) << 2U | kind);
}

template <class T>
constexpr std::uint64_t hash_own() {
    std::uint64_t hash = hash_part<T>(0);
    if constexpr (!std::is_array_v<T>) hash = hash_combine(hash, layout_tag<T>);
    return []<class... P>(std::uint64_t start, Types<P...>) {
        ((start = hash_part<std::remove_cv_t<P>>(start)), ...);
        return start;
    }(hash, decltype(parts_of<T>())());
}

/// The layout of everything inside a T, itself included. GCC and Clang agree, and so do instrumented programs and others.
template <class T>
consteval std::uint64_t layout_of() {
    return []<class... Met>(Inside<Met...>) {
        std::uint64_t hash = sizeof...(Met);
        ((hash = hash_combine(hash, hash_own<Met>())), ...);
        return hash;
    }(Inside<>() + Types<T>());
}

}  // namespace stl
}  // namespace taiyen
