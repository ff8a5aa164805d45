// What is on the disk is what was saved: proven before a save builds on it, before somebody decides by it, and for whoever asks.

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "heap/fault_handler.hpp"
#include "store/heap_file.hpp"

namespace taiyen::store {
namespace {

/// Read at once where many bases are checked: stays in the processor's cache.
constexpr ByteCount base_batch_bytes = ByteCount{256} << 10U;
/// So many bases are asked for ahead: one after the other, each would be a wait for the device.
constexpr std::size_t bases_ahead = 4_MiB / page_bytes;
/// Bases so near to each other are asked for at once, with what lies between them.
constexpr std::uint64_t bases_gap_max = 8;
/// Read at once where all is proven.
constexpr ByteCount verified_batch_bytes = ByteCount{1} << 20U;
/// Verify::automatic: so much is proven within a millisecond.
constexpr ByteCount verified_bytes_automatic = 4_MiB;

/// Whether the same access has faulted so often, one time after the other, that no other thread can be the reason.
bool comes_back(const void* address) noexcept {
    constexpr unsigned often = 10'000;
    __attribute__((tls_model("initial-exec"))) thread_local constinit const void* last = nullptr;
    __attribute__((tls_model("initial-exec"))) thread_local constinit unsigned times = 0;
    times = address == last ? times + 1 : 1;
    last = address;
    sched_yield();
    return times > often;
}

}  // namespace

/// Whether what the program changed lay in the file before, and may have rotted there.
bool HeapFile::has_base(PageNumber page) {
    return is_mapped(page) && !saved_copies_.contains(page.value) && (table_.entry(page) != 0 || saved_extents().hold(page));
}

bool HeapFile::is_proven(PageNumber page, bool hidden) {
    const std::lock_guard lock(proof_mutex_);
    if (proven_.contains(page)) {
        return true;
    }
    // Nobody has written what is hidden; a save may be at work on the copies of others meanwhile.
    if ((hidden || !saved_copies_.contains(page.value)) && file_extents().hold(page) && !recovering_pages_.contains(page.value)) {
        const auto refusal = view().try_read_pages(page, proof_.span(), Via::cache);
        if (refusal || page_checksum(proof_.span(), page, table_.heap()) != table_.entry(page)) {
            return false;
        }
    }
    proven_.add(page);
    return true;
}

void HeapFile::forget_proofs(PageNumber first, std::uint64_t count) noexcept {
    const std::lock_guard lock(proof_mutex_);
    proven_.remove(first, count);
    std::erase_if(restored_, [&](std::uint64_t page) { return page >= first.value && page - first.value < count; });
}
void HeapFile::forget_proofs() noexcept {
    const std::lock_guard lock(proof_mutex_);
    proven_.clear();
    restored_.clear();
}

void HeapFile::prove(HeapOffset offset, ByteCount length) {
    if (length == 0) {
        return;
    }
    const PageNumber last = page_of({offset.value + length - 1});
    for (PageNumber page = page_of(offset); page <= last; ++page.value) {
        prove_page(page);
    }
}

void HeapFile::prove_page(PageNumber page) {
    if (is_proven(page)) {
        return;
    }
    open_hidden(page);
    if (is_proven(page)) {
        return;
    }
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

heap::Proof HeapFile::about_to_change(HeapOffset offset, ByteCount length, bool asked) noexcept {
    heap::Proof worst = heap::Proof::sound;
    if (replaying_ || planted(Bug::change_unproven)) {
        return worst;
    }
    for (PageNumber page = page_of(offset); offset_of(page).value < offset.value + length; ++page.value) {
        worst = std::max(worst, prove_for_change(page, asked));
    }
    return worst;
}

heap::Proof HeapFile::prove_for_change(PageNumber page, bool asked) noexcept {
    try {
        open_hidden(page);
        if (is_proven(page)) {
            return heap::Proof::sound;
        }
        if (restoring_ != page.value && engine_->is_metadata(offset_of(page))) {
            // By what stood there the engine has decided already.
            throw_damaged_page(page);
        }
        restore_in_memory(page);
        return heap::Proof::sound;
    } catch (const HeapFull&) {
        if (is_hidden(page)) {
            return heap::Proof::hidden;  // for want of mappings: it is not damaged
        }
        if (asked) {
            poison("a store into a page", "the system refuses memory to prove it");
        }
    } catch (const std::exception& error) {
        if (asked) {
            poison("a store into a page that is damaged on disk", error.what());
        }
    }
    return is_hidden(page) ? heap::Proof::hidden : heap::Proof::damaged;
}

void HeapFile::restore_in_memory(PageNumber page) {
    const std::lock_guard lock(proof_mutex_);
    if (proven_.contains(page)) {
        return;
    }
    AlignedBuffer good(page_bytes);
    read_whole(page, good.span(), data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
    // What the device doesn't give can't be looked at in memory either, nor replaced there.
    view().read_pages(page, proof_.span(), Via::cache);
    const std::span<std::byte> live = live_page(page);
    const auto added = restored_.insert(page.value).first;
    if (std::memcmp(live.data(), proof_.data(), page_bytes) == 0) {
        vm::protect(live.data(), page_bytes, true);
        std::memcpy(live.data(), good.data(), page_bytes);
        if (read_only_ && !replaying_) {
            vm::protect(live.data(), page_bytes, false);
        }
    } else if (std::memcmp(live.data(), good.data(), page_bytes) != 0 && !hides_rot(page, proof_.span(), good.span())) {
        restored_.erase(added);
        backing_->throw_corrupt_page(page, "it was changed before that was noticed, and what was stored can't be told from what is damaged");
    }
    proven_.add(page);
    note_healed();
}

bool HeapFile::hides_rot(PageNumber page, std::span<const std::byte> rotten, std::span<const std::byte> good) const {
    if (sequence_of(page) != Sequence::span || engine_->is_metadata(offset_of(page))) {
        return false;  // what is stored there follows from what stood there
    }
    const std::span<const std::byte> live = live_page(page);
    for (std::size_t i = 0; i < page_bytes; ++i) {
        if (rotten[i] != good[i] && live[i] == rotten[i]) {
            return false;
        }
    }
    return true;
}

void HeapFile::restore_in_file(PageNumber page, std::span<const std::byte> good) {
    durable_step("healing", [&] {
        backing_->write_pages(page, good);
        backing_->sync();
    });
    note_healed();
}

std::uint64_t HeapFile::restore_in_files() {
    std::vector<std::uint64_t> pages;
    {
        const std::lock_guard lock(proof_mutex_);
        if (restored_.empty()) {
            return 0;
        }
        pages.assign(restored_.begin(), restored_.end());
    }
    const AlignedBuffer image(page_bytes);
    const auto is_whole = [&](PageNumber page) { return page_checksum(image.span(), page, table_.heap()) == table_.entry(page); };
    std::uint64_t written = 0;
    for (const std::uint64_t number : pages) {
        const PageNumber page{number};
        try {
            const bool is_needed = is_mapped(page) && (backing_->try_read_pages(page, image.span(), Via::cache) || !is_whole(page));
            if (is_needed) {
                if (!is_hidden(page)) {
                    std::memcpy(image.data(), live_page(page).data(), page_bytes);
                }
                if (!is_whole(page)) {
                    read_whole(page, image.span(), "its checksum differs in both copies");
                }
                restore_in_file(page, image.span());
                ++written;
            }
        } catch (const Error&) {
            continue;  // it stays
        }
        const std::lock_guard lock(proof_mutex_);
        restored_.erase(number);  // and none that another thread has touched meanwhile
    }
    return written;
}

void HeapFile::require_restored() {
    restore_in_files();
    const std::lock_guard lock(proof_mutex_);
    if (!restored_.empty()) {
        throw_damaged_page({*restored_.begin()});
    }
}

void HeapFile::find_proven(PageNumber first, std::uint64_t count) {
    const std::lock_guard lock(proof_mutex_);
    const std::uint64_t saved_end = start_of(sequence_of(first)).value / page_bytes + file_extents().of(sequence_of(first)) / page_bytes;
    const std::uint64_t end = std::min(first.value + count, saved_end);
    if (first.value >= end) {
        return;
    }
    const AlignedBuffer batch(std::min(verified_batch_bytes, (end - first.value) * page_bytes));
    for (PageNumber at = first; at.value < end;) {
        if (proven_.contains(at)) {
            ++at.value;
            continue;
        }
        const std::uint64_t pages = std::min<std::uint64_t>(batch.size() / page_bytes, end - at.value);
        const bool refused = view().try_read_pages(at, batch.first(pages * page_bytes), Via::cache).has_value();
        for (std::uint64_t i = 0; i < pages && !refused; ++i, ++at.value) {
            if (!recovering_pages_.contains(at.value) &&
                page_checksum(batch.span().subspan(i * page_bytes, page_bytes), at, table_.heap()) == table_.entry(at)) {
                proven_.add(at);
            }
        }
        at.value += refused ? pages : 0;
    }
}

void HeapFile::verify_at_opening(Verify verify) {
    if (verify == Verify::at_first_touch) {
        return hide_until_touched();
    }
    const bool all = verify == Verify::at_opening;
    if (!all && (verify != Verify::automatic || read_only_ || !data_ || mapped_ + annex_.used() > verified_bytes_automatic)) {
        return;
    }
    const AlignedBuffer good(page_bytes);
    const auto restore = [&](PageNumber page) {
        read_whole(page, good.span(), data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
        if (read_only_ && sequence_of(page) == Sequence::annex) {
            backing_->throw_corrupt_page(page, "its checksum differs; open the heap for writing, which restores it from the second copy");
        } else if (read_only_) {
            restore_in_memory(page);
        } else {
            restore_in_file(page, good.span());  // nobody has changed it yet, so that is what the program sees
        }
    };
    for (const auto& [first, bytes] : {std::pair{PageNumber{0}, mapped_}, std::pair{annex_first_page, annex_.used()}}) {
        find_proven(first, bytes / page_bytes);
        for (PageNumber page = first; page.value < first.value + bytes / page_bytes; ++page.value) {
            try {
                if (!is_proven(page)) {
                    restore(page);
                }
            } catch (const Error& error) {
                if (all || (error.code() != errc::corrupt && error.code() != errc::io_error)) {
                    throw;
                }
                // What nobody has whole is told when it is used.
            }
        }
    }
}

void HeapFile::hide_until_touched() {
    heap::ensure_fault_handler();
    if (!read_only_) {
        make_joinable();
    }
    first_touch_ = std::make_unique<FirstTouch>(
        reservation_.data(), mapped_, [this](PageNumber first, std::uint64_t count) { return prove_hidden(first, count); },
        [this] { return opens_writable(); });
}

/// As PageRecorder does it, which can't touch what is hidden.
void HeapFile::make_joinable() {
    const auto first = reinterpret_cast<std::uintptr_t>(reservation_.data());
    for (const vm::Mapping& mapping : vm::mappings()) {
        const std::uintptr_t end = std::min(mapping.end, first + mapped_);
        for (std::uintptr_t at = std::max(mapping.begin, first); at < end; at += page_bytes) {
            if (is_proven(page_of({at - first}))) {
                volatile std::byte* const place = reservation_.data() + (at - first);
                *place = *place;
                break;
            }
        }
    }
}

heap::Touched HeapFile::on_touch(void* address, bool writes) noexcept {
    if (!first_touch_ || in_forked_child()) {
        return heap::Touched::not_taken;
    }
    try {
        const HeapOffset where{reinterpret_cast<std::uintptr_t>(address) - ranges().durable};
        const auto touch = first_touch_->touch(page_of(where));
        if (touch == FirstTouch::Touch::opened) {
            return heap::Touched::opened;
        }
        // Visible meanwhile, by another thread: then only a store that isn't allowed may still be in question, or a page that the program itself has protected.
        const bool is_allowed = touch == FirstTouch::Touch::was_open && (!writes || opens_writable());
        return is_allowed && !comes_back(address) ? heap::Touched::opened : heap::Touched::not_taken;
    } catch (const HeapFull&) {
        report({errc::out_of_address_space, address,
                "an access to the heap can't go on: the system refuses to make its page readable (mprotect(2)); raise vm.max_map_count"});
    } catch (const Error& error) {
        report({static_cast<errc>(error.code().value()), address, error.what()});
    } catch (const std::exception& error) {
        report({errc::io_error, address, error.what()});
    }
    return heap::Touched::refused;
}

void HeapFile::uncover(HeapOffset offset, ByteCount length) const {
    for (PageNumber page = page_of(offset); first_touch_ && offset_of(page).value < offset.value + length; ++page.value) {
        open_hidden(page);
    }
}

bool HeapFile::protect(HeapOffset offset, ByteCount length, bool writable) noexcept {
    return first_touch_ ? first_touch_->protect(page_of(offset), length / page_bytes, writable) : HeapCore::protect(offset, length, writable);
}

void HeapFile::open_hidden(PageNumber page) const {
    if (first_touch_ && sequence_of(page) == Sequence::span) {
        (void)first_touch_->touch(page);
    }
}

bool HeapFile::is_lost(PageNumber page) const {
    try {
        open_hidden(page);
        return false;
    } catch (const Error&) {
        return true;
    }
}

void HeapFile::prove_annex() {
    if (!first_touch_) {
        return;
    }
    const std::uint64_t count = annex_.used() / page_bytes;
    forget_proofs(annex_first_page, count);  // what was whole in memory only went with the mapping before
    find_proven(annex_first_page, count);
    for (PageNumber page = annex_first_page; page.value < annex_first_page.value + count; ++page.value) {
        if (!is_proven(page)) {
            restore_in_memory(page);
        }
    }
}

std::vector<FirstTouch::LostPage> HeapFile::prove_hidden(PageNumber first, std::uint64_t count) {
    try {
        find_proven(first, count);
    } catch (const Error&) {
        // A part of the table is lost, perhaps not all that is asked for.
    }
    std::vector<FirstTouch::LostPage> lost;
    for (PageNumber page = first; page.value < first.value + count; ++page.value) {
        try {
            if (!is_proven(page, true)) {
                replace_hidden(page);
            }
        } catch (const Error& error) {
            lost.push_back({page, error});  // whatever keeps it from being restored, its neighbours have nothing to do with it
        } catch (const HeapFull& full) {
            lost.push_back({page, Error(errc::out_of_address_space, paths_.backing,
                                        text_of(page) + " of the heap is damaged and can't be restored in memory: " + full.what())});
        }
    }
    return lost;
}

/// The page that is mapped there gives way to a private copy of it that is whole, in one step: other threads may be about to touch it.
void HeapFile::replace_hidden(PageNumber page) {
    const AlignedBuffer good(page_bytes);
    const AlignedBuffer found(page_bytes);
    read_whole(page, good.span(), data_ ? "its checksum differs in both copies" : "its checksum differs and there is no second copy");
    if (const auto refusal = view().try_read_pages(page, found.span(), Via::cache)) {
        if (read_only_) {
            throw Error(*refusal);
        }
        restore_in_file(page, good.span());  // what the device doesn't give can't be mapped
    } else {
        vm::Reservation place = vm::Reservation::anywhere(page_bytes);
        map_at(place.data(), offset_of(page), page_bytes, io::Protection::read_write);
        std::memcpy(place.data(), good.data(), page_bytes);
        vm::hide(place.data(), page_bytes);
        vm::replace_mapping(place.data(), live_page(page).data(), page_bytes);
        place.leak();  // nothing is mapped there any more
        note_healed();
    }
    const std::lock_guard lock(proof_mutex_);
    restored_.insert(page.value);
    proven_.add(page);
}

/// What was changed lies on what the newest save left. Throws: Error{corrupt}: the heap is poisoned, but its files have the page whole again if one of them had.
void HeapFile::check_base(PageNumber page) {
    if (planted(Bug::rot_laundered) || !has_base(page) || is_proven(page)) {
        return;
    }
    const AlignedBuffer rotten(page_bytes);
    const AlignedBuffer good(page_bytes);
    backing_->read_pages(page, rotten.span(), Via::cache);  // what the device refuses may be given another time: nothing has happened
    try {
        read_whole(page, good.span(), "its checksum differs, so the change on top of it can't be saved");
    } catch (const Error&) {
        poison("saving", "a page was damaged on disk before it was changed, and there is no good second copy");
        throw;
    }
    restore_in_file(page, good.span());
    if (hides_rot(page, rotten.span(), good.span())) {
        return;
    }
    poison("saving", "a page was damaged on disk before it was changed, and what was stored there can't be told from what was damaged");
    throw Error(errc::corrupt, backing_->path(), backing_->layout.file_offset(offset_of(page)),
                text_of(page) +
                    " of the heap was damaged before it was changed, and what was stored there can't be told from what was damaged: nothing "
                    "is saved. The file has the page again as the newest save left it; close the heap and open it again. Verify::at_opening "
                    "restores such pages before they are changed");
}

void HeapFile::will_read_bases(std::span<const ChangedPage> pages, std::size_t next, std::size_t& asked) const noexcept {
    const std::size_t end = std::min(pages.size(), next + bases_ahead);
    if (end < pages.size() && end < asked + bases_ahead / 2) {
        return;  // half of what is to be asked for ahead still is
    }
    while (asked < end) {
        const PageNumber first = pages[asked].page;
        PageNumber last = first;
        while (++asked < end && pages[asked].page.value - last.value <= bases_gap_max && sequence_of(pages[asked].page) == sequence_of(first)) {
            last = pages[asked].page;
        }
        backing_->will_read(first, last.value - first.value + 1);
    }
}

/// The same for many pages, read by runs.
void HeapFile::check_bases(std::span<const ChangedPage> changed, bool punches) {
    const AlignedBuffer bases(base_batch_bytes);
    const std::span<const ChangedPage> all = changed;
    std::size_t asked = 0;
    while (!changed.empty()) {
        will_read_bases(all, all.size() - changed.size(), asked);
        std::size_t count = 1;
        while (count < changed.size() && count < base_batch_bytes / page_bytes && changed[count].page.value == changed[0].page.value + count) {
            ++count;
        }
        backing_->try_read_pages(changed[0].page, bases.first(count * page_bytes), Via::cache);
        for (std::size_t i = 0; i < count; ++i) {
            const PageNumber page = changed[i].page;
            const auto base = bases.span().subspan(i * page_bytes, page_bytes);
            const bool becomes_hole = punches && changed[i].checksum == 0;
            if (!becomes_hole && has_base(page) && page_checksum(base, page, table_.heap()) != table_.entry(page)) {
                check_base(page);
            }
        }
        changed = changed.subspan(count);
    }
}

template <class F>
void HeapFile::prove_pages(F&& is_asked) const {
    constexpr std::uint64_t ahead_max = verified_batch_bytes / page_bytes;
    std::uint64_t asked_for = 0;
    for (std::uint64_t page = 0; page < saved_extent_ / page_bytes; ++page) {
        if (!is_asked(page)) {
            continue;
        }
        if (page >= asked_for) {
            for (asked_for = page + 1; asked_for < std::min(page + ahead_max, saved_extent_ / page_bytes) && is_asked(asked_for);) {
                ++asked_for;
            }
            will_read(offset_of(PageNumber{page}), (asked_for - page) * page_bytes);
        }
        open_hidden({page});
        if (page_checksum(live_page({page}), {page}, table_.heap()) != table_.entry({page})) {
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
