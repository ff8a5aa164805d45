#include "io/posix_storage.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <taiyen/base/check.hpp>

#include "base/descriptor.hpp"
#include "base/process.hpp"
#include "base/system_error.hpp"
#include "base/uuid.hpp"

namespace taiyen::io {
namespace {

namespace fs = std::filesystem;

constexpr mode_t owner_only = S_IRUSR | S_IWUSR;

/// Repeats a call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

FileInfo info_of(const struct stat& status) {
    FileInfo info;
    if (S_ISREG(status.st_mode))
        info.kind = FileKind::regular;
    else if (S_ISDIR(status.st_mode))
        info.kind = FileKind::directory;
    else if (S_ISLNK(status.st_mode))
        info.kind = FileKind::symbolic_link;
    else
        info.kind = FileKind::other;
    info.size_bytes = static_cast<ByteCount>(status.st_size);
    info.allocated_bytes = static_cast<ByteCount>(status.st_blocks) * 512;
    info.device = status.st_dev;
    info.inode = status.st_ino;
    info.mode = status.st_mode & 07777U;
    return info;
}

class PosixFile;

/// The files of this process whose copies a forked child must not keep. Its mutex is held across fork(3), so that the child finds the list whole. A child that no handler
/// sees may find it in any state, and leaves it alone: it has a list of its own.
class ForkGuard {
public:
    /// That of this process.
    static ForkGuard& instance();
    void add(PosixFile& file) {
        const std::scoped_lock lock(mutex_);
        files_.push_back(&file);
    }
    /// Also closes the file: a fork in between would leave the child with a copy that nobody closes.
    void remove(PosixFile& file) noexcept;

private:
    explicit ForkGuard(ProcessNumber process) : process_(process) {}
    void abandon_all_in_child() noexcept;

    static inline constinit std::atomic<ForkGuard*> latest{nullptr};
    /// The one whose mutex a fork holds, which protects this pointer, too.
    static inline constinit ForkGuard* held = nullptr;

    const ProcessNumber process_;
    std::mutex mutex_;
    std::vector<PosixFile*> files_;
};

class PosixFile final : public File {
public:
    PosixFile(Descriptor descriptor, fs::path path, Access access, const PosixFeatures& features)
        : descriptor_(std::move(descriptor)), path_(std::move(path)), access_(access), features_(features) {}
    PosixFile(const PosixFile&) = delete;
    PosixFile& operator=(const PosixFile&) = delete;

    ~PosixFile() override {
        if (forked()) {
            // The lock is the parent's, and so is the list.
            return;
        }
        if (locked_) {
            // Said aloud, because a child that is just being forked may still hold its copy of the descriptor when ours is closed.
            ::flock(descriptor_.get(), LOCK_UN);
        }
        if (guarded_) ForkGuard::instance().remove(*this);
        if (!hidden_path_.empty()) ::unlink(hidden_path_.c_str());
    }

    /// Whether this is a child's copy of a file of its parent.
    bool forked() const noexcept { return guarded_ && this_process() != process_; }
    void close_descriptors() noexcept {
        descriptor_.reset();
        direct_read_.descriptor.reset();
        direct_write_.descriptor.reset();
        direct_durable_.descriptor.reset();
    }

    /// The name that stands in for "no name yet" and goes with this object.
    void set_hidden_path(fs::path path) {
        guard_against_fork();
        hidden_path_ = std::move(path);
    }
    const fs::path& hidden_path() const { return hidden_path_; }
    void set_published(fs::path&& path) noexcept {
        hidden_path_.clear();
        path_ = std::move(path);
    }

    int number() const {
        if (forked()) throw Error(errc::forked, path_, "belongs to the parent process; open it again in the child after the parent has closed it");
        return descriptor_.get();
    }
    int writable_number() const {
        if (access_ == Access::read_only) throw Error(errc::read_only, path_, "was opened for reading; open it for writing");
        return number();
    }

    const fs::path& path() const override { return path_; }

