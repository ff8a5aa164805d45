#pragma once
/// `TAIYEN_CHECK(condition)`: a bug in the caller or in us stops the program, in release builds too.

#include <taiyen/base/detail/export.hpp>

namespace taiyen::detail {
/// Writes one line with the condition and its place to standard error and aborts.
[[noreturn]] TAIYEN_EXPORT void check_failed(const char* condition, const char* file, int line) noexcept;
}  // namespace taiyen::detail

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): it must name the condition's text and place.
#define TAIYEN_CHECK(condition) \
    (__builtin_expect(static_cast<bool>(condition), 1) ? void(0) : ::taiyen::detail::check_failed(#condition, __FILE__, __LINE__))
