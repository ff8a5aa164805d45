#include "transfer/container_places.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace taiyen::transfer {
namespace {

constexpr ByteCount link_bytes = 8;

}  // namespace

ContainerPlaces::ContainerPlaces(const HeapView& heap, const PointerPlaces& pointers)
    : heap_(heap), pointers_(pointers), proven_(heap.engine.extent()), steps_left_(heap.engine.extent()) {
    heap_.engine.for_each_block([&](const heap::Block& block) {
        const Range owner{block.offset.value, block.offset.value + block.usable_bytes / link_bytes * link_bytes};
        pointers_.visit(owner.begin, owner.end, [&](std::uint64_t place, std::uint64_t, bool) { look_at(place, owner); });
        return true;
    });
}

std::uint64_t ContainerPlaces::word(std::uint64_t place) const { return heap::word_at(heap_.bytes + place); }

std::optional<ContainerPlaces::Range> ContainerPlaces::block_at(std::uint64_t offset) const {
    if (offset >= heap_.engine.extent()) return std::nullopt;
    const auto block = heap_.find_block(offset);
    if (!block) return std::nullopt;
    return Range{block->offset.value, block->offset.value + block->usable_bytes};
}

void ContainerPlaces::look_at(std::uint64_t place, const Range& owner) {
    if (is_own(place, owner)) take(place);
    look_for_short_text(place, owner);
    look_for_table(place, owner);
    const std::uint64_t to = target(place);
    const std::optional<Range> block = block_at(to);
    if (!block) return;
    if (is_link(place, owner, *block)) take(place);
    if (to != block->begin || block->begin == owner.begin) return;  // no container lies in its own elements
    look_for_text(place, owner, *block);
    look_for_vector(place, 1, owner, *block);
    look_for_vector(place, 2, owner, *block);
    look_for_deque(place, owner, *block);
}

/// An empty list or tree leads to itself.
bool ContainerPlaces::is_own(std::uint64_t place, const Range& owner) const {
    const std::uint64_t to = target(place);
    if (to >= owner.begin && to <= place) {
        const auto own = [&](unsigned index) { return owner.has(to, (index + 1) * link_bytes) && leads(to + index * link_bytes, to); };
        const std::uint64_t index = (place - to) / link_bytes;
        if (index < 2) return own(0) && own(1);
        return index < 4 && own(2) && own(3) && word(to + link_bytes) == 0;
    }
    return false;
}

/// The links of a list {next, previous}, and of a tree {colour, parent, left, right}, whose header leads to the root, the first and the last.
bool ContainerPlaces::is_link(std::uint64_t place, const Range& owner, const Range& block) const {
    struct Pair {
        unsigned link;  ///< which word of a node leads on
        unsigned back;  ///< which word there leads back
    };
    constexpr std::array<Pair, 7> pairs{{{0, 1}, {1, 0}, {1, 1}, {1, 2}, {1, 3}, {2, 1}, {3, 1}}};
    const std::uint64_t to = target(place);
    for (const Pair& pair : pairs) {
        const std::uint64_t node = place - pair.link * link_bytes;
        if (place < owner.begin + pair.link * link_bytes || !block.has(to, (pair.back + 1) * link_bytes)) continue;
        const std::uint64_t back = to + pair.back * link_bytes;
        if (back != place && leads(back, node)) return true;
    }
    for (const unsigned link : {2U, 3U}) {
        if (place < owner.begin + link * link_bytes) continue;
        const std::uint64_t header = place - link * link_bytes;
        if (!is_pointer(header + link_bytes)) continue;
        const std::uint64_t root = target(header + link_bytes);
        const std::optional<Range> there = block_at(root);
        if (there && root != header && there->has(root, 4 * link_bytes) && leads(root + link_bytes, header)) return true;
    }
    return false;
}

void ContainerPlaces::take_all(std::uint64_t from, std::uint64_t to) {
    pointers_.visit(round_up(from, link_bytes), to, [this](std::uint64_t place, std::uint64_t, bool) { take(place); });
}

/// {text, length, room of two words} of a string that lies there itself.
void ContainerPlaces::look_for_short_text(std::uint64_t place, const Range& owner) {
    const std::uint64_t room = place + 2 * link_bytes;
    const std::uint64_t length = owner.has(place, 4 * link_bytes) ? word(place + link_bytes) : 2 * link_bytes;
    if (target(place) != room || length >= 2 * link_bytes) return;
    take(place);
    // One of char that leaves the second word unused; letters of other kinds have zeros, or none where this one ends.
    const std::byte* const text = heap_.bytes + room;
    if (length < link_bytes && std::find(text, text + length + 1, std::byte{0}) == text + length) take_all(room + link_bytes, room + 2 * link_bytes);
}

