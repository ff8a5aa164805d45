#pragma once
/// print: values as a program prints them itself, in the JSON of write_json, without what shapes tell.

#include <array>
#include <charconv>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <taiyen/taiyen.hpp>

namespace view_test {

template <class T>
void print(std::ostream& to, const T& value);

template <class A, class B>
void print_pair(std::ostream& to, const std::pair<A, B>& pair) {
    to << '[';
    print(to, pair.first);
    to << ", ";
    print(to, pair.second);
    to << ']';
}
template <class T>
std::string printed(const T& value) {
    std::ostringstream to;
    print(to, value);
    return to.str();
}
inline std::string quoted(const std::string& text) { return text.starts_with('"') ? text : '"' + text + '"'; }
template <class C>
void print_elements(std::ostream& to, const C& container) {
    const char* separator = "";
    to << '[';
    for (const auto& element : container) {
        to << separator;
        print(to, element);
        separator = ", ";
    }
    to << ']';
}
template <class C>
void print_map(std::ostream& to, const C& map) {
    const char* separator = "";
    to << '{';
    for (const auto& [key, value] : map) {
        to << separator << quoted(printed(key)) << ": ";
        print(to, value);
        separator = ", ";
    }
    to << '}';
}
template <class... T>
void print_fields(std::ostream& to, std::initializer_list<const char*> names, const T&... fields) {
    const char* separator = "";
    auto name = names.begin();
    to << '{';
    ((to << separator << '"' << *name++ << "\": ", print(to, fields), separator = ", "), ...);
    to << '}';
}

template <class T>
struct Printer {
    static void print(std::ostream& to, const T& value) { print_elements(to, value); }
};
template <class K, class V>
struct Printer<taiyen::map<K, V>> {
    static void print(std::ostream& to, const taiyen::map<K, V>& value) { print_map(to, value); }
};
template <class V>
struct Printer<taiyen::map<std::pair<const int, int>, V>> {
    static void print(std::ostream& to, const taiyen::map<std::pair<const int, int>, V>& value) { print_elements(to, value); }
};
template <class K, class V>
struct Printer<taiyen::unordered_map<K, V>> {
    static void print(std::ostream& to, const taiyen::unordered_map<K, V>& value) { print_map(to, value); }
};
template <class K, class V>
struct Printer<taiyen::flat_hash_map<K, V>> {
    static void print(std::ostream& to, const taiyen::flat_hash_map<K, V>& value) { print_map(to, value); }
};
template <class K, class V>
struct Printer<taiyen::btree_map<K, V>> {
    static void print(std::ostream& to, const taiyen::btree_map<K, V>& value) { print_map(to, value); }
};
template <class K, class V>
struct Printer<taiyen::btree_multimap<K, V>> {
    static void print(std::ostream& to, const taiyen::btree_multimap<K, V>& value) {
        const char* separator = "";
        to << '[';
        for (const auto& [key, mapped] : value) {
            to << separator << '[';
            view_test::print(to, key);
            to << ", ";
            view_test::print(to, mapped);
            to << ']';
            separator = ", ";
        }
        to << ']';
    }
};
template <class V>
struct Printer<taiyen::map<bool, V>> {
    static void print(std::ostream& to, const taiyen::map<bool, V>& value) {
        taiyen::map<int, V> numbered;
        for (const auto& [key, mapped] : value) numbered[key ? 1 : 0] = mapped;
        print_map(to, numbered);
    }
};
template <class K, class V>
struct Printer<taiyen::ordered_multimap<K, V>> {
    static void print(std::ostream& to, const taiyen::ordered_multimap<K, V>& value) {
        taiyen::multimap<K, V> same;
        for (const auto& [key, mapped] : value) same.emplace(key, mapped);
        print_elements(to, same);
    }
};
template <class K, class V>
struct Printer<taiyen::ordered_map<K, V>> {
    static void print(std::ostream& to, const taiyen::ordered_map<K, V>& value) { print_map(to, value); }
};
/// Characters are a text, up to the first zero.
template <std::size_t N>
struct Printer<std::array<char, N>> {
    static void print(std::ostream& to, const std::array<char, N>& value) {
        to << '"' << std::string_view(value.data(), value.size()).substr(0, std::string_view(value.data(), value.size()).find('\0')) << '"';
    }
};
template <class A, class B>
struct Printer<std::pair<A, B>> {
    static void print(std::ostream& to, const std::pair<A, B>& value) { print_pair(to, value); }
};
template <class A, class B>
struct Printer<std::tuple<A, B>> {
    static void print(std::ostream& to, const std::tuple<A, B>& value) { print_pair(to, std::pair(std::get<0>(value), std::get<1>(value))); }
};
template <class T>
struct Printer<std::optional<T>> {
    static void print(std::ostream& to, const std::optional<T>& value) {
        if (value)
            view_test::print(to, *value);
        else
            to << "null";
    }
};
template <class... T>
struct Printer<std::variant<T...>> {
    static void print(std::ostream& to, const std::variant<T...>& value) {
        std::visit([&](const auto& held) { view_test::print(to, held); }, value);
    }
};
template <>
struct Printer<std::monostate> {
    static void print(std::ostream& to, std::monostate) { to << "{}"; }
};
template <>
struct Printer<taiyen::string> {
    static void print(std::ostream& to, const taiyen::string& value) { to << '"' << value << '"'; }
};
template <>
struct Printer<taiyen::u16string> {
    static void print(std::ostream& to, const taiyen::u16string& value) {
        to << '"';
        for (const char16_t c : value) to << (c == u'ä' ? std::string("ä") : std::string(1, static_cast<char>(c)));
        to << '"';
    }
};

template <class T>
void print(std::ostream& to, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        to << (value ? "true" : "false");
    } else if constexpr (std::is_same_v<T, char>) {
        to << '"' << (value == 0 ? std::string("\\u0000") : std::string(1, value)) << '"';
    } else if constexpr (std::is_enum_v<T>) {
        print(to, static_cast<std::conditional_t<sizeof(T) == 1, int, std::underlying_type_t<T>>>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
        char text[64];
        to << std::string_view(text, static_cast<std::size_t>(std::to_chars(text, text + sizeof text, value).ptr - text));
    } else {
        Printer<T>::print(to, value);
    }
}

}  // namespace view_test
