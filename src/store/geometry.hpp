#pragma once
/// Where a page and its checksum lie in a heap's file.
///
/// A file holds two sequences of pages: the span, which the program sees, and the annex beside it, which only the library uses. Each is cut into chunks, 1 MiB, then
/// 1, 2, 4, … MiB; each chunk's checksum-table pages lie in front of it. So the file's size grows with use, never with capacity, and a terabyte is 21 mappings.
/// In the file the chunks of both sequences follow each other as they were begun: FileLayout.
///
/// (I1) What a page number says of its chunk, its table page and its entry is the same in every file; only FileLayout knows of file offsets.
/// (I2) A chunk never moves: layouts grow at the end, and a heap without annex has closed formulas.
/// Pages of the annex have numbers, and its table pages indexes, far above those of any span.
/// Thread rule: values.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include <taiyen/base/check.hpp>
#include <taiyen/base/units.hpp>

#include "store/heap_layout.hpp"

namespace taiyen::store {

enum class Sequence { span, annex };

/// The first byte of the annex, as a place beside the span.
inline constexpr HeapOffset annex_start{std::uint64_t{1} << 52U};
inline constexpr PageNumber annex_first_page = page_of(annex_start);
inline constexpr std::uint64_t annex_first_table_page = std::uint64_t{1} << 32U;

constexpr Sequence sequence_of(HeapOffset offset) { return offset < annex_start ? Sequence::span : Sequence::annex; }
constexpr Sequence sequence_of(PageNumber page) { return page < annex_first_page ? Sequence::span : Sequence::annex; }
constexpr HeapOffset start_of(Sequence sequence) { return sequence == Sequence::span ? HeapOffset{0} : annex_start; }

/// How much of each sequence files hold; in bytes, multiples of 4 KiB.
struct Extents {
    ByteCount span = 0;
    ByteCount annex = 0;

    constexpr ByteCount of(Sequence sequence) const { return sequence == Sequence::span ? span : annex; }
    constexpr bool hold(PageNumber page) const {
        return page.value - page_of(start_of(sequence_of(page))).value < of(sequence_of(page)) / page_bytes;
    }
    bool operator==(const Extents&) const = default;
};

/// A chunk of either sequence, counted from the sequence's beginning.
struct ChunkShape {
    std::uint64_t first;  ///< byte of the sequence
    ByteCount bytes;
    std::uint64_t first_table_page;  ///< of the sequence's
    std::uint64_t table_pages;

