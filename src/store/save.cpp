// Small saves as one ring record, checkpoints; what a transactional heap's saves have of their own. The order of steps is the protocol: FORMAT.md. Large saves: large_save.cpp.

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>
#include <utility>

#include <taiyen/base/check.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/save_record.hpp"
#include "store/saves.hpp"

namespace taiyen::store {
namespace {

/// Private copies that nobody changes any more may be so many before a save drops them: each costs a checksum at every later save.
constexpr std::uint64_t idle_copies_max = 1024;

}  // namespace

/// Private copies with saved content that a save could drop. `changed`: ascending.
std::uint64_t Saves::count_idle(const std::vector<vm::PageRun>& runs, std::span<const ChangedPage> changed) const noexcept {
    std::uint64_t idle = 0;
    auto next = changed.begin();
    for (const vm::PageRun& run : runs) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
            while (next != changed.end() && next->page.value < page) ++next;
            const bool is_changed = next != changed.end() && next->page.value == page;
            idle += !is_changed && !proofs_.is_kept_open({page}) ? 1 : 0;
        }
    }
    return idle;
}

void Saves::end_annex(std::vector<ChangedPage>& changed) {
    if (planted(Bug::annex_ends_before_record)) files_.backing().write_zero_pages(annex_first_page, 1);
    if (!planted(Bug::annex_ends_after_record)) changed.push_back({annex_first_page, 0});
}

void Saves::save_changed(std::vector<ChangedPage>& changed, bool punches) {
    const auto is_small = [&] {
        const auto images = std::count_if(changed.begin(), changed.end(), [](const ChangedPage& page) { return page.checksum != 0; });
        return log::Ring::record_bytes(save_payload_bytes(image_.annex().mapped() != 0, changed.size(), static_cast<std::uint64_t>(images))) <=
               files_.journal()->capacity() / 2;
    };
    saved_anything_ = true;
    if (!files_.uses_log() && is_small()) {
        for (const ChangedPage& page : changed) {
            const bool becomes_hole = punches && page.checksum == 0;
            if (!becomes_hole) proofs_.check_base(page.page);
        }
        if (files_.journal()->free_bytes() < files_.journal()->capacity() / 2) checkpoint();  // the one behind the save before did not come about
        files_.take_blocks(changed, false);
        save_small(changed, punches);
        return;
    }
    checkpoint();
    proofs_.check_bases(changed, punches);
    LargeSave save = live_save(std::move(changed));
    save_large(save);
    changed = std::move(save.changed);
}

void Saves::save_small(std::vector<ChangedPage>& changed, bool punches) {
    const EventClock clock;
    SaveHead head{};
    head.generation = files_.point().generation.value + 1;
    head.serial = files_.point().serial.value;
    head.extent = image_.mapped();
    head.page_count = changed.size();
    head.flags = (punches ? save_punches : 0) | (image_.annex().mapped() != 0 ? save_has_annex : 0);
    const AnnexHead annex = image_.annex().head();
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
        std::memcpy(image.data(), image_.live_page(page.page).data(), page_bytes);
        const std::uint64_t sum = page_checksum(image.span(), page.page, files_.table().heap());
        entries.push_back({page.page.value, sum});
        head.image_count += sum != 0 ? 1 : 0;
    }
    std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(&head, 1))};
    if (annex.extent != 0) pieces.emplace_back(std::as_bytes(std::span(&annex, 1)));
    pieces.emplace_back(std::as_bytes(std::span(entries)));
    for (std::size_t i = 0; i < entries.size(); ++i)
        if (entries[i].checksum != 0) pieces.emplace_back(images[i].span());
    // What memory will know of it, and all memory that it takes: from here on none is asked for, so that running out of it is a save that never began.
    ByteCount payload_bytes = 0;
    for (const std::span<const std::byte> piece : pieces) payload_bytes += piece.size();
    std::map<std::uint64_t, PendingPage> pending;
    std::unordered_set<std::uint64_t> copies;
    for (const SavedPage& entry : entries) {
        files_.table().reserve({entry.page}, entries.size());
        pending[entry.page].punch = punches;
        if (!punches && image_.is_mapped({entry.page})) copies.insert(entry.page);
    }
    proofs_.reserve_saved(copies.size());
    files_.journal()->reserve(payload_bytes);
    // It fits: a record of at most half the ring, of which at least half is free, since each save is followed by a checkpoint where less is (`tidy`).
    condition_.durable_step("saving", [&] {
        if (planted(Bug::files_before_record)) {
            for (std::size_t i = 0; i < entries.size(); ++i)
                if (entries[i].checksum != 0) files_.backing().write_pages({entries[i].page}, images[i].span());
        }
        files_.journal()->append(record_images, head.generation, pieces);
        // The save is durable. What memory knows of it must be complete, or the heap is not usable: the next save would take the same generation.
        for (std::size_t i = 0; i < entries.size(); ++i) {
            files_.table().set({entries[i].page}, entries[i].checksum);
            auto made = pending.extract(entries[i].page);
            if (entries[i].checksum != 0) made.mapped().image = std::move(images[i]);
            if (const auto before = pending_.find(entries[i].page); before != pending_.end())
                before->second = std::move(made.mapped());
            else
                pending_.insert(std::move(made));
        }
        proofs_.note_saved(copies);
        files_.move_point([&](SavedPoint& point) {
            point.generation = {head.generation};
            point.extent = image_.mapped();
            point.annex = annex;
        });
    });
    files_.tell_written(EventKind::saved, clock, entries.size());
}

