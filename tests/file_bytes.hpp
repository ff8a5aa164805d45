#pragma once
/// file_bytes: what is in a file, read at once. Byte by byte a heap's file takes seconds under a sanitizer.

#include <filesystem>
#include <fstream>
#include <string>

namespace taiyen::test {

/// Empty if there is no such file.
inline std::string file_bytes(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    if (!in) return {};
    std::string bytes(static_cast<std::size_t>(in.tellg()), '\0');
    in.seekg(0);
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    return bytes;
}

}  // namespace taiyen::test
