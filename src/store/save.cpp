// Saving: small saves as one ring record, large ones by the second copy or a stage, checkpoints. The order of steps is the protocol: FORMAT.md.

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_set>
#include <utility>

#include <taiyen/base/check.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/heap_file.hpp"
#include "store/save_record.hpp"

namespace taiyen::store {
namespace {

/// Private copies with saved content that may stay before a save drops them: each costs a checksum at every later save.
constexpr std::uint64_t unchanged_pages_max = 1024;

/// Bytes written at once by large saves.
constexpr ByteCount piece_bytes = ByteCount{1} << 20U;
/// Read at once where many bases are checked: stays in the processor's cache.
constexpr ByteCount base_batch_bytes = ByteCount{256} << 10U;

}  // namespace

/// Without steps and transactions it is a save that makes something durable: there it counts who owns what.
void HeapFile::settle_loans() {
    if (participant_ && participant_->settles_loans()) {
        return;
    }
    held_.begin(annex_.used() == 0);
    if (!held_.is_idle()) {
        heap::HeldBlocks::Settling settling(held_);
        for (const vm::PageRun& run : written_span_runs()) {
            settling.look_at(offset_of(PageNumber{run.first}), run.count * page_bytes);
        }
        settling.finish();
    }
    held_.kept();
}

void HeapFile::save() {
    check_usable(false);
    if (participant_ && participant_->save_itself()) {
        return;
    }
    if (uses_log()) {
        save_at({serial_, log_start_, mapped_});
        return;
    }
    const auto lock = hold_saves();
    if (participant_) {
        participant_->before_save();
    }
    settle_loans();
    const std::vector<vm::PageRun> runs = written_runs();
    const heap::ForeignPointerScan scan(*this);
    std::vector<ChangedPage> changed = changed_pages(runs, &scan);
    if (!changed.empty()) {
        if (annex_.has_ended()) {
            end_annex(changed);
        }
        save_changed(changed, false);
        if (planted(Bug::annex_ends_after_record) && annex_.has_ended()) {
            std::vector<ChangedPage> end{{annex_first_page, 0}};
            save_changed(end, false);
        }
    }
    if (participant_) {
        participant_->saved();
    }
    if (changed.empty()) {
        note_saved(runs);
        return;
    }
    std::uint64_t written = 0;
    for (const vm::PageRun& run : runs) {
        written += run.count;
    }
    const bool ring_half_full = ring_->free_bytes() < ring_->capacity() / 2;
    const bool was_large = pending_.empty();
    if (ring_half_full || was_large || written - changed.size() > unchanged_pages_max) {
        checkpoint();
        drop_written(runs);
    } else {
        note_saved(runs);
    }
}

/// What was written and is as saved all the same (changed back, undone) is not dirty, and needs no look at its base: its checksum has just been proven.
void HeapFile::note_saved(const std::vector<vm::PageRun>& runs) noexcept {
    try {
        for (const vm::PageRun& run : runs) {
            for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
                saved_copies_.insert(page);
            }
        }
    } catch (const std::bad_alloc&) {
        // Then `dirty_bytes` counts pages that are not: the save itself is done.
    }
}

void HeapFile::end_annex(std::vector<ChangedPage>& changed) {
    if (planted(Bug::annex_ends_before_record)) {
        backing_->write_zero_pages(annex_first_page, 1);
    }
    if (!planted(Bug::annex_ends_after_record)) {
        changed.push_back({annex_first_page, 0});
    }
}

void HeapFile::will_read_tables(const std::vector<vm::PageRun>& runs) const {
    // One after the other, table pages that nobody has used yet would cost a device read each.
    std::uint64_t asked = ~std::uint64_t{0};
    for (const vm::PageRun& run : runs) {
        const std::uint64_t last = place_of({run.first + run.count - 1}).table_page;
        for (std::uint64_t index = place_of({run.first}).table_page; index <= last; ++index) {
            if (index != asked && !table_.is_loaded(index)) {
                backing_->file().will_read(backing_->layout.table_offset(index), page_bytes);
            }
            asked = index;
        }
    }
}

