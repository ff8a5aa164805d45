#pragma once
/// Volatile heaps travel, too: into a stream or a heap file, and out of one into a VolatileHeap.
///
/// What travels is what is live when the call begins: named objects, and every other block, also those that only variables of the program lead to (they are live in the new heap, and `Expanded::move` says where).
/// Blocks stay where they are unless asked otherwise, so that the pointers in them stay right; a heap in a file lies where the volatile one lay, and is opened when that is closed.
/// A volatile heap is compressed by compress(), as every other: the overloads stand here. A stream or a file becomes one by expand_volatile() and convert_to_volatile(), a file becomes of one by convert().
/// Guarded heaps don't travel (Error{invalid_argument}): there is more in front of their blocks than other heaps know of; nor is a heap that came from elsewhere guarded, whatever its options say.
/// Thread rule: no other thread is in the volatile heap meanwhile.

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include <taiyen/heap/volatile_heap.hpp>
#include <taiyen/transfer/compress.hpp>
#include <taiyen/transfer/convert.hpp>
#include <taiyen/transfer/expand.hpp>

namespace taiyen {

/// Throws: Error{closed | invalid_argument (it is guarded) | corrupt (a block lies where none can) | cancelled}, HeapFull{address_space}, and what the sink throws.
/// Memory: 1.6 % of the heap besides what compressing takes.
TAIYEN_EXPORT Compressed compress(const VolatileHeap& heap, const ByteSink& sink, const CompressOptions& options = {});
/// Throws as before; Error{io_error} if the stream goes bad.
TAIYEN_EXPORT Compressed compress(const VolatileHeap& heap, std::ostream& stream, const CompressOptions& options = {});
/// Durability and errors: as of other heaps.
TAIYEN_EXPORT Compressed compress(const VolatileHeap& heap, const std::filesystem::path& file, const CompressOptions& options = {});
TAIYEN_EXPORT std::vector<std::byte> compress(const VolatileHeap& heap, const CompressOptions& options = {});

/// Makes the heap `target` out of what the volatile heap holds: an archive unless `kind` says otherwise. A snapshot or transactional heap is opened once, so it needs another address (`address`) than that of the volatile heap.
/// Durability, disk and errors: as expand(), and as compress() of a volatile heap; Error{type_mismatch} also if shapes alone tell its pointers, and it has blocks, held by the program alone, that may hold some.
/// Nothing in the volatile heap changes.
TAIYEN_EXPORT Expanded convert(const VolatileHeap& heap, const std::filesystem::path& target, const ExpandOptions& options = {});

/// What volatile heap is made of a stream or of another heap, and what is refused.
struct VolatileExpandOptions {
    /// As that of a new heap. `capacity` 0: as it was; another one as ExpandOptions::capacity has it. Not guarded, nor told to memory tools.
    VolatileOptions heap{.capacity = 0};
    /// Where it is to lie: a multiple of 2 GiB, or `anywhere`; nothing: where it lay.
    std::optional<std::uintptr_t> address;
    Defragment defragment = Defragment::no;  ///< needs types that are declared or told by shapes, and nothing guessed
    PointerOptions pointers;                 ///< as those of expand()
    std::uint64_t expanded_bytes_max = std::uint64_t{64} << 30U;
    unsigned threads = 0;  ///< that expand; 0: one for each processor, at most 8
    Progress progress;
    std::stop_token cancel;
};

/// The heap, and what expand() says of one.
struct ExpandedVolatile : Expanded {
    ExpandedVolatile(Expanded said, VolatileHeap made) : Expanded(std::move(said)), heap(std::move(made)) {}
    VolatileHeap heap;
};

/// Makes a volatile heap out of a stream, whatever heap was compressed. Memory: that of the heap, and once more what is live in it for a moment if something moves.
/// Throws: as expand() where no file is concerned; Error{address_in_use}: something lies where it is to lie; HeapFull{address_space}.
TAIYEN_EXPORT ExpandedVolatile expand_volatile(const ByteSource& source, const VolatileExpandOptions& options = {});
TAIYEN_EXPORT ExpandedVolatile expand_volatile(std::istream& stream, const VolatileExpandOptions& options = {});
/// A buffer or a file must end with the stream, else Error{corrupt}.
TAIYEN_EXPORT ExpandedVolatile expand_volatile(std::span<const std::byte> stream, const VolatileExpandOptions& options = {});
TAIYEN_EXPORT ExpandedVolatile expand_volatile_file(const std::filesystem::path& file, const VolatileExpandOptions& options = {});

/// The same out of a heap's file.
struct VolatileConvertOptions : VolatileExpandOptions {
    bool drop_history = false;  ///< the new heap has no past: accept that, instead of Error{history_conflict}
    PersistentOptions files;    ///< where companions of the heap are that don't lie beside it
};
/// Makes a volatile heap out of the newest save of the heap `path`, as convert() reads it; its files stay as they are. Throws: as convert() and expand_volatile().
TAIYEN_EXPORT ExpandedVolatile convert_to_volatile(const std::filesystem::path& path, const VolatileConvertOptions& options = {});
/// Out of another volatile heap, which goes on: so the new one lies elsewhere, `anywhere` if `address` says nothing. Throws: as convert(VolatileHeap).
TAIYEN_EXPORT ExpandedVolatile convert_to_volatile(const VolatileHeap& heap, const VolatileExpandOptions& options = {});

}  // namespace taiyen
