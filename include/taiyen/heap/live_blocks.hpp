#pragma once
/// What is live in a volatile heap (the leaks, where everything should have been freed), or what of it can't be reached any more.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// A block that is allocated, and where that was done.
struct LiveBlock {
    static constexpr std::size_t beginning_max = 16;

    const void* address = nullptr;
    std::size_t bytes = 0;                             ///< as asked for in a guarded heap, else usable
    std::array<std::byte, beginning_max> beginning{};  ///< its first bytes, as many as it has
    std::string place;                                 ///< where it was allocated, innermost call first; empty: not recorded
    std::uint64_t held_blocks = 0;                     ///< of a leak: further leaked blocks that it leads to
    std::size_t held_bytes = 0;                        ///< and their bytes
};

/// The blocks that are allocated: sums, and the first of them.
struct LiveBlocks {
    std::uint64_t count = 0;
    std::size_t bytes = 0;
    std::map<std::size_t, std::uint64_t> by_size;  ///< blocks of so many bytes
    std::vector<LiveBlock> listed;                 ///< the first of them by address, as many as were wanted

    /// A line of sums, and one for each listed block: address, size, first bytes, place.
    TAIYEN_EXPORT std::string text() const;
};

}  // namespace taiyen
