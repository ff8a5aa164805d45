#pragma once
/// The one seam that every durable byte passes: files, directories, locks, mappings.
///
/// `posix_storage()` is the real one. Tests put others in its place (tests/io/disks): one notes what passes, one makes the k-th call fail, one is a disk in memory.
///
/// (I1) Nothing above this room calls open(2), write(2), fsync(2), rename(2), mmap(2) of a file … itself.
/// (I2) A failed sync is reported once and never retried here: what to do about it is the caller's business.
/// (I3) Short transfers and EINTR never surface: calls loop until done or failed.
/// (I4) Every error is a typed `Error` that names file and offset.
///
/// Durability in this model (what the recorder and the simulated disk implement):
/// - `write` may be lost, wholly or by 512-byte sectors, until a `sync` of that file;
/// - `write_durable` is durable itself when it returns (O_DIRECT|O_DSYNC); it covers no other write;
/// - a changed size, an allocation or a punched hole is as durable as a `write`: until the next `sync` it may be lost alone;
/// - a directory operation (create, publish, rename, remove) is durable after `sync_directory` of its directory, and may be lost or
///   come through alone before that; it carries no content with it.
///
/// Thread rule: a `File` may be used by several threads for reads; everything else needs an external lock.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <taiyen/base/units.hpp>

namespace taiyen::io {

/// The unit in which a disk may tear a write.
inline constexpr ByteCount sector_bytes = 512;

/// Direct transfers (`read_direct`, `write_durable`) need offset, length and memory aligned to this.
inline constexpr ByteCount direct_alignment = 4096;

enum class Access { read_only, read_write };
enum class Protection { none, read, read_write };
enum class Lock { shared, exclusive };
/// What becomes of a file that has the name already.
enum class Existing { replaced, refused };
enum class FileKind { regular, directory, symbolic_link, other };

struct FileInfo {
    FileKind kind = FileKind::regular;
    ByteCount size_bytes = 0;       ///< st_size
    ByteCount allocated_bytes = 0;  ///< st_blocks × 512
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    unsigned mode = 0;  ///< permission bits
};

/// An open regular file. The destructor closes it (and lets go of its lock); nothing is synced by closing.
class File {
public:
    File() = default;
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    virtual ~File() = default;

    virtual const std::filesystem::path& path() const = 0;
    virtual FileInfo info() const = 0;

    /// Reads up to `bytes.size()` bytes through the page cache; fewer only at the end of the file. Returns how many.
    /// Throws: Error{io_error} with the offset.
    [[nodiscard]] virtual ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const = 0;
    /// The same from the device itself, past the page cache, where the file system can (else as `read`).
    /// Requires: direct_alignment of offset, length and memory.
    [[nodiscard]] virtual ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const = 0;

    /// Buffered write of all bytes. Throws: Error{no_space | io_error}. Durability: none before `sync`.
    virtual void write(std::span<const std::byte> bytes, std::uint64_t offset) = 0;
    /// As `write`, past the page cache where the file system can: for much that nobody reads soon. Durability: none before `sync`. Requires: direct_alignment.
    virtual void write_direct(std::span<const std::byte> bytes, std::uint64_t offset) { write(bytes, offset); }
    /// Hint: the device may begin to write what `write` left in the page cache of this range. Never fails, never waits, makes nothing durable: `sync` still does, and
    /// reports what went wrong.
    virtual void start_writing(std::uint64_t, ByteCount) noexcept {}
    /// Waits until the device has taken what `start_writing` began in this range: who writes much keeps the device's queue short with it. Durability: none before `sync`.
    /// Throws: as `sync`, which reports that failure no more.
    virtual void wait_for_writing(std::uint64_t, ByteCount) {}
    /// One direct synchronous write. Throws as `write`; after a throw nothing is known about the range.
    /// Requires: direct_alignment. Durability: these bytes are durable on return (the file must already have its size and blocks
    /// from an earlier `sync`).
    virtual void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) = 0;
    /// Takes what `write_durable` needs of the system, which else its first call does. Throws: Error{too_many_files}.
    virtual void prepare_durable() {}
    /// fdatasync(2). Throws: Error{io_error | no_space}; the caller must then regard all unsynced writes as lost.
    virtual void sync() = 0;

