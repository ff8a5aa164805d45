#pragma once
/// AuditShadow: a second copy of a heap's span that only ever receives what change sets say. Where it differs from the span, a write escaped capture.
///
/// (I1) Between cuts the shadow holds the span as the last cut left it, if every write was captured.
/// Costs as much memory as the heap holds data, and a comparison of every page that was ever written per proof: for tests, and for those who can afford it at each save.
/// Thread rule: as the heap.

#include <memory>
#include <optional>

#include <taiyen/base/units.hpp>

#include "change/change_set.hpp"
#include "change/side_memory.hpp"
#include "heap/core.hpp"
#include "vm/page_tracker.hpp"

namespace taiyen::change {

class AuditShadow {
public:
    /// Copies [0, mapped) of the core's span. Throws: HeapFull{address_space}, Error{io_error} (this system doesn't tell which pages were written).
    AuditShadow(const heap::HeapCore& core, ByteCount mapped);

    /// Applies one direction of a set.
    void follow(const ChangeSetView& changes, Direction direction) noexcept;
    /// The span grew, by zeros. Throws: HeapFull{address_space}.
    void extended(ByteCount to);
    /// First byte that differs.
    std::optional<HeapOffset> first_difference() const;
    /// Throws: Error{uncaptured_store} naming offset and block.
    void prove() const;

private:
    const heap::HeapCore& core_;
    vm::PageTracker tracker_;
    SideMemory copy_;
    ByteCount mapped_;
};

/// The bytes of one direction, written to `target` as if it were the span. Procedures are skipped.
void write_changes(std::byte* target, const ChangeSetView& changes, Direction direction) noexcept;
/// The same for one entry.
void write_entry(std::byte* target, const Entry& entry, Direction direction) noexcept;

}  // namespace taiyen::change
