#include "transfer/saved_pages.hpp"

#include <algorithm>
#include <cstring>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "heap/geometry.hpp"
#include "store/page_copies.hpp"

namespace taiyen::transfer {
namespace {

using store::PageFile;
using store::Via;

/// For an engine that only reads.
class FixedSpan final : public heap::SpanHost {
public:
    void extend(ByteCount) override {}
};

}  // namespace

SavedPages::SavedPages(store::HeapFile& heap) : heap_(heap) {
    heap.check_usable(true);
    if (!heap.read_only()) {
        if (heap.kind() == HeapKind::transactional)
            heap.save();  // replays the log into the files, beside the program
        else
            heap.saves().checkpoint();
    }
    saves_ = heap.files().hold_saves();
    heap.check_usable(true);
    find_view();
    prove_metadata();
    survey_.emplace(view_, header().capacity);
    if (survey_->extent() * page_bytes > extent_)
        throw Error(errc::corrupt, heap.path(), "the heap's first page speaks of more than was saved; restore the file from a copy");
    FixedSpan host;
    const heap::Engine engine(view_, header().capacity, host, nullptr, true);
    // What would be refused when it is expanded is refused here, where there still is a heap that can be repaired.
    if (const auto damages = engine.check(1); !damages.empty()) {
        throw Error(errc::corrupt, heap.path(), heap.files().view().layout.file_offset(damages.front().where),
                    damages.front().what + "; `taiyen verify` tells more, and only a sound heap is compressed");
    }
    names_ = engine.roots().size();
}

void SavedPages::find_view() {
    serial_ = heap_.files().durable_serial();
    if (heap_.read_only()) {
        // Nobody else can change these files, nor does this heap.
        extent_ = heap_.image().mapped();
        view_ = reinterpret_cast<std::byte*>(heap_.ranges().durable);
        heap_.image().tracker().written_pages(view_, extent_, private_);
        prove_bases();
        return;
    }
    extent_ = header().extent;
    const store::Extents extents = header().extents();
    if (const std::uint64_t root = store::table_root_of(heap_.files().view(), extents, Via::cache, twin()); root != header().table_root)
        throw Error(errc::corrupt, heap_.path(), 0, "a page of the checksum table is not the one that the header stands for; run `taiyen repair`");
    mapped_ = vm::Reservation::anywhere(extent_);
    view_ = mapped_.data();
    store::for_each_piece({0}, extent_, [&](HeapOffset offset, ByteCount length) {
        heap_.files().view().file().map_private(view_ + offset.value, length, heap_.files().view().layout.file_offset(offset),
                                                io::Protection::read_write);
    });
    vm::prepare_heap_mapping(view_, extent_);
}

void SavedPages::prove_bases() {
    const AlignedBuffer bytes(page_bytes);
    for (const vm::PageRun& run : private_) {
        for (std::uint64_t number = run.first; number < run.first + run.count; ++number) {
            const PageNumber page{number};
            // A journal brings whole pages; a transaction log bytes, on top of what the file has.
            if (heap_.files().recovering_pages().contains(number) || !header().extents().hold(page)) continue;
            const std::uint64_t checksum = entry(page);
            if (store::page_checksum({view_ + number * page_bytes, page_bytes}, page, header().heap) == checksum) continue;
            const auto refusal = heap_.files().view().try_read_pages(page, bytes.span(), Via::cache);
            if (store::page_checksum(bytes.span(), page, header().heap) != checksum) {
                if (refusal) throw Error(*refusal);
                heap_.files().view().throw_corrupt_page(page, "its checksum differs below what the transaction log has for it");
            }
        }
    }
}

void SavedPages::prove_metadata() {
    const heap::Geometry geometry(header().capacity);
    const AlignedBuffer bytes(page_bytes);
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const heap::Region& region = geometry.region(index);
        const std::uint64_t end = std::min<std::uint64_t>(region.first_user, extent_ / page_bytes);
        for (std::uint64_t number = region.first; number < end; ++number) {
            const PageNumber page{number};
            if (is_private(page)) continue;
            const std::uint64_t checksum = checksum_of(page);
            // By the file, not by the view: what the device can't read would end the program there.
            const bool is_refused = heap_.files().view().try_read_pages(page, bytes.span(), Via::cache).has_value();
            if (store::page_checksum(bytes.span(), page, header().heap) == checksum) continue;
            read(page, bytes.span(), {&checksum, 1});
            if (heap_.read_only()) {
                heap_.files().view().throw_corrupt_page(
                    page, "its checksum differs in the copy that was opened; `taiyen repair` restores it from the other one");
            }
            std::byte* const at = view_ + number * page_bytes;
            if (is_refused) vm::map_anonymous(at, page_bytes);  // also a store would have the kernel fetch the page first
            std::memcpy(at, bytes.data(), page_bytes);
        }
    }
}

