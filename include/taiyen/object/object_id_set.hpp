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
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/export.hpp>
#include <taiyen/base/instrumented.hpp>
#include <taiyen/object/id_chunk.hpp>
#include <taiyen/object/id_tree.hpp>

#if defined(TAIYEN_CHECKED_ITERATORS)
#define TAIYEN_CHECKED_TAG __attribute__((abi_tag("taiyen_checked")))
#else
#define TAIYEN_CHECKED_TAG
#endif

namespace taiyen {
namespace object {

/// Throws: Error.
[[noreturn]] TAIYEN_EXPORT void throw_bad_ids(std::uint64_t offset, const char* what);
[[noreturn]] TAIYEN_EXPORT void throw_short_ids(std::uint64_t bytes);
[[noreturn]] TAIYEN_EXPORT void throw_foreign_ids();
[[noreturn]] TAIYEN_EXPORT void throw_unknown_version(std::uint32_t version);
/// Throws: std::length_error.
[[noreturn]] TAIYEN_EXPORT void throw_too_many_ids();
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
class TAIYEN_CHECKED_TAG object_id_set {
    using Tree = object::IdTree<Allocator>;
    using Leaf = typename Tree::Leaf;
    using Path = typename Tree::Path;
    using Entry = typename Tree::Entry;
    using Kind = object::Kind;
    using ChunkView = object::ChunkView;
    using ChunkBuffer = object::ChunkBuffer;
    using IdRun = object::IdRun;
    using Shape = object::Shape;
    using Operation = object::Operation;
    using WordAllocator = typename Tree::WordAllocator;
    using WordTraits = typename Tree::Traits;

public:
    using value_type = std::int64_t;
    using key_type = std::int64_t;
    using size_type = std::uint64_t;
    using difference_type = std::int64_t;
    using allocator_type = Allocator;
    using reference = std::int64_t;
    using const_reference = std::int64_t;

    /// Walks over the ids in ascending order. Ids are computed, so `*` gives a value.
    class iterator {
    public:
        using iterator_category = std::bidirectional_iterator_tag;
        using iterator_concept = std::bidirectional_iterator_tag;
        using value_type = std::int64_t;
        using difference_type = std::int64_t;
        using reference = std::int64_t;
        using pointer = void;

        iterator() noexcept = default;
        std::int64_t operator*() const noexcept {
            check_valid();
            return id_of(number_);
        }
        iterator& operator++() noexcept {
            check_valid();
            if (number_ < run_last_) {
                ++number_;
            } else {
                next();
            }
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before = *this;
            ++*this;
            return before;
        }
        iterator& operator--() noexcept {
            check_valid();
            previous();
            return *this;
        }
        iterator operator--(int) noexcept {
            iterator before = *this;
            --*this;
            return before;
        }
        bool operator==(const iterator& other) const noexcept {
            check_valid();
            other.check_valid();
            return leaf_ == other.leaf_ && number_ == other.number_;
        }