    constexpr ByteCount file_bytes() const { return table_pages * page_bytes + bytes; }
};

inline constexpr std::array<ChunkShape, chunks_max> chunk_shapes = [] {
    std::array<ChunkShape, chunks_max> shapes{};
    ChunkShape shape{0, first_chunk_bytes, 0, 0};
    for (std::size_t k = 0; k < chunks_max; ++k) {
        shape.table_pages = (shape.bytes / page_bytes + entries_per_table_page - 1) / entries_per_table_page;
        shapes[k] = shape;
        shape.first += shape.bytes;
        shape.first_table_page += shape.table_pages;
        shape.bytes = shape.first;
    }
    return shapes;
}();

/// Which chunk of its sequence holds the byte.
constexpr std::size_t chunk_of(HeapOffset offset) {
    return static_cast<std::size_t>(std::bit_width((offset.value - start_of(sequence_of(offset)).value) / first_chunk_bytes));
}

/// How many chunks an extent of a sequence needs.
constexpr std::size_t chunks_for(ByteCount extent) { return extent == 0 ? 0 : chunk_of({extent - 1}) + 1; }

/// How many bytes from `offset` on lie contiguously in every file.
constexpr ByteCount contiguous_bytes(HeapOffset offset) {
    const ChunkShape& shape = chunk_shapes[chunk_of(offset)];
    return shape.first + shape.bytes - (offset.value - start_of(sequence_of(offset)).value);
}

/// The table page and the entry in it that hold a page's checksum.
struct TablePlace {
    std::uint64_t table_page;
    std::size_t entry;
};
constexpr TablePlace place_of(PageNumber page) {
    const HeapOffset offset = offset_of(page);
    const Sequence sequence = sequence_of(offset);
    const ChunkShape& shape = chunk_shapes[chunk_of(offset)];
    const std::uint64_t within = (offset.value - start_of(sequence).value - shape.first) / page_bytes;
    return {(sequence == Sequence::span ? 0 : annex_first_table_page) + shape.first_table_page + within / entries_per_table_page,
            static_cast<std::size_t>(within % entries_per_table_page)};
}

/// The pages [first, first + count) that a table page covers, in its chunk.
struct TableCover {
    PageNumber first;
    std::uint64_t count;
    std::size_t chunk;
    std::uint64_t within;  ///< which of the chunk's table pages
};
constexpr TableCover cover_of(std::uint64_t table_page) {
    const Sequence sequence = table_page < annex_first_table_page ? Sequence::span : Sequence::annex;
    const std::uint64_t index = table_page - (sequence == Sequence::span ? 0 : annex_first_table_page);
    std::size_t k = 0;
    while (index >= chunk_shapes[k].first_table_page + chunk_shapes[k].table_pages) ++k;
    const ChunkShape& shape = chunk_shapes[k];
    const std::uint64_t within = index - shape.first_table_page;
    const std::uint64_t pages = shape.bytes / page_bytes;
    const std::uint64_t first = within * entries_per_table_page;
    return {{(start_of(sequence).value + shape.first) / page_bytes + first},
            pages - first < entries_per_table_page ? pages - first : entries_per_table_page,
            k,
            within};
}
constexpr Sequence sequence_of_table(std::uint64_t table_page) { return table_page < annex_first_table_page ? Sequence::span : Sequence::annex; }

/// Calls `visit(index)` for each table page that covers a page within the extents, span first.
template <class F>
constexpr void for_each_table_page(const Extents& extents, F&& visit) {
    for (const Sequence sequence : {Sequence::span, Sequence::annex}) {
        if (const ByteCount extent = extents.of(sequence); extent != 0) {
            const HeapOffset start = start_of(sequence);
            const std::uint64_t last = place_of(page_of({start.value + extent - page_bytes})).table_page;
            for (std::uint64_t index = place_of(page_of(start)).table_page; index <= last; ++index) visit(index);
        }
    }
}

/// Whether a page within the extents is covered by that table page.
constexpr bool holds_table(const Extents& extents, std::uint64_t index) {
    const Sequence sequence = sequence_of_table(index);
    const ByteCount extent = extents.of(sequence);
    return extent != 0 && index <= place_of(page_of({start_of(sequence).value + extent - page_bytes})).table_page;
}

/// Calls `piece(HeapOffset, ByteCount)` for the parts of [offset, offset + length) that lie contiguously in every file.
template <class F>
void for_each_piece(HeapOffset offset, ByteCount length, F&& piece) {
    while (length > 0) {
        const ByteCount part = length < contiguous_bytes(offset) ? length : contiguous_bytes(offset);
        piece(offset, part);
        offset.value += part;
        length -= part;
    }
}

/// Where the chunks of both sequences lie in a file.
class FileLayout {
public:
    /// Without annex.
    constexpr FileLayout() : FileLayout(AnnexPlaces{}) {}
    /// Requires: `are_places`.
    explicit constexpr FileLayout(const AnnexPlaces& places) : places_(places) {
        std::uint64_t at = chunks_offset;
        for (std::size_t span = 0, annex = 0; span < chunks_max; ++span) {
            for (; annex < chunks_max && places_[annex] != 0 && places_[annex] <= span; ++annex) {
                annex_at_[annex] = at;
                at += chunk_shapes[annex].file_bytes();
            }
            span_at_[span] = at;
            at += chunk_shapes[span].file_bytes();
            for (; span + 1 == chunks_max && annex < chunks_max && places_[annex] != 0; ++annex) {
                annex_at_[annex] = at;
                at += chunk_shapes[annex].file_bytes();
            }
        }
    }

