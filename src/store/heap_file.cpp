#include "store/heap_file.hpp"
#include "store/page_copies.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "base/sentence.hpp"
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

}  // namespace

void HeapFile::grow(ByteCount by, const std::function<void()>& action) const {
    try {
        action();
    } catch (const Error& error) {
        if (error.code() == errc::no_space) {
            throw HeapFull(by, 0, HeapFull::Cause::disk, name());
        }
        if (error.code() == errc::out_of_address_space) {
            throw HeapFull(by, 0, HeapFull::Cause::address_space, name());
        }
        throw;
    }
}

HeapFile::HeapFile(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options, const Tuning& tuning,
                   vm::Reservation reservation, const heap::CoreRanges& ranges, OpenFiles files, bool read_only)
    : HeapCore(ranges, std::min(reservation.size(), ranges.durable_bytes)), storage_(storage), paths_(paths), kind_(kind), tuning_(tuning),
      log_capacity_(round_up(options.log_capacity, page_bytes)),
      wants_data_(files.remakes_data || kind == HeapKind::snapshot || (kind == HeapKind::transactional && !options.data_file.empty())),
      wanted_read_ahead_(options.read_ahead), memory_(tuning.memory()), dirty_limit_(options.dirty_limit != 0 ? options.dirty_limit : memory_ / 2),
      read_only_(read_only), capture_(options.capture), audit_(options.audit), foreign_pointers_(options.foreign_pointers),
      program_pointers_(options.program_pointers), reservation_(std::move(reservation)), backing_(std::move(files.backing)),
      data_(std::move(files.data)), tracker_(tracker_kind(options.tracker)),
      table_(
          backing_->header.heap,
          [this](std::uint64_t index, TablePage& page) {
              if (!file_extents().hold(cover_of(index).first)) {
                  return;  // the heap has grown there, and nothing was written yet
              }
              // A reader's data file that is ahead has table pages of its own save; those of the backing file are sound, but older.
              if (load_table_page(
                      view(), maps_data_ ? nullptr : data(), index, file_extents(),
                      [this](PageNumber covered) { return recovering_pages_.contains(covered.value); }, Via::cache, page)) {
                  note_healed();
              }
          },
          files.map_data ? data_->header.table_root : backing_->header.table_root),
      restoration_(files.restoration) {
    tuning_.join = nullptr;  // called by who opens us
    if (!read_only_) {
        set_lender(&held_);
    }
    if (options.guarded && !read_only_) guards_.emplace(paths_.backing, reservation_.data());
    set_links(backing_->header.position_independent ? heap::Links::distances : heap::Links::addresses);
    maps_data_ = files.map_data;
    generation_ = view().header.generation;
    serial_ = view().header.serial;
    active_ = backing_->header.ring_kind;
    saved_extent_ = view().header.extent;
    saved_annex_ = view().header.annex;
    ByteCount extent = saved_extent_;
    for (const SaveRecord& save : files.overlay) {
        extent = std::max<ByteCount>(extent, save.head.extent);
        saved_annex_ = save.annex;
        serial_ = {save.head.serial};
    }
    for (std::optional<PageFile>* file : {&backing_, &data_}) {
        if (*file) {
            (*file)->layout = FileLayout(saved_annex_.places);
        }
    }
    durable_serial_ = serial_;
    annex_.reset(saved_annex_);
    reserve(extent);
    map({0}, extent, read_only_ && files.overlay.empty() && !files.tail ? io::Protection::read : io::Protection::read_write);
    set_mapped(extent);
    if (!files.overlay.empty()) {
        apply_overlay(files.overlay, files.stage.get());
    }
    if (!files.overlay.empty() && !files.tail) {
        vm::protect(reservation_.data(), mapped_, false);
    }
    // Opening looks at the heap's first page only; the kernel would fetch megabytes around it.
    const ByteCount first_chunk = std::min(mapped_, first_chunk_bytes);
    vm::set_readahead(reservation_.data(), first_chunk, false);
    if (!maps_data_ && !recovering_pages_.contains(0)) {
        heal_first_page(read_only_ || files.tail.has_value());
    }
    make_engine();
    vm::set_readahead(reservation_.data(), first_chunk, true);
    choose_read_ahead();
    if (engine_->extent() > mapped_) {
        throw Error(errc::corrupt, paths_.backing, backing_->layout.file_offset({0}),
                    "the heap's first page speaks of more than the file holds; restore it from a copy");
    }
    if (files.ring) {
        ring_file_ = files.ring;
        ring_identity_ = backing_->header.ring_identity();
        log_start_ = files.tail ? files.tail->start : view().header.ring_start;
        if (!read_only_ && !uses_log()) {
            ring_ = std::make_unique<log::Ring>(files.ring, ring_identity_, backing_->header.ring_start, backing_->header.ring_start.position);
        }
    }
    complete();
}

