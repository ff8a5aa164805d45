#pragma once
/// What the ways to compress have in common: pages into a sink, and a sink that is a file, a stream, memory.

#include <iosfwd>

#include "transfer/page_source.hpp"
#include "transfer/transfer.hpp"
#include "transfer/transfer_layout.hpp"

namespace taiyen::transfer {

/// The whole stream. `head`: sealed. Throws: Error{invalid_argument | cancelled | corrupt | io_error}, and what the sink throws.
Compressed compress_pages(PageSource& source, const layout::StreamHead& head, const ByteSink& sink, const CompressOptions& options);

/// Compresses a heap into a sink.
using CompressInto = std::function<Compressed(const ByteSink& sink, const CompressOptions& options)>;

Compressed into_file(io::Storage& storage, const std::filesystem::path& file, const CompressOptions& options, const CompressInto& compress);
Compressed into_stream(std::ostream& stream, const CompressOptions& options, const CompressInto& compress);
std::vector<std::byte> into_memory(const CompressOptions& options, const CompressInto& compress);

}  // namespace taiyen::transfer
