#include "store/page_file.hpp"

#include <algorithm>
#include <cstring>

#include "base/aligned_buffer.hpp"

namespace taiyen::store {

void PageFile::read_pages(PageNumber first, std::span<std::byte> pages, Via via) const {
    const HeapOffset start = offset_of(first);
    for_each_piece(start, pages.size(), [&](HeapOffset offset, ByteCount length) {
        const auto part = pages.subspan(offset.value - start.value, length);
        const ByteCount got = via == Via::device ? file_->read_direct(part, file_offset(offset)) : file_->read(part, file_offset(offset));
        std::memset(part.data() + got, 0, part.size() - got);
    });
}

void PageFile::write_pages(PageNumber first, std::span<const std::byte> pages) {
    const HeapOffset start = offset_of(first);
    for_each_piece(start, pages.size(), [&](HeapOffset offset, ByteCount length) {
        file_->write(pages.subspan(offset.value - start.value, length), file_offset(offset));
    });
}

void PageFile::start_writing(PageNumber first, std::uint64_t count) {
    for_each_piece(offset_of(first), count * page_bytes, [&](HeapOffset offset, ByteCount length) { file_->start_writing(file_offset(offset), length); });
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
                   [&](HeapOffset offset, ByteCount length) { file_->punch(file_offset(offset), length); });
}

void PageFile::read_table_page(std::uint64_t index, TablePage& page, Via via) const {
    const std::uint64_t at = cover_of(index).file_offset;
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

void PageFile::write_table_page(const TablePage& page) {
    file_->write({reinterpret_cast<const std::byte*>(&page), sizeof page}, cover_of(page.index).file_offset);
}

void PageFile::allocate(ByteCount from, ByteCount to) {
    if (from >= to) {
        return;
    }
    const std::uint64_t table_first = table_pages_for(from);
    for (std::uint64_t index = table_first == 0 ? 0 : table_first - 1; index < table_pages_for(to); ++index) {
        file_->allocate(cover_of(index).file_offset, page_bytes);
    }
    for_each_piece({from}, to - from, [&](HeapOffset offset, ByteCount length) { file_->allocate(file_offset(offset), length); });
}

void PageFile::throw_corrupt_page(PageNumber page, const std::string& why) const {
    throw Error(errc::corrupt, path(), file_offset(offset_of(page)),
                "page " + std::to_string(page.value) + " of the heap is damaged: " + why + "; restore the file from a copy");
}

}  // namespace taiyen::store
