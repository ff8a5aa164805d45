#pragma once
/// The parts of an engine, wired: span → page map → supply ↔ small and packed blocks → runs → roots.

#include <atomic>

#include "heap/packed_blocks.hpp"
#include "heap/root_directory.hpp"

namespace taiyen::heap {

struct Engine::State {
    State(std::byte* base, ByteCount capacity_bytes, SpanHost& host, WriteObserver* observer, bool is_read_only, Page zone_distance)
        : span(base, observer), geometry(capacity_bytes, zone_distance), pages(span, geometry, is_read_only), bins(geometry.page_end()),
          pointer_free_bins(geometry.page_end()), supply(span, pages, host, is_read_only), packed(span, pages, bins, supply),
          small(Content::any, span, pages, bins, supply, packed), pointer_free(Content::pointer_free, span, pages, pointer_free_bins, supply, packed),
          runs(span, pages, supply, small), directory(span, pages, runs), capacity(capacity_bytes), read_only(is_read_only),
          moving_host(observer == nullptr && host.moves_pages() ? &host : nullptr) {
        supply.connect(small, pointer_free);
        if (moving_host != nullptr) pages.set_memory_comes_with_use();
        class_bytes_end = read_only ? 0 : class_granules_max * layout::granule_bytes + 1;
    }

    /// The live block at that page and granule, if one starts there (directory runs too, see `kind`).
    struct Found {
        Block block;
        bool internal;
    };
    /// The block that contains the offset.
    std::optional<Found> owner(std::uint64_t offset) const;
    SmallBlocks& small_of(Content content) { return content == Content::any ? small : pointer_free; }
    void forget(PageRun run) {
        small.forget(run);
        pointer_free.forget(run);
    }
    /// Length of the block that starts exactly at the offset; 0 if none does or the engine owns it.
    ByteCount usable_at(std::uint64_t offset) const;
    /// Visits blocks of pages in the extent, ascending; stops when `visit` returns false.
    void visit(const std::function<bool(const Found&)>& visit) const;
    void require_writable() const;
    /// What a change of the block that begins on the page relies on is proven. Throws: Error{corrupt | io_error}.
    void prove_block(Page page);
    /// The same of the root directory; `reading`: of what lookups rely on.
    void prove_directory(bool reading = false);
    /// Brings the content to a block's new place; which of the old one's bytes went without a copy.
    SpanHost::MovedBytes relocate(const Runs::Place& to, const std::byte* block, ByteCount bytes);
    void copy(std::byte* target, const std::byte* block, ByteCount bytes);
    [[gnu::noinline]] void* allocate_slowly(ByteCount bytes, ByteCount alignment, Content content);
    /// A block whose user can do with an alignment of 8.
    [[gnu::noinline]] void* allocate_packed(ByteCount bytes, Content content);
    [[gnu::noinline]] void* allocate_observed(unsigned size_class, Content content);
    [[gnu::noinline]] FreeResult free_observed(std::uint64_t offset) noexcept;
    [[gnu::noinline]] FreeResult free_packed(std::uint64_t offset) noexcept { return packed.free(offset); }
    [[gnu::noinline]] FreeResult free_pointer_free(std::uint64_t offset) noexcept;
    [[gnu::noinline]] FreeResult deallocate_slowly(std::uint64_t offset) noexcept;

    Span span;
    Geometry geometry;
    PageMap pages;
    PageBins bins;  ///< of content any, and of packed pages
    PageBins pointer_free_bins;
    PageSupply supply;
    PackedBlocks packed;
    SmallBlocks small;
    SmallBlocks pointer_free;
    Runs runs;
    RootDirectory directory;
    ByteCount capacity;
    ByteCount class_bytes_end = 0;  ///< smaller requests have a class; 0 in a heap opened for reading
    std::uint64_t outside_changes = 0;
    bool read_only;
    SpanHost* moving_host;  ///< null: blocks move by copying
    // Where it lay when it was proven, and when it was proven for lookups: several threads may look names up at once.
    std::atomic<std::uint64_t> proven_directory = 0;
    std::atomic<std::uint64_t> readable_directory = 0;
};

}  // namespace taiyen::heap
