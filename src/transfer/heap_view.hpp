#pragma once
/// HeapView: a heap's bytes, wherever they lie in memory, and the address that they are for.

#include <filesystem>
#include <optional>

#include "heap/engine.hpp"

namespace taiyen::transfer {

struct HeapView {
    const heap::Engine& engine;  ///< over `metadata`
    const std::byte* bytes;
    std::uintptr_t base;
    ByteCount capacity;
    const std::filesystem::path& path;  ///< that errors name
    const std::byte* metadata = bytes;  ///< what `engine` is over, if its metadata lie apart from the bytes

    /// The heap's own range of addresses, scratch memory included.
    ByteCount range_bytes() const;
    /// The live block that has the byte there.
    std::optional<heap::Block> find_block(std::uint64_t offset) const { return engine.find_block(metadata + offset); }
};

}  // namespace taiyen::transfer
