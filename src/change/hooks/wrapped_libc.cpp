// Functions of the C library that write where a pointer of the caller points: announced, then called.
//
// The linker sends each call of `name` here (--wrap=name); the build takes the names from the lines that begin with TAIYEN_WRAP. Where a function may write less than
// it is allowed to, all that it may write is announced: bytes that stay as they were don't become part of a change set.
#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <cwchar>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "change/hooks/announce.hpp"

using std::size_t;
using taiyen::change::hooks::announce;
using taiyen::change::hooks::heap_near;

namespace {

bool may_be_in_a_heap(const void* address) { return heap_near(reinterpret_cast<std::uintptr_t>(address)) != nullptr; }

/// A formatted text and its end; the size is found by formatting it twice, only where it matters.
void announce_text(char* to, size_t room, const char* format, std::va_list arguments) {
    if (!may_be_in_a_heap(to) || room == 0) return;
    std::va_list copy;
    va_copy(copy, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, copy);
    va_end(copy);
    if (length >= 0) announce(to, std::min(room, static_cast<size_t>(length) + 1));
}

void announce_copy(char* to, const char* from) {
    if (may_be_in_a_heap(to)) announce(to, std::strlen(from) + 1);
}
void announce_appended(char* to, const char* from, size_t room) {
    if (may_be_in_a_heap(to)) announce(to + std::strlen(to), strnlen(from, room) + 1);
}

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-macro-usage, bugprone-macro-parentheses)
#define TAIYEN_WRAP(name, Result, parameters, arguments, to, length)                   \
    extern "C" Result __real_##name parameters;                                        \
    extern "C" __attribute__((visibility("hidden"))) Result __wrap_##name parameters { \
        announce(to, length);                                                          \
        return __real_##name arguments;                                                \
    }
/// The same with a statement that announces.
#define TAIYEN_WRAP_BY(name, Result, parameters, arguments, statement)                 \
    extern "C" Result __real_##name parameters;                                        \
    extern "C" __attribute__((visibility("hidden"))) Result __wrap_##name parameters { \
        statement;                                                                     \
        return __real_##name arguments;                                                \
    }
/// Variadic functions are passed on to the one that takes a list.
#define TAIYEN_WRAP_FORMAT(name, parameters, real, arguments, to, room)             \
    extern "C" __attribute__((visibility("hidden"))) int __wrap_##name parameters { \
        std::va_list list;                                                          \
        va_start(list, format);                                                     \
        announce_text(to, room, format, list);                                      \
        const int result = real arguments;                                          \
        va_end(list);                                                               \
        return result;                                                              \
    }
// NOLINTEND(cppcoreguidelines-macro-usage, bugprone-macro-parentheses)

TAIYEN_WRAP(memcpy, void*, (void* to, const void* from, size_t n), (to, from, n), to, n)
TAIYEN_WRAP(memmove, void*, (void* to, const void* from, size_t n), (to, from, n), to, n)
TAIYEN_WRAP(memset, void*, (void* to, int value, size_t n), (to, value, n), to, n)
TAIYEN_WRAP(mempcpy, void*, (void* to, const void* from, size_t n), (to, from, n), to, n)
TAIYEN_WRAP(memccpy, void*, (void* to, const void* from, int c, size_t n), (to, from, c, n), to, n)
TAIYEN_WRAP(bzero, void, (void* to, size_t n), (to, n), to, n)
TAIYEN_WRAP(explicit_bzero, void, (void* to, size_t n), (to, n), to, n)
TAIYEN_WRAP(bcopy, void, (const void* from, void* to, size_t n), (from, to, n), to, n)
TAIYEN_WRAP(swab, void, (const void* from, void* to, ssize_t n), (from, to, n), to, static_cast<size_t>(std::max<ssize_t>(n, 0)))
TAIYEN_WRAP(wmemcpy, wchar_t*, (wchar_t * to, const wchar_t* from, size_t n), (to, from, n), to, n * sizeof(wchar_t))
TAIYEN_WRAP(wmemmove, wchar_t*, (wchar_t * to, const wchar_t* from, size_t n), (to, from, n), to, n * sizeof(wchar_t))
TAIYEN_WRAP(wmemset, wchar_t*, (wchar_t * to, wchar_t value, size_t n), (to, value, n), to, n * sizeof(wchar_t))

