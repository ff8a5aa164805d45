#include "store/proofs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "heap/geometry.hpp"

namespace taiyen::store {
namespace {

/// Read at once where all is proven.
constexpr ByteCount verified_batch_bytes = ByteCount{1} << 20U;
/// Verify::automatic: so much is proven within a millisecond.
constexpr ByteCount verified_bytes_automatic = 4_MiB;

}  // namespace

/// Whether what the program changed lay in the file before, and may have rotted there.
bool Proofs::has_base(PageNumber page) const {
    return image_.is_mapped(page) && !saved_copies_.contains(page.value) && (files_.table().entry(page) != 0 || files_.extents().hold(page));
}

bool Proofs::is_proven(PageNumber page, bool hidden) {
    const std::lock_guard lock(mutex_);
    if (proven_.contains(page)) return true;
    // Nobody has written what is hidden; a save may be at work on the copies of others meanwhile.
    if ((hidden || !saved_copies_.contains(page.value)) && files_.file_extents().hold(page) && !files_.recovering_pages().contains(page.value)) {
        const auto refusal = files_.view().try_read_pages(page, proof_.span(), Via::cache);
        if (refusal || page_checksum(proof_.span(), page, files_.table().heap()) != files_.table().entry(page)) return false;
    }
    proven_.add(page);
    return true;
}

void Proofs::forget_proofs(PageNumber first, std::uint64_t count) noexcept {
    const std::lock_guard lock(mutex_);
    proven_.remove(first, count);
    std::erase_if(restored_, [&](std::uint64_t page) { return page >= first.value && page - first.value < count; });
}

void Proofs::forget_proofs() noexcept {
    const std::lock_guard lock(mutex_);
    proven_.clear();
    restored_.clear();
}

void Proofs::prove(HeapOffset offset, ByteCount length) {
    if (length == 0) return;
    const PageNumber last = page_of({offset.value + length - 1});
    for (PageNumber page = page_of(offset); page <= last; ++page.value) prove_page(page);
}

bool Proofs::is_sound(HeapOffset offset, ByteCount length) {
    if (length == 0) return true;
    const PageNumber last = page_of({offset.value + length - 1});
    for (PageNumber page = page_of(offset); page <= last; ++page.value)
        if (image_.is_hidden(page) || !is_proven(page)) return false;
    return true;
}

void Proofs::prove_page(PageNumber page) {
    if (is_proven(page)) return;
    image_.open_hidden(page);
    if (is_proven(page)) return;
    if (participant_) {
        // Capture opens the page, and is told of no change: it has the page restored before it keeps the bytes before.
        restoring_ = page.value;
        try {
            participant_->about_to_restore(page);
        } catch (...) {
            restoring_ = no_page;
            throw;
        }
        restoring_ = no_page;
    }
    restore_in_memory(page);
}

heap::Proof Proofs::about_to_change(HeapOffset offset, ByteCount length, bool asked) noexcept {
    heap::Proof worst = heap::Proof::sound;
    if (files_.is_replaying() || planted(Bug::change_unproven)) return worst;
    for (PageNumber page = page_of(offset); offset_of(page).value < offset.value + length; ++page.value)
        worst = std::max(worst, prove_for_change(page, asked));
    return worst;
}

heap::Proof Proofs::prove_for_change(PageNumber page, bool asked) noexcept {
    try {
        image_.open_hidden(page);
        if (is_proven(page)) return heap::Proof::sound;
        if (restoring_ != page.value && is_metadata(page)) {
            // By what stood there the engine has decided already.
            throw_damaged_page(page);
        }
        restore_in_memory(page);
        return heap::Proof::sound;
    } catch (const HeapFull&) {
        if (image_.is_hidden(page)) return heap::Proof::hidden;  // for want of mappings: it is not damaged
        if (asked) condition_.poison("a store into a page", "the system refuses memory to prove it");
    } catch (const std::exception& error) {
        if (asked) condition_.poison("a store into a page that is damaged on disk", error.what());
    }
    return image_.is_hidden(page) ? heap::Proof::hidden : heap::Proof::damaged;
}

void Proofs::restore_in_memory(PageNumber page) {
    const std::lock_guard lock(mutex_);
    if (proven_.contains(page)) return;
    AlignedBuffer good(page_bytes);
    files_.read_whole(page, good.span());
    // What the device doesn't give can't be looked at in memory either, nor replaced there.
    files_.view().read_pages(page, proof_.span(), Via::cache);
    const std::span<std::byte> live = image_.live_page(page);
    const auto added = restored_.insert(page.value).first;
    if (std::memcmp(live.data(), proof_.data(), page_bytes) == 0) {
        vm::protect(live.data(), page_bytes, true);
        std::memcpy(live.data(), good.data(), page_bytes);
        if (condition_.is_read_only() && !files_.is_replaying()) vm::protect(live.data(), page_bytes, false);
    } else if (std::memcmp(live.data(), good.data(), page_bytes) != 0 && !hides_rot(page, proof_.span(), good.span())) {
        restored_.erase(added);
        files_.backing().throw_corrupt_page(page, "it was changed before that was noticed, and what was stored can't be told from what is damaged");
    }
    proven_.add(page);
    files_.note_healed();
}

bool Proofs::hides_rot(PageNumber page, std::span<const std::byte> rotten, std::span<const std::byte> good) const {
    if (sequence_of(page) != Sequence::span || is_metadata(page)) return false;  // what is stored there follows from what stood there
    const std::span<const std::byte> live = image_.live_page(page);
    for (std::size_t i = 0; i < page_bytes; ++i)
        if (rotten[i] != good[i] && live[i] == rotten[i]) return false;
    return true;
}

void Proofs::restore_in_file(PageNumber page, std::span<const std::byte> good) {
    condition_.durable_step("healing", [&] {
        files_.backing().write_pages(page, good);
        files_.backing().sync();
    });
    files_.note_healed();
}

std::uint64_t Proofs::restore_in_files() {
    std::vector<std::uint64_t> pages;
    {
        const std::lock_guard lock(mutex_);
        if (restored_.empty()) return 0;
        pages.assign(restored_.begin(), restored_.end());
    }
    const AlignedBuffer image(page_bytes);
    const auto is_whole = [&](PageNumber page) { return page_checksum(image.span(), page, files_.table().heap()) == files_.table().entry(page); };
    std::uint64_t written = 0;
    for (const std::uint64_t number : pages) {
        const PageNumber page{number};
        try {
            const bool is_needed = image_.is_mapped(page) && (files_.backing().try_read_pages(page, image.span(), Via::cache) || !is_whole(page));
            if (is_needed) {
                if (!image_.is_hidden(page)) std::memcpy(image.data(), image_.live_page(page).data(), page_bytes);
                if (!is_whole(page)) files_.read_whole(page, image.span(), "its checksum differs in both copies");
                restore_in_file(page, image.span());
                ++written;
            }
        } catch (const Error&) {
            continue;  // it stays
        }
        const std::lock_guard lock(mutex_);
        restored_.erase(number);  // and none that another thread has touched meanwhile
    }
    return written;
}

void Proofs::require_restored() {
    restore_in_files();
    const std::lock_guard lock(mutex_);
    if (!restored_.empty()) throw_damaged_page({*restored_.begin()});
}

void Proofs::find_proven(PageNumber first, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t saved_end = start_of(sequence_of(first)).value / page_bytes + files_.file_extents().of(sequence_of(first)) / page_bytes;
    const std::uint64_t end = std::min(first.value + count, saved_end);
    if (first.value >= end) return;
    const AlignedBuffer batch(std::min(verified_batch_bytes, (end - first.value) * page_bytes));
    for (PageNumber at = first; at.value < end;) {
        if (proven_.contains(at)) {
            ++at.value;
            continue;
        }
        const std::uint64_t pages = std::min<std::uint64_t>(batch.size() / page_bytes, end - at.value);
        const bool refused = files_.view().try_read_pages(at, batch.first(pages * page_bytes), Via::cache).has_value();
        for (std::uint64_t i = 0; i < pages && !refused; ++i, ++at.value) {
            if (!files_.recovering_pages().contains(at.value) &&
                page_checksum(batch.span().subspan(i * page_bytes, page_bytes), at, files_.table().heap()) == files_.table().entry(at)) {
                proven_.add(at);
            }
        }
        at.value += refused ? pages : 0;
    }
}

void Proofs::verify_at_opening(Verify verify) {
    if (verify == Verify::at_first_touch) return hide_until_touched();
    const bool all = verify == Verify::at_opening;
    if (!all && (verify != Verify::automatic || condition_.is_read_only() || !files_.data() ||
                 image_.mapped() + image_.annex().used() > verified_bytes_automatic)) {
        return;
    }
    const AlignedBuffer good(page_bytes);
    const auto restore = [&](PageNumber page) {
        files_.read_whole(page, good.span());
        if (condition_.is_read_only() && sequence_of(page) == Sequence::annex)
            files_.backing().throw_corrupt_page(page, "its checksum differs; open the heap for writing, which restores it from the second copy");
        else if (condition_.is_read_only())
            restore_in_memory(page);
        else
            restore_in_file(page, good.span());  // nobody has changed it yet, so that is what the program sees
    };
    for (const auto& [first, bytes] : {std::pair{PageNumber{0}, image_.mapped()}, std::pair{annex_first_page, image_.annex().used()}}) {
        find_proven(first, bytes / page_bytes);
        for (PageNumber page = first; page.value < first.value + bytes / page_bytes; ++page.value) {
            try {
                if (!is_proven(page)) restore(page);
            } catch (const Error& error) {
                if (all || (error.code() != errc::corrupt && error.code() != errc::io_error)) throw;
                // What nobody has whole is told when it is used.
            }
        }
    }
}

void Proofs::prove_annex() {
    if (!image_.first_touch()) return;
    const std::uint64_t count = image_.annex().used() / page_bytes;
    forget_proofs(annex_first_page, count);  // what was whole in memory only went with the mapping before
    find_proven(annex_first_page, count);
    for (PageNumber page = annex_first_page; page.value < annex_first_page.value + count; ++page.value)
        if (!is_proven(page)) restore_in_memory(page);
}

void Proofs::will_read_tables(const std::vector<vm::PageRun>& runs) const {
    // One after the other, table pages that nobody has used yet would cost a device read each.
    std::uint64_t asked = ~std::uint64_t{0};
    for (const vm::PageRun& run : runs) {
        const std::uint64_t last = place_of({run.first + run.count - 1}).table_page;
        for (std::uint64_t index = place_of({run.first}).table_page; index <= last; ++index) {
            if (index != asked && !files_.table().is_loaded(index))
                files_.backing().file().will_read(files_.backing().layout.table_offset(index), page_bytes);
            asked = index;
        }
    }
}

std::vector<ChangedPage> Proofs::changed_pages(const std::vector<vm::PageRun>& runs, heap::ForeignPointerScan* scan) {
    std::vector<ChangedPage> changed;
    will_read_tables(runs);
    for (const vm::PageRun& run : runs) {
        for (std::uint64_t number = run.first; number < run.first + run.count; ++number) {
            const PageNumber page{number};
            const std::uint64_t sum = page_checksum(image_.live_page(page), page, files_.table().heap());
            if (sum == files_.table().entry(page)) continue;
            changed.push_back({page, sum});
            // Now, while the page is in the processor's cache.
            if (scan != nullptr && sequence_of(page) == Sequence::span) scan->examine(offset_of(page), page_bytes);
        }
    }
    return changed;
}

/// What was written and is as saved all the same (changed back, undone) is not dirty, and needs no look at its base: its checksum has just been proven.
void Proofs::note_saved(const vm::PageRun& run) noexcept {
    try {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page) saved_copies_.insert(page);
    } catch (const std::bad_alloc&) {
        // Then `dirty_bytes` counts pages that are not: the save itself is done.
    }
}

