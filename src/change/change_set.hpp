#pragma once
/// ChangeSet: what one scope changed in a heap: byte ranges with the bytes before and after, and a few logical entries that would be large as bytes.
///
/// Its memory is its serialised form (FORMAT.md): one run of 8-byte aligned entries that can be walked from both ends without allocating.
/// (I1) Entries of one capture don't overlap; sets that were appended do, so a set is applied forward in order and backward in reverse order.
/// (I2) A view that `checked` returned stays within its bytes and within the heap's capacity, whatever the bytes were.
/// Thread rule: values.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <taiyen/base/units.hpp>

#include "change/byte_buffer.hpp"
#include "change/change_set_layout.hpp"

namespace taiyen::change {

enum class Direction { backward /**< undo, rollback: to the bytes before */, forward /**< redo, replay: to the bytes after */ };

enum class EntryKind : std::uint8_t {
    bytes = 1,        ///< a range of changed bytes
    zeroed_run = 2,   ///< free pages that were given up: zero afterwards; what they held is of no interest to anybody
    pages_moved = 3,  ///< a multi-page block was copied elsewhere: the bytes after are those of the source
    procedure = 4     ///< a registered procedure was called
};

/// One entry, a view into its set.
struct Entry {
    EntryKind kind = EntryKind::bytes;
    HeapOffset where{};                 ///< first changed byte; procedure: unused
    ByteCount length = 0;               ///< changed bytes; procedure: unused
    std::span<const std::byte> before;  ///< bytes, pages_moved; empty: all zero
    std::span<const std::byte> after;   ///< bytes; empty: all zero
    HeapOffset source{};                ///< pages_moved
    std::string_view name;              ///< procedure
    std::span<const std::byte> arguments;
    std::uint64_t digest = 0;  ///< procedure: of the pages it touched, after the call
};

class ChangeSetView {
public:
    ChangeSetView() = default;
    /// Nothing: the bytes are no change set of a heap of that capacity. Complexity: linear in entries.
    static std::optional<ChangeSetView> checked(std::span<const std::byte> bytes, ByteCount capacity);

    bool empty() const { return bytes_.empty(); }
    std::span<const std::byte> bytes() const { return bytes_; }

    /// Calls `visit(const Entry&)` for each entry, in the order in which it is to be applied. Allocates nothing.
    template <class F>
    void for_each(Direction direction, F&& visit) const {
        if (direction == Direction::forward) {
            for (std::size_t at = 0; at < bytes_.size();) {
                const std::size_t here = at;
                at = behind(here);
                visit(entry_at(here));
            }
        } else {
            for (std::size_t end = bytes_.size(); end > 0;) {
                end -= size_before(end);
                visit(entry_at(end));
            }
        }
    }

private:
    friend class ChangeSet;
    explicit ChangeSetView(std::span<const std::byte> bytes) : bytes_(bytes) {}
    layout::EntryHead head_at(std::size_t at) const {
        layout::EntryHead head;
        std::memcpy(&head, bytes_.data() + at, sizeof head);
        return head;
    }
    static EntryKind kind_of(const layout::EntryHead& head) { return static_cast<EntryKind>(head.where_and_kind >> layout::kind_shift & 0xffU); }
    static std::size_t before_bytes(const layout::EntryHead& head) { return (head.where_and_kind & layout::before_zero) != 0 ? 0 : head.length; }
    static std::size_t after_bytes(const layout::EntryHead& head) { return (head.where_and_kind & layout::after_zero) != 0 ? 0 : head.length; }

    // Nearly all entries are ranges of bytes, and every commit walks them: that much is inline.
    Entry entry_at(std::size_t at) const {
        const layout::EntryHead head = head_at(at);
        if (kind_of(head) != EntryKind::bytes) return other_entry_at(at);
        const std::byte* const payload = bytes_.data() + at + sizeof head;
        Entry entry;
        entry.kind = EntryKind::bytes;
        entry.where = {head.where_and_kind & layout::where_mask};
        entry.length = head.length;
        entry.before = {payload, before_bytes(head)};
        entry.after = {payload + before_bytes(head), after_bytes(head)};
        return entry;
    }
    /// Where the next one begins.
    std::size_t behind(std::size_t at) const {
        const layout::EntryHead head = head_at(at);
        const std::size_t payload = kind_of(head) == EntryKind::bytes ? before_bytes(head) + after_bytes(head) : other_payload_bytes(at);
        return at + sizeof head + round_up(payload, 8) + layout::trailer_bytes;
    }
    Entry other_entry_at(std::size_t at) const;
    std::size_t other_payload_bytes(std::size_t at) const;
    std::size_t size_before(std::size_t end) const;

    std::span<const std::byte> bytes_;
};

/// Every `add_…` throws std::bad_alloc and then has changed nothing.
class ChangeSet {
public:
    Serial serial{};

    /// `before` and `after` have the same length. A side that is zero throughout takes no room.
    void add_bytes(HeapOffset where, std::span<const std::byte> before, std::span<const std::byte> after);
    void add_zeroed_run(HeapOffset where, ByteCount length);
    /// `before`: what lay at the target.
    void add_pages_moved(HeapOffset source, HeapOffset target, std::span<const std::byte> before);
    void add_procedure(std::string_view name, std::span<const std::byte> arguments, std::uint64_t digest);
    /// What came later than everything in this set.
    void append(const ChangeSetView& later);

    friend void swap(ChangeSet& left, ChangeSet& right) noexcept {
        std::swap(left.serial, right.serial);
        swap(left.bytes_, right.bytes_);
    }
    void clear() noexcept { bytes_.truncate(0); }
    /// Drops what was added since `size()` was `size`.
    void truncate(ByteCount size) noexcept { bytes_.truncate(size); }
    bool empty() const { return bytes_.empty(); }
    /// Bytes of the serialised form.
    ByteCount size() const { return bytes_.size(); }
    ChangeSetView view() const { return ChangeSetView(bytes_.bytes()); }
    /// What was added since `size()` was `size`.
    ChangeSetView view_since(ByteCount size) const { return ChangeSetView(bytes_.bytes().subspan(size)); }
    operator ChangeSetView() const { return view(); }  // NOLINT: a set is a view of itself

    template <class F>
    void for_each(Direction direction, F&& visit) const {
        view().for_each(direction, static_cast<F&&>(visit));
    }

private:
    std::byte* append_entry(std::uint64_t kind_and_flags, std::uint64_t where, std::uint64_t length, ByteCount payload);
    ByteBuffer bytes_;
};

}  // namespace taiyen::change
