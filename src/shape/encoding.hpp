#pragma once
/// The stored form of shapes: FORMAT.md.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <taiyen/shape/shape.hpp>

namespace taiyen::shape {

struct EncodedHead {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t zero;
    std::uint32_t body_bytes;  ///< behind the head
    std::uint32_t nodes;
    std::uint64_t checksum;  ///< of the body, seeded with the words before
};
static_assert(sizeof(EncodedHead) == 24 && offsetof(EncodedHead, checksum) == 16);

inline constexpr std::uint32_t magic = 0x48535954;  ///< "TYSH"
inline constexpr std::uint16_t version = 1;
inline constexpr std::size_t name_bytes_max = 255;

std::string encode(const Shape& shape);
/// Whether one of the changes from the one to the other is certain.
bool contradict(const Shape& before, const Shape& after);
/// Whether a type's shape is to take the place of what is stored: nothing, what can't be read, a shape that says no more, or one by which something else lies in the same place. So the names are those of the program that stored last, and programs that know more and less of a
/// type don't overwrite each other's. What a newer library wrote stays.
bool is_wanted(std::string_view encoded, const std::optional<std::string>& stored);
/// Gives the head the length and the checksum of what lies behind it. Requires: there is room for a head.
void seal(std::span<std::byte> bytes);

}  // namespace taiyen::shape