    FileInfo info() const override {
        struct stat status{};
        if (::fstat(number(), &status) != 0) throw_errno(errno, path_, "reading its status");
        return info_of(status);
    }

    ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override { return read_all(number(), bytes, offset); }

    ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override {
        check_direct(bytes.data(), bytes.size(), offset);
        const int direct = direct_number(direct_read_, O_RDONLY | O_DIRECT);
        if (direct >= 0) return in_pieces(bytes, [&](std::span<std::byte> piece, ByteCount at) { return read_all(direct, piece, offset + at); });
        ::posix_fadvise(number(), static_cast<off_t>(offset), static_cast<off_t>(bytes.size()), POSIX_FADV_DONTNEED);
        return read_all(number(), bytes, offset);
    }

    void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
        require_within_limit(offset, bytes.size());
        write_all(writable_number(), bytes, offset);
    }

    void write_direct(std::span<const std::byte> bytes, std::uint64_t offset) override {
        check_direct(bytes.data(), bytes.size(), offset);
        require_within_limit(offset, bytes.size());
        const int buffered = writable_number();
        const int direct = direct_number(direct_write_, O_RDWR | O_DIRECT);
        in_pieces(bytes, [&](std::span<const std::byte> piece, ByteCount at) {
            write_all(direct >= 0 ? direct : buffered, piece, offset + at);
            return piece.size();
        });
    }

    /// Large direct transfers by the megabyte: a single one of 64 MiB would stand in the device's queue in front of whoever commits meanwhile, 50 ms long.
    template <class Bytes, class Transfer>
    static ByteCount in_pieces(Bytes bytes, Transfer transfer) {
        ByteCount done = 0;
        while (done < bytes.size()) {
            const auto piece = bytes.subspan(done, std::min<ByteCount>(bytes.size() - done, 1_MiB));
            const ByteCount got = transfer(piece, done);
            done += got;
            if (got < piece.size()) break;
        }
        return done;
    }

    void start_writing(std::uint64_t offset, ByteCount length) noexcept override {
        if (!forked()) ::sync_file_range(descriptor_.get(), static_cast<off_t>(offset), static_cast<off_t>(length), SYNC_FILE_RANGE_WRITE);
    }

    void wait_for_writing(std::uint64_t offset, ByteCount length) override {
        // Reports what write-back failed to do, once for this descriptor (errseq): not to throw would hide it from `sync`.
        const auto wait = [&] {
            return ::sync_file_range(writable_number(), static_cast<off_t>(offset), static_cast<off_t>(length), SYNC_FILE_RANGE_WAIT_BEFORE);
        };
        if (uninterrupted(wait) != 0 && errno != ESPIPE && errno != EINVAL && errno != ENOSYS) throw_errno(errno, path_, offset, "sync_file_range");
    }

    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
        check_direct(bytes.data(), bytes.size(), offset);
        require_within_limit(offset, bytes.size());
        const int buffered = writable_number();
        const int direct = durable_number();
        if (direct >= 0) {
            write_all(direct, bytes, offset);
            return;
        }
        write_all(buffered, bytes, offset);
        sync();
    }

    void prepare_durable() override { (void)durable_number(); }

    void sync() override {
        // After a failure the kernel reports success and drops the pages: asking again would turn loss into a lie (I2). EINTR has written nothing.
        if (uninterrupted([&] { return ::fdatasync(number()); }) != 0) throw_errno(errno, path_, "fdatasync");
    }

    void will_read(std::uint64_t offset, ByteCount length) const noexcept override {
        constexpr ByteCount piece = 128_KiB;  // the system cuts what is asked for at once to what it reads ahead
        for (ByteCount at = 0; at < length && !forked(); at += piece) {
            ::posix_fadvise(descriptor_.get(), static_cast<off_t>(offset + at), static_cast<off_t>(std::min(piece, length - at)),
                            POSIX_FADV_WILLNEED);
        }
    }

