// The side of a heap file that a transactional heap uses: its log, saves of a point in that log, in the background or quiesced. The order of steps is the protocol: FORMAT.md.

#include <algorithm>
#include <cstring>

#include <taiyen/base/check.hpp>

#include "base/planted.hpp"
#include "store/heap_file.hpp"

namespace taiyen::store {

std::unique_ptr<log::Ring> HeapFile::take_log() {
    TAIYEN_CHECK(!read_only_ && uses_log() && !log_taken_);
    log_taken_ = true;
    return std::make_unique<log::Ring>(ring_file_, ring_identity_, log_start_, log_start_.position);
}

Serial HeapFile::serial() const {
    const std::lock_guard lock(point_mutex_);
    return durable_serial_;
}

log::RingStart HeapFile::log_start() const {
    const std::lock_guard lock(point_mutex_);
    return log_start_;
}

/// The pages of a batch as the newest save left them. What rotted in the backing file comes from the data file, which still has that save's page: a page is overwritten there
/// only after its base was asked for.
void HeapFile::read_bases(std::span<const ChangedPage> batch, std::span<std::byte> images) {
    const Extents extents = saved_extents();
    std::size_t asked = 0;
    for (std::size_t i = 0; i < batch.size();) {
        will_read_bases(batch, i, asked);
        std::size_t count = 1;
        while (i + count < batch.size() && batch[i + count].page.value == batch[i].page.value + count) {
            ++count;
        }
        backing_->try_read_pages(batch[i].page, images.subspan(i * page_bytes, count * page_bytes), Via::cache);
        for (std::size_t k = i; k < i + count; ++k) {
            const PageNumber page = batch[k].page;
            const auto image = images.subspan(k * page_bytes, page_bytes);
            if (!extents.hold(page)) {
                std::memset(image.data(), 0, page_bytes);
                continue;
            }
            const std::uint64_t expected = table_.entry(page);
            if (page_checksum(image, page, table_.heap()) == expected) {
                continue;
            }
            read_whole(page, image, "its checksum differs, so what was committed on top of it can't be saved");
            note_healed();
        }
        i += count;
    }
}

void HeapFile::read_base(PageNumber page, std::span<std::byte> image) {
    check_usable(false);  // before the lock: in a forked child nobody would ever let go of it
    const auto lock = hold_saves();
    const ChangedPage one{page, 0};
    durable_step("saving", [&] { read_bases({&one, 1}, image); });
}

void HeapFile::save_images(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& fill) {
    save_pages(point, pages, fill, false);
}
void HeapFile::save_patched(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& patch) {
    save_pages(point, pages, patch, true);
}

void HeapFile::save_pages(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& fill, bool patches) {
    check_usable(false);  // before the lock: in a forked child nobody would ever let go of it
    const auto lock = hold_saves();
    check_usable(false);
    TAIYEN_CHECK(uses_log());
    LargeSave save{point, point.annex.value_or(saved_annex_), {}, nullptr, patches, {}};
    save.changed.reserve(pages.size());
    for (const PageNumber page : pages) {
        TAIYEN_CHECK((save.changed.empty() || save.changed.back().page < page));
        save.changed.push_back({page, 0});
    }
    save.images = [&](std::span<ChangedPage> batch, std::span<std::byte> images) {
        if (patches) {
            read_bases(batch, images);
        }
        const auto first = static_cast<std::size_t>(batch.data() - save.changed.data());
        fill(pages.subspan(first, batch.size()), images);
        for (std::size_t k = 0; k < batch.size(); ++k) {
            batch[k].checksum = page_checksum(images.subspan(k * page_bytes, page_bytes), batch[k].page, table_.heap());
        }
    };
    save_large(save);
    look_at_memory();
}

void HeapFile::save_at(const SavePoint& point) {
    check_usable(false);  // before the lock: in a forked child nobody would ever let go of it
    const auto lock = hold_saves();
    check_usable(false);
    TAIYEN_CHECK(uses_log());
    const std::vector<vm::PageRun> runs = written_runs();
    const ProgramPointers program = point.searches ? next_program_pointers() : ProgramPointers::unsearched;
    std::optional<heap::ForeignPointerScan> scan;
    if (point.searches) {
        scan.emplace(*this, program);
    }
    std::vector<ChangedPage> changed = changed_pages(runs, scan ? &*scan : nullptr);
    if (scan && !changed.empty()) {
        scan->finish();
        note_searched(program);
    }
    if (!changed.empty() && annex_.has_ended()) {
        end_annex(changed);
    }
    check_bases(changed, false);
    LargeSave save = live_save(std::move(changed));
    save.point.serial = point.serial;
    save.point.log_start = point.log_start;
    save_large(save);
    drop_written(runs);
    look_at_memory();
}

std::vector<vm::PageRun> HeapFile::private_pages() const {
    ByteCount bytes = 0;
    {
        const std::lock_guard lock(point_mutex_);
        bytes = saved_extent_;
    }
    std::vector<vm::PageRun> runs;
    tracker_.written_pages(reservation_.data(), bytes, runs);
    return first_touch_ ? first_touch_->visible(runs) : runs;
}

ByteCount HeapFile::private_bytes() const {
    ByteCount bytes = 0;
    for (const vm::PageRun& run : written_span_runs()) {
        bytes += run.count * page_bytes;
    }
    return bytes;
}

std::uint64_t HeapFile::drop_saved(std::vector<vm::PageRun>& todo, std::span<std::byte> buffer, std::chrono::microseconds time) {
    check_usable(false);
    const auto lock = hold_saves();
    const auto end = std::chrono::steady_clock::now() + time;
    std::uint64_t dropped = 0;
    while (!todo.empty() && std::chrono::steady_clock::now() < end) {
        vm::PageRun& run = todo.back();
        const std::uint64_t count = std::min<std::uint64_t>(run.count, buffer.size() / page_bytes);
        const PageNumber first{run.first + run.count - count};
        backing_->read_pages(first, buffer.first(count * page_bytes), Via::cache);
        for (std::uint64_t i = 0; i < count;) {
            std::uint64_t same = 0;
            const auto may_go = [&](std::uint64_t k) {
                const PageNumber page{first.value + k};
                return planted(Bug::drop_without_look) ||
                       (!is_kept_open(page) && std::memcmp(live_page(page).data(), buffer.data() + k * page_bytes, page_bytes) == 0);
            };
            while (i + same < count && may_go(i + same)) {
                ++same;
            }
            if (same != 0) {
                drop_copies({first.value + i}, same);
            }
            dropped += same;
            i += same + 1;
        }
        run.count -= count;
        if (run.count == 0) {
            todo.pop_back();
        }
    }
    return dropped;
}

void HeapFile::drop_private() {
    check_usable(false);  // before the lock: in a forked child nobody would ever let go of it
    const auto lock = hold_saves();
    check_usable(false);
    require_restored();
    vm::drop(reservation_.data(), mapped_);
    saved_copies_.clear();
    forget_proofs();
    make_engine();
}

bool HeapFile::contains_log() const {
    if (planted(Bug::clean_despite_log)) {
        return true;
    }
    try {
        const log::ScanResult found = log::Ring::scan(*ring_file_, ring_identity_, log_start_, [](const log::Record&) { return false; });
        return found.records == 0 && found.how == log::ScanEnd::end;
    } catch (const Error&) {
        return false;
    }
}

void HeapFile::trim_log() {
    const ByteCount ring_bytes = log::Ring::header_bytes + ring_identity_.capacity_bytes;
    if (ring_file_->info().size_bytes > ring_bytes) {
        ring_file_->resize(ring_bytes);
    }
}

}  // namespace taiyen::store
