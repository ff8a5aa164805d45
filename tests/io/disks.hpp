#pragma once
/// The disks that the storage tests run on, each with an empty directory of its own.

#include <atomic>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "io/disks/simulated_node.hpp"
#include "io/posix_storage.hpp"

namespace taiyen::io::test {

namespace fs = std::filesystem;

/// An empty directory below the current one (the build folder), removed afterwards.
class ScratchDirectory {
public:
    ScratchDirectory() {
        static std::atomic<int> number = 0;
        path_ = fs::current_path() / ("io-scratch-" + std::to_string(::getpid()) + "-" + std::to_string(++number));
        fs::create_directories(path_);
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    ~ScratchDirectory() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

class PosixDisk {
public:
    PosixDisk() : PosixDisk(PosixFeatures{}) {}
    explicit PosixDisk(PosixFeatures features) : storage_(features) {}
    Storage& storage() { return storage_; }
    fs::path directory() const { return scratch_.path(); }
    fs::path path(const char* name) const { return scratch_.path() / name; }
    void make_special(const char* name, FileKind kind) {
        if (kind == FileKind::symbolic_link)
            fs::create_symlink("somewhere", path(name));
        else if (kind == FileKind::directory)
            fs::create_directory(path(name));
        else
            BOOST_REQUIRE(::mkfifo(path(name).c_str(), 0600) == 0);
    }

private:
    ScratchDirectory scratch_;
    PosixStorage storage_;
};

/// The same file system asked for nothing special, as on one that offers less.
class PlainPosixDisk : public PosixDisk {
public:
    PlainPosixDisk() : PosixDisk({.direct = false, .unnamed = false, .allocate = false, .punch = false, .seek_data = false}) {}
};

class SimulatedDisk {
public:
    SimulatedDisk() : storage_({.power_cuts = true}) { storage_.add_directory(directory()); }
    SimulatedStorage& storage() { return storage_; }
    fs::path directory() const { return "/disk"; }
    fs::path path(const char* name) const { return directory() / name; }
    void make_special(const char* name, FileKind kind) {
        if (kind == FileKind::directory)
            storage_.add_directory(path(name));
        else
            storage_.add_special(path(name), kind);
    }

private:
    SimulatedStorage storage_;
};

using Disks = std::tuple<PosixDisk, PlainPosixDisk, SimulatedDisk>;

inline auto has_code(errc code) {
    return [code](const Error& error) {
        if (error.code() != code) BOOST_TEST_MESSAGE("unexpected: " << error.what());
        return error.code() == code;
    };
}

inline AlignedBuffer filled(ByteCount size, int value) {
    AlignedBuffer buffer(size);
    std::fill(buffer.span().begin(), buffer.span().end(), static_cast<std::byte>(value));
    return buffer;
}

inline std::vector<std::byte> content(const File& file) {
    std::vector<std::byte> bytes(file.info().size_bytes);
    BOOST_REQUIRE(file.read(bytes, 0) == bytes.size());
    return bytes;
}

inline std::vector<std::byte> repeated(ByteCount count, int value) { return std::vector<std::byte>(count, static_cast<std::byte>(value)); }

}  // namespace taiyen::io::test
