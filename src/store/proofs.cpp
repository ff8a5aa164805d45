// What is on the disk is what was saved: proven before a save builds on it, before somebody decides by it, and for whoever asks.

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/heap_file.hpp"

namespace taiyen::store {
namespace {

/// Read at once where many bases are checked: stays in the processor's cache.
constexpr ByteCount base_batch_bytes = ByteCount{256} << 10U;

}  // namespace

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

}  // namespace taiyen::store
