// Copies of the newest save: in a data file that is to be attached, or as a heap of its own. The order of the latter's steps: everything, sync, name, sync of the directory.

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/planted.hpp"
#include "store/heap_file.hpp"

namespace taiyen::store {

void HeapFile::copy_saved(PageFile& to, std::optional<Generation> since, const TellBytes& tell, std::unique_lock<std::mutex>* saves) {
    const Extents extents = saved_extents();
    to.layout = FileLayout(saved_annex_.places);
    to.make_long_enough(extents);
    const std::uint64_t total = extents.span + extents.annex;
    std::uint64_t done = 0;
    const AlignedBuffer buffer(entries_per_table_page * page_bytes);
    for_each_table_page(extents, [&](std::uint64_t index) {
        if (saves != nullptr && done != 0) {
            saves->unlock();
            std::this_thread::sleep_for(std::chrono::microseconds(50));  // else who waits for it would hardly get it
            saves->lock();
            check_usable(false);
        }
        const TablePage& table = table_.page(index);
        const TableCover cover = cover_of(index);
        done += cover.count * page_bytes;
        const bool is_there = since.has_value();
        if (is_there ? table.generation <= since->value : table.checksum == 0) return;  // as it is there; all of them are zero: a hole
        std::uint64_t count = cover.count;
        while (count != 0 && !extents.hold({cover.first.value + count - 1})) --count;
        backing_->try_read_pages(cover.first, buffer.first(count * page_bytes), Via::cache);
        for (std::uint64_t i = 0; i < count; ++i) {
            const PageNumber page{cover.first.value + i};
            const auto bytes = buffer.span().subspan(i * page_bytes, page_bytes);
            if (page_checksum(bytes, page, table_.heap()) != table.entries[i])
                read_whole(page, bytes, data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
        }
        for (std::uint64_t i = 0, run = 0; i < count; i += run) {
            const bool is_zero = table.entries[i] == 0;
            for (run = 1; i + run < count && (table.entries[i + run] == 0) == is_zero; ++run) {}
            const PageNumber first{cover.first.value + i};
            if (!is_zero) {
                to.write_pages(first, buffer.span().subspan(i * page_bytes, run * page_bytes));
                to.start_writing(first, run);
            } else if (is_there) {
                to.punch_pages(first, run);
            }
        }
        to.write_table_page(table);
        if (tell) tell(std::min(done, total), total);
    });
}

void HeapFile::write_copy(const std::filesystem::path& to, const TellBytes& tell) {
    check_usable(false);
    const auto lock = hold_saves();
    check_usable(false);
    checkpoint();
    if (storage_.find(to)) {
        throw Error(errc::already_exists, to, "there is a file already, and a copy overwrites nothing; name another one");
    }
    PageFile copy(storage_.create_unnamed(io::directory_of(to)), backing_->header);
    fill_header(copy, true);
    copy.header.file = random_uuid();
    copy.header.data = {};
    copy.header.log = {};
    copy.header.log_capacity = 0;
    copy.header.sequence = 0;
    copy.header.opening = {};
    write_first_headers(copy.file(), copy.header);
    copy_saved(copy, std::nullopt, tell, nullptr);
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
