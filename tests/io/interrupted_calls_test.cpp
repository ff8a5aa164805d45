// The system may interrupt a call, and move fewer bytes than it was asked to: nobody above the storage hears of it. It may refuse one, and say that all is well the next time: of what that means
// for bytes on the disk everybody hears.

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/disks.hpp"

namespace {

/// What the calls of this program meet below, as long as it lives.
struct Mischief {
    int interruptions = 0;      ///< before each call that succeeds
    std::size_t bytes_max = 0;  ///< that a call moves; 0: as many as it should
    bool nothing = false;       ///< writes succeed and move no byte, behind a call that failed
    std::string fails{};        ///< the call that fails once, as `calls` names it
    int error = EIO;            ///< with which it does
    int interrupted = 0;
    int transfers = 0;
    std::vector<std::string> calls{};  ///< in their order, of `open` the one that fails; " direct", " dsync", " unnamed": of a descriptor that is
};
Mischief* mischief = nullptr;

bool interrupts() {
    if (mischief == nullptr || mischief->interrupted == mischief->interruptions) {
        if (mischief != nullptr) mischief->interrupted = 0;
        return false;
    }
    ++mischief->interrupted;
    errno = EINTR;
    return true;
}

std::size_t shortened(std::size_t count) {
    if (mischief == nullptr) return count;
    ++mischief->transfers;
    return mischief->bytes_max == 0 ? count : std::min(count, mischief->bytes_max);
}

/// Whether the call fails now.
bool fails_flagged(std::string call, int flags) {
    if (mischief == nullptr) return false;
    if ((flags & O_TMPFILE) == O_TMPFILE) call += " unnamed";
    if ((flags & O_DIRECT) != 0) call += " direct";
    if ((flags & O_DSYNC) != 0) call += " dsync";
    mischief->calls.push_back(call);
    if (mischief->fails != call) return false;
    mischief->fails.clear();
    errno = mischief->error;
    return true;
}
bool fails(const char* call, int file) { return mischief != nullptr && fails_flagged(call, ::fcntl(file, F_GETFL)); }

struct Making {
    explicit Making(Mischief& made) { mischief = &made; }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;
    ~Making() { mischief = nullptr; }
};

}  // namespace

// These stand before those of the C library.
extern "C" {
ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
    if (interrupts()) return -1;
    if (fails("pwrite", file)) return -1;
    if (mischief != nullptr && mischief->nothing) {
        errno = EINVAL;
        return 0;
    }
    return ::syscall(SYS_pwrite64, file, bytes, shortened(count), offset);
}
ssize_t pread(int file, void* bytes, size_t count, off_t offset) {
    if (interrupts() || fails("pread", file)) return -1;
    return ::syscall(SYS_pread64, file, bytes, shortened(count), offset);
}
int fdatasync(int file) {
    if (interrupts() || fails("fdatasync", file)) return -1;
    return static_cast<int>(::syscall(SYS_fdatasync, file));
}
int fsync(int file) {
    if (interrupts() || fails("fsync", file)) return -1;
    return static_cast<int>(::syscall(SYS_fsync, file));
}
int sync_file_range(int file, off_t offset, off_t length, unsigned flags) {
    if (interrupts() || fails("sync_file_range", file)) return -1;
    return static_cast<int>(::syscall(SYS_sync_file_range, file, offset, length, flags));
}
int fallocate(int file, int mode, off_t offset, off_t length) {
    if (interrupts() || fails("fallocate", file)) return -1;
    return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, length));
}
int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (mischief != nullptr && mischief->fails.starts_with("open") && fails_flagged("open", flags)) return -1;
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
    if (fails_flagged("renameat2", 0)) return -1;
    return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}
}

