#include "volatile/decay.hpp"

#include <algorithm>
#include <utility>

namespace taiyen::heap {

namespace {

constexpr ByteCount purged_bytes_min = ByteCount{16} << 20U;
/// So many sixteenths of the memory in use may stay in free pages.
constexpr ByteCount kept_sixteenths = 9;
/// What is above that limit goes, and so much of the limit with it.
constexpr ByteCount rest_part = 10;
constexpr ByteCount look_bytes_min = purged_bytes_min / 4;
constexpr ByteCount look_part = 64;  ///< of the extent, whose pages a look counts
constexpr std::chrono::milliseconds interval{1000};

}  // namespace

std::optional<ByteCount> Decay::look(const PageTotals& pages, ByteCount extent) noexcept {
    freed_since_purge_ += std::exchange(freed_since_look_, 0);
    const ByteCount limit = std::max(purged_bytes_min, pages.used / 16 * kept_sixteenths);
    const auto now = clock_();
    ByteCount kept = pages.free;
    if (now - last_purge_ >= interval && freed_since_purge_ >= purged_bytes_min) {
        kept = std::min(limit, kept / 2);
        last_purge_ = now;
    } else if (kept > limit) {
        kept = limit - limit / rest_part;
    }
    freed_until_look_ = std::max({look_bytes_min, extent / look_part, (limit - std::min(limit, kept)) / 2});
    return kept != pages.free ? std::optional(kept) : std::nullopt;
}

}  // namespace taiyen::heap
