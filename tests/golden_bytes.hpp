#pragma once
/// Golden files: their bytes, and the numbers in them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "file_bytes.hpp"

namespace taiyen::test {

inline std::vector<std::byte> read_golden(const std::filesystem::path& path) {
    BOOST_REQUIRE_MESSAGE(std::filesystem::exists(path), path << " isn't there");
    const std::string text = file_bytes(path);
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
}

/// The number of so many bytes there, the lowest first.
template <class Byte>
std::uint64_t number_at(const std::vector<Byte>& bytes, std::size_t offset, unsigned size) {
    std::uint64_t value = 0;
    for (unsigned i = size; i-- > 0;) value = value << 8U | static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(offset + i)));
    return value;
}

}  // namespace taiyen::test
