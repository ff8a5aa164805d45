#include "store/heap_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "heap/geometry.hpp"

namespace taiyen::store {
namespace {

vm::TrackerKind tracker_kind(PageTrackerChoice choice) {
    switch (choice) {
        case PageTrackerChoice::scan: return vm::TrackerKind::scan;
        case PageTrackerChoice::pagemap: return vm::TrackerKind::pagemap;
        case PageTrackerChoice::automatic: break;
    }
    return vm::TrackerKind::automatic;
}

/// Half of the smaller of memory and the limit of our memory cgroup (cgroup v2, Documentation/admin-guide/cgroup-v2.rst).
ByteCount automatic_dirty_limit() {
    const auto memory = static_cast<ByteCount>(::sysconf(_SC_PHYS_PAGES)) * static_cast<ByteCount>(::sysconf(_SC_PAGESIZE));
    ByteCount limit = memory;
    std::ifstream group("/proc/self/cgroup");
    for (std::string line; std::getline(group, line);) {
        if (line.starts_with("0::")) {
            std::ifstream max("/sys/fs/cgroup" + line.substr(3) + "/memory.max");
            ByteCount bytes = 0;
            if (max >> bytes) {
                limit = std::min(limit, bytes);
            }
        }
    }
    return limit / 2;
}

}  // namespace

HeapFile::HeapFile(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options, const Tuning& tuning, vm::Reservation reservation,
                   const heap::CoreRanges& ranges, OpenFiles files, bool read_only)
    : HeapCore(ranges),
      storage_(storage),
      paths_(paths),
      kind_(kind),
      tuning_(tuning),
      dirty_limit_(options.dirty_limit != 0 ? options.dirty_limit : automatic_dirty_limit()),
      read_only_(read_only),
      reservation_(std::move(reservation)),
      backing_(std::move(files.backing)),
      data_(std::move(files.data)),
      tracker_(tracker_kind(options.tracker)),
      table_(
          backing_->header.heap,
          [this](std::uint64_t index, TablePage& page) {
              if (load_table_page(*backing_, data(), index, saved_extent_, [](PageNumber) { return false; }, Via::cache, page)) {
                  ++restoration_.pages_healed;
              }
          },
          files.map_data ? data_->header.table_root : backing_->header.table_root),
      restoration_(files.restoration) {
    maps_data_ = files.map_data;
    generation_ = view().header.generation;
    saved_extent_ = view().header.extent;
    ByteCount extent = saved_extent_;
    for (const SaveRecord& save : files.overlay) {
        extent = std::max<ByteCount>(extent, save.head.extent);
    }
    for_each_piece({0}, extent, [&](HeapOffset offset, ByteCount length) {
        std::byte* at = reservation_.data() + offset.value;
        view().file().map_private(at, length, file_offset(offset), read_only_ && files.overlay.empty() ? io::Protection::read : io::Protection::read_write);
        vm::prepare_heap_mapping(at, length);
    });
    mapped_ = extent;
    if (!files.overlay.empty()) {
        apply_overlay(files.overlay, view().file(), files.stage.get());
    }
    // Opening looks at the heap's first page only; the kernel would fetch megabytes around it.
    const ByteCount first_chunk = std::min(mapped_, first_chunk_bytes);
    vm::set_readahead(reservation_.data(), first_chunk, false);
    if (files.overlay.empty() && !maps_data_) {
        heal_first_page();
    }
    make_engine();
    vm::set_readahead(reservation_.data(), first_chunk, true);
    if (engine_->extent() > mapped_) {
        throw Error(errc::corrupt, paths_.backing, file_offset({0}), "the heap's first page speaks of more than the file holds; restore it from a copy");
    }
    if (files.ring) {
        ring_file_ = files.ring;
        ring_identity_ = backing_->header.ring_identity();
        if (!read_only_) {
            ring_ = std::make_unique<log::Ring>(files.ring, ring_identity_, backing_->header.ring_start, backing_->header.ring_start.position);
        }
    }
}

void HeapFile::make_engine() {
    heap::WriteObserver* const observer = participant_ ? participant_->observer() : nullptr;
    engine_ = std::make_unique<heap::Engine>(reservation_.data(), backing_->header.capacity, *this, observer, read_only_);
}

void HeapFile::join(std::shared_ptr<SnapshotParticipant> participant) {
    check_usable(false);
    TAIYEN_CHECK(participant_ == nullptr);
    participant_ = std::move(participant);
    make_engine();  // an engine's observer is for life; what is lost with the old one are hints
}

void HeapFile::leave() noexcept {
    if (const std::shared_ptr<SnapshotParticipant> leaving = std::move(participant_)) {
        participant_.reset();
        leaving->left();
        if (open_) {
            make_engine();
        }
    }
}

bool HeapFile::deallocate_lent(void* block, std::uint32_t scope) noexcept {
    return participant_ ? participant_->free_lent(block, scope) : deallocate_durable(block);
}

HeapFile::~HeapFile() {
    try {
        abandon();
    } catch (const std::exception& error) {
        report({errc::io_error, nullptr, error.what()});
    }
}

std::span<std::byte> HeapFile::live_page(PageNumber page) const { return {reservation_.data() + offset_of(page).value, page_bytes}; }

void HeapFile::heal_first_page() {
    // The engine reads the super block before anybody could call heal(): damage there is healed, or named, here.
    const PageNumber first{0};
    const std::uint64_t expected = table_.entry(first);
    if (page_checksum(live_page(first), first, table_.heap()) == expected) {
        return;
    }
    const AlignedBuffer good(page_bytes);
    if (data_) {
        data_->read_pages(first, good.span(), Via::device);
    }
    if (!data_ || page_checksum(good.span(), first, table_.heap()) != expected) {
        backing_->throw_corrupt_page(first, data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
    }
    if (read_only_) {  // in the private view only
        vm::protect(live_page(first).data(), page_bytes, true);
        std::memcpy(live_page(first).data(), good.data(), page_bytes);
        vm::protect(live_page(first).data(), page_bytes, false);
    } else {
        backing_->write_pages(first, good.span());
        backing_->sync();
    }
    ++restoration_.pages_healed;
}

void HeapFile::apply_overlay(const std::vector<SaveRecord>& overlay, const io::File& file, const io::File* stage) {
    // A reader's view of a heap whose user crashed: what recovery would write into the files goes into private copies. The crash may have cost the file its growth:
    // behind its end there is nothing to copy on write.
    const ByteCount file_bytes = round_up(file.info().size_bytes, page_bytes);
    for_each_piece({0}, mapped_, [&](HeapOffset offset, ByteCount length) {
        const std::uint64_t at = file_offset(offset);
        const ByteCount there = file_bytes > at ? std::min<ByteCount>(length, file_bytes - at) : 0;
        if (there < length) {
            vm::map_anonymous(reservation_.data() + offset.value + there, length - there);
        }
    });
    for (const SaveRecord& save : overlay) {
        for_each_saved_page(save, stage, [&](PageNumber page, std::uint64_t, std::span<const std::byte> image) {
            recovering_pages_.insert(page.value);
            if (image.empty()) {
                std::memset(live_page(page).data(), 0, page_bytes);
            } else {
                std::memcpy(live_page(page).data(), image.data(), page_bytes);
            }
        });
        generation_ = {save.head.generation};
    }
    saved_extent_ = mapped_;
    vm::protect(reservation_.data(), mapped_, false);
}

bool HeapFile::is_recovering(const TableCover& cover) const {
    for (std::uint64_t i = 0; !recovering_pages_.empty() && i < cover.count; ++i) {
        if (recovering_pages_.contains(cover.first.value + i)) {
            return true;
        }
    }
    return false;
}

void HeapFile::check_usable(bool for_reading) const {
    if (!open_) {
        throw Error(errc::closed, paths_.backing, "the heap is closed; open it again");
    }
    if (in_forked_child()) {
        throw Error(errc::forked, paths_.backing, "the heap was opened before fork(); open it in the process that uses it");
    }
    if (poisoned_) {
        throw Error(errc::poisoned, paths_.backing, "an earlier failure made the heap unusable (" + poison_ + "); close it and open it again to recover");
    }
    if (read_only_ && !for_reading) {
        throw Error(errc::read_only, paths_.backing, "the heap was opened read-only; open it with open_only to change it");
    }
}

void HeapFile::poison(const char* what, const char* why) noexcept {
    if (std::exchange(poisoned_, true)) {
        return;
    }
    try {
        poison_ = std::string(what) + ": " + why;
    } catch (const std::bad_alloc&) {
        poison_ = "out of memory";  // short enough to need none
    }
}

void HeapFile::durable_step(const char* what, const std::function<void()>& step) {
    try {
        step();
    } catch (const std::exception& error) {
        poison(what, error.what());
        throw;
    }
}

void HeapFile::extend(ByteCount extent_bytes) {
    if (extent_bytes <= mapped_) {
        return;
    }
    if (extent_bytes > dirty_limit_ && extent_bytes - dirty_checked_ > dirty_limit_ / 16) {
        ByteCount dirty = 0;
        for (const vm::PageRun& run : written_runs()) {
            dirty += run.count * page_bytes;
        }
        if (dirty + (extent_bytes - mapped_) > dirty_limit_) {
            throw HeapFull(extent_bytes - mapped_, 0, HeapFull::Cause::dirty_limit);
        }
        dirty_checked_ = extent_bytes;
    }
    try {
        backing_->allocate(mapped_, extent_bytes);
        if (data_) {
            data_->allocate(mapped_, extent_bytes);
        }
        map(mapped_, extent_bytes);
        if (participant_) {
            participant_->extended(mapped_, extent_bytes);
        }
    } catch (const Error& error) {
        if (error.code() == errc::no_space) {
            throw HeapFull(extent_bytes - mapped_, 0, HeapFull::Cause::disk);
        }
        if (error.code() == errc::out_of_address_space) {
            throw HeapFull(extent_bytes - mapped_, 0, HeapFull::Cause::address_space);
        }
        throw;
    }
    mapped_ = extent_bytes;
}

void HeapFile::map(ByteCount from, ByteCount to) {
    for_each_piece({from}, to - from, [&](HeapOffset offset, ByteCount length) {
        std::byte* at = reservation_.data() + offset.value;
        backing_->file().map_private(at, length, file_offset(offset), io::Protection::read_write);
        vm::prepare_heap_mapping(at, length);
    });
}

void HeapFile::restore_blocks(HeapOffset offset, ByteCount length) {
    try {
        for_each_piece(offset, length, [&](HeapOffset at, ByteCount part) {
            backing_->file().allocate(file_offset(at), part);
            if (data_) {
                data_->file().allocate(file_offset(at), part);
            }
        });
    } catch (const Error& error) {
        if (error.code() == errc::no_space) {
            throw HeapFull(length, 0, HeapFull::Cause::disk);
        }
        throw;
    }
}

std::vector<vm::PageRun> HeapFile::written_runs() const {
    std::vector<vm::PageRun> runs;
    tracker_.written_pages(reservation_.data(), mapped_, runs);
    return runs;
}

std::vector<WrittenRange> HeapFile::written_ranges() const {
    check_usable(true);
    std::vector<WrittenRange> ranges;
    if (read_only_) {
        return ranges;
    }
    for (const vm::PageRun& run : written_runs()) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            if (saved_copies_.contains(page) && page_checksum(live_page({page}), {page}, table_.heap()) == table_.entry({page})) {
                continue;
            }
            const std::uint64_t offset = offset_of(PageNumber{page}).value;
            if (!ranges.empty() && ranges.back().offset + ranges.back().bytes == offset) {
                ranges.back().bytes += page_bytes;
            } else {
                ranges.push_back({offset, page_bytes});
            }
        }
    }
    return ranges;
}

