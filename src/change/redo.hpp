#pragma once
/// Redo: a change set's compact form for the log. Forward only, a few bytes per entry, and only bytes that really changed.
///
/// (D1) Applied forward to the bytes that were there before, it gives what the set gives. Equal bytes inside a set's entry (it merges over short gaps) aren't stored.
/// (D2) A view that `checked` returned never reads outside its bytes, and its entries lie within the heap's capacity, whatever the bytes were.
/// Format: FORMAT.md, "Redo". Thread rule: values.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <taiyen/base/units.hpp>

#include "change/byte_buffer.hpp"
#include "change/change_set.hpp"
#include "change/redo_layout.hpp"

namespace taiyen::change {

namespace layout {
enum class RedoKind : std::uint8_t;
}

/// Adds a redo to `out`, entry by entry. An object that added nothing has added an empty redo.
class RedoWriter {
public:
    explicit RedoWriter(ByteBuffer& out) : out_(out) {}
    /// Throws: std::bad_alloc; part of the entry may have been added then.
    void add(const Entry& entry);

private:
    void add_bytes(const Entry& entry);
    void put(layout::RedoKind kind, std::uint64_t where, std::uint64_t length, std::span<const std::byte> bytes);
    void put(std::uint64_t number);

    ByteBuffer& out_;
    std::uint64_t end_ = 0;  ///< of the entry before
};

/// Adds the redo of all entries to `out`. An empty set adds nothing. Two redos behind each other are none: each counts offsets from zero.
/// Throws: std::bad_alloc; then `out` is as it was.
void append_redo(const ChangeSetView& changes, ByteBuffer& out);

class RedoView {
public:
    RedoView() = default;
    /// Nothing: the bytes are no redo of a heap of that capacity. Complexity: linear in entries.
    static std::optional<RedoView> checked(std::span<const std::byte> bytes, ByteCount capacity);

    /// Calls `visit(const Entry&)` for each entry, in the order in which it is to be applied. `before` is always empty. Allocates nothing.
    template <class F>
    void for_each(F&& visit) const {
        Cursor cursor(bytes_);
        for (Entry entry; next(cursor, entry);) visit(static_cast<const Entry&>(entry));
    }

    /// `checked` and `for_each` in one pass: entries are visited up to the first one that isn't right. False: there is one. For who can take back what was done until then.
    template <class F>
    static bool check_and_visit(std::span<const std::byte> bytes, ByteCount capacity, F&& visit) {
        Cursor cursor(bytes);
        for (Entry entry; next(cursor, entry);) {
            if (!lies_within(entry, capacity)) return false;
            visit(static_cast<const Entry&>(entry));
        }
        return !cursor.failed;
    }

private:
    struct Cursor {
        explicit Cursor(std::span<const std::byte> bytes) : at(bytes.data()), stop(bytes.data() + bytes.size()) {}
        const std::byte* at;
        const std::byte* stop;
        std::uint64_t end = 0;  ///< of the entry before: offsets count from here
        bool failed = false;
    };
    explicit RedoView(std::span<const std::byte> bytes) : bytes_(bytes) {}

    static bool lies_within(const Entry& entry, ByteCount capacity) {
        const auto inside = [capacity](HeapOffset where, std::uint64_t length) {
            return where.value <= capacity && length <= capacity - where.value;
        };
        return inside(entry.where, entry.length) &&
               (entry.kind != EntryKind::pages_moved || inside(entry.source, entry.length));  // a procedure has neither
    }

    /// The entry at the cursor; false: that was all, or (`failed`) the bytes aren't right.
    static bool next(Cursor& cursor, Entry& entry) {
        if (cursor.at == cursor.stop || cursor.failed) return false;
        if (cursor.stop - cursor.at >= 16 && next_bytes(cursor, entry)) return true;
        return next_of_any_kind(cursor, entry);
    }

    /// Nearly every entry: bytes, and both numbers of eight bytes at most, which are taken as words. False: something else, and the cursor is where it was. Requires: 16 bytes.
    static bool next_bytes(Cursor& cursor, Entry& entry) {
        const std::byte* at = cursor.at;
        std::uint64_t tag = 0;
        std::uint64_t where = 0;
        if (!take_number(at, tag) || !take_number(at, where)) return false;
        const std::uint64_t length = tag >> layout::redo_kind_bits;
        const bool are_bytes = (tag & ((1U << layout::redo_kind_bits) - 1)) == static_cast<std::uint64_t>(layout::RedoKind::bytes);
        if (!are_bytes || length == 0 || length > static_cast<std::uint64_t>(cursor.stop - at)) return false;
        entry = Entry{};
        entry.where = {cursor.end + layout::unzigzag(where)};
        entry.length = length;
        entry.after = {at, static_cast<std::size_t>(length)};
        cursor.end = entry.where.value + length;
        cursor.at = at + length;
        return true;
    }
    /// A varint of at most eight bytes, at the front of at least eight.
    static bool take_number(const std::byte*& at, std::uint64_t& number) {
        std::uint64_t word = 0;
        std::memcpy(&word, at, sizeof word);
        const std::uint64_t ends = ~word & 0x8080'8080'8080'8080U;
        if (ends == 0) return false;
        const std::uint64_t last = ends & (0 - ends);  // the top bit of the last byte
        word &= (last | (last - 1)) & 0x7f7f'7f7f'7f7f'7f7fU;
        // Seven bits of each byte move together: pairs, fours, all eight.
        word = (word & 0x007f'007f'007f'007fU) | ((word & 0x7f00'7f00'7f00'7f00U) >> 1U);
        word = (word & 0x0000'3fff'0000'3fffU) | ((word & 0x3fff'0000'3fff'0000U) >> 2U);
        number = (word & 0x0fff'ffffU) | ((word & 0x0fff'ffff'0000'0000U) >> 4U);
        at += (static_cast<unsigned>(std::countr_zero(last)) + 1) / 8;
        return true;
    }
    static bool next_of_any_kind(Cursor& cursor, Entry& entry);

    std::span<const std::byte> bytes_;
};

}  // namespace taiyen::change
