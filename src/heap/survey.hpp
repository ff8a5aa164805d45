#pragma once
/// Survey: what the pages of a span are used for, read from its metadata alone, page by page and run by run: faster than visiting blocks one by one.
///
/// It looks at the bytes of the super block, states and lines, as Engine does; damaged ones give wrong answers, never a read outside the extent. Thread rule: nobody changes the span meanwhile.

#include <functional>

#include "heap/geometry.hpp"
#include "heap/page_map.hpp"

namespace taiyen::heap {

enum class PageUse { metadata, small, packed, run, directory, growth, available, released };

/// Pages [first, first + count) of one use: each page of small or packed blocks on its own, a run of pages or of free ones in one piece.
struct PagesInUse {
    Page first = 0;
    Page count = 0;
    PageUse use = PageUse::metadata;
    ByteCount live_bytes = 0;       ///< of blocks, in these pages
    std::uint64_t blocks = 0;       ///< that begin in these pages
    std::uint64_t free_pieces = 0;  ///< small blocks: how many of 64 bytes fit between them
    ByteCount block_bytes = 0;      ///< a run: its whole size; packed pages: of each block; else 0
};

class Survey {
public:
    /// Throws: Error{corrupt}.
    Survey(const std::byte* span, ByteCount capacity);

    Page extent() const { return pages_.extent(); }
    /// From the first page of the extent to the last, metadata included; `visit` returns false to stop.
    void visit(const std::function<bool(const PagesInUse&)>& visit) const;
    /// Whether the byte is the user's, and no block has it.
    bool is_free(HeapOffset offset) const;

private:
    PagesInUse at(Page page) const;

    Span span_;
    Geometry geometry_;
    PageMap pages_;
};

}  // namespace taiyen::heap
