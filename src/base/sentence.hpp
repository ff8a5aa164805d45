#pragma once
/// What an error says without the words of its code, which its text ends with, and without the file and the place that it begins with: for who shows those beside it.

#include <string>

#include <taiyen/base/error.hpp>

namespace taiyen {

/// With file and place.
inline std::string text_of(const Error& error) {
    std::string text = error.what();
    const std::string code = ": " + error.code().message();
    if (text.size() > code.size() && text.ends_with(code)) text.resize(text.size() - code.size());
    return text;
}

inline std::string sentence_of(const Error& error) {
    std::string text = text_of(error);
    const auto drop = [&](const std::string& prefix) {
        if (text.starts_with(prefix)) text.erase(0, prefix.size());
    };
    if (!error.path().empty()) drop(error.path().string() + ": ");
    if (error.offset() != Error::no_offset) drop("at byte " + std::to_string(error.offset()) + ": ");
    return text;
}

}  // namespace taiyen
