#include "ordered/store_cursor.hpp"

#include <algorithm>

namespace taiyen::ordered {

void StoreCursor::load(std::string_view key, bool before, bool from_end) {
    is_there_ = false;
    guard_.reset();
    guard_.emplace();
    tree_.copy_leaf(key, before, from_end, leaf_);
}

StorePlace StoreCursor::place_of(std::string_view key) const noexcept {
    const StoreReading reading{const_cast<StoreNode*>(&leaf_), 0, leaf_.state()};
    return *search(reading, key.substr(reading.state.prefix()));
}

bool StoreCursor::show() {
    const StoreSlot slot = leaf_.slot(at_);
    if (const StoreBlock* const block = leaf_.long_key(slot)) {
        key_view_ = block->text();
    } else {
        key_.assign(leaf_.lower().substr(0, leaf_.state().prefix()));
        const std::uint32_t head = __builtin_bswap32(slot.head);
        key_.append(reinterpret_cast<const char*>(&head), std::min(4U, slot.key));
        if (slot.key > 4) key_.append(leaf_.at(slot.offset), slot.key - 4);
        key_view_ = key_;
    }
    return is_there_ = true;
}

bool StoreCursor::settle_forward() {
    while (at_ == count()) {
        const auto upper = leaf_.upper();
        if (!upper) return is_there_ = false;
        bound_.assign(*upper);
        load(bound_, false, false);
        at_ = place_of(bound_).index;
    }
    return show();
}

bool StoreCursor::settle_backward() {
    while (at_ == 0) {
        bound_.assign(leaf_.lower());
        if (bound_.empty()) return is_there_ = false;
        load(bound_, true, false);
        at_ = place_of(bound_).index;
    }
    --at_;
    return show();
}

bool StoreCursor::seek(std::string_view key) {
    bound_.assign(key);
    load(bound_, false, false);
    at_ = place_of(bound_).index;
    return settle_forward();
}

bool StoreCursor::seek_at_most(std::string_view key) {
    bound_.assign(key);
    load(bound_, false, false);
    const StorePlace place = place_of(bound_);
    at_ = place.index + (place.is_same ? 1 : 0);
    return settle_backward();
}

bool StoreCursor::seek_last() {
    load({}, false, true);
    at_ = count();
    return settle_backward();
}

bool StoreCursor::next() {
    ++at_;
    return settle_forward();
}

bool StoreCursor::previous() { return settle_backward(); }

std::string_view StoreCursor::value() const noexcept {
    const StoreSlot slot = leaf_.slot(at_);
    if (const StoreBlock* const block = leaf_.long_value(slot)) return block->text();
    return {leaf_.at(slot.value_offset()), slot.value};
}

std::uint64_t StoreCursor::count_before(std::optional<std::string_view> to) {
    std::uint64_t keys = 0;
    while (is_there_) {
        const auto upper = leaf_.upper();
        std::uint32_t end = count();
        if (to && *to <= leaf_.lower())
            end = at_;
        else if (to && (!upper || *to < *upper))
            end = std::max(at_, place_of(*to).index);
        keys += end - at_;
        if (end != count()) break;
        at_ = end;
        settle_forward();
    }
    return keys;
}

}  // namespace taiyen::ordered
