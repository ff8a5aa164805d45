#pragma once
/// What the payload of a group looks like (FORMAT.md, "Groups"), and how it is read.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <taiyen/base/units.hpp>

#include "log/ring.hpp"

namespace taiyen::log {

/// `Record::kind` of a group; its number is the serial of its first record.
inline constexpr std::uint32_t record_transactions = 3;

namespace layout {

/// In front of a group's records.
struct GroupHead {
    std::uint32_t records;
    std::uint32_t zero;
};
static_assert(sizeof(GroupHead) == 8);

/// In front of each record of a group; its bytes follow, padded with zeros to a multiple of 8.
struct GroupRecordHead {
    std::uint32_t bytes;
    std::uint32_t zero;
};
static_assert(sizeof(GroupRecordHead) == 8);

inline constexpr ByteCount group_record_bytes_max = 0xffff'fff8;

}  // namespace layout

/// How many records the group holds, or -1: it is none. Complexity: linear in records.
std::int64_t count_in_group(const Record& group);

/// Calls `f(Serial, std::span<const std::byte>)` for each record in order. False: the record is no well-formed group; then `f` was not called.
template <class F>
bool for_each_in_group(const Record& group, F&& f) {
    const std::int64_t count = count_in_group(group);
    if (count < 0) return false;
    std::size_t at = sizeof(layout::GroupHead);
    for (std::uint64_t index = 0; index < static_cast<std::uint64_t>(count); ++index) {
        layout::GroupRecordHead head;
        std::memcpy(&head, group.payload.data() + at, sizeof head);
        f(Serial{group.number + index}, std::span(group.payload).subspan(at + sizeof head, head.bytes));
        at += sizeof head + round_up(head.bytes, 8);
    }
    return true;
}

}  // namespace taiyen::log
