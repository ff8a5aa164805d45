#include "heap/page_bins.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace taiyen::heap {

PageBins::PageBins(Page page_end)
    : chunk_count_(page_end / chunk_pages + 1), chunks_(static_cast<Known**>(std::calloc(chunk_count_, sizeof(Known*)))) {
    if (chunks_ == nullptr) throw std::bad_alloc();
}

PageBins::~PageBins() {
    for (std::size_t i = 0; i < chunk_count_; ++i) std::free(chunks_[i]);
    std::free(chunks_);
}

PageBins::Known* PageBins::make_known(Page page) noexcept {
    Known*& chunk = chunks_[page / chunk_pages];
    if (chunk == nullptr) chunk = static_cast<Known*>(std::calloc(chunk_pages, sizeof(Known)));
    return chunk == nullptr ? nullptr : chunk + page % chunk_pages;
}

void PageBins::link(Known& entry, Page page, unsigned bin) noexcept {
    entry.bin = static_cast<std::uint16_t>(bin + 1);
    entry.previous = 0;
    entry.next = first_[bin];
    if (entry.next != 0) known(entry.next)->previous = page;
    first_[bin] = page;
    if (bin < run_bins) filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
    ++pages_[bin];
}

void PageBins::unfile(Known& entry, Page page) noexcept {
    if (entry.bin == 0) return;
    const unsigned bin = entry.bin - 1U;
    if (first_[bin] == page) {
        first_[bin] = entry.next;
        if (entry.next == 0 && bin < run_bins) filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
    } else {
        known(entry.previous)->next = entry.next;
    }
    if (entry.next != 0) known(entry.next)->previous = entry.previous;
    --pages_[bin];
    entry.next = entry.previous = 0;
    entry.bin = 0;
}

void PageBins::forget(Page first, Page end) noexcept {
    for (Page page = first; page < end;) {
        const Page chunk = page / chunk_pages;
        const Page stop = std::min(end, (chunk + 1) * chunk_pages);
        if (chunk < chunk_count_ && chunks_[chunk] != nullptr)
            for (; page < stop; ++page) {
                Known& entry = chunks_[chunk][page % chunk_pages];
                unfile(entry, page);
                entry.cursors = 0;
            }
        page = stop;
    }
}

unsigned PageBins::longest_run() const {
    for (unsigned word = static_cast<unsigned>(filled_.size()); word-- > 0;)
        if (filled_[word] != 0) return word * 64 + static_cast<unsigned>(std::bit_width(filled_[word])) - 1;
    return 0;
}

}  // namespace taiyen::heap