namespace taiyen::io::test {
namespace {

std::vector<std::byte> pattern(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    return bytes;
}

BOOST_AUTO_TEST_SUITE(interrupted_calls)

BOOST_AUTO_TEST_CASE(short_transfers_and_interruptions_are_never_seen) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    const auto bytes = pattern(40'000);
    AlignedBuffer aligned = filled(32 * 1024, 0);
    std::memcpy(aligned.data(), bytes.data(), aligned.size());
    AlignedBuffer back = filled(32 * 1024, 9);
    std::vector<std::byte> all(bytes.size());
    Mischief made{.interruptions = 3, .bytes_max = 1536};
    {
        const Making now(made);
        file->write(bytes, 512);
        BOOST_TEST(made.transfers == 27);
        BOOST_TEST(file->read(all, 512) == bytes.size());
        file->write_direct(aligned.span(), 64 * 1024);
        file->write_durable(aligned.span(), 128 * 1024);
        file->sync();
        file->allocate(256 * 1024, 4096);
        file->punch(0, 512);
        BOOST_TEST(file->read_direct(back.span(), 128 * 1024) == back.size());
    }
    BOOST_TEST((all == bytes));
    BOOST_TEST(std::memcmp(back.data(), bytes.data(), back.size()) == 0);
    BOOST_TEST(file->read(back.span(), 64 * 1024) == back.size());
    BOOST_TEST(std::memcmp(back.data(), bytes.data(), back.size()) == 0);
}

BOOST_AUTO_TEST_CASE(a_write_of_nothing_is_an_error_that_names_the_place) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    Mischief made{.nothing = true};
    const Making now(made);
    BOOST_CHECK_EXCEPTION(file->write(pattern(100), 300), Error,
                          [](const Error& error) { return error.code() == errc::io_error && error.offset() == 300; });
    // No reason to try it another way.
    file->allocate(0, 8192);
    made.calls.clear();
    BOOST_CHECK_THROW(file->write_durable(filled(4096, 1).span(), 0), Error);
    BOOST_TEST(std::count_if(made.calls.begin(), made.calls.end(), [](const std::string& call) { return call.starts_with("pwrite"); }) == 1);
}

BOOST_AUTO_TEST_SUITE_END()

using Calls = std::vector<std::string>;

/// Whether files of this disk can be opened for direct transfers.
bool is_direct(PosixDisk& disk) {
    disk.storage().create(disk.path("probe"));
    const int probe = ::open(disk.path("probe").c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    if (probe >= 0) ::close(probe);
    return probe >= 0;
}

std::vector<fs::path> names_in(const fs::path& directory) {
    std::vector<fs::path> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path());
    return names;
}

BOOST_AUTO_TEST_SUITE(refused_calls)

BOOST_AUTO_TEST_CASE(without_a_free_descriptor_a_durable_write_fails_and_a_later_one_is_direct) {
    PosixDisk disk;
    if (!is_direct(disk)) return;
    const auto file = disk.storage().create(disk.path("a"));
    file->allocate(0, 64_KiB);
    const AlignedBuffer bytes = filled(8192, 3);
    Mischief made{.fails = "open direct dsync", .error = EMFILE};
    const Making now(made);
    BOOST_CHECK_EXCEPTION(file->write_durable(bytes.span(), 0), Error, has_code(errc::too_many_files));
    made.calls.clear();
    file->write_durable(bytes.span(), 0);
    BOOST_TEST(made.calls == Calls{"pwrite direct dsync"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_file_system_that_refuses_direct_transfers_is_asked_once) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->allocate(0, 64_KiB);
    const AlignedBuffer bytes = filled(8192, 3);
    Mischief made{.fails = "open direct dsync", .error = EINVAL};
    const Making now(made);
    file->write_durable(bytes.span(), 0);
    BOOST_TEST(made.calls == (Calls{"open direct dsync", "pwrite", "fdatasync"}), boost::test_tools::per_element());
    made.calls.clear();
    made.fails = "open direct dsync";
    file->write_durable(bytes.span(), 0);
    BOOST_TEST(made.calls == (Calls{"pwrite", "fdatasync"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(disk_blocks_are_asked_for_by_one_call_where_there_is_one) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    for (const int error : {0, EOPNOTSUPP, ENOSYS}) {
        Mischief made{.fails = error != 0 ? "fallocate" : "", .error = error};
        const Making now(made);
        const ByteCount before = file->info().size_bytes;
        file->allocate(before, 64_KiB);
        BOOST_TEST(made.calls == Calls{"fallocate"}, boost::test_tools::per_element());
        BOOST_TEST(file->info().size_bytes == before + 64_KiB);
    }
    Mischief made{.fails = "fallocate", .error = ENOSPC};
    const Making now(made);
    BOOST_CHECK_EXCEPTION(file->allocate(1_MiB, 64_KiB), Error, has_code(errc::no_space));
    BOOST_TEST(made.calls == Calls{"fallocate"}, boost::test_tools::per_element());
    made.calls.clear();
    PlainPosixDisk plain;
    plain.storage().create(plain.path("a"))->allocate(0, 64_KiB);
    BOOST_TEST(std::count(made.calls.begin(), made.calls.end(), "fallocate") == 0);
}

BOOST_AUTO_TEST_CASE(where_files_without_a_name_are_unknown_they_have_a_hidden_one_and_other_refusals_are_told) {
    for (const int error : {EOPNOTSUPP, EISDIR, EINVAL}) {
        PosixDisk disk;
        Mischief made{.fails = "open unnamed", .error = error};
        const Making now(made);
        const auto file = disk.storage().create_unnamed(disk.directory());
        BOOST_TEST(names_in(disk.directory()).size() == 1U);
        file->write(pattern(100), 0);
        disk.storage().publish(*file, disk.path("a"));
        BOOST_TEST((names_in(disk.directory()) == std::vector{disk.path("a")}));
        BOOST_TEST((content(*file) == pattern(100)));
    }
    for (const auto& [error, code] : {std::pair{ENOSPC, errc::no_space}, std::pair{EACCES, errc::permission}}) {
        PosixDisk disk;
        Mischief made{.fails = "open unnamed", .error = error};
        const Making now(made);
        BOOST_CHECK_EXCEPTION(disk.storage().create_unnamed(disk.directory()), Error, has_code(code));
        BOOST_TEST(names_in(disk.directory()).empty());
    }
}

BOOST_AUTO_TEST_CASE(where_no_rename_spares_a_taken_name_publishing_still_does) {
    PlainPosixDisk disk;
    for (const int error : {EINVAL, ENOSYS}) {
        const fs::path path = disk.path(error == EINVAL ? "a" : "b");
        auto file = disk.storage().create_unnamed(disk.directory());
        file->write(pattern(100), 0);
        auto other = disk.storage().create_unnamed(disk.directory());
        Mischief made{.fails = "renameat2", .error = error};
        const Making now(made);
        disk.storage().publish(*file, path);
        made.fails = "renameat2";
        BOOST_CHECK_EXCEPTION(disk.storage().publish(*other, path), Error, has_code(errc::already_exists));
        other.reset();
        file.reset();
        BOOST_TEST((content(*disk.storage().open(path, Access::read_only)) == pattern(100)));
    }
    BOOST_TEST(names_in(disk.directory()).size() == 2U);
    const auto file = disk.storage().create_unnamed(disk.directory());
    Mischief made{.fails = "renameat2"};
    const Making now(made);
    BOOST_CHECK_EXCEPTION(disk.storage().publish(*file, disk.path("c")), Error, has_code(errc::io_error));
    BOOST_TEST(!disk.storage().find(disk.path("c")).has_value());
}

// The kernel drops what it could not write, and tells each descriptor once.
BOOST_AUTO_TEST_CASE(a_sync_that_failed_is_not_asked_for_again) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(pattern(5000), 0);
    for (const int error : {EIO, ENOSPC, EDQUOT}) {
        Mischief made{.fails = "fdatasync", .error = error};
        const Making now(made);
        BOOST_CHECK_THROW(file->sync(), Error);
        BOOST_TEST(made.calls == Calls{"fdatasync"}, boost::test_tools::per_element());
    }
    Mischief made{.fails = "fsync"};
    const Making now(made);
    BOOST_CHECK_EXCEPTION(disk.storage().sync_directory(disk.directory()), Error, has_code(errc::io_error));
    BOOST_TEST(made.calls == Calls{"fsync"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_durable_write_without_direct_transfers_fails_if_its_sync_does) {
    PosixDisk disk({.direct = false});
    const auto file = disk.storage().create(disk.path("a"));
    const AlignedBuffer bytes = filled(8192, 3);
    Mischief made{.fails = "fdatasync"};
    const Making now(made);
    BOOST_CHECK_EXCEPTION(file->write_durable(bytes.span(), 4096), Error, has_code(errc::io_error));
    BOOST_TEST(made.calls == (Calls{"pwrite", "fdatasync"}), boost::test_tools::per_element());
    made.calls.clear();
    file->write_durable(bytes.span(), 4096);
    BOOST_TEST(made.calls == (Calls{"pwrite", "fdatasync"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_write_back_failed_to_do_is_told_by_who_waits_for_it) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(pattern(8192), 0);
    for (const int error : {EIO, ENOSPC}) {
        Mischief made{.fails = "sync_file_range", .error = error};
        const Making now(made);
        BOOST_CHECK_EXCEPTION(file->wait_for_writing(4096, 4096), Error, [](const Error& told) { return told.offset() == 4096; });
        BOOST_TEST(made.calls == Calls{"sync_file_range"}, boost::test_tools::per_element());
    }
    for (const int error : {ESPIPE, EINVAL, ENOSYS}) {  // there is no such call for this file: the sync will do it all
        Mischief made{.fails = "sync_file_range", .error = error};
        const Making now(made);
        file->wait_for_writing(4096, 4096);
        BOOST_TEST(made.calls.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_direct_write_that_is_refused_is_durable_by_the_page_cache_and_a_sync) {
    PosixDisk disk;
    if (!is_direct(disk)) return;  // there is nothing to be refused
    const AlignedBuffer bytes = filled(8192, 3);
    for (const bool durable : {true, false}) {
        const auto file = disk.storage().create(disk.path(durable ? "a" : "b"));
        file->allocate(0, 64_KiB);
        const std::string direct = durable ? "pwrite direct dsync" : "pwrite direct";
        const auto write = [&] { durable ? file->write_durable(bytes.span(), 4096) : file->write_direct(bytes.span(), 4096); };
        {
            Mischief made;
            const Making now(made);
            write();
            BOOST_TEST(made.calls == Calls{direct}, boost::test_tools::per_element());
        }
        {
            Mischief made{.fails = direct, .error = EINVAL};
            const Making now(made);
            write();
            BOOST_TEST(made.calls == (Calls{direct, "pwrite", "fdatasync"}), boost::test_tools::per_element());
        }
        {
            Mischief made{.fails = direct};  // that is no refusal
            const Making now(made);
            BOOST_CHECK_EXCEPTION(write(), Error, has_code(errc::io_error));
            BOOST_TEST(made.calls == Calls{direct}, boost::test_tools::per_element());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_direct_read_asks_the_device_and_not_the_page_cache) {
    PosixDisk disk;
    if (!is_direct(disk)) return;  // there is nothing to be refused
    const auto file = disk.storage().create(disk.path("a"));
    AlignedBuffer bytes = filled(8192, 3);
    file->write_durable(bytes.span(), 0);
    Mischief made;
    const Making now(made);
    BOOST_TEST(file->read_direct(bytes.span(), 0) == bytes.size());
    BOOST_TEST(made.calls == Calls{"pread direct"}, boost::test_tools::per_element());
    made.calls.clear();
    made.fails = "pread direct";
    BOOST_CHECK_EXCEPTION(file->read_direct(bytes.span(), 0), Error, has_code(errc::io_error));  // what the device refuses isn't taken from the cache
    BOOST_TEST(made.calls == Calls{"pread direct"}, boost::test_tools::per_element());
    made.calls.clear();
    made.fails = "pread direct";
    made.error = EINVAL;  // it takes no such transfers after all
    BOOST_TEST(file->read_direct(bytes.span(), 0) == bytes.size());
    BOOST_TEST(made.calls == (Calls{"pread direct", "pread"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::io::test
