#pragma once
/// compress: a heap of any kind as one portable stream that holds only what is live, to be kept, sent, and expanded elsewhere.
///
/// What travels is what the newest save holds (of a transactional heap: everything committed before the call): named objects, blocks, their addresses. A history of steps does not. The heap stays as it is.
/// Every page is compared with its checksum on the way, so that damage is never passed on: what the second copy has whole comes from there, else Error{corrupt}.
/// Memory: at most 64 MiB, whatever the heap. The format: src/transfer/FORMAT.md. What expands it: taiyen/transfer/expand.hpp.
/// Thread rule: as the heap's snapshot().

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <span>
#include <stop_token>
#include <vector>

#include <taiyen/base/codec.hpp>
#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/progress.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

class ArchiveHeap;

/// Takes the stream's bytes, one piece after the other; throws if it can't. It must not use the heap.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// How a heap is compressed, and whom compress() tells how far it is.
struct CompressOptions {
    Codec codec = Codec::zstd;
    /// 0: the codec's own choice. zstd: 1 to 19. lz4: 1 is the fast one, 2 to 12 spend more time.
    int level = 0;
    unsigned threads = 0;    ///< that compress; 0: one for each processor, at most 8 (zstd above level 12: one, for the memory that it takes)
    Progress progress;       ///< bytes of the heap; on any thread
    std::stop_token cancel;  ///< asked to stop, the call ends with Error{cancelled}
};

/// What was written.
struct Compressed {
    std::uint64_t content_bytes = 0;  ///< live ones, what says where they are, and short gaps between them, which travel as zeros
    std::uint64_t stream_bytes = 0;
    std::uint64_t chunks = 0;
    Serial serial;  ///< of a transactional heap: the newest transaction in it
};

/// A heap that is open. A transactional heap brings its files up to date first, as its snapshot() does, and does that no more until this returns: transactions go on meanwhile, and wait only if
/// the log becomes full. Throws: Error{closed | poisoned | scope_open | invalid_argument | corrupt | io_error | no_space | cancelled}, and what the sink throws.
TAIYEN_EXPORT Compressed compress(ArchiveHeap& heap, const ByteSink& sink, const CompressOptions& options = {});
/// Throws as before; Error{io_error} if the stream goes bad.
TAIYEN_EXPORT Compressed compress(ArchiveHeap& heap, std::ostream& stream, const CompressOptions& options = {});
/// A file comes into being complete, or not at all; a compressed heap of that name is replaced in one step.
/// Durability: the file is durable on return; a crash before leaves what was there. Throws as before; Error{already_exists}: something else has that name.
TAIYEN_EXPORT Compressed compress(ArchiveHeap& heap, const std::filesystem::path& file, const CompressOptions& options = {});
/// Into memory.
TAIYEN_EXPORT std::vector<std::byte> compress(ArchiveHeap& heap, const CompressOptions& options = {});

/// The same for a heap that is not open: it is opened for reading meanwhile, also after a crash, and nothing in its files changes.
/// Throws, besides: as opening a heap for reading.
TAIYEN_EXPORT Compressed compress_file(const std::filesystem::path& heap, const std::filesystem::path& file, const CompressOptions& options = {},
                                       const PersistentOptions& companions = {});
TAIYEN_EXPORT Compressed compress_file(const std::filesystem::path& heap, const ByteSink& sink, const CompressOptions& options = {},
                                       const PersistentOptions& companions = {});

}  // namespace taiyen
