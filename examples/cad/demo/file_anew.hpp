#pragma once
/// Saving the way programs without a heap do it safely: the whole file anew beside the old one, synced, renamed, the directory synced.

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace cad::demo {

/// Durability: on return. Throws std::system_error.
void write_file_anew(const std::filesystem::path& file, std::string_view content);

/// Bytes this process has sent to storage so far, as the kernel counts (/proc/self/io); 0 where it does not tell.
std::uint64_t bytes_sent_to_storage();

}  // namespace cad::demo
