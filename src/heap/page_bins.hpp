#pragma once
/// Pages in lists by what they can give, as far as is known: hints, checked by who takes a page out of one.
///
/// A page is in at most one list. Bins 0 … page_granules hold pages of small blocks by their longest free run, those behind them pages of packed blocks with a free slot, by class.
/// Complexity: each call is constant; memory comes in chunks for the pages that are known, and its lack makes a page unknown, never an error.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/geometry.hpp"
#include "heap/packed_page.hpp"

namespace taiyen::heap {

class PageBins {
public:
    static constexpr unsigned run_bins = layout::page_granules + 1;
    static constexpr unsigned bin_count = run_bins + packed_class_count;

    /// What is known about a page; all zero: nothing.
    struct Known {
        Page next;
        Page previous;
        std::uint16_t bin;      ///< 0: in no list; else its bin + 1
        std::uint16_t cursors;  ///< classes whose cursor is here
    };

    /// For pages before `page_end`. Throws: std::bad_alloc.
    explicit PageBins(Page page_end);
    ~PageBins();
    PageBins(const PageBins&) = delete;
    PageBins& operator=(const PageBins&) = delete;

    Known* known(Page page) const { return chunks_[page / chunk_pages] == nullptr ? nullptr : chunks_[page / chunk_pages] + page % chunk_pages; }
    /// Null: out of memory.
    Known* make_known(Page page) noexcept;
    void link(Known& known, Page page, unsigned bin) noexcept;
    void unfile(Known& known, Page page) noexcept;
    /// Forgets all about pages [first, end).
    void forget(Page first, Page end) noexcept;

    /// First page of the bin, 0: none.
    Page first(unsigned bin) const { return first_[bin]; }
    Page next(Page page) const { return known(page)->next; }
    std::uint32_t pages(unsigned bin) const { return pages_[bin]; }
    /// First bin in [from, run_bins) that is not empty; run_bins if none.
    unsigned filled_run_bin(unsigned from) const {
        for (unsigned word = from / 64; word < filled_.size(); ++word) {
            const std::uint64_t rest = word == from / 64 ? filled_[word] >> (from % 64) << (from % 64) : filled_[word];
            if (rest != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(rest));
        }
        return run_bins;
    }
    /// Last bin that is not empty, of those for runs; 0 if none.
    unsigned longest_run() const;

private:
    static constexpr Page chunk_pages = 256;

    std::array<Page, bin_count> first_{};
    std::array<std::uint64_t, (run_bins + 63) / 64> filled_{};  ///< bit b: bin b is not empty
    std::array<std::uint32_t, bin_count> pages_{};
    std::size_t chunk_count_ = 0;
    Known** chunks_ = nullptr;
};

}  // namespace taiyen::heap
