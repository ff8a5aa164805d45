// The system may interrupt a call, and move fewer bytes than it was asked to: nobody above the storage hears of it.

#include <cerrno>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

#include "io/disks.hpp"

namespace {

/// What the calls of this program meet below, as long as it lives.
struct Mischief {
    int interruptions = 0;      ///< before each call that succeeds
    std::size_t bytes_max = 0;  ///< that a call moves; 0: as many as it should
    bool nothing = false;       ///< writes succeed and move no byte
    int interrupted = 0;
    int transfers = 0;
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
    if (mischief != nullptr && mischief->nothing) return 0;
    return ::syscall(SYS_pwrite64, file, bytes, shortened(count), offset);
}
ssize_t pread(int file, void* bytes, size_t count, off_t offset) {
    if (interrupts()) return -1;
    return ::syscall(SYS_pread64, file, bytes, shortened(count), offset);
}
int fdatasync(int file) {
    if (interrupts()) return -1;
    return static_cast<int>(::syscall(SYS_fdatasync, file));
}
int fallocate(int file, int mode, off_t offset, off_t length) {
    if (interrupts()) return -1;
    return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, length));
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
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::io::test
