#pragma once
/// What walks over the ids of an object_id_set in ascending order. Ids are computed, so `*` gives a value.
/// With TAIYEN_CHECKED_ITERATORS defined, using one that a change of the set has invalidated stops the program with a message.
/// Complexity: `++` and `--` constant, amortised; `--` within a bitmap looks for the next id.

#include <bit>
#include <cstdint>
#include <iterator>

#include <taiyen/base/check.hpp>
#include <taiyen/object/detail/chunked_ids.hpp>

namespace taiyen {

template <class Allocator>
class TAIYEN_CHECKED_TAG object_id_set;

namespace object {

template <class Allocator>
class TAIYEN_CHECKED_TAG IdIterator {
    using Tree = IdTree<Allocator>;
    using Leaf = typename Tree::Leaf;

public:
    using iterator_category = std::bidirectional_iterator_tag;
    using iterator_concept = std::bidirectional_iterator_tag;
    using value_type = std::int64_t;
    using difference_type = std::int64_t;
    using reference = std::int64_t;
    using pointer = void;

    IdIterator() noexcept = default;
    std::int64_t operator*() const noexcept {
        check_valid();
        return id_with_number(number_);
    }
    IdIterator& operator++() noexcept {
        check_valid();
        if (number_ < run_last_)
            ++number_;
        else
            next();
        return *this;
    }
    IdIterator operator++(int) noexcept {
        IdIterator before = *this;
        ++*this;
        return before;
    }
    IdIterator& operator--() noexcept {
        check_valid();
        previous();
        return *this;
    }
    IdIterator operator--(int) noexcept {
        IdIterator before = *this;
        --*this;
        return before;
    }
    bool operator==(const IdIterator& other) const noexcept {
        check_valid();
        other.check_valid();
        return leaf_ == other.leaf_ && number_ == other.number_;
    }

private:
    friend object_id_set<Allocator>;
    IdIterator(const ChunkedIds<Allocator>& set, const Leaf* leaf, std::uint32_t entry) noexcept : set_(&set), leaf_(leaf), entry_(entry) {
#if defined(TAIYEN_CHECKED_ITERATORS)
        stamp_ = set.changes();
#endif
    }
    void check_valid() const noexcept {
#if defined(TAIYEN_CHECKED_ITERATORS)
        constexpr bool the_set_has_not_changed_since_this_iterator_was_made = true;
        TAIYEN_CHECK((set_ == nullptr || stamp_ == set_->changes()) && the_set_has_not_changed_since_this_iterator_was_made);
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
        if (ids.shape == Shape::values)
            stand_at_value(ids, ids.count - 1);
        else if (ids.shape == Shape::runs)
            stand_at_run(ids, ids.count - 1, ids.runs()[ids.count - 1].last);
        else
            stand_at_bit(ids, last_bit(ids.words(), chunk_ids - 1));
    }
    bool next_bit(const std::uint64_t* words) noexcept {
        while (bits_ == 0) {
            if (++at_ == bitmap_words) return false;
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
            leaf_ = set_->tree().last_leaf();
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
            if (ids.shape == Shape::bitmap && low != 0 && count_below_is_positive(ids.words(), low))
                return stand_at_bit(ids, last_bit(ids.words(), low - 1U));
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
        while (at != 0)
            if (words[--at] != 0) return true;
        return false;
    }

    const ChunkedIds<Allocator>* set_ = nullptr;
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

}  // namespace object
}  // namespace taiyen