/// {text, length, room, a word that is unused then} of a long string.
void ContainerPlaces::look_for_text(std::uint64_t place, const Range& owner, const Range& block) {
    if (!owner.has(place, 4 * link_bytes)) return;
    const std::uint64_t length = word(place + link_bytes);
    const std::uint64_t room = word(place + 2 * link_bytes);
    const ByteCount bytes = block.end - block.begin;
    if (length > room || room >= bytes) return;
    // What an allocator adds to make a size that it has.
    const ByteCount added = std::max<ByteCount>(bytes < page_bytes ? bytes / 8 : page_bytes, 16);
    for (const unsigned unit : {1U, 2U, 4U}) {
        const ByteCount needed = (room + 1) * unit;
        if (needed > bytes || bytes - needed > added) continue;
        const std::byte* const last = heap_.bytes + block.begin + length * unit;
        if (!std::all_of(last, last + unit, [](std::byte byte) { return byte == std::byte{0}; })) continue;
        take(place);
        take_all(place + 3 * link_bytes, place + 4 * link_bytes);
        take_all(block.begin + (length + 1) * unit, block.end);
        return;
    }
}

/// {begin, end, end of room}; of bits: each of the first two with a number beside it.
void ContainerPlaces::look_for_vector(std::uint64_t place, unsigned words_each, const Range& owner, const Range& block) {
    const std::uint64_t end = place + words_each * link_bytes;
    const std::uint64_t room_end = end + words_each * link_bytes;
    if (!owner.has(room_end, link_bytes) || !is_pointer(end) || !is_pointer(room_end)) return;
    if (target(end) < block.begin || target(end) > target(room_end) || target(room_end) > block.end || target(room_end) == block.begin) return;
    if (words_each == 2) {
        const auto bit = [&](std::uint64_t at) { return static_cast<std::uint32_t>(word(at)); };  // above it there is padding
        if (bit(place + link_bytes) != 0 || bit(end + link_bytes) >= 64) return;
    }
    for (const std::uint64_t at : {place, end, room_end}) take(at);
    take_all(target(end) + (words_each - 1) * link_bytes, block.end);  // the word of the last bits is in use
}

/// {map, places, first {current, begin, end, place}, last {…}}.
void ContainerPlaces::look_for_deque(std::uint64_t place, const Range& owner, const Range& block) {
    constexpr unsigned words = 10;
    if (!owner.has(place, words * link_bytes)) return;
    const std::uint64_t places = word(place + link_bytes);
    if (places == 0 || places > (block.end - block.begin) / link_bytes) return;
    for (unsigned i = 2; i < words; ++i)
        if (!is_pointer(place + i * link_bytes)) return;
    const auto of = [&](unsigned index) { return target(place + index * link_bytes); };
    const std::uint64_t map_end = block.begin + places * link_bytes;
    const std::uint64_t first = of(5);
    const std::uint64_t last = of(9);
    if (first < block.begin || first > last || last >= map_end || first % link_bytes != 0 || last % link_bytes != 0) return;
    if (!leads(first, of(3)) || !leads(last, of(7)) || of(4) - of(3) != of(8) - of(7)) return;
    if (of(2) < of(3) || of(2) > of(4) || of(6) < of(7) || of(6) > of(8)) return;
    take(place);
    for (unsigned i = 2; i < words; ++i) take(place + i * link_bytes);
    take_all(block.begin, block.end);
    take_all(of(3), of(2));
    if (const std::optional<Range> buffer = block_at(of(6))) take_all(of(6), buffer->end);
}

/// {buckets, how many, first node, elements, load, next growth, a bucket of its own}: nodes begin with the next one; a bucket leads to the node in front of its first.
void ContainerPlaces::look_for_table(std::uint64_t place, const Range& owner) {
    constexpr unsigned words = 7;
    if (!owner.has(place, words * link_bytes)) return;
    const std::uint64_t count = word(place + link_bytes);
    const std::uint64_t elements = word(place + 3 * link_bytes);
    const std::uint64_t buckets = target(place);
    const bool is_single = buckets == place + 6 * link_bytes;
    const auto load = std::bit_cast<float>(static_cast<std::uint32_t>(word(place + 4 * link_bytes)));
    if ((is_single ? count != 1 : count < 2) || !(load > 0.001F && load < 1000.0F)) return;
    if (!is_single) {
        const std::optional<Range> block = block_at(buckets);
        if (!block || block->begin != buckets || count > (block->end - block->begin) / link_bytes) return;
    }
    const std::uint64_t before_first = place + 2 * link_bytes;
    std::vector<std::uint64_t> links;
    std::uint64_t at = before_first;
    for (std::uint64_t i = 0; i < elements; ++i) {
        if (steps_left_ == 0 || !is_pointer(at)) return;
        --steps_left_;
        links.push_back(at);
        at = target(at);
        const std::optional<Range> node = block_at(at);
        if (!node || node->begin != at || !node->has(at, 2 * link_bytes)) return;
    }
    if (word(at) != 0) return;
    take(place);
    for (const std::uint64_t link : links) take(link);
    if (elements == 0) return;
    for (std::uint64_t bucket = buckets; bucket < buckets + count * link_bytes; bucket += link_bytes) {
        if (!is_pointer(bucket)) continue;
        const std::uint64_t before = target(bucket);
        if (before == before_first || (before % link_bytes == 0 && before < heap_.engine.extent() && proven_.test(before))) take(bucket);
    }
}

}  // namespace taiyen::transfer
