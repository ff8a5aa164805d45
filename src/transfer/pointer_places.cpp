#include "transfer/pointer_places.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace transfer {
namespace {

std::uint64_t word_at(const void* place) {
    std::uint64_t value = 0;
    std::memcpy(&value, place, sizeof value);
    return value;
}

}  // namespace

std::uint16_t PointerPlaces::patch(PageNumber page, std::span<std::byte> image, const Relocation& relocation) {
    std::uint16_t count = 0;
    const std::uint64_t first = page.value * page_bytes;
    for (std::uint64_t index = 0; index < PlaceBits::page_words; ++index) {
        for (std::uint64_t left = pointers_.word(page.value * PlaceBits::page_words + index); left != 0; left &= left - 1) {
            const std::uint64_t at = index * PlaceBits::word_span + static_cast<unsigned>(std::countr_zero(left)) * PlaceBits::place_bytes;
            const std::uint64_t value = moved(relocation, word_at(image.data() + at), ends_.test(first + at));
            std::memcpy(image.data() + at, &value, sizeof value);
            ++count;
        }
    }
    return count;
}

std::vector<PointerFinder::Page> PointerPlaces::pages() const {
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

std::optional<std::uint64_t> PointerWalk::State::offset_of_word(const void* word) const {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(word) - heap.base;
    if (offset >= heap.engine.extent() || offset % 8 != 0) return std::nullopt;
    return offset;
}

void PointerWalk::State::doubt(std::uint64_t place, std::uint64_t value) {
    const auto target = words.ambiguity(value);
    if (!target) return;
    ++report.ambiguous_words;
    if (report.ambiguous.size() < listed_max) report.ambiguous.push_back({place, value, *target});
}

void PointerWalk::State::finish(PointerWalk& walk) {
    // A list by hand comes in the order of its links: what leads on is put behind what waits.
    for (std::size_t next = 0; next < waiting.size(); ++next) {
        const Target target = waiting[next];
        target.step(reinterpret_cast<void*>(heap.base + target.offset), walk);
        if (next >= 4096 && next * 2 > waiting.size()) {
            waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(next) + 1);
            next = ~std::size_t{0};
        }
    }
    waiting.clear();
}

bool PointerWalk::pointer(const void* word) {
    const std::uint64_t value = transfer::word_at(word);
    const auto place = state_.offset_of_word(word);
    if (value == 0 || !place) return false;
    if (!state_.words.is_pointer(value)) {
        state_.doubt(*place, value);
        return false;
    }
    state_.places.add(*place, false);
    return true;
}

void PointerWalk::end(const void* word, const void* first) {
    const std::uint64_t value = transfer::word_at(word);
    const auto place = state_.offset_of_word(word);
    if (value == 0 || !place) return;
    if (!state_.words.is_pointer(value)) {
        state_.doubt(*place, value);
        return;
    }
    state_.places.add(*place, value != reinterpret_cast<std::uintptr_t>(first));
}

void PointerWalk::reach(const void* address) {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - state_.heap.base;
    if (offset >= state_.heap.engine.extent()) return;
    const auto block = state_.heap.find_block(offset);
    if (block && state_.reached.set(block->offset.value)) state_.order.push_back(block->offset.value);
}

void PointerWalk::later(const void* object, std::size_t bytes, Step step) {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - state_.heap.base;
    if (offset >= state_.heap.engine.extent()) return;
    const auto block = state_.heap.find_block(offset);
    // Too small for what it should be: the pointer is right, what it leads to is something else.
    if (!block || block->offset.value + block->usable_bytes - offset < bytes) return;
    if (state_.reached.set(block->offset.value)) state_.order.push_back(block->offset.value);
    // Objects that share 8 bytes hold no pointer: one of them may stand for all.
    const auto seen = state_.seen.try_emplace(step, state_.heap.engine.extent()).first;
    if (seen->second.set(offset)) state_.waiting.push_back({offset, step});
}

void PointerWalk::keyed_by_address(bool hashed) noexcept { (hashed ? state_.hashed : state_.ordered) = true; }

void PointerWalk::throw_unknown_layout(std::string_view container) const {
    throw Error(
        errc::type_mismatch, state_.heap.path,
        "in '" + state_.name + "', a " + std::string(container) +
            " isn't laid out as this build's standard library does it; the heap was written by another one, or is damaged: move it conservatively");
}

}  // namespace taiyen
