#pragma once
/// How a value of a type comes about from an old one: kind by kind, down to where nothing has changed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <taiyen/migrate/detail/run.hpp>
#include <taiyen/stl/named.hpp>

namespace taiyen::migrate {

template <class T>
void become(Run& run, const ViewValue& old, T& now);

template <class T>
void* make_from(Run& run, const ViewValue& old) {
    static_assert(std::is_default_constructible_v<T>, "taiyen: objects that are migrated begin as what the default constructor makes");
    T* const now = stl::make<T>(run.core());
    struct Undo {
        heap::HeapCore& core;
        T* object;
        ~Undo() {
            if (object != nullptr) stl::destroy_object(core, object);
        }
    } undo{run.core(), now};
    become(run, old, *now);
    undo.object = nullptr;
    return now;
}

template <class T>
inline constexpr Maker maker{&stl::type_shape<T>, sizeof(T), &make_from<T>,
                             [](heap::HeapCore& core, void* object) { stl::destroy_object(core, static_cast<T*>(object)); }};

/// In place of what is there. A copy is constructed there, not assigned: assigning a variant makes a copy outside the heap first.
template <class T>
void copy_to(T& now, const T& old) {
    std::destroy_at(std::addressof(now));
    try {
        std::construct_at(std::addressof(now), old);
    } catch (...) {
        std::construct_at(std::addressof(now));
        throw;
    }
}

/// As it is. False: a T can't be moved or copied that way.
template <class T>
bool take(Run& run, const ViewValue& old, T& now) {
    if constexpr (std::is_trivially_copyable_v<T> && std::is_copy_assignable_v<T>)
        now = *static_cast<const T*>(run.address(old));
    else if (run.is_copying())
        if constexpr (std::is_copy_constructible_v<T> && std::is_default_constructible_v<T>)
            copy_to(now, *static_cast<const T*>(run.address(old)));
        else
            return false;
    else if constexpr (std::is_move_assignable_v<T>)
        now = std::move(*static_cast<T*>(run.address(old)));
    else
        return false;
    run.took(old, stl::type_shape<T>, std::addressof(now));
    return true;
}

/// What is left of a value that no shape takes apart, or not whole, is destroyed by its type.
template <class T>
void destroy_at_end(Run& run, const ViewValue& old) {
    constexpr ShapeKind kind = stl::kind_of<T>();
    if constexpr (kind == ShapeKind::opaque || kind == ShapeKind::other_container || stl::describes_itself<T> || stl::described_outside<T>) {
        if constexpr (!std::is_trivially_destructible_v<T>)
            run.destroy_at_end(old, [](void* object) { std::destroy_at(static_cast<T*>(object)); });
        else if constexpr (kind != ShapeKind::structure)
            run.destroy_at_end(old, nullptr);
    }
}

/// Whether the type holds the number.
template <class T, class Number>
bool holds(Number number) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<long double>(static_cast<T>(number)) == static_cast<long double>(number);
    } else {
        const T held = static_cast<T>(number);
        return static_cast<Number>(held) == number && (held < T{}) == (number < Number{});
    }
}

template <class T>
void become_number(Run& run, const ViewValue& old, T& now) {
    const auto set = [&](auto number) {
        if (!holds<T>(number)) run.throw_unlike(old, stl::type_shape<T>);
        now = static_cast<T>(number);
    };
    const ViewNumber number = run.number(old);
    if (old.kind() == ShapeKind::character && old.bytes() == 1) {  // as this program has them, with a sign or without
        const char letter = static_cast<char>(static_cast<unsigned char>(number.natural));
        if constexpr (stl::kind_of<T>() == ShapeKind::character && sizeof(T) == 1)
            now = static_cast<T>(letter);
        else
            set(static_cast<std::int64_t>(letter));
        return;
    }
    if (number.kind == ViewNumber::Kind::negative) return set(number.negative);
    if (number.kind == ViewNumber::Kind::natural) return set(number.natural);
    if constexpr (std::is_floating_point_v<T>) {
        now = static_cast<T>(number.floating);
        const bool is_number = number.floating == number.floating;
        if (is_number && static_cast<long double>(now) != number.floating) run.throw_unlike(old, stl::type_shape<T>);
    } else {
        constexpr long double beyond = 0x1p63L;
        if (!(number.floating >= -beyond && number.floating < beyond)) run.throw_unlike(old, stl::type_shape<T>);
        const auto whole = static_cast<std::int64_t>(number.floating);
        if (static_cast<long double>(whole) != number.floating) run.throw_unlike(old, stl::type_shape<T>);
        set(whole);
    }
}

