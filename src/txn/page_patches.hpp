#pragma once
/// PagePatches: which pages, of span and annex, the transactions of a piece of the log change, and their bytes: for saves that go on beside the program.
///
/// The program's memory is not looked at: base images from the files, and the log's bytes, give the pages as of the newest transaction of the piece. The log is read again for
/// each batch of pages, so that memory stays bounded whatever the log holds.
/// Thread rule: one thread; the ring may be appended to meanwhile.

#include <optional>
#include <span>
#include <vector>

#include <taiyen/base/units.hpp>

#include "io/storage.hpp"
#include "log/ring.hpp"
#include "txn/record.hpp"

namespace taiyen::txn {

class PagePatches {
public:
    /// The piece: from `start`, where the group of `contained` + 1 begins, to the end of the group that holds `last`, which is durable.
    PagePatches(const io::File& log, const log::RingIdentity& identity, const log::RingStart& start, Serial contained, Serial last, ByteCount capacity);

    /// First pass. Throws: Error{corrupt | io_error}.
    void read();
    /// Pages that change, ascending.
    const std::vector<PageNumber>& pages() const { return pages_; }
    /// Of the span as of the piece's newest transaction.
    ByteCount extent() const { return extent_; }
    /// The annex as of the piece's newest transaction; nothing: none changed it.
    const std::optional<store::AnnexHead>& annex() const { return annex_; }
    /// Whether some transaction needs more than the pages that it changes; then there are no patches.
    bool needs_heap() const { return needs_heap_; }
    /// Brings the images, one for each page in its order, from before the piece to behind it. Requires: read; !needs_heap. Throws: Error{corrupt | io_error}.
    void patch(std::span<const PageNumber> pages, std::span<std::byte> images) const;

private:
    template <class F>
    void for_each_transaction(F&& visit) const;
    void drop_doubles();

    const io::File& log_;
    const log::RingIdentity& identity_;
    log::RingStart start_;
    Serial contained_;
    Serial last_;
    ByteCount capacity_;
    ByteCount extent_ = 0;
    std::optional<store::AnnexHead> annex_;
    bool needs_heap_ = false;
    std::vector<PageNumber> pages_;
};

}  // namespace taiyen::txn