    /// Hint: the range will soon be read through the page cache; fetching begins now. Never fails, never waits.
    virtual void will_read(std::uint64_t, ByteCount) const noexcept {}

    /// Makes sure that [offset, offset + length) has disk blocks; grows the file if the range lies beyond its end.
    /// Existing bytes keep their values, new ones are zero. Throws: Error{no_space}: nothing changed that matters.
    virtual void allocate(std::uint64_t offset, ByteCount length) = 0;
    /// Turns the range into a hole (reads as zeros), keeping the size. Falls back to writing zeros where holes are not supported.
    virtual void punch(std::uint64_t offset, ByteCount length) = 0;
    /// The data (non-hole) runs within [offset, offset+length), as {offset, length}, ascending; where the file system can't tell, one run.
    struct Extent {
        std::uint64_t offset;
        ByteCount length;
        bool operator==(const Extent&) const = default;
    };
    virtual std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const = 0;
    /// ftruncate(2).
    virtual void resize(ByteCount size_bytes) = 0;

    /// Takes the lock if nobody else, in this or another process, holds a conflicting one; never blocks. The lock dies with this object or its
    /// process, and is not inherited by a forked child (the child's copy is closed).
    virtual bool try_lock(Lock lock) = 0;

    /// Maps [offset, offset+length) privately (MAP_PRIVATE|MAP_FIXED) over `address`, which the caller has reserved. Stores never reach the file.
    /// Throws: Error{out_of_address_space | io_error}.
    virtual void map_private(void* address, ByteCount length, std::uint64_t offset, Protection protection) const = 0;
};

/// A file system, real or pretended.
class Storage {
public:
    Storage() = default;
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    virtual ~Storage() = default;

    /// What lies at `path`, itself and not what it links to; nothing there: nullopt. Throws: Error{permission | io_error}.
    virtual std::optional<FileInfo> find(const std::filesystem::path& path) = 0;
    /// Names of what lies in the directory, in no order. Throws: Error{not_found | permission | io_error}.
    virtual std::vector<std::string> list(const std::filesystem::path& directory) = 0;
    /// Opens an existing regular file. Never blocks and follows no symbolic link in the last component.
    /// Throws: Error{not_found | not_a_regular_file | permission | read_only (file system) | too_many_files | io_error}.
    virtual std::unique_ptr<File> open(const std::filesystem::path& path, Access access) = 0;
    /// Makes an empty file with mode 0600. Throws: Error{already_exists | not_found (directory) | permission | no_space | too_many_files}.
    virtual std::unique_ptr<File> create(const std::filesystem::path& path) = 0;
    /// Makes an empty file with mode 0600 in `directory` that has no name yet and vanishes with its handle unless published.
    /// (O_TMPFILE; where that is missing, a hidden name that is removed by the destructor.)
    virtual std::unique_ptr<File> create_unnamed(const std::filesystem::path& directory) = 0;
    /// Gives a file made by `create_unnamed` its name, atomically. Throws: Error{already_exists} and leaves what is there alone.
    virtual void publish(File& file, const std::filesystem::path& path) = 0;
    /// Atomically. Throws: Error{not_found | …}; Error{already_exists}: both are as before.
    virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to, Existing existing = Existing::replaced) = 0;
    /// Removes a file; nothing there is fine. Returns whether there was one.
    virtual bool remove(const std::filesystem::path& path) = 0;
    /// fsync(2) of a directory: its entries become durable.
    virtual void sync_directory(const std::filesystem::path& directory) = 0;
};

/// The one real storage of this process. Thread rule: safe.
Storage& posix_storage();

/// The directory part of `path`, "." if it has none.
std::filesystem::path directory_of(const std::filesystem::path& path);

}  // namespace taiyen::io
