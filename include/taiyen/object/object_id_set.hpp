#pragma once
/// object_id_set: a sorted, compressed set of signed 64-bit ids.
///
/// Ids that share their upper 48 bits form a chunk, which is kept as sorted values, as runs or as a bitmap, whichever is smallest (Roaring bitmaps, see
/// object/id_chunk.hpp); chunks that are full and follow one another are one entry of a B+ tree, however many. So dense, alternating, clustered and sparse ids each
/// take about what their own best structure would, and an interval of 2^40 ids takes 20 bytes.
///
/// All memory comes from the allocator and holds plain words, so in a persistent heap a set is saved, undone, rolled back and found again like any other container;
/// it is not read when its heap is opened. `taiyen::object_id_set<>` has the allocator of heaps (include <taiyen/stl/allocator.hpp>, or taiyen/taiyen.hpp).
///
/// Exceptions: inserting or erasing one id either happens or changes nothing. Where an operation on many ids runs out of memory, the set stays valid and may hold part of the result.
/// Invalidates: every change of the set invalidates its iterators; `erase(iterator)` returns a valid one. With TAIYEN_CHECKED_ITERATORS defined, using an invalidated one stops the
/// program with a message; sets made with and without it are the same in a heap, but all files of one program should agree.
/// Thread rule: as the standard containers: concurrent reads are fine.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/detail/instrumented.hpp>
#include <taiyen/object/detail/chunked_ids.hpp>
#include <taiyen/object/detail/id_chunk.hpp>
#include <taiyen/object/detail/id_iterator.hpp>

namespace taiyen {
namespace object {

/// Throws: Error.
[[noreturn]] TAIYEN_EXPORT void throw_bad_ids(std::uint64_t offset, const char* what);
[[noreturn]] TAIYEN_EXPORT void throw_short_ids(std::uint64_t bytes);
[[noreturn]] TAIYEN_EXPORT void throw_foreign_ids();
[[noreturn]] TAIYEN_EXPORT void throw_unknown_version(std::uint32_t version);
/// Throws: std::out_of_range.
[[noreturn]] TAIYEN_EXPORT void throw_no_such_number(std::uint64_t number, std::uint64_t size);
/// Checksum of a serialised set.
TAIYEN_EXPORT std::uint64_t ids_checksum(const std::byte* bytes, std::size_t count) noexcept;

/// What a serialised set begins with; src/object/FORMAT.md.
struct SerialisedHead {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t zero;
    std::uint64_t entries;
    std::uint64_t ids;
};
static_assert(sizeof(SerialisedHead) == 32);
inline constexpr std::uint64_t serialised_magic = 0x5445'5344'494e'5954ULL;  // "TYNIDSET" in memory
inline constexpr std::uint32_t serialised_version = 1;
inline constexpr std::size_t serialised_entry_bytes = 10;  ///< key, tag
enum class SerialisedShape : std::uint8_t { values, runs, bitmap, full };

}  // namespace object

template <class Allocator = persistent_allocator<std::int64_t>>
class TAIYEN_CHECKED_TAG object_id_set : object::ChunkedIds<Allocator> {
    using Chunks = object::ChunkedIds<Allocator>;
    using typename Chunks::Appender;
    using typename Chunks::Cursor;
    using typename Chunks::Leaf;
    using typename Chunks::Path;
    using typename Chunks::Slack;
    using typename Chunks::Tree;
    using typename Chunks::WordAllocator;
    using Kind = object::Kind;
    using ChunkView = object::ChunkView;
    using ChunkBuffer = object::ChunkBuffer;
    using Shape = object::Shape;
    using Operation = object::Operation;
    using WordTraits = typename Tree::Traits;
    using Chunks::changed;
    using Chunks::check_room;
    using Chunks::tree_;

public:
    using value_type = std::int64_t;
    using key_type = std::int64_t;
    using size_type = std::uint64_t;
    using difference_type = std::int64_t;
    using allocator_type = Allocator;
    using reference = std::int64_t;
    using const_reference = std::int64_t;
    using iterator = object::IdIterator<Allocator>;
    using const_iterator = iterator;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = reverse_iterator;

