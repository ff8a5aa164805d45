#include "base/descriptor.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace taiyen {

Descriptor::Descriptor(int number) noexcept : number_(number) {
    if (number < 0 || number > STDERR_FILENO) return;
    // The copy shares the open file description: its flags, its lock, and what O_TMPFILE made.
    number_ = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno == EINVAL ? EMFILE : errno;  // EINVAL: the limit of open files lies below the number
    ::close(number);
    errno = error;
}

void Descriptor::reset() noexcept {
    if (number_ >= 0) {
        // Not repeated after EINTR: Linux has closed the descriptor then, and the number may already be somebody else's.
        ::close(std::exchange(number_, -1));
    }
}

}  // namespace taiyen
