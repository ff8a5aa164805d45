#pragma once
/// MemoryGroup: a control group (cgroups(7)) that limits the memory of who enters it, page cache included.

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace bench {

class MemoryGroup {
public:
    /// Makes one below the first hierarchy with the memory controller (v1 or v2); `folder`: one that is there. Throws where it isn't allowed, with what else can be done.
    MemoryGroup(const std::filesystem::path& folder, std::size_t bytes) {
        if (folder.empty()) {
            folder_ = hierarchy() / ("taiyen-bench-" + std::to_string(::getpid()));
            std::error_code error;
            std::filesystem::create_directory(folder_, error);
            if (error) refuse(error.message());
            is_ours_ = true;
        } else {
            folder_ = folder;
        }
        try {
            const bool version1 = std::filesystem::exists(folder_ / "memory.limit_in_bytes");
            put(version1 ? "memory.limit_in_bytes" : "memory.max", std::to_string(bytes));
        } catch (...) {
            remove();
            throw;
        }
    }
    MemoryGroup(const MemoryGroup&) = delete;
    MemoryGroup& operator=(const MemoryGroup&) = delete;
    ~MemoryGroup() { remove(); }

    /// The calling process is in it from now on.
    void enter() const { put("cgroup.procs", std::to_string(::getpid())); }
    const std::filesystem::path& folder() const { return folder_; }

private:
    [[noreturn]] void refuse(const std::string& why) const {
        throw std::runtime_error(folder_.string() + ": " + why +
                                 "; run as root, or in a group that is limited already: systemd-run --user --scope -p MemoryMax=256M … --group none");
    }
    void put(const char* file, const std::string& text) const {
        std::ofstream out(folder_ / file);
        if (!(out << text << std::flush)) refuse(std::string("can't be written: ") + file);
    }
    void remove() noexcept {
        if (is_ours_) ::rmdir(folder_.c_str());  // nobody is in it any more, or it stays
    }
    static std::filesystem::path hierarchy() {
        std::filesystem::path version2;
        std::ifstream mounts("/proc/self/mounts");
        for (std::string line; std::getline(mounts, line);) {
            std::istringstream words(line);
            std::string device;
            std::string point;
            std::string type;
            std::string options;
            words >> device >> point >> type >> options;
            if (type == "cgroup" && ("," + options + ",").find(",memory,") != std::string::npos) return point;
            if (type == "cgroup2") version2 = point;
        }
        if (version2.empty())
            throw std::runtime_error("no control groups are mounted here (cgroups(7)); limit the memory otherwise, and give --group none");
        return version2;
    }

    std::filesystem::path folder_;
    bool is_ours_ = false;
};

}  // namespace bench