TAIYEN_WRAP_BY(strcpy, char*, (char* to, const char* from), (to, from), announce_copy(to, from))
TAIYEN_WRAP_BY(stpcpy, char*, (char* to, const char* from), (to, from), announce_copy(to, from))
TAIYEN_WRAP(strncpy, char*, (char* to, const char* from, size_t n), (to, from, n), to, n)
TAIYEN_WRAP(stpncpy, char*, (char* to, const char* from, size_t n), (to, from, n), to, n)
TAIYEN_WRAP_BY(strcat, char*, (char* to, const char* from), (to, from), announce_appended(to, from, ~size_t{0}))
TAIYEN_WRAP_BY(strncat, char*, (char* to, const char* from, size_t n), (to, from, n), announce_appended(to, from, n))
TAIYEN_WRAP(strftime, size_t, (char* to, size_t n, const char* format, const tm* time), (to, n, format, time), to, n)

TAIYEN_WRAP_BY(vsnprintf, int, (char* to, size_t n, const char* format, std::va_list list), (to, n, format, list), announce_text(to, n, format, list))
TAIYEN_WRAP_BY(vsprintf, int, (char* to, const char* format, std::va_list list), (to, format, list), announce_text(to, ~size_t{0}, format, list))
TAIYEN_WRAP_FORMAT(snprintf, (char* to, size_t n, const char* format, ...), __real_vsnprintf, (to, n, format, list), to, n)
TAIYEN_WRAP_FORMAT(sprintf, (char* to, const char* format, ...), __real_vsprintf, (to, format, list), to, ~size_t{0})

TAIYEN_WRAP(qsort, void, (void* base, size_t n, size_t size, int (*compare)(const void*, const void*)), (base, n, size, compare), base, n* size)
TAIYEN_WRAP(qsort_r, void, (void* base, size_t n, size_t size, int (*compare)(const void*, const void*, void*), void* more),
            (base, n, size, compare, more), base, n* size)

TAIYEN_WRAP(read, ssize_t, (int file, void* to, size_t n), (file, to, n), to, n)
TAIYEN_WRAP(pread, ssize_t, (int file, void* to, size_t n, off_t at), (file, to, n, at), to, n)
TAIYEN_WRAP(pread64, ssize_t, (int file, void* to, size_t n, off_t at), (file, to, n, at), to, n)
TAIYEN_WRAP(recv, ssize_t, (int file, void* to, size_t n, int flags), (file, to, n, flags), to, n)
TAIYEN_WRAP(getrandom, ssize_t, (void* to, size_t n, unsigned flags), (to, n, flags), to, n)
TAIYEN_WRAP(readlink, ssize_t, (const char* path, char* to, size_t n), (path, to, n), to, n)
TAIYEN_WRAP(fread, size_t, (void* to, size_t size, size_t n, void* file), (to, size, n, file), to, n* size)
TAIYEN_WRAP(fread_unlocked, size_t, (void* to, size_t size, size_t n, void* file), (to, size, n, file), to, n* size)
TAIYEN_WRAP(fgets, char*, (char* to, int n, void* file), (to, n, file), to, static_cast<size_t>(std::max(n, 0)))
TAIYEN_WRAP_BY(readv, ssize_t, (int file, const iovec* parts, int n), (file, parts, n),
               for (int i = 0; i < n; ++i) announce(parts[i].iov_base, parts[i].iov_len))

TAIYEN_WRAP(time, time_t, (time_t* to), (to), to, sizeof(time_t))
TAIYEN_WRAP(clock_gettime, int, (clockid_t clock, timespec* to), (clock, to), to, sizeof(timespec))
TAIYEN_WRAP(gettimeofday, int, (timeval * to, void* zone), (to, zone), to, sizeof(timeval))
TAIYEN_WRAP(gmtime_r, tm*, (const time_t* time, tm* to), (time, to), to, sizeof(tm))
TAIYEN_WRAP(localtime_r, tm*, (const time_t* time, tm* to), (time, to), to, sizeof(tm))

