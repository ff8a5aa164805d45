#pragma once
/// What compress() and expand() are, over any storage.

#include <taiyen/heap/volatile_heap.hpp>
#include <taiyen/transfer/compress.hpp>
#include <taiyen/transfer/convert.hpp>
#include <taiyen/transfer/expand.hpp>

#include "io/storage.hpp"
#include "store/heap_file.hpp"

namespace taiyen::transfer {

Compressed compress_to(store::HeapFile& heap, const ByteSink& sink, const CompressOptions& options);
Compressed compress_to(store::HeapFile& heap, io::Storage& storage, const std::filesystem::path& file, const CompressOptions& options);

/// Sees pages [first, …) of the new heap as they were expanded, before they get their checksums and are written. Called on several threads at once, in any order.
using RewritePages = std::function<void(PageNumber first, std::span<std::byte> pages)>;

/// `name`: the file that errors name. `whole`: nothing may follow the stream. `rewrite`: may be empty.
Expanded expand_to(io::Storage& storage, const ByteSource& source, const std::filesystem::path& name, bool whole, const std::filesystem::path& path,
                   const ExpandOptions& options, const RewritePages& rewrite = {});
/// From a file of that storage.
Expanded expand_to(io::Storage& storage, const std::filesystem::path& file, const std::filesystem::path& path, const ExpandOptions& options);

Expanded convert_to(io::Storage& storage, const std::filesystem::path& path, const std::filesystem::path& target, const ConvertOptions& options);
Expanded convert_to(io::Storage& storage, const VolatileHeap& heap, const std::filesystem::path& target, const ExpandOptions& options);

/// Reads a file, a stream or memory from its beginning. What is read must outlive it.
ByteSource source_of(const io::File& file);
ByteSource source_of(std::istream& stream);
ByteSource source_of(std::span<const std::byte> bytes);

}  // namespace taiyen::transfer
