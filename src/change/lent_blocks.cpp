#include "change/lent_blocks.hpp"

#include <algorithm>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

namespace taiyen::change {

std::uint32_t LentBlocks::begin(std::size_t spare) {
    if (fates_.size() + spare + 1 >= 0xffff'ffffU) {
        throw Error(errc::invalid_argument, "four billion scopes since the heap was opened are all that can be told apart; open it again");
    }
    if (fates_.capacity() < fates_.size() + spare + 1) {
        fates_.reserve(std::max(fates_.size() * 2, fates_.size() + spare + 64));
    }
    return begin_spare();
}

std::uint32_t LentBlocks::begin_spare() noexcept {
    TAIYEN_CHECK(fates_.size() < fates_.capacity());
    fates_.push_back(Fate::open);
    return last();
}

void LentBlocks::change(std::uint32_t first, std::uint32_t last, Fate from, Fate to) noexcept {
    for (std::uint32_t serial = std::max(first, 1U); serial <= last && serial <= fates_.size(); ++serial) {
        Fate& fate = fates_[serial - 1];
        if (fate == from) {
            fate = to;
        }
    }
}

LentBlocks::Fate LentBlocks::fate(std::uint32_t serial) const noexcept {
    return serial == 0 || serial > fates_.size() ? Fate::open : fates_[serial - 1];
}

}  // namespace taiyen::change
