// Saving: what has changed, small saves as one ring record, checkpoints. The order of steps is the protocol: FORMAT.md. Large saves: large_save.cpp.

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>
#include <utility>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/heap_file.hpp"
#include "store/opening_record.hpp"
#include "store/save_record.hpp"

namespace taiyen::store {
namespace {

/// Disk blocks come by so much: a save for each new page would ask for them each time.
constexpr ByteCount blocks_taken_at_once = 16 * page_bytes;
/// What stands in `backed_` for the pages around.
constexpr PageNumber backed_at(PageNumber page) {
    const PageNumber start = page_of(start_of(sequence_of(page)));
    return {start.value + (page.value - start.value) / (blocks_taken_at_once / page_bytes)};
}

/// Private copies that nobody changes any more may be so many before a save drops them: each costs a checksum at every later save.
constexpr std::uint64_t idle_copies_max = 1024;

}  // namespace

void HeapFile::save() {
    check_usable(false);
    if (participant_ && participant_->save_itself()) {
        return;
    }
    if (uses_log()) {
        save_at({serial_, log_start_, mapped_});
        return;
    }
    check_guards();
    const auto lock = hold_saves();
    durable_step("saving", [&] { require_whole_files(); });  // what was stored where the file ends now is gone, and nobody would know
    heal_waiting();
    if (participant_) {
        participant_->before_save();
    } else {
        write_type_notes();
    }
    held_.settle();
    const std::vector<vm::PageRun> runs = written_runs();
    const ProgramPointers program = next_program_pointers();
    heap::ForeignPointerScan scan(*this, program);
    std::vector<ChangedPage> changed = changed_pages(runs, &scan);
    if (!changed.empty()) {
        scan.finish();
        note_searched(program);
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
    const bool ring_half_full = ring_->free_bytes() < ring_->capacity() / 2;
    const bool was_large = pending_.empty();
    if (ring_half_full || was_large || count_idle(runs, changed) > idle_copies_max) {
        checkpoint();
        drop_written(runs);
        look_at_memory();
    } else {
        note_saved(runs);
    }
}

/// Private copies with saved content that a save could drop. `changed`: ascending.
std::uint64_t HeapFile::count_idle(const std::vector<vm::PageRun>& runs, const std::vector<ChangedPage>& changed) const noexcept {
    std::uint64_t idle = 0;
    auto next = changed.begin();
    for (const vm::PageRun& run : runs) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            while (next != changed.end() && next->page.value < page) {
                ++next;
            }
            const bool is_changed = next != changed.end() && next->page.value == page;
            idle += !is_changed && !is_kept_open({page}) ? 1 : 0;
        }
    }
    return idle;
}

/// What was written and is as saved all the same (changed back, undone) is not dirty, and needs no look at its base: its checksum has just been proven.
void HeapFile::note_saved(const vm::PageRun& run) noexcept {
    try {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            saved_copies_.insert(page);
        }
    } catch (const std::bad_alloc&) {
        // Then `dirty_bytes` counts pages that are not: the save itself is done.
    }
}
void HeapFile::note_saved(const std::vector<vm::PageRun>& runs) noexcept {
    for (const vm::PageRun& run : runs) {
        note_saved(run);
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

std::vector<HeapFile::ChangedPage> HeapFile::changed_pages(const std::vector<vm::PageRun>& runs, heap::ForeignPointerScan* scan) {
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
                scan->examine(offset_of(page), page_bytes);
            }
        }
    }
    return changed;
}

void HeapFile::save_changed(std::vector<ChangedPage>& changed, bool punches) {
    const auto is_small = [&] {
        const auto images = std::count_if(changed.begin(), changed.end(), [](const ChangedPage& page) { return page.checksum != 0; });
        return log::Ring::record_bytes(save_payload_bytes(annex_.mapped() != 0, changed.size(), static_cast<std::uint64_t>(images))) <=
               ring_->capacity() / 2;
    };
    saved_anything_ = true;
    if (!uses_log() && is_small()) {
        for (const ChangedPage& page : changed) {
            const bool becomes_hole = punches && page.checksum == 0;
            if (!becomes_hole) {
                check_base(page.page);
            }
        }
        if (ring_->free_bytes() < ring_->capacity() / 2) {
            checkpoint();  // the one behind the save before did not come about
        }
        take_blocks(changed, false);
        save_small(changed, punches);
        return;
    }
    checkpoint();
    check_bases(changed, punches);
    LargeSave save = live_save(std::move(changed));
    save_large(save);
    changed = std::move(save.changed);
}

void HeapFile::take_blocks(std::span<const ChangedPage> changed, bool any) {
    if (planted(Bug::save_without_blocks)) {
        return;
    }
    PageNumber first{};  // of those that have none, as far as we know
    std::uint64_t count = 0;
    const auto take = [&] {
        if (count == 0) {
            return;
        }
        const std::lock_guard lock(size_mutex_);
        backing_->allocate(offset_of(first), count * blocks_taken_at_once);
        if (data_) {
            data_->allocate(offset_of(first), count * blocks_taken_at_once);
        }
        for (; count != 0; --count, first.value += blocks_taken_at_once / page_bytes) {
            backed_.add(backed_at(first));
        }
    };
    for (const ChangedPage& page : changed) {
        if (table_.entry(page.page) != 0 || (page.checksum == 0 && !any) || backed_.contains(backed_at(page.page))) {
            continue;
        }
        const PageNumber begin{round_down(page.page.value, blocks_taken_at_once / page_bytes)};
        const std::uint64_t end = first.value + count * (blocks_taken_at_once / page_bytes);
        if (count != 0 && begin.value < end) {
            continue;
        }
        if (count == 0 || begin.value != end) {
            take();
            first = begin;
        }
        ++count;
    }
    take();
}

void HeapFile::save_small(std::vector<ChangedPage>& changed, bool punches) {
    const EventClock clock;
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
    tell_written(EventKind::saved, clock, entries.size());
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
    const EventClock clock;
    durable_step("bringing the files up to date", [&] {
        require_whole_files();
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
    const std::uint64_t pages = pending_.size();
    pending_.clear();
    tell_written(EventKind::checkpointed, clock, pages);
}

/// Whether capture would not announce the next store into the page: then its proof must last, and so must the private copy that it is about.
bool HeapFile::is_kept_open(PageNumber page) const noexcept {
    return participant_ && sequence_of(page) == Sequence::span && participant_->keeps_open(page);
}

void HeapFile::drop_copies(PageNumber first, std::uint64_t count) {
    vm::drop(live_page(first).data(), count * page_bytes);
    forget_proofs(first, count);
}

/// The save is done: whatever fails here must not look like one that failed.
void HeapFile::drop_written(const std::vector<vm::PageRun>& runs) noexcept {
    try {
        restore_in_files();
    } catch (const std::exception&) {
        // What memory alone has whole stays.
    }
    const auto must_stay = [&](std::uint64_t page) { return is_whole_in_memory_only({page}) || is_kept_open({page}); };
    saved_copies_.clear();
    for (const vm::PageRun& run : runs) {
        const std::uint64_t end = run.first + run.count;
        for (std::uint64_t first = run.first; first < end;) {
            std::uint64_t last = first;
            const bool stays = must_stay(first);
            while (last < end && must_stay(last) == stays) {
                ++last;
            }
            if (!stays) {
                try {
                    drop_copies({first}, last - first);
                } catch (const Error&) {
                    // The system keeps them, as they were saved.
                }
            } else if (!uses_log()) {
                note_saved({first, last - first});
            }
            first = last;
        }
    }
}

}  // namespace taiyen::store