    private:
        friend object_id_set;
        iterator(const object_id_set& set, const Leaf* leaf, std::uint32_t entry) noexcept : set_(&set), leaf_(leaf), entry_(entry) {
#if defined(TAIYEN_CHECKED_ITERATORS)
            stamp_ = set.changes_;
#endif
        }
        void check_valid() const noexcept {
#if defined(TAIYEN_CHECKED_ITERATORS)
            constexpr bool the_set_has_not_changed_since_this_iterator_was_made = true;
            TAIYEN_CHECK((set_ == nullptr || stamp_ == set_->changes_) && the_set_has_not_changed_since_this_iterator_was_made);
#endif
        }
        std::uint64_t base() const noexcept { return leaf_->chunk(entry_) << 16U; }
        void stand_at_value(const ChunkView& ids, std::uint32_t at) noexcept {
            at_ = at;
            left_ = ids.count - 1 - at;
            values_ = ids.values() + at;
            number_ = run_last_ = base() | ids.values()[at];
        }
        void stand_at_run(const ChunkView& ids, std::uint32_t at, std::uint16_t low) noexcept {
            at_ = at;
            number_ = base() | low;
            run_last_ = base() | ids.runs()[at].last;
        }
        void stand_at_bit(const ChunkView& ids, std::uint32_t low) noexcept {
            at_ = low / 64U;
            bits_ = ids.words()[at_] & ~(((1ULL << (low % 64U)) << 1U) - 1U);
            number_ = run_last_ = base() | low;
        }
        void stand_at_end() noexcept {
            leaf_ = nullptr;
            entry_ = 0;
            left_ = 0;
            number_ = run_last_ = 0;
        }
        /// The first id of the entry.
        void enter() noexcept {
            left_ = 0;
            if (leaf_->kind(entry_) == Kind::full) {
                number_ = base();
                run_last_ = number_ + ((leaf_->chunks(entry_) << 16U) - 1U);
                return;
            }
            const ChunkView ids = leaf_->view(entry_);
            if (ids.shape == Shape::values) {
                stand_at_value(ids, 0);
            } else if (ids.shape == Shape::runs) {
                stand_at_run(ids, 0, ids.runs()[0].first);
            } else {
                at_ = 0;
                bits_ = ids.words()[0];
                next_bit(ids.words());
            }
        }
        void enter_last() noexcept {
            left_ = 0;
            if (leaf_->kind(entry_) == Kind::full) {
                number_ = run_last_ = base() + ((leaf_->chunks(entry_) << 16U) - 1U);
                return;
            }
            const ChunkView ids = leaf_->view(entry_);
            if (ids.shape == Shape::values) {
                stand_at_value(ids, ids.count - 1);
            } else if (ids.shape == Shape::runs) {
                stand_at_run(ids, ids.count - 1, ids.runs()[ids.count - 1].last);
            } else {
                stand_at_bit(ids, last_bit(ids.words(), object::chunk_ids - 1));
            }
        }
        bool next_bit(const std::uint64_t* words) noexcept {
            while (bits_ == 0) {
                if (++at_ == object::bitmap_words) return false;
                bits_ = words[at_];
            }
            number_ = run_last_ = base() | (at_ * 64U + static_cast<std::uint32_t>(std::countr_zero(bits_)));
            bits_ &= bits_ - 1;
            return true;
        }
        /// The highest bit that is set at or below `low`, which exists.
        static std::uint32_t last_bit(const std::uint64_t* words, std::uint32_t low) noexcept {
            std::uint32_t at = low / 64U;
            std::uint64_t word = words[at] & (~0ULL >> (63U - low % 64U));
            while (word == 0) word = words[--at];
            return at * 64U + 63U - static_cast<std::uint32_t>(std::countl_zero(word));
        }
        void next() noexcept {
            if (left_ != 0) {  // values
                --left_;
                ++at_;
                number_ = run_last_ = (number_ & ~std::uint64_t{0xffff}) | *++values_;
                return;
            }
            switch (leaf_->kind(entry_)) {
                case Kind::bitmap:
                    if (next_bit(static_cast<const std::uint64_t*>(leaf_->data(entry_)))) return;
                    break;
                case Kind::brief:
                case Kind::runs: {
                    const ChunkView ids = leaf_->view(entry_);
                    if (at_ + 1 == ids.count) break;
                    stand_at_run(ids, at_ + 1, ids.runs()[at_ + 1].first);
                    return;
                }
                default: break;
            }
            next_entry();
        }
        void next_entry() noexcept {
            if (++entry_ == leaf_->count) {
                leaf_ = Tree::leaf_or_null(leaf_->next);
                entry_ = 0;
                if (leaf_ == nullptr) {
                    stand_at_end();
                    return;
                }
            }
            enter();
        }
        void previous() noexcept {
            if (leaf_ == nullptr) {
                leaf_ = set_->tree_.last_leaf();
                entry_ = leaf_->count - 1;
                enter_last();
                return;
            }
            if (leaf_->kind(entry_) == Kind::full) {
                if (number_ != base()) {
                    --number_;
                    return;
                }
            } else {
                const ChunkView ids = leaf_->view(entry_);
                const auto low = static_cast<std::uint16_t>(number_);
                if (ids.shape == Shape::values && at_ != 0) return stand_at_value(ids, at_ - 1);
                if (ids.shape == Shape::runs) {
                    if (low != ids.runs()[at_].first) {
                        --number_;
                        return;
                    }
                    if (at_ != 0) return stand_at_run(ids, at_ - 1, ids.runs()[at_ - 1].last);
                }
                if (ids.shape == Shape::bitmap && low != 0 && count_below_is_positive(ids.words(), low)) {
                    return stand_at_bit(ids, last_bit(ids.words(), low - 1U));
                }
            }
            if (entry_ == 0) {
                leaf_ = Tree::leaf_or_null(leaf_->previous);
                entry_ = leaf_->count;
            }
            --entry_;
            enter_last();
        }
        static bool count_below_is_positive(const std::uint64_t* words, std::uint32_t low) noexcept {
            std::uint32_t at = low / 64U;
            if ((words[at] & ((1ULL << (low % 64U)) - 1U)) != 0) return true;
            while (at != 0) {
                if (words[--at] != 0) return true;
            }
            return false;
        }

        const object_id_set* set_ = nullptr;
        const Leaf* leaf_ = nullptr;  ///< null: behind the last id
        std::uint32_t entry_ = 0;
        std::uint32_t at_ = 0;  ///< which value, run or word
        std::uint64_t number_ = 0;
        std::uint64_t run_last_ = 0;  ///< up to here the next number is the next id
        std::uint64_t bits_ = 0;      ///< of the word: those that are still to come
        const std::uint16_t* values_ = nullptr;
        std::uint32_t left_ = 0;  ///< values behind this one in the entry
#if defined(TAIYEN_CHECKED_ITERATORS)
        std::uint64_t stamp_ = 0;
#endif
    };
    using const_iterator = iterator;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = reverse_iterator;