std::vector<HeapFile::ChangedPage> HeapFile::changed_pages(const std::vector<vm::PageRun>& runs, const heap::ForeignPointerScan* scan) {
    std::vector<ChangedPage> changed;
    will_read_tables(runs);
    for (const vm::PageRun& run : runs) {
        for (std::uint64_t number = run.first; number < run.first + run.count; ++number) {
            const PageNumber page{number};
            const std::uint64_t sum = page_checksum(live_page(page), page, table_.heap());
            if (sum == table_.entry(page)) {
                continue;
            }
            changed.push_back({page, sum});
            // Now, while the page is in the processor's cache.
            if (scan != nullptr && sequence_of(page) == Sequence::span) {
                if (const auto found = scan->find(offset_of(page), page_bytes)) {
                    scan->refuse(*found);
                }
            }
        }
    }
    return changed;
}

/// Whether what the program changed lay in the file before, and may have rotted there.
bool HeapFile::has_base(PageNumber page) {
    return is_mapped(page) && !saved_copies_.contains(page.value) && (table_.entry(page) != 0 || saved_extents().hold(page));
}

/// Returns whether the live page had to be repaired.
bool HeapFile::check_base(PageNumber page) {
    if (!has_base(page) || planted(Bug::rot_laundered)) {
        return false;
    }
    const std::uint64_t expected = table_.entry(page);
    alignas(page_bytes) std::array<std::byte, page_bytes> base;
    backing_->read_pages(page, base, Via::cache);
    if (page_checksum(base, page, table_.heap()) == expected) {
        return false;
    }
    // The page rotted before the program changed it: its own changes go on top of the good copy.
    const AlignedBuffer good(page_bytes);
    if (data_) {
        data_->read_pages(page, good.span(), Via::device);
    }
    if (!data_ || page_checksum(good.span(), page, table_.heap()) != expected) {
        poison("saving", "a page was damaged on disk before it was changed, and there is no good second copy");
        backing_->throw_corrupt_page(page, "its checksum differs, so the change on top of it can't be saved");
    }
    const std::span<std::byte> live = live_page(page);
    if (is_zero(base) && is_zero(live)) {
        // Nothing of the page was left, and only zeros were stored: the old bytes may be gone on purpose, and they may be missing.
        poison("saving", "a page had become zero on disk before it was changed, and nothing but zeros was stored there");
        backing_->throw_corrupt_page(
            page, "it had become zero, and zeros stored there can't be told from that; heal() restores what was saved once the heap is opened again");
    }
    if (participant_ && sequence_of(page) == Sequence::span) {
        participant_->about_to_repair(page);
    }
    for (std::size_t i = 0; i < page_bytes; ++i) {
        if (live[i] == base[i]) {
            live[i] = good.data()[i];
        }
    }
    ++healed_;
    return true;
}

/// The same for many pages, read by runs.
void HeapFile::check_bases(std::span<ChangedPage> changed, bool punches) {
    const AlignedBuffer bases(base_batch_bytes);
    while (!changed.empty()) {
        std::size_t count = 1;
        while (count < changed.size() && count < base_batch_bytes / page_bytes && changed[count].page.value == changed[0].page.value + count) {
            ++count;
        }
        backing_->try_read_pages(changed[0].page, bases.first(count * page_bytes), Via::cache);
        for (std::size_t i = 0; i < count; ++i) {
            const PageNumber page = changed[i].page;
            const auto base = bases.span().subspan(i * page_bytes, page_bytes);
            const bool becomes_hole = punches && changed[i].checksum == 0;
            if (!becomes_hole && has_base(page) && page_checksum(base, page, table_.heap()) != table_.entry(page) && check_base(page)) {
                changed[i].checksum = page_checksum(live_page(page), page, table_.heap());
            }
        }
        changed = changed.subspan(count);
    }
}

