#pragma once
/// What stands between the chunks of a compressed heap: heads and end, sealed when they are written and proven when they are read.
///
/// (I1) Each checksum is seeded with the one before it, from the stream's head to its end: a chunk that is missing, repeated or from another stream is noticed like a damaged one.
/// (I2) No field is used before its checksum, and none beyond its bounds.
/// Thread rule: values.

#include <filesystem>
#include <span>

#include <taiyen/base/error.hpp>
#include <taiyen/transfer/expand.hpp>

#include "base/uuid.hpp"
#include "transfer/transfer_layout.hpp"

namespace taiyen::transfer {

std::uint64_t body_checksum(std::span<const std::byte> body, std::uint64_t chunk) noexcept;
void seal(layout::StreamHead& head) noexcept;
void seal(layout::ChunkHead& head, std::uint64_t before) noexcept;
void seal(layout::StreamEnd& end, std::uint64_t before) noexcept;

/// Throws: Error{not_a_heap | unsupported_version | corrupt}.
void prove(const layout::StreamHead& head, const std::filesystem::path& path);
/// Throws: Error{corrupt} at that offset of the stream. `next_page`: the first one that the chunk may have.
void prove(const layout::ChunkHead& head, std::uint64_t before, std::uint64_t next_page, std::uint64_t page_end, const std::filesystem::path& path,
           std::uint64_t offset);
void prove(const layout::StreamEnd& end, std::uint64_t before, const layout::StreamEnd& counted, const std::filesystem::path& path,
           std::uint64_t offset);

CompressedHeap heap_of(const layout::StreamHead& head);

}  // namespace taiyen::transfer
