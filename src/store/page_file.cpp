#include "store/page_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"

namespace taiyen::store {
namespace {

/// What `read` says if the device refuses.
template <class Read>
std::optional<Error> refusal_of(Read read) {
    try {
        read();
    } catch (const Error& error) {
        if (error.code() != errc::io_error) throw;
        return error;
    }
    return std::nullopt;
}

}  // namespace

std::string text_of(PageNumber page) {
    const Sequence sequence = sequence_of(page);
    return "page " + std::to_string(page.value - page_of(start_of(sequence)).value) + (sequence == Sequence::annex ? " of the annex" : "");
}

void PageFile::read_pages(PageNumber first, std::span<std::byte> pages, Via via) const {
    for_each_part(first, pages, [&](std::span<std::byte> part, std::uint64_t offset) {
        const ByteCount got = via == Via::device ? file_->read_direct(part, offset) : file_->read(part, offset);
        std::memset(part.data() + got, 0, part.size() - got);
    });
}

std::optional<Error> PageFile::try_read_pages(PageNumber first, std::span<std::byte> pages, Via via) const {
    if (!refusal_of([&] { read_pages(first, pages, via); })) return std::nullopt;
    std::optional<Error> first_refusal;
    for (std::uint64_t i = 0; i * page_bytes < pages.size(); ++i) {
        const auto page = pages.subspan(i * page_bytes, page_bytes);
        if (auto refusal = refusal_of([&] { read_pages({first.value + i}, page, via); })) {
            std::memset(page.data(), 0, page.size());
            if (!first_refusal) first_refusal = std::move(refusal);
        }
    }
    return first_refusal;
}

void PageFile::write_pages(PageNumber first, std::span<const std::byte> pages) {
    for_each_part(first, pages, [&](std::span<const std::byte> part, std::uint64_t offset) { file_->write(part, offset); });
}

void PageFile::start_writing(PageNumber first, std::uint64_t count) {
    for_each_piece(offset_of(first), count * page_bytes,
                   [&](HeapOffset offset, ByteCount length) { file_->start_writing(layout.file_offset(offset), length); });
}

void PageFile::will_read(PageNumber first, std::uint64_t count) const noexcept {
    for_each_piece(offset_of(first), count * page_bytes,
                   [&](HeapOffset offset, ByteCount length) { file_->will_read(layout.file_offset(offset), length); });
}

void PageFile::wait_for_writing(PageNumber first, std::uint64_t count) {
    for_each_piece(offset_of(first), count * page_bytes,
                   [&](HeapOffset offset, ByteCount length) { file_->wait_for_writing(layout.file_offset(offset), length); });
}

void PageFile::write_zero_pages(PageNumber first, std::uint64_t count) {
    static const std::array<std::byte, 16 * page_bytes> zeros{};
    while (count > 0) {
        const std::uint64_t part = std::min<std::uint64_t>(count, zeros.size() / page_bytes);
        write_pages(first, std::span(zeros).first(part * page_bytes));
        first.value += part;
        count -= part;
    }
}

void PageFile::punch_pages(PageNumber first, std::uint64_t count) {
    for_each_piece(offset_of(first), count * page_bytes,
                   [&](HeapOffset offset, ByteCount length) { file_->punch(layout.file_offset(offset), length); });
}

void PageFile::read_table_page(std::uint64_t index, TablePage& page, Via via) const {
    const std::uint64_t at = layout.table_offset(index);
    if (via == Via::cache) {
        const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(&page), sizeof page);
        const ByteCount got = file_->read(bytes, at);
        std::memset(bytes.data() + got, 0, bytes.size() - got);
        return;
    }
    const AlignedBuffer buffer(page_bytes);
    const ByteCount got = file_->read_direct(buffer.span(), at);
    std::memset(buffer.data() + got, 0, page_bytes - got);
    std::memcpy(&page, buffer.data(), sizeof page);
}

std::optional<Error> PageFile::try_read_table_page(std::uint64_t index, TablePage& page, Via via) const {
    auto refusal = refusal_of([&] { read_table_page(index, page, via); });
    if (refusal) page = {};
    return refusal;
}

void PageFile::write_table_page(const TablePage& page) {
    file_->write({reinterpret_cast<const std::byte*>(&page), sizeof page}, layout.table_offset(page.index));
}

