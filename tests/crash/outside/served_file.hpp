#pragma once
/// A file system of our own (FUSE) with a single file in it, whose bytes are those of another one; who derives from it hears of each call, and may refuse it.
///
/// Thread rule: calls arrive on the thread that serves, one at a time.

#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace outside {

class ServedFile {
public:
    /// `file`: whose bytes are served; `valid`: seconds for which the kernel may believe what it was told.
    ServedFile(int file, std::string name, double valid) : file_(file), name_(std::move(name)), valid_(valid) {}
    ServedFile(const ServedFile&) = delete;
    ServedFile& operator=(const ServedFile&) = delete;

    /// Empty: it is mounted, and `serve` may be called. Else why not.
    std::string mount(const std::filesystem::path& folder) {
        if (access("/dev/fuse", R_OK | W_OK) != 0) return std::string("no FUSE (/dev/fuse): ") + strerror(errno);
        fuse_lowlevel_ops operations{};
        operations.init = [](void*, fuse_conn_info* connection) { connection->max_write = 1U << 20U; };
        operations.lookup = lookup;
        operations.getattr = getattr;
        operations.open = open_file;
        operations.read = read;
        operations.write = write;
        operations.fsync = fsync;
        char program[] = "taiyen_served_file";
        char* words[] = {program};
        fuse_args arguments = FUSE_ARGS_INIT(1, words);
        session_ = fuse_session_new(&arguments, &operations, sizeof operations, this);
        if (session_ == nullptr) return "FUSE gives no session";
        if (fuse_session_mount(session_, folder.c_str()) == 0) return {};
        fuse_session_destroy(std::exchange(session_, nullptr));
        return "FUSE can't be mounted here";
    }
    /// Until `leave`.
    void serve() { fuse_session_loop(session_); }
    /// Ends the serving thread's loop, once nobody has the file open any more. After it, when that thread is gone: `forget`.
    void leave() {
        fuse_session_exit(session_);
        fuse_session_unmount(session_);  // wakes the loop
    }
    void forget() { fuse_session_destroy(std::exchange(session_, nullptr)); }

protected:
    ~ServedFile() = default;

    /// An error number, 0: it may be read.
    virtual int about_to_read(std::uint64_t, std::size_t) { return 0; }
    virtual void written(std::uint64_t, std::span<const std::byte>) {}
    virtual void synced() {}

private:
    static constexpr fuse_ino_t inode = 2;

    static ServedFile& of(fuse_req_t request) { return *static_cast<ServedFile*>(fuse_req_userdata(request)); }
    struct stat status(fuse_ino_t number) const {
        struct stat status{};
        fstat(file_, &status);
        status.st_ino = number;
        status.st_mode = number == inode ? S_IFREG | 0600 : S_IFDIR | 0700;
        status.st_nlink = 1;
        return status;
    }

    static void lookup(fuse_req_t request, fuse_ino_t parent, const char* asked) {
        const ServedFile& served = of(request);
        if (parent != FUSE_ROOT_ID || served.name_ != asked) {
            fuse_reply_err(request, ENOENT);
            return;
        }
        fuse_entry_param entry{};
        entry.ino = inode;
        entry.attr = served.status(inode);
        entry.attr_timeout = entry.entry_timeout = served.valid_;
        fuse_reply_entry(request, &entry);
    }
    static void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
        const struct stat status = of(request).status(number);
        fuse_reply_attr(request, &status, of(request).valid_);
    }
    static void open_file(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
        if (number != inode) {
            fuse_reply_err(request, EISDIR);
            return;
        }
        file->keep_cache = of(request).valid_ > 0 ? 1 : 0;
        fuse_reply_open(request, file);
    }
    static void read(fuse_req_t request, fuse_ino_t, size_t bytes, off_t offset, fuse_file_info*) {
        ServedFile& served = of(request);
        if (const int error = served.about_to_read(static_cast<std::uint64_t>(offset), bytes); error != 0) {
            fuse_reply_err(request, error);
            return;
        }
        std::vector<char> buffer(bytes);
        const ssize_t got = pread(served.file_, buffer.data(), bytes, offset);
        if (got < 0)
            fuse_reply_err(request, errno);
        else
            fuse_reply_buf(request, buffer.data(), static_cast<size_t>(got));
    }
    static void write(fuse_req_t request, fuse_ino_t, const char* bytes, size_t count, off_t offset, fuse_file_info*) {
        ServedFile& served = of(request);
        if (pwrite(served.file_, bytes, count, offset) != static_cast<ssize_t>(count)) {
            fuse_reply_err(request, EIO);
            return;
        }
        served.written(static_cast<std::uint64_t>(offset), {reinterpret_cast<const std::byte*>(bytes), count});
        fuse_reply_write(request, count);
    }
    static void fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
        of(request).synced();
        fuse_reply_err(request, 0);
    }

    int file_;
    std::string name_;
    double valid_;
    fuse_session* session_ = nullptr;
};

}  // namespace outside
