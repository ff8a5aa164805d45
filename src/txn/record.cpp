#include "txn/record.hpp"

#include <cstring>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "txn/record_layout.hpp"

namespace taiyen::txn {

std::optional<LoggedTransaction> read_record(std::span<const std::byte> bytes, Serial serial, ByteCount capacity) {
    layout::RecordHead head{};
    if (bytes.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, bytes.data(), sizeof head);
    const bool possible = head.serial == serial.value && head.extent <= capacity && head.extent % page_bytes == 0 && (head.flags & ~layout::record_flags) == 0 &&
                          head.redo_bytes == bytes.size() - sizeof head;
    if (!possible) return std::nullopt;
    const auto redo = change::RedoView::checked(bytes.subspan(sizeof head), head.extent);
    if (!redo) return std::nullopt;
    bool needs = false;
    redo->for_each([&](const change::Entry& entry) { needs = needs || needs_heap(entry.kind); });
    if (needs != ((head.flags & layout::record_needs_heap) != 0)) return std::nullopt;
    return LoggedTransaction{serial, head.extent, needs, *redo};
}

void LogWalk::require_follows(const log::Record& group) const {
    if (group.kind != log::record_transactions) throw_corrupt(group);
    if (group.number != last_.value + 1) {
        throw Error(errc::mismatch, log_, group.position,
                    "the log goes on with transaction " + std::to_string(group.number) + " where " + std::to_string(last_.value + 1) +
                        " is needed: it is not the log that goes with these files; put the right one in its place");
    }
}

void LogWalk::throw_corrupt(const log::Record& group) const {
    throw Error(errc::corrupt, log_, group.position, "the log holds a transaction that can't be one; restore the heap's files from a copy");
}

}  // namespace taiyen::txn
