#include "demo/page_cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace cad::demo {
namespace {

class File {
public:
    explicit File(const std::filesystem::path& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~File() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int descriptor() const { return descriptor_; }
    std::size_t size() const {
        struct stat info{};
        return descriptor_ >= 0 && fstat(descriptor_, &info) == 0 ? static_cast<std::size_t>(info.st_size) : 0;
    }

private:
    int descriptor_;
};

/// Others are told that every page is in memory.
bool is_told(const std::filesystem::path& path) {
    struct stat info{};
    return access(path.c_str(), W_OK) == 0 || (stat(path.c_str(), &info) == 0 && info.st_uid == geteuid());
}

void add_residency(const File& file, Residency& sum) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t size = file.size();
    void* map = size == 0 ? MAP_FAILED : mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
    if (map == MAP_FAILED) return;
    std::vector<unsigned char> present((size + page - 1) / page);
    if (mincore(map, size, present.data()) == 0) {
        sum.pages += present.size();
        sum.resident += static_cast<std::uint64_t>(std::count_if(present.begin(), present.end(), [](unsigned char p) { return (p & 1U) != 0; }));
    }
    munmap(map, size);
}

}  // namespace

Residency residency(const std::vector<std::filesystem::path>& files) {
    Residency sum;
    for (const std::filesystem::path& path : files) {
        add_residency(File(path), sum);
        sum.told = sum.told && is_told(path);
    }
    return sum;
}

Residency drop_from_cache(const std::vector<std::filesystem::path>& files) {
    for (const std::filesystem::path& path : files) {
        const File file(path);
        if (file.descriptor() >= 0) {
            fdatasync(file.descriptor());
            posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
        }
    }
    return residency(files);
}

}  // namespace cad::demo
