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
    if (head.serial != serial.value || head.extent > capacity || head.extent % page_bytes != 0 || (head.flags & ~layout::record_flags) != 0)
        return std::nullopt;
    bytes = bytes.subspan(sizeof head);
    layout::AnnexPart annex{};
    const bool has_annex = (head.flags & layout::record_has_annex) != 0;
    if (has_annex) {
        if (bytes.size() < sizeof annex) return std::nullopt;
        std::memcpy(&annex, bytes.data(), sizeof annex);
        bytes = bytes.subspan(sizeof annex);
        if (!store::is_annex(annex.annex, head.extent)) return std::nullopt;
    }
    if (head.redo_bytes > bytes.size() || annex.redo_bytes != bytes.size() - head.redo_bytes) return std::nullopt;
    return LoggedTransaction{serial,
                             head.extent,
                             (head.flags & layout::record_needs_heap) != 0,
                             bytes.first(head.redo_bytes),
                             has_annex ? std::optional(annex.annex) : std::nullopt,
                             bytes.subspan(head.redo_bytes)};
}

void LogWalk::require_follows(const log::Record& group) const {
    if (group.kind != log::record_transactions) throw_corrupt(group);
    if (group.number != last_.value + 1) {
        throw Error(errc::mismatch, log_, group.file_offset,
                    "the log goes on with transaction " + std::to_string(group.number) + " where " + std::to_string(last_.value + 1) +
                        " is needed: it is not the log that goes with these files; put the right one in its place");
    }
}

void LogWalk::throw_corrupt(const log::Record& group) const {
    throw Error(errc::corrupt, log_, group.file_offset, "the log holds a transaction that can't be one; restore the heap's files from a copy");
}

}  // namespace taiyen::txn