void HeapFile::make_engine() {
    heap::WriteObserver* const observer = participant_ ? participant_->observer() : nullptr;
    auto engine = std::make_unique<heap::Engine>(reservation_.data(), backing_->header.capacity, *this, observer, read_only_);
    const auto nobody_looks = heap::hold_open_cores();
    engine_.swap(engine);
}

void HeapFile::join(std::shared_ptr<SnapshotParticipant> participant) {
    check_usable(false);
    TAIYEN_CHECK(participant_ == nullptr);
    participant_ = std::move(participant);
    try {
        make_engine();  // an engine's observer is for life; what is lost with the old one are hints
    } catch (...) {
        participant_.reset();
        throw;
    }
}

void HeapFile::leave() noexcept {
    if (const std::shared_ptr<SnapshotParticipant> leaving = std::move(participant_)) {
        participant_.reset();
        leaving->left();
        if (in_forked_child() || (!open_ && poisoned_)) {
            return;
        }
        try {
            make_engine();  // the observer goes with the participant; closing uses the engine once more
        } catch (const std::exception& error) {
            poison("ending capture", error.what());
        }
    }
}

void HeapFile::guard(void* block, ByteCount bytes) { guards_->admit(*engine_, participant_ ? participant_->observer() : nullptr, block, bytes); }

void* HeapFile::allocate_guarded(ByteCount bytes, ByteCount alignment, heap::Content content) {
    bytes = std::max<ByteCount>(bytes, 1);
    if (bytes > ranges().durable_bytes) throw HeapFull(bytes, 0, HeapFull::Cause::capacity, name());
    void* const block = engine_->allocate(bytes + heap::TailGuards::canary_bytes, alignment, content);
    try {
        guard(block, bytes);
    } catch (...) {
        engine_->deallocate(block);
        throw;
    }
    return block;
}

void* HeapFile::resize_durable(void* block, ByteCount bytes) {
    check_changeable();
    if (!guards_) return engine_->resize(block, bytes);
    if (block == nullptr) return allocate_durable(bytes, 16, heap::Content::any);
    bytes = std::max<ByteCount>(bytes, 1);
    if (bytes > ranges().durable_bytes) throw HeapFull(bytes, 0, HeapFull::Cause::capacity, name());
    const auto try_guard = [this](void* at, ByteCount size) noexcept {
        try {
            guard(at, size);
        } catch (const std::exception&) {}  // without one
    };
    const std::optional<ByteCount> before = guards_->size_of(block);
    retire_guard(block);
    void* resized = nullptr;
    try {
        resized = engine_->resize(block, bytes + heap::TailGuards::canary_bytes);
    } catch (...) {
        if (before) try_guard(block, *before);
        throw;
    }
    try_guard(resized, bytes);
    return resized;
}

ByteCount HeapFile::usable_durable(const void* block) const noexcept {
    if (guards_)
        if (const auto bytes = guards_->size_of(block)) return *bytes;
    return HeapCore::usable_durable(block);
}

bool HeapFile::deallocate_lent(void* block, std::uint32_t scope) noexcept {
    held_.freed(block);
    return participant_ ? participant_->free_lent(block, scope) : deallocate_durable(block);
}

