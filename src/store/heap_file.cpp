#include "store/heap_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "base/sentence.hpp"

namespace taiyen::store {
namespace {

std::string closing_failed(const std::string& why) {
    return "closing failed: " + why + "; nothing that was saved is lost: open the heap again to recover";
}

}  // namespace

HeapFile::HeapFile(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options, const Tuning& tuning,
                   vm::Reservation reservation, const heap::CoreRanges& ranges, OpenFiles files, bool read_only)
    : HeapCore(ranges, std::min(reservation.size(), ranges.durable_bytes)), events_(std::make_shared<EventSource>(paths.backing.string())),
      condition_(*this, paths.backing, *events_, read_only), files_(storage, paths, kind, condition_, events_, files),
      image_(*this, files_, std::move(reservation), options, tuning.memory),
      proofs_(*this, condition_, files_, image_, participant_, options.capture), log_replay_(tuning.log_replay),
      dirty_limit_(options.dirty_limit != 0 ? options.dirty_limit : image_.memory() / 2), capture_(options.capture), audit_(options.audit),
      foreign_pointers_(options.foreign_pointers), program_pointers_(options.program_pointers) {
    if (!read_only) {
        const bool wants_data = files.remakes_data || kind == HeapKind::snapshot || (kind == HeapKind::transactional && !options.data_file.empty());
        const Companions::Wanted wanted{tuning.journal_bytes, round_up(options.log_capacity, page_bytes), wants_data};
        writing_.emplace(*this, condition_, files_, image_, proofs_, visits_, participant_, tuning.batch_bytes, wanted);
        set_lender(&held_);
        if (options.guarded) guards_.emplace(paths.backing, image_.begin());
    }
    set_links(files_.backing().header.position_independent ? heap::Links::distances : heap::Links::addresses);
    ByteCount extent = files_.extents().span;
    for (const SaveRecord& save : files.overlay) extent = std::max<ByteCount>(extent, save.head.extent);
    image_.annex().reset(files_.point().annex);
    reserve(extent);
    image_.map({0}, extent, read_only && files.overlay.empty() && !files.tail ? io::Protection::read : io::Protection::read_write);
    set_mapped(extent);
    if (!files.overlay.empty()) {
        apply_overlay(files.overlay, files.stage.get());
        if (!files.tail) vm::protect(image_.begin(), image_.mapped(), false);
    }
    // Opening looks at the heap's first page only; the kernel would fetch megabytes around it.
    const ByteCount first_chunk = std::min(image_.mapped(), first_chunk_bytes);
    vm::set_readahead(image_.begin(), first_chunk, false);
    if (!files_.maps_data() && !files_.recovering_pages().contains(0)) proofs_.heal_first_page(read_only || files.tail.has_value());
    make_engine();
    vm::set_readahead(image_.begin(), first_chunk, true);
    image_.choose_read_ahead();
    if (engine_->extent() > image_.mapped()) {
        throw Error(errc::corrupt, paths.backing, files_.backing().layout.file_offset({0}),
                    "the heap's first page speaks of more than the file holds; restore it from a copy");
    }
    complete();
}

void HeapFile::make_engine() {
    heap::WriteObserver* const observer = participant_ ? participant_->observer() : nullptr;
    auto engine = std::make_unique<heap::Engine>(image_.begin(), files_.backing().header.capacity, *this, observer, condition_.is_read_only());
    const auto nobody_looks = heap::hold_open_cores();
    engine_.swap(engine);
    type_notes().forget_kept();
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
        if (in_forked_child() || (!is_open() && condition_.is_poisoned())) return;
        try {
            make_engine();  // the observer goes with the participant; closing uses the engine once more
        } catch (const std::exception& error) {
            condition_.poison("ending capture", error.what());
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

bool HeapFile::deallocate_durable(void* block) noexcept {
    if (participant_ && participant_->free_later(block)) return true;
    retire_guard(block);
    heap::FreeResult result;
    try {
        check_changeable();
        result = engine_->deallocate(block);
    } catch (...) {
        return heap::tell_failed_free(block);
    }
    if (result != heap::FreeResult::freed) [[unlikely]]
        return heap::tell(result, block);
    held_.freed(block);
    return true;
}

HeapFile::~HeapFile() {
    try {
        abandon();
    } catch (const std::exception& error) {
        report({errc::io_error, nullptr, error.what()});
    }
}

bool HeapFile::protect(HeapOffset offset, ByteCount length, bool writable) noexcept {
    FirstTouch* const hidden = image_.first_touch();
    return hidden != nullptr ? hidden->protect(page_of(offset), length / page_bytes, writable) : HeapCore::protect(offset, length, writable);
}

std::byte* HeapFile::open_annex(ByteCount capacity) {
    check_usable(read_only());
    if (writing_ && !image_.annex().is_open()) writing_->saves.checkpoint();  // a save that ended the annex may stand in the ring only
    return image_.annex().open(capacity, [this] { proofs_.prove_annex(); });
}

Annex::View HeapFile::view_annex() const {
    check_usable(true);
    return image_.annex().view();
}

void HeapFile::extend_annex(ByteCount bytes) {
    check_usable(false);
    image_.annex().extend(bytes);
}

bool HeapFile::has_data_file() const {
    check_usable(true);
    const auto lock = files_.hold_saves();
    return files_.data() != nullptr;
}

void HeapFile::save() {
    condition_.check_usable(false);
    if (participant_ && participant_->save_itself()) return;
    if (files_.uses_log()) {
        const SavedPoint point = files_.point();
        save_at({point.serial, point.log_start, image_.mapped()});
        return;
    }
    check_guards();
    const auto lock = files_.hold_saves();
    condition_.durable_step("saving", [&] { files_.require_whole(); });  // what was stored where the file ends now is gone, and nobody would know
    writing_->healing.heal_waiting();
    if (participant_) participant_->before_save();
    const ProgramPointers program = next_program_pointers();
    std::vector<vm::PageRun> runs;
    std::vector<ChangedPage> changed;
    std::optional<heap::ForeignPointerScan> scan;
    const auto look = [&](heap::ForeignPointerScan* with) {
        held_.settle();
        runs = image_.written_runs();
        changed = proofs_.changed_pages(runs, with);
    };
    if (!participant_ && type_notes().are_waiting()) {  // they come with what was changed, if anything was
        look(nullptr);
        if (!changed.empty()) write_type_notes();
    }
    look(&scan.emplace(*this, program));
    if (!changed.empty()) {
        scan->finish();
        note_searched(program);
        if (image_.annex().has_ended()) writing_->saves.end_annex(changed);
        writing_->saves.save_changed(changed, false);
        if (planted(Bug::annex_ends_after_record) && image_.annex().has_ended()) {
            std::vector<ChangedPage> end{{annex_first_page, 0}};
            writing_->saves.save_changed(end, false);
        }
    }
    if (participant_) participant_->saved();
    writing_->saves.tidy(runs, changed);
}

void HeapFile::save_at(const SavePoint& point) {
    condition_.check_usable(false);  // before the lock: in a forked child nobody would ever let go of it
    const auto lock = files_.hold_saves();
    condition_.check_usable(false);
    TAIYEN_CHECK(files_.uses_log());
    const std::vector<vm::PageRun> runs = image_.written_runs();
    const ProgramPointers program = point.searches ? next_program_pointers() : ProgramPointers::unsearched;
    std::optional<heap::ForeignPointerScan> scan;
    if (point.searches) scan.emplace(*this, program);
    std::vector<ChangedPage> changed = proofs_.changed_pages(runs, scan ? &*scan : nullptr);
    if (scan && !changed.empty()) {
        scan->finish();
        note_searched(program);
    }
    if (!changed.empty() && image_.annex().has_ended()) writing_->saves.end_annex(changed);
    writing_->saves.save_live(point, std::move(changed));
    proofs_.drop_written(runs);
    image_.look_at_memory();
}

void HeapFile::save_moved(std::uintptr_t base, std::span<const PageNumber> pages, const FillPages& patch) {
    TAIYEN_CHECK(!participant_);
    saves().save_moved(base, pages, patch);
}

void HeapFile::save_resized(ByteCount capacity) {
    TAIYEN_CHECK(!participant_);
    saves().save_resized(capacity);
}

void HeapFile::drop_private() {
    condition_.check_usable(false);  // before the lock: in a forked child nobody would ever let go of it
    const auto lock = files_.hold_saves();
    condition_.check_usable(false);
    proofs_.drop_all();
    make_engine();
}

ByteCount HeapFile::private_bytes() const {
    ByteCount bytes = 0;
    for (const vm::PageRun& run : image_.written_span_runs()) bytes += run.count * page_bytes;
    return bytes;
}

std::vector<WrittenRange> HeapFile::written_ranges() const {
    condition_.check_usable(true);
    std::vector<WrittenRange> ranges;
    if (condition_.is_read_only()) return ranges;
    const AlignedBuffer saved(page_bytes);
    const auto is_saved = [&](PageNumber page) {
        if (files_.uses_log()) {
            // A save in the background leaves private copies behind, which capture keeps or which are given back later.
            return !files_.backing().try_read_pages(page, saved.span(), Via::cache) &&
                   std::memcmp(image_.live_page(page).data(), saved.data(), page_bytes) == 0;
        }
        // Several threads may look at once: the save that made the copy has loaded its table page, so nothing is loaded here.
        return proofs_.is_saved_copy(page) && page_checksum(image_.live_page(page), page, files_.table().heap()) == files_.table().entry(page);
    };
    for (const vm::PageRun& run : image_.written_span_runs()) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            if (is_saved({page})) continue;
            const std::uint64_t offset = offset_of(PageNumber{page}).value;
            if (!ranges.empty() && ranges.back().offset + ranges.back().bytes == offset)
                ranges.back().bytes += page_bytes;
            else
                ranges.push_back({offset, page_bytes});
        }
    }
    return ranges;
}

bool HeapFile::differs_from_save() {
    condition_.check_usable(false);
    const auto lock = files_.hold_saves();
    return !proofs_.changed_pages(image_.written_span_runs(), nullptr).empty();
}

void HeapFile::extend(ByteCount extent_bytes) {
    if (extent_bytes <= image_.mapped()) return;
    reserve(extent_bytes);
    if (condition_.is_read_only() || files_.is_replaying()) {
        std::byte* const end = image_.live_page({image_.mapped() / page_bytes}).data();
        vm::map_anonymous(end, extent_bytes - image_.mapped());
        vm::prepare_heap_mapping(end, extent_bytes - image_.mapped());
        set_mapped(extent_bytes);
        return;
    }
    if (image_.mapped() / page_bytes % FirstTouch::granule_pages != 0) {
        try {
            image_.open_hidden({image_.mapped() / page_bytes - 1});  // what is new belongs to the same granule
        } catch (const Error&) {
            // A lost page stays hidden.
        }
    }
    files_.grow(extent_bytes - image_.mapped(), [&] {
        files_.clear_growth({image_.mapped(), 0}, {extent_bytes, 0});
        files_.make_long_enough({extent_bytes, 0});
        image_.map({image_.mapped()}, extent_bytes - image_.mapped(), io::Protection::read_write);
    });
    if (image_.first_touch()) image_.first_touch()->extended(extent_bytes);
    if (participant_) participant_->extended(image_.mapped(), extent_bytes);
    set_mapped(extent_bytes);
    image_.choose_read_ahead();
}

void HeapFile::reserve(ByteCount extent) {
    const ByteCount before = image_.reservation().size();
    const ByteCount capacity = ranges().durable_bytes;
    const ByteCount least = extent + page_bytes;
    if (least <= before) return;
    for (const ByteCount wanted : {heap::CoreRanges::reserved_bytes(extent, capacity), least}) {
        try {
            occupy(std::min(wanted, capacity));
            try {
                image_.reservation().extend(wanted);
            } catch (...) {
                occupy(std::min(before, capacity));
                throw;
            }
            return;
        } catch (const Error& error) {
            if (wanted == least) {
                throw HeapFull(extent - image_.mapped(), 0,
                               error.code() == errc::address_in_use ? HeapFull::Cause::neighbor : HeapFull::Cause::address_space, name());
            }
        }
    }
}

void HeapFile::about_to_use(ByteCount length) {
    // A transactional heap's dirty pages are a matter of its log.
    if (condition_.is_read_only() || files_.uses_log() || image_.mapped() <= dirty_limit_) return;
    used_since_look_ += length;
    if (used_since_look_ <= dirty_limit_ / 16) return;
    // What may be written before the next look counts; the rest of a large block is nothing before it is written.
    ByteCount dirty = std::min(length, dirty_limit_ / 16);
    for (const vm::PageRun& run : image_.written_runs()) dirty += run.count * page_bytes;
    if (dirty > dirty_limit_) throw HeapFull(length, 0, HeapFull::Cause::dirty_limit, name());
    used_since_look_ = 0;
}

void HeapFile::drop_unsaved() {
    proofs_.drop_all();
    const SavedPoint point = files_.point();
    image_.annex().reset(point.annex);
    set_mapped(point.extent);
}

void HeapFile::tell_opened() {
    events_->begin();
    if (!events_->is_heard()) return;
    const Restoration found = files_.restoration();
    Event event = files_.event_of(EventKind::opened);
    event.took = found.took;
    event.restoration = &found;
    if (found.needed() && !condition_.is_read_only()) events_->tell({.kind = EventKind::recovered, .took = found.took, .restoration = &found});
    events_->tell(event);
}

void HeapFile::tell_closed(const EventClock& clock, std::string_view failure) const noexcept {
    if (!events_->is_heard()) return;
    Event event = files_.event_of(EventKind::closed);
    event.took = clock.took();
    event.text = failure;
    events_->tell(event);
}

void HeapFile::close() {
    if (condition_.is_open() && participant_ && !in_forked_child()) participant_->before_close();
    abandon();
}

void HeapFile::abandon() {
    if (!condition_.is_open()) return;
    const EventClock clock;
    if (participant_ && !in_forked_child()) participant_->before_abandon();
    if (!in_forked_child())  // where nobody visits who would ever leave
        visits_.end();
    std::optional<Error> failure;
    if (!in_forked_child() && !condition_.is_read_only()) {
        try {
            if (!condition_.is_poisoned()) {
                check_guards();
                condition_.durable_step("closing", [&] { files_.require_whole(); });
            }
        } catch (const Error& error) {
            failure = error;
        }
        if (!failure || failure->code() != errc::truncated)  // else there may be nothing to read
            held_pages_ = copy_held_pages();
    }
    condition_.end();
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
    if (suspects.empty()) return {};
    uncover({0}, image_.mapped());
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

void HeapFile::finish_files() {
    Saves& saves = writing_->saves;
    GiveBack& give_back = writing_->give_back;
    if (planted(Bug::remove_ring_before_clean)) {
        files_.storage().remove(files_.ring_file()->path());
        files_.storage().sync_directory(io::directory_of(files_.ring_file()->path()));
    }
    if (planted(Bug::clean_before_checkpoint)) {
        files_.fill_header(files_.backing(), true);
        files_.backing().write_header();
    }
    // What a follower gave back nobody would have told it: the next transaction counts on the bytes of free pages, too.
    const bool follows = files_.backing().header.replica.role == ReplicaRole::follower && !planted(Bug::follower_gives_back);
    if ((saves.saved_anything() || give_back.takes_all()) && !follows) {
        // What was saved is all that counts from here on: unsaved changes are dropped, then free pages lose their disk blocks.
        saves.checkpoint();
        drop_unsaved();
        give_back.run();
    }
    saves.checkpoint();
    condition_.durable_step("closing", [&] {
        const ByteCount bytes = files_.backing().layout.file_bytes_for(files_.extents());
        files_.for_each([&](PageFile& file) { file.file().resize(bytes); });
        files_.for_each([&](PageFile& file) {
            files_.fill_header(file, true);
            file.write_header();
        });
        if (!uses_log()) files_.remove_ours(*files_.ring_file(), files_.paths().journal);
    });
}

void HeapFile::close_files() {
    if (in_forked_child()) {
        // A forked child: the mapping was not inherited, the files are the parent's.
        image_.reservation().leak();
        image_.annex().leak();
        unregister();
        return;
    }
    std::optional<Error> failure;
    try {
        // A log that holds more than the files makes the heap one whose user crashed.
        if (writing_ && !condition_.is_poisoned() && (files_.journal() != nullptr || (uses_log() && files_.ring_file() && files_.contains_log())))
            finish_files();
    } catch (const Error& error) {
        failure.emplace(static_cast<errc>(error.code().value()), path(), closing_failed(text_of(error)));
    } catch (const std::exception& error) {
        failure.emplace(errc::io_error, path(), closing_failed(error.what()));
    }
    if (held_pages_.blocks() != 0) {
        vm::unmap_to_reservation(image_.begin(), image_.reservation().size());
        held_pages_.put_back(image_.begin());
        image_.reservation().leak();
    }
    unregister();
    engine_.reset();
    image_.annex().close();
    image_.reservation() = {};
    files_.close();
    if (failure) throw Error(*failure);
    if (held_pages_.blocks() != 0) {
        throw Error(errc::still_in_use, files_.paths().backing,
                    "containers that were moved out of the heap still hold " + std::to_string(held_pages_.blocks()) +
                        " of its blocks; destroy them before closing. What was saved doesn't hold these blocks any more");
    }
}

}  // namespace taiyen::store