bool HeapFile::metadata_is_sound() const {
    const heap::Geometry geometry(backing_->header.capacity);
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const heap::Region& region = geometry.region(index);
        const std::uint64_t end = std::min<std::uint64_t>((region.lines + page_bytes - 1) / page_bytes, saved_extent_ / page_bytes);
        for (std::uint64_t page = region.first; page < end; ++page) {
            if (page_checksum(live_page({page}), {page}, table_.heap()) != table_.entry({page})) {
                return false;
            }
        }
    }
    return true;
}

void HeapFile::give_back() {
    // What was saved is all that counts from here on: unsaved changes are dropped, then free pages lose their disk blocks.
    checkpoint();
    vm::drop(reservation_.data(), mapped_);
    saved_copies_.clear();
    if (!metadata_is_sound()) {
        return;  // damaged page states may call live pages free; verify() and heal() tell and repair
    }
    engine_->forget({0}, backing_->header.capacity);
    const std::vector<heap::FreeRun> runs = engine_->release_free_pages(16 * page_bytes);
    if (runs.empty()) {
        return;
    }
    std::vector<ChangedPage> changed = changed_pages(written_runs(), nullptr);
    for (const heap::FreeRun& run : runs) {
        for (std::uint64_t page = run.offset.value / page_bytes; page < (run.offset.value + run.length) / page_bytes; ++page) {
            if (table_.entry({page}) != 0) {
                changed.push_back({{page}, 0});
            }
        }
    }
    std::sort(changed.begin(), changed.end(), [](const ChangedPage& a, const ChangedPage& b) { return a.page < b.page; });
    const auto punch_all = [&] {
        for (const heap::FreeRun& run : runs) {
            backing_->punch_pages(page_of(run.offset), run.length / page_bytes);
            if (data_) {
                data_->punch_pages(page_of(run.offset), run.length / page_bytes);
            }
        }
    };
    if (planted(Bug::punch_before_checkpoint)) {
        punch_all();
    }
    save_changed(changed, true);
    checkpoint();
    durable_step("giving free pages back", punch_all);
}

