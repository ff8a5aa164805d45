#pragma once
/// Which pages of a private file mapping were written: exactly those that are private copies.
///
/// Written = (present or swapped) and not a file page; zero pages count (PROTOCOL: a load of an anonymous zero page can't happen in a file mapping).
/// Two ways that give the same answer: ioctl PAGEMAP_SCAN (Linux 6.7, ioctl_pagemap_scan(2const)) and reading /proc/thread-self/pagemap bit 61 (any kernel,
/// Documentation/admin-guide/mm/pagemap.rst). Chosen at run time; `TrackerKind` or the environment variable TAIYEN_PAGE_TRACKER=scan|pagemap forces one.
///
/// (I1) The pagemap file is opened once, when the tracker is made (rlimits and chroots later don't matter).
/// Thread rule: external lock.

#include <cstdint>
#include <string_view>
#include <vector>

#include <taiyen/base/units.hpp>

#include "base/descriptor.hpp"

namespace taiyen::vm {

enum class TrackerKind { automatic, scan, pagemap };

/// A run of pages: [first, first + count), counted from the start of the scanned range.
struct PageRun {
    std::uint64_t first;
    std::uint64_t count;
    bool operator==(const PageRun&) const = default;
};

class PageTracker {
public:
    /// Throws: Error{io_error} if the kernel offers neither way (or not the forced one).
    explicit PageTracker(TrackerKind kind = TrackerKind::automatic);

    /// The written pages of [address, address + length), ascending, maximal runs, appended to `runs` (page numbers relative to `address`).
    /// Complexity: by populated page table entries, about 20 ns each. Throws: Error{io_error}.
    void written_pages(const void* address, ByteCount length, std::vector<PageRun>& runs) const;
    /// "PAGEMAP_SCAN" or "pagemap".
    std::string_view name() const;
    TrackerKind kind() const { return kind_; }

private:
    TrackerKind kind_;
    Descriptor descriptor_;
};

}  // namespace taiyen::vm
