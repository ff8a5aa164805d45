#include "transfer/pointer_places.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace transfer {
std::uint16_t PointerPlaces::patch(PageNumber page, std::span<std::byte> image, const Relocation& relocation) const {
    std::uint16_t count = 0;
    const std::uint64_t first = page.value * page_bytes;
    for (std::uint64_t index = 0; index < PlaceBits::page_words; ++index) {
        for (std::uint64_t left = pointers_.word(page.value * PlaceBits::page_words + index); left != 0; left &= left - 1) {
            const std::uint64_t at = index * PlaceBits::word_span + static_cast<unsigned>(std::countr_zero(left)) * PlaceBits::place_bytes;
            const std::uint64_t before = heap::word_at(image.data() + at);
            const std::uint64_t value = moved(relocation, before, ends_.test(first + at));
            std::memcpy(image.data() + at, &value, sizeof value);
            if (value != before) ++count;
        }
    }
    return count;
}

std::vector<PointerPlaces::Page> PointerPlaces::pages() const {
    std::vector<Page> all;
    for (std::uint64_t part = 0; part < pages_.size(); ++part) {
        for (std::uint64_t left = pages_[part]; left != 0; left &= left - 1) {
            const std::uint64_t page = part * 64 + static_cast<unsigned>(std::countr_zero(left));
            unsigned count = 0;
            for (std::uint64_t index = 0; index < PlaceBits::page_words; ++index)
                count += static_cast<unsigned>(std::popcount(pointers_.word(page * PlaceBits::page_words + index)));
            all.push_back({page, static_cast<std::uint16_t>(count)});
        }
    }
    return all;
}

}  // namespace transfer

std::optional<std::uint64_t> PointerWalk::State::place_of_pointer(const void* word, std::uint64_t value) {
    if (value == 0) return std::nullopt;
    const std::uint64_t place = offset_of(word);
    const bool points = words.is_pointer(value);
    std::optional<AmbiguousTarget> doubted = points ? std::nullopt : words.ambiguity(value);
    if (place >= heap.engine.extent()) {
        if (!points) return std::nullopt;
        throw Error(errc::type_mismatch, heap.path,
                    "the description of something in '" + name +
                        "' names a pointer that is no part of it, as a copy would be: the new address would be lost; " + "visit the member itself");
    }
    if (points && place % 8 != 0) doubted = AmbiguousTarget::unaligned;
    if (points && doubted && coverage != nullptr) coverage->fixed.push_back(value - heap.base);
    if (doubted) {
        ++report.ambiguous_words;
        if (report.ambiguous.size() < listed_max) report.ambiguous.push_back({place, value, *doubted});
    }
    return points && !doubted ? std::optional(place) : std::nullopt;
}

ByteCount PointerWalk::State::room_at(std::uint64_t offset) const {
    if (offset >= heap.engine.extent()) return 0;
    const auto block = heap.find_block(offset);
    return block ? block->offset.value + block->usable_bytes - offset : 0;
}

std::optional<heap::Block> PointerWalk::State::meet(std::uint64_t offset) {
    if (offset >= heap.engine.extent()) return std::nullopt;
    const auto block = heap.find_block(offset);
    if (block && reached.set(block->offset.value)) order.push_back(block->offset.value);
    return block;
}

void PointerWalk::State::reach(std::uint64_t offset) {
    const auto block = meet(offset);
    if (block && coverage != nullptr) coverage->whole.set(block->offset.value);
}

void PointerWalk::State::reach_part(std::uint64_t offset, ByteCount bytes) {
    const auto block = meet(offset);
    if (!block || bytes == 0 || coverage == nullptr || coverage->whole.test(block->offset.value)) return;
    coverage->parts.push_back({offset, offset + std::min(bytes, block->offset.value + block->usable_bytes - offset)});
}

void PointerWalk::State::finish(PointerWalk& walk) {
    // A list by hand comes in the order of its links: what leads on is put behind what waits.
    for (std::size_t next = 0; next < waiting.size(); ++next) {
        const Waiting now = waiting[next];
        auto* const first = reinterpret_cast<std::byte*>(heap.base + now.first.offset);
        for (std::size_t n = 0; n < now.count; ++n) now.first.step(first + n * now.bytes_each, walk);
        if (next >= 4096 && next * 2 > waiting.size()) {
            waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(next) + 1);
            next = ~std::size_t{0};
        }
    }
    waiting.clear();
}

