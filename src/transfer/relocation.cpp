#include <taiyen/transfer/relocation.hpp>

#include <algorithm>
#include <limits>

#include <taiyen/base/error.hpp>

namespace taiyen {
namespace {

constexpr std::uintptr_t address_max = std::numeric_limits<std::uintptr_t>::max();

}  // namespace

Relocation::Relocation(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.from < b.from; });
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
        const Range& range = ranges_[i];
        if (range.bytes == 0 || range.bytes > address_max - std::max(range.from, range.to))
            throw Error(errc::invalid_argument, "a range that is moved must not be empty, nor go beyond the end of memory");
        if (i != 0 && ranges_[i - 1].from + ranges_[i - 1].bytes > range.from)
            throw Error(errc::invalid_argument, "ranges that are moved must not overlap: nobody could tell where their common bytes went");
    }
}

std::uintptr_t Relocation::map(std::uintptr_t address) const noexcept {
    const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), address, [](std::uintptr_t a, const Range& r) { return a < r.from; });
    if (behind == ranges_.begin()) return address;
    const Range& range = *std::prev(behind);
    return address - range.from <= range.bytes ? range.to + (address - range.from) : address;
}

std::uintptr_t Relocation::map_end(std::uintptr_t address) const noexcept {
    const auto behind = std::lower_bound(ranges_.begin(), ranges_.end(), address, [](const Range& r, std::uintptr_t a) { return r.from < a; });
    if (behind != ranges_.begin()) {
        const Range& range = *std::prev(behind);
        if (address - range.from <= range.bytes) return range.to + (address - range.from);
    }
    return map(address);
}

bool Relocation::moves(std::uintptr_t address) const noexcept {
    const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), address, [](std::uintptr_t a, const Range& r) { return a < r.from; });
    return behind != ranges_.begin() && address - std::prev(behind)->from < std::prev(behind)->bytes;
}

}  // namespace taiyen