    const AnnexPlaces& places() const { return places_; }
    std::size_t annex_chunks() const {
        std::size_t count = 0;
        while (count < chunks_max && places_[count] != 0) ++count;
        return count;
    }
    /// The places of the chunks that an annex of that extent needs.
    AnnexPlaces places_for(ByteCount annex_extent) const {
        AnnexPlaces places{};
        std::copy_n(places_.begin(), chunks_for(annex_extent), places.begin());
        return places;
    }
    /// The same layout with room for an annex of that extent: chunks that have no place yet get one behind the span chunks that an extent of `span` needs, and behind
    /// everything placed before.
    FileLayout with_annex(ByteCount annex_extent, ByteCount span) const {
        AnnexPlaces places = places_;
        for (std::size_t k = annex_chunks(); k < chunks_for(annex_extent); ++k) places[k] = static_cast<std::uint8_t>(chunks_for(span));
        return FileLayout(places);
    }

    /// Whether the chunk has a place: span chunks always do.
    bool has(Sequence sequence, std::size_t chunk) const { return chunk < chunks_max && (sequence == Sequence::span || places_[chunk] != 0); }
    /// Where a chunk's table pages begin; its pages follow them.
    std::uint64_t table_of(Sequence sequence, std::size_t chunk) const {
        TAIYEN_CHECK(has(sequence, chunk));
        return sequence == Sequence::span ? span_at_[chunk] : annex_at_[chunk];
    }
    /// Where a byte of span or annex lies.
    std::uint64_t file_offset(HeapOffset offset) const {
        const Sequence sequence = sequence_of(offset);
        const std::size_t chunk = chunk_of(offset);
        const ChunkShape& shape = chunk_shapes[chunk];
        return table_of(sequence, chunk) + shape.table_pages * page_bytes + (offset.value - start_of(sequence).value - shape.first);
    }
    /// Where a table page lies.
    std::uint64_t table_offset(std::uint64_t table_page) const {
        const TableCover cover = cover_of(table_page);
        return table_of(sequence_of_table(table_page), cover.chunk) + cover.within * page_bytes;
    }
    /// Size of a file that holds the extents.
    std::uint64_t file_bytes_for(const Extents& extents) const {
        std::uint64_t bytes = chunks_offset;
        for (const Sequence sequence : {Sequence::span, Sequence::annex})
            if (const ByteCount extent = extents.of(sequence); extent != 0)
                bytes = std::max(bytes, file_offset({start_of(sequence).value + extent - page_bytes}) + page_bytes);
        return bytes;
    }

private:
    AnnexPlaces places_{};
    std::array<std::uint64_t, chunks_max> span_at_{};
    std::array<std::uint64_t, chunks_max> annex_at_{};
};

/// Whether stored places fit the extents: as many as the annex needs, ascending, each behind a chunk that the span has.
constexpr bool are_places(const AnnexPlaces& places, const Extents& extents) {
    std::size_t before = 1;
    for (std::size_t k = 0; k < chunks_max; ++k) {
        const bool needed = k < chunks_for(extents.annex);
        if (needed ? places[k] < before || places[k] > chunks_for(extents.span) : places[k] != 0) return false;
        before = places[k];
    }
    return true;
}

/// Whether `after` has all chunks of the annex where `before` has them.
constexpr bool grows_from(const AnnexHead& before, const AnnexHead& after) {
    const auto chunks = static_cast<std::ptrdiff_t>(chunks_for(before.extent));
    return after.extent >= before.extent && std::equal(before.places.begin(), before.places.begin() + chunks, after.places.begin());
}

/// Whether stored bytes can be an annex beside a span of that extent.
constexpr bool is_annex(const AnnexHead& annex, ByteCount span) {
    return annex.extent <= sequence_bytes_max && annex.extent % page_bytes == 0 && annex.used <= annex.extent && annex.used % page_bytes == 0 &&
           are_places(annex.places, {span, annex.extent});
}

static_assert(chunk_of({first_chunk_bytes - 1}) == 0 && chunk_of({first_chunk_bytes}) == 1 && chunk_of({2 * first_chunk_bytes}) == 2);
static_assert(chunk_shapes.back().first + chunk_shapes.back().bytes == sequence_bytes_max);

}  // namespace taiyen::store