    object_id_set() noexcept(std::is_nothrow_default_constructible_v<WordAllocator>) = default;
    explicit object_id_set(const Allocator& allocator) noexcept : Chunks(WordAllocator(allocator)) {}
    object_id_set(std::initializer_list<std::int64_t> ids, const Allocator& allocator = Allocator()) : object_id_set(allocator) { insert(ids); }
    template <std::input_iterator Iterator>
    object_id_set(Iterator from, Iterator to, const Allocator& allocator = Allocator()) : object_id_set(allocator) {
        insert(from, to);
    }
    object_id_set(const object_id_set& other) : Chunks(WordTraits::select_on_container_copy_construction(other.tree_.allocator())) {
        append_all(other);
    }
    object_id_set(const object_id_set& other, const Allocator& allocator) : object_id_set(allocator) { append_all(other); }
    object_id_set(object_id_set&& other) noexcept = default;
    object_id_set(object_id_set&& other, const Allocator& allocator) : object_id_set(allocator) { take(other); }
    object_id_set& operator=(const object_id_set& other) {
        if (this == &other) return *this;
        if constexpr (WordTraits::propagate_on_container_copy_assignment::value) {
            if (tree_.allocator() != other.tree_.allocator()) clear();
            tree_.assign_allocator(other.tree_.allocator());
        }
        object_id_set copy(other, get_allocator());
        this->replace_by(copy);
        return *this;
    }
    /// Between different homes ids are copied, and the source is left empty.
    object_id_set& operator=(object_id_set&& other) noexcept(WordTraits::propagate_on_container_move_assignment::value ||
                                                             WordTraits::is_always_equal::value) {
        if (this == &other) return *this;
        if constexpr (WordTraits::propagate_on_container_move_assignment::value) {
            clear();
            tree_.assign_allocator(other.tree_.allocator());
        }
        take(other);
        return *this;
    }
    object_id_set& operator=(std::initializer_list<std::int64_t> ids) {
        object_id_set made(ids, get_allocator());
        this->replace_by(made);
        return *this;
    }
    ~object_id_set() = default;
    /// Sets of different homes are refused where the allocator refuses it (persistent_allocator reports and aborts).
    void swap(object_id_set& other) noexcept {
        tree_.swap(other.tree_);
        changed();
        other.changed();
    }
    /// Calls `visit(pointer)` with each word of the set, in the object and in its memory, that is a pointer, for moving the set. Null ones, too.
    template <class Visit>
    void for_each_pointer(Visit&& visit) const {
        tree_.for_each_pointer(std::forward<Visit>(visit));
    }
    friend void swap(object_id_set& a, object_id_set& b) noexcept { a.swap(b); }
    Allocator get_allocator() const noexcept { return Allocator(tree_.allocator()); }

    bool empty() const noexcept { return tree_.size() == 0; }
    /// Exact. Complexity: constant.
    std::uint64_t size() const noexcept { return tree_.size(); }
    using Chunks::max_size;
    /// Bytes that the set has taken from its allocator. Complexity: nodes.
    std::uint64_t memory_bytes() const noexcept { return tree_.memory_bytes(); }

    bool contains(std::int64_t id) const noexcept {
        if (tree_.empty()) return false;
        const std::uint64_t number = object::number_of_id(id);
        const auto [leaf, index] = tree_.find(number >> 16U);
        if (index == 0) return false;
        const std::uint32_t entry = index - 1;
        const auto low = static_cast<std::uint16_t>(number);
        if (leaf->kind(entry) == Kind::full) return leaf->covers(entry, number >> 16U);
        return leaf->chunk(entry) == number >> 16U && object::contains(leaf->view(entry), low);
    }
    std::uint64_t count(std::int64_t id) const noexcept { return contains(id) ? 1 : 0; }

