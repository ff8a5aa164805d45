#pragma once
/// expand: a heap's file out of what compress() made.
///
/// Unless asked otherwise the new heap lies at the same address as the one that was compressed, with every object where it was; it has an identity of its own, so that both may be used, though not by one
/// process at once unless the heap is position-independent. On the way it can get another kind, capacity and address, and its blocks can be laid close together: in any combination.
/// Nothing of a stream is believed before its checksum, and the heap gets its name when it is complete, has been checked, and is durable. Memory: at most 64 MiB; where blocks move or types are declared,
/// what doc/moving.md says besides. Thread rule: safe.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/progress.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/transfer/rebase.hpp>

namespace taiyen {

/// Fills the front of `bytes` and returns how many it gave; fewer than asked for is fine, 0 says that there are no more.
using ByteSource = std::function<std::size_t(std::span<std::byte> bytes)>;

/// What heap expand() makes, and what it refuses to make.
struct ExpandOptions {
    std::optional<HeapKind> kind;  ///< nothing: as it was
    /// 0: as it was. Another one must cut the heap's pages where the old one did: each at or above the next power of two behind what is in use does, if the old one was such a capacity, too. Where blocks
    /// move (`defragment`), any one that they fit into.
    std::size_t capacity = 0;
    /// Where it is to lie, as rebase() has it, or `anywhere`; nothing: where it lay.
    std::optional<std::uintptr_t> address;
    Defragment defragment = Defragment::no;  ///< needs types that are declared or told by shapes, and nothing guessed
    /// How pointers are found that have to be rewritten for one of these. By declared types or shapes, so by default, the address where the heap lay must be free in this process for a moment (with `conservative` and without declared types all is guessed if it isn't).
    PointerOptions pointers;
    /// A heap whose pages in use reach further is refused (invalid_argument) before anything is made, whatever the stream promises.
    std::uint64_t expanded_bytes_max = std::uint64_t{64} << 30U;
    std::filesystem::path data_file;                    ///< where the second copy goes; empty: `x.tyn.data`, of snapshot heaps only
    std::filesystem::path log_file;                     ///< empty: `x.tyn.log`
    std::size_t log_capacity = std::size_t{64} << 20U;  ///< of transactional heaps
    unsigned threads = 0;                               ///< that expand; 0: one for each processor, at most 8
    Progress progress;                                  ///< bytes of the heap; on any thread
    std::stop_token cancel;                             ///< asked to stop, the call ends with Error{cancelled}, and nothing is left
};

/// What a stream says of the heap that was compressed.
struct CompressedHeap {
    HeapKind kind = HeapKind::archive;
    std::string uuid;  ///< of the heap that was compressed
    std::uintptr_t address = 0;
    bool position_independent = false;
    std::size_t capacity_bytes = 0;
    std::size_t extent_bytes = 0;
    std::uint64_t names = 0;
    Serial serial;
};

/// The same, and how the new heap's places differ from the old ones'.
struct Expanded : CompressedHeap {
    /// old_address, new_address, capacity_bytes (the old one) and, if anything moved, all that rebase() would report.
    RebaseReport move;
};

/// Makes the heap `path` out of a stream, and reads no byte behind it.
/// Durability: the heap is durable on return. A crash before leaves nothing, or the whole heap; one that was to be a snapshot or transactional heap may have no data file or log yet, and gets it when it
/// is opened as such. Disk: twice its live pages for a moment if it gets another address or is defragmented.
/// Throws: Error{truncated | corrupt | not_a_heap | unsupported_version | invalid_argument | already_exists | no_space | io_error | cancelled | address_in_use (where pointers change, the heap is looked at where it lay; kinds other than archive are opened once; an
/// archive is not)}, Error{foreign_pointer | type_mismatch} as `pointers` says, and what the source throws: nothing is left then, but a whole heap may stand there if the system fails after it got its name.
TAIYEN_EXPORT Expanded expand(const ByteSource& source, const std::filesystem::path& path, const ExpandOptions& options = {});
TAIYEN_EXPORT Expanded expand(std::istream& stream, const std::filesystem::path& path, const ExpandOptions& options = {});
/// A buffer or a file must end with the stream, else Error{corrupt}.
TAIYEN_EXPORT Expanded expand(std::span<const std::byte> stream, const std::filesystem::path& path, const ExpandOptions& options = {});
TAIYEN_EXPORT Expanded expand_file(const std::filesystem::path& file, const std::filesystem::path& path, const ExpandOptions& options = {});

/// The beginning of a compressed heap's file. Throws: as expand.
TAIYEN_EXPORT CompressedHeap read_compressed(const std::filesystem::path& file);

}  // namespace taiyen
