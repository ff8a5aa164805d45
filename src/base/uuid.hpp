#pragma once
/// Random identity of a heap, a file or a ring (RFC 4122 version 4 bits are not kept: all 128 bits are random).

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace taiyen {

struct Uuid {
    std::array<std::uint8_t, 16> bytes{};
    bool operator==(const Uuid&) const = default;
    bool is_nil() const { return *this == Uuid{}; }
    /// Lower-case hexadecimal, 8-4-4-4-12.
    std::string text() const;
};

/// Fresh bytes from getrandom(2). Throws: Error{io_error}.
Uuid random_uuid();
/// A random 64-bit number from getrandom(2), never 0. Throws: Error{io_error}.
std::uint64_t random_u64();

}  // namespace taiyen
