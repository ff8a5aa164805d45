#pragma once
/// Change sets in tests: what one has to hold, and whether two are the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "change/change_set.hpp"
#include "change/changed_ranges.hpp"

namespace taiyen::change::test {

inline bool same_bytes(const ChangeSet& a, const ChangeSet& b) { return std::ranges::equal(a.view().bytes(), b.view().bytes()); }

/// What comparing every page whole gives: what any way of capture has to give.
inline ChangeSet difference(std::span<const std::byte> before, std::span<const std::byte> after) {
    ChangeSet set;
    for (std::uint64_t page = 0; page < before.size(); page += page_bytes)
        if (std::memcmp(before.data() + page, after.data() + page, page_bytes) != 0)
            add_changed_ranges(set, {page}, before.data() + page, after.data() + page, page_bytes);
    return set;
}

inline std::uint64_t ranges_of(const ChangeSet& set) {
    std::uint64_t count = 0;
    set.for_each(Direction::forward, [&](const Entry&) { ++count; });
    return count;
}

}  // namespace taiyen::change::test
