#pragma once
/// The fingerprint of a stored type: a text that differs when the bytes of two types may mean something different.
///
/// The compiler's mangled name (GCC and Clang agree), size, alignment, the standard library's binary interface, and the layout of what lies inside (layout.hpp says what is seen and what is
/// not). Stored with each named object and compared when it is asked for.

#include <cstdint>
#include <string>
#include <string_view>
#include <typeinfo>

#include <taiyen/heap/detail/access.hpp>
#include <taiyen/stl/detail/layout.hpp>
#include <taiyen/stl/hash.hpp>

namespace taiyen::stl {

/// Whether the type's name depends on the source file it stands in: such types can't be recognised by another program.
template <class T>
consteval bool is_nameless() {
    const std::string_view name = __PRETTY_FUNCTION__;
    return name.find("{anonymous}") != std::string_view::npos || name.find("(anonymous namespace)") != std::string_view::npos ||
           name.find("(lambda") != std::string_view::npos || name.find("<lambda") != std::string_view::npos ||
           name.find("(unnamed") != std::string_view::npos || name.find("<unnamed") != std::string_view::npos;
}

/// What the standard library adds to the layout of its types.
constexpr std::string_view library_tags() {
#if defined(_GLIBCXX_DEBUG)
    return "debug";
#elif defined(_GLIBCXX_RELEASE) && defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
    return "cxx11";
#elif defined(_GLIBCXX_RELEASE)
    return "cxx03";
#elif defined(_LIBCPP_ABI_VERSION)
    return "libc++";
#else
    return "other";
#endif
}

/// The compiler's name of a type without the tags that instrumented code gives the allocator (TAIYEN_STORES_TAG) and checked iterators give a set of ids
/// (TAIYEN_CHECKED_ITERATORS): the bytes are the same.
inline std::string untagged(std::string name) {
    for (const std::string_view tag : {"B13taiyen_stores", "B14taiyen_checked"})
        for (std::size_t at = name.find(tag); at != std::string::npos; at = name.find(tag, at)) name.erase(at, tag.size());
    return name;
}

template <class T>
std::string fingerprint() {
    static_assert(
        !is_nameless<T>(),
        "taiyen: types of anonymous namespaces, lambdas and unnamed types can't be named objects: another program could not recognise them");
    constexpr std::size_t longest_name = 3500;  // the directory of names takes 4 KiB
    std::string text = untagged(typeid(T).name());
    if (text.size() > longest_name) text = text.substr(0, longest_name) + "#" + std::to_string(hash_bytes(text.data(), text.size()));
    text.append(" ")
        .append(std::to_string(sizeof(T)))
        .append(" bytes aligned to ")
        .append(std::to_string(alignof(T)))
        .append(", ")
        .append(library_tags());
    if constexpr (!is_leaf<T>) {
        constexpr std::uint64_t layout = layout_of<T>();
        text += heap::inside_mark;
        for (unsigned shift = 64; shift != 0;) text += "0123456789abcdef"[layout >> (shift -= 4) & 15U];
    }
    return text;
}

}  // namespace taiyen::stl
