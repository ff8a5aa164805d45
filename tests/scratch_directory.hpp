#pragma once
/// A directory of its own for a test, removed afterwards. It lies below the working directory, so on the disk under test and not in a tmpfs.

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

class ScratchDirectory {
public:
    ScratchDirectory() {
        std::string name = (std::filesystem::current_path() / "taiyen-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw std::runtime_error("no temporary directory can be made in " + std::filesystem::current_path().string());
        path_ = name;
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};
