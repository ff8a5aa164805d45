#include "ordered/store_node.hpp"

#include <algorithm>

namespace taiyen::ordered {

std::size_t shared_bytes(std::string_view one, std::string_view other) noexcept {
    const std::size_t least = std::min(one.size(), other.size());
    return static_cast<std::size_t>(std::mismatch(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(least), other.begin()).first - one.begin());
}

// Private images.

void StoreNode::begin_image(std::uint32_t level, const Fence& lower, const Fence* upper) noexcept {
    std::uint32_t end = bytes;
    const auto put = [&](const Fence& fence) {
        const auto length = static_cast<std::uint32_t>(fence.block != nullptr ? sizeof fence.block : fence.text.size());
        end -= length;
        const char* const from = fence.block != nullptr ? reinterpret_cast<const char*>(&fence.block) : fence.text.data();
        if (length != 0) std::memcpy(reinterpret_cast<char*>(words_) + end, from, length);
        return fence.block != nullptr ? StoreSlot::outside : length;
    };
    StoreFences fences;
    fences.lower = put(lower);
    fences.lower_offset = end % bytes;
    if (upper != nullptr) fences.upper = put(*upper);
    fences.upper_offset = end % bytes;
    fences.is_last = upper == nullptr;
    words_[3] = fences.word();
    words_[2] = StoreState(level, end, bytes - end, upper == nullptr ? 0 : static_cast<std::uint32_t>(shared_bytes(lower.text, upper->text))).word();
}

bool StoreNode::append_from(const StoreNode& from, std::uint32_t index) noexcept {
    const StoreSlot slot = from.slot(index);
    const auto state = StoreState(words_[2]);
    const std::uint32_t from_prefix = from.state().prefix();
    StoreBlock* const block = from.long_key(slot);
    char buffer[2 * key_inside];
    std::string_view key;
    if (block != nullptr) {
        key = block->text().substr(state.prefix());
    } else {
        const std::size_t added = from_prefix > state.prefix() ? from_prefix - state.prefix() : 0;
        const std::size_t cut = state.prefix() > from_prefix ? state.prefix() - from_prefix : 0;
        if (added + slot.key > key_inside) return false;
        if (added != 0) std::memcpy(buffer, from.lower().data() + state.prefix(), added);
        const std::uint32_t head = __builtin_bswap32(slot.head);
        std::memcpy(buffer + added, &head, std::min<std::size_t>(4, slot.key));
        if (slot.key > 4) std::memcpy(buffer + added + 4, from.at(slot.offset), slot.key - 4);
        key = std::string_view(buffer + cut, added + slot.key - cut);
    }
    const std::uint32_t stored = block != nullptr ? sizeof block : static_cast<std::uint32_t>(key.size() > 4 ? key.size() - 4 : 0);
    if (gap(state) < slot_bytes + stored + slot.value_bytes()) return false;
    add(state.count(), key, block, from.at(slot.value_offset()), slot.value);
    return true;
}

void StoreNode::add(std::uint32_t index, std::string_view rest, StoreBlock* long_key, const char* value, std::uint32_t value_code) noexcept {
    const StoreState before = state();
    StoreSlot added{head_of_rest(rest), 0, long_key != nullptr ? StoreSlot::outside : static_cast<std::uint32_t>(rest.size()), value_code};
    const std::uint32_t body = added.body_bytes();
    added.offset = before.begin() - body;
    write_body(added, rest, long_key, value);
    for (std::uint32_t i = before.count(); i != index; --i) set_slot_word(i, slot_word(i - 1));
    added.offset %= bytes;  // of an empty body at the end
    set_slot_word(index, added.word());
    set_state(before.plus(1, -std::int64_t{body}, body));
}

void StoreNode::remove(std::uint32_t index) noexcept {
    const StoreState before = state();
    const std::uint32_t body = slot(index).body_bytes();
    for (std::uint32_t i = index; i + 1 != before.count(); ++i) set_slot_word(i, slot_word(i + 1));
    set_state(before.plus(-1, 0, -std::int64_t{body}));
}

// Look-up.

namespace {

/// What can't be told since somebody changes the node.
constexpr int torn = 2;

/// How an entry's key compares with one that has the same head: less, the same, greater, or torn.
int compare_rest(const StoreReading& reading, const StoreSlot& slot, std::string_view rest) noexcept {
    const StoreNode& node = *reading.node;
    if (slot.offset + slot.body_bytes() > StoreNode::bytes) return torn;
    if (slot.key == StoreSlot::outside) {
        const auto* const block = reinterpret_cast<const StoreBlock*>(node.load_bytes(slot.offset, 8));
        if (!reading.is_valid()) return torn;
        const int order = block->text().substr(reading.state.prefix()).compare(rest);
        return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    const auto common = static_cast<std::uint32_t>(std::min<std::size_t>(slot.key, rest.size()));
    for (std::uint32_t at = 4; at < common; at += 8) {
        const std::uint32_t count = std::min(8U, common - at);
        const std::uint64_t other = word_of(rest.data() + at, count);
        const std::uint64_t own = node.load_bytes(slot.offset + at - 4, count);
        if (own != other) return __builtin_bswap64(own) < __builtin_bswap64(other) ? -1 : 1;
    }
    return slot.key < rest.size() ? -1 : slot.key > rest.size() ? 1 : 0;
}

}  // namespace

std::optional<StorePlace> search(const StoreReading& reading, std::string_view rest) noexcept {
    const StoreNode& node = *reading.node;
    const std::uint32_t head = head_of_rest(rest);
    const std::uint32_t count = reading.state.count();
    std::uint32_t first = 0;
    for (std::uint32_t left = count; left != 0;) {  // without a branch to guess
        const std::uint32_t half = (left + 1) / 2;
        first += node.head(first + half - 1) < head ? half : 0;
        left -= half;
    }
    // Of equal heads mostly there is one.
    std::uint32_t last = count;
    for (std::uint32_t step = 1; first + step - 1 < count; step *= 2) {
        if (node.head(first + step - 1) > head) {
            last = first + step - 1;
            break;
        }
    }
    while (first < last) {
        const std::uint32_t middle = (first + last) / 2;
        const StoreSlot slot = node.slot(middle);
        const int order = slot.head != head ? (slot.head < head ? -1 : 1) : compare_rest(reading, slot, rest);
        if (order == torn) return std::nullopt;
        if (order == 0) return StorePlace{middle, true};
        if (order < 0)
            first = middle + 1;
        else
            last = middle;
    }
    return StorePlace{first, false};
}

}  // namespace taiyen::ordered