HeapFile::~HeapFile() {
    try {
        abandon();
    } catch (const std::exception& error) {
        report({errc::io_error, nullptr, error.what()});
    }
}

std::span<std::byte> HeapFile::live_page(PageNumber page) const {
    const Sequence sequence = sequence_of(page);
    std::byte* const base = sequence == Sequence::span ? reservation_.data() : annex_.begin();
    return {base + (offset_of(page).value - start_of(sequence).value), page_bytes};
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
        throw Error(errc::poisoned, paths_.backing,
                    "an earlier failure made the heap unusable (" + poison_ + "); close it and open it again to recover");
    }
    if (read_only_ && !for_reading) {
        throw Error(errc::read_only, paths_.backing, "the heap was opened read-only; open it with open_only to change it");
    }
}

void HeapFile::poison(const char* what, const char* why) noexcept {
    const std::lock_guard lock(poison_mutex_);
    if (poisoned_) {
        return;
    }
    try {
        poison_ = std::string(what) + ": " + why;
    } catch (const std::bad_alloc&) {
        poison_ = "out of memory";  // short enough to need none
    }
    poisoned_ = true;
    events_->tell({.kind = EventKind::poisoned, .text = poison_});
}

std::string HeapFile::why_poisoned() const {
    const std::lock_guard lock(poison_mutex_);
    return poison_;
}

Generation HeapFile::generation() const {
    const std::lock_guard lock(point_mutex_);
    return generation_;
}

Restoration HeapFile::restoration() const {
    Restoration found = restoration_;
    found.pages_healed += healed_;
    return found;
}

void HeapFile::note_healed(std::uint64_t pages) const noexcept {
    healed_ += pages;
    if (pages != 0) events_->tell({.kind = EventKind::healed, .pages = pages, .bytes = pages * page_bytes});
}

Event HeapFile::event_of(EventKind kind) const noexcept {
    const std::lock_guard lock(point_mutex_);
    return {.kind = kind, .generation = generation_.value, .serial = durable_serial_.value};
}

void HeapFile::tell_opened() {
    events_->begin();
    if (!events_->is_heard()) return;
    const Restoration found = restoration();
    Event event = event_of(EventKind::opened);
    event.took = found.took;
    event.restoration = &found;
    if (found.needed() && !read_only_) events_->tell({.kind = EventKind::recovered, .took = found.took, .restoration = &found});
    events_->tell(event);
}

void HeapFile::tell_written(EventKind kind, const EventClock& clock, std::uint64_t pages) const noexcept {
    if (!events_->is_heard()) return;
    Event event = event_of(kind);
    event.took = clock.took();
    event.pages = pages;
    event.bytes = pages * page_bytes;
    events_->tell(event);
}

void HeapFile::tell_closed(const EventClock& clock, std::string_view failure) const noexcept {
    if (!events_->is_heard()) return;
    Event event = event_of(EventKind::closed);
    event.took = clock.took();
    event.text = failure;
    events_->tell(event);
}

void HeapFile::durable_step(const char* what, const std::function<void()>& step) {
    if (poisoned_) {
        check_usable(true);  // throws: what a failed sync may have lost is not made official by a later one
    }
    try {
        step();
    } catch (const std::exception& error) {
        poison(what, error.what());
        throw;
    }
}

void HeapFile::require_whole_files() const {
    const Extents extents = saved_extents();
    for (const PageFile* file : {&*backing_, data()}) {
        if (file == nullptr) {
            continue;
        }
        const ByteCount size = file->file().info().size_bytes;
        if (const ByteCount least = file->layout.file_bytes_for(extents); size < least) {
            throw Error(errc::truncated, file->path(), size,
                        "the file was cut while the heap was open: it had at least " + std::to_string(least) +
                            " bytes. Nothing more is written; close the heap, and open it again or restore its files from a copy");
        }
    }
}

