#include "store/opening_record.hpp"

#include <algorithm>

#include "base/planted.hpp"

namespace taiyen::store {
namespace {

using std::chrono::microseconds;
using std::chrono::system_clock;

/// Beyond it a count of nanoseconds would not fit: in the year 2255.
constexpr std::uint64_t microseconds_end = 9'000'000'000'000'000;

}  // namespace

bool time_stands_still() noexcept {
#ifdef TAIYEN_PLANTED_BUGS
    return repeatable_random != 0;
#else
    return false;
#endif
}

system_clock::time_point time_now() noexcept { return time_stands_still() ? system_clock::time_point(microseconds(1)) : system_clock::now(); }

std::uint64_t microseconds_of(system_clock::time_point time) noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count(), 0));
}

std::optional<system_clock::time_point> time_of(std::uint64_t count) noexcept {
    if (count == 0 || count >= microseconds_end) return std::nullopt;
    return system_clock::time_point(microseconds(count));
}

OpeningRecord record_of(const Restoration& restoration) noexcept {
    if (!restoration.needed() || !restoration.opened_at) return {};
    const auto flag = [](bool is_set, std::uint32_t bit) { return is_set ? bit : 0; };
    OpeningRecord record{};
    record.opened_at = microseconds_of(*restoration.opened_at);
    record.took = time_stands_still() ? 0 : static_cast<std::uint64_t>(restoration.took.count());
    record.last_written = restoration.last_written ? microseconds_of(*restoration.last_written) : 0;
    record.cause = static_cast<std::uint32_t>(restoration.cause);
    record.flags = flag(restoration.clean, opening_found_clean) | flag(restoration.copies_levelled, opening_copies_levelled) |
                   flag(restoration.backing_rebuilt, opening_backing_rebuilt) | flag(restoration.data_rebuilt, opening_data_rebuilt) |
                   flag(restoration.data_detached, opening_data_detached);
    record.snapshots_replayed = restoration.snapshots_replayed;
    record.transactions_replayed = restoration.transactions_replayed;
    record.records_cut = restoration.records_cut;
    record.bytes_cut = restoration.bytes_cut;
    record.pages_healed = restoration.pages_healed;
    record.headers_repaired = restoration.headers_repaired;
    return record;
}

std::optional<Restoration> restoration_of(const OpeningRecord& record) noexcept {
    if (record.opened_at == 0) return std::nullopt;
    Restoration restoration;
    restoration.cause = record.cause < static_cast<std::uint32_t>(OpeningCause::unknown) ? OpeningCause{record.cause} : OpeningCause::unknown;
    restoration.clean = (record.flags & opening_found_clean) != 0;
    restoration.snapshots_replayed = record.snapshots_replayed;
    restoration.transactions_replayed = record.transactions_replayed;
    restoration.records_cut = record.records_cut;
    restoration.bytes_cut = record.bytes_cut;
    restoration.pages_healed = record.pages_healed;
    restoration.headers_repaired = record.headers_repaired;
    restoration.copies_levelled = (record.flags & opening_copies_levelled) != 0;
    restoration.backing_rebuilt = (record.flags & opening_backing_rebuilt) != 0;
    restoration.data_rebuilt = (record.flags & opening_data_rebuilt) != 0;
    restoration.data_detached = (record.flags & opening_data_detached) != 0;
    restoration.opened_at = time_of(record.opened_at);
    restoration.took = microseconds(record.took < microseconds_end ? static_cast<std::int64_t>(record.took) : 0);
    restoration.last_written = time_of(record.last_written);
    return restoration;
}

}  // namespace taiyen::store