/// Pages whose base in the backing file, proven by nobody, is part of what the program sees. (A transactional heap saves what stands in its log on top of the file's own bytes.)
std::unordered_set<std::uint64_t> Proofs::pages_with_live_base() const {
    std::unordered_set<std::uint64_t> live;
    const std::vector<vm::PageRun> runs = files_.uses_log() ? std::vector<vm::PageRun>() : image_.written_runs();
    const std::lock_guard lock(mutex_);  // not before: who touches a hidden page takes its lock first
    for (const vm::PageRun& run : runs) {
        for (std::uint64_t page = run.first; page < run.first + run.count; ++page)
            if (!saved_copies_.contains(page) && !proven_.contains({page})) live.insert(page);
    }
    return live;
}

bool Proofs::keeps_rot(PageNumber page, std::span<const std::byte> rotten, std::span<const std::byte> good) const {
    if (!image_.is_mapped(page) || image_.is_hidden(page)) return false;
    const std::vector<vm::PageRun> runs = image_.written_runs();
    const bool is_written =
        std::ranges::any_of(runs, [&](const vm::PageRun& run) { return page.value >= run.first && page.value < run.first + run.count; });
    const std::lock_guard lock(mutex_);
    if (!is_written || saved_copies_.contains(page.value)) return false;
    const std::span<const std::byte> live = image_.live_page(page);
    for (std::size_t i = 0; i < page_bytes; ++i)
        if (rotten[i] != good[i] && live[i] == rotten[i]) return true;
    return false;
}