void HeapFile::save_changed(std::vector<ChangedPage>& changed, bool punches) {
    const auto is_small = [&] {
        const auto images = std::count_if(changed.begin(), changed.end(), [](const ChangedPage& page) { return page.checksum != 0; });
        return log::Ring::record_bytes(save_payload_bytes(annex_.mapped() != 0, changed.size(), static_cast<std::uint64_t>(images))) <=
               ring_->capacity() / 2;
    };
    saved_anything_ = true;
    if (!uses_log() && is_small()) {
        for (ChangedPage& page : changed) {
            const bool becomes_hole = punches && page.checksum == 0;
            if (!becomes_hole && check_base(page.page)) {
                page.checksum = page_checksum(live_page(page.page), page.page, table_.heap());
            }
        }
        if (is_small()) {  // a page that rot had made zero may have got its image back
            if (ring_->free_bytes() < ring_->capacity() / 2) {
                checkpoint();  // the one behind the save before did not come about
            }
            save_small(changed, punches);
            return;
        }
    }
    checkpoint();
    check_bases(changed, punches);
    LargeSave save = live_save(std::move(changed));
    save_large(save);
    changed = std::move(save.changed);
}

void HeapFile::save_small(std::vector<ChangedPage>& changed, bool punches) {
    SaveHead head{};
    head.generation = generation_.value + 1;
    head.serial = serial_.value;
    head.extent = mapped_;
    head.page_count = changed.size();
    head.flags = (punches ? save_punches : 0) | (annex_.mapped() != 0 ? save_has_annex : 0);
    const AnnexHead annex = annex_.head();
    std::vector<SavedPage> entries;
    std::vector<AlignedBuffer> images;
    entries.reserve(changed.size());
    images.reserve(changed.size());
    for (const ChangedPage& page : changed) {
        if (page.checksum == 0) {
            entries.push_back({page.page.value, 0});
            images.emplace_back();
            continue;
        }
        AlignedBuffer& image = images.emplace_back(page_bytes);
        std::memcpy(image.data(), live_page(page.page).data(), page_bytes);
        const std::uint64_t sum = page_checksum(image.span(), page.page, table_.heap());
        entries.push_back({page.page.value, sum});
        head.image_count += sum != 0 ? 1 : 0;
    }
    std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(&head, 1))};
    if (annex.extent != 0) {
        pieces.emplace_back(std::as_bytes(std::span(&annex, 1)));
    }
    pieces.emplace_back(std::as_bytes(std::span(entries)));
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].checksum != 0) {
            pieces.emplace_back(images[i].span());
        }
    }
    // What memory will know of it, and all memory that it takes: from here on none is asked for, so that running out of it is a save that never began.
    ByteCount payload_bytes = 0;
    for (const std::span<const std::byte> piece : pieces) {
        payload_bytes += piece.size();
    }
    std::map<std::uint64_t, PendingPage> pending;
    std::unordered_set<std::uint64_t> copies;
    for (const SavedPage& entry : entries) {
        table_.reserve({entry.page}, entries.size());
        pending[entry.page].punch = punches;
        if (!punches && is_mapped({entry.page})) {
            copies.insert(entry.page);
        }
    }
    saved_copies_.reserve(saved_copies_.size() + copies.size());
    ring_->reserve(payload_bytes);
    // It fits: a record of at most half the ring, of which at least half is free, since each save is followed by a checkpoint where less is (`save`).
    durable_step("saving", [&] {
        if (planted(Bug::files_before_record)) {
            for (std::size_t i = 0; i < entries.size(); ++i) {
                if (entries[i].checksum != 0) {
                    backing_->write_pages({entries[i].page}, images[i].span());
                }
            }
        }
        ring_->append(record_images, head.generation, pieces);
        // The save is durable. What memory knows of it must be complete, or the heap is not usable: the next save would take the same generation.
        for (std::size_t i = 0; i < entries.size(); ++i) {
            table_.set({entries[i].page}, entries[i].checksum);
            auto made = pending.extract(entries[i].page);
            if (entries[i].checksum != 0) {
                made.mapped().image = std::move(images[i]);
            }
            if (const auto before = pending_.find(entries[i].page); before != pending_.end()) {
                before->second = std::move(made.mapped());
            } else {
                pending_.insert(std::move(made));
            }
        }
        saved_copies_.merge(copies);
        const std::lock_guard lock(point_mutex_);
        generation_ = {head.generation};
        saved_extent_ = mapped_;
        saved_annex_ = annex;
    });
}