    void allocate(std::uint64_t offset, ByteCount length) override {
        if (length == 0) return;
        require_growth_within_limit(offset + length, "allocating disk blocks");
        const auto first = static_cast<off_t>(offset);
        const auto count = static_cast<off_t>(length);
        if (features_.allocate) {
            if (uninterrupted([&] { return ::fallocate(writable_number(), 0, first, count); }) == 0) return;
            if (errno != EOPNOTSUPP && errno != ENOSYS) throw_errno(errno, path_, offset, "allocating " + std::to_string(length) + " bytes");
        }
        int error = ::posix_fallocate(writable_number(), first, count);
        while (error == EINTR) error = ::posix_fallocate(writable_number(), first, count);
        if (error != 0) throw_errno(error, path_, offset, "allocating " + std::to_string(length) + " bytes");
    }

    void punch(std::uint64_t offset, ByteCount length) override {
        if (length == 0) return;
        if (features_.punch) {
            if (uninterrupted([&] {
                    return ::fallocate(writable_number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                       static_cast<off_t>(length));
                }) == 0) {
                return;
            }
            if (errno != EOPNOTSUPP && errno != ENOSYS) throw_errno(errno, path_, offset, "punching a hole of " + std::to_string(length) + " bytes");
        }
        write_zeros(offset, length);
    }

    std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const override {
        const std::uint64_t size = info().size_bytes;
        const std::uint64_t last = offset + std::min<std::uint64_t>(length, size > offset ? size - offset : 0);
        std::vector<Extent> extents;
        std::uint64_t at = offset;
        while (at < last) {
            std::uint64_t first = at;
            std::uint64_t end = last;
            if (features_.seek_data) {
                const off_t data = ::lseek(number(), static_cast<off_t>(at), SEEK_DATA);
                if (data < 0 && errno == ENXIO) break;  // holes only from here on
                if (data >= 0) {
                    first = static_cast<std::uint64_t>(data);
                    const off_t hole = ::lseek(number(), data, SEEK_HOLE);
                    end = hole < 0 ? last : std::min(last, static_cast<std::uint64_t>(hole));
                } else if (errno != EINVAL && errno != EOPNOTSUPP) {
                    throw_errno(errno, path_, at, "looking for data");
                }
            }
            if (first >= last) break;
            if (end <= first) end = last;  // the file shrank meanwhile; still make progress
            extents.push_back({first, end - first});
            at = end;
        }
        return extents;
    }

    void resize(ByteCount size_bytes) override {
        require_growth_within_limit(size_bytes, "changing its size");
        // On tmpfs(5) a page of a hole takes memory when it is first touched, and a full file system kills who touches it. So growth takes its memory here, where it can be refused.
        struct statfs system{};
        if (::fstatfs(number(), &system) == 0 && system.f_type == TMPFS_MAGIC) {
            if (const ByteCount now = info().size_bytes; now < size_bytes) {
                allocate(now, size_bytes - now);
                return;
            }
        }
        if (uninterrupted([&] { return ::ftruncate(writable_number(), static_cast<off_t>(size_bytes)); }) != 0)
            throw_errno(errno, path_, size_bytes, "changing its size");
    }

    bool try_lock(Lock lock) override {
        guard_against_fork();  // before the lock exists: a fork between the two must find the file listed
        const int kind = lock == Lock::exclusive ? LOCK_EX : LOCK_SH;
        if (uninterrupted([&] { return ::flock(number(), kind | LOCK_NB); }) == 0) {
            locked_ = true;
            return true;
        }
        if (errno != EWOULDBLOCK) throw_errno(errno, path_, "locking it");
        return false;
    }

    void map_private(void* address, ByteCount length, std::uint64_t offset, Protection protection) const override {
        int access = PROT_NONE;
        if (protection == Protection::read)
            access = PROT_READ;
        else if (protection == Protection::read_write)
            access = PROT_READ | PROT_WRITE;
        void* const mapped = ::mmap(address, length, access, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, number(), static_cast<off_t>(offset));
        if (mapped == MAP_FAILED) throw_errno(errno, path_, offset, "mapping " + std::to_string(length) + " bytes");
    }

private:
    /// A second descriptor of the same file; `refused`: the file system does not do that.
    struct DirectDescriptor {
        std::atomic<bool> settled = false;
        Descriptor descriptor;
    };

