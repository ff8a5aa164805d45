#include <taiyen/change/read_from.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <taiyen/base/error.hpp>

#include "change/recorder.hpp"

namespace taiyen {

std::size_t read_from(heap::HeapCore& heap, int descriptor, void* target, std::size_t bytes) {
    // As much is opened at a time as a pipe or file usually gives: an input that ends early must not have opened everything.
    constexpr std::size_t piece_max = std::size_t{1} << 20U;
    heap.check_usable(false);
    const auto begin = reinterpret_cast<std::uintptr_t>(target) - heap.ranges().durable;
    if (begin > heap.ranges().durable_bytes || bytes > heap.ranges().durable_bytes - begin)
        throw Error(errc::invalid_argument, heap.path(), "read_from() got a target outside the heap; pass a block of that heap, or call read(2)");
    change::Recorder* const recorder = change::Recorder::of(heap);
    std::size_t got = 0;
    while (got < bytes) {
        const std::size_t piece = std::min(bytes - got, piece_max);
        if (recorder != nullptr) recorder->touch({begin + got}, piece);
        const ssize_t count = ::read(descriptor, static_cast<std::byte*>(target) + got, piece);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            const int error = errno;
            throw Error(errc::io_error, heap.path(), begin + got, "read(2) into the heap failed: " + std::generic_category().message(error));
        }
        if (count == 0) break;
        got += static_cast<std::size_t>(count);
    }
    return got;
}

}  // namespace taiyen