    object_id_set() noexcept(std::is_nothrow_default_constructible_v<WordAllocator>) = default;
    explicit object_id_set(const Allocator& allocator) noexcept : tree_(WordAllocator(allocator)) {}
    object_id_set(std::initializer_list<std::int64_t> ids, const Allocator& allocator = Allocator()) : object_id_set(allocator) { insert(ids); }
    template <std::input_iterator Iterator>
    object_id_set(Iterator from, Iterator to, const Allocator& allocator = Allocator()) : object_id_set(allocator) {
        insert(from, to);
    }
    object_id_set(const object_id_set& other) : tree_(WordTraits::select_on_container_copy_construction(other.tree_.allocator())) {
        append_all(other);
    }
    object_id_set(const object_id_set& other, const Allocator& allocator) : object_id_set(allocator) { append_all(other); }
    object_id_set(object_id_set&& other) noexcept : tree_(std::move(other.tree_)) { other.changed(); }
    object_id_set(object_id_set&& other, const Allocator& allocator) : object_id_set(allocator) { take(other); }
    object_id_set& operator=(const object_id_set& other) {
        if (this == &other) return *this;
        if constexpr (WordTraits::propagate_on_container_copy_assignment::value) {
            if (tree_.allocator() != other.tree_.allocator()) clear();
            tree_.assign_allocator(other.tree_.allocator());
        }
        object_id_set copy(other, get_allocator());
        replace_by(copy);
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
        replace_by(made);
        return *this;
    }
    ~object_id_set() = default;
    /// Sets of different homes are refused where the allocator refuses it (persistent_allocator reports and aborts).
    void swap(object_id_set& other) noexcept {
        tree_.swap(other.tree_);
        changed();
        other.changed();
    }
    friend void swap(object_id_set& a, object_id_set& b) noexcept { a.swap(b); }
    Allocator get_allocator() const noexcept { return Allocator(tree_.allocator()); }

    bool empty() const noexcept { return tree_.size() == 0; }
    /// Exact. Complexity: constant.
    std::uint64_t size() const noexcept { return tree_.size(); }
    static constexpr std::uint64_t max_size() noexcept { return std::numeric_limits<std::uint64_t>::max(); }
    /// Bytes that the set has taken from its allocator. Complexity: nodes.
    std::uint64_t memory_bytes() const noexcept { return tree_.memory_bytes(); }

    bool contains(std::int64_t id) const noexcept {
        if (tree_.empty()) return false;
        const std::uint64_t number = number_of(id);
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
        const std::uint64_t number = number_of(id);
        const std::uint64_t chunk = number >> 16U;
        const auto low = static_cast<std::uint16_t>(number);
        if (size() == max_size()) return insert_into_largest(id);
        Path path;
        tree_.locate(path, chunk);
        if (path.index != 0 && path.leaf->covers(path.index - 1, chunk)) return insert_into(path, path.index - 1, low);
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
                merge_chunk(Operation::unite, number_of(ids[i]) >> 16U, given.view(), merged, Slack::none);
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
        const std::uint64_t width = number_of(last) - number_of(first);
        if (width == max_size()) object::throw_too_many_ids();
        check_room(width + 1 - count_interval(first, last));
        change_interval(Operation::unite, number_of(first), number_of(last));
        return size() - before;
    }

    /// True if it was there. Throws: what the allocator throws, if it stood between two neighbours.
    bool erase(std::int64_t id) {
        const std::uint64_t number = number_of(id);
        const std::uint64_t chunk = number >> 16U;
        Path path;
        tree_.locate(path, chunk);
        if (path.index == 0 || !path.leaf->covers(path.index - 1, chunk)) return false;
        return erase_from(path, path.index - 1, chunk, static_cast<std::uint16_t>(number));
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
        change_interval(Operation::subtract, number_of(first), number_of(last));
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
        replace_by(made);
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
        const std::uint64_t number = number_of(id);
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
        const std::uint64_t number = number_of(id);
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
        return id_of(leaf->kind(i) == Kind::full ? base + number : base | object::select(leaf->view(i), static_cast<std::uint32_t>(number)));
    }
    /// How many ids lie from `first` to `last`, both included.
    std::uint64_t count_interval(std::int64_t first, std::int64_t last) const noexcept {
        if (first > last) return 0;
        return rank(last) + (contains(last) ? 1 : 0) - rank(first);
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
        for (const Leaf* leaf = tree_.first_leaf(); leaf != nullptr; leaf = Tree::leaf_or_null(leaf->next)) {
            for (std::uint32_t i = 0; i < leaf->count; ++i) bytes += object::serialised_entry_bytes + payload_bytes(*leaf, i);
        }
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
        replace_by(made);
    }

    /// Whether all internal invariants hold, for tests. Complexity: linear.
    bool is_sound() const { return tree_.is_sound(); }

private:
    /// Whether a block gets room for more.
    enum class Slack : std::uint8_t { none, some };
    static constexpr std::size_t bulk_min = 8;          ///< fewer ids of a chunk are inserted one by one
    static constexpr std::uint32_t runs_at_ease = 256;  ///< a bitmap of so few runs becomes runs by itself

    /// Order of ids is order of numbers.
    static std::uint64_t number_of(std::int64_t id) noexcept { return static_cast<std::uint64_t>(id) ^ (std::uint64_t{1} << 63U); }
    static std::int64_t id_of(std::uint64_t number) noexcept { return static_cast<std::int64_t>(number ^ (std::uint64_t{1} << 63U)); }

