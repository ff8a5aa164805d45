#pragma once
/// is_blank: whether a file has lost, or never had, what it should hold.
/// Thread rule: safe.

#include "io/storage.hpp"

namespace taiyen::io {

/// Whether nothing but zeros lies between `offset` and the file's end, past the page cache. Requires: direct_alignment. Throws: as File::read_direct.
/// Complexity: reads up to the first piece of 1 MiB that isn't zero.
bool is_blank(const File& file, std::uint64_t offset);

}  // namespace taiyen::io
