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
    if (mapped != 0) vm::hide(span, mapped);
}

FirstTouch::~FirstTouch() { runs_in_process.fetch_sub(runs_, std::memory_order_relaxed); }

FirstTouch::Touch FirstTouch::touch(PageNumber page) {
    const std::lock_guard lock(mutex_);
    if (page.value >= pages_) return Touch::outside;
    if (sees(page.value)) return Touch::was_open;
    const std::uint64_t granule = page.value / granule_pages;
    if (is_open(granule)) {
        open(page.value, page.value + 1, page);
    } else {
        const Range window = window_for(granule);
        open(window.first * granule_pages, std::min(pages_, window.end * granule_pages), page);
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
    if (above != open_.end()) return {granule, static_cast<std::uint64_t>(above - open_.begin())};
    std::uint64_t first = granule;
    while (first > 0 && !is_open(first - 1)) --first;
    return {first, granule + 1};
}

FirstTouch::Range FirstTouch::window_for(std::uint64_t granule) const noexcept {
    const std::uint64_t runs = runs_in_process.load(std::memory_order_relaxed);
    if (runs >= runs_max_) return up_to_next_open(granule);
    std::uint64_t before = 0;
    while (before < window_max && before < granule && is_open(granule - before - 1)) ++before;
    const std::uint64_t wanted = std::max<std::uint64_t>(before, runs < runs_max_ / 2 ? 1 : narrow_window);
    std::uint64_t end = granule + 1;
    while (end < std::min<std::uint64_t>(granule + wanted, open_.size()) && !is_open(end)) ++end;
    return {granule, end};
}

bool FirstTouch::show(std::uint64_t first, std::uint64_t end) {
    // What of these granules isn't shown counts as lost from now on: nothing may throw once it is shown.
    std::vector<std::uint64_t> lost;
    lost.reserve(lost_.size() + 2 * granule_pages);
    const std::uint64_t outer_first = is_open(first / granule_pages) ? first : round_down(first, granule_pages);
    const std::uint64_t outer_end = is_open((end - 1) / granule_pages) ? end : std::min(pages_, round_up(end, granule_pages));
    for (const std::uint64_t page : lost_)
        if (page < outer_first) lost.push_back(page);
    for (std::uint64_t page = outer_first; page < first; ++page) lost.push_back(page);
    for (std::uint64_t page = end; page < outer_end; ++page) lost.push_back(page);
    for (const std::uint64_t page : lost_)
        if (page >= outer_end) lost.push_back(page);
    if (!vm::try_protect(span_ + offset_of(PageNumber{first}).value, (end - first) * page_bytes, is_writable_())) return false;
    const std::uint64_t joined = (first > 0 && sees(first - 1) ? 1U : 0U) + (end < pages_ && sees(end) ? 1U : 0U);
    runs_ = runs_ + 1 - joined;
    runs_in_process.fetch_add(1 - joined, std::memory_order_relaxed);
    for (std::uint64_t granule = first / granule_pages; granule <= (end - 1) / granule_pages; ++granule) open_[granule] = true;
    lost_.swap(lost);
    return true;
}

void FirstTouch::open(std::uint64_t first, std::uint64_t end, PageNumber touched) {
    const std::vector<LostPage> lost = prove_({first}, end - first);
    std::uint64_t at = first;
    for (const LostPage& page : lost) {
        if (at < page.page.value) (void)show(at, page.page.value);
        at = page.page.value + 1;
    }
    if (at < end) (void)show(at, end);
    if (sees(touched.value)) return;
    for (const LostPage& page : lost)
        if (page.page == touched) throw Error(page.why);
    if (!open_joined(touched.value)) throw HeapFull(page_bytes, 0, HeapFull::Cause::address_space);
}

bool FirstTouch::open_joined(std::uint64_t page) {
    const auto opens = [&](std::uint64_t first, std::uint64_t end) { return prove_({first}, end - first).empty() && show(first, end); };
    const std::uint64_t end = end_of_run(page, pages_);
    if (end < pages_ && opens(page, end)) return true;
    std::uint64_t first = page;
    while (first > 0 && !sees(first - 1)) --first;
    return first > 0 && opens(first, page + 1);
}

std::vector<vm::PageRun> FirstTouch::visible(const std::vector<vm::PageRun>& runs) {
    const std::lock_guard lock(mutex_);
    std::vector<vm::PageRun> found;
    for (const vm::PageRun& run : runs) {
        const std::uint64_t last = std::min(run.first + run.count, pages_);
        for (std::uint64_t page = run.first; page < last;) {
            const std::uint64_t end = end_of_run(page, last);
            if (sees(page)) found.push_back({page, end - page});
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
    if (const std::uint64_t last = pages_ / granule_pages; pages_ % granule_pages != 0 && !is_open(last)) {
        // All of it is lost; what is new there is not.
        lost_.reserve(lost_.size() + granule_pages);
        for (std::uint64_t page = last * granule_pages; page < pages_; ++page) lost_.push_back(page);
        open_[last] = true;
    }
    open_.resize((mapped / page_bytes + granule_pages - 1) / granule_pages, true);
    pages_ = mapped / page_bytes;
}

}  // namespace taiyen::store