    /// Copies ascending ids of one chunk, as many as stand in front, and returns their number.
    static std::size_t take_ascending(std::span<const std::int64_t> ids, ChunkBuffer& into) noexcept {
        std::uint16_t* const values = into.free_values();
        const std::uint64_t chunk = number_of(ids[0]) >> 16U;
        const std::size_t most = std::min<std::size_t>(ids.size(), object::values_max);
        values[0] = static_cast<std::uint16_t>(ids[0]);
        std::size_t taken = 1;
        for (; taken < most && number_of(ids[taken]) >> 16U == chunk && ids[taken] > ids[taken - 1]; ++taken) {
            values[taken] = static_cast<std::uint16_t>(ids[taken]);
        }
        return taken;
    }

    void changed() noexcept { ++changes_; }
    void check_room(std::uint64_t more) const {
        if (more > max_size() - size()) object::throw_too_many_ids();
    }
    void replace_by(object_id_set& made) noexcept {
        tree_.clear();
        tree_.take(made.tree_);
        changed();
    }
    void take(object_id_set& other) {
        bool equal = true;
        if constexpr (!WordTraits::is_always_equal::value) equal = tree_.allocator() == other.tree_.allocator();
        if (equal) {
            replace_by(other);
        } else {
            object_id_set copy(other, get_allocator());
            replace_by(copy);
            other.tree_.clear();
        }
        other.changed();
    }

    // One id.