void HeapFile::fill_header(PageFile& file, bool clean) {
    Header& header = file.header;
    header.state = FileState::whole;
    header.filling_generation = {};
    header.staged = {};
    header.generation = generation_;
    header.serial = serial_;
    header.extent = saved_extent_;
    header.annex = saved_annex_;
    header.table_root = table_.root();
    header.clean = clean;
    header.is_new = false;
    if (uses_log()) {
        header.log = ring_identity_.ring;
        header.log_capacity = ring_identity_.capacity_bytes;
    }
    header.ring_kind = clean ? RingKind::none : active_;
    header.ring = clean ? Uuid{} : ring_identity_.ring;
    header.ring_capacity = clean ? 0 : ring_identity_.capacity_bytes;
    header.ring_start = clean ? log::RingStart{} : uses_log() ? log_start_ : ring_->next();
}

void HeapFile::write_headers() {
    fill_header(*backing_, false);
    backing_->write_header();
    if (planted(Bug::release_before_data_header) && ring_) {
        ring_->release(ring_->next().position);
    }
    if (data_) {
        fill_header(*data_, false);
        data_->write_header();
    }
    if (ring_) {  // who appends to the transaction log releases it
        ring_->release(ring_->next().position);
    }
}

void HeapFile::write_tables(Generation generation) {
    table_.write_changed(generation, [&](const TablePage& page) {
        if (planted(Bug::skip_table_write)) {
            return;
        }
        backing_->write_table_page(page);
        if (data_) {
            data_->write_table_page(page);
        }
    });
}

void HeapFile::checkpoint() {
    if (pending_.empty()) {
        return;
    }
    durable_step("bringing the files up to date", [&] {
        const auto install = [&](PageFile& file, bool late) {
            PageNumber first_hole{};
            std::uint64_t holes = 0;
            const auto punch = [&] {
                if (holes != 0) {
                    file.punch_pages(first_hole, std::exchange(holes, 0));
                }
            };
            for (const auto& [number, page] : pending_) {
                if ((planted(Bug::annex_after_data_sync) && &file != &*backing_ && sequence_of(PageNumber{number}) == Sequence::annex) != late) {
                    continue;
                }
                if (page.image.size() != 0) {
                    file.write_pages({number}, page.image.span());
                } else if (!page.punch) {
                    file.write_zero_pages({number}, 1);
                } else if (holes != 0 && number == first_hole.value + holes) {
                    ++holes;
                } else {
                    punch();
                    first_hole = {number};
                    holes = 1;
                }
            }
            punch();
        };
        install(*backing_, false);
        if (data_) {
            install(*data_, false);
        }
        write_tables(generation_);
        if (planted(Bug::header_before_sync)) {
            write_headers();
        }
        if (!planted(Bug::skip_backing_sync)) {
            backing_->sync();
        }
        if (data_ && !planted(Bug::skip_data_sync)) {
            data_->sync();
        }
        if (data_ && planted(Bug::annex_after_data_sync)) {
            install(*data_, true);
        }
        write_headers();
    });
    pending_.clear();
}

void HeapFile::drop_written(const std::vector<vm::PageRun>& runs) {
    for (const vm::PageRun& run : runs) {
        vm::drop(live_page({run.first}).data(), run.count * page_bytes);
    }
    saved_copies_.clear();
}

void HeapFile::throw_changed_meanwhile(PageNumber page) const {
    throw Error(errc::invalid_argument, paths_.backing, offset_of(page).value,
                "a page was changed by another thread during the save; stop all stores while saving");
}

