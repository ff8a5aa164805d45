#pragma once
/// joined: a text out of pieces.

#include <initializer_list>
#include <string>
#include <string_view>

namespace taiyen {

/// In place of `+`, of which GCC 12 warns where nothing is wrong (its bug 105651).
inline std::string joined(std::initializer_list<std::string_view> pieces) {
    std::string text;
    for (const std::string_view piece : pieces) text.append(piece);
    return text;
}

}  // namespace taiyen
