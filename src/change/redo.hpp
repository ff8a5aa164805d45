#pragma once
/// Redo: a change set's compact form for the log. Forward only, a few bytes per entry, and only bytes that really changed.
///
/// (D1) Applied forward to the bytes that were there before, it gives what the set gives. Equal bytes inside a set's entry (it merges over short gaps) aren't stored.
/// (D2) A view that `checked` returned never reads outside its bytes, and its entries lie within the heap's capacity, whatever the bytes were.
/// Format: FORMAT.md, "Redo". Thread rule: values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <taiyen/base/units.hpp>

#include "change/byte_buffer.hpp"
#include "change/change_set.hpp"

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

    bool empty() const { return bytes_.empty(); }
    std::span<const std::byte> bytes() const { return bytes_; }

    /// Calls `visit(const Entry&)` for each entry, in the order in which it is to be applied. `before` is always empty. Allocates nothing.
    template <class F>
    void for_each(F&& visit) const {
        Cursor cursor;
        for (Entry entry; next(cursor, entry);) visit(static_cast<const Entry&>(entry));
    }

private:
    struct Cursor {
        std::size_t at = 0;
        std::uint64_t end = 0;  ///< of the entry before: offsets count from here
        bool failed = false;
    };
    explicit RedoView(std::span<const std::byte> bytes) : bytes_(bytes) {}
    /// The entry at the cursor; false: that was all, or (`failed`) the bytes aren't right.
    bool next(Cursor& cursor, Entry& entry) const;

    std::span<const std::byte> bytes_;
};

}  // namespace taiyen::change
