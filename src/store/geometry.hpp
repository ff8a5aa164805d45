#pragma once
/// Where a page and its checksum lie in a heap's file: closed formulas, no stored tables.
///
/// The span is cut into chunks, 1 MiB, then 1, 2, 4, … MiB; each chunk's checksum-table pages lie in front of it. So the file's size grows with use, never with
/// capacity, and a terabyte is 21 mappings.

#include <bit>
#include <cstdint>

#include <taiyen/base/units.hpp>

#include "store/heap_layout.hpp"

namespace taiyen::store {

struct Chunk {
    std::uint64_t span_offset;        ///< first byte of the span in it
    ByteCount span_bytes;
    std::uint64_t first_table_page;   ///< global index
    std::uint64_t table_pages;
    std::uint64_t table_file_offset;
    std::uint64_t pages_file_offset;
};

constexpr std::size_t chunk_of(HeapOffset offset) {
    return static_cast<std::size_t>(std::bit_width(offset.value / first_chunk_bytes));
}

constexpr Chunk chunk_at(std::size_t index) {
    Chunk chunk{0, 0, 0, 0, chunks_offset, 0};
    for (std::size_t k = 0;; ++k) {
        chunk.span_bytes = k == 0 ? first_chunk_bytes : first_chunk_bytes << (k - 1);
        chunk.table_pages = (chunk.span_bytes / page_bytes + entries_per_table_page - 1) / entries_per_table_page;
        chunk.pages_file_offset = chunk.table_file_offset + chunk.table_pages * page_bytes;
        if (k == index) {
            return chunk;
        }
        chunk.span_offset += chunk.span_bytes;
        chunk.first_table_page += chunk.table_pages;
        chunk.table_file_offset = chunk.pages_file_offset + chunk.span_bytes;
    }
}

/// Where a byte of the span lies in the file.
constexpr std::uint64_t file_offset(HeapOffset offset) {
    const Chunk chunk = chunk_at(chunk_of(offset));
    return chunk.pages_file_offset + (offset.value - chunk.span_offset);
}

/// How many bytes from `offset` on lie contiguously in the file.
constexpr ByteCount contiguous_bytes(HeapOffset offset) {
    const Chunk chunk = chunk_at(chunk_of(offset));
    return chunk.span_offset + chunk.span_bytes - offset.value;
}

/// The table page and the entry in it that hold a page's checksum.
struct TablePlace {
    std::uint64_t table_page;
    std::size_t entry;
};
constexpr TablePlace place_of(PageNumber page) {
    const Chunk chunk = chunk_at(chunk_of(offset_of(page)));
    const std::uint64_t within = page.value - chunk.span_offset / page_bytes;
    return {chunk.first_table_page + within / entries_per_table_page, static_cast<std::size_t>(within % entries_per_table_page)};
}

/// A table page's place in the file, and the pages [first, first + count) of the span that it covers.
struct TableCover {
    std::uint64_t file_offset;
    PageNumber first;
    std::uint64_t count;
};
constexpr TableCover cover_of(std::uint64_t table_page) {
    std::size_t k = 0;
    Chunk chunk = chunk_at(0);
    while (table_page >= chunk.first_table_page + chunk.table_pages) {
        chunk = chunk_at(++k);
    }
    const std::uint64_t within = table_page - chunk.first_table_page;
    const std::uint64_t pages = chunk.span_bytes / page_bytes;
    const std::uint64_t first = within * entries_per_table_page;
    return {chunk.table_file_offset + within * page_bytes, {chunk.span_offset / page_bytes + first},
            pages - first < entries_per_table_page ? pages - first : entries_per_table_page};
}

/// Number of table pages that cover [0, extent).
constexpr std::uint64_t table_pages_for(ByteCount extent) {
    return extent == 0 ? 0 : place_of({(extent - 1) / page_bytes}).table_page + 1;
}

/// Size of a file that holds [0, extent).
constexpr std::uint64_t file_bytes_for(ByteCount extent) {
    return extent == 0 ? chunks_offset : file_offset({extent - page_bytes}) + page_bytes;
}

static_assert(file_offset({0}) == chunks_offset + page_bytes);
static_assert(chunk_of({first_chunk_bytes - 1}) == 0 && chunk_of({first_chunk_bytes}) == 1 && chunk_of({2 * first_chunk_bytes}) == 2);

}  // namespace taiyen::store