void Proofs::require_whole_below_changes() const {
    const AlignedBuffer image(page_bytes);
    for (const std::uint64_t number : pages_with_live_base()) {
        const PageNumber page{number};
        if (!files_.extents().hold(page)) continue;
        if (files_.backing().try_read_pages(page, image.span(), Via::device) ||
            page_checksum(image.span(), page, files_.table().heap()) != files_.table().entry(page))
            throw Error(errc::corrupt, files_.backing().path(), files_.backing().layout.file_offset(offset_of(page)),
                        "page " + std::to_string(number) +
                            " was damaged before it was changed, and the data file has it whole: snapshot(), which restores it, and then detach the "
                            "data file");
    }
}

/// Whether capture would not announce the next store into the page: then its proof must last, and so must the private copy that it is about.
bool Proofs::is_kept_open(PageNumber page) const noexcept {
    return participant_ && sequence_of(page) == Sequence::span && participant_->keeps_open(page);
}

void Proofs::drop_copies(PageNumber first, std::uint64_t count) {
    vm::drop(image_.live_page(first).data(), count * page_bytes);
    forget_proofs(first, count);
}

/// The save is done: whatever fails here must not look like one that failed.
void Proofs::drop_written(const std::vector<vm::PageRun>& runs) noexcept {
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
            while (last < end && must_stay(last) == stays) ++last;
            if (!stays) {
                try {
                    drop_copies({first}, last - first);
                } catch (const Error&) {
                    // The system keeps them, as they were saved.
                }
            } else if (!files_.uses_log()) {
                note_saved({first, last - first});
            }
            first = last;
        }
    }
}

