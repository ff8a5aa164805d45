#pragma once
/// A frame as a target keeps it: as it is, or packed. FORMAT.md, "Packed".
/// Thread rule: one thread.

#include <optional>
#include <span>
#include <vector>

#include <taiyen/base/codec.hpp>

#include "base/codecs.hpp"

namespace taiyen::replicate {

class FramePacker {
public:
    explicit FramePacker(Codec codec) : codec_(codec), packer_(codec, 0) {}
    /// The same bytes for the same frame, so that a target knows them again. Throws: std::bad_alloc.
    std::vector<std::byte> pack(std::vector<std::byte> frame);

private:
    const Codec codec_;
    Packer packer_;
};

bool is_packed(std::span<const std::byte> bytes);
/// The frame; nothing: it is damaged. Requires: is_packed. Throws: std::bad_alloc.
std::optional<std::vector<std::byte>> unpack(std::span<const std::byte> bytes);

}  // namespace taiyen::replicate
