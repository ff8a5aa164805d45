#pragma once
/// The shape of a stored type, as the compiler knows it: fields of aggregates with their names, elements of containers, and so on, as deep as types go.
///
/// Kinds, names and types come from the compiler; the encoded text is put together once in a process, when it is first asked for. GCC and Clang give the same.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <taiyen/shape/describe.hpp>
#include <taiyen/shape/detail/builder.hpp>
#include <taiyen/stl/detail/layout.hpp>
#include <taiyen/stl/pointer_free.hpp>
#include <taiyen/stl/storable.hpp>

namespace taiyen::stl {

/// Takes fields, for the look whether there are any.
struct FieldProbe {
    void operator()(const char* name, auto member);
};
// No concepts: what is incomplete in one place of a file may be complete further down, and then GCC refuses them.
template <class T>
inline constexpr bool describes_itself = requires(FieldProbe probe) { T::taiyen_describe(shape::Described<T>(), probe); };
template <class T>
inline constexpr bool described_outside = requires(FieldProbe probe) { taiyen_describe(shape::Described<T>(), probe); };

template <class T>
consteval bool is_complete_object() {
    if constexpr (std::is_object_v<T>)
        return requires { sizeof(T); };
    else
        return false;
}
template <class T>
inline constexpr bool complete_object = is_complete_object<T>();

/// A name of a class template without its arguments and inline namespaces.
consteval std::string_view template_name(std::string_view spelling, std::string_view space) {
    if (!spelling.starts_with(space)) return {};
    spelling.remove_prefix(space.size());
    if (spelling.starts_with("__cxx11::")) spelling.remove_prefix(9);
    return spelling.substr(0, spelling.find('<'));
}

template <class C>
consteval ShapeKind kind_of_container() {
    struct Known {
        std::string_view name;
        ShapeKind kind;
    };
    constexpr Known of_std[] = {{"basic_string", ShapeKind::string},
                                {"vector", ShapeKind::vector},
                                {"deque", ShapeKind::deque},
                                {"list", ShapeKind::list},
                                {"forward_list", ShapeKind::forward_list},
                                {"map", ShapeKind::map},
                                {"multimap", ShapeKind::multimap},
                                {"set", ShapeKind::set},
                                {"multiset", ShapeKind::multiset},
                                {"unordered_map", ShapeKind::unordered_map},
                                {"unordered_multimap", ShapeKind::unordered_multimap},
                                {"unordered_set", ShapeKind::unordered_set},
                                {"unordered_multiset", ShapeKind::unordered_multiset}};
    constexpr Known of_taiyen[] = {{"btree_map", ShapeKind::btree_map},         {"btree_multimap", ShapeKind::btree_multimap},
                                   {"btree_set", ShapeKind::btree_set},         {"btree_multiset", ShapeKind::btree_multiset},
                                   {"flat_hash_map", ShapeKind::flat_hash_map}, {"flat_hash_set", ShapeKind::flat_hash_set}};
    const std::string_view in_std = template_name(spelled<C>(), "std::");
    for (const Known& known : of_std)
        if (known.name == in_std)
            return known.kind == ShapeKind::vector && std::is_same_v<typename C::value_type, bool> ? ShapeKind::bit_vector : known.kind;
    const std::string_view in_taiyen = template_name(spelled<C>(), "taiyen::");
    for (const Known& known : of_taiyen)
        if (known.name == in_taiyen) return known.kind;
    return complete_object<typename C::value_type> ? ShapeKind::other_container : ShapeKind::opaque;
}

/// Whether nodes hold their keys' hashes, of libstdc++'s iterators of hash tables.
template <class Iterator>
inline constexpr bool iterates_hashes = false;
template <template <class, bool, bool> class Iterator, class Value, bool constant, bool cached>
inline constexpr bool iterates_hashes<Iterator<Value, constant, cached>> = cached;

template <class T>
inline constexpr bool is_distance_pointer = spelled<T>().starts_with("boost::interprocess::offset_ptr<");

// No object of this name is anywhere: only addresses of its members are told apart, by the compiler.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
struct Pretended {
    T value;
};
template <class T>
extern Pretended<T> pretended;

struct AddressesOf {
    constexpr auto operator()(auto&... member) const { return std::tuple(std::addressof(member)...); }
};

template <auto address>
consteval const char* spelled_address() {
    return __PRETTY_FUNCTION__;
}

/// The last identifier of "[with auto address = (& …::name)]" or "[address = &….name]".
consteval std::string_view last_identifier(std::string_view text) {
    while (text.ends_with(']') || text.ends_with(')')) text.remove_suffix(1);
    const auto is_inside = [](char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
    };
    std::size_t begin = text.size();
    while (begin != 0 && is_inside(text[begin - 1])) --begin;
    return text.substr(begin);
}

template <class T, std::size_t N>
consteval bool has_addressable_members() {
    return !std::is_same_v<decltype(with_members<N>(pretended<T>.value, AddressesOf())), Unusable>;
}

template <std::size_t N>
struct MemberNames {
    std::string_view name[N];
};
template <class T, std::size_t... I>
consteval MemberNames<sizeof...(I)> member_names(std::index_sequence<I...>) {
    constexpr auto addresses = with_members<sizeof...(I)>(pretended<T>.value, AddressesOf());
    return {{last_identifier(spelled_address<std::get<I>(addresses)>())...}};
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class T>
consteval bool is_open_aggregate() {
    if constexpr (std::is_aggregate_v<T> && !std::is_polymorphic_v<T> && !std::is_union_v<T>) {
        constexpr std::size_t count = bound_members<T>();
        if constexpr (count != 0) return has_addressable_members<T, count>();
    }
    return false;
}

template <class T>
consteval ShapeKind kind_of() {
    if constexpr (!complete_object<T>) {
        return ShapeKind::opaque;
    } else if constexpr (std::is_same_v<T, bool>) {
        return ShapeKind::boolean;
    } else if constexpr (std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> || std::is_same_v<T, char16_t> ||
                         std::is_same_v<T, char32_t>) {
        return ShapeKind::character;
    } else if constexpr (std::is_integral_v<T>) {
        return std::is_signed_v<T> ? ShapeKind::signed_integer : ShapeKind::unsigned_integer;
    } else if constexpr (std::is_floating_point_v<T>) {
        return ShapeKind::floating_point;
    } else if constexpr (std::is_enum_v<T>) {
        return ShapeKind::enumeration;
    } else if constexpr (std::is_array_v<T>) {
        return std::extent_v<T> != 0 ? ShapeKind::array : ShapeKind::opaque;
    } else if constexpr (std::is_pointer_v<T>) {
        return ShapeKind::pointer;
    } else if constexpr (!std::is_class_v<T>) {
        return ShapeKind::opaque;
    } else if constexpr (describes_itself<T> || described_outside<T>) {
        return ShapeKind::structure;
    } else if constexpr (is_distance_pointer<T>) {
        return ShapeKind::pointer;
    } else if constexpr (is_std<T>("pair")) {
        return ShapeKind::pair;
    } else if constexpr (is_std<T>("tuple")) {
        return ShapeKind::tuple;
    } else if constexpr (is_std<T>("optional")) {
        return ShapeKind::optional;
    } else if constexpr (is_std<T>("variant")) {
        return ShapeKind::variant;
    } else if constexpr (is_std<T>("array")) {
        return std::tuple_size_v<T> != 0 ? ShapeKind::array : ShapeKind::opaque;
    } else if constexpr (is_std<T>("complex")) {
        return ShapeKind::array;
    } else if constexpr (is_duration<T> || is_time_point<T>) {
        return ShapeKind::structure;
    } else if constexpr (has_allocator<T> && requires { typename T::value_type; }) {
        return kind_of_container<T>();
    } else {
        return std::is_empty_v<T> || is_open_aggregate<T>() ? ShapeKind::structure : ShapeKind::opaque;
    }
}

template <class T>
std::uint32_t add_shape(shape::Builder& builder);

/// Where a part of the pretended object lies in it.
inline std::size_t offset_in_place(const volatile void* part) {
    return static_cast<std::size_t>(static_cast<const volatile std::byte*>(part) - static_cast<const std::byte*>(shape::Builder::place()));
}

/// Takes the fields that TAIYEN_DESCRIBE names.
template <class T>
struct DescribedFields {
    shape::Builder& builder;
    std::uint32_t node;

    template <class Field, class Class>
    void operator()(const char* name, Field Class::* member) const {
        static_assert(std::is_object_v<Field> && std::is_base_of_v<Class, T>,
                      "taiyen: TAIYEN_DESCRIBE names data members of the class and of its bases");
        auto& object = *static_cast<T*>(shape::Builder::place());
        const std::uint32_t part = add_shape<Field>(builder);
        builder.part(node, name, offset_in_place(std::addressof(object.*member)), part);
    }
};

template <class T, std::size_t... I>
void add_members(shape::Builder& builder, std::uint32_t node, std::index_sequence<I...>) {
    static constexpr auto names = member_names<T>(std::index_sequence<I...>());
    with_members<sizeof...(I)>(*static_cast<T*>(shape::Builder::place()), [&](auto&... member) {
        const auto add = [&]<class Member>(std::string_view name, Member& one) {
            const std::uint32_t part = add_shape<Member>(builder);
            builder.part(node, name, offset_in_place(std::addressof(one)), part);
        };
        (add(names.name[I], member), ...);
        return 0;
    });
}

template <class T, std::size_t... I>
void add_tuple(shape::Builder& builder, std::uint32_t node, std::index_sequence<I...>) {
    [[maybe_unused]] const auto add = [&]<std::size_t i>() {
        const std::uint32_t part = add_shape<std::tuple_element_t<i, T>>(builder);
        builder.part(node, {}, offset_in_place(std::addressof(std::get<i>(*static_cast<T*>(shape::Builder::place())))), part);
    };
    (add.template operator()<I>(), ...);
}

template <class Part>
void add_only(shape::Builder& builder, std::uint32_t node, std::string_view name = {}) {
    const std::uint32_t part = add_shape<Part>(builder);
    builder.part(node, name, 0, part);
}

template <class T, ShapeKind kind>
void add_parts(shape::Builder& builder, std::uint32_t node) {
    if constexpr (kind == ShapeKind::enumeration) {
        add_only<std::underlying_type_t<T>>(builder, node);
    } else if constexpr (kind == ShapeKind::array) {
        if constexpr (std::is_array_v<T>) {
            builder.node(node).count = std::extent_v<T>;
            add_only<std::remove_extent_t<T>>(builder, node);
        } else {
            builder.node(node).count = sizeof(T) / sizeof(typename T::value_type);
            add_only<typename T::value_type>(builder, node);
        }
    } else if constexpr (kind == ShapeKind::pointer) {
        if constexpr (std::is_pointer_v<T>) {
            add_only<std::remove_pointer_t<T>>(builder, node);
        } else {
            builder.node(node).distances = true;
            add_only<typename T::element_type>(builder, node);
        }
    } else if constexpr (kind == ShapeKind::pair) {
        auto& object = *static_cast<T*>(shape::Builder::place());
        const std::uint32_t first = add_shape<typename T::first_type>(builder);
        const std::uint32_t second = add_shape<typename T::second_type>(builder);
        builder.part(node, {}, offset_in_place(std::addressof(object.first)), first);
        builder.part(node, {}, offset_in_place(std::addressof(object.second)), second);
    } else if constexpr (kind == ShapeKind::tuple) {
        add_tuple<T>(builder, node, std::make_index_sequence<std::tuple_size_v<T>>());
    } else if constexpr (kind == ShapeKind::optional) {
        add_only<typename T::value_type>(builder, node);
    } else if constexpr (kind == ShapeKind::variant) {
        [&]<class... A>(Types<A...>) { (add_only<A>(builder, node), ...); }(typename Members<T, Types<>>::List());
    } else if constexpr (kind == ShapeKind::structure) {
        if constexpr (describes_itself<T>)
            T::taiyen_describe(shape::Described<T>(), DescribedFields<T>{builder, node});
        else if constexpr (described_outside<T>)
            taiyen_describe(shape::Described<T>(), DescribedFields<T>{builder, node});
        else if constexpr (is_duration<T>)
            add_only<typename T::rep>(builder, node, "count");
        else if constexpr (is_time_point<T>)
            add_only<typename T::duration>(builder, node, "time_since_epoch");
        else if constexpr (!std::is_empty_v<T>)
            add_members<T>(builder, node, std::make_index_sequence<bound_members<T>()>());
    } else if constexpr (kind >= ShapeKind::string && kind != ShapeKind::bit_vector) {
        builder.node(node).distances = keeps_distances<typename T::allocator_type>;
        if constexpr (kind >= ShapeKind::unordered_map && kind <= ShapeKind::unordered_multiset)
            builder.node(node).keeps_hashes = iterates_hashes<typename T::iterator>;
        add_only<typename T::value_type>(builder, node);
    }
}

/// The node of a T and all that it consists of or leads to.
template <class T>
std::uint32_t add_shape(shape::Builder& builder) {
    using Plain = std::remove_cv_t<T>;
    constexpr ShapeKind kind = kind_of<Plain>();
    std::size_t bytes = 0;
    std::size_t alignment = 1;
    if constexpr (complete_object<Plain>) {
        bytes = sizeof(Plain);
        alignment = alignof(Plain);
    }
    const auto [node, is_new] = builder.enter(typeid(Plain*).name(), kind, bytes, alignment);
    if (is_new) add_parts<Plain, kind>(builder, node);
    return node;
}

/// As heaps keep it. Complexity: constant, once it was asked for.
template <class T>
const std::string& encoded_shape() {
    static const std::string text = [] {
        shape::Builder builder;
        add_shape<T>(builder);
        return builder.encoded();
    }();
    return text;
}

}  // namespace taiyen::stl
