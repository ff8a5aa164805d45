#pragma once
/// Makes changed bytes of a heap's backing or data file right again, as an attacker would: headers by FORMAT.md, the table from the pages.

#include <cstring>
#include <span>
#include <vector>

#include "base/checksum.hpp"
#include "store/geometry.hpp"
#include "store/page_table.hpp"

namespace taiyen::store::test {

/// Gives header slot `slot` its right checksum.
inline void forge_header(std::span<std::byte> file, std::uint64_t slot) {
    const std::span<std::byte> block = file.subspan(slot * header_slot_bytes, header_slot_bytes);
    const std::uint64_t sum = checksum(block.first(offsetof(HeaderBlock, checksum)), mix(header_magic, slot));
    std::memcpy(block.data() + offsetof(HeaderBlock, checksum), &sum, sizeof sum);
}

inline HeaderBlock header_block(std::span<const std::byte> file, std::uint64_t slot) {
    HeaderBlock block;
    std::memcpy(&block, file.data() + slot * header_slot_bytes, sizeof block);
    return block;
}

/// Makes the entries of table page `index` those of the pages that the file holds.
inline void forge_entries(std::span<std::byte> file, std::uint64_t index, const Uuid& heap) {
    const TableCover cover = cover_of(index);
    for (std::uint64_t i = 0; i < cover.count; ++i) {
        const PageNumber page{cover.first.value + i};
        const std::uint64_t at = FileLayout().file_offset(offset_of(page));
        if (at + page_bytes > file.size()) break;
        const std::uint64_t sum = page_checksum(file.subspan(at, page_bytes), page, heap);
        std::memcpy(file.data() + FileLayout().table_offset(index) + offsetof(TablePage, entries) + i * sizeof sum, &sum, sizeof sum);
    }
}

/// Gives table page `index` its right checksum, which is returned.
inline std::uint64_t forge_table_page(std::span<std::byte> file, std::uint64_t index, const Uuid& heap) {
    TablePage page;
    std::byte* const at = file.data() + FileLayout().table_offset(index);
    std::memcpy(&page, at, sizeof page);
    page.checksum = table_page_checksum(page, heap);
    std::memcpy(at, &page.checksum, sizeof page.checksum);
    return page.checksum;
}

}  // namespace taiyen::store::test
