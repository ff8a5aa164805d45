#pragma once
/// Saving without a heap: the whole file anew as careful programs do it (beside the old one, synced, renamed, the directory synced), and the bare disk.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace cad::demo {

/// Durability: on return. Throws std::system_error.
void write_file_anew(const std::filesystem::path& file, std::string_view content);

/// A file that was written through once; then each write is direct, synchronous and in place: the least that any durable save can cost.
class BareDisk {
public:
    /// Throws std::system_error, also where the file system takes no direct writes.
    explicit BareDisk(const std::filesystem::path& file);
    ~BareDisk();
    BareDisk(const BareDisk&) = delete;
    BareDisk& operator=(const BareDisk&) = delete;
    /// Writes `bytes`, rounded up to 4 KiB and at most 1 MiB, behind the last write.
    void write(std::size_t bytes);

private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    void* buffer_ = nullptr;
    std::size_t position_ = 0;
};

/// Bytes this process has sent to storage so far, as the kernel counts (/proc/self/io); 0 where it does not tell.
std::uint64_t bytes_sent_to_storage();

}  // namespace cad::demo