void PointerWalk::count_values(std::uint64_t more) {
    constexpr std::uint64_t values_of_a_byte = 4;  // that lie in each other
    const std::uint64_t most = values_of_a_byte * state_.heap.engine.extent();
    if (more > most || (state_.values += more) > most) throw_unknown_layout("value");
}

bool PointerWalk::lies_in_heap(const void* place) const noexcept { return state_.offset_of(place) < state_.heap.engine.extent(); }

bool PointerWalk::pointer(const void* word) {
    const std::uint64_t value = heap::word_at(word);
    const auto place = state_.place_of_pointer(word, value);
    if (place) state_.places.add(*place, false);
    if (place && state_.within_key) state_.coverage->keys.push_back(value - state_.heap.base);
    return place.has_value();
}

bool PointerWalk::plain_pointer(const void* word) {
    if (!pointer(word)) return false;
    const std::uint64_t offset = heap::word_at(word) - state_.heap.base;
    if (state_.coverage == nullptr || offset == 0) return true;
    const auto before = state_.heap.find_block(offset - 1);
    if (before && before->offset.value + before->usable_bytes == offset) {
        state_.coverage->fixed.push_back(offset - 1);
        state_.coverage->fixed.push_back(offset);
    }
    return true;
}

void PointerWalk::end(const void* word, const void* first) {
    const std::uint64_t value = heap::word_at(word);
    if (const auto place = state_.place_of_pointer(word, value)) state_.places.add(*place, value != reinterpret_cast<std::uintptr_t>(first));
}

void PointerWalk::reach(const void* address) { state_.reach(state_.offset_of(address)); }

void PointerWalk::part(const void* address, std::size_t bytes) { state_.reach_part(state_.offset_of(address), bytes); }

void PointerWalk::reach_elements(const void* first, std::size_t count, std::size_t bytes_each, std::size_t alignment, std::string_view container) {
    const std::uint64_t offset = state_.offset_of(first);
    if (count > state_.room_at(offset) / bytes_each || (state_.heap.base + offset) % alignment != 0) throw_unknown_layout(container);
    state_.reach(offset);
}

void PointerWalk::later(const void* object, std::size_t bytes, Step step) {
    const std::uint64_t offset = state_.offset_of(object);
    // Too small for what it should be: the pointer is right, what it leads to is something else.
    if (state_.room_at(offset) < bytes) return;
    state_.reach_part(offset, bytes);
    // Objects that share 8 bytes hold no pointer: one of them may stand for all.
    const auto seen = state_.seen.try_emplace(step, state_.heap.engine.extent()).first;
    if (seen->second.set(offset)) state_.waiting.push_back({{offset, step}, bytes, 1});
}

void PointerWalk::later(const void* first, std::size_t bytes_each, std::size_t alignment, Step step, std::size_t count) {
    if (count == 0) return;
    const std::uint64_t offset = state_.offset_of(first);
    if (count > state_.room_at(offset) / bytes_each || (state_.heap.base + offset) % alignment != 0)
        throw Error(errc::type_mismatch, state_.heap.path, offset,
                    "the description of something in '" + state_.name + "' leads to an array of " + std::to_string(count) +
                        " elements where no live block has room for it");
    if (count == 1) return later(first, bytes_each, step);
    state_.reach_part(offset, count * bytes_each);
    std::size_t& seen = state_.seen_arrays[step][offset];
    if (count > seen) state_.waiting.push_back({{offset, step}, bytes_each, count});
    seen = std::max(seen, count);
}

void PointerWalk::keyed_by_address(bool hashed) noexcept { (hashed ? state_.hashed : state_.ordered) = true; }

bool PointerWalk::within_key(bool within) noexcept { return state_.within_key = within && state_.coverage != nullptr; }

void PointerWalk::throw_unknown_layout(std::string_view container) const {
    throw Error(
        errc::type_mismatch, state_.heap.path,
        "in '" + state_.name + "', a " + std::string(container) +
            " isn't laid out as this build's standard library does it; the heap was written by another one, or is damaged: move it conservatively");
}

}  // namespace taiyen
