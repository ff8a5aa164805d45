#pragma once
/// Transactions as the log holds them, made by hand: records and groups of one.

#include <cstring>
#include <vector>

#include "change/redo.hpp"
#include "log/group.hpp"
#include "txn/record_layout.hpp"

namespace taiyen::txn::test {

inline std::vector<std::byte> record_of(const change::ChangeSet& changes, layout::RecordHead head) {
    change::ByteBuffer redo;
    change::append_redo(changes, redo);
    head.redo_bytes = static_cast<std::uint32_t>(redo.bytes().size());
    std::vector<std::byte> bytes(sizeof head);
    std::memcpy(bytes.data(), &head, sizeof head);
    bytes.insert(bytes.end(), redo.bytes().begin(), redo.bytes().end());
    return bytes;
}

inline log::Record group_of(const std::vector<std::byte>& record, std::uint64_t serial) {
    const log::layout::GroupHead group{1, 0};
    const log::layout::GroupRecordHead head{static_cast<std::uint32_t>(record.size()), 0};
    log::Record result;
    result.kind = log::record_transactions;
    result.number = serial;
    result.payload.resize(sizeof group + sizeof head + round_up(record.size(), 8));
    std::memcpy(result.payload.data(), &group, sizeof group);
    std::memcpy(result.payload.data() + sizeof group, &head, sizeof head);
    std::memcpy(result.payload.data() + sizeof group + sizeof head, record.data(), record.size());
    return result;
}

}  // namespace taiyen::txn::test
