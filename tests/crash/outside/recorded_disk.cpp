#include "recorded_disk.hpp"

#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "campaign.hpp"

namespace outside {

class RecordedDisk::Server {
public:
    Server(int image, std::filesystem::path folder) : image_(image), folder_(std::move(folder)) {
        std::filesystem::create_directories(folder_);
        if (access("/dev/fuse", R_OK | W_OK) != 0) throw Unavailable(std::string("no FUSE (/dev/fuse): ") + strerror(errno));
        fuse_lowlevel_ops operations{};
        operations.init = [](void*, fuse_conn_info* connection) { connection->max_write = 1U << 20U; };
        operations.lookup = lookup;
        operations.getattr = getattr;
        operations.open = open;
        operations.read = read;
        operations.write = write;
        operations.fsync = fsync;
        char program[] = "taiyen_outside_blocks";
        char* words[] = {program};
        fuse_args arguments = FUSE_ARGS_INIT(1, words);
        session_ = fuse_session_new(&arguments, &operations, sizeof operations, this);
        if (session_ == nullptr) throw Unavailable("FUSE gives no session");
        if (fuse_session_mount(session_, folder_.c_str()) != 0) {
            fuse_session_destroy(session_);
            throw Unavailable("FUSE can't be mounted here");
        }
        thread_ = std::thread([this] { fuse_session_loop(session_); });
    }
    ~Server() { stop(); }

    void stop() {
        if (!thread_.joinable()) return;
        fuse_session_exit(session_);
        // Wakes the loop, and ends the connection once the loop device has let the file go.
        fuse_session_unmount(session_);
        thread_.join();
        fuse_session_destroy(session_);
    }

    std::filesystem::path file() const { return folder_ / name; }

    std::vector<DiskOperation> kept;
    std::atomic<std::size_t> position = 0;

private:
    static constexpr const char* name = "disk";
    static constexpr fuse_ino_t inode = 2;
    static constexpr double for_ever = 1e6;

    static Server& of(fuse_req_t request) { return *static_cast<Server*>(fuse_req_userdata(request)); }

    void keep(DiskOperation operation) {
        kept.push_back(std::move(operation));
        position.store(kept.size());
    }

    struct stat status(fuse_ino_t number) const {
        struct stat status{};
        fstat(image_, &status);
        status.st_ino = number;
        status.st_mode = number == inode ? S_IFREG | 0600 : S_IFDIR | 0700;
        status.st_nlink = 1;
        return status;
    }

    static void lookup(fuse_req_t request, fuse_ino_t parent, const char* asked) {
        if (parent != FUSE_ROOT_ID || strcmp(asked, name) != 0) {
            fuse_reply_err(request, ENOENT);
            return;
        }
        fuse_entry_param entry{};
        entry.ino = inode;
        entry.attr = of(request).status(inode);
        entry.attr_timeout = entry.entry_timeout = for_ever;
        fuse_reply_entry(request, &entry);
    }
    static void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
        const struct stat status = of(request).status(number);
        fuse_reply_attr(request, &status, for_ever);
    }
    static void open(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
        if (number != inode) {
            fuse_reply_err(request, EISDIR);
            return;
        }
        file->keep_cache = 1;
        fuse_reply_open(request, file);
    }
    static void read(fuse_req_t request, fuse_ino_t, size_t bytes, off_t offset, fuse_file_info*) {
        std::vector<char> buffer(bytes);
        const ssize_t got = pread(of(request).image_, buffer.data(), bytes, offset);
        if (got < 0) {
            fuse_reply_err(request, errno);
        } else {
            fuse_reply_buf(request, buffer.data(), static_cast<size_t>(got));
        }
    }
    static void write(fuse_req_t request, fuse_ino_t, const char* bytes, size_t count, off_t offset, fuse_file_info*) {
        Server& server = of(request);
        if (pwrite(server.image_, bytes, count, offset) != static_cast<ssize_t>(count)) {
            fuse_reply_err(request, EIO);
            return;
        }
        const auto* const first = reinterpret_cast<const std::byte*>(bytes);
        server.keep({static_cast<std::uint64_t>(offset), {first, first + count}});
        fuse_reply_write(request, count);
    }
    static void fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
        of(request).keep({});
        fuse_reply_err(request, 0);
    }

    int image_;
    std::filesystem::path folder_;
    fuse_session* session_ = nullptr;
    std::thread thread_;
};

RecordedDisk::RecordedDisk(int image, const std::filesystem::path& folder) : server_(std::make_unique<Server>(image, folder)) {}
RecordedDisk::~RecordedDisk() = default;
std::filesystem::path RecordedDisk::file() const { return server_->file(); }
std::size_t RecordedDisk::position() const { return server_->position.load(); }
void RecordedDisk::stop() { server_->stop(); }
const std::vector<DiskOperation>& RecordedDisk::operations() const { return server_->kept; }

}  // namespace outside
