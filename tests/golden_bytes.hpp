#pragma once
/// Golden files: their bytes, and the numbers in them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace taiyen::test {

inline std::vector<std::byte> read_golden(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    BOOST_REQUIRE_MESSAGE(in, path << " can't be opened");
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
}

/// The number of so many bytes there, the lowest first.
template <class Byte>
std::uint64_t number_at(const std::vector<Byte>& bytes, std::size_t offset, unsigned size) {
    std::uint64_t value = 0;
    for (unsigned i = size; i-- > 0;) {
        value = value << 8U | static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(offset + i)));
    }
    return value;
}

}  // namespace taiyen::test
