/// The control of the harnesses that cut power: preloaded, it swallows every sync of a program. With TAIYEN_BUFFERED set also direct writes go to the page cache, as those of a program
/// that never asked for anything. Calls the kernel itself, so that it stands before any C library.

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

int weakened(int flags) {
    static const bool buffered = getenv("TAIYEN_BUFFERED") != nullptr;
    return flags & ~(O_SYNC | O_DSYNC | (buffered ? O_DIRECT : 0));
}

int opened(int folder, const char* path, int flags, mode_t mode) {
    return static_cast<int>(syscall(SYS_openat, folder, path, weakened(flags) | O_LARGEFILE, mode));
}

mode_t mode_of(int flags, va_list rest) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; }

}  // namespace

#define TAIYEN_VISIBLE extern "C" __attribute__((visibility("default")))

TAIYEN_VISIBLE int fsync(int) { return 0; }
TAIYEN_VISIBLE int fdatasync(int) { return 0; }
TAIYEN_VISIBLE int syncfs(int) noexcept { return 0; }
TAIYEN_VISIBLE int msync(void*, size_t, int) { return 0; }
TAIYEN_VISIBLE int sync_file_range(int, off64_t, off64_t, unsigned) { return 0; }

TAIYEN_VISIBLE int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened(AT_FDCWD, path, flags, mode);
}
TAIYEN_VISIBLE int open64(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened(AT_FDCWD, path, flags, mode);
}
TAIYEN_VISIBLE int openat(int folder, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened(folder, path, flags, mode);
}
TAIYEN_VISIBLE int openat64(int folder, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened(folder, path, flags, mode);
}
