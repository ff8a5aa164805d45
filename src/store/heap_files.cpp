#include "store/heap_files.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/opening_record.hpp"
#include "store/page_copies.hpp"

namespace taiyen::store {
namespace {

/// Disk blocks come by so much: a save for each new page would ask for them each time.
constexpr ByteCount blocks_taken_at_once = 16 * page_bytes;
/// What stands in `backed_` for the pages around.
constexpr PageNumber backed_at(PageNumber page) {
    const PageNumber start = page_of(start_of(sequence_of(page)));
    return {start.value + (page.value - start.value) / (blocks_taken_at_once / page_bytes)};
}

}  // namespace

void HeapFiles::grow(ByteCount by, const std::function<void()>& action) const {
    try {
        action();
    } catch (const Error& error) {
        if (error.code() == errc::no_space) throw HeapFull(by, 0, HeapFull::Cause::disk, name());
        if (error.code() == errc::out_of_address_space) throw HeapFull(by, 0, HeapFull::Cause::address_space, name());
        throw;
    }
}

HeapFiles::HeapFiles(io::Storage& storage, const HeapPaths& paths, HeapKind kind, Condition& condition, std::shared_ptr<EventSource> events,
                     OpenFiles& found)
    : storage_(storage), paths_(paths), kind_(kind), condition_(condition), events_(std::move(events)), backing_(std::move(found.backing)),
      data_(std::move(found.data)), maps_data_(found.map_data), ring_file_(found.ring), active_(backing_->header.ring_kind),
      table_(
          backing_->header.heap,
          [this](std::uint64_t index, TablePage& page) {
              if (!file_extents().hold(cover_of(index).first)) return;  // the heap has grown there, and nothing was written yet
              // A reader's data file that is ahead has table pages of its own save; those of the backing file are sound, but older.
              if (load_table_page(
                      view(), maps_data_ ? nullptr : data(), index, file_extents(),
                      [this](PageNumber covered) { return recovering_pages_.contains(covered.value); }, Via::cache, page)) {
                  note_healed();
              }
          },
          view().header.table_root),
      restoration_(found.restoration) {
    const Header& newest = view().header;
    point_ = {newest.generation, newest.serial, {}, {}, newest.extent, newest.annex};
    for (const SaveRecord& save : found.overlay) {
        point_.annex = save.annex;
        point_.serial = {save.head.serial};
    }
    for_each([&](PageFile& file) { file.layout = FileLayout(point_.annex.places); });
    point_.durable_serial = point_.serial;
    if (ring_file_) {
        ring_identity_ = backing_->header.ring_identity();
        point_.log_start = found.tail ? found.tail->start : newest.ring_start;
        if (!condition_.is_read_only() && !uses_log()) {
            const log::RingStart start = backing_->header.ring_start;
            journal_ = std::make_unique<log::Ring>(ring_file_, ring_identity_, start, start.position);
        }
    }
}

void HeapFiles::use_ring(RingKind kind, std::shared_ptr<io::File> file, const log::RingIdentity& identity,
                         std::unique_ptr<log::Ring> journal) noexcept {
    if (active_ != kind) active_ = kind;  // who asks beside a log that is replaced sees no change
    ring_file_ = std::move(file);
    ring_identity_ = identity;
    journal_ = std::move(journal);
}

void HeapFiles::lay_out(const FileLayout& layout) {
    const auto lock = hold_layout();
    for_each([&](PageFile& file) { file.layout = layout; });
}

void HeapFiles::read_whole(PageNumber page, std::span<std::byte> image) const {
    read_whole(page, image, data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
}

void HeapFiles::adopt_data(PageFile&& data, HeapPaths&& to) noexcept {
    data_.emplace(std::move(data));
    paths_.data = std::move(to.data);
    paths_.data_is_beside = to.data_is_beside;
    backed_ = {};  // the new file has no blocks yet for what is zero
}

void HeapFiles::close() noexcept {
    journal_.reset();
    ring_file_.reset();
    backing_.reset();
    data_.reset();
}

bool HeapFiles::is_recovering(const TableCover& cover) const {
    for (std::uint64_t i = 0; !recovering_pages_.empty() && i < cover.count; ++i)
        if (recovering_pages_.contains(cover.first.value + i)) return true;
    return false;
}

bool HeapFiles::contains_log() const {
    if (planted(Bug::clean_despite_log)) return true;
    try {
        const log::ScanResult found = log::Ring::scan(*ring_file_, ring_identity_, point_.log_start, [](const log::Record&) { return false; });
        return found.records == 0 && found.how == log::ScanEnd::end;
    } catch (const Error&) {
        return false;
    }
}

void HeapFiles::trim_log() {
    const ByteCount ring_bytes = log::Ring::header_bytes + ring_identity_.capacity_bytes;
    if (ring_file_->info().size_bytes > ring_bytes) ring_file_->resize(ring_bytes);
}

void HeapFiles::read_whole(PageNumber page, std::span<std::byte> image, const char* why) const {
    const std::uint64_t expected = table_.entry(page);
    std::optional<Error> refusal;
    for (const PageFile* const file : {&*backing_, data()}) {
        if (file == nullptr) continue;
        if (auto refused = file->try_read_pages(page, image, Via::device); refused && !refusal) refusal = std::move(refused);
        if (page_checksum(image, page, table_.heap()) == expected) return;
    }
    if (refusal) throw Error(*refusal);
    backing_->throw_corrupt_page(page, why);
}

void HeapFiles::require_whole() const {
    const Extents saved = extents();
    for_each([&](const PageFile& file) {
        const ByteCount size = file.file().info().size_bytes;
        if (const ByteCount least = file.layout.file_bytes_for(saved); size < least) {
            throw Error(errc::truncated, file.path(), size,
                        "the file was cut while the heap was open: it had at least " + std::to_string(least) +
                            " bytes. Nothing more is written; close the heap, and open it again or restore its files from a copy");
        }
    });
}

void HeapFiles::make_long_enough(const Extents& extents) {
    condition_.durable_step("growing", [&] { require_whole(); });
    const std::lock_guard lock(size_mutex_);
    for_each([&](PageFile& file) { file.make_long_enough(extents); });
}

void HeapFiles::clear_growth(const Extents& before, const Extents& after) {
    try {
        for_each([&](PageFile& file) {
            if (file.clear_growth(before, after) != 0) {
                // Else a save that speaks of these pages without writing them could bring it back.
                condition_.durable_step("clearing what lay behind the heap's end", [&] { file.sync(); });
            }
        });
    } catch (const std::bad_alloc&) {
        throw HeapFull(after.span - before.span + after.annex - before.annex, 0, HeapFull::Cause::address_space,
                       name());  // who grows knows no other lack of memory
    }
}

void HeapFiles::take_blocks(std::span<const ChangedPage> changed, bool any) {
    if (planted(Bug::save_without_blocks)) return;
    PageNumber first{};  // of those that have none, as far as we know
    std::uint64_t count = 0;
    const auto take = [&] {
        if (count == 0) return;
        const std::lock_guard lock(size_mutex_);
        backing_->allocate(offset_of(first), count * blocks_taken_at_once);
        if (data_) data_->allocate(offset_of(first), count * blocks_taken_at_once);
        for (; count != 0; --count, first.value += blocks_taken_at_once / page_bytes) backed_.add(backed_at(first));
    };
    for (const ChangedPage& page : changed) {
        if (table_.entry(page.page) != 0 || (page.checksum == 0 && !any) || backed_.contains(backed_at(page.page))) continue;
        const PageNumber begin{round_down(page.page.value, blocks_taken_at_once / page_bytes)};
        const std::uint64_t end = first.value + count * (blocks_taken_at_once / page_bytes);
        if (count != 0 && begin.value < end) continue;
        if (count == 0 || begin.value != end) {
            take();
            first = begin;
        }
        ++count;
    }
    take();
}

void HeapFiles::fill_header(PageFile& file, bool clean) {
    Header& header = file.header;
    header.state = FileState::whole;
    header.filling_generation = {};
    header.staged = {};
    header.generation = point_.generation;
    header.serial = point_.serial;
    header.extent = point_.extent;
    header.annex = point_.annex;
    header.table_root = table_.root();
    header.clean = clean;
    if (const Restoration found = restoration(); found.needed()) header.opening = record_of(found);
    header.is_new = false;
    header.data_is_beside = data_.has_value() && paths_.data_is_beside;
    if (uses_log()) {
        header.log = ring_identity_.ring;
        header.log_capacity = ring_identity_.capacity_bytes;
    }
    header.ring_kind = clean ? RingKind::none : active_;
    header.ring = clean ? Uuid{} : ring_identity_.ring;
    header.ring_capacity = clean ? 0 : ring_identity_.capacity_bytes;
    header.ring_start = clean ? log::RingStart{} : uses_log() ? point_.log_start : journal_->next();
}

void HeapFiles::write_headers() {
    fill_header(*backing_, false);
    backing_->write_header();
    if (planted(Bug::release_before_data_header) && journal_) journal_->release(journal_->next().position);
    if (data_) {
        fill_header(*data_, false);
        data_->write_header();
    }
    if (journal_)  // who appends to the transaction log releases it
        journal_->release(journal_->next().position);
}

void HeapFiles::write_tables(Generation generation) {
    table_.write_changed(generation, [&](const TablePage& page) {
        if (planted(Bug::skip_table_write)) return;
        backing_->write_table_page(page);
        if (data_) data_->write_table_page(page);
    });
}

void HeapFiles::remove_ours(const io::File& file, const std::filesystem::path& path) {
    if (is_still_at(storage_, file, path))  // else somebody moved our files while the heap was open
        storage_.remove(path);
}

Restoration HeapFiles::restoration() const {
    Restoration found = restoration_;
    found.pages_healed += healed_;
    return found;
}

void HeapFiles::note_healed(std::uint64_t pages) const noexcept {
    healed_ += pages;
    if (pages != 0) events_->tell({.kind = EventKind::healed, .pages = pages, .bytes = pages * page_bytes});
}

Event HeapFiles::event_of(EventKind kind) const noexcept {
    const std::lock_guard lock(point_mutex_);
    return {.kind = kind, .generation = point_.generation.value, .serial = point_.durable_serial.value};
}

void HeapFiles::tell_written(EventKind kind, const EventClock& clock, std::uint64_t pages) const noexcept {
    if (!events_->is_heard()) return;
    Event event = event_of(kind);
    event.took = clock.took();
    event.pages = pages;
    event.bytes = pages * page_bytes;
    events_->tell(event);
}

}  // namespace taiyen::store
