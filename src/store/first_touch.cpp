#include "store/first_touch.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "vm/address_space.hpp"

namespace taiyen::store {
namespace {

constexpr std::uint64_t window_max = 16;
constexpr std::uint64_t narrow_window = 8;

/// Runs of open granules of all heaps: they share the process's mappings.
constinit std::atomic<std::uint64_t> runs_in_process{0};

}  // namespace

FirstTouch::FirstTouch(std::byte* span, ByteCount mapped, Prove prove)
    : span_(span), prove_(std::move(prove)), runs_max_(std::max<std::uint64_t>(vm::mappings_max() / 16, 16)),
      open_((mapped / page_bytes + granule_pages - 1) / granule_pages), pages_(mapped / page_bytes) {
    if (mapped != 0) {
        vm::hide(span, mapped);
    }
}

FirstTouch::~FirstTouch() { runs_in_process.fetch_sub(runs_, std::memory_order_relaxed); }

FirstTouch::Touch FirstTouch::touch(PageNumber page, bool writable) {
    const std::lock_guard lock(mutex_);
    if (page.value >= pages_) {
        return Touch::outside;
    }
    const std::uint64_t granule = page.value / granule_pages;
    if (is_open(granule)) {
        return Touch::was_open;
    }
    const Range window = window_for(granule);
    try {
        open(window, writable);
    } catch (const std::exception&) {
        if (window.end - window.first == 1) {
            throw;
        }
        open({granule, granule + 1}, writable);  // a neighbour that nobody asked for
    }
    return Touch::opened;
}

FirstTouch::Range FirstTouch::window_for(std::uint64_t granule) const noexcept {
    const auto hidden_end = [&](std::uint64_t limit) {
        std::uint64_t end = granule + 1;
        while (end < std::min<std::uint64_t>(limit, open_.size()) && !is_open(end)) {
            ++end;
        }
        return end;
    };
    const std::uint64_t runs = runs_in_process.load(std::memory_order_relaxed);
    if (runs >= runs_max_) {
        // No further run: on to the next open granule, above or else below.
        if (const std::uint64_t end = hidden_end(open_.size()); end < open_.size()) {
            return {granule, end};
        }
        std::uint64_t first = granule;
        while (first > 0 && !is_open(first - 1)) {
            --first;
        }
        return {first, granule + 1};
    }
    std::uint64_t before = 0;
    while (before < window_max && before < granule && is_open(granule - before - 1)) {
        ++before;
    }
    return {granule, hidden_end(granule + std::max<std::uint64_t>(before, runs < runs_max_ / 2 ? 1 : narrow_window))};
}

void FirstTouch::open(Range hidden, bool writable) {
    const PageNumber first{hidden.first * granule_pages};
    const std::uint64_t count = std::min(pages_, hidden.end * granule_pages) - first.value;
    prove_(first, count);
    vm::protect(span_ + offset_of(first).value, count * page_bytes, writable);
    const std::uint64_t joined =
        (hidden.first > 0 && is_open(hidden.first - 1) ? 1U : 0U) + (hidden.end < open_.size() && is_open(hidden.end) ? 1U : 0U);
    std::fill(open_.begin() + static_cast<std::ptrdiff_t>(hidden.first), open_.begin() + static_cast<std::ptrdiff_t>(hidden.end), true);
    runs_ = runs_ + 1 - joined;
    runs_in_process.fetch_add(1 - joined, std::memory_order_relaxed);
}

bool FirstTouch::protect(PageNumber first, std::uint64_t count, bool writable) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint64_t last = std::min(first.value + count, pages_);
    bool all = true;
    for (std::uint64_t page = first.value; page < last;) {
        const bool opens = is_open(page / granule_pages);
        std::uint64_t end = page;
        while (end < last && is_open(end / granule_pages) == opens) {
            end = std::min(last, round_down(end, granule_pages) + granule_pages);
        }
        all = (!opens || vm::try_protect(span_ + offset_of(PageNumber{page}).value, (end - page) * page_bytes, writable)) && all;
        page = end;
    }
    return all;
}

void FirstTouch::extended(ByteCount mapped) {
    const std::lock_guard lock(mutex_);
    open_.resize((mapped / page_bytes + granule_pages - 1) / granule_pages, true);
    pages_ = mapped / page_bytes;
}

}  // namespace taiyen::store
