#pragma once
/// A frame under one key: sealed, and opened with every byte authenticated. src/replicate/FORMAT.md, "Sealed".
/// Thread rule: values; safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <taiyen/seal/sealed_target.hpp>

#include "replicate/frame_layout.hpp"

namespace taiyen::seal {

class Seal {
public:
    /// Throws: Error{io_error}: libsodium can't be used here.
    explicit Seal(const SealingKey& key);

    bool has_sealed(const replicate::layout::SealedHead& head) const;
    /// The same bytes for the same frame and number, so that a target knows them again. Throws: std::bad_alloc.
    std::vector<std::byte> seal(std::uint64_t number, std::span<const std::byte> frame) const;
    /// The frame; nothing: under this key, and as that number, these bytes were never made. Throws: std::bad_alloc.
    std::optional<std::vector<std::byte>> open(std::uint64_t number, std::span<const std::byte> bytes) const;

private:
    SealingKey sealing_;
    SealingKey nonces_;
    std::uint8_t identifier_[8]{};
};

}  // namespace taiyen::seal