    /// True if it wasn't there. Throws: std::length_error if all other 2^64 - 1 ids are there; what the allocator throws.
    bool insert(std::int64_t id) {
        const std::uint64_t number = object::number_of_id(id);
        const std::uint64_t chunk = number >> 16U;
        const auto low = static_cast<std::uint16_t>(number);
        if (size() == max_size()) return insert_into_largest(id);
        Path path;
        tree_.locate(path, chunk);
        if (path.index != 0 && path.leaf->covers(path.index - 1, chunk)) return this->insert_into(path, path.index - 1, low);
        tree_.insert(path, {chunk << 16U, Kind::few, 0, 0, (Tree::no_values << 16U) | low, nullptr});
        changed();
        return true;
    }
    /// Returns how many of them weren't there. Fastest for ascending ids.
    std::uint64_t insert(std::span<const std::int64_t> ids) {
        const std::uint64_t before = size();
        ChunkBuffer given;
        ChunkBuffer merged;
        for (std::size_t i = 0; i < ids.size();) {
            const std::size_t taken = take_ascending(ids.subspan(i), given);
            if (taken < bulk_min) {
                for (std::size_t end = i + taken; i < end; ++i) insert(ids[i]);
            } else {
                given.take_values(static_cast<std::uint32_t>(taken));
                this->merge_chunk(Operation::unite, object::number_of_id(ids[i]) >> 16U, given.view(), merged, Slack::none);
                i += taken;
            }
        }
        return size() - before;
    }
    std::uint64_t insert(std::initializer_list<std::int64_t> ids) { return insert(std::span<const std::int64_t>(ids.begin(), ids.size())); }
    template <std::input_iterator Iterator>
    std::uint64_t insert(Iterator from, Iterator to) {
        if constexpr (std::contiguous_iterator<Iterator> && std::same_as<std::iter_value_t<Iterator>, std::int64_t>) {
            return insert(std::span<const std::int64_t>(from, to));
        } else {
            std::uint64_t inserted = 0;
            for (; from != to; ++from) inserted += insert(static_cast<std::int64_t>(*from)) ? 1 : 0;
            return inserted;
        }
    }
    /// All ids from `first` to `last`, both included. Returns how many weren't there. Throws: as insert. Complexity: chunks that are partly there, not ids.
    std::uint64_t insert_interval(std::int64_t first, std::int64_t last) {
        if (first > last) return 0;
        const std::uint64_t before = size();
        const std::uint64_t width = object::number_of_id(last) - object::number_of_id(first);
        if (width == max_size()) object::throw_too_many_ids();
        check_room(width + 1 - count_interval(first, last));
        this->change_interval(Operation::unite, object::number_of_id(first), object::number_of_id(last));
        return size() - before;
    }

    /// True if it was there. Throws: what the allocator throws, if it stood between two neighbours.
    bool erase(std::int64_t id) {
        const std::uint64_t number = object::number_of_id(id);
        const std::uint64_t chunk = number >> 16U;
        Path path;
        tree_.locate(path, chunk);
        if (path.index == 0 || !path.leaf->covers(path.index - 1, chunk)) return false;
        return this->erase_from(path, path.index - 1, chunk, static_cast<std::uint16_t>(number));
    }
    /// Returns the place behind it.
    iterator erase(iterator place) {
        const std::int64_t id = *place;
        erase(id);
        return id == std::numeric_limits<std::int64_t>::max() ? end() : lower_bound(id + 1);
    }
    /// All ids from `first` to `last`, both included. Returns how many were there. Throws: as erase. Complexity: chunks that are there, not ids.
    std::uint64_t erase_interval(std::int64_t first, std::int64_t last) {
        if (first > last) return 0;
        const std::uint64_t before = size();
        this->change_interval(Operation::subtract, object::number_of_id(first), object::number_of_id(last));
        return before - size();
    }
    void clear() noexcept {
        tree_.clear();
        changed();
    }
    /// Gives every chunk the form that takes the fewest bytes, without room to grow. Complexity: chunks.
    void shrink_to_fit() {
        object_id_set made(get_allocator());
        made.template append_all<true>(*this);
        this->replace_by(made);
    }