    /// Beyond the process's limit of file sizes the kernel sends SIGXFSZ, which ends the process, before a call fails; also where the file has its bytes already. To ask for the limit, or
    /// to block the signal, takes half as long as a small write: it is asked for when the file is opened and when it grows. Who lowers the limit meanwhile meets the signal.
    void require_within_limit(std::uint64_t offset, ByteCount length) const {
        const std::uint64_t limit = size_limit_.load(std::memory_order_relaxed);
        if (length > limit || offset > limit - length) throw_errno(EFBIG, path_, offset, "writing " + std::to_string(length) + " bytes");
    }
    /// A file that is larger than the limit may keep its size, and blocks within it.
    void require_growth_within_limit(std::uint64_t size, std::string_view attempt) {
        size_limit_.store(limit_of_sizes(), std::memory_order_relaxed);
        if (size > size_limit_.load(std::memory_order_relaxed) && size > info().size_bytes) throw_errno(EFBIG, path_, size, attempt);
    }
    static std::uint64_t limit_of_sizes() noexcept {
        rlimit limit{};
        return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
    }

    static void check_direct(const void* memory, ByteCount length, std::uint64_t offset) {
        TAIYEN_CHECK(reinterpret_cast<std::uintptr_t>(memory) % direct_alignment == 0);
        TAIYEN_CHECK(length % direct_alignment == 0);
        TAIYEN_CHECK(offset % direct_alignment == 0);
    }

    /// The descriptor with these flags, -1 where they are refused. Reopening by the descriptor's link works for files without a name, too.
    int direct_number(DirectDescriptor& direct, int flags) const {
        if (!direct.settled.load(std::memory_order_acquire)) {
            const std::scoped_lock lock(direct_mutex_);
            if (!direct.settled.load(std::memory_order_relaxed)) {
                if (features_.direct) {
                    char link[32];  // no string: the first durable write of a heap is no place to run out of memory
                    std::snprintf(link, sizeof link, "/proc/self/fd/%d", number());
                    Descriptor opened(uninterrupted([&] { return ::open(link, flags | O_CLOEXEC | O_NONBLOCK); }));
                    if (!opened.is_open() && code_of_errno(errno) == errc::too_many_files)
                        throw_errno(errno, path_, "opening it for direct transfers");
                    direct.descriptor = std::move(opened);
                }
                direct.settled.store(true, std::memory_order_release);
            }
        }
        (void)number();  // a forked child has no descriptors
        return direct.descriptor.get();
    }

    int durable_number() const { return direct_number(direct_durable_, O_RDWR | O_DIRECT | O_DSYNC); }

    ByteCount read_all(int from, std::span<std::byte> bytes, std::uint64_t offset) const {
        ByteCount done = 0;
        while (done < bytes.size()) {
            const ssize_t count =
                uninterrupted([&] { return ::pread(from, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done)); });
            if (count < 0) {
                if (errno == EINVAL && from != descriptor_.get()) {
                    from = descriptor_.get();  // the device wants a coarser alignment than ours, or the rest behind an odd end of file
                    continue;
                }
                throw_errno(errno, path_, offset + done, "reading " + std::to_string(bytes.size() - done) + " bytes");
            }
            if (count == 0) break;
            done += static_cast<ByteCount>(count);
        }
        return done;
    }

    void write_all(int to, std::span<const std::byte> bytes, std::uint64_t offset) {
        bool fell_back = false;
        ByteCount done = 0;
        while (done < bytes.size()) {
            const ssize_t count =
                uninterrupted([&] { return ::pwrite(to, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done)); });
            if (count < 0 && errno == EINVAL && to != descriptor_.get()) {
                to = descriptor_.get();  // as in read_all
                fell_back = true;
                continue;
            }
            if (count <= 0) throw_errno(count < 0 ? errno : EIO, path_, offset + done, "writing " + std::to_string(bytes.size() - done) + " bytes");
            done += static_cast<ByteCount>(count);
        }
        if (fell_back) sync();
    }

    void write_zeros(std::uint64_t offset, ByteCount length) {
        static constexpr std::array<std::byte, 64 * 1024> zeros{};
        const std::uint64_t size = info().size_bytes;
        const std::uint64_t last = offset + std::min<std::uint64_t>(length, size > offset ? size - offset : 0);
        for (std::uint64_t at = offset; at < last;) {
            const ByteCount count = std::min<std::uint64_t>(zeros.size(), last - at);
            write_all(writable_number(), std::span(zeros).first(count), at);
            at += count;
        }
    }

    void guard_against_fork() {
        if (!guarded_) {
            process_ = this_process();
            ForkGuard::instance().add(*this);
            guarded_ = true;
        }
    }

    Descriptor descriptor_;
    fs::path path_;
    fs::path hidden_path_;
    Access access_;
    PosixFeatures features_;
    bool guarded_ = false;
    ProcessNumber process_ = 0;  ///< of a guarded file: the one that it belongs to
    bool locked_ = false;
    std::atomic<std::uint64_t> size_limit_{limit_of_sizes()};  ///< of the process
    mutable std::mutex direct_mutex_;
    mutable DirectDescriptor direct_read_;
    mutable DirectDescriptor direct_write_;
    mutable DirectDescriptor direct_durable_;
};