    bool insert_into_largest(std::int64_t id) const {
        if (!contains(id)) object::throw_too_many_ids();
        return false;
    }
    bool insert_into(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        switch (leaf.kind(i)) {
            case Kind::few: return insert_into_few(path, i, low);
            case Kind::values: return insert_into_values(path, i, low);
            case Kind::brief:
            case Kind::runs: return insert_into_runs(path, i, low);
            case Kind::bitmap: return insert_into_bitmap(path, i, low);
            default: return false;
        }
    }
    /// One id more in the entry, which is done already.
    bool inserted(const Path& path, std::uint32_t i) noexcept {
        ++path.leaf->keys()[i];
        tree_.add(path, 1);
        changed();
        return true;
    }
    bool insert_into_few(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        const std::uint64_t word = *leaf.slot(i);
        const std::uint32_t ids = leaf.ids_in_chunk(i);
        std::uint32_t at = 0;
        while (at < ids && static_cast<std::uint16_t>(word >> (16 * at)) < low) ++at;
        if (at < ids && static_cast<std::uint16_t>(word >> (16 * at)) == low) return false;
        if (ids == 4) return insert_slowly(path, i, low);
        const std::uint64_t below = (std::uint64_t{1} << (16 * at)) - 1U;
        *leaf.slot(i) = (word & below) | std::uint64_t{low} << (16 * at) | (word & ~below) << 16U;
        return inserted(path, i);
    }
    bool insert_into_values(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        auto* const values = static_cast<std::uint16_t*>(leaf.data(i));
        const std::uint32_t count = leaf.ids_in_chunk(i);
        std::uint32_t at = count;
        if (values[count - 1] >= low) {
            at = object::count_not_above(values, count, low);
            if (at != 0 && values[at - 1] == low) return false;
        }
        if (count == leaf.words(i) * 4) {
            const ChunkView ids{Shape::values, count, count, values};
            if (count == object::values_max || 2 * object::count_runs(ids) < count) return insert_slowly(path, i, low);
            grow_values(leaf, i, ids, at);
            static_cast<std::uint16_t*>(leaf.data(i))[at] = low;
            return inserted(path, i);
        }
        std::memmove(values + at + 1, values + at, (count - at) * sizeof *values);
        values[at] = low;
        return inserted(path, i);
    }
    /// A larger block with a gap at `at`.
    void grow_values(Leaf& leaf, std::uint32_t i, const ChunkView& ids, std::uint32_t at) {
        const std::uint32_t words = words_for(ids.count * 2 + 2, Slack::some);
        const auto block = tree_.allocate(words);
        auto* const values = reinterpret_cast<std::uint16_t*>(std::to_address(block));
        std::memcpy(values, ids.values(), at * sizeof *values);
        std::memcpy(values + at + 1, ids.values() + at, (ids.count - at) * sizeof *values);
        std::memset(values + ids.count + 1, 0xff, words * std::size_t{8} - (ids.count + 1) * sizeof *values);
        tree_.release(leaf, i);
        Tree::put(leaf, i, {leaf.keys()[i], Kind::values, words, 0, 0, block});
    }
    bool insert_into_runs(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        auto* runs = static_cast<IdRun*>(leaf.data(i));
        const std::uint32_t count = leaf.runs(i);
        const std::uint32_t at = runs[count - 1].last < low ? count : object::runs_not_above(runs, count, low);
        if (at != 0 && runs[at - 1].last >= low) return false;
        if (leaf.ids_in_chunk(i) + 1 == object::chunk_ids) {
            make_full(path, i);
            return true;
        }
        const bool touches_before = at != 0 && runs[at - 1].last + 1 == low;
        const bool touches_behind = at != count && runs[at].first == low + 1;
        if (touches_before && touches_behind) {
            if (leaf.kind(i) == Kind::runs && count <= 3) return insert_slowly(path, i, low);
            runs[at - 1].last = runs[at].last;
            set_runs(leaf, i, runs, at, count - at - 1, -1);
        } else if (touches_before) {
            runs[at - 1].last = low;
        } else if (touches_behind) {
            runs[at].first = low;
        } else {
            if (count == room_for_runs(leaf, i)) {
                if (!grow_runs(leaf, i)) return insert_slowly(path, i, low);
                runs = static_cast<IdRun*>(leaf.data(i));
            }
            set_runs(leaf, i, runs, at, count - at, 1);
            runs[at] = {low, low};
        }
        return inserted(path, i);
    }
    /// Moves `behind` runs that begin at `at` (one later if one goes) up or down by one.
    static void set_runs(Leaf& leaf, std::uint32_t i, IdRun* runs, std::uint32_t at, std::uint32_t behind, int more) noexcept {
        if (more > 0) {
            std::memmove(runs + at + 1, runs + at, behind * sizeof *runs);
        } else {
            std::memmove(runs + at, runs + at + 1, behind * sizeof *runs);
            if (leaf.kind(i) == Kind::brief) runs[1] = {0xffff, 0xffff};
        }
        Tree::describe(leaf, i, leaf.kind(i), leaf.words(i), leaf.runs(i) + static_cast<std::uint32_t>(more));
    }
    static std::uint32_t room_for_runs(const Leaf& leaf, std::uint32_t i) noexcept { return leaf.kind(i) == Kind::brief ? 2 : leaf.words(i) * 2; }
    /// A larger block, unless another form would be smaller for one run more.
    bool grow_runs(Leaf& leaf, std::uint32_t i) {
        const std::uint32_t count = leaf.runs(i);
        if (leaf.kind(i) == Kind::brief || count + 1 > object::runs_max || 2 * (count + 1) >= leaf.ids_in_chunk(i)) return false;
        const std::uint32_t words = words_for((count + 1) * 4, Slack::some);
        const auto block = tree_.allocate(words);
        fill(std::to_address(block), words, leaf.data(i), count * 4);
        tree_.release(leaf, i);
        Tree::put(leaf, i, {leaf.keys()[i], Kind::runs, words, count, 0, block});
        return true;
    }
    bool insert_into_bitmap(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        std::uint64_t& word = static_cast<std::uint64_t*>(leaf.data(i))[low / 64U];
        const std::uint64_t bit = std::uint64_t{1} << (low % 64U);
        if ((word & bit) != 0) return false;
        const std::uint32_t ids = leaf.ids_in_chunk(i) + 1;
        if (ids == object::chunk_ids) {
            make_full(path, i);
            return true;
        }
        word |= bit;
        inserted(path, i);
        if (ids % 1024 == 0) ease(path, i);
        return true;
    }
    /// The form of the entry changes, or its block grows.
    bool insert_slowly(Path& path, std::uint32_t i, std::uint16_t low) {
        ChunkBuffer buffer;
        buffer.combine(Operation::unite, path.leaf->view(i), {Shape::values, 1, 1, &low});
        replace(path, i, buffer.view(), Slack::some);
        return true;
    }
    /// The last missing id came.
    void make_full(Path& path, std::uint32_t i) noexcept {
        Leaf& leaf = *path.leaf;
        tree_.add(path, object::chunk_ids - leaf.ids_in_chunk(i));
        tree_.release(leaf, i);
        Tree::put(leaf, i, Tree::span(leaf.chunk(i), 1));
        changed();
        tree_.join_full(path, i);
    }
    /// A bitmap that takes far more bytes than it needs gets another form, if there is memory for it.
    void ease(Path& path, std::uint32_t i) noexcept {
        const ChunkView ids = path.leaf->view(i);
        if (ids.ids > object::values_max * 7 / 8 && object::count_runs(ids) > runs_at_ease) return;
        try {
            ChunkBuffer buffer;
            buffer.assign(ids);
            if (buffer.view().shape != Shape::bitmap) replace(path, i, buffer.view(), Slack::some);
        } catch (...) {  // no memory, or the heap gives none any more: it stays what it is
        }
    }

