#pragma once
/// What frames say of a heap: bases, their pages, and transactions; every byte is checked before anybody acts on it.
/// Thread rule: values.

#include <optional>
#include <span>
#include <vector>

#include "log/ring.hpp"
#include "replicate/frame.hpp"
#include "store/header.hpp"
#include "store/page_table.hpp"

namespace taiyen::replicate {

/// A complete base: its last frame.
struct Base {
    FrameHead head;
    layout::BaseDone body;

    Serial serial() const { return {head.covered_serial}; }
    bool is_full() const { return body.begun.previous == 0; }
    /// The header of a closed heap with its pages. Throws: Error{corrupt}.
    store::Header shape(const std::string& target) const;
};

/// The base that ends with that frame. Throws: Error{corrupt}.
Base read_base(ReplicationTarget& target, std::uint64_t number);

/// The newest base that `is_wanted(const Base&)`, all of whose frames are there. Frames at the end that are damaged hide none that is older.
template <class F>
std::optional<Base> find_base(ReplicationTarget& target, const ReplicationTarget::Range& range, F&& is_wanted);
/// What it stands on, the full one first, itself last. Throws: Error{corrupt}.
std::vector<Base> with_those_below(ReplicationTarget& target, const Base& base);

/// A frame of pages.
class PagesFrame {
public:
    /// Throws: Error{corrupt}: a page isn't what its checksum says, or lies behind the end of a heap of that extent.
    PagesFrame(const Frame& frame, const store::Extents& extents);
    /// False: a later base's heap has nothing there.
    bool is_held() const { return is_held_; }
    const store::TablePage& table() const { return table_; }
    PageNumber first() const { return cover_.first; }
    /// How many of the pages that the table covers lie within the heap.
    std::uint64_t count() const { return count_; }
    /// Calls `visit(first, images)` for the runs of pages; no images, and `count`: they are zero.
    template <class F>
    void for_each_run(F&& visit) const {
        std::span<const std::byte> left = images_;
        store::for_each_alike(table_, count_, [&](std::uint64_t i, std::uint64_t run, bool is_zero) {
            visit(PageNumber{cover_.first.value + i}, run, is_zero ? std::span<const std::byte>() : left.first(run * page_bytes));
            if (!is_zero) left = left.subspan(run * page_bytes);
        });
    }

private:
    store::TablePage table_;
    store::TableCover cover_;
    std::uint64_t count_ = 0;
    bool is_held_ = false;
    std::span<const std::byte> images_;
};

/// The transactions of a frame behind `last`, up to `until`, as a group of the log; its number is the first one's serial. Moves `last` on. Nothing: there is none.
/// Throws: Error{corrupt}.
std::optional<log::Record> transactions_behind(const Frame& frame, Serial& last, std::optional<Serial> until = {});

template <class F>
std::optional<Base> find_base(ReplicationTarget& target, const ReplicationTarget::Range& range, F&& is_wanted) {
    const auto may_be_damaged = [](const Error& error) { return error.code() == errc::corrupt || error.code() == errc::io_error; };
    // The newest frame that can be read says which base is the newest one.
    std::uint64_t number = 0;
    for (std::uint64_t last = range.last;; --last) {
        try {
            number = Frame(target, last).head().newest_base;
            break;
        } catch (const Error& error) {
            if (!may_be_damaged(error) || last <= range.first) throw;
        }
    }
    while (number != 0 && number >= range.first) {  // each turn looks at an earlier one: a frame names none behind it
        std::uint64_t behind = number;              // of what is looked at next
        try {
            const Base base = read_base(target, number);
            if (base.head.begin >= range.first && is_wanted(base)) return base;
            behind = base.head.begin;
        } catch (const Error& error) {
            if (!may_be_damaged(error)) throw;
        }
        number = 0;
        for (std::uint64_t before = behind; before > range.first && number == 0;) {
            --before;
            try {
                number = Frame(target, before).head().newest_base;
                if (number == 0) return std::nullopt;
            } catch (const Error& error) {
                if (!may_be_damaged(error)) throw;
            }
        }
    }
    return std::nullopt;
}

}  // namespace taiyen::replicate