template <class T>
void become_pointer(Run& run, const ViewValue& old, T& now) {
    using Target = std::remove_pointer_t<decltype(std::to_address(now))>;
    using Plain = std::remove_cv_t<Target>;
    void* target = nullptr;
    if constexpr (stl::complete_object<Plain>)
        if constexpr (stl::kind_of<Plain>() == ShapeKind::structure && std::is_default_constructible_v<Plain>)
            target = run.follow(old, stl::type_shape<T>, &stl::type_shape<Plain>, &maker<Plain>);
        else
            target = run.follow(old, stl::type_shape<T>, &stl::type_shape<Plain>, nullptr);
    else
        target = run.follow(old, stl::type_shape<T>, nullptr, nullptr);
    if constexpr (std::is_function_v<Target>)
        now = reinterpret_cast<T>(target);
    else
        now = static_cast<Target*>(target);
}

/// A value that is part of what holds it, of a type that may be const there.
template <class T>
void become_part(Run& run, const ViewValue& old, T& now) {
    static_assert(!std::is_const_v<T> && !std::is_reference_v<T>, "taiyen: const members can't be migrated");
    become(run, old, now);
}

/// Calls `take` with the number of each field, in the order in which its shape tells them, and the field.
template <class T, class Take>
void for_each_field(T& object, Take take) {
    std::uint32_t number = 0;
    const auto describe = [&](const char*, auto member) { take(number++, object.*member); };
    if constexpr (stl::describes_itself<T>) {
        T::taiyen_describe(shape::Described<T>(), describe);
    } else if constexpr (stl::described_outside<T>) {
        taiyen_describe(shape::Described<T>(), describe);
    } else if constexpr (!std::is_empty_v<T>) {
        stl::with_members<stl::bound_members<T>()>(object, [&](auto&... member) {
            (take(number++, member), ...);
            return 0;
        });
    }
}

template <class T>
void become_structure(Run& run, const ViewValue& old, T& now) {
    if (old.kind() != ShapeKind::structure) run.throw_unlike(old, stl::type_shape<T>);
    const auto& from = run.fields(old, stl::type_shape<T>);
    for_each_field(now, [&](std::uint32_t number, auto& field) {
        if (!from[number]) return;
        const Run::Place place(run, stl::type_shape<T>, number);
        become_part(run, old.part(*from[number]), field);
    });
}

template <class T>
void become_array(Run& run, const ViewValue& old, T& now) {
    if (is_map(old.kind()) || !old.has_elements()) run.throw_unlike(old, stl::type_shape<T>);
    std::size_t at = 0;
    const auto element = [&](std::size_t i) -> auto& {
        if constexpr (stl::is_std<T>("complex"))
            return reinterpret_cast<typename T::value_type(&)[2]>(now)[i];
        else
            return now[i];
    };
    const std::size_t room = [&] {
        if constexpr (std::is_array_v<T>)
            return std::extent_v<T>;
        else
            return sizeof(T) / sizeof(typename T::value_type);
    }();
    for (const ViewValue& value : old.elements()) {
        if (at == room) run.throw_unlike(old, stl::type_shape<T>, "it has more elements");
        become_part(run, value, element(at++));
    }
}

/// Pairs and tuples.
template <class T>
void become_tuple(Run& run, const ViewValue& old, T& now) {
    const bool is_like = old.kind() == ShapeKind::pair || old.kind() == ShapeKind::tuple;
    if (!is_like || old.parts() > std::tuple_size_v<T>) run.throw_unlike(old, stl::type_shape<T>);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        ((I < old.parts() ? become_part(run, old.part(I), std::get<I>(now)) : void()), ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>());
}

template <class T>
void become_optional(Run& run, const ViewValue& old, T& now) {
    const std::optional<ViewValue> value = old.kind() == ShapeKind::optional ? old.target() : std::optional(old);
    if (!value) return now.reset();
    become_part(run, *value, now.emplace());
}

