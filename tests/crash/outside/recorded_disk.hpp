#pragma once
/// A disk that remembers: one file served through FUSE, to be the backing file of a loop device. Every write and every flush that the kernel's block layer sends is kept, in order.
///
/// (R1) One thread serves: a flush that is kept covers every write kept before it that was answered. (R2) A write counts as durable when a flush kept after it was answered; a write with
/// "force unit access" arrives as a write and a flush. (R3) The serving thread never touches a file system that lies on this disk.
/// Thread rule: one thread; `position()` from any.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace outside {

inline constexpr std::size_t sector_bytes = 512;

/// A flush has no bytes.
struct DiskOperation {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
    bool is_flush() const { return bytes.empty(); }
};

class RecordedDisk {
public:
    /// Serves the bytes of `image`, and changes them. Throws: Unavailable.
    RecordedDisk(int image, const std::filesystem::path& folder);
    ~RecordedDisk();
    RecordedDisk(const RecordedDisk&) = delete;
    RecordedDisk& operator=(const RecordedDisk&) = delete;

    std::filesystem::path file() const;
    /// Operations so far.
    std::size_t position() const;
    /// Serves no more; the operations stay.
    void stop();
    const std::vector<DiskOperation>& operations() const;

private:
    class Server;
    std::unique_ptr<Server> server_;
};

}  // namespace outside