void HeapFile::write_changed_pages(PageFile& file, const std::vector<ChangedPage>& changed, const PageFile* fallback) {
    const AlignedBuffer batch(piece_bytes);
    std::size_t i = 0;
    while (i < changed.size()) {
        // A run of consecutive pages, up to a batch, goes out as one write; what is written is what the checksum was taken of.
        std::size_t count = 0;
        while (i + count < changed.size() && count < piece_bytes / page_bytes && changed[i + count].page.value == changed[i].page.value + count) {
            ++count;
        }
        if (is_mapped(changed[i].page)) {
            std::memcpy(batch.data(), live_page(changed[i].page).data(), count * page_bytes);
        }
        for (std::size_t k = 0; k < count; ++k) {
            const auto page = batch.span().subspan(k * page_bytes, page_bytes);
            if (changed[i + k].checksum == 0) {
                std::memset(page.data(), 0, page_bytes);
            } else if (page_checksum(page, changed[i + k].page, table_.heap()) != changed[i + k].checksum) {
                if (fallback == nullptr) {
                    throw_changed_meanwhile(changed[i + k].page);
                }
                fallback->read_pages(changed[i + k].page, page, Via::device);
            }
        }
        file.write_pages(changed[i].page, batch.first(count * page_bytes));
        file.start_writing(changed[i].page, count);
        i += count;
    }
}

HeapFile::LargeSave HeapFile::live_save(std::vector<ChangedPage> changed) const {
    return {{serial_, log_start_, mapped_}, annex_.head(), std::move(changed), nullptr, false, 0};
}

void HeapFile::save_large(LargeSave& save) {
    saved_anything_ = true;
    if (save.changed.empty()) {
        save_headers(save);
    } else if (data_) {
        save_large_with_data(save);
    } else {
        save_large_with_stage(save);
    }
}

void HeapFile::set_saved(Generation generation, const LargeSave& save) {
    const std::lock_guard lock(point_mutex_);
    generation_ = generation;
    serial_ = save.point.serial;
    log_start_ = save.point.log_start;
    saved_extent_ = std::max(saved_extent_, save.point.extent);
    saved_annex_ = save.annex;
    if (save.base != 0) {
        backing_->header.base = save.base;
        if (data_) {
            data_->header.base = save.base;
        }
    }
}

/// The commit point is passed: whoever asks may be told.
void HeapFile::tell_saved() {
    const std::lock_guard lock(point_mutex_);
    durable_serial_ = serial_;
}

/// A save that changes no page: the transactions undid each other.
void HeapFile::save_headers(const LargeSave& save) {
    durable_step("saving", [&] {
        // The heap may have grown.
        backing_->sync();
        if (data_) {
            data_->sync();
        }
        set_saved(generation_, save);
        write_headers();
        tell_saved();
    });
}

/// `visit(batch, images)`, the images as they are to be saved.
template <class F>
void HeapFile::for_each_batch(LargeSave& save, F&& visit) {
    const ByteCount bytes = std::min(save.images_once ? tuning_.batch_bytes : piece_bytes, save.changed.size() * page_bytes);
    const AlignedBuffer buffer(bytes);
    for (std::size_t i = 0; i < save.changed.size();) {
        const std::span<ChangedPage> batch = std::span(save.changed).subspan(i, std::min(save.changed.size() - i, bytes / page_bytes));
        const std::span<std::byte> images = buffer.first(batch.size() * page_bytes);
        if (save.images) {
            save.images(batch, images);
        } else {
            for (std::size_t k = 0; k < batch.size(); ++k) {
                const auto image = images.subspan(k * page_bytes, page_bytes);
                if (batch[k].checksum == 0) {
                    std::memset(image.data(), 0, page_bytes);
                    continue;
                }
                std::memcpy(image.data(), live_page(batch[k].page).data(), page_bytes);
                if (page_checksum(image, batch[k].page, table_.heap()) != batch[k].checksum) {
                    throw_changed_meanwhile(batch[k].page);
                }
            }
        }
        visit(std::span<const ChangedPage>(batch), images);
        i += batch.size();
    }
}

/// Writes batches of pages, ascending: runs of consecutive pages by one write. The device is asked to begin with each piece, and one piece more is all that waits in its queue: who commits
/// meanwhile waits behind that.
class HeapFile::PageWriter {
public:
    explicit PageWriter(PageFile& file) : file_(file) {}
    void write(std::span<const ChangedPage> batch, std::span<const std::byte> images) {
        for (std::size_t i = 0; i < batch.size();) {
            const std::size_t first = i;
            while (i < batch.size() && i - first < piece_bytes / page_bytes && sequence_of(batch[i].page) == sequence_of(batch[first].page)) {
                std::size_t count = 1;
                while (i + count < batch.size() && i + count - first < piece_bytes / page_bytes &&
                       batch[i + count].page.value == batch[i].page.value + count) {
                    ++count;
                }
                file_.write_pages(batch[i].page, images.subspan(i * page_bytes, count * page_bytes));
                i += count;
            }
            const std::uint64_t count = batch[i - 1].page.value - batch[first].page.value + 1;
            file_.start_writing(batch[first].page, count);
            if (count_ != 0) {
                file_.wait_for_writing(first_, count_);
            }
            first_ = batch[first].page;
            count_ = count;
        }
    }

private:
    PageFile& file_;
    PageNumber first_{};  ///< of the piece before
    std::uint64_t count_ = 0;
};