void HeapFile::extend(ByteCount extent_bytes) {
    if (extent_bytes <= mapped_) {
        return;
    }
    reserve(extent_bytes);
    if (read_only_ || replaying_) {
        std::byte* const end = live_page({mapped_ / page_bytes}).data();
        vm::map_anonymous(end, extent_bytes - mapped_);
        vm::prepare_heap_mapping(end, extent_bytes - mapped_);
        set_mapped(extent_bytes);
        return;
    }
    if (mapped_ / page_bytes % FirstTouch::granule_pages != 0) {
        try {
            open_hidden({mapped_ / page_bytes - 1});  // what is new belongs to the same granule
        } catch (const Error&) {
            // A lost page stays hidden.
        }
    }
    grow(extent_bytes - mapped_, [&] {
        clear_growth({mapped_, 0}, {extent_bytes, 0});
        make_long_enough({extent_bytes, 0});
        map({mapped_}, extent_bytes - mapped_, io::Protection::read_write);
    });
    if (first_touch_) {
        first_touch_->extended(extent_bytes);
    }
    if (participant_) {
        participant_->extended(mapped_, extent_bytes);
    }
    set_mapped(extent_bytes);
    choose_read_ahead();
}

void HeapFile::choose_read_ahead() noexcept {
    const std::lock_guard lock(read_ahead_mutex_);
    const ByteCount bytes = durable_extent();
    const bool alone = wanted_read_ahead_ == ReadAhead::random || (wanted_read_ahead_ == ReadAhead::automatic && bytes > memory_ / 2);
    if (alone != reads_alone_) {
        reads_alone_ = alone;  // first: what is mapped meanwhile is mapped so
        vm::set_readahead(reservation_.data(), bytes, !alone);
    }
}

void HeapFile::look_at_memory() noexcept {
    try {
        memory_ = tuning_.memory();
    } catch (const std::exception&) {
        return;  // it stays as it is
    }
    choose_read_ahead();
}

void HeapFile::will_read(HeapOffset offset, ByteCount length) const noexcept {
    if (reads_alone_ && length != 0) {
        vm::will_read(reservation_.data() + offset.value, length);
    }
}

void HeapFile::will_read_metadata() const noexcept {
    const heap::Geometry geometry(backing_->header.capacity);
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const heap::Region& region = geometry.region(index);
        const ByteCount extent = durable_extent();
        const HeapOffset first = offset_of(PageNumber{region.first});
        if (first.value < extent) {
            will_read(first, std::min(offset_of(PageNumber{region.first_user}).value, extent) - first.value);
        }
    }
}

void HeapFile::reserve(ByteCount extent) {
    const ByteCount before = reservation_.size();
    const ByteCount capacity = ranges().durable_bytes;
    const ByteCount least = extent + page_bytes;
    if (least <= before) {
        return;
    }
    for (const ByteCount wanted : {heap::CoreRanges::reserved_bytes(extent, capacity), least}) {
        try {
            occupy(std::min(wanted, capacity));
            try {
                reservation_.extend(wanted);
            } catch (...) {
                occupy(std::min(before, capacity));
                throw;
            }
            return;
        } catch (const Error& error) {
            if (wanted == least) {
                throw HeapFull(extent - mapped_, 0, error.code() == errc::address_in_use ? HeapFull::Cause::neighbor : HeapFull::Cause::address_space,
                               name());
            }
        }
    }
}

void HeapFile::about_to_use(ByteCount length) {
    // A transactional heap's dirty pages are a matter of its log.
    if (read_only_ || uses_log() || mapped_ <= dirty_limit_) {
        return;
    }
    used_since_look_ += length;
    if (used_since_look_ <= dirty_limit_ / 16) {
        return;
    }
    // What may be written before the next look counts; the rest of a large block is nothing before it is written.
    ByteCount dirty = std::min(length, dirty_limit_ / 16);
    for (const vm::PageRun& run : written_runs()) {
        dirty += run.count * page_bytes;
    }
    if (dirty > dirty_limit_) {
        throw HeapFull(length, 0, HeapFull::Cause::dirty_limit, name());
    }
    used_since_look_ = 0;
}

void HeapFile::make_long_enough(const Extents& extents) {
    durable_step("growing", [&] { require_whole_files(); });
    const std::lock_guard lock(size_mutex_);
    for (PageFile* file : {&*backing_, data_ ? &*data_ : nullptr}) {
        if (file != nullptr) {
            file->make_long_enough(extents);
        }
    }
}