    bool erase_from(Path& path, std::uint32_t i, std::uint64_t chunk, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        switch (leaf.kind(i)) {
            case Kind::few: {
                const std::uint64_t word = *leaf.slot(i);
                const std::uint32_t ids = leaf.ids_in_chunk(i);
                std::uint32_t at = 0;
                while (at < ids && static_cast<std::uint16_t>(word >> (16 * at)) != low) ++at;
                if (at == ids) return false;
                if (ids == 1) {
                    tree_.remove(path, i, 1);
                    changed();
                    return true;
                }
                const std::uint64_t below = (std::uint64_t{1} << (16 * at)) - 1U;
                *leaf.slot(i) = (word & below) | (word >> 16U & ~below) | std::uint64_t{0xffff} << 48U;
                return erased(path, i);
            }
            case Kind::values: return erase_from_values(path, i, low);
            case Kind::brief:
            case Kind::runs: return erase_from_runs(path, i, low);
            case Kind::bitmap: {
                std::uint64_t& word = static_cast<std::uint64_t*>(leaf.data(i))[low / 64U];
                const std::uint64_t bit = std::uint64_t{1} << (low % 64U);
                if ((word & bit) == 0) return false;
                const std::uint32_t ids = leaf.ids_in_chunk(i) - 1;
                word &= ~bit;
                erased(path, i);
                if (ids % 1024 == 512) ease(path, i);
                return true;
            }
            default: return erase_from_full(path, chunk, low);
        }
    }
    bool erased(const Path& path, std::uint32_t i) noexcept {
        --path.leaf->keys()[i];
        tree_.add(path, ~std::uint64_t{0});
        changed();
        return true;
    }
    bool erase_from_values(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        const std::uint32_t count = leaf.ids_in_chunk(i);
        auto* const values = static_cast<std::uint16_t*>(leaf.data(i));
        const std::uint32_t at = object::count_not_above(values, count, low);
        if (at == 0 || values[at - 1] != low) return false;
        std::memmove(values + at - 1, values + at, (count - at) * sizeof *values);
        erased(path, i);
        if (count <= 5 || count <= leaf.words(i)) give_room_back(path, i);  // a quarter of the room is in use
        return true;
    }
    bool erase_from_runs(Path& path, std::uint32_t i, std::uint16_t low) {
        Leaf& leaf = *path.leaf;
        auto* runs = static_cast<IdRun*>(leaf.data(i));
        const std::uint32_t count = leaf.runs(i);
        const std::uint32_t begun = object::runs_not_above(runs, count, low);
        if (begun == 0 || runs[begun - 1].last < low) return false;
        const std::uint32_t at = begun - 1;
        const IdRun run = runs[at];
        if (leaf.ids_in_chunk(i) == 1) {
            tree_.remove(path, i, 1);
            changed();
            return true;
        }
        if (run.first == run.last) {
            set_runs(leaf, i, runs, at, count - at - 1, -1);
        } else if (run.first == low) {
            runs[at].first = static_cast<std::uint16_t>(low + 1U);
        } else if (run.last == low) {
            runs[at].last = static_cast<std::uint16_t>(low - 1U);
        } else {
            if (count == room_for_runs(leaf, i)) {
                if (!grow_runs(leaf, i)) return erase_slowly(path, i, low);
                runs = static_cast<IdRun*>(leaf.data(i));
            }
            set_runs(leaf, i, runs, at + 1, count - at - 1, 1);
            runs[at].last = static_cast<std::uint16_t>(low - 1U);
            runs[at + 1] = {static_cast<std::uint16_t>(low + 1U), run.last};
        }
        erased(path, i);
        if (leaf.kind(i) == Kind::runs && (leaf.runs(i) <= 2 || leaf.runs(i) * 2 < leaf.words(i))) give_room_back(path, i);
        return true;
    }
    bool erase_slowly(Path& path, std::uint32_t i, std::uint16_t low) {
        ChunkBuffer buffer;
        buffer.combine(Operation::subtract, path.leaf->view(i), {Shape::values, 1, 1, &low});
        replace(path, i, buffer.view(), Slack::some);
        return true;
    }
    bool erase_from_full(Path& path, std::uint64_t chunk, std::uint16_t low) {
        isolate(path, chunk);
        const std::uint32_t i = path.index - 1;
        Leaf& leaf = *path.leaf;
        IdRun runs[2] = {{0xffff, 0xffff}, {0xffff, 0xffff}};
        std::uint32_t count = 0;
        if (low != 0) runs[count++] = {0, static_cast<std::uint16_t>(low - 1U)};
        if (low != 0xffff) runs[count++] = {static_cast<std::uint16_t>(low + 1U), 0xffff};
        std::uint64_t word = 0;
        std::memcpy(&word, runs, sizeof word);
        Tree::put(leaf, i, {chunk << 16U | (object::chunk_ids - 2), Kind::brief, 0, count, word, nullptr});
        tree_.add(path, ~std::uint64_t{0});
        changed();
        return true;
    }
    void give_room_back(Path& path, std::uint32_t i) noexcept {
        try {
            ChunkBuffer buffer;
            buffer.assign(path.leaf->view(i));
            replace(path, i, buffer.view(), Slack::some);
        } catch (...) {  // no memory, or the heap gives none any more: it stays what it is
        }
    }

    // Whole chunks.

