#include "demo/file_anew.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

namespace cad::demo {
namespace {

class Descriptor {
public:
    Descriptor(const std::filesystem::path& path, int flags) : path_(path), value_(open(path.c_str(), flags | O_CLOEXEC, 0600)) { check(value_ >= 0); }
    ~Descriptor() { close(value_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    void write_all(std::string_view content) const {
        while (!content.empty()) {
            const ssize_t written = write(value_, content.data(), content.size());
            if (written < 0 && errno == EINTR) {
                continue;
            }
            check(written > 0);
            content.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    void sync() const { check(fsync(value_) == 0); }

private:
    void check(bool holds) const {
        if (!holds) {
            throw std::system_error(errno, std::generic_category(), path_.string());
        }
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

std::uint64_t bytes_sent_to_storage() {
    std::ifstream in("/proc/self/io");
    std::string key;
    std::uint64_t value = 0;
    while (in >> key >> value) {
        if (key == "write_bytes:") {
            return value;
        }
    }
    return 0;
}

}  // namespace cad::demo
