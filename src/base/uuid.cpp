#include "base/uuid.hpp"

#include <sys/random.h>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"

namespace taiyen {
namespace {

void fill_random(void* bytes, std::size_t count) {
    auto* at = static_cast<std::byte*>(bytes);
#ifdef TAIYEN_PLANTED_BUGS
    for (; repeatable_random != 0 && count > 0; ++at, --count) {
        repeatable_random = mix(repeatable_random, 1) | 1U;
        *at = static_cast<std::byte>(repeatable_random >> 32U);
    }
#endif
    while (count > 0) {
        const ssize_t got = ::getrandom(at, count, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            throw Error(errc::io_error, "getrandom(2) failed: the system has no random numbers");
        }
        at += got;
        count -= static_cast<std::size_t>(got);
    }
}

}  // namespace

std::string Uuid::text() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
        out += digits[bytes[i] >> 4U];
        out += digits[bytes[i] & 15U];
    }
    return out;
}

Uuid random_uuid() {
    Uuid uuid;
    fill_random(uuid.bytes.data(), uuid.bytes.size());
    return uuid;
}

std::uint64_t random_u64() {
    std::uint64_t value = 0;
    while (value == 0) fill_random(&value, sizeof value);
    return value;
}

}  // namespace taiyen