    iterator begin() const noexcept {
        const Leaf* const leaf = tree_.first_leaf();
        if (leaf == nullptr) return end();
        iterator place(*this, leaf, 0);
        place.enter();
        return place;
    }
    iterator end() const noexcept { return iterator(*this, nullptr, 0); }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return end(); }
    reverse_iterator rbegin() const noexcept { return reverse_iterator(end()); }
    reverse_iterator rend() const noexcept { return reverse_iterator(begin()); }
    /// The smallest id; the set isn't empty.
    std::int64_t first() const noexcept {
        TAIYEN_CHECK(!empty());
        return *begin();
    }
    /// The greatest id; the set isn't empty.
    std::int64_t last() const noexcept {
        TAIYEN_CHECK(!empty());
        return *std::prev(end());
    }
    /// The first id that isn't less.
    iterator lower_bound(std::int64_t id) const noexcept {
        if (tree_.empty()) return end();
        const std::uint64_t number = object::number_of_id(id);
        const std::uint64_t chunk = number >> 16U;
        const auto low = static_cast<std::uint16_t>(number);
        const auto [leaf, index] = tree_.find(chunk);
        if (index == 0) {
            iterator place(*this, leaf, 0);
            place.enter();
            return place;
        }
        iterator place(*this, leaf, index - 1);
        if (!leaf->covers(place.entry_, chunk)) {
            place.next_entry();
            return place;
        }
        if (leaf->kind(place.entry_) == Kind::full) {
            place.number_ = number;
            place.run_last_ = place.base() + ((leaf->chunks(place.entry_) << 16U) - 1U);
            return place;
        }
        const ChunkView ids = leaf->view(place.entry_);
        if (ids.shape == Shape::values) {
            std::uint32_t at = object::count_not_above(ids.values(), ids.count, low);
            at -= at != 0 && ids.values()[at - 1] == low ? 1U : 0U;
            if (at != ids.count) {
                place.stand_at_value(ids, at);
                return place;
            }
        } else if (ids.shape == Shape::runs) {
            const std::uint32_t at = object::runs_not_above(ids.runs(), ids.count, low);
            if (at != 0 && ids.runs()[at - 1].last >= low) {
                place.stand_at_run(ids, at - 1, low);
                return place;
            }
            if (at != ids.count) {
                place.stand_at_run(ids, at, ids.runs()[at].first);
                return place;
            }
        } else {
            place.at_ = low / 64U;
            place.bits_ = ids.words()[place.at_] & (~0ULL << (low % 64U));
            if (place.next_bit(ids.words())) return place;
        }
        place.next_entry();
        return place;
    }
    /// The first id that is greater.
    iterator upper_bound(std::int64_t id) const noexcept { return id == std::numeric_limits<std::int64_t>::max() ? end() : lower_bound(id + 1); }
    iterator find(std::int64_t id) const noexcept {
        const iterator place = lower_bound(id);
        return place != end() && *place == id ? place : end();
    }

