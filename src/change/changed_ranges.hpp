#pragma once
/// Which bytes of a page become entries of a change set: one rule for every recorder, so that all of them give the same set, byte for byte.
///
/// (I1) An entry begins and ends with a byte that differs.
/// (I2) Bytes of one page that differ are in one entry if fewer than `merge_gap` equal bytes lie between neighbours; an entry never crosses a page's end.
/// (I3) So a recorder may compare a page piece by piece, as long as what lies between two pieces is at least a line long and unchanged.
/// Thread rule: external lock on both sides.

#include <taiyen/base/units.hpp>

#include "change/change_set.hpp"

namespace taiyen::change {

/// Unit of comparing: pieces begin and end at multiples of it.
inline constexpr ByteCount line_bytes = 64;
/// An entry costs 24 bytes and padding, an equal byte within one costs two.
inline constexpr ByteCount merge_gap = 16;
static_assert(merge_gap <= line_bytes && page_bytes % line_bytes == 0);

/// Appends the ranges of [where, where + length) whose bytes differ, ascending. The piece lies within one page and consists of whole lines.
/// Throws: std::bad_alloc; some ranges may be appended then.
void add_changed_ranges(ChangeSet& out, HeapOffset where, const std::byte* before, const std::byte* after, ByteCount length);

}  // namespace taiyen::change
