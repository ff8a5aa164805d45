#pragma once
/// What a failed system call left in `errno` as an `Error`, as all of the library has it.

#include <cstdint>
#include <filesystem>
#include <string_view>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/error.hpp>

namespace taiyen {

/// The code that comes nearest (`io_error` if none does), and as its text "<attempt>: <the system's words>; <remedy>".
TAIYEN_EXPORT Error error_of_errno(int error, const std::filesystem::path& path, std::string_view attempt, std::uint64_t offset = Error::no_offset);

}  // namespace taiyen
