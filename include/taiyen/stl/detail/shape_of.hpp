#pragma once
/// The shape of a stored type, as the compiler knows it: fields of aggregates with their names, elements of containers, and so on, as deep as types lie within each other.
///
/// What pointers lead to is told by its name, unless it lies in place somewhere in the same shape, too, or is a class with TAIYEN_DESCRIBE that is no template: nothing else of it has to be complete, or could be.
/// Kinds, names and types come from the compiler; the encoded text is put together once in a process, when it is first asked for.

#include <bit>
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

/// Whether all of them can be looked at. Wrappers are asked by their arguments: to ask for the size of `pair<int, Forward>` is an error.
template <class... T>
consteval bool are_complete(Types<T...>);
template <class T>
consteval bool is_complete_object() {
    if constexpr (!std::is_object_v<T>)
        return false;
    else if constexpr (Members<T, Types<>>::known)
        return stl::are_complete(typename Members<T, Types<>>::List());
    else
        return requires { sizeof(T); };
}
template <class T>
inline constexpr bool complete_object = is_complete_object<T>();
template <class... T>
consteval bool are_complete(Types<T...>) {
    return (complete_object<std::remove_cv_t<T>> && ...);
}

/// Whether its name has template arguments, which asking for more than the name could bring to life.
template <class T>
consteval bool is_of_template() {
    const std::string_view name = spelled<T>();
    return name.substr(0, name.find_first_of(";]")).find('<') != std::string_view::npos;
}

/// Whether what a pointer leads to is looked into, too.
template <class T>
consteval bool is_told_behind_pointers() {
    if constexpr (std::is_class_v<T>) {
        if constexpr (!is_of_template<T>()) {
            if constexpr (complete_object<T>) return describes_itself<T> || described_outside<T>;
        }
        return false;
    } else if constexpr (std::is_array_v<T>) {
        return is_told_behind_pointers<std::remove_cv_t<std::remove_all_extents_t<T>>>();
    } else {
        return std::is_scalar_v<T>;
    }
}

/// A name of a class template without its arguments and inline namespaces.
consteval std::string_view template_name(std::string_view spelling, std::string_view space) {
    if (!spelling.starts_with(space)) return {};
    spelling.remove_prefix(space.size());
    if (spelling.starts_with("__cxx11::")) spelling.remove_prefix(9);
    return spelling.substr(0, spelling.find('<'));
}

/// Whether what compares and hashes its elements has no state, so that the container lies as any of its kind does.
template <class C>
consteval bool has_plain_functions() {
    if constexpr (requires { typename C::key_compare; })
        return std::is_empty_v<typename C::key_compare>;
    else if constexpr (requires {
                           typename C::hasher;
                           typename C::key_equal;
                       })
        return std::is_empty_v<typename C::hasher> && std::is_empty_v<typename C::key_equal>;
    else
        return true;
}

template <class C>
consteval ShapeKind kind_of_container() {
    if constexpr (!has_plain_functions<C>()) return ShapeKind::other_container;
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
                                   {"ordered_map", ShapeKind::ordered_map},     {"ordered_multimap", ShapeKind::ordered_multimap},
                                   {"ordered_set", ShapeKind::ordered_set},     {"ordered_multiset", ShapeKind::ordered_multiset},
                                   {"flat_hash_map", ShapeKind::flat_hash_map}, {"flat_hash_set", ShapeKind::flat_hash_set}};
    const std::string_view in_std = template_name(spelled<C>(), "std::");
    for (const Known& known : of_std)
        if (known.name == in_std)
            return known.kind == ShapeKind::vector && std::is_same_v<typename C::value_type, bool> ? ShapeKind::bit_vector : known.kind;
    const std::string_view in_taiyen = template_name(spelled<C>(), "taiyen::");
    for (const Known& known : of_taiyen)
        if (known.name == in_taiyen) return known.kind;
    return ShapeKind::other_container;
}

/// Whether nodes hold their keys' hashes, of libstdc++'s iterators of hash tables.
template <class Iterator>
inline constexpr bool iterates_hashes = false;
template <template <class, bool, bool> class Iterator, class Value, bool constant, bool cached>
inline constexpr bool iterates_hashes<Iterator<Value, constant, cached>> = cached;