void HeapFile::write_all_images(PageFile& file, LargeSave& save) {
    PageWriter writer(file);
    for_each_batch(save, [&](std::span<const ChangedPage> batch, std::span<const std::byte> images) { writer.write(batch, images); });
}

void HeapFile::save_large_with_data(LargeSave& save) {
    const Generation next{generation_.value + 1};
    durable_step("saving", [&] {
        data_->header.state = FileState::filling;
        data_->header.filling_generation = next;
        data_->write_header();
        if (planted(Bug::backing_before_data_commit)) {
            write_all_images(*backing_, save);
        }
        if (save.images) {
            write_all_images(*data_, save);
        } else {
            write_changed_pages(*data_, save.changed, nullptr);
        }
        for (const ChangedPage& page : save.changed) {
            table_.set(page.page, page.checksum);
        }
        std::vector<TablePage> tables;
        table_.write_changed(next, [&](const TablePage& page) {
            data_->write_table_page(page);
            tables.push_back(page);
        });
        set_saved(next, save);
        if (planted(Bug::whole_before_data_sync)) {
            fill_header(*data_, false);
            data_->write_header();
        }
        if (!planted(Bug::skip_data_sync)) {
            data_->sync();
        }
        fill_header(*data_, false);
        data_->write_header();  // the commit point
        tell_saved();

        if (save.images) {
            if (save.images_once) {
                save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) { read_saved(*data_, batch, images); };
            }
            write_all_images(*backing_, save);
        } else {
            write_changed_pages(*backing_, save.changed, &*data_);
        }
        for (const TablePage& page : tables) {
            backing_->write_table_page(page);
        }
        if (!planted(Bug::skip_backing_sync)) {
            backing_->sync();
        }
        fill_header(*backing_, false);
        backing_->write_header();
    });
}

/// What is cut off a stage at once.
constexpr ByteCount stage_piece_bytes = 16_MiB;

