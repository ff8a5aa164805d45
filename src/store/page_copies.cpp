#include "store/page_copies.hpp"

#include <algorithm>
#include <optional>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/page_table.hpp"
#include "store/recovery_table.hpp"

namespace taiyen::store {

std::set<std::uint64_t> pages_of(const std::vector<SaveRecord>& saves) {
    std::set<std::uint64_t> pages;
    for (const SaveRecord& save : saves)
        for (const SavedPage& saved : save.pages) pages.insert(saved.page);
    return pages;
}

namespace {

/// A table page torn by an interrupted checkpoint: its old and new version differ only in entries of covered pages; every other entry must match its page in one of the files.
void rebuild_table_page(const PageFile& backing, const PageFile* data, std::uint64_t index, const Extents& extents,
                        const std::function<bool(PageNumber)>& is_covered, TablePage& page) {
    const Uuid& heap = backing.header.heap;
    const TableCover cover = cover_of(index);
    const AlignedBuffer buffer(cover.count * page_bytes);
    backing.try_read_pages(cover.first, buffer.span(), Via::device);
    for (std::uint64_t i = 0; i < cover.count; ++i) {
        const PageNumber number{cover.first.value + i};
        const auto image = buffer.span().subspan(i * page_bytes, page_bytes);
        const auto matches = [&] { return page_checksum(image, number, heap) == page.entries[i]; };
        if (is_covered(number)) continue;
        if (!extents.hold(number)) {
            page.entries[i] = 0;
            continue;
        }
        if (matches()) continue;
        const std::optional<Error> refusal = backing.try_read_pages(number, image, Via::device);
        if (!matches() && data != nullptr) data->try_read_pages(number, image, Via::device);
        if (!matches()) {
            if (refusal) throw Error(*refusal);
            backing.throw_corrupt_page(number, "neither its checksum nor a second copy can be relied on");
        }
    }
    page.index = index;
    page.checksum = table_page_checksum(page, heap);
}

}  // namespace

bool load_table_page(const PageFile& backing, const PageFile* data, std::uint64_t index, const Extents& extents,
                     const std::function<bool(PageNumber)>& is_covered, Via via, TablePage& page) {
    const Uuid& heap = backing.header.heap;
    const auto has_sound = [&](const PageFile& file, Via asked) {
        const auto refusal = file.try_read_table_page(index, page, asked);
        return !refusal && is_sound(page, index, heap);
    };
    if (via == Via::cache && has_sound(backing, Via::cache)) return false;
    const std::optional<Error> refusal = backing.try_read_table_page(index, page, Via::device);
    if (!refusal && is_sound(page, index, heap)) return false;
    const TablePage found = page;
    if (data != nullptr && has_sound(*data, Via::device)) {
        count_row(Row::table_page_rebuilt);
        return true;
    }
    if (refusal) throw Error(*refusal);  // nothing is left of it to begin with
    page = found;
    rebuild_table_page(backing, data, index, extents, is_covered, page);
    count_row(Row::table_page_rebuilt);
    return true;
}

std::uint64_t table_root_of(const PageFile& file, const Extents& extents, Via via, const PageFile* twin) {
    std::uint64_t root = 0;
    TablePage page;
    for_each_table_page(extents, [&](std::uint64_t index) {
        if (const auto refusal = file.try_read_table_page(index, page, via)) {
            if (twin == nullptr || twin->try_read_table_page(index, page, via) || !is_sound(page, index, file.header.heap)) throw Error(*refusal);
        }
        if (page.checksum != 0) root += mix(index, page.checksum);
    });
    return root;
}

void copy_newer(const PageFile& from, PageFile& to, Generation since, bool everything) {
    const Extents extents = from.header.extents();
    const Uuid& heap = from.header.heap;
    to.layout = FileLayout(from.header.annex.places);
    to.make_long_enough(extents);
    TablePage table;
    const auto is_newer = [&](const TablePage& page) { return everything || page.generation > since.value; };
    if (!planted(Bug::copy_keeps_tail)) {
        std::optional<std::uint64_t> read;
        to.clear_growth(to.header.extents(), extents, [&](PageNumber page) {
            if (const std::uint64_t index = place_of(page).table_page; read != index) {
                from.read_table_page(index, table, Via::device);
                read = index;
            }
            return is_newer(table);
        });
    }
    const AlignedBuffer pages(entries_per_table_page * page_bytes);
    const AlignedBuffer source(page_bytes);
    for_each_table_page(extents, [&](std::uint64_t index) {
        from.read_table_page(index, table, Via::device);
        if (!is_sound(table, index, heap)) {
            throw Error(errc::corrupt, from.path(), from.layout.table_offset(index),
                        "a page of the checksum table is damaged; restore the file from a copy");
        }
        const TableCover cover = cover_of(index);
        const Sequence sequence = sequence_of(cover.first);
        const std::uint64_t count = std::min(cover.count, page_of(start_of(sequence)).value + extents.of(sequence) / page_bytes - cover.first.value);
        if (!is_newer(table)) return;
        // What is about to be overwritten need not be readable.
        TablePage old;
        const bool old_is_refused = to.try_read_table_page(index, old, Via::device).has_value();
        const bool some_are_refused = to.try_read_pages(cover.first, pages.first(count * page_bytes), Via::device).has_value();
        for (std::uint64_t i = 0; i < count; ++i) {
            const PageNumber number{cover.first.value + i};
            const auto there = pages.span().subspan(i * page_bytes, page_bytes);
            const bool same =
                planted(Bug::copy_by_entries) ? old.entries[i] == table.entries[i] : page_checksum(there, number, heap) == table.entries[i];
            const auto is_refused = [&] { return some_are_refused && to.try_read_pages(number, there, Via::device); };
            if (same && !is_refused()) continue;
            from.read_pages(number, source.span(), Via::device);
            if (page_checksum(source.span(), number, heap) != table.entries[i])
                from.throw_corrupt_page(number, "its checksum differs, and the other copy is older");
            to.write_pages(number, source.span());
        }
        if (table.checksum != 0) {
            to.write_table_page(table);
        } else if (old_is_refused || !is_zero({reinterpret_cast<const std::byte*>(&old), sizeof old})) {
            TablePage empty{};
            to.file().write({reinterpret_cast<const std::byte*>(&empty), sizeof empty}, to.layout.table_offset(index));
        }
    });
    to.sync();
    to.header.take_content(from.header);
    to.write_header();
}

void prove_last_save(const PageFile& file, const PageFile* twin, const std::vector<SaveRecord>& saves) {
    const Extents extents = file.header.extents();
    const bool may_be_under_way = !saves.empty() && saves.front().staged();
    const auto stands_for = [&](const PageFile& copy) { return table_root_of(copy, extents, Via::device) == file.header.table_root; };
    if (!may_be_under_way && !stands_for(file) && (twin == nullptr || !stands_for(*twin))) {
        throw Error(errc::corrupt, file.path(), chunks_offset,
                    "the last save isn't whole: the checksum table is not the one that the header stands for; restore the files from a copy");
    }
    const std::set<std::uint64_t> covered = pages_of(saves);
    const auto is_covered = [&](PageNumber page) { return covered.contains(page.value); };
    TablePage table;
    const AlignedBuffer buffer(entries_per_table_page * page_bytes);
    const AlignedBuffer other(page_bytes);
    for_each_table_page(extents, [&](std::uint64_t index) {
        load_table_page(file, twin, index, extents, is_covered, Via::device, table);
        const TableCover cover = cover_of(index);
        const auto pages = buffer.first(cover.count * page_bytes);
        (void)file.try_read_pages(cover.first, pages, Via::device);
        for (std::uint64_t i = 0; i < cover.count; ++i) {
            const PageNumber number{cover.first.value + i};
            if (!extents.hold(number) || is_covered(number)) continue;
            const auto is_right = [&](std::span<const std::byte> page) { return page_checksum(page, number, file.header.heap) == table.entries[i]; };
            if (is_right(pages.subspan(i * page_bytes, page_bytes))) continue;
            if (twin != nullptr && !twin->try_read_pages(number, other.first(page_bytes), Via::device) && is_right(other.first(page_bytes))) continue;
            file.throw_corrupt_page(number, "the last save isn't whole: the page's checksum differs in every copy");
        }
    });
}

void prove_alone(const PageFile& backing, const std::vector<SaveRecord>& saves) {
    const Extents extents = backing.header.extents();
    if (saves.empty() && table_root_of(backing, extents, Via::device) != backing.header.table_root) {
        // An interrupted large save had begun to change it, and only the data file could tell how to go on.
        throw Error(errc::corrupt, backing.path(), chunks_offset,
                    "its pages are not the ones that its header stands for, and the data file is missing; restore it from a copy");
    }
    const std::set<std::uint64_t> covered = pages_of(saves);
    const auto is_covered = [&](PageNumber page) { return covered.contains(page.value); };
    TablePage table;
    const AlignedBuffer buffer(entries_per_table_page * page_bytes);
    for_each_table_page(extents, [&](std::uint64_t index) {
        load_table_page(backing, nullptr, index, extents, is_covered, Via::device, table);
        const TableCover cover = cover_of(index);
        const auto pages = buffer.first(cover.count * page_bytes);
        backing.read_pages(cover.first, pages, Via::device);
        for (std::uint64_t i = 0; i < cover.count; ++i) {
            const PageNumber number{cover.first.value + i};
            if (extents.hold(number) && !is_covered(number) &&
                page_checksum(pages.subspan(i * page_bytes, page_bytes), number, backing.header.heap) != table.entries[i]) {
                backing.throw_corrupt_page(number, "its checksum differs, and the data file that might have it whole is missing");
            }
        }
    });
}

}  // namespace taiyen::store