template <class T>
void become_variant(Run& run, const ViewValue& old, T& now) {
    if (old.kind() != ShapeKind::variant) run.throw_unlike(old, stl::type_shape<T>);
    const std::optional<std::size_t> alternative = old.alternative();
    const std::optional<ViewValue> value = old.target();
    if (!alternative || !value || *alternative >= std::variant_size_v<T>) run.throw_unlike(old, stl::type_shape<T>);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        ((I == *alternative ? become_part(run, *value, now.template emplace<I>()) : void()), ...);
    }(std::make_index_sequence<std::variant_size_v<T>>());
}

/// A key on its way into a container: the old one if it is as it was, else one that is made of it.
template <class Key, class Use>
void with_key(Run& run, const ViewValue& old, Use use) {
    if constexpr (std::is_copy_constructible_v<Key>) {
        if (run.is_same(old, stl::type_shape<Key>)) {
            destroy_at_end<Key>(run, old);
            return use(*static_cast<const Key*>(run.address(old)));
        }
    }
    static_assert(std::is_default_constructible_v<Key>, "taiyen: keys that are migrated begin as what the default constructor makes");
    Key key{};
    {
        const Run::Passing passing(run);
        const Run::Copying copying(run);
        become(run, old, key);
    }
    use(std::as_const(key));  // a move would take along what it has outside the heap
}

template <class C>
void begin_filling(const ViewValue& old, C& now) {
    now.clear();
    if constexpr (requires { now.reserve(std::size_t{}); }) now.reserve(old.size());
}

template <class C, ShapeKind kind>
void become_map(Run& run, const ViewValue& old, C& now) {
    if (!is_map(old.kind()) || !old.has_elements()) run.throw_unlike(old, stl::type_shape<C>);
    begin_filling(old, now);
    constexpr bool is_stable = kind >= ShapeKind::map && kind <= ShapeKind::unordered_multiset;
    for (const ViewValue& element : old.elements()) {
        with_key<typename C::key_type>(run, element.part(0), [&](const auto& key) {
            const std::size_t before = now.size();
            const auto at = now.emplace_hint(now.end(), std::piecewise_construct, std::forward_as_tuple(key), std::tuple<>());
            if (now.size() == before) run.throw_unlike(old, stl::type_shape<C>, "two of its keys are equal");
            if constexpr (is_stable) {
                run.begun(element, stl::type_shape<typename C::value_type>, std::addressof(*at));
                run.begun(element.part(0), stl::type_shape<typename C::key_type>, std::addressof(at->first));
                become_part(run, element.part(1), at->second);
            } else {
                const Run::Passing passing(run);
                become_part(run, element.part(1), (*at).second);
            }
        });
    }
}

template <class C, ShapeKind kind>
void become_set(Run& run, const ViewValue& old, C& now) {
    if (!is_set(old.kind()) || !old.has_elements()) run.throw_unlike(old, stl::type_shape<C>);
    begin_filling(old, now);
    constexpr bool is_stable = kind >= ShapeKind::set && kind <= ShapeKind::unordered_multiset;
    for (const ViewValue& element : old.elements()) {
        with_key<typename C::key_type>(run, element, [&](const auto& key) {
            const std::size_t before = now.size();
            [[maybe_unused]] const auto at = now.emplace_hint(now.end(), key);
            if (now.size() == before) run.throw_unlike(old, stl::type_shape<C>, "two of its elements are equal");
            if constexpr (is_stable) run.begun(element, stl::type_shape<typename C::key_type>, std::addressof(*at));
        });
    }
}

/// Of a text, or of any sequence of numbers. Where the old one is an array of letters, it ends at its first zero.
template <class C>
void become_string(Run& run, const ViewValue& old, C& now) {
    if (is_map(old.kind()) || !old.has_elements()) run.throw_unlike(old, stl::type_shape<C>);
    begin_filling(old, now);
    using Letter = typename C::value_type;
    const bool may_end = old.is_text() && old.kind() == ShapeKind::array;
    bool ends = false;
    for (const ViewValue& letter : old.elements()) {
        if (old.is_text() && letter.bytes() != sizeof(Letter)) run.throw_unlike(old, stl::type_shape<C>, "its characters are of another size");
        Letter made{};
        become_number(run, letter, made);
        if (ends && made != Letter{}) run.throw_unlike(old, stl::type_shape<C>, "something stands behind its end");
        ends |= may_end && made == Letter{};
        if (!ends) now.push_back(made);
    }
}