void HeapFile::save_large_with_stage(LargeSave& save) {
    io::File& stage = *ring_file_;
    StagedSave staged;
    SaveHead& head = staged.head;
    head.generation = generation_.value + 1;
    head.serial = save.point.serial.value;
    head.extent = std::max(saved_extent_, save.point.extent);
    head.page_count = save.changed.size();
    head.stage_offset = log::Ring::header_bytes + ring_identity_.capacity_bytes;
    head.flags = save.annex.extent != 0 ? save_has_annex : 0;
    staged.annex = save.annex;
    staged.base = save.base;
    staged.ring_start = uses_log() ? save.point.log_start : ring_->next();
    const ByteCount entries_bytes = stage_entries_bytes(head.page_count);
    const std::uint64_t images_at = head.stage_offset + entries_bytes;
    const auto zero_pages = static_cast<std::uint64_t>(
        save.images ? 0 : std::count_if(save.changed.begin(), save.changed.end(), [](const ChangedPage& page) { return page.checksum == 0; }));
    try {
        stage.allocate(head.stage_offset, entries_bytes + (head.page_count - zero_pages) * page_bytes);
    } catch (...) {
        stage.resize(head.stage_offset);  // nothing happened: the heap goes on, the save can be tried again
        throw;
    }
    durable_step("saving", [&] {
        // Past the page cache: nobody reads the stage before it is cut off, unless there is a crash or it is a background save.
        for_each_batch(save, [&](std::span<const ChangedPage> batch, std::span<std::byte> images) {
            std::size_t kept = 0;
            for (std::size_t k = 0; k < batch.size(); ++k) {
                if (batch[k].checksum != 0) {
                    std::memmove(images.data() + kept * page_bytes, images.data() + k * page_bytes, kept == k ? 0 : page_bytes);
                    ++kept;
                }
            }
            if (kept != 0) {
                stage.write_direct(images.first(kept * page_bytes), images_at + head.image_count * page_bytes);
            }
            head.image_count += kept;
        });
        std::vector<SavedPage> entries;
        entries.reserve(save.changed.size());
        for (const ChangedPage& page : save.changed) {
            entries.push_back({page.page.value, page.checksum});
        }
        const AlignedBuffer listed(entries_bytes);
        std::memset(listed.data(), 0, listed.size());
        std::memcpy(listed.data(), entries.data(), entries.size() * sizeof(SavedPage));
        stage.write_direct(listed.span(), head.stage_offset);
        head.stage_digest = stage_digest(entries, table_.heap());
        std::uint64_t image = 0;
        const auto install = [&] {
            if (!save.images) {
                write_changed_pages(*backing_, save.changed, nullptr);
                return;
            }
            if (save.images_once) {
                save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) {
                    image += read_staged(stage, images_at + image * page_bytes, batch, images);
                };
            }
            write_all_images(*backing_, save);
        };
        if (planted(Bug::install_before_staged_header)) {
            install();
            image = 0;
        }
        if (!planted(Bug::stage_without_sync)) {
            stage.sync();
        }
        backing_->header.state = FileState::staged;
        backing_->header.staged = staged;
        backing_->write_header();  // the commit point
        if (planted(Bug::truncate_stage_early)) {
            stage.resize(head.stage_offset);
        }
        for (const ChangedPage& page : save.changed) {
            table_.set(page.page, page.checksum);
        }
        set_saved({head.generation}, save);
        tell_saved();
        install();
        write_tables(generation_);
        if (!planted(Bug::skip_backing_sync)) {
            backing_->sync();
        }
        write_headers();
        // By pieces: the file system gives the blocks back with the file locked, 170 ms for a gigabyte, and the log that commits wait for may lie in front of the stage.
        for (std::uint64_t end = images_at + head.image_count * page_bytes; end > head.stage_offset;) {
            end = end - head.stage_offset > stage_piece_bytes ? end - stage_piece_bytes : head.stage_offset;
            stage.resize(end);
        }
    });
}

/// The pages of a batch from the file that has them already.
void HeapFile::read_saved(const PageFile& file, std::span<const ChangedPage> batch, std::span<std::byte> images) const {
    for (std::size_t i = 0; i < batch.size();) {
        std::size_t count = 1;
        while (i + count < batch.size() && batch[i + count].page.value == batch[i].page.value + count) {
            ++count;
        }
        file.read_pages(batch[i].page, images.subspan(i * page_bytes, count * page_bytes), Via::cache);
        for (std::size_t k = i; k < i + count; ++k) {
            if (page_checksum(images.subspan(k * page_bytes, page_bytes), batch[k].page, table_.heap()) != batch[k].checksum) {
                file.throw_corrupt_page(batch[k].page, "it reads back damaged right after it was written: the disk is failing");
            }
        }
        i += count;
    }
}

/// The pages of a batch from the stage, images from `at` on; returns how many images those are.
std::uint64_t HeapFile::read_staged(const io::File& stage, std::uint64_t at, std::span<const ChangedPage> batch, std::span<std::byte> images) const {
    std::uint64_t count = 0;
    for (const ChangedPage& page : batch) {
        count += page.checksum != 0 ? 1 : 0;
    }
    if (count != 0) {
        if (const ByteCount got = stage.read_direct(images.first(count * page_bytes), at); got != count * page_bytes) {
            throw Error(errc::corrupt, stage.path(), at + got,
                        "the staged pages of a save end early right after they were written: the disk is failing");
        }
    }
    // From behind: each image moves to its place, over what has moved already or is zero.
    std::uint64_t from = count;
    for (std::size_t k = batch.size(); k-- > 0;) {
        std::byte* const place = images.data() + k * page_bytes;
        if (batch[k].checksum == 0) {
            std::memset(place, 0, page_bytes);
            continue;
        }
        --from;
        std::memmove(place, images.data() + from * page_bytes, page_bytes);
        if (page_checksum({place, page_bytes}, batch[k].page, table_.heap()) != batch[k].checksum) {
            throw Error(errc::corrupt, stage.path(), at + from * page_bytes,
                        "a staged page reads back damaged right after it was written: the disk is failing");
        }
    }
    return count;
}