ForkGuard& ForkGuard::instance() {
    [[maybe_unused]] static const int registered = ::pthread_atfork(
        [] {
            ForkGuard& guard = instance();
            guard.mutex_.lock();
            held = &guard;
        },
        [] { held->mutex_.unlock(); },
        // The child's only thread, whose process has a number of its own already.
        [] { held->abandon_all_in_child(); });
    // Never destroyed: files in other static objects may outlive any order of destruction.
    const ProcessNumber process = this_process();
    ForkGuard* found = latest.load();
    while (found == nullptr || found->process_ != process) {
        auto made = std::unique_ptr<ForkGuard>(new ForkGuard(process));
        if (latest.compare_exchange_strong(found, made.get())) found = made.release();
    }
    return *found;
}

void ForkGuard::remove(PosixFile& file) noexcept {
    const std::scoped_lock lock(mutex_);
    std::erase(files_, &file);
    file.close_descriptors();
}

void ForkGuard::abandon_all_in_child() noexcept {
    for (PosixFile* const file : files_) file->close_descriptors();
    mutex_.unlock();
}

/// Modes are what we say, whatever the umask or an inherited access list did.
void set_owner_only(int descriptor, const fs::path& path) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0 || ((status.st_mode & 07777U) != owner_only && ::fchmod(descriptor, owner_only) != 0))
        throw_errno(errno, path, "setting its mode to 0600");
}

Descriptor create_exclusively(const fs::path& path) {
    const int number =
        uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, owner_only); });
    Descriptor descriptor(number);
    if (number >= 0 && !descriptor.is_open()) {
        const int error = errno;
        ::unlink(path.c_str());
        errno = error;
    }
    return descriptor;
}

fs::path hidden_name_in(const fs::path& directory) {
    std::array<char, 40> name{};
    std::snprintf(name.data(), name.size(), ".taiyen-%016llx", static_cast<unsigned long long>(random_u64()));
    return directory / name.data();
}

}  // namespace

std::optional<FileInfo> PosixStorage::find(const fs::path& path) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) == 0) return info_of(status);
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw_errno(errno, path, "looking it up");
}

std::vector<std::string> PosixStorage::list(const fs::path& directory) {
    std::vector<std::string> names;
    std::error_code failure;
    for (fs::directory_iterator at(directory, failure), end; !failure && at != end; at.increment(failure))
        names.push_back(at->path().filename().string());
    if (failure) throw_errno(failure.value(), directory, "listing it");
    return names;
}