void Proofs::heal_first_page(bool in_view_only) {
    // The engine reads the super block before anybody could call heal(): damage there is healed, or named, here.
    const PageNumber first{0};
    const AlignedBuffer found(page_bytes);
    const bool is_refused = files_.backing().try_read_pages(first, found.span(), Via::cache).has_value();
    if (page_checksum(found.span(), first, files_.table().heap()) == files_.table().entry(first)) return;
    const AlignedBuffer good(page_bytes);
    files_.read_whole(first, good.span());
    if (is_refused && in_view_only) {
        // Also a store would have the kernel fetch the page first.
        vm::map_anonymous(image_.live_page(first).data(), page_bytes);
        vm::prepare_heap_mapping(image_.live_page(first).data(), page_bytes);
        first_page_is_ours_ = true;
    } else if (condition_.is_read_only()) {
        vm::protect(image_.live_page(first).data(), page_bytes, true);
    }
    if (in_view_only) {
        std::memcpy(image_.live_page(first).data(), good.data(), page_bytes);
    } else {
        files_.backing().write_pages(first, good.span());
        files_.backing().sync();
    }
    if (condition_.is_read_only()) vm::protect(image_.live_page(first).data(), page_bytes, false);
    owes_first_page_ = in_view_only && !condition_.is_read_only();
    proven_.add(first);
    files_.note_healed();
}