template <class F>
void HeapFile::prove_pages(F&& is_asked) const {
    for (std::uint64_t page = 0; page < saved_extent_ / page_bytes; ++page) {
        if (is_asked(page) && page_checksum(live_page({page}), {page}, table_.heap()) != table_.entry({page})) {
            throw_damaged_page({page});
        }
    }
}

void HeapFile::prove_span() const {
    check_usable(true);
    const auto lock = hold_saves();
    prove_pages([](std::uint64_t) { return true; });
}

void HeapFile::prove_unwritten(const std::vector<bool>& pages) {
    check_usable(true);
    if (planted(Bug::rot_laundered)) {
        return;
    }
    const auto lock = hold_saves();
    std::vector<bool> asked = pages;
    for (const vm::PageRun& run : written_span_runs()) {
        for (std::uint64_t page = run.first; page < run.first + run.count && page < asked.size(); ++page) {
            asked[page] = false;
        }
    }
    prove_pages([&](std::uint64_t page) { return page < asked.size() && asked[page]; });
}

void HeapFile::prove_saved(HeapOffset offset, ByteCount length) {
    check_usable(true);
    if (planted(Bug::rot_laundered)) {
        return;
    }
    const auto lock = hold_saves();
    alignas(page_bytes) std::array<std::byte, page_bytes> saved;
    for (PageNumber page = page_of(offset); page.value * page_bytes < offset.value + length; ++page.value) {
        if (!has_base(page)) {
            continue;
        }
        backing_->try_read_pages(page, saved, Via::cache);
        if (page_checksum(saved, page, table_.heap()) != table_.entry(page)) {
            throw_damaged_page(page);
        }
    }
}

void HeapFile::throw_damaged_page(PageNumber page) const {
    const char* const remedy = !data_       ? "there is no second copy"
                               : uses_log() ? "close the heap, and run 'taiyen repair', which restores it if the other copy has it whole"
                                            : "heal() restores it if the other copy has it whole, snapshot() if it was written since";
    backing_->throw_corrupt_page(page, std::string("its checksum differs; ") + remedy);
}

void HeapFile::save_moved(std::uintptr_t base, std::span<const PageNumber> pages, const FillPages& patch) {
    check_usable(false);
    const auto lock = hold_saves();
    TAIYEN_CHECK(!uses_log() && is_base(base, backing_->header.capacity) && !participant_);
    checkpoint();
    LargeSave save = live_save({});
    save.images_once = true;
    save.base = base;
    save.changed.reserve(pages.size() + 2);
    for (const PageNumber page : pages) {
        TAIYEN_CHECK((save.changed.empty() || save.changed.back().page < page) && sequence_of(page) == Sequence::span);
        save.changed.push_back({page, 0});
    }
    if (save.changed.empty()) {
        save.changed.push_back({{0}, 0});  // a save of nothing would have no commit point for both files
    }
    if (annex_.is_saved()) {
        save.changed.push_back({annex_first_page, 0});  // what lies there speaks of the old address
    }
    save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) {
        read_bases(batch, images);
        std::vector<PageNumber> numbers;
        for (const ChangedPage& page : batch) {
            if (sequence_of(page.page) == Sequence::span) {
                numbers.push_back(page.page);
            }
        }
        patch(numbers, images.first(numbers.size() * page_bytes));
        if (numbers.size() != batch.size()) {
            std::memset(images.data() + numbers.size() * page_bytes, 0, page_bytes);
        }
        for (std::size_t k = 0; k < batch.size(); ++k) {
            batch[k].checksum = page_checksum(images.subspan(k * page_bytes, page_bytes), batch[k].page, table_.heap());
        }
    };
    save_large(save);
}

}  // namespace taiyen::store