bool SavedPages::is_private(PageNumber page) const {
    // What a reader got from journal or log beyond the extents of the file's header: the file has nothing of it.
    if (!header().extents().hold(page)) return true;
    const auto behind = std::upper_bound(private_.begin(), private_.end(), page.value,
                                         [](std::uint64_t number, const vm::PageRun& run) { return number < run.first; });
    return behind != private_.begin() && page.value < std::prev(behind)->first + std::prev(behind)->count;
}

std::uint64_t SavedPages::checksum_of(PageNumber page) {
    if (is_private(page)) return is_zero({view_ + offset_of(page).value, page_bytes}) ? 0 : 1;
    return entry(page);
}

std::uint64_t SavedPages::entry(PageNumber page) {
    const store::TablePlace place = store::place_of(page);
    if (table_index_ != place.table_page) load_table_page(place.table_page);
    return table_.entries[place.entry];
}

void SavedPages::load_table_page(std::uint64_t index) {
    table_index_.reset();
    const auto refusal = heap_.files().view().try_read_table_page(index, table_, Via::cache);
    if (refusal || !store::is_sound(table_, index, header().heap)) {
        // A crash may have torn it in a checkpoint; its entries of pages that the journal doesn't bring stand.
        if (refusal || !heap_.files().is_recovering(store::cover_of(index))) {
            store::TablePage copy;
            if (twin() == nullptr || twin()->try_read_table_page(index, copy, Via::cache) || !store::is_sound(copy, index, header().heap)) {
                if (refusal) throw Error(*refusal);
                throw Error(errc::corrupt, heap_.files().view().path(), heap_.files().view().layout.table_offset(index),
                            "a page of the checksum table is damaged; run `taiyen repair`");
            }
            table_ = copy;
        }
    }
    table_index_ = index;
}

void SavedPages::read(PageNumber first, std::span<std::byte> pages, std::span<const std::uint64_t> checksums) const {
    constexpr std::size_t near_pages = 16;  // their checksums are compared while they lie in the processor's cache
    for (std::size_t i = 0; i < checksums.size();) {
        const PageNumber page{first.value + i};
        if (is_private(page)) {
            std::memcpy(pages.data() + i * page_bytes, view_ + offset_of(page).value, page_bytes);
            ++i;
            continue;
        }
        std::size_t end = i + 1;
        while (end < checksums.size() && end - i < near_pages && !is_private({first.value + end})) ++end;
        heap_.files().view().try_read_pages(page, pages.subspan(i * page_bytes, (end - i) * page_bytes), Via::cache);
        for (; i < end; ++i) heal({first.value + i}, pages.subspan(i * page_bytes, page_bytes), checksums[i]);
    }
}

void SavedPages::heal(PageNumber page, std::span<std::byte> bytes, std::uint64_t checksum) const {
    if (store::page_checksum(bytes, page, header().heap) == checksum) return;
    const PageFile* const second = other();
    if (second != nullptr) {
        second->try_read_pages(page, bytes, Via::cache);
        if (store::page_checksum(bytes, page, header().heap) == checksum) return;
    }
    if (const auto refusal = heap_.files().view().try_read_pages(page, bytes, Via::cache)) throw Error(*refusal);
    heap_.files().view().throw_corrupt_page(
        page, second == nullptr ? "its checksum differs and there is no second copy" : "its checksum differs in both copies");
}

}  // namespace taiyen::transfer
