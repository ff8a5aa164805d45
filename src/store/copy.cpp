// A copy of the newest save as a heap of its own. The order of steps: everything, sync, name, sync of the directory.

#include <algorithm>

#include "base/planted.hpp"
#include "store/heap_file.hpp"

namespace taiyen::store {

void HeapFile::write_copy(const std::filesystem::path& to, const TellBytes& tell) {
    check_usable(false);
    const auto lock = hold_saves();
    check_usable(false);
    checkpoint();
    if (storage_.find(to)) {
        throw Error(errc::already_exists, to, "there is a file already, and a copy overwrites nothing; name another one");
    }
    const Extents extents = saved_extents();
    PageFile copy(storage_.create_unnamed(io::directory_of(to)), backing_->header);
    fill_header(copy, true);
    copy.header.file = random_uuid();
    copy.header.data = {};
    copy.header.log = {};
    copy.header.log_capacity = 0;
    copy.header.sequence = 0;
    copy.header.opening = {};
    copy.layout = FileLayout(saved_annex_.places);
    copy.file().resize(copy.layout.file_bytes_for(extents));
    write_first_headers(copy.file(), copy.header);
    const std::uint64_t total = extents.span + extents.annex;
    std::uint64_t done = 0;
    const AlignedBuffer buffer(entries_per_table_page * page_bytes);
    for_each_table_page(extents, [&](std::uint64_t index) {
        const TablePage& table = table_.page(index);
        const TableCover cover = cover_of(index);
        done += cover.count * page_bytes;
        if (table.checksum == 0) {
            return;  // all of them are zero: a hole
        }
        std::uint64_t count = cover.count;
        while (count != 0 && !extents.hold({cover.first.value + count - 1})) {
            --count;
        }
        backing_->try_read_pages(cover.first, buffer.first(count * page_bytes), Via::cache);
        for (std::uint64_t i = 0; i < count; ++i) {
            const PageNumber page{cover.first.value + i};
            const auto bytes = buffer.span().subspan(i * page_bytes, page_bytes);
            if (page_checksum(bytes, page, table_.heap()) != table.entries[i]) {
                read_whole(page, bytes, data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
            }
        }
        for (std::uint64_t i = 0; i < count;) {
            std::uint64_t run = 0;
            while (i + run < count && table.entries[i + run] != 0) {
                ++run;
            }
            if (run != 0) {
                copy.write_pages({cover.first.value + i}, buffer.span().subspan(i * page_bytes, run * page_bytes));
                copy.start_writing({cover.first.value + i}, run);
            }
            i += run + 1;
        }
        copy.write_table_page(table);
        if (tell) {
            tell(std::min(done, total), total);
        }
    });
    if (!planted(Bug::copy_named_before_sync)) {
        copy.sync();
    }
    storage_.publish(copy.file(), to);
    storage_.sync_directory(io::directory_of(to));
    if (planted(Bug::copy_named_before_sync)) {
        copy.sync();
    }
}

}  // namespace taiyen::store