void PageFile::allocate(HeapOffset from, ByteCount length) {
    if (length == 0) return;
    // Neighbours come as one: a call for what has blocks already costs as much as one for what hasn't.
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    const auto add = [&](std::uint64_t first, ByteCount bytes) {
        if (first != end) {
            if (begin != end) file_->allocate(begin, end - begin);
            begin = first;
        }
        end = first + bytes;
    };
    for_each_piece(from, length, [&](HeapOffset offset, ByteCount part) {
        const std::uint64_t table = place_of(page_of(offset)).table_page;
        const std::uint64_t tables = place_of(page_of({offset.value + part - page_bytes})).table_page + 1 - table;
        add(layout.table_offset(table), tables * page_bytes);
        add(layout.file_offset(offset), part);
    });
    file_->allocate(begin, end - begin);
}

void PageFile::make_long_enough(const Extents& extents) {
    if (const std::uint64_t end = layout.file_bytes_for(extents); file_->info().size_bytes < end) file_->resize(end);
}

std::uint64_t PageFile::clear_growth(const Extents& before, const Extents& after, const std::function<bool(PageNumber)>& is_written) {
    std::uint64_t cleared = 0;
    for (const Sequence sequence : {Sequence::span, Sequence::annex})
        if (after.of(sequence) > before.of(sequence))
            cleared += clear_fresh({start_of(sequence).value + before.of(sequence)}, after.of(sequence) - before.of(sequence), is_written);
    return cleared;
}

std::uint64_t PageFile::clear_fresh(HeapOffset from, ByteCount length, const std::function<bool(PageNumber)>& is_written) {
    static constexpr std::array<std::byte, page_bytes> zeros{};
    alignas(page_bytes) std::array<std::byte, page_bytes> page;  // no memory is asked for where there is nothing: growing must not fail for that
    const std::uint64_t size = file_->info().size_bytes;
    std::uint64_t cleared = 0;
    const auto clear = [&](std::uint64_t first, std::uint64_t end, auto&& leaves_alone) {
        if (first >= std::min(end, size)) return;
        for (const io::File::Extent& data : file_->data_extents(first, std::min(end, size) - first)) {
            for (std::uint64_t at = data.offset / page_bytes * page_bytes; at < data.offset + data.length; at += page_bytes) {
                if (leaves_alone(at)) continue;
                ByteCount got = 0;
                if (refusal_of([&] { got = file_->read_direct(page, at); }) || !is_zero(std::span(page).first(got))) {
                    file_->write(zeros, at);
                    ++cleared;
                }
            }
        }
    };
    for_each_piece(from, length, [&](HeapOffset offset, ByteCount part) {
        std::uint64_t index = place_of(page_of(offset)).table_page;
        index += cover_of(index).first < page_of(offset) ? 1 : 0;
        if (const std::uint64_t last = place_of(page_of({offset.value + part - page_bytes})).table_page; index <= last)
            clear(layout.table_offset(index), layout.table_offset(last) + page_bytes, [](std::uint64_t) { return false; });
        const std::uint64_t first = layout.file_offset(offset);
        clear(first, first + part, [&](std::uint64_t at) { return is_written && is_written(page_of({offset.value + (at - first)})); });
    });
    return cleared;
}

void PageFile::clear_behind(const Extents& extents) {
    const std::uint64_t end = layout.file_bytes_for(extents);
    file_->resize(end);
    // In front of the end: the rest of the last chunk of each sequence, and of its table pages.
    const auto clear = [&](std::uint64_t from, std::uint64_t to) {
        if (from < std::min(to, end)) file_->punch(from, std::min(to, end) - from);
    };
    for (const Sequence sequence : {Sequence::span, Sequence::annex}) {
        const ByteCount extent = extents.of(sequence);
        if (extent == 0) continue;
        const PageNumber last = page_of({start_of(sequence).value + extent - page_bytes});
        const std::size_t chunk = chunk_of(offset_of(last));
        const std::uint64_t pages = layout.table_of(sequence, chunk) + chunk_shapes[chunk].table_pages * page_bytes;
        clear(layout.table_offset(place_of(last).table_page) + page_bytes, pages);
        clear(layout.file_offset(offset_of(last)) + page_bytes, pages + chunk_shapes[chunk].bytes);
    }
}

Error PageFile::corrupt_page(PageNumber page, const std::string& why) const {
    return Error(errc::corrupt, path(), layout.file_offset(offset_of(page)),
                 text_of(page) + " of the heap is damaged: " + why + "; restore the file from a copy");
}

void PageFile::throw_corrupt_page(PageNumber page, const std::string& why) const { throw corrupt_page(page, why); }

}  // namespace taiyen::store