template <class C, ShapeKind kind>
void become_sequence(Run& run, const ViewValue& old, C& now) {
    if (is_map(old.kind()) || !old.has_elements()) run.throw_unlike(old, stl::type_shape<C>);
    begin_filling(old, now);
    using Element = typename C::value_type;
    if constexpr (kind == ShapeKind::forward_list) {
        auto at = now.before_begin();
        for (const ViewValue& element : old.elements()) {
            at = now.emplace_after(at);
            become_part(run, element, *at);
        }
    } else if constexpr (kind == ShapeKind::bit_vector) {
        for (const ViewValue& element : old.elements()) {
            Element made{};
            become_number(run, element, made);
            now.push_back(made);
        }
    } else {
        for (const ViewValue& element : old.elements()) become_part(run, element, now.emplace_back());
    }
}

/// Whether nothing can be in a T but what its shape tells.
template <class T>
consteval bool is_told_whole() {
    constexpr ShapeKind kind = stl::kind_of<T>();
    if constexpr (kind == ShapeKind::structure)
        return !stl::describes_itself<T> && !stl::described_outside<T> && !stl::is_duration<T> && !stl::is_time_point<T>;
    else
        return kind > ShapeKind::structure && kind < ShapeKind::other_container && kind != ShapeKind::pointer && kind != ShapeKind::string &&
               kind != ShapeKind::bit_vector;
}

template <class T>
void become(Run& run, const ViewValue& old, T& now) {
    constexpr ShapeKind kind = stl::kind_of<T>();
    const Run::Deeper deeper(run, old);
    if constexpr (kind != ShapeKind::pointer) {
        // What is copied and may be led to is copied part by part, so that pointers can be led on.
        const bool is_taken_apart =
            is_told_whole<T>() && !std::is_trivially_copyable_v<T> && run.is_copying() && run.holds_targets(stl::type_shape<T>);
        if (!is_taken_apart && run.is_same(old, stl::type_shape<T>) && take(run, old, now)) return destroy_at_end<T>(run, old);
    }
    run.begun(old, stl::type_shape<T>, std::addressof(now));
    const bool has_function = run.has_function(stl::type_shape<T>);
    const std::size_t mark = has_function ? run.expect_function() : 0;
    if (has_function && !run.is_of_family(old, stl::type_shape<T>)) return run.finish(old, stl::type_shape<T>, std::addressof(now), mark);
    if constexpr (kind >= ShapeKind::boolean && kind <= ShapeKind::enumeration) {
        if constexpr (std::is_enum_v<T>) {
            std::underlying_type_t<T> number{};
            become_number(run, old, number);
            now = static_cast<T>(number);
        } else {
            become_number(run, old, now);
        }
    } else if constexpr (kind == ShapeKind::pointer) {
        become_pointer(run, old, now);
    } else if constexpr (stl::is_duration<T>) {
        run.require_same_unit(old, stl::type_shape<T>);
        const Run::Passing on_its_way(run);
        typename T::rep count{};
        become(run, old.kind() == ShapeKind::structure && old.parts() == 1 ? old.part(0) : old, count);
        now = T(count);
    } else if constexpr (stl::is_time_point<T>) {
        run.require_same_unit(old, stl::type_shape<T>);
        const Run::Passing on_its_way(run);
        typename T::duration since{};
        become(run, old.kind() == ShapeKind::structure && old.parts() == 1 ? old.part(0) : old, since);
        now = T(since);
    } else if constexpr (kind == ShapeKind::structure) {
        become_structure(run, old, now);
    } else if constexpr (kind == ShapeKind::array) {
        become_array(run, old, now);
    } else if constexpr (kind == ShapeKind::pair || kind == ShapeKind::tuple) {
        become_tuple(run, old, now);
    } else if constexpr (kind == ShapeKind::optional) {
        become_optional(run, old, now);
    } else if constexpr (kind == ShapeKind::variant) {
        become_variant(run, old, now);
    } else if constexpr (kind == ShapeKind::opaque || kind == ShapeKind::other_container) {
        if (!has_function) run.throw_unlike(old, stl::type_shape<T>, "what it consists of is not known");
    } else if constexpr (is_map(kind)) {
        become_map<T, kind>(run, old, now);
    } else if constexpr (is_set(kind)) {
        become_set<T, kind>(run, old, now);
    } else if constexpr (kind == ShapeKind::string) {
        become_string(run, old, now);
    } else {
        become_sequence<T, kind>(run, old, now);
    }
    if (has_function) run.finish(old, stl::type_shape<T>, std::addressof(now), mark);
}

}  // namespace taiyen::migrate
