#pragma once
/// RecordWriter: makes the record of one transaction for the log (record_layout.hpp); record.hpp reads it.
///
/// Its memory is used again for the next one. Thread rule: external lock.

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "change/byte_buffer.hpp"
#include "change/change_set.hpp"
#include "change/redo.hpp"
#include "txn/record_layout.hpp"

namespace taiyen::txn {

class RecordWriter {
public:
    using Piece = std::span<const std::byte>;

    /// Another record begins, of a transaction that changes that in the annex. Throws: std::bad_alloc.
    void begin(const change::ChangeSet& annex) {
        redo_.truncate(0);
        redo_.extend(sizeof(layout::RecordHead));
        annex_redo_.truncate(0);
        needs_heap_ = false;
        has_annex_ = !annex.empty();
        if (has_annex_) change::append_redo(annex, annex_redo_);
    }
    /// To which the redo of the span is added.
    change::ByteBuffer& redo() { return redo_; }
    /// It can't be patched into pages.
    void set_needs_heap(bool needs) { needs_heap_ = needs; }
    bool needs_heap() const { return needs_heap_; }
    bool has_annex() const { return has_annex_; }
    ByteCount annex_redo_bytes() const { return annex_redo_.size(); }
    /// Of the whole record.
    ByteCount bytes() const { return redo_.size() + (has_annex_ ? sizeof annex_ + annex_redo_.size() : 0); }
    /// The whole record; `annex`: where that lies then, if it has a part of it. Until the next one begins.
    std::span<const Piece> finish(Serial serial, ByteCount extent, const store::AnnexHead& annex) {
        layout::RecordHead head{};
        head.serial = serial.value;
        head.extent = extent;
        head.flags = (needs_heap_ ? layout::record_needs_heap : 0) | (has_annex_ ? layout::record_has_annex : 0);
        head.redo_bytes = static_cast<std::uint32_t>(redo_.size() - sizeof head);
        std::memcpy(redo_.data(), &head, sizeof head);
        const Piece record = redo_.bytes();
        if (!has_annex_) {
            pieces_[0] = record;
            return std::span(pieces_).first(1);
        }
        annex_ = {annex, annex_redo_.size()};
        pieces_ = {record.first(sizeof head), std::as_bytes(std::span(&annex_, 1)), record.subspan(sizeof head), annex_redo_.bytes()};
        return pieces_;
    }
    /// Keeps no more memory than that of each.
    void shrink(ByteCount kept) noexcept {
        if (redo_.size() > kept) redo_ = change::ByteBuffer();
        if (annex_redo_.size() > kept) annex_redo_ = change::ByteBuffer();
    }

private:
    change::ByteBuffer redo_;  ///< behind room for the head
    change::ByteBuffer annex_redo_;
    layout::AnnexPart annex_{};
    std::array<Piece, 4> pieces_;
    bool needs_heap_ = false;
    bool has_annex_ = false;
};

}  // namespace taiyen::txn