void HeapFile::clear_growth(const Extents& before, const Extents& after) {
    try {
        for (PageFile* file : {&*backing_, data_ ? &*data_ : nullptr}) {
            if (file != nullptr && file->clear_growth(before, after) != 0) {
                // Else a save that speaks of these pages without writing them could bring it back.
                durable_step("clearing what lay behind the heap's end", [&] { file->sync(); });
            }
        }
    } catch (const std::bad_alloc&) {
        throw HeapFull(after.span - before.span + after.annex - before.annex, 0, HeapFull::Cause::address_space,
                       name());  // who grows knows no other lack of memory
    }
}

void HeapFile::map_at(std::byte* address, HeapOffset offset, ByteCount length, io::Protection protection) const {
    // What a reader gets from journal or log may go beyond the extents that the file's header knows. There, the file has nothing to copy on write, not even zeros.
    const Extents extents = read_only_ ? view().header.extents() : Extents{sequence_bytes_max, sequence_bytes_max};
    for_each_piece(offset, length, [&](HeapOffset at, ByteCount part) {
        std::byte* const to = address + (at.value - offset.value);
        const ByteCount before = at.value - start_of(sequence_of(at)).value;
        const ByteCount there = std::min(part, extents.of(sequence_of(at)) - std::min(before, extents.of(sequence_of(at))));
        if (there != 0) {
            view().file().map_private(to, there, view().layout.file_offset(at), protection);
        }
        if (there < part) {
            vm::map_anonymous(to + there, part - there);
        }
        vm::prepare_heap_mapping(to, part);
        if (reads_alone_ && sequence_of(at) == Sequence::span) {
            vm::set_readahead(to, part, false);
        }
    });
}

std::vector<vm::PageRun> HeapFile::written_span_runs() const {
    std::vector<vm::PageRun> runs;
    tracker_.written_pages(reservation_.data(), mapped_, runs);
    return first_touch_ ? first_touch_->visible(runs) : runs;  // nobody has written what is hidden
}

std::vector<vm::PageRun> HeapFile::written_runs() const {
    std::vector<vm::PageRun> runs = written_span_runs();
    if (annex_.is_open() && annex_.mapped() != 0) {
        const std::size_t span_runs = runs.size();
        tracker_.written_pages(annex_.begin(), annex_.mapped(), runs);
        for (std::size_t i = span_runs; i < runs.size(); ++i) {
            runs[i].first += annex_first_page.value;
        }
    }
    return runs;
}