void Saves::checkpoint() {
    if (pending_.empty()) return;
    const EventClock clock;
    condition_.durable_step("bringing the files up to date", [&] {
        files_.require_whole();
        const auto install = [&](PageFile& file, bool late) {
            PageNumber first_hole{};
            std::uint64_t holes = 0;
            const auto punch = [&] {
                if (holes != 0) file.punch_pages(first_hole, std::exchange(holes, 0));
            };
            for (const auto& [number, page] : pending_) {
                if ((planted(Bug::annex_after_data_sync) && &file != &files_.backing() && sequence_of(PageNumber{number}) == Sequence::annex) != late)
                    continue;
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
        install(files_.backing(), false);
        if (files_.data()) install(*files_.data(), false);
        files_.write_tables(files_.point().generation);
        if (planted(Bug::header_before_sync)) files_.write_headers();
        if (!planted(Bug::skip_backing_sync)) files_.backing().sync();
        if (files_.data() && !planted(Bug::skip_data_sync)) files_.data()->sync();
        if (files_.data() && planted(Bug::annex_after_data_sync)) install(*files_.data(), true);
        files_.write_headers();
    });
    const std::uint64_t pages = pending_.size();
    pending_.clear();
    files_.tell_written(EventKind::checkpointed, clock, pages);
}

void Saves::tidy(const std::vector<vm::PageRun>& runs, std::span<const ChangedPage> changed) {
    const log::Ring& journal = *files_.journal();
    const bool ring_half_full = journal.free_bytes() < journal.capacity() / 2;
    const bool was_large = pending_.empty();
    if (!changed.empty() && (ring_half_full || was_large || count_idle(runs, changed) > idle_copies_max)) {
        checkpoint();
        proofs_.drop_written(runs);
        image_.look_at_memory();
    } else {
        for (const vm::PageRun& run : runs) proofs_.note_saved(run);
    }
}

void Saves::read_base(PageNumber page, std::span<std::byte> image) {
    condition_.check_usable(false);  // before the lock: in a forked child nobody would ever let go of it
    const auto lock = files_.hold_saves();
    const ChangedPage one{page, 0};
    condition_.durable_step("saving", [&] { proofs_.read_bases({&one, 1}, image); });
}

void Saves::save_pages(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& fill, bool patches) {
    condition_.check_usable(false);  // before the lock: in a forked child nobody would ever let go of it
    const auto lock = files_.hold_saves();
    condition_.check_usable(false);
    TAIYEN_CHECK(files_.uses_log());
    LargeSave save{point, point.annex.value_or(files_.point().annex), {}, nullptr, patches, {}};
    save.changed.reserve(pages.size());
    for (const PageNumber page : pages) {
        TAIYEN_CHECK((save.changed.empty() || save.changed.back().page < page));
        save.changed.push_back({page, 0});
    }
    save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) {
        if (patches) proofs_.read_bases(batch, images);
        const auto first = static_cast<std::size_t>(batch.data() - save.changed.data());
        fill(pages.subspan(first, batch.size()), images);
        for (std::size_t k = 0; k < batch.size(); ++k)
            batch[k].checksum = page_checksum(images.subspan(k * page_bytes, page_bytes), batch[k].page, files_.table().heap());
    };
    save_large(save);
    image_.look_at_memory();
}

std::uint64_t Saves::drop_saved(std::vector<vm::PageRun>& todo, std::span<std::byte> buffer, std::chrono::microseconds time) {
    condition_.check_usable(false);
    const auto lock = files_.hold_saves();
    const auto end = std::chrono::steady_clock::now() + time;
    std::uint64_t dropped = 0;
    while (!todo.empty() && std::chrono::steady_clock::now() < end) {
        vm::PageRun& run = todo.back();
        const std::uint64_t count = std::min<std::uint64_t>(run.count, buffer.size() / page_bytes);
        const PageNumber first{run.first + run.count - count};
        files_.backing().read_pages(first, buffer.first(count * page_bytes), Via::cache);
        for (std::uint64_t i = 0; i < count;) {
            std::uint64_t same = 0;
            const auto may_go = [&](std::uint64_t k) {
                const PageNumber page{first.value + k};
                return planted(Bug::drop_without_look) ||
                       (!proofs_.is_kept_open(page) && std::memcmp(image_.live_page(page).data(), buffer.data() + k * page_bytes, page_bytes) == 0);
            };
            while (i + same < count && may_go(i + same)) ++same;
            if (same != 0) proofs_.drop_copies({first.value + i}, same);
            dropped += same;
            i += same + 1;
        }
        run.count -= count;
        if (run.count == 0) todo.pop_back();
    }
    return dropped;
}

void Saves::save_live(const SavePoint& point, std::vector<ChangedPage> changed) {
    proofs_.check_bases(changed, false);
    LargeSave save = live_save(std::move(changed));
    save.point.serial = point.serial;
    save.point.log_start = point.log_start;
    save_large(save);
}

}  // namespace taiyen::store
