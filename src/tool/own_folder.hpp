#pragma once
/// OwnFolder: a folder for files that nobody wants to keep. It is gone when it ends, and also when the process is ended by SIGINT, SIGTERM or SIGHUP.
///
/// Those signals are blocked in this thread, and so in all that it starts, as long as it lives; a thread of its own waits for them. One that the process ignores (nohup, a job in the background) stays ignored.
/// Thread rule: one at a time, made before other threads are.

#include <csignal>
#include <filesystem>
#include <thread>

namespace taiyen::tool {

class OwnFolder {
public:
    /// Makes a folder within `parent`. Throws: Error{not_found | permission | no_space | …}.
    explicit OwnFolder(const std::filesystem::path& parent);
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    ~OwnFolder();

    const std::filesystem::path& path() const { return path_; }

private:
    void watch() const;
    void remove() const noexcept;

    std::filesystem::path path_;
    sigset_t ends_{};    ///< what ends the process
    sigset_t before_{};  ///< what was blocked
    std::thread watcher_;
};

}  // namespace taiyen::tool
