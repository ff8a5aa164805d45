#include "store/recovery_table.hpp"

#include <array>
#include <atomic>
#include <cstddef>

namespace taiyen::store {
namespace {

std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Row::count_)> row_counts{};

/// A crash leaves the data file ahead by the one save that was under way.
bool is_one_ahead(const CopiesFound& found) noexcept {
    return !found.data_clean && found.data_generation.value == found.backing_generation.value + 1;
}

/// Whether the data file holds what the backing file's header speaks of, or the save after it.
bool has_all(const CopiesFound& found) noexcept {
    return found.data == CopiesFound::Data::whole && !found.data_short && (found.data_generation == found.backing_generation || is_one_ahead(found));
}

}  // namespace

CopyRow choose_row(const CopiesFound& found) noexcept {
    using Data = CopiesFound::Data;
    if (found.backing_lost) {
        if (found.data != Data::whole || found.data_unused) return CopyRow::refused_lost;
        return found.data_short ? CopyRow::refused_short : CopyRow::backing_rebuilt;
    }
    if (found.backing_short && !has_all(found)) return CopyRow::refused_short;
    if (found.backing_short) return CopyRow::backing_rebuilt;
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
    return is_one_ahead(found) ? CopyRow::data_to_backing : CopyRow::refused_apart;
}

std::uint64_t rows_taken(Row row) noexcept { return row_counts[static_cast<std::size_t>(row)].load(std::memory_order_relaxed); }
void count_row(Row row) noexcept { row_counts[static_cast<std::size_t>(row)].fetch_add(1, std::memory_order_relaxed); }

}  // namespace taiyen::store