/// The log is right.
void Proofs::write_first_page() {
    if (std::exchange(owes_first_page_, false)) {
        const AlignedBuffer good(page_bytes);
        files_.read_whole({0}, good.span());
        files_.backing().write_pages({0}, good.span());
        files_.backing().sync();
    }
}

void Proofs::map_first_page() {
    if (std::exchange(first_page_is_ours_, false)) image_.map({0}, page_bytes, io::Protection::read_write);
}

void Proofs::drop_all() {
    require_restored();
    vm::drop(image_.begin(), image_.mapped());
    saved_copies_.clear();
    forget_proofs();
}

template <class F>
void Proofs::prove_pages(F&& is_asked) const {
    constexpr std::uint64_t ahead_max = verified_batch_bytes / page_bytes;
    std::uint64_t asked_for = 0;
    const std::uint64_t end = files_.extents().span / page_bytes;
    for (std::uint64_t page = 0; page < end; ++page) {
        if (!is_asked(page)) continue;
        if (page >= asked_for) {
            for (asked_for = page + 1; asked_for < std::min(page + ahead_max, end) && is_asked(asked_for);) ++asked_for;
            image_.will_read(offset_of(PageNumber{page}), (asked_for - page) * page_bytes);
        }
        image_.open_hidden({page});
        if (page_checksum(image_.live_page({page}), {page}, files_.table().heap()) != files_.table().entry({page})) throw_damaged_page({page});
    }
}

void Proofs::prove_span() const {
    condition_.check_usable(true);
    const auto lock = files_.hold_saves();
    prove_pages([](std::uint64_t) { return true; });
}

void Proofs::prove_unwritten(const std::vector<bool>& pages) const {
    condition_.check_usable(true);
    if (planted(Bug::rot_laundered)) return;
    const auto lock = files_.hold_saves();
    std::vector<bool> asked = pages;
    for (const vm::PageRun& run : image_.written_span_runs())
        for (std::uint64_t page = run.first; page < run.first + run.count && page < asked.size(); ++page) asked[page] = false;
    prove_pages([&](std::uint64_t page) { return page < asked.size() && asked[page]; });
}

void Proofs::prove_saved(HeapOffset offset, ByteCount length) {
    condition_.check_usable(true);
    if (planted(Bug::rot_laundered)) return;
    const auto lock = files_.hold_saves();
    alignas(page_bytes) std::array<std::byte, page_bytes> saved;
    for (PageNumber page = page_of(offset); page.value * page_bytes < offset.value + length; ++page.value) {
        if (!has_base(page)) continue;
        files_.backing().try_read_pages(page, saved, Via::cache);
        if (page_checksum(saved, page, files_.table().heap()) != files_.table().entry(page)) throw_damaged_page(page);
    }
}

bool Proofs::metadata_is_sound() const {
    const heap::Geometry geometry(files_.backing().header.capacity);
    image_.will_read_metadata();
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const heap::Region& region = geometry.region(index);
        const std::uint64_t end = std::min<std::uint64_t>((region.lines + page_bytes - 1) / page_bytes, files_.extents().span / page_bytes);
        for (std::uint64_t page = region.first; page < end; ++page) {
            if (image_.is_lost({page})) return false;
            if (page_checksum(image_.live_page({page}), {page}, files_.table().heap()) != files_.table().entry({page})) return false;
        }
    }
    return true;
}

void Proofs::throw_damaged_page(PageNumber page) const {
    const char* const remedy = !files_.data()      ? "there is no second copy"
                               : files_.uses_log() ? "close the heap, and run 'taiyen repair', which restores it if the other copy has it whole"
                                                   : "heal() restores it if the other copy has it whole, snapshot() if it was written since";
    files_.backing().throw_corrupt_page(page, std::string("its checksum differs; ") + remedy);
}

}  // namespace taiyen::store