TAIYEN_WRAP(modf, double, (double value, double* to), (value, to), to, sizeof(double))
TAIYEN_WRAP(modff, float, (float value, float* to), (value, to), to, sizeof(float))
TAIYEN_WRAP(frexp, double, (double value, int* to), (value, to), to, sizeof(int))
TAIYEN_WRAP(frexpf, float, (float value, int* to), (value, to), to, sizeof(int))
TAIYEN_WRAP(remquo, double, (double a, double b, int* to), (a, b, to), to, sizeof(int))
TAIYEN_WRAP_BY(sincos, void, (double value, double* sine, double* cosine), (value, sine, cosine), announce(sine, sizeof(double));
               announce(cosine, sizeof(double)))
TAIYEN_WRAP_BY(sincosf, void, (float value, float* sine, float* cosine), (value, sine, cosine), announce(sine, sizeof(float));
               announce(cosine, sizeof(float)))

// What _FORTIFY_SOURCE makes of them.
TAIYEN_WRAP(__memcpy_chk, void*, (void* to, const void* from, size_t n, size_t room), (to, from, n, room), to, n)
TAIYEN_WRAP(__memmove_chk, void*, (void* to, const void* from, size_t n, size_t room), (to, from, n, room), to, n)
TAIYEN_WRAP(__memset_chk, void*, (void* to, int value, size_t n, size_t room), (to, value, n, room), to, n)
TAIYEN_WRAP(__mempcpy_chk, void*, (void* to, const void* from, size_t n, size_t room), (to, from, n, room), to, n)
TAIYEN_WRAP_BY(__strcpy_chk, char*, (char* to, const char* from, size_t room), (to, from, room), announce_copy(to, from))
TAIYEN_WRAP_BY(__stpcpy_chk, char*, (char* to, const char* from, size_t room), (to, from, room), announce_copy(to, from))
TAIYEN_WRAP(__strncpy_chk, char*, (char* to, const char* from, size_t n, size_t room), (to, from, n, room), to, n)
TAIYEN_WRAP_BY(__strcat_chk, char*, (char* to, const char* from, size_t room), (to, from, room), announce_appended(to, from, ~size_t{0}))
TAIYEN_WRAP_BY(__strncat_chk, char*, (char* to, const char* from, size_t n, size_t room), (to, from, n, room), announce_appended(to, from, n))
TAIYEN_WRAP_BY(__vsnprintf_chk, int, (char* to, size_t n, int flags, size_t room, const char* format, std::va_list list),
               (to, n, flags, room, format, list), announce_text(to, n, format, list))
TAIYEN_WRAP_BY(__vsprintf_chk, int, (char* to, int flags, size_t room, const char* format, std::va_list list), (to, flags, room, format, list),
               announce_text(to, room, format, list))
TAIYEN_WRAP_FORMAT(__snprintf_chk, (char* to, size_t n, int flags, size_t room, const char* format, ...), __real___vsnprintf_chk,
                   (to, n, flags, room, format, list), to, n)
TAIYEN_WRAP_FORMAT(__sprintf_chk, (char* to, int flags, size_t room, const char* format, ...), __real___vsprintf_chk, (to, flags, room, format, list),
                   to, room)
TAIYEN_WRAP(__read_chk, ssize_t, (int file, void* to, size_t n, size_t room), (file, to, n, room), to, n)
TAIYEN_WRAP(__pread_chk, ssize_t, (int file, void* to, size_t n, off_t at, size_t room), (file, to, n, at, room), to, n)
TAIYEN_WRAP(__fread_chk, size_t, (void* to, size_t room, size_t size, size_t n, void* file), (to, room, size, n, file), to, n* size)
TAIYEN_WRAP(__fgets_chk, char*, (char* to, size_t room, int n, void* file), (to, room, n, file), to, static_cast<size_t>(std::max(n, 0)))
