#pragma once
/// LivePages cuts a heap's live pages into chunks, in ascending order; ChunkBody gathers the live bytes of one.
///
/// Pages of zeros and free pages are in no chunk; within a page, free bytes are left out where they come in gaps that are worth a run, and are zeros elsewhere.

#include <span>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "transfer/page_source.hpp"
#include "transfer/transfer_layout.hpp"

namespace taiyen::transfer {

/// Pages that one chunk has content for.
struct ChunkPages {
    std::vector<std::uint64_t> pages;      ///< ascending, at most layout::chunk_pages_max
    std::vector<std::uint64_t> checksums;  ///< theirs
};

/// Thread rule: one thread.
class LivePages {
public:
    explicit LivePages(PageSource& source, std::size_t chunk_pages = layout::chunk_pages_max) : source_(source), chunk_pages_(chunk_pages) {}
    /// The next ones; false: there are no more.
    bool next(ChunkPages& chunk);
    /// How far it is.
    std::uint64_t bytes_seen() const { return at_ * page_bytes; }

private:
    PageSource& source_;
    std::size_t chunk_pages_;  ///< at most so many in one
    std::uint64_t at_ = 0;
};

/// (I1) Pages are read to where their bytes go, and these move towards the front only behind a gap that is left out: what is full of live bytes is never copied.
/// Thread rule: one thread.
class ChunkBody {
public:
    /// A gap of less than `gap_bytes` is not worth a run.
    explicit ChunkBody(std::uint64_t gap_bytes = layout::gap_bytes_min);
    /// Reads the pages and gathers. Throws: as PageSource::read.
    void gather(const PageSource& source, const ChunkPages& chunk);
    std::uint32_t runs() const { return static_cast<std::uint32_t>(runs_.size()); }
    std::uint32_t content_bytes() const { return static_cast<std::uint32_t>(content_); }
    /// Runs and content, as the format has them.
    std::span<const std::byte> bytes() const { return body_.span().subspan(content_at - bytes_of_runs(), bytes_of_runs() + content_); }

    static constexpr ByteCount content_at = layout::chunk_runs_max * sizeof(layout::Run);
    static constexpr ByteCount body_bytes_max = content_at + layout::content_bytes_max;

private:
    ByteCount bytes_of_runs() const { return runs_.size() * sizeof(layout::Run); }
    /// The next live bytes, counted from the chunk's first page, and where they were read to.
    void add(std::uint64_t begin, std::uint64_t end, std::byte* bytes);
    /// Moves what is open to the content's end.
    void close_up();

    static constexpr std::size_t near_pages = 16;  ///< they are gathered while they lie in the processor's cache

    std::uint64_t gap_bytes_;
    AlignedBuffer body_;  ///< content from `content_at` on, runs right before it
    std::vector<layout::Run> runs_;
    ByteCount content_ = 0;
    std::span<std::byte> open_;  ///< what belongs behind the content: the newest run's bytes in pages that lie side by side
    std::uint64_t end_ = 0;      ///< of the newest run, from the chunk's first page
};

}  // namespace taiyen::transfer
