#pragma once
/// What the figures were taken on, and what the kernel counted meanwhile.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness.hpp"

namespace bench {

/// The file system of a path, as /proc/self/mounts has it: "ext4 (rw,relatime) on /dev/vda".
inline std::string file_system_of(const std::filesystem::path& path) {
    const std::string wanted = std::filesystem::canonical(path).string() + "/";
    std::ifstream mounts("/proc/self/mounts");
    std::string best;
    std::string found = "unknown";
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream fields(line);
        std::string device;
        std::string place;
        std::string type;
        std::string options;
        fields >> device >> place >> type >> options;
        const std::string prefix = place == "/" ? "/" : place + "/";
        if (wanted.starts_with(prefix) && prefix.size() >= best.size()) {
            best = prefix;
            found = type + " (" + options + ") on " + device;
        }
    }
    return found;
}

inline std::string value_in(const char* file, std::string_view key) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(key)) {
            const auto at = line.find_first_not_of(" \t:", key.size());
            return at == std::string::npos ? "" : line.substr(at);
        }
    }
    return "unknown";
}

/// Title, machine, kernel, file system, versions.
inline void print_head(const Options& options, const char* title) {
    utsname kernel{};
    ::uname(&kernel);
    std::printf("%s\n\n", title);
    std::printf("taiyen %s, %s\n", TAIYEN_BENCH_VERSION, TAIYEN_BENCH_COMPILER);
    std::printf("%s, %ld processors, %s of memory, Linux %s\n", value_in("/proc/cpuinfo", "model name").c_str(), ::sysconf(_SC_NPROCESSORS_ONLN),
                value_in("/proc/meminfo", "MemTotal").c_str(), kernel.release);
    std::printf("files on %s; %s %s; %d rounds%s\n", file_system_of(options.folder()).c_str(),
                options.processor() < 0 ? "on all processors" : ("on processor " + std::to_string(options.processor())).c_str(), options.real_time(),
                options.rounds(), options.quick() ? ", quick" : "");
    std::printf("figures are medians (smallest \u2013 largest); ratios are medians of the ratios within a round\n\n");
    std::fflush(stdout);
}

/// What this process has done so far, by the kernel's books.
struct Counters {
    std::uint64_t faults_minor = 0;
    std::uint64_t faults_major = 0;
    std::uint64_t device_read_bytes = 0;  ///< really fetched from the device
    std::uint64_t read_bytes = 0;         ///< passed to read calls
    std::uint64_t write_calls = 0;
    std::uint64_t write_bytes = 0;         ///< passed to write calls
    std::uint64_t device_write_bytes = 0;  ///< on their way to the device: direct writes, and pages of the page cache made dirty

    static Counters now() {
        Counters counters;
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        counters.faults_minor = static_cast<std::uint64_t>(usage.ru_minflt);
        counters.faults_major = static_cast<std::uint64_t>(usage.ru_majflt);
        std::ifstream file("/proc/self/io");
        std::string key;
        std::uint64_t value = 0;
        while (file >> key >> value)
            if (key == "rchar:")
                counters.read_bytes = value;
            else if (key == "wchar:")
                counters.write_bytes = value;
            else if (key == "syscw:")
                counters.write_calls = value;
            else if (key == "read_bytes:")
                counters.device_read_bytes = value;
            else if (key == "write_bytes:")
                counters.device_write_bytes = value;
        return counters;
    }
};

/// Throws the file's pages out of the page cache (they must be clean: synced before).
inline void forget_cached(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ::fdatasync(file);
        ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        ::close(file);
    }
}

/// Reads all of a file, so that the page cache has it.
inline void read_into_cache(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<std::byte> piece(std::size_t{1} << 20U);
    while (file >= 0 && ::read(file, piece.data(), piece.size()) > 0) {}
    if (file >= 0) ::close(file);
}

/// A file for bare direct synchronous writes: the yardstick of small saves. Its blocks are written before.
class DirectFile {
public:
    DirectFile(const std::filesystem::path& path, std::size_t bytes)
        : bytes_(bytes), buffer_(static_cast<std::byte*>(std::aligned_alloc(4096, buffer_bytes))) {
        if (buffer_ == nullptr) throw std::bad_alloc();
        std::memset(buffer_, 0x5a, buffer_bytes);
        file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT | O_DSYNC, 0600);
        if (file_ < 0) {
            std::free(buffer_);
            throw std::runtime_error(path.string() + ": no direct synchronous writes here: " + std::strerror(errno));
        }
        for (std::size_t at = 0; at < bytes; at += buffer_bytes) put(at, std::min(buffer_bytes, bytes - at));
        ::fsync(file_);
    }
    DirectFile(const DirectFile&) = delete;
    DirectFile& operator=(const DirectFile&) = delete;
    ~DirectFile() {
        ::close(file_);
        std::free(buffer_);
    }
    /// One write of that many bytes behind the last one; microseconds.
    double write(std::size_t bytes) {
        if (next_ + bytes > bytes_) next_ = 0;
        const double time = microseconds_of([&] { put(next_, bytes); });
        next_ += bytes;
        return time;
    }

private:
    static constexpr std::size_t buffer_bytes = std::size_t{1} << 20U;
    void put(std::size_t at, std::size_t bytes) {
        if (::pwrite(file_, buffer_, bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes))
            throw std::runtime_error(std::string("a direct synchronous write failed: ") + std::strerror(errno));
    }

    int file_ = -1;
    std::size_t bytes_;
    std::byte* buffer_;
    std::size_t next_ = 0;
};

/// Waits until the device has digested what was written before: small synchronous writes take as long as they do on an idle device, twice in a row.
/// Right after hundreds of megabytes they take a hundred times as long. At most half a minute.
inline void settle(const std::filesystem::path& path) {
    ::sync();
    DirectFile file(path, std::size_t{1} << 20U);
    const auto start = std::chrono::steady_clock::now();
    double best = 1e9;
    for (int calm = 0; calm < 3 && microseconds_since(start) < 30e6;) {
        Samples samples;
        for (int i = 0; i < 50; ++i) samples.add(file.write(4096));
        calm = samples.median() < 1.3 * best ? calm + 1 : 0;
        best = std::min(best, samples.median());
        ::usleep(200'000);
    }
}

}  // namespace bench