    /// An entry for the ids, with memory of its own.
    Entry entry_for(std::uint64_t chunk, const ChunkView& ids, Slack slack) {
        Entry entry;
        entry.key = chunk << 16U | (ids.ids - 1);
        if (ids.ids == object::chunk_ids) return Tree::span(chunk, 1);
        entry.runs = ids.shape == Shape::runs ? ids.count : 0;
        const std::uint32_t bytes = bytes_of(ids);
        if (bytes <= 8) {
            entry.kind = ids.shape == Shape::runs ? Kind::brief : Kind::few;
            entry.word = Tree::no_values;
            std::memcpy(&entry.word, ids.data, bytes);
            return entry;
        }
        entry.kind = ids.shape == Shape::values ? Kind::values : ids.shape == Shape::runs ? Kind::runs : Kind::bitmap;
        entry.words = words_for(bytes, slack);
        entry.block = tree_.allocate(entry.words);
        fill(std::to_address(entry.block), entry.words, ids.data, bytes);
        return entry;
    }
    static std::uint32_t bytes_of(const ChunkView& ids) noexcept {
        return ids.shape == Shape::bitmap ? object::bitmap_bytes : ids.count * static_cast<std::uint32_t>(ids.shape == Shape::values ? 2 : 4);
    }
    static std::uint32_t words_for(std::uint32_t bytes, Slack slack) noexcept {
        const std::uint32_t needed = (bytes + 7) / 8;
        if (slack == Slack::none) return needed;
        return std::min(object::bitmap_words, (needed + needed / (needed < 256 ? 2 : 4) + 2) & ~1U);
    }
    /// The rest is set to a value that doesn't look like an address.
    static void fill(std::uint64_t* block, std::uint32_t words, const void* data, std::uint32_t bytes) noexcept {
        std::memcpy(block, data, bytes);
        std::memset(reinterpret_cast<std::byte*>(block) + bytes, 0xff, words * std::size_t{8} - bytes);
    }
    /// The entry holds these ids of its only chunk instead. The data lies elsewhere. Strong. Invalidates: the path, if ids or their kind change much.
    void replace(Path& path, std::uint32_t i, const ChunkView& ids, Slack slack) {
        Leaf& leaf = *path.leaf;
        if (ids.ids == 0) {
            tree_.remove(path, i, 1);
            changed();
            return;
        }
        const std::uint64_t before = leaf.ids_in_chunk(i);
        const std::uint32_t bytes = bytes_of(ids);
        const std::uint32_t have = leaf.has_block(i) ? leaf.words(i) : 0;
        if (bytes > 8 && ids.ids != object::chunk_ids && have * 8 >= bytes && have <= 2 * words_for(bytes, slack)) {
            fill(static_cast<std::uint64_t*>(leaf.data(i)), have, ids.data, bytes);
            leaf.keys()[i] = leaf.chunk(i) << 16U | (ids.ids - 1);
            const Kind kind = ids.shape == Shape::values ? Kind::values : ids.shape == Shape::runs ? Kind::runs : Kind::bitmap;
            Tree::describe(leaf, i, kind, have, ids.shape == Shape::runs ? ids.count : 0);
        } else {
            const Entry entry = entry_for(leaf.chunk(i), ids, slack);
            tree_.release(leaf, i);
            Tree::put(leaf, i, entry);
        }
        tree_.add(path, ids.ids - before);
        changed();
        if (ids.ids == object::chunk_ids) tree_.join_full(path, i);
    }

    /// No entry reaches over the border in front of `chunk`.
    void cut(Path& path, std::uint64_t chunk) {
        if (chunk >> 48U != 0) return;
        tree_.locate(path, chunk);
        if (path.index == 0) return;
        std::uint32_t i = path.index - 1;
        const std::uint64_t begin = path.leaf->chunk(i);
        if (begin == chunk || !path.leaf->covers(i, chunk)) return;
        tree_.make_room(path, begin, 1);
        tree_.locate(path, begin);
        i = path.index - 1;
        const std::uint64_t chunks = path.leaf->chunks(i);
        *path.leaf->slot(i) = chunk - begin;
        tree_.add(path, 0 - ((begin + chunks - chunk) << 16U));
        tree_.insert_here(path, Tree::span(chunk, begin + chunks - chunk));
    }
    /// The full chunk gets an entry of its own; the path leads behind it. Strong.
    void isolate(Path& path, std::uint64_t chunk) {
        tree_.locate(path, chunk);
        std::uint64_t begin = path.leaf->chunk(path.index - 1);
        const std::uint64_t end = begin + path.leaf->chunks(path.index - 1);
        const std::uint32_t more = (begin != chunk ? 1U : 0U) + (end != chunk + 1 ? 1U : 0U);
        if (more != 0) {
            tree_.make_room(path, begin, more);
            tree_.locate(path, begin);
        }
        if (begin != chunk) {
            *path.leaf->slot(path.index - 1) = chunk - begin;
            tree_.add(path, 0 - ((end - chunk) << 16U));
            tree_.insert_here(path, Tree::span(chunk, end - chunk));
            ++path.index;
            begin = chunk;
        }
        if (end != chunk + 1) {
            *path.leaf->slot(path.index - 1) = 1;
            tree_.add(path, 0 - ((end - chunk - 1) << 16U));
            tree_.insert_here(path, Tree::span(chunk + 1, end - chunk - 1));
        }
    }
    void merge_chunk(Operation operation, std::uint64_t chunk, const ChunkView& ids, ChunkBuffer& buffer, Slack slack) {
        Path path;
        tree_.locate(path, chunk);
        if (path.index == 0 || !path.leaf->covers(path.index - 1, chunk)) {
            if (operation == Operation::subtract || operation == Operation::intersect) return;
            check_room(ids.ids);
            const Entry entry = entry_for(chunk, ids, slack);
            insert_entry(path, entry);
            if (entry.kind == Kind::full) tree_.join_full(path, path.index);
            return;
        }
        if (path.leaf->kind(path.index - 1) == Kind::full) {
            if (operation == Operation::unite) return;
            isolate(path, chunk);
        }
        const ChunkView own = path.leaf->view(path.index - 1);
        buffer.combine(operation, own, ids);
        if (buffer.view().ids > own.ids) check_room(buffer.view().ids - own.ids);
        replace(path, path.index - 1, buffer.view(), slack);
    }
    void insert_entry(Path& path, const Entry& entry) {
        try {
            tree_.insert(path, entry);
        } catch (...) {
            tree_.release(entry);
            throw;
        }
        changed();
    }
    void change_interval(Operation operation, std::uint64_t first, std::uint64_t last) {
        ChunkBuffer buffer;
        std::uint64_t from = first >> 16U;
        std::uint64_t to = last >> 16U;
        const auto low = static_cast<std::uint16_t>(first);
        const auto high = static_cast<std::uint16_t>(last);
        if (from == to) {
            const IdRun run{low, high};
            merge_chunk(operation, from, object::view_of(run), buffer, Slack::some);
            return;
        }
        if (low != 0) {
            const IdRun run{low, 0xffff};
            merge_chunk(operation, from++, object::view_of(run), buffer, Slack::some);
        }
        if (high != 0xffff) {
            const IdRun run{0, high};
            merge_chunk(operation, to--, object::view_of(run), buffer, Slack::some);
        }
        if (from > to) return;
        Path path;
        erase_chunks(path, from, to);
        if (operation == Operation::unite) {
            tree_.locate(path, from);
            insert_entry(path, Tree::span(from, to - from + 1));
            Tree::raise_next_separator(path, to);
            tree_.join_full(path, path.index);
        }
    }
    void erase_chunks(Path& path, std::uint64_t from, std::uint64_t to) {
        cut(path, from);
        cut(path, to + 1);
        while (true) {
            tree_.locate(path, from);
            std::uint32_t i = path.index;
            if (i != 0 && path.leaf->chunk(i - 1) == from) --i;
            if (path.leaf == nullptr) return;
            if (i == path.leaf->count) {
                if (!Tree::to_next_leaf(path)) return;
                i = 0;
            }
            std::uint32_t count = 0;
            while (i + count < path.leaf->count && path.leaf->chunk(i + count) <= to) ++count;
            if (count == 0) return;
            tree_.remove(path, i, count);
            changed();
        }
    }

