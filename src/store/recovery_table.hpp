#pragma once
/// The table of FORMAT.md, "Recovery": what the headers of a heap's two page files say, and what is done.
/// Thread rule: safe.

#include <cstdint>

#include <taiyen/base/units.hpp>

namespace taiyen::store {

/// What the two files are found to be, from their headers and lengths.
struct CopiesFound {
    enum class Data {
        none,     ///< the heap has no data file
        missing,  ///< it has, but there is no such file
        lost,     ///< both of its header slots are damaged
        filling,  ///< it was being filled from the backing file
        whole
    };
    bool backing_lost = false;   ///< it is missing, or both of its header slots are damaged or gone
    bool backing_short = false;  ///< it ends before its header says
    Generation backing_generation;
    Data data = Data::none;
    Generation data_generation;
    bool data_short = false;   ///< it ends before its header says
    bool data_clean = false;   ///< its header says that the heap was closed
    bool data_unused = false;  ///< nothing was saved into it yet, and maybe the backing file has never got its name
};

/// What is done with the two files; then what the ring has goes into both.
enum class CopyRow {
    alone,            ///< there is one
    alike,            ///< nothing
    data_given_up,    ///< the backing file goes on without the data file, which is missing
    backing_rebuilt,  ///< the data file goes into the backing file, all of it; a header that is there is no longer believed
    data_to_backing,  ///< what is newer in the data file goes into the backing file
    backing_to_data,  ///< the other way round
    data_refilled,    ///< the backing file goes into the data file, all of it, once it has what the ring has
    refused_lost,     ///< neither has a header that can be relied on
    refused_short,    ///< the one that counts ends early, and no other is as new
    refused_apart     ///< no crash leaves them so: one of them is an old copy
};
CopyRow choose_row(const CopiesFound& found) noexcept;

/// What recoveries have done; counted for the tests.
enum class Row {
    slot_repaired,
    backing_rebuilt,
    clean,
    data_refilled,
    data_to_backing,
    backing_to_data,
    records_installed,
    stage_installed,
    log_replayed,
    torn_record_cut,
    table_page_rebuilt,
    orphan_removed,
    count_
};
/// How often in this process (relaxed).
std::uint64_t rows_taken(Row row) noexcept;
void count_row(Row row) noexcept;

}  // namespace taiyen::store