    /// How many ids are less than `id`. Complexity: logarithmic in the chunks.
    std::uint64_t rank(std::int64_t id) const noexcept {
        if (tree_.empty()) return 0;
        const std::uint64_t number = object::number_of_id(id);
        const std::uint64_t chunk = number >> 16U;
        std::uint64_t below = 0;
        const auto [leaf, index] = tree_.find(chunk, below);
        if (index == 0) return below;
        for (std::uint32_t i = 0; i + 1 < index; ++i) below += leaf->ids(i);
        if (leaf->kind(index - 1) == Kind::full) return below + std::min(leaf->ids(index - 1), number - (leaf->chunk(index - 1) << 16U));
        return below + (leaf->chunk(index - 1) == chunk ? object::count_below(leaf->view(index - 1), static_cast<std::uint16_t>(number))
                                                        : leaf->ids_in_chunk(index - 1));
    }
    /// The id that has `number` smaller ones. Throws: std::out_of_range. Complexity: logarithmic in the chunks.
    std::int64_t select(std::uint64_t number) const {
        if (number >= size()) object::throw_no_such_number(number, size());
        const Leaf* const leaf = tree_.leaf_of_number(number);
        std::uint32_t i = 0;
        while (number >= leaf->ids(i)) number -= leaf->ids(i++);
        const std::uint64_t base = leaf->chunk(i) << 16U;
        return object::id_with_number(leaf->kind(i) == Kind::full ? base + number
                                                                  : base | object::select(leaf->view(i), static_cast<std::uint32_t>(number)));
    }
    /// How many ids lie from `first` to `last`, both included.
    std::uint64_t count_interval(std::int64_t first, std::int64_t last) const noexcept {
        if (first > last) return 0;
        return rank(last) + (contains(last) ? 1 : 0) - rank(first);
    }

    /// Calls `visit(first, last)` for each interval of ids in a row, both included, ascending; if it returns a bool, until that is false. No interval touches the next one.
    /// Complexity: values, runs, and words of bitmaps: an interval of any length costs as much as one id.
    template <class Visit>
    void for_each_interval(Visit&& visit) const {
        bool any = false;
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        bool goes_on = true;
        const auto tell = [&] {
            if (!any) return;
            if constexpr (std::is_same_v<std::invoke_result_t<Visit&, std::int64_t, std::int64_t>, bool>)
                goes_on = visit(object::id_with_number(first), object::id_with_number(last));
            else
                visit(object::id_with_number(first), object::id_with_number(last));
        };
        const auto add = [&](std::uint64_t from, std::uint64_t to) {
            if (!goes_on) return;
            if (any && from == last + 1) {
                last = to;
                return;
            }
            tell();
            any = true;
            first = from;
            last = to;
        };
        for (const Leaf* leaf = tree_.first_leaf(); leaf != nullptr && goes_on; leaf = Tree::leaf_or_null(leaf->next)) {
            for (std::uint32_t i = 0; i < leaf->count && goes_on; ++i) {
                const std::uint64_t base = leaf->chunk(i) << 16U;
                if (leaf->kind(i) == Kind::full)
                    add(base, base + ((leaf->chunks(i) << 16U) - 1U));
                else
                    object::for_each_run(leaf->view(i), [&](std::uint32_t from, std::uint32_t to) { add(base | from, base | to); });
            }
        }
        if (goes_on) tell();
    }

    /// In place. Complexity: chunks of both. Throws: as insert.
    object_id_set& operator|=(const object_id_set& other) { return combine_in_place(Operation::unite, other); }
    object_id_set& operator&=(const object_id_set& other) { return combine_in_place(Operation::intersect, other); }
    object_id_set& operator-=(const object_id_set& other) { return combine_in_place(Operation::subtract, other); }
    object_id_set& operator^=(const object_id_set& other) { return combine_in_place(Operation::exclude, other); }
    /// New sets, with the allocator that a copy of the left one would have.
    friend object_id_set operator|(const object_id_set& a, const object_id_set& b) { return combined(Operation::unite, a, b); }
    friend object_id_set operator&(const object_id_set& a, const object_id_set& b) { return combined(Operation::intersect, a, b); }
    friend object_id_set operator-(const object_id_set& a, const object_id_set& b) { return combined(Operation::subtract, a, b); }
    friend object_id_set operator^(const object_id_set& a, const object_id_set& b) { return combined(Operation::exclude, a, b); }
    /// Whether the other set has all ids of this one.
    bool is_subset_of(const object_id_set& other) const noexcept {
        if (size() > other.size()) return false;
        return walk(*this, other, [](const auto& a, const auto& b) { return a.full() ? b.full() : object::is_subset(a.view(), b.view()); });
    }
    bool operator==(const object_id_set& other) const noexcept {
        if (size() != other.size()) return false;
        return walk(*this, other, [](const auto& a, const auto& b) { return a.full() ? b.full() : object::same_ids(a.view(), b.view()); });
    }