template <class T>
inline constexpr bool is_distance_pointer = spelled<T>().starts_with("boost::interprocess::offset_ptr<") && sizeof(T) == sizeof(void*);

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

template <std::size_t N>
struct Addresses {
    const volatile void* of[N];
};
struct AddressesOf {
    constexpr auto operator()(auto&... member) const { return Addresses<sizeof...(member)>{{std::addressof(member)...}}; }
};

template <auto address>
consteval const char* spelled_address() {
    return __PRETTY_FUNCTION__;
}

/// Not so of what is read and copied to be bound: bit-fields, members of packed classes, volatile ones. Tested as a constant, since only that shows it.
template <class T, std::size_t N>
consteval bool has_addressable_members() {
    if constexpr (std::is_same_v<decltype(with_members<N>(pretended<T>.value, AddressesOf())), Unusable>)
        return false;
    else
        return requires { typename std::bool_constant<(static_cast<void>(with_members<N>(pretended<T>.value, AddressesOf())), true)>; };
}

template <std::size_t N>
struct MemberTexts {
    const char* of[N];
};
/// The compiler's texts for the addresses of the members, whose names they end with.
template <class T, std::size_t... I>
consteval MemberTexts<sizeof...(I)> member_texts(std::index_sequence<I...>) {
    constexpr auto addresses = with_members<sizeof...(I)>(pretended<T>.value, AddressesOf());
    return {{spelled_address<addresses.of[I]>()...}};
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class T>
consteval bool is_open_aggregate() {
    if constexpr (std::is_aggregate_v<T> && !std::is_polymorphic_v<T> && layout_tag<T> == 0) {
        constexpr std::size_t count = bound_members<T>();
        if constexpr (count != 0) return has_addressable_members<T, count>();
    }
    return false;
}

template <class... T>
consteval bool have_reference(Types<T...>) {
    return (std::is_reference_v<T> || ...);
}

template <class T>
consteval ShapeKind kind_of() {
    if constexpr (std::is_same_v<T, bool>) {
        return ShapeKind::boolean;
    } else if constexpr (std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> || std::is_same_v<T, char16_t> ||
                         std::is_same_v<T, char32_t>) {
        return ShapeKind::character;
    } else if constexpr (std::is_integral_v<T>) {
        if constexpr (std::has_single_bit(sizeof(T)) && sizeof(T) <= 16)
            return std::is_signed_v<T> ? ShapeKind::signed_integer : ShapeKind::unsigned_integer;
        else
            return ShapeKind::opaque;
    } else if constexpr (std::is_floating_point_v<T>) {
        return sizeof(T) == sizeof(float) || sizeof(T) == sizeof(double) || sizeof(T) == 16 ? ShapeKind::floating_point : ShapeKind::opaque;
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
    } else if constexpr (is_std<T>("pair") || is_std<T>("tuple")) {
        if (stl::have_reference(typename Members<T, Types<>>::List())) return ShapeKind::opaque;
        return is_std<T>("pair") ? ShapeKind::pair : ShapeKind::tuple;
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
    } else if constexpr (has_allocator<T>) {
        // One of another allocator lies behind a pointer, and its elements may be anything.
        if constexpr (is_durable_allocator<typename T::allocator_type> && requires { typename T::value_type; }) return kind_of_container<T>();
        return ShapeKind::opaque;
    } else {
        return std::is_empty_v<T> || is_open_aggregate<T>() ? ShapeKind::structure : ShapeKind::opaque;
    }
}

template <class T>
std::uint32_t add_shape(shape::Builder& builder);

/// What a pointer leads to.
template <class T>
std::uint32_t add_target(shape::Builder& builder) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (is_told_behind_pointers<Plain>())
        return add_shape<Plain>(builder);
    else
        return builder.mention(typeid(Plain*).name());
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
        static_assert(
            requires(Class* base) { static_cast<T*>(base); },
            "taiyen: TAIYEN_DESCRIBE can't name members of virtual bases, whose places only an object knows, nor of private ones");
        auto& object = *static_cast<T*>(shape::Builder::place());
        const std::uint32_t part = add_shape<Field>(builder);
        builder.part(node, name, shape::Builder::offset_in_place(std::addressof(object.*member)), part);
    }
};