void HeapFile::remove_journal() {
    const auto found = storage_.find(paths_.journal);
    const io::FileInfo ours = ring_file_->info();
    if (found && found->inode == ours.inode && found->device == ours.device) {  // else somebody moved our files while the heap was open
        storage_.remove(paths_.journal);
    }
}

void HeapFile::close() {
    if (open_ && participant_ && !in_forked_child()) {
        participant_->before_close();
    }
    abandon();
}

void HeapFile::abandon() {
    if (!open_) {
        return;
    }
    open_ = false;
    leave();
    close_files();
}

void HeapFile::close_files() {
    if (in_forked_child()) {
        // A forked child: the mapping was not inherited, the files are the parent's.
        reservation_.leak();
        unregister();
        return;
    }
    std::string failure;
    errc failure_code = errc::io_error;
    const bool writing = !read_only_ && !poisoned_ && ring_ != nullptr;
    if (writing) {
        try {
            if (planted(Bug::remove_ring_before_clean)) {
                storage_.remove(paths_.journal);
                storage_.sync_directory(io::directory_of(paths_.journal));
            }
            if (planted(Bug::clean_before_checkpoint)) {
                fill_header(*backing_, true);
                backing_->write_header();
            }
            if (saved_anything_) {
                give_back();
            }
            checkpoint();
            durable_step("closing", [&] {
                backing_->file().resize(file_bytes_for(saved_extent_));
                if (data_) {
                    data_->file().resize(file_bytes_for(saved_extent_));
                }
                fill_header(*backing_, true);
                backing_->write_header();
                if (data_) {
                    fill_header(*data_, true);
                    data_->write_header();
                }
                remove_journal();
            });
        } catch (const Error& error) {
            failure = error.what();
            failure_code = static_cast<errc>(error.code().value());
        } catch (const std::exception& error) {
            failure = error.what();
        }
    }
    ring_.reset();
    ring_file_.reset();
    const std::uint64_t scratch_blocks = scratch_live();
    if (scratch_blocks != 0) {
        vm::unmap_to_reservation(reservation_.data(), ranges().durable_bytes);
        reservation_.leak();
    }
    unregister();
    engine_.reset();
    reservation_ = {};
    backing_.reset();
    data_.reset();
    if (!failure.empty()) {
        throw Error(failure_code, paths_.backing, "closing failed: " + failure + "; nothing that was saved is lost: open the heap again to recover");
    }
    if (scratch_blocks != 0) {
        throw Error(errc::still_in_use, paths_.backing,
                    std::to_string(scratch_blocks) + " blocks of containers outside the heap still live in its scratch memory; destroy them before closing");
    }
}

}  // namespace taiyen::store
