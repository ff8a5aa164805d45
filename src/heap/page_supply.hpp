#pragma once
/// Finds runs of available pages, and when there are none: empty small pages, a larger extent, other blocks' growth buffers, zones, in this order.

#include <array>

#include <taiyen/base/error.hpp>

#include "heap/metadata_proofs.hpp"
#include "heap/page_map.hpp"

namespace taiyen::heap {

class SmallBlocks;

class PageSupply {
public:
    PageSupply(const Span& span, PageMap& pages, SpanHost& host, bool read_only)
        : span_(span), pages_(pages), host_(host), proofs_(pages, host, read_only) {}
    void connect(SmallBlocks& any, SmallBlocks& pointer_free) { small_ = {&any, &pointer_free}; }

    /// First page of `count` available pages, a multiple of `alignment`; they stay available until the caller writes their states.
    /// `wanted`: bytes, for the error. Throws: HeapFull, Error{corrupt}.
    Page find(Page count, Page alignment, ByteCount wanted);
    /// Looks for packed pages with room that are not known yet, a bounded number; true if some are known now.
    bool look_for_room();
    /// Gives those of the pages that hold no block back to the page map; true if there were any.
    bool reclaim(PageRun run);
    /// The same for all pages that are known.
    bool release_empty_pages();
    /// Tells the host of pages that are about to be used. Throws: HeapFull.
    void about_to_use(PageRun run);
    /// Extends the span so that [.., end) belongs to the extent, if the capacity allows it; false if not, or if the host refused.
    bool extend_to(Page end);
    /// Makes all growth buffers available; false if there were none.
    bool surrender_growth();
    /// Bytes of the largest block that could be had now; `growing`: with growth of the extent.
    ByteCount largest_block(bool growing) const;
    [[noreturn]] void throw_full(ByteCount wanted, HeapFull::Cause cause) const;
    MetadataProofs& proofs() { return proofs_; }

private:
    enum class Zones { avoided, used };
    /// True: a run of `count` pages has come into being. `zones`: whether it may begin in a zone, or lie over one without need.
    bool grow_for(Page count, Page alignment, Zones zones, std::optional<HeapFull::Cause>& refused);
    bool know_all();

    const Span span_;
    PageMap& pages_;
    SpanHost& host_;
    MetadataProofs proofs_;
    std::array<SmallBlocks*, 2> small_{};  ///< by content
};

}  // namespace taiyen::heap
