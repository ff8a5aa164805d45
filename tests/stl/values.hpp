#pragma once
/// The same types twice, over taiyen's containers and over the standard library's own, and texts of both that must be equal.
///
/// Every text value is longer than 64 characters: nothing hides in the space that std::string keeps inside itself.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <taiyen/ordered/btree_map.hpp>

#include "containers/families.hpp"

namespace taiyen::stl::test {

using Ours = taiyen::test::InHeap;
using Theirs = taiyen::test::InMemory;

/// A plain struct without a word about allocators.
template <class W>
struct Part {
    typename W::string name;
    typename W::template vector<typename W::string> tags;
    double x, y;
};

/// Everything that the language moves without asking an allocator, and nested containers.
template <class W>
struct Rich {
    Part<W> part;
    std::optional<typename W::string> note;
    std::variant<int, typename W::string, Part<W>> content;
    std::pair<typename W::string, int> mark;
    std::tuple<typename W::string, Part<W>> both;
    typename W::template map<typename W::string, typename W::template vector<typename W::string>> groups;
};

inline std::string long_text(int n) {
    std::string digits = std::to_string(1000 + n);
    return digits + ": a text that is long enough to need a block of its own, whatever a string keeps inside itself";
}

/// Makes values outside; with `core` they are given that heap.
struct Maker {
    heap::HeapCore* core = nullptr;

    template <class S>
    S string(int n) const {
        const std::string text = long_text(n);
        if constexpr (std::is_same_v<S, std::string>)
            return text;
        else if (core != nullptr)
            return S(text.data(), text.size(), persistent_allocator<char>(*core));
        else
            return S(text.data(), text.size());
    }
    template <class C>
    C container() const {
        if constexpr (is_durable_allocator<typename C::allocator_type>) {
            if (core != nullptr) return C(typename C::allocator_type(*core));
        }
        return C();
    }
    template <class W>
    Part<W> part(int n) const {
        using S = typename W::string;
        Part<W> made{string<S>(n), container<typename W::template vector<S>>(), n * 0.5, n * 0.25};
        made.tags.push_back(string<S>(n + 1));
        made.tags.push_back(string<S>(n + 2));
        return made;
    }
    template <class W>
    Rich<W> rich(int n) const {
        using S = typename W::string;
        using Strings = typename W::template vector<S>;
        Rich<W> made{part<W>(n),
                     string<S>(n + 1),
                     part<W>(n + 2),
                     {string<S>(n + 3), n},
                     {string<S>(n + 4), part<W>(n + 5)},
                     container<decltype(Rich<W>::groups)>()};
        Strings strings = container<Strings>();
        strings.push_back(string<S>(n + 6));
        made.groups.emplace(string<S>(n + 7), std::move(strings));
        return made;
    }
    template <class W, class V>
    V value(int n) const {
        if constexpr (std::is_same_v<V, Part<W>>) {
            return part<W>(n);
        } else if constexpr (std::is_same_v<V, Rich<W>>) {
            return rich<W>(n);
        } else if constexpr (std::is_same_v<V, typename W::string>) {
            return string<V>(n);
        } else if constexpr (std::is_same_v<V, typename W::template vector<Part<W>>>) {
            V made = container<V>();
            made.push_back(part<W>(n));
            made.push_back(part<W>(n + 1));
            return made;
        } else {
            return static_cast<V>(n);
        }
    }
};

// Values as text.
template <class T>
std::string text_of(const T& value);

template <class T>
concept range = requires(const T& value) {
    value.begin();
    value.end();
};
template <class T>
concept unordered = requires { typename T::hasher; };

/// The texts of the values between two brackets.
template <class... T>
std::string joined(char open, char close, const T&... values) {
    std::string all(1, open);
    (all.append(text_of(values)), ...);
    all.push_back(close);
    return all;
}

template <class T>
struct Text {
    static std::string of(const T& value) {
        if constexpr (std::is_arithmetic_v<T>) {
            return std::to_string(value) + ";";
        } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
            return std::string(std::string_view(value)).append(1, ';');
        } else if constexpr (range<T>) {
            std::vector<std::string> pieces;
            for (const auto& element : value) pieces.push_back(text_of(element));
            if constexpr (unordered<T>) std::sort(pieces.begin(), pieces.end());
            std::string all(1, '[');
            for (const std::string& piece : pieces) all.append(piece).push_back(',');
            all.push_back(']');
            return all;
        } else {
            return joined('{', '}', value.name, value.tags, value.x, value.y);
        }
    }
};
template <class A, class B>
struct Text<std::pair<A, B>> {
    static std::string of(const std::pair<A, B>& value) { return joined('(', ')', value.first, value.second); }
};
template <class A, class B>
struct Text<taiyen::ordered::ElementReference<A, B>> {
    static std::string of(const taiyen::ordered::ElementReference<A, B>& value) { return joined('(', ')', value.first, value.second); }
};
template <class... A>
struct Text<std::tuple<A...>> {
    static std::string of(const std::tuple<A...>& value) {
        return std::apply([](const auto&... element) { return joined('(', ')', element...); }, value);
    }
};
template <class A>
struct Text<std::optional<A>> {
    static std::string of(const std::optional<A>& value) { return value ? joined('<', '>', *value) : std::string("<>"); }
};
template <class... A>
struct Text<std::variant<A...>> {
    static std::string of(const std::variant<A...>& value) {
        return std::visit([&](const auto& held) { return joined('<', '>', value.index(), held); }, value);
    }
};
template <class W>
struct Text<Rich<W>> {
    static std::string of(const Rich<W>& value) {
        return joined('{', '}', value.part, value.note, value.content, value.mark, value.both, value.groups);
    }
};

template <class T>
std::string text_of(const T& value) {
    return Text<std::remove_cv_t<T>>::of(value);
}

}  // namespace taiyen::stl::test
