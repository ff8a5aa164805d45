#pragma once
/// PageSet: a set of page numbers, walked in ascending order at the cost of its members, not of the range they lie in.
///
/// A bitmap with summaries above it (a bit for each word below that is not zero). Adding and removing allocate nothing; a signal handler may do both.
/// Thread rule: external lock; `contains` may be asked beside a change and then tells the state before or after it.

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include <taiyen/base/units.hpp>

#include "change/side_memory.hpp"

namespace taiyen::change {

class PageSet {
public:
    using Page = std::uint64_t;
    /// Room for pages below `capacity`; usable below what `grow` said. Throws: HeapFull{address_space}, std::bad_alloc.
    explicit PageSet(Page capacity) : words_(round_up(capacity, 64) / 8), limit_(round_up(capacity, 64)) {
        std::uint64_t count = limit_ / 64;
        for (auto& level : summaries_) {
            count = (count + 63) / 64;
            level.resize(count);
        }
    }
    /// Throws: HeapFull{address_space}.
    void grow(Page pages) {
        words_.grow(round_up(pages, 64) / 8);
        usable_ = round_up(pages, 64);
    }

    bool contains(Page page) const noexcept {
        return page < usable_ && (std::atomic_ref(word(page / 64)).load(std::memory_order_acquire) >> page % 64 & 1U) != 0;
    }
    std::uint64_t count() const noexcept { return count_; }

    void add(Page first, Page end) noexcept {
        for_each_word(first, end, [this](std::uint64_t index, std::uint64_t mask) {
            const std::uint64_t before = word(index);
            count_ += static_cast<std::uint64_t>(std::popcount(mask & ~before));
            std::atomic_ref(word(index)).store(before | mask, std::memory_order_release);
            for (auto& level : summaries_) {
                level[index / 64] |= std::uint64_t{1} << index % 64;
                index /= 64;
            }
        });
    }
    void remove(Page first, Page end) noexcept {
        for_each_word(first, end, [this](std::uint64_t index, std::uint64_t mask) {
            const std::uint64_t before = word(index);
            count_ -= static_cast<std::uint64_t>(std::popcount(mask & before));
            std::atomic_ref(word(index)).store(before & ~mask, std::memory_order_release);
            bool empty = (before & ~mask) == 0;
            for (auto& level : summaries_) {
                if (!empty) break;
                level[index / 64] &= ~(std::uint64_t{1} << index % 64);
                empty = level[index / 64] == 0;
                index /= 64;
            }
        });
    }

    /// The first member not below `page`.
    std::optional<Page> next(Page page) const noexcept {
        if (page >= usable_) return std::nullopt;
        if (const std::uint64_t rest = word(page / 64) >> page % 64; rest != 0) return page + static_cast<Page>(std::countr_zero(rest));
        // Up to the first summary with a later member, then down again.
        std::uint64_t index = page / 64;
        for (std::size_t height = 0; height < summaries_.size(); ++height) {
            const auto& level = summaries_[height];
            ++index;
            const bool top = height + 1 == summaries_.size();
            for (std::uint64_t at = index / 64; at < level.size(); ++at) {
                const std::uint64_t bits = at == index / 64 ? level[at] >> index % 64 << index % 64 : level[at];
                if (bits != 0) return descend(height, at * 64 + static_cast<std::uint64_t>(std::countr_zero(bits)));
                if (!top) break;
            }
            index /= 64;
        }
        return std::nullopt;
    }
    /// The first page not below `page` that is no member; at most `end`.
    Page next_absent(Page page, Page end) const noexcept {
        while (page < end && page < usable_) {
            const std::uint64_t gaps = ~word(page / 64) >> page % 64;
            if (gaps != 0) return std::min(end, page + static_cast<Page>(std::countr_zero(gaps)));
            page = (page / 64 + 1) * 64;
        }
        return std::min(page, end);
    }
    /// How many members, up to `limit`, lie directly before `page`.
    std::uint64_t run_before(Page page, std::uint64_t limit) const noexcept {
        std::uint64_t length = 0;
        while (length < limit && page > length) {
            const Page last = page - length - 1;
            const auto ones = static_cast<std::uint64_t>(std::countl_one(word(last / 64) << (63 - last % 64)));
            length += ones;
            if (ones < last % 64 + 1) break;
        }
        return std::min(length, limit);
    }
    /// Calls `visit(first, end)` for each maximal run of members; it may remove what it is shown.
    template <class F>
    void for_each_run(F&& visit) const {
        for (auto first = next(0); first;) {
            const Page end = next_absent(*first, limit_);
            visit(*first, end);
            first = next(end);
        }
    }

private:
    std::uint64_t& word(std::uint64_t index) const noexcept { return reinterpret_cast<std::uint64_t*>(words_.data())[index]; }
    template <class F>
    void for_each_word(Page first, Page end, F&& visit) noexcept {
        for (Page at = first; at < end;) {
            const Page next_word = std::min(end, (at / 64 + 1) * 64);
            visit(at / 64, ~std::uint64_t{0} >> (64 - (next_word - at)) << at % 64);
            at = next_word;
        }
    }
    std::optional<Page> descend(std::size_t height, std::uint64_t index) const noexcept {
        while (height-- > 0) index = index * 64 + static_cast<std::uint64_t>(std::countr_zero(summaries_[height][index]));
        return index * 64 + static_cast<Page>(std::countr_zero(word(index)));
    }

    SideMemory words_;
    std::array<std::vector<std::uint64_t>, 3> summaries_;  ///< [0]: a bit for each word of pages
    Page limit_;
    Page usable_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace taiyen::change