std::unique_ptr<File> PosixStorage::open(const fs::path& path, Access access) {
    // Asked first because opening some devices has effects of its own; asked again of the descriptor, because names can change meanwhile.
    if (const auto found = find(path); found && found->kind != FileKind::regular) throw_not_regular(path);
    const int flags = (access == Access::read_only ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    Descriptor descriptor(uninterrupted([&] { return ::open(path.c_str(), flags); }));
    if (!descriptor.is_open()) throw_errno(errno, path, "opening it");
    auto file = std::make_unique<PosixFile>(std::move(descriptor), path, access, features_);
    if (file->info().kind != FileKind::regular) throw_not_regular(path);
    return file;
}

std::unique_ptr<File> PosixStorage::create(const fs::path& path) {
    Descriptor descriptor = create_exclusively(path);
    if (!descriptor.is_open()) throw_errno(errno, path, "creating it");
    try {
        set_owner_only(descriptor.get(), path);
    } catch (...) {
        ::unlink(path.c_str());
        throw;
    }
    return std::make_unique<PosixFile>(std::move(descriptor), path, Access::read_write, features_);
}

std::unique_ptr<File> PosixStorage::create_unnamed(const fs::path& directory) {
    if (features_.unnamed) {
        Descriptor descriptor(uninterrupted([&] { return ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_NONBLOCK | O_CLOEXEC, owner_only); }));
        if (descriptor.is_open()) {
            set_owner_only(descriptor.get(), directory);
            return std::make_unique<PosixFile>(std::move(descriptor), directory, Access::read_write, features_);
        }
        if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) throw_errno(errno, directory, "creating a file in it");
    }
    for (;;) {
        const fs::path hidden = hidden_name_in(directory);
        Descriptor descriptor = create_exclusively(hidden);
        if (descriptor.is_open()) {
            auto file = std::make_unique<PosixFile>(std::move(descriptor), directory, Access::read_write, features_);
            file->set_hidden_path(hidden);
            set_owner_only(file->number(), directory);
            return file;
        }
        if (errno != EEXIST) throw_errno(errno, directory, "creating a file in it");
    }
}

void PosixStorage::publish(File& file, const fs::path& path) {
    auto* const posix = dynamic_cast<PosixFile*>(&file);
    TAIYEN_CHECK(posix != nullptr);
    fs::path name = path;  // nothing may fail once the file has its name
    const fs::path& hidden = posix->hidden_path();
    if (hidden.empty()) {
        const std::string link = "/proc/self/fd/" + std::to_string(posix->number());
        if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) {
            const int error = errno;
            // Without /proc a privileged process can still link the descriptor itself.
            if (error != ENOENT || ::linkat(posix->number(), "", AT_FDCWD, path.c_str(), AT_EMPTY_PATH) != 0)
                throw_errno(error, path, "publishing a new file under this name");
        }
    } else if (::renameat2(AT_FDCWD, hidden.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
        if (errno != EINVAL && errno != ENOSYS) throw_errno(errno, path, "publishing a new file under this name");
        if (::link(hidden.c_str(), path.c_str()) != 0) throw_errno(errno, path, "publishing a new file under this name");
        ::unlink(hidden.c_str());
    }
    posix->set_published(std::move(name));
}

void PosixStorage::rename(const fs::path& from, const fs::path& to, Existing existing) {
    if (existing == Existing::replaced) {
        if (::rename(from.c_str(), to.c_str()) != 0) throw_errno(errno, from, "renaming it to " + to.string());
        return;
    }
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
    // A file system that can't refuse: a second name refuses.
    if ((errno != EINVAL && errno != ENOSYS) || ::link(from.c_str(), to.c_str()) != 0)
        throw_errno(errno, errno == EEXIST ? to : from, "renaming it to " + to.string());
    ::unlink(from.c_str());
}

bool PosixStorage::remove(const fs::path& path) {
    if (::unlink(path.c_str()) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    throw_errno(errno, path, "removing it");
}

void PosixStorage::sync_directory(const fs::path& directory) {
    const Descriptor descriptor(uninterrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC); }));
    if (!descriptor.is_open()) throw_errno(errno, directory, "opening the directory");
    // Some file systems have no entries that could be synced and say so with EINVAL: that is no failure of a sync.
    if (uninterrupted([&] { return ::fsync(descriptor.get()); }) != 0 && errno != EINVAL) throw_errno(errno, directory, "fsync of the directory");
}

Storage& posix_storage() {
    static PosixStorage* const storage = new PosixStorage;  // NOLINT(cppcoreguidelines-owning-memory): outlives every heap in a static object
    return *storage;
}

fs::path directory_of(const fs::path& path) {
    fs::path directory = path.parent_path();
    return directory.empty() ? fs::path(".") : directory;
}

}  // namespace taiyen::io