template <class T, class... Member>
void add_members(shape::Builder& builder, std::uint32_t node, Types<Member...>) {
    // A packed class, which GCC doesn't look into.
    if constexpr (((alignof(Member) > alignof(T)) || ...)) return builder.make_opaque(node);
    constexpr std::size_t count = sizeof...(Member);
    static constexpr auto texts = member_texts<T>(std::make_index_sequence<count>());
    static constexpr shape::Builder::Add adds[] = {&add_shape<std::remove_cv_t<Member>>...};
    // Few words here, one loop there: compilers take their time for each.
    builder.add_fields(node, count, texts.of, with_members<count>(*static_cast<T*>(shape::Builder::place()), AddressesOf()).of, adds);
}

template <class T, std::size_t... I>
void add_tuple(shape::Builder& builder, std::uint32_t node, std::index_sequence<I...>) {
    [[maybe_unused]] const auto add = [&]<std::size_t i>() {
        const std::uint32_t part = add_shape<std::tuple_element_t<i, T>>(builder);
        builder.part(node, {}, shape::Builder::offset_in_place(std::addressof(std::get<i>(*static_cast<T*>(shape::Builder::place())))), part);
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
            builder.set_count(node, std::extent_v<T>);
            add_only<std::remove_extent_t<T>>(builder, node);
        } else {
            builder.set_count(node, sizeof(T) / sizeof(typename T::value_type));
            add_only<typename T::value_type>(builder, node);
        }
    } else if constexpr (kind == ShapeKind::pointer) {
        if constexpr (std::is_pointer_v<T>) {
            builder.part(node, {}, 0, add_target<std::remove_pointer_t<T>>(builder));
        } else {
            builder.set_links(node, true);
            builder.part(node, {}, 0, add_target<typename T::element_type>(builder));
        }
    } else if constexpr (kind == ShapeKind::pair) {
        auto& object = *static_cast<T*>(shape::Builder::place());
        const std::uint32_t first = add_shape<typename T::first_type>(builder);
        const std::uint32_t second = add_shape<typename T::second_type>(builder);
        builder.part(node, {}, shape::Builder::offset_in_place(std::addressof(object.first)), first);
        builder.part(node, {}, shape::Builder::offset_in_place(std::addressof(object.second)), second);
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
            stl::add_members<T>(builder, node, decltype(parts_of<T>())());
    } else if constexpr (kind >= ShapeKind::string && kind != ShapeKind::bit_vector) {
        bool keeps_hashes = false;
        if constexpr (kind >= ShapeKind::unordered_map && kind <= ShapeKind::unordered_multiset) keeps_hashes = iterates_hashes<typename T::iterator>;
        builder.set_links(node, keeps_distances<typename T::allocator_type>, keeps_hashes);
        if constexpr (kind >= ShapeKind::btree_map && kind <= ShapeKind::ordered_multiset) builder.set_count(node, T::leaf_form);
        add_only<typename T::value_type>(builder, node);
    }
}

/// The node of a T and all that it consists of or leads to.
template <class T>
std::uint32_t add_shape(shape::Builder& builder) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (complete_object<Plain>) {
        constexpr ShapeKind kind = kind_of<Plain>();
        const auto [node, is_new] = builder.enter(typeid(Plain*).name(), kind, sizeof(Plain), alignof(Plain));
        if (is_new) add_parts<Plain, kind>(builder, node);
        return node;
    } else {
        return builder.mention(typeid(Plain*).name());
    }
}

template <class T>
inline constinit shape::TypeShape type_shape{&add_shape<T>};

/// As heaps keep it. Complexity: constant, once it was asked for.
template <class T>
const std::string& encoded_shape() {
    return shape::encoded(type_shape<T>);
}

}  // namespace taiyen::stl
