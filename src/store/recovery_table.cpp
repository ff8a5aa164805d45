#include "store/recovery_table.hpp"

#include <array>
#include <atomic>
#include <cstddef>

namespace taiyen::store {
namespace {

std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Row::count_)> row_counts{};

}  // namespace

CopyRow choose_row(const CopiesFound& found) noexcept {
    using Data = CopiesFound::Data;
    if (found.backing_lost) {
        if (found.data != Data::whole || (found.data_unused && found.data_generation.value == 0)) return CopyRow::refused_lost;
        return found.data_short ? CopyRow::refused_short : CopyRow::backing_rebuilt;
    }
    switch (found.data) {
        case Data::none: return CopyRow::alone;
        case Data::missing: return CopyRow::data_given_up;
        case Data::lost:
        case Data::filling: return CopyRow::data_refilled;
        case Data::whole: break;
    }
    const bool is_ahead = found.data_generation > found.backing_generation;
    if (found.data_short) return is_ahead ? CopyRow::refused_short : CopyRow::data_refilled;
    if (!is_ahead) return found.data_generation < found.backing_generation ? CopyRow::backing_to_data : CopyRow::alike;
    // A crash leaves the data file ahead by the one save that was under way.
    if (found.data_clean || found.data_generation.value != found.backing_generation.value + 1) return CopyRow::refused_apart;
    return CopyRow::data_to_backing;
}

std::uint64_t rows_taken(Row row) noexcept { return row_counts[static_cast<std::size_t>(row)].load(std::memory_order_relaxed); }
void count_row(Row row) noexcept { row_counts[static_cast<std::size_t>(row)].fetch_add(1, std::memory_order_relaxed); }

}  // namespace taiyen::store
