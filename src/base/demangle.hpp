#pragma once
/// What a person calls a type or a function whose name the compiler wrote.

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

namespace taiyen {

/// Nothing: it is no such name, or memory runs out.
inline std::optional<std::string> demangled(const char* name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
    return status == 0 && text ? std::optional<std::string>(text.get()) : std::nullopt;
}

}  // namespace taiyen