    /// Bytes of the serialised set. Complexity: chunks.
    std::size_t serialised_bytes() const noexcept {
        std::size_t bytes = sizeof(object::SerialisedHead) + sizeof(std::uint64_t);
        for (const Leaf* leaf = tree_.first_leaf(); leaf != nullptr; leaf = Tree::leaf_or_null(leaf->next))
            for (std::uint32_t i = 0; i < leaf->count; ++i) bytes += object::serialised_entry_bytes + payload_bytes(*leaf, i);
        return bytes;
    }
    /// Writes the set to the front of `out`, which has room for serialised_bytes(), and returns how many bytes that took.
    std::size_t serialise(std::span<std::byte> out) const {
        const std::size_t needed = serialised_bytes();
        TAIYEN_CHECK(out.size() >= needed);
        std::byte* at = out.data() + sizeof(object::SerialisedHead);
        std::uint64_t entries = 0;
        for (const Leaf* leaf = tree_.first_leaf(); leaf != nullptr; leaf = Tree::leaf_or_null(leaf->next)) {
            for (std::uint32_t i = 0; i < leaf->count; ++i) at = write_entry(*leaf, i, at);
            entries += leaf->count;
        }
        const object::SerialisedHead head{object::serialised_magic, object::serialised_version, 0, entries, size()};
        std::memcpy(out.data(), &head, sizeof head);
        const std::uint64_t sum = object::ids_checksum(out.data(), needed - sizeof(std::uint64_t));
        std::memcpy(at, &sum, sizeof sum);
        return needed;
    }
    std::vector<std::byte> serialise() const {
        std::vector<std::byte> bytes(serialised_bytes());
        serialise(std::span(bytes));
        return bytes;
    }
    /// Replaces the set by a serialised one; `bytes` are exactly what `serialise` wrote, of whatever origin. Takes no more memory than a small multiple of them.
    /// Throws: Error{truncated | corrupt | unsupported_version | foreign_byte_order}, what the allocator throws; then the set is what it was.
    void deserialise(std::span<const std::byte> bytes) {
        object_id_set made(get_allocator());
        made.read(bytes);
        this->replace_by(made);
    }

    /// Whether all internal invariants hold, for tests. Complexity: linear.
    bool is_sound() const { return tree_.is_sound(); }

private:
    static constexpr std::size_t bulk_min = 8;  ///< fewer ids of a chunk are inserted one by one

    /// Copies ascending ids of one chunk, as many as stand in front, and returns their number.
    static std::size_t take_ascending(std::span<const std::int64_t> ids, ChunkBuffer& into) noexcept {
        std::uint16_t* const values = into.free_values();
        const std::uint64_t chunk = object::number_of_id(ids[0]) >> 16U;
        const std::size_t most = std::min<std::size_t>(ids.size(), object::values_max);
        values[0] = static_cast<std::uint16_t>(ids[0]);
        std::size_t taken = 1;
        for (; taken < most && object::number_of_id(ids[taken]) >> 16U == chunk && ids[taken] > ids[taken - 1]; ++taken)
            values[taken] = static_cast<std::uint16_t>(ids[taken]);
        return taken;
    }

    void take(object_id_set& other) {
        bool equal = true;
        if constexpr (!WordTraits::is_always_equal::value) equal = tree_.allocator() == other.tree_.allocator();
        if (equal) {
            this->replace_by(other);
        } else {
            object_id_set copy(other, get_allocator());
            this->replace_by(copy);
            other.tree_.clear();
        }
        other.changed();
    }
    bool insert_into_largest(std::int64_t id) const {
        if (!contains(id)) object::throw_too_many_ids();
        return false;
    }

