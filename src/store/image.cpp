#include "store/image.hpp"

#include <algorithm>
#include <utility>

#include "heap/geometry.hpp"

namespace taiyen::store {
namespace {

vm::TrackerKind tracker_kind(PageTrackerChoice choice) {
    switch (choice) {
        case PageTrackerChoice::scan: return vm::TrackerKind::scan;
        case PageTrackerChoice::pagemap: return vm::TrackerKind::pagemap;
        case PageTrackerChoice::automatic: break;
    }
    return vm::TrackerKind::automatic;
}

}  // namespace

Image::Image(const heap::HeapCore& core, HeapFiles& files, vm::Reservation reservation, const PersistentOptions& options,
             std::function<ByteCount()> memory)
    : core_(core), files_(files), reservation_(std::move(reservation)), tracker_(tracker_kind(options.tracker)), annex_(files, *this),
      find_memory_(std::move(memory)), wanted_read_ahead_(options.read_ahead), memory_(find_memory_()) {}

std::span<std::byte> Image::live_page(PageNumber page) const {
    const Sequence sequence = sequence_of(page);
    std::byte* const base = sequence == Sequence::span ? reservation_.data() : annex_.begin();
    return {base + (offset_of(page).value - start_of(sequence).value), page_bytes};
}

void Image::map_at(std::byte* address, HeapOffset offset, ByteCount length, io::Protection protection) const {
    // What a reader gets from journal or log may go beyond the extents that the file's header knows. There, the file has nothing to copy on write, not even zeros.
    const Extents extents = files_.is_read_only() ? files_.view().header.extents() : Extents{sequence_bytes_max, sequence_bytes_max};
    for_each_piece(offset, length, [&](HeapOffset at, ByteCount part) {
        std::byte* const to = address + (at.value - offset.value);
        const ByteCount before = at.value - start_of(sequence_of(at)).value;
        const ByteCount there = std::min(part, extents.of(sequence_of(at)) - std::min(before, extents.of(sequence_of(at))));
        if (there != 0) files_.view().file().map_private(to, there, files_.view().layout.file_offset(at), protection);
        if (there < part) vm::map_anonymous(to + there, part - there);
        vm::prepare_heap_mapping(to, part);
        if (reads_alone_ && sequence_of(at) == Sequence::span) vm::set_readahead(to, part, false);
    });
}

std::vector<vm::PageRun> Image::written_span_runs(ByteCount bytes) const {
    std::vector<vm::PageRun> runs;
    tracker_.written_pages(reservation_.data(), bytes, runs);
    return first_touch_ ? first_touch_->visible(runs) : runs;  // nobody has written what is hidden
}

std::vector<vm::PageRun> Image::written_runs() const {
    std::vector<vm::PageRun> runs = written_span_runs();
    if (annex_.is_open() && annex_.mapped() != 0) {
        const std::size_t span_runs = runs.size();
        tracker_.written_pages(annex_.begin(), annex_.mapped(), runs);
        for (std::size_t i = span_runs; i < runs.size(); ++i) runs[i].first += annex_first_page.value;
    }
    return runs;
}

void Image::open_hidden(PageNumber page) const {
    if (!first_touch_ || sequence_of(page) != Sequence::span) return;
    try {
        (void)first_touch_->touch(page);
    } catch (const HeapFull& full) {
        throw full.about(files_.name());
    }
}

void Image::uncover(HeapOffset offset, ByteCount length) const {
    for (PageNumber page = page_of(offset); first_touch_ && offset_of(page).value < offset.value + length; ++page.value) open_hidden(page);
}

bool Image::is_lost(PageNumber page) const {
    try {
        open_hidden(page);
        return false;
    } catch (const Error&) {
        return true;
    }
}

void Image::choose_read_ahead() noexcept {
    const std::lock_guard lock(read_ahead_mutex_);
    const ByteCount bytes = core_.durable_extent();
    const bool alone = wanted_read_ahead_ == ReadAhead::random || (wanted_read_ahead_ == ReadAhead::automatic && bytes > memory_ / 2);
    if (alone != reads_alone_) {
        reads_alone_ = alone;  // first: what is mapped meanwhile is mapped so
        vm::set_readahead(reservation_.data(), bytes, !alone);
    }
}

void Image::look_at_memory() noexcept {
    try {
        memory_ = find_memory_();
    } catch (const std::exception&) {
        return;  // it stays as it is
    }
    choose_read_ahead();
}

void Image::will_read(HeapOffset offset, ByteCount length) const noexcept {
    if (reads_alone_ && length != 0) vm::will_read(reservation_.data() + offset.value, length);
}

void Image::will_read_metadata() const noexcept {
    const heap::Geometry geometry(files_.backing().header.capacity);
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const heap::Region& region = geometry.region(index);
        const ByteCount extent = core_.durable_extent();
        const HeapOffset first = offset_of(PageNumber{region.first});
        if (first.value < extent) will_read(first, std::min(offset_of(PageNumber{region.first_user}).value, extent) - first.value);
    }
}

}  // namespace taiyen::store