    // Two sets.

    /// Walks over the entries of a set; of spans, parts can be taken.
    struct Cursor {
        const Leaf* leaf;
        std::uint32_t i = 0;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;

        explicit Cursor(const Tree& tree) noexcept : leaf(tree.first_leaf()) { enter(); }
        void enter() noexcept {
            if (leaf == nullptr) return;
            begin = leaf->chunk(i);
            end = begin + leaf->chunks(i);
        }
        bool done() const noexcept { return leaf == nullptr; }
        bool full() const noexcept { return leaf->kind(i) == Kind::full; }
        ChunkView view() const noexcept { return leaf->view(i); }
        /// Chunks before `to` are done.
        void advance(std::uint64_t to) noexcept {
            begin = to;
            if (begin != end) return;
            if (++i == leaf->count) {
                leaf = Tree::leaf_or_null(leaf->next);
                i = 0;
            }
            enter();
        }
    };

    /// Appends entries behind everything.
    struct Builder {
        object_id_set& set;
        Path path;
        explicit Builder(object_id_set& target) noexcept : set(target) { set.tree_.locate(path, ~std::uint64_t{0} >> 16U); }

        void append_span(std::uint64_t chunk, std::uint64_t chunks) {
            if (chunks > (max_size() >> 16U) || max_size() - set.size() < chunks << 16U) object::throw_too_many_ids();
            if (path.index != 0 && path.leaf->kind(path.index - 1) == Kind::full) {
                const std::uint32_t i = path.index - 1;
                if (path.leaf->chunk(i) + path.leaf->chunks(i) == chunk) {
                    *path.leaf->slot(i) += chunks;
                    set.tree_.add(path, chunks << 16U);
                    return;
                }
            }
            append(Tree::span(chunk, chunks));
        }
        void append(std::uint64_t chunk, const ChunkView& ids) {
            if (ids.ids == 0) return;
            if (ids.ids == object::chunk_ids) return append_span(chunk, 1);
            set.check_room(ids.ids);
            append(set.entry_for(chunk, ids, Slack::none));
        }
        void append(const Cursor& cursor, std::uint64_t to) {
            if (cursor.full()) {
                append_span(cursor.begin, to - cursor.begin);
            } else {
                append(cursor.begin, cursor.view());
            }
        }

    private:
        void append(const Entry& entry) {
            set.insert_entry(path, entry);
            ++path.index;
        }
    };

    template <bool Shrink = false>
    void append_all(const object_id_set& other) {
        Builder builder(*this);
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
        Builder builder(*this);
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
        replace_by(made);
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
        return leaf.kind(i) == Kind::full ? sizeof(std::uint64_t) : bytes_of(leaf.view(i));
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
        Builder builder(*this);
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
            const std::size_t size = shape == object::SerialisedShape::full ? sizeof(std::uint64_t) : bytes_of(ids);
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

    Tree tree_;
    std::uint64_t changes_ = 0;  ///< so that checked iterators can tell
};

}  // namespace taiyen
