#pragma once
/// The bytes of a transaction in the log: one record of a group (log/group.hpp). FORMAT.md says why.
///
///   RecordHead | AnnexPart, if the flags say so | redo (change/redo.hpp) | redo of the annex

#include <cstddef>
#include <cstdint>

#include "store/heap_layout.hpp"

namespace taiyen::txn::layout {

struct RecordHead {
    std::uint64_t serial;      ///< of the transaction; consecutive
    std::uint64_t extent;      ///< bytes of the span as of this transaction, a multiple of 4 KiB
    std::uint32_t flags;       ///< record_…
    std::uint32_t redo_bytes;  ///< of the span; to the end of the record, if it has no annex part
};
static_assert(sizeof(RecordHead) == 24 && offsetof(RecordHead, flags) == 16 && offsetof(RecordHead, redo_bytes) == 20);

/// The redo holds an entry that takes the whole heap to do it again (a procedure's call, moved pages), not only the pages that it changes.
inline constexpr std::uint32_t record_needs_heap = 1;
/// The transaction changes the annex, too.
inline constexpr std::uint32_t record_has_annex = 2;
inline constexpr std::uint32_t record_flags = record_needs_heap | record_has_annex;

struct AnnexPart {
    store::AnnexHead annex;    ///< as of this transaction
    std::uint64_t redo_bytes;  ///< behind the span's, to the end of the record; offsets from the annex's begin
};
static_assert(sizeof(AnnexPart) == 48 && offsetof(AnnexPart, redo_bytes) == 40);

}  // namespace taiyen::txn::layout