    // Two sets.
    template <bool Shrink = false>
    void append_all(const object_id_set& other) {
        Appender builder(*this);
        ChunkBuffer buffer;
        for (Cursor cursor(other.tree_); !cursor.done(); cursor.advance(cursor.end)) {
            if (Shrink && !cursor.full()) {
                buffer.assign(cursor.view());
                builder.append(cursor.begin, buffer.view());
            } else {
                builder.append(cursor, cursor.end);
            }
        }
    }

    static object_id_set combined(Operation operation, const object_id_set& a, const object_id_set& b) {
        object_id_set made(Allocator(WordTraits::select_on_container_copy_construction(a.tree_.allocator())));
        made.combine(operation, a, b);
        return made;
    }
    void combine(Operation operation, const object_id_set& a, const object_id_set& b) {
        const bool keeps_a = operation != Operation::intersect;
        const bool keeps_b = operation == Operation::unite || operation == Operation::exclude;
        Appender builder(*this);
        ChunkBuffer buffer;
        Cursor at_a(a.tree_);
        Cursor at_b(b.tree_);
        while (!at_a.done() && !at_b.done()) {
            if (at_a.begin < at_b.begin) {
                const std::uint64_t to = std::min(at_a.end, at_b.begin);
                if (keeps_a) builder.append(at_a, to);
                at_a.advance(to);
            } else if (at_b.begin < at_a.begin) {
                const std::uint64_t to = std::min(at_b.end, at_a.begin);
                if (keeps_b) builder.append(at_b, to);
                at_b.advance(to);
            } else {
                const std::uint64_t to = std::min(at_a.end, at_b.end);
                const bool both_full = at_a.full() && at_b.full();
                if (both_full || (operation == Operation::unite && (at_a.full() || at_b.full()))) {
                    if (operation == Operation::unite || operation == Operation::intersect) builder.append_span(at_a.begin, to - at_a.begin);
                } else if (at_a.full() && operation == Operation::intersect) {
                    builder.append(at_b.begin, at_b.view());
                } else if (at_b.full() && operation == Operation::intersect) {
                    builder.append(at_a.begin, at_a.view());
                } else {
                    buffer.combine(operation, at_a.view(), at_b.view());
                    builder.append(at_a.begin, buffer.view());
                }
                at_a.advance(to);
                at_b.advance(to);
            }
        }
        for (; keeps_a && !at_a.done(); at_a.advance(at_a.end)) builder.append(at_a, at_a.end);
        for (; keeps_b && !at_b.done(); at_b.advance(at_b.end)) builder.append(at_b, at_b.end);
    }
    object_id_set& combine_in_place(Operation operation, const object_id_set& other) {
        object_id_set made(get_allocator());
        made.combine(operation, *this, other);
        this->replace_by(made);
        return *this;
    }
    /// Whether every chunk of `a` has one of `b` beside it with which `fits`.
    template <class Fits>
    static bool walk(const object_id_set& a, const object_id_set& b, const Fits& fits) noexcept {
        Cursor at_a(a.tree_);
        Cursor at_b(b.tree_);
        while (!at_a.done()) {
            while (!at_b.done() && at_b.begin < at_a.begin) at_b.advance(std::min(at_b.end, at_a.begin));
            if (at_b.done() || at_b.begin != at_a.begin || !fits(at_a, at_b)) return false;
            const std::uint64_t to = std::min(at_a.end, at_b.end);
            at_a.advance(to);
            at_b.advance(to);
        }
        return true;
    }

    // Bytes.

