#pragma once
/// ProvenPages: a set of pages, a bit each, in memory that comes by 4,096 pages.
/// Thread rule: external lock.

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "store/geometry.hpp"

namespace taiyen::store {

class ProvenPages {
public:
    bool contains(PageNumber page) const noexcept {
        const Chunks& chunks = chunks_of(page);
        const std::uint64_t at = index_of(page);
        return at / chunk_pages < chunks.size() && chunks[at / chunk_pages] && (*chunks[at / chunk_pages])[at % chunk_pages];
    }
    /// Throws: std::bad_alloc.
    void add(PageNumber page) {
        Chunks& chunks = chunks_of(page);
        const std::uint64_t at = index_of(page);
        if (at / chunk_pages >= chunks.size()) chunks.resize(at / chunk_pages + 1);
        auto& chunk = chunks[at / chunk_pages];
        if (!chunk) chunk = std::make_unique<Chunk>();
        chunk->set(at % chunk_pages);
    }
    void remove(PageNumber first, std::uint64_t count) noexcept {
        Chunks& chunks = chunks_of(first);
        const std::uint64_t begin = index_of(first);
        for (std::uint64_t at = begin; at < begin + count && at / chunk_pages < chunks.size();) {
            const std::uint64_t end = std::min(begin + count, (at / chunk_pages + 1) * chunk_pages);
            if (auto& chunk = chunks[at / chunk_pages]; chunk && end - at == chunk_pages)
                chunk.reset();
            else if (chunk)
                for (std::uint64_t i = at; i < end; ++i) chunk->reset(i % chunk_pages);
            at = end;
        }
    }
    void clear() noexcept {
        for (Chunks& chunks : chunks_) chunks.clear();
    }

private:
    static constexpr std::uint64_t chunk_pages = 4096;
    using Chunk = std::bitset<chunk_pages>;
    using Chunks = std::vector<std::unique_ptr<Chunk>>;

    static std::uint64_t index_of(PageNumber page) noexcept { return page.value - page_of(start_of(sequence_of(page))).value; }
    const Chunks& chunks_of(PageNumber page) const noexcept { return chunks_[static_cast<std::size_t>(sequence_of(page))]; }
    Chunks& chunks_of(PageNumber page) noexcept { return chunks_[static_cast<std::size_t>(sequence_of(page))]; }

    std::array<Chunks, 2> chunks_;  ///< of the span, of the annex
};

}  // namespace taiyen::store
