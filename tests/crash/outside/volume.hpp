#pragma once
/// File systems on loop devices over images in memory, and their sudden end.
///
/// All mounts live in a mount namespace of the harness's own: they and their loop devices are gone when it ends, however it ends.
/// Thread rule: one thread.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace outside {

struct FileSystem {
    std::string_view name;
    std::uint64_t image_bytes;        ///< about the least that its mkfs takes
    std::vector<std::string> format;  ///< mkfs and its options; the device follows
};
/// ext4, xfs, btrfs.
const std::vector<FileSystem>& file_systems();
/// Empty if the kernel and the tools of this machine have it; else why not.
std::string missing_for(const FileSystem& kind);

/// Throws: Unavailable.
void enter_private_mounts();

class Descriptor {
public:
    explicit Descriptor(int number = -1) : number_(number) {}
    ~Descriptor();
    Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
    Descriptor& operator=(Descriptor&& other) noexcept;
    int get() const { return number_; }

private:
    int number_;
};

/// A sparse file in memory.
Descriptor memory_image(std::uint64_t bytes);

/// A block device whose bytes are a file; gone when this and the last mount are.
class LoopDevice {
public:
    /// Throws: Unavailable.
    explicit LoopDevice(int image);
    const std::string& path() const { return path_; }

private:
    std::string path_;
    Descriptor device_;
};

/// Makes a file system on a device. Throws what mkfs said.
void format(const FileSystem& kind, const LoopDevice& device, const std::filesystem::path& log);

class Mounted {
public:
    /// Throws: std::system_error (the file system refuses the image), Unavailable (no right to mount).
    Mounted(const FileSystem& kind, const LoopDevice& device, std::filesystem::path folder);
    ~Mounted();
    Mounted(const Mounted&) = delete;
    Mounted& operator=(const Mounted&) = delete;

    /// What only the page cache holds is gone, now; ext4 and xfs. `journal_first`: the journal is written out before, file contents are not.
    void pull_the_plug(bool journal_first);
    void unmount();

private:
    std::filesystem::path folder_;
    bool mounted_ = true;
};

}  // namespace outside
