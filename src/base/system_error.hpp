#pragma once
/// The one place where `errno` becomes a typed `Error`. What programs and the tool see of it is the public header.

#include <cstdint>
#include <filesystem>
#include <string_view>

#include <taiyen/base/error.hpp>
#include <taiyen/base/system_error.hpp>

namespace taiyen {

/// What a failed system call means to a caller of the storage seam. Everything unknown is `io_error`.
errc code_of_errno(int error) noexcept;

/// Throws `error_of_errno` of the same.
[[noreturn]] void throw_errno(int error, const std::filesystem::path& path, std::uint64_t offset, std::string_view attempt);
[[noreturn]] void throw_errno(int error, const std::filesystem::path& path, std::string_view attempt);

/// Throws Error{not_a_regular_file}, with the remedy.
[[noreturn]] void throw_not_regular(const std::filesystem::path& path);

}  // namespace taiyen
