#include "demo/file_anew.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

namespace cad::demo {
namespace {

class Descriptor {
public:
    Descriptor(const std::filesystem::path& path, int flags) : path_(path), value_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {
        check(value_ >= 0);
    }
    ~Descriptor() { close(value_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    void write_all(std::string_view content) const {
        while (!content.empty()) {
            const ssize_t written = write(value_, content.data(), content.size());
            if (written < 0 && errno == EINTR) continue;
            check(written > 0);
            content.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    void sync() const { check(fsync(value_) == 0); }

private:
    void check(bool holds) const {
        if (!holds) throw std::system_error(errno, std::generic_category(), path_.string());
    }
    std::filesystem::path path_;
    int value_;
};

}  // namespace

void write_file_anew(const std::filesystem::path& file, std::string_view content) {
    std::filesystem::path beside = file;
    beside += ".new";
    {
        const Descriptor out(beside, O_WRONLY | O_CREAT | O_TRUNC);
        out.write_all(content);
        out.sync();
    }
    std::filesystem::rename(beside, file);
    Descriptor(file.parent_path(), O_RDONLY | O_DIRECTORY).sync();
}

namespace {

constexpr std::size_t disk_block = 4096;
constexpr std::size_t bare_bytes = std::size_t{1} << 20U;

}  // namespace

BareDisk::BareDisk(const std::filesystem::path& file)
    : path_(file), descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_DSYNC | O_CLOEXEC, 0600)),
      buffer_(std::aligned_alloc(disk_block, bare_bytes)) {
    if (descriptor_ >= 0 && buffer_ != nullptr) std::memset(buffer_, 1, bare_bytes);
    if (descriptor_ < 0 || buffer_ == nullptr || pwrite(descriptor_, buffer_, bare_bytes, 0) != static_cast<ssize_t>(bare_bytes)) {
        const int failure = errno;
        close(descriptor_);
        std::free(buffer_);
        throw std::system_error(failure, std::generic_category(), file.string() + ": direct write");
    }
}

BareDisk::~BareDisk() {
    close(descriptor_);
    std::free(buffer_);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
}

void BareDisk::write(std::size_t bytes) {
    const std::size_t rounded = std::min((bytes + disk_block - 1) / disk_block * disk_block, bare_bytes);
    position_ = position_ + rounded > bare_bytes ? 0 : position_;
    if (pwrite(descriptor_, buffer_, rounded, static_cast<off_t>(position_)) != static_cast<ssize_t>(rounded))
        throw std::system_error(errno, std::generic_category(), path_.string() + ": direct write");
    position_ += rounded;
}

std::uint64_t bytes_sent_to_storage() {
    std::ifstream in("/proc/self/io");
    std::string key;
    std::uint64_t value = 0;
    while (in >> key >> value)
        if (key == "write_bytes:") return value;
    return 0;
}

}  // namespace cad::demo
