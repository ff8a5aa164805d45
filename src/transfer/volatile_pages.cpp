#include "transfer/volatile_pages.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen::transfer {

VolatilePages::VolatilePages(const VolatileHeap& heap) {
    const heap::VolatileCore* const core = heap::VolatileCore::core_of(heap);
    if (core == nullptr) heap::throw_closed();
    if (core->is_guarded())
        throw Error(errc::invalid_argument,
                    "a guarded heap doesn't travel: its blocks lie behind canaries that other heaps know nothing of; make it without guards, and "
                    "without memory tools (tell_memory_tools) where it would be guarded for them");
    core_ = core;
    auto [names, shapes] = [&] {
        const auto lock = core->lock_engine();
        return std::pair(core_->engine().roots(), core_->engine().shapes());
    }();
    names_ = names.size();
    places_.emplace(core->blocks(), std::move(names), shapes, core->ranges().durable_bytes, path_);
    survey_.emplace(places_->span(), core->ranges().durable_bytes);
    survey_->visit([&](const heap::PagesInUse& pages) {
        if (pages.use == heap::PageUse::metadata || pages.use == heap::PageUse::directory) made_.push_back({pages.first, pages.count});
        return true;
    });
}

HeapShape VolatilePages::shape() const {
    const heap::CoreRanges& ranges = core_->ranges();
    return {HeapKind::archive,
            ranges.durable,
            core_->links() == heap::Links::distances,
            ranges.durable_bytes,
            places_->engine().extent(),
            {},
            path_,
            true};
}

HeapView VolatilePages::view() const {
    const heap::CoreRanges& ranges = core_->ranges();
    return {places_->engine(), reinterpret_cast<const std::byte*>(ranges.durable), ranges.durable, ranges.durable_bytes, path_, places_->span()};
}

const std::byte* VolatilePages::page_at(PageNumber page) const {
    const auto behind =
        std::upper_bound(made_.begin(), made_.end(), page.value, [](std::uint64_t number, const Made& made) { return number < made.first; });
    const bool is_made = behind != made_.begin() && page.value - std::prev(behind)->first < std::prev(behind)->count;
    return (is_made ? places_->span() : reinterpret_cast<const std::byte*>(core_->ranges().durable)) + page.value * page_bytes;
}

std::uint64_t VolatilePages::checksum_of(PageNumber page) { return is_zero({page_at(page), page_bytes}) ? 0 : 1; }

void VolatilePages::read(PageNumber first, std::span<std::byte> pages, std::span<const std::uint64_t> checksums) const {
    for (std::size_t i = 0; i < checksums.size(); ++i) std::memcpy(pages.data() + i * page_bytes, page_at({first.value + i}), page_bytes);
}

}  // namespace taiyen::transfer