    static std::size_t payload_bytes(const Leaf& leaf, std::uint32_t i) noexcept {
        return leaf.kind(i) == Kind::full ? sizeof(std::uint64_t) : Chunks::bytes_of(leaf.view(i));
    }
    static std::byte* write_entry(const Leaf& leaf, std::uint32_t i, std::byte* at) noexcept {
        const std::uint64_t key = leaf.keys()[i];
        const ChunkView ids = leaf.view(i);
        const auto shape = leaf.kind(i) == Kind::full ? object::SerialisedShape::full : static_cast<object::SerialisedShape>(ids.shape);
        const auto runs = shape == object::SerialisedShape::runs ? ids.count : 0U;
        const auto tag = static_cast<std::uint16_t>(static_cast<std::uint32_t>(shape) | runs << 2U);
        std::memcpy(at, &key, sizeof key);
        std::memcpy(at + sizeof key, &tag, sizeof tag);
        at += object::serialised_entry_bytes;
        const std::size_t bytes = payload_bytes(leaf, i);
        std::memcpy(at, shape == object::SerialisedShape::full ? static_cast<const void*>(leaf.slot(i)) : ids.data, bytes);
        return at + bytes;
    }
    void read(std::span<const std::byte> bytes) {
        using Head = object::SerialisedHead;
        Head head{};
        constexpr std::size_t sum_bytes = sizeof(std::uint64_t);
        if (bytes.size() < sizeof head + sum_bytes) object::throw_short_ids(bytes.size());
        std::memcpy(&head, bytes.data(), sizeof head);
        if (head.magic == __builtin_bswap64(object::serialised_magic)) object::throw_foreign_ids();
        if (head.magic != object::serialised_magic) object::throw_bad_ids(0, "they don't begin as a set of ids does");
        if (head.version != object::serialised_version) object::throw_unknown_version(head.version);
        const std::size_t end = bytes.size() - sum_bytes;
        std::uint64_t sum = 0;
        std::memcpy(&sum, bytes.data() + end, sum_bytes);
        if (sum != object::ids_checksum(bytes.data(), end)) object::throw_bad_ids(end, "their checksum is another one");
        Appender builder(*this);
        alignas(std::uint64_t) std::byte payload[object::bitmap_bytes];
        std::size_t at = sizeof head;
        std::uint64_t next_chunk = 0;
        for (std::uint64_t entry = 0; entry < head.entries; ++entry) {
            if (end - at < object::serialised_entry_bytes) object::throw_bad_ids(at, "an entry is missing");
            std::uint64_t key = 0;
            std::uint16_t tag = 0;
            std::memcpy(&key, bytes.data() + at, sizeof key);
            std::memcpy(&tag, bytes.data() + at + sizeof key, sizeof tag);
            const std::size_t here = at;
            at += object::serialised_entry_bytes;
            const auto shape = static_cast<object::SerialisedShape>(tag & 3U);
            ChunkView ids{static_cast<Shape>(shape), static_cast<std::uint32_t>(tag) >> 2U, static_cast<std::uint32_t>(key & 0xffffU) + 1U, payload};
            if (shape == object::SerialisedShape::values) ids.count = ids.ids;
            const std::size_t size = shape == object::SerialisedShape::full ? sizeof(std::uint64_t) : Chunks::bytes_of(ids);
            if (size > sizeof payload || end - at < size) object::throw_bad_ids(here, "an entry is larger than it may be");
            std::memcpy(payload, bytes.data() + at, size);
            at += size;
            const std::uint64_t chunk = key >> 16U;
            std::uint64_t chunks = 1;
            if (shape == object::SerialisedShape::full) std::memcpy(&chunks, payload, sizeof chunks);
            constexpr std::uint64_t all_chunks = std::uint64_t{1} << 48U;
            if (chunk < next_chunk || chunks == 0 || chunks > all_chunks - chunk) object::throw_bad_ids(here, "an entry is out of order");
            next_chunk = chunk + chunks;
            if (shape == object::SerialisedShape::full) {
                if (ids.ids != object::chunk_ids || chunks == all_chunks) object::throw_bad_ids(here, "an entry counts wrong");
                builder.append_span(chunk, chunks);
            } else {
                if (!object::is_well_formed(ids)) object::throw_bad_ids(here, "the ids of an entry aren't in order");
                builder.append(chunk, ids);
            }
        }
        if (at != end || size() != head.ids || head.zero != 0) object::throw_bad_ids(at, "their number is another one");
    }
};

}  // namespace taiyen
