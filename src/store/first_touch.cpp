#include "store/first_touch.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "vm/address_space.hpp"

namespace taiyen::store {
namespace {

constexpr std::uint64_t window_max = 16;
constexpr std::uint64_t narrow_window = 8;

/// Runs of visible pages of all heaps: they share the process's mappings.
constinit std::atomic<std::uint64_t> runs_in_process{0};

}  // namespace

FirstTouch::FirstTouch(std::byte* span, ByteCount mapped, Prove prove, IsWritable is_writable)
    : span_(span), prove_(std::move(prove)), is_writable_(std::move(is_writable)), runs_max_(std::max<std::uint64_t>(vm::mappings_max() / 16, 16)),
      open_((mapped / page_bytes + granule_pages - 1) / granule_pages), pages_(mapped / page_bytes) {
    if (mapped != 0) {
        vm::hide(span, mapped);
    }
}

FirstTouch::~FirstTouch() { runs_in_process.fetch_sub(runs_, std::memory_order_relaxed); }

FirstTouch::Touch FirstTouch::touch(PageNumber page) {
    const std::lock_guard lock(mutex_);
    if (page.value >= pages_) {
        return Touch::outside;
    }
    const std::uint64_t granule = page.value / granule_pages;
    if (sees(page.value)) {
        return Touch::was_open;
    }
    if (is_open(granule)) {
        open_lost(page);
        return Touch::opened;
    }
    try {
        open(window_for(granule), page);
    } catch (const HeapFull&) {
        open(up_to_next_open(granule), page);
    }
    return Touch::opened;
}

bool FirstTouch::is_visible(PageNumber page) noexcept {
    const std::lock_guard lock(mutex_);
    return page.value < pages_ && sees(page.value);
}

bool FirstTouch::sees(std::uint64_t page) const noexcept {
    return is_open(page / granule_pages) && !std::binary_search(lost_.begin(), lost_.end(), page);
}

std::uint64_t FirstTouch::end_of_run(std::uint64_t page, std::uint64_t end) const noexcept {
    const bool visible = sees(page);
    while (page < end && sees(page) == visible) {
        // A hidden granule is hidden as a whole; of an open one, what lies before its next lost page is visible.
        std::uint64_t next = round_down(page, granule_pages) + granule_pages;
        if (is_open(page / granule_pages)) {
            const auto lost = std::lower_bound(lost_.begin(), lost_.end(), page);
            next = lost == lost_.end() ? next : std::clamp(*lost, page + 1, next);
        }
        page = std::min(end, next);
    }
    return page;
}

FirstTouch::Range FirstTouch::up_to_next_open(std::uint64_t granule) const noexcept {
    const auto above = std::find(open_.begin() + static_cast<std::ptrdiff_t>(granule), open_.end(), true);
    if (above != open_.end()) {
        return {granule, static_cast<std::uint64_t>(above - open_.begin())};
    }
    std::uint64_t first = granule;
    while (first > 0 && !is_open(first - 1)) {
        --first;
    }
    return {first, granule + 1};
}

FirstTouch::Range FirstTouch::window_for(std::uint64_t granule) const noexcept {
    const std::uint64_t runs = runs_in_process.load(std::memory_order_relaxed);
    if (runs >= runs_max_) {
        return up_to_next_open(granule);
    }
    std::uint64_t before = 0;
    while (before < window_max && before < granule && is_open(granule - before - 1)) {
        ++before;
    }
    const std::uint64_t wanted = std::max<std::uint64_t>(before, runs < runs_max_ / 2 ? 1 : narrow_window);
    std::uint64_t end = granule + 1;
    while (end < std::min<std::uint64_t>(granule + wanted, open_.size()) && !is_open(end)) {
        ++end;
    }
    return {granule, end};
}

bool FirstTouch::show(std::uint64_t first, std::uint64_t end) noexcept {
    if (!vm::try_protect(span_ + offset_of(PageNumber{first}).value, (end - first) * page_bytes, is_writable_())) {
        return false;
    }
    const std::uint64_t joined = (first > 0 && sees(first - 1) ? 1U : 0U) + (end < pages_ && sees(end) ? 1U : 0U);
    runs_ = runs_ + 1 - joined;
    runs_in_process.fetch_add(1 - joined, std::memory_order_relaxed);
    return true;
}

void FirstTouch::open(Range hidden, PageNumber touched) {
    const std::uint64_t first = hidden.first * granule_pages;
    const std::uint64_t end = std::min(pages_, hidden.end * granule_pages);
    const std::vector<LostPage> lost = prove_({first}, end - first);
    std::vector<std::uint64_t> stay;
    if (lost.empty()) {
        if (!show(first, end)) {
            throw HeapFull((end - first) * page_bytes, 0, HeapFull::Cause::address_space);
        }
    } else {
        // Nothing may throw once a part of it is shown.
        stay.reserve(end - first);
        lost_.reserve(lost_.size() + (end - first));
        std::uint64_t at = first;
        const auto show_up_to = [&](std::uint64_t last) {
            const bool shown = at == last || show(at, last);
            for (; at < last; ++at) {
                if (!shown) {
                    stay.push_back(at);
                }
            }
        };
        for (const LostPage& page : lost) {
            show_up_to(page.page.value);
            stay.push_back(at++);
        }
        show_up_to(end);
    }
    std::fill(open_.begin() + static_cast<std::ptrdiff_t>(hidden.first), open_.begin() + static_cast<std::ptrdiff_t>(hidden.end), true);
    lost_.insert(std::upper_bound(lost_.begin(), lost_.end(), first), stay.begin(), stay.end());
    if (sees(touched.value)) {
        return;
    }
    for (const LostPage& page : lost) {
        if (page.page == touched) {
            throw Error(page.why);
        }
    }
    throw HeapFull(page_bytes, 0, HeapFull::Cause::address_space);
}

void FirstTouch::open_lost(PageNumber page) {
    if (const std::vector<LostPage> lost = prove_(page, 1); !lost.empty()) {
        throw Error(lost.front().why);
    }
    if (!show(page.value, page.value + 1)) {
        throw HeapFull(page_bytes, 0, HeapFull::Cause::address_space);
    }
    lost_.erase(std::lower_bound(lost_.begin(), lost_.end(), page.value));
}

std::vector<vm::PageRun> FirstTouch::visible(const std::vector<vm::PageRun>& runs) {
    const std::lock_guard lock(mutex_);
    std::vector<vm::PageRun> found;
    for (const vm::PageRun& run : runs) {
        const std::uint64_t last = std::min(run.first + run.count, pages_);
        for (std::uint64_t page = run.first; page < last;) {
            const std::uint64_t end = end_of_run(page, last);
            if (sees(page)) {
                found.push_back({page, end - page});
            }
            page = end;
        }
    }
    return found;
}

bool FirstTouch::protect(PageNumber first, std::uint64_t count, bool writable) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint64_t last = std::min(first.value + count, pages_);
    bool all = true;
    for (std::uint64_t page = first.value; page < last;) {
        const std::uint64_t end = end_of_run(page, last);
        all = (!sees(page) || vm::try_protect(span_ + offset_of(PageNumber{page}).value, (end - page) * page_bytes, writable)) && all;
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
