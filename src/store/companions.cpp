#include "store/companions.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <taiyen/base/check.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/companion_files.hpp"

namespace taiyen::store {

void Companions::begin_writing() {
    condition_.durable_step("opening for writing", [&] {
        files_.backing().file().prepare_durable();
        if (files_.data()) files_.data()->file().prepare_durable();
        if (wanted_.data && !files_.data()) attach_data();
        // A ring that recovery left empty, in a new epoch, goes on if it is the one of this kind of heap.
        const bool wants_log = files_.kind() == HeapKind::transactional;
        if (files_.active_ring() != (wants_log ? RingKind::log : RingKind::journal))
            wants_log ? attach_log() : attach_journal();
        else if (log::Ring::read_identity(*files_.ring_file()).is_new)
            log::Ring::write_identity(*files_.ring_file(), files_.ring_identity());
        if (files_.uses_log()) files_.trim_log();
        files_.ring_file()->prepare_durable();
        note_reopened();
    });
}

void Companions::attach_journal() {
    clear_orphan_journal(files_.storage(), files_.paths().journal, heap_is_ours, files_.backing().header.heap);
    const log::RingIdentity identity{random_uuid(), files_.backing().header.heap, wanted_.journal_bytes, false};
    std::shared_ptr<io::File> file = files_.storage().create_unnamed(io::directory_of(files_.paths().journal));
    lock_new(*file);
    log::Ring::format(*file, identity);
    publish_part(files_.storage(), *file, files_.paths().journal);
    files_.storage().sync_directory(io::directory_of(files_.paths().journal));
    files_.use_ring(RingKind::journal, file, identity, std::make_unique<log::Ring>(file, identity, fresh_start(), 0));
    files_.write_headers();
}

void Companions::attach_log() {
    // The heap's own log from an earlier opening, if it is still there: nothing in it counts any more.
    log::RingIdentity identity = files_.backing().header.log_identity();
    std::shared_ptr<io::File> file;
    if (!identity.ring.is_nil() && files_.storage().find(files_.paths().log)) {
        file = open_locked(files_.storage(), files_.paths().log, false);
        try {
            log::RingIdentity found = log::Ring::read_identity(*file);
            const bool was_new = std::exchange(found.is_new, false);
            if (found != identity)
                file = nullptr;
            else if (was_new)
                log::Ring::write_identity(*file, identity);
        } catch (const Error& error) {
            if (error.code() == errc::io_error) throw;
            file = nullptr;
        }
    }
    const auto name = [&] {
        files_.move_point([](SavedPoint& point) { point.log_start = fresh_start(); });
        const bool had_journal = files_.journal() != nullptr;
        const std::shared_ptr<io::File> journal = files_.ring_file();
        files_.use_ring(RingKind::log, file, identity, nullptr);
        files_.write_headers();
        if (had_journal) files_.remove_ours(*journal, files_.paths().journal);
    };
    if (file) {
        name();
        return;
    }
    clear_orphan_log(files_.storage(), files_.paths().log, heap_is_ours, files_.backing().header.heap);
    const ByteCount capacity = wanted_.log_bytes != 0 ? wanted_.log_bytes : log_capacity_default;
    check_log_capacity(capacity, files_.paths().log);
    identity = {random_uuid(), files_.backing().header.heap, capacity, false};
    file = files_.storage().create_unnamed(io::directory_of(files_.paths().log));
    lock_new(*file);
    if (planted(Bug::log_named_before_complete)) {
        publish_part(files_.storage(), *file, files_.paths().log);
        name();
    }
    log::Ring::format(*file, identity);
    if (!planted(Bug::log_named_before_complete)) {
        publish_part(files_.storage(), *file, files_.paths().log);
        sync_directory_of(files_.storage(), files_.paths().log, files_.paths().backing);
        name();
    }
}

PageFile Companions::make_data(const HeapPaths& to) {
    clear_orphan_data(files_.storage(), to.data, heap_is_ours);
    Header header = files_.backing().header;
    header.role = FileRole::data;
    header.file = random_uuid();
    header.data = header.file;
    header.is_new = true;
    header.sequence = 0;
    header.generation = {};
    header.state = FileState::filling;
    PageFile data(files_.storage().create_unnamed(io::directory_of(to.data)), header);
    lock_new(data.file());
    data.file().prepare_durable();
    data.file().allocate(0, chunks_offset);
    write_first_headers(data.file(), data.header);
    return data;
}

void Companions::publish_data(PageFile& data, const HeapPaths& to) {
    if (!planted(Bug::data_named_before_sync)) data.sync();
    data.header.take_content(files_.backing().header);
    data.write_header();
    publish_part(files_.storage(), data.file(), to.data);
    sync_directory_of(files_.storage(), to.data, to.backing);
}

void Companions::name_data(PageFile& data) {
    files_.backing().header.data = data.header.file;
    files_.backing().write_header();  // from here on it is attached
    data.header.is_new = false;
    data.write_header();
}

void Companions::attach_data() {
    PageFile data = make_data(files_.paths());
    copy_saved(data, std::nullopt, {}, nullptr);
    publish_data(data, files_.paths());
    HeapPaths paths = files_.paths();  // memory is asked for before it is named
    name_data(data);
    files_.adopt_data(std::move(data), std::move(paths));
}

void Companions::require_no_data() const {
    if (files_.data()) throw Error(errc::already_exists, files_.paths().data, "the heap has a data file; detach it before you attach another one");
}

void Companions::attach_data_file(const std::filesystem::path& path, const TellBytes& tell) {
    condition_.check_usable(false);
    HeapPaths to;
    Generation since;
    std::optional<PageFile> data;
    {
        const Visits::Visit visit(visits_);
        std::unique_lock saves = files_.hold_saves();
        condition_.check_usable(false);
        require_no_data();
        to = files_.paths();
        const std::filesystem::path beside = files_.paths().backing.string() + ".data";
        to.data = path.empty() ? beside : path;
        to.data_is_beside = to.data == beside;
        check_paths(to);
        saves_.checkpoint();
        data.emplace(make_data(to));
        since = files_.point().generation;
        copy_saved(*data, std::nullopt, tell, files_.uses_log() ? &saves : nullptr);
    }
    stand_still([&] {
        const auto lock = files_.hold_saves();
        condition_.check_usable(false);
        require_no_data();  // others may have attached one meanwhile
        saves_.checkpoint();
        copy_saved(*data, since, {}, nullptr);
        data->layout = files_.backing().layout;
        data->make_long_enough(image_.mapped_extents());
        publish_data(*data, to);  // what fails up to here leaves an orphan, and the heap as it was
        condition_.durable_step("attaching a data file", [&] { name_data(*data); });
        files_.adopt_data(std::move(*data), std::move(to));  // no memory: it is attached
    });
}

void Companions::detach_data_file() {
    condition_.check_usable(false);
    const auto require_data = [&] {
        if (!files_.data()) throw Error(errc::not_found, files_.paths().backing, "the heap has no data file");
    };
    {
        const auto lock = files_.hold_saves();
        require_data();
    }
    healing_.heal();  // what the other file alone has whole, it has no more
    stand_still([&] {
        const auto lock = files_.hold_saves();
        condition_.check_usable(false);
        require_data();
        saves_.checkpoint();
        proofs_.require_whole_below_changes();
        condition_.durable_step("detaching the data file", [&] {
            // An orphan from now on: found beside a heap that doesn't name it, or alone, it is nobody's second copy.
            if (!planted(Bug::detached_unmarked)) {
                files_.data()->header.is_new = true;
                files_.data()->write_header();
            }
            const auto remove = [&](const io::File& file) {
                files_.remove_ours(file, files_.paths().data);
                sync_directory_of(files_.storage(), files_.paths().data, files_.paths().backing);
            };
            if (planted(Bug::removed_before_detached)) remove(files_.data()->file());
            files_.backing().header.data = {};
            files_.backing().write_header();  // from here on it is detached
            remove(files_.data()->file());
        });
        files_.drop_data();
        healing_.forget_waiting();
    });
}

std::unique_ptr<log::Ring> Companions::take_log() {
    TAIYEN_CHECK(!condition_.is_read_only() && files_.uses_log() && !log_taken_);
    log_taken_ = true;
    const log::RingStart start = files_.point().log_start;
    return std::make_unique<log::Ring>(files_.ring_file(), files_.ring_identity(), start, start.position);
}

std::unique_ptr<log::Ring> Companions::replace_log(ByteCount capacity, const std::filesystem::path& path) {
    const auto lock = files_.hold_saves();
    condition_.check_usable(false);
    TAIYEN_CHECK(files_.uses_log());
    HeapPaths to = files_.paths();
    if (!path.empty() && path.lexically_normal() != to.log.lexically_normal()) to.log = path;
    check_paths(to);
    const log::RingIdentity identity{random_uuid(), files_.backing().header.heap,
                                     capacity != 0 ? round_up(capacity, page_bytes) : files_.ring_identity().capacity_bytes, false};
    check_log_capacity(identity.capacity_bytes, to.log);
    if (to.log != files_.paths().log) clear_orphan_log(files_.storage(), to.log, heap_is_ours, files_.backing().header.heap);
    // Whole before anything changes: a full disk is a log that was never replaced.
    const std::shared_ptr<io::File> file = files_.storage().create_unnamed(io::directory_of(to.log));
    lock_new(*file);
    log::Ring::format(*file, identity);
    file->prepare_durable();
    const log::RingStart start = fresh_start();
    auto ring = std::make_unique<log::Ring>(file, identity, start, start.position);
    condition_.durable_step("replacing the transaction log", [&] {
        // The files hold everything that was committed: a heap that was closed, until the new log has its name.
        const auto write_without_log = [&] {
            files_.for_each([&](PageFile& one) {
                files_.fill_header(one, true);
                one.header.log = {};
                one.header.log_capacity = 0;
                one.write_header();
            });
        };
        if (!planted(Bug::log_removed_before_header)) write_without_log();
        files_.remove_ours(*files_.ring_file(), files_.paths().log);
        sync_directory_of(files_.storage(), files_.paths().log, files_.paths().backing);
        if (planted(Bug::log_removed_before_header)) write_without_log();
        publish_part(files_.storage(), *file, to.log);
        sync_directory_of(files_.storage(), to.log, to.backing);
        files_.move_point([&](SavedPoint& point) { point.log_start = start; });
        files_.use_ring(RingKind::log, file, identity, nullptr);
        files_.write_headers();
    });
    files_.set_log_path(std::move(to.log));  // no memory: the heap goes on in the new one
    return ring;
}

void Companions::remove_log() {
    const auto lock = files_.hold_saves();
    condition_.check_usable(false);
    TAIYEN_CHECK(!files_.uses_log());
    const log::RingIdentity identity = files_.backing().header.log_identity();
    if (identity.ring.is_nil()) return;
    if (!planted(Bug::log_forgotten_before_checkpoint)) saves_.checkpoint();
    condition_.durable_step("removing the log", [&] {
        files_.for_each([](PageFile& file) {
            file.header.log = {};
            file.header.log_capacity = 0;
        });
        files_.write_headers();
    });
    try {
        clear_orphan_log(files_.storage(), files_.paths().log, heap_is_ours, identity.heap);
    } catch (const Error& error) {
        if (error.code() != errc::mismatch) throw;  // something else has come to stand there, and stays
    }
    sync_directory_of(files_.storage(), files_.paths().log, files_.paths().backing);
}

void Companions::stand_still(const std::function<void()>& step) { participant_ ? participant_->stand_still(step) : step(); }

void Companions::copy_saved(PageFile& to, std::optional<Generation> since, const TellBytes& tell, std::unique_lock<std::mutex>* saves) {
    const Extents extents = files_.extents();
    to.layout = FileLayout(files_.point().annex.places);
    to.make_long_enough(extents);
    const std::uint64_t total = extents.span + extents.annex;
    std::uint64_t done = 0;
    const AlignedBuffer buffer(entries_per_table_page * page_bytes);
    for_each_table_page(extents, [&](std::uint64_t index) {
        done += cover_of(index).count * page_bytes;
        if (saves != nullptr && index != 0) {
            saves->unlock();
            std::this_thread::sleep_for(std::chrono::microseconds(50));  // else who waits for it would hardly get it
            saves->lock();
            condition_.check_usable(false);
        }
        const std::uint64_t count = read_saved(index, since, extents, buffer.span());
        if (count == 0) return;
        const TablePage& table = files_.table().page(index);
        for_each_alike(table, count, [&](std::uint64_t i, std::uint64_t run, bool is_zero) {
            const PageNumber first{cover_of(index).first.value + i};
            if (!is_zero) {
                to.write_pages(first, buffer.span().subspan(i * page_bytes, run * page_bytes));
                to.start_writing(first, run);
            } else if (since) {
                to.punch_pages(first, run);
            }
        });
        to.write_table_page(table);
        if (tell) tell(std::min(done, total), total);
    });
}

std::uint64_t Companions::read_saved(std::uint64_t index, std::optional<Generation> since, const Extents& extents, std::span<std::byte> pages) const {
    const TablePage& table = files_.table().page(index);
    if (since ? table.generation <= since->value : table.checksum == 0) return 0;
    const TableCover cover = cover_of(index);
    std::uint64_t count = cover.count;
    while (count != 0 && !extents.hold({cover.first.value + count - 1})) --count;
    files_.backing().try_read_pages(cover.first, pages.first(count * page_bytes), Via::cache);
    for (std::uint64_t i = 0; i < count; ++i) {
        const PageNumber page{cover.first.value + i};
        const auto bytes = pages.subspan(i * page_bytes, page_bytes);
        if (page_checksum(bytes, page, files_.table().heap()) != table.entries[i]) files_.read_whole(page, bytes);
    }
    return count;
}

Header Companions::header_of_copy() {
    PageFile copy(files_.backing().handle(), files_.backing().header);
    files_.fill_header(copy, true);
    copy.header.file = random_uuid();
    copy.header.data = {};
    copy.header.log = {};
    copy.header.log_capacity = 0;
    copy.header.sequence = 0;
    copy.header.opening = {};
    copy.header.replica = {};
    return copy.header;
}

void Companions::mark_replica(const ReplicaMark& mark) {
    const auto lock = files_.hold_saves();
    condition_.check_usable(false);
    TAIYEN_CHECK(files_.uses_log());
    condition_.durable_step("noting where the heap is replicated", [&] {
        files_.for_each([&](PageFile& file) { file.header.replica = mark; });
        files_.write_headers();
    });
}

/// What a target holds beyond this moment is no part of the heap's history any more.
void Companions::note_reopened() {
    ReplicaMark mark = files_.backing().header.replica;
    if (std::ranges::all_of(mark.attached, [](std::uint8_t byte) { return byte == 0; }) || mark.reopened_at != 0) return;
    if (planted(Bug::reopening_unmarked)) return;
    mark.reopened_at = files_.point().serial.value + 1;
    files_.for_each([&](PageFile& file) { file.header.replica = mark; });
    files_.write_headers();
}

void Companions::write_copy(const std::filesystem::path& to, const TellBytes& tell) {
    condition_.check_usable(false);
    const auto lock = files_.hold_saves();
    condition_.check_usable(false);
    saves_.checkpoint();
    if (files_.storage().find(to)) throw Error(errc::already_exists, to, "there is a file already, and a copy overwrites nothing; name another one");
    PageFile copy(files_.storage().create_unnamed(io::directory_of(to)), header_of_copy());
    write_first_headers(copy.file(), copy.header);
    copy_saved(copy, std::nullopt, tell, nullptr);
    if (!planted(Bug::copy_named_before_sync)) copy.sync();
    files_.storage().publish(copy.file(), to);
    files_.storage().sync_directory(io::directory_of(to));
    if (planted(Bug::copy_named_before_sync)) copy.sync();
}

}  // namespace taiyen::store
