#include "store/companions.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <taiyen/base/check.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/heap_file.hpp"
#include "store/page_copies.hpp"
#include "store/recovery_table.hpp"

namespace taiyen::store {
namespace {

constexpr ByteCount log_capacity_min = 64_KiB;
constexpr ByteCount log_capacity_max = 512_GiB;

/// Opens what stands there and locks it; null: nothing does. Throws: Error{busy}.
std::unique_ptr<io::File> open_possible_orphan(io::Storage& storage, const std::filesystem::path& path, const char* place) {
    while (const auto found = storage.find(path)) {
        if (found->kind != io::FileKind::regular) {
            throw Error(errc::not_a_regular_file, path, std::string("something stands where ") + place + " must go; move it away");
        }
        try {
            auto file = storage.open(path, io::Access::read_only);
            if (!file->try_lock(io::Lock::exclusive)) {
                throw Error(errc::busy, path, "a heap of this name is being created or used by somebody else; try again when that is done");
            }
            if (is_still_at(storage, *file, path)) {
                return file;
            }
        } catch (const Error& error) {
            if (error.code() != errc::not_found) {  // else it has gone meanwhile
                throw;
            }
        }
    }
    return nullptr;
}

/// Removes a file that a killed creation left, if `is_orphan` says that it is one. Files get their names complete and synced: what can't be read is no orphan.
/// Throws: Error{busy} if its creation is still under way, Error{mismatch} if it is anything else; what `refuse_heap` throws.
template <class IsOrphan>
void clear_orphan(io::Storage& storage, const std::filesystem::path& path, const char* place, const RefuseHeap& refuse_heap, IsOrphan&& is_orphan) {
    const std::unique_ptr<io::File> file = open_possible_orphan(storage, path, place);
    if (!file) {
        return;
    }
    refuse_heap();
    if (!is_orphan(*file)) {
        throw Error(errc::mismatch, path, std::string("a file stands where ") + place + " must go, and it belongs to something else; move it away");
    }
    storage.remove(path);  // nobody else removes or replaces it: that takes the lock
    count_row(Row::orphan_removed);
}

/// `heap`: a leftover of an earlier opening of this heap is removed too; its header says that nothing in it counts.
void clear_orphan_ring(io::Storage& storage, const std::filesystem::path& path, const char* place, const RefuseHeap& refuse_heap, const Uuid& heap) {
    clear_orphan(storage, path, place, refuse_heap, [&](const io::File& file) {
        try {
            const log::RingIdentity identity = log::Ring::read_identity(file);
            return identity.is_new || identity.heap == heap;
        } catch (const Error& error) {
            if (error.code() == errc::io_error) {
                throw;
            }
            return log::Ring::is_left_of(file, heap);
        }
    });
}

/// Publishes a part of a heap that is there. Throws: Error{busy}: somebody creates a heap of this name, not having seen ours.
void publish_part(io::Storage& storage, io::File& file, const std::filesystem::path& path) {
    try {
        storage.publish(file, path);
    } catch (const Error& error) {
        if (error.code() != errc::already_exists) {
            throw;
        }
        throw Error(errc::busy, path, "a heap of this name is being created by somebody else; try again when that is done");
    }
}

}  // namespace

void clear_orphan_data(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap) {
    clear_orphan(storage, path, "the heap's data file", refuse_heap, [](const io::File& file) {
        const Slots slots = read_slots(file);
        const Header* header = slots.newest();
        return header != nullptr && header->is_new && header->role == FileRole::data;
    });
}

void clear_orphan_journal(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap, const Uuid& heap) {
    clear_orphan_ring(storage, path, "the heap's journal", refuse_heap, heap);
}
void clear_orphan_log(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap, const Uuid& heap) {
    clear_orphan_ring(storage, path, "the heap's transaction log", refuse_heap, heap);
}

log::RingStart fresh_start() { return {{random_u64()}, 0, 1, random_u64()}; }

void lock_new(io::File& file) {
    if (!file.try_lock(io::Lock::exclusive)) {
        throw Error(errc::busy, file.path(), "a file that was just made is locked; try again");
    }
}

void sync_directory_of(io::Storage& storage, const std::filesystem::path& file, const std::filesystem::path& heap) {
    if (planted(Bug::other_directories_unsynced) && io::directory_of(file) != io::directory_of(heap)) return;
    storage.sync_directory(io::directory_of(file));
}

void check_paths(const HeapPaths& paths) {
    const auto data = paths.data.lexically_normal();
    if (data == paths.backing.lexically_normal() || data == paths.journal.lexically_normal()) {
        throw Error(errc::invalid_argument, paths.data, "the data file can't be the heap itself or its journal; name another file");
    }
    const auto log = paths.log.lexically_normal();
    if (log == paths.backing.lexically_normal() || log == paths.journal.lexically_normal() || log == data) {
        throw Error(errc::invalid_argument, paths.log,
                    "the transaction log can't be the heap itself, its data file or its journal; name another file");
    }
}

void check_log_capacity(ByteCount capacity, const std::filesystem::path& path) {
    if (capacity < log_capacity_min || capacity > log_capacity_max) {
        throw Error(errc::invalid_argument, path,
                    "the capacity of a transaction log must be between 64 KiB and 512 GiB, not " + std::to_string(capacity) + " bytes");
    }
}

void HeapFile::attach_journal() {
    clear_orphan_journal(storage_, paths_.journal, heap_is_ours, backing_->header.heap);
    const log::RingIdentity identity{random_uuid(), backing_->header.heap, tuning_.journal_bytes, false};
    std::shared_ptr<io::File> file = storage_.create_unnamed(io::directory_of(paths_.journal));
    lock_new(*file);
    log::Ring::format(*file, identity);
    publish_part(storage_, *file, paths_.journal);
    storage_.sync_directory(io::directory_of(paths_.journal));
    ring_ = std::make_unique<log::Ring>(file, identity, fresh_start(), 0);
    ring_file_ = file;
    ring_identity_ = identity;
    active_ = RingKind::journal;
    write_headers();
}

void HeapFile::attach_log() {
    // The heap's own log from an earlier opening, if it is still there: nothing in it counts any more.
    log::RingIdentity identity = backing_->header.log_identity();
    std::shared_ptr<io::File> file;
    if (!identity.ring.is_nil() && storage_.find(paths_.log)) {
        file = open_locked(storage_, paths_.log, false);
        try {
            log::RingIdentity found = log::Ring::read_identity(*file);
            const bool was_new = std::exchange(found.is_new, false);
            if (found != identity) {
                file = nullptr;
            } else if (was_new) {
                log::Ring::write_identity(*file, identity);
            }
        } catch (const Error& error) {
            if (error.code() == errc::io_error) {
                throw;
            }
            file = nullptr;
        }
    }
    const auto name = [&] {
        log_start_ = fresh_start();
        ring_identity_ = identity;
        active_ = RingKind::log;
        const std::shared_ptr<io::File> journal = std::exchange(ring_file_, file);
        const bool had_journal = std::exchange(ring_, nullptr) != nullptr;
        write_headers();
        if (had_journal) {
            remove_ours(*journal, paths_.journal);
        }
    };
    if (file) {
        name();
        return;
    }
    clear_orphan_log(storage_, paths_.log, heap_is_ours, backing_->header.heap);
    const ByteCount capacity = log_capacity_ != 0 ? log_capacity_ : log_capacity_default;
    check_log_capacity(capacity, paths_.log);
    identity = {random_uuid(), backing_->header.heap, capacity, false};
    file = storage_.create_unnamed(io::directory_of(paths_.log));
    lock_new(*file);
    if (planted(Bug::log_named_before_complete)) {
        publish_part(storage_, *file, paths_.log);
        name();
    }
    log::Ring::format(*file, identity);
    if (!planted(Bug::log_named_before_complete)) {
        publish_part(storage_, *file, paths_.log);
        sync_directory_of(storage_, paths_.log, paths_.backing);
        name();
    }
}

PageFile HeapFile::make_data(const HeapPaths& to) {
    clear_orphan_data(storage_, to.data, heap_is_ours);
    Header header = backing_->header;
    header.role = FileRole::data;
    header.file = random_uuid();
    header.data = header.file;
    header.is_new = true;
    header.sequence = 0;
    header.generation = {};
    header.state = FileState::filling;
    PageFile data(storage_.create_unnamed(io::directory_of(to.data)), header);
    lock_new(data.file());
    data.file().prepare_durable();
    data.file().allocate(0, chunks_offset);
    write_first_headers(data.file(), data.header);
    return data;
}

void HeapFile::publish_data(PageFile& data, const HeapPaths& to) {
    if (!planted(Bug::data_named_before_sync)) data.sync();
    data.header.take_content(backing_->header);
    data.write_header();
    publish_part(storage_, data.file(), to.data);
    sync_directory_of(storage_, to.data, to.backing);
}

void HeapFile::adopt_data(PageFile& data) {
    backing_->header.data = data.header.file;
    backing_->write_header();  // from here on it is attached
    data.header.is_new = false;
    data.write_header();
}

void HeapFile::attach_data() {
    PageFile data = make_data(paths_);
    copy_saved(data, std::nullopt, {}, nullptr);
    publish_data(data, paths_);
    adopt_data(data);
    data_.emplace(std::move(data));
}

void HeapFile::require_no_data() const {
    if (data_) throw Error(errc::already_exists, paths_.data, "the heap has a data file; detach it before you attach another one");
}

void HeapFile::attach_data_file(const std::filesystem::path& path, const TellBytes& tell) {
    check_usable(false);
    HeapPaths to;
    Generation since;
    std::optional<PageFile> data;
    {
        const Visits::Visit visit(visits_);
        std::unique_lock saves = hold_saves();
        check_usable(false);
        require_no_data();
        to = paths_;
        const std::filesystem::path beside = paths_.backing.string() + ".data";
        to.data = path.empty() ? beside : path;
        to.data_is_beside = to.data == beside;
        check_paths(to);
        checkpoint();
        data.emplace(make_data(to));
        since = generation_;
        copy_saved(*data, std::nullopt, tell, uses_log() ? &saves : nullptr);
    }
    stand_still([&] {
        const auto lock = hold_saves();
        check_usable(false);
        require_no_data();  // others may have attached one meanwhile
        checkpoint();
        copy_saved(*data, since, {}, nullptr);
        data->layout = backing_->layout;
        data->make_long_enough(mapped_extents());
        publish_data(*data, to);  // what fails up to here leaves an orphan, and the heap as it was
        durable_step("attaching a data file", [&] { adopt_data(*data); });
        data_.emplace(std::move(*data));
        paths_.data = std::move(to.data);  // no memory: it is attached
        paths_.data_is_beside = to.data_is_beside;
        backed_ = {};  // the new file has no blocks yet for what is zero
    });
}

void HeapFile::require_whole_below_changes() const {
    const AlignedBuffer image(page_bytes);
    for (const std::uint64_t number : pages_with_live_base()) {
        const PageNumber page{number};
        if (!saved_extents().hold(page)) continue;
        if (backing_->try_read_pages(page, image.span(), Via::device) || page_checksum(image.span(), page, table_.heap()) != table_.entry(page))
            throw Error(errc::corrupt, backing_->path(), backing_->layout.file_offset(offset_of(page)),
                        "page " + std::to_string(number) +
                            " was damaged before it was changed, and the data file has it whole: snapshot(), which restores it, and then detach the "
                            "data file");
    }
}

void HeapFile::detach_data_file() {
    check_usable(false);
    const auto require_data = [&] {
        if (!data_) throw Error(errc::not_found, paths_.backing, "the heap has no data file");
    };
    {
        const auto lock = hold_saves();
        require_data();
    }
    heal();  // what the other file alone has whole, it has no more
    stand_still([&] {
        const auto lock = hold_saves();
        check_usable(false);
        require_data();
        checkpoint();
        require_whole_below_changes();
        durable_step("detaching the data file", [&] {
            // An orphan from now on: found beside a heap that doesn't name it, or alone, it is nobody's second copy.
            if (!planted(Bug::detached_unmarked)) {
                data_->header.is_new = true;
                data_->write_header();
            }
            const auto remove = [&](const io::File& file) {
                remove_ours(file, paths_.data);
                sync_directory_of(storage_, paths_.data, paths_.backing);
            };
            if (planted(Bug::removed_before_detached)) remove(data_->file());
            backing_->header.data = {};
            backing_->write_header();  // from here on it is detached
            remove(data_->file());
        });
        data_.reset();
        waiting_.clear();  // a scrub finds anew what is left to heal
    });
}

bool HeapFile::has_data_file() const {
    check_usable(true);
    const auto lock = hold_saves();
    return data_.has_value();
}

std::unique_ptr<log::Ring> HeapFile::replace_log(ByteCount capacity, const std::filesystem::path& path) {
    const auto lock = hold_saves();
    check_usable(false);
    TAIYEN_CHECK(uses_log());
    HeapPaths to = paths_;
    if (!path.empty()) to.log = path;
    check_paths(to);
    const log::RingIdentity identity{random_uuid(), backing_->header.heap,
                                     capacity != 0 ? round_up(capacity, page_bytes) : ring_identity_.capacity_bytes, false};
    check_log_capacity(identity.capacity_bytes, to.log);
    if (to.log != paths_.log) clear_orphan_log(storage_, to.log, heap_is_ours, backing_->header.heap);
    // Whole before anything changes: a full disk is a log that was never replaced.
    const std::shared_ptr<io::File> file = storage_.create_unnamed(io::directory_of(to.log));
    lock_new(*file);
    log::Ring::format(*file, identity);
    file->prepare_durable();
    const log::RingStart start = fresh_start();
    auto ring = std::make_unique<log::Ring>(file, identity, start, start.position);
    durable_step("replacing the transaction log", [&] {
        // The files hold everything that was committed: a heap that was closed, until the new log has its name.
        const auto write_without_log = [&] {
            for (PageFile* const one : {&*backing_, data_ ? &*data_ : nullptr}) {
                if (one == nullptr) continue;
                fill_header(*one, true);
                one->header.log = {};
                one->header.log_capacity = 0;
                one->write_header();
            }
        };
        if (!planted(Bug::log_removed_before_header)) write_without_log();
        remove_ours(*ring_file_, paths_.log);
        sync_directory_of(storage_, paths_.log, paths_.backing);
        if (planted(Bug::log_removed_before_header)) write_without_log();
        publish_part(storage_, *file, to.log);
        sync_directory_of(storage_, to.log, to.backing);
        {
            const std::lock_guard point(point_mutex_);
            log_start_ = start;
        }
        ring_identity_ = identity;
        ring_file_ = file;
        write_headers();
    });
    paths_.log = std::move(to.log);  // no memory: the heap goes on in the new one
    return ring;
}

void HeapFile::stand_still(const std::function<void()>& step) { participant_ ? participant_->stand_still(step) : step(); }

}  // namespace taiyen::store
