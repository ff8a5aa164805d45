#pragma once
/// The bytes of a transaction in the log: one record of a group (log/group.hpp). FORMAT.md says why.
///
///   RecordHead | redo (change/redo.hpp)

#include <cstddef>
#include <cstdint>

namespace taiyen::txn::layout {

struct RecordHead {
    std::uint64_t serial;      ///< of the transaction; consecutive
    std::uint64_t extent;      ///< bytes of the span as of this transaction, a multiple of 4 KiB
    std::uint32_t flags;       ///< record_…
    std::uint32_t redo_bytes;  ///< that follow, to the end of the record
};
static_assert(sizeof(RecordHead) == 24 && offsetof(RecordHead, flags) == 16 && offsetof(RecordHead, redo_bytes) == 20);

/// The redo holds an entry that takes the whole heap to do it again (a procedure's call, moved pages), not only the pages that it changes.
inline constexpr std::uint32_t record_needs_heap = 1;
inline constexpr std::uint32_t record_flags = record_needs_heap;

}  // namespace taiyen::txn::layout