std::vector<WrittenRange> HeapFile::written_ranges() const {
    check_usable(true);
    std::vector<WrittenRange> ranges;
    if (read_only_) {
        return ranges;
    }
    const AlignedBuffer saved(page_bytes);
    const auto is_saved = [&](PageNumber page) {
        if (uses_log()) {
            // A save in the background leaves private copies behind, which capture keeps or which are given back later.
            return !backing_->try_read_pages(page, saved.span(), Via::cache) && std::memcmp(live_page(page).data(), saved.data(), page_bytes) == 0;
        }
        // Several threads may look at once: the save that made the copy has loaded its table page, so nothing is loaded here.
        return saved_copies_.contains(page.value) && page_checksum(live_page(page), page, table_.heap()) == table_.entry(page);
    };
    for (const vm::PageRun& run : written_span_runs()) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            if (is_saved({page})) {
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

bool HeapFile::differs_from_save() {
    check_usable(false);
    const auto lock = hold_saves();
    return !changed_pages(written_span_runs(), nullptr).empty();
}

void HeapFile::drop_unsaved() {
    require_restored();
    vm::drop(reservation_.data(), mapped_);
    annex_.reset(saved_annex_);
    saved_copies_.clear();
    forget_proofs();
    set_mapped(saved_extent_);
}

void HeapFile::remove_ours(const io::File& file, const std::filesystem::path& path) {
    if (is_still_at(storage_, file, path)) {  // else somebody moved our files while the heap was open
        storage_.remove(path);
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
    const EventClock clock;
    if (participant_ && !in_forked_child()) {
        participant_->before_abandon();
    }
    if (!in_forked_child()) {  // where nobody visits who would ever leave
        visits_.end();
    }
    std::optional<Error> failure;
    if (!in_forked_child() && !read_only_) {
        try {
            if (!poisoned_) {
                check_guards();
                durable_step("closing", [&] { require_whole_files(); });
            }
        } catch (const Error& error) {
            failure = error;
        }
        if (!failure || failure->code() != errc::truncated) {  // else there may be nothing to read
            held_pages_ = copy_held_pages();
        }
    }
    open_ = false;
    leave();
    try {
        close_files();
        if (failure) throw Error(*failure);
    } catch (const Error& error) {
        tell_closed(clock, error.what());
        throw;
    }
    tell_closed(clock, {});
}

std::vector<HeapOffset> HeapFile::held_blocks() {
    held_.settle();
    const std::vector<HeapOffset> suspects = held_.suspects();
    if (suspects.empty()) {
        return {};
    }
    uncover({0}, mapped_);
    return heap::owned_outside(*engine_, reinterpret_cast<const std::byte*>(ranges().durable), suspects, links());
}

HeldPages HeapFile::copy_held_pages() noexcept {
    try {
        return {*engine_, reinterpret_cast<const std::byte*>(ranges().durable), held_blocks(), links()};
    } catch (const std::exception& error) {
        report({errc::still_in_use, nullptr, error.what()});
        return {};
    }
}

void HeapFile::close_files() {
    if (in_forked_child()) {
        // A forked child: the mapping was not inherited, the files are the parent's.
        reservation_.leak();
        annex_.leak();
        unregister();
        return;
    }
    std::string failure;
    errc failure_code = errc::io_error;
    // A log that holds more than the files makes the heap one whose user crashed.
    const bool writing = !read_only_ && !poisoned_ && (ring_ != nullptr || (uses_log() && ring_file_ && contains_log()));
    if (writing) {
        try {
            if (planted(Bug::remove_ring_before_clean)) {
                storage_.remove(ring_file_->path());
                storage_.sync_directory(io::directory_of(ring_file_->path()));
            }
            if (planted(Bug::clean_before_checkpoint)) {
                fill_header(*backing_, true);
                backing_->write_header();
            }
            if (saved_anything_ || give_back_.takes_all()) {
                give_back_.run();
            }
            checkpoint();
            durable_step("closing", [&] {
                backing_->file().resize(backing_->layout.file_bytes_for(saved_extents()));
                if (data_) {
                    data_->file().resize(backing_->layout.file_bytes_for(saved_extents()));
                }
                fill_header(*backing_, true);
                backing_->write_header();
                if (data_) {
                    fill_header(*data_, true);
                    data_->write_header();
                }
                if (!uses_log()) {
                    remove_ours(*ring_file_, paths_.journal);
                }
            });
        } catch (const Error& error) {
            failure = text_of(error);
            failure_code = static_cast<errc>(error.code().value());
        } catch (const std::exception& error) {
            failure = error.what();
        }
    }
    ring_.reset();
    ring_file_.reset();
    if (held_pages_.blocks() != 0) {
        vm::unmap_to_reservation(reservation_.data(), reservation_.size());
        held_pages_.put_back(reservation_.data());
        reservation_.leak();
    }
    unregister();
    engine_.reset();
    annex_.close();
    reservation_ = {};
    backing_.reset();
    data_.reset();
    if (!failure.empty()) {
        throw Error(failure_code, paths_.backing, "closing failed: " + failure + "; nothing that was saved is lost: open the heap again to recover");
    }
    if (held_pages_.blocks() != 0) {
        throw Error(errc::still_in_use, paths_.backing,
                    "containers that were moved out of the heap still hold " + std::to_string(held_pages_.blocks()) +
                        " of its blocks; destroy them before closing. What was saved doesn't hold these blocks any more");
    }
}

}  // namespace taiyen::store
