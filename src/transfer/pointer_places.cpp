#include "transfer/pointer_places.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checksum.hpp"

namespace taiyen {
namespace transfer {
namespace {

constexpr ByteCount mark_bytes = 8;

}  // namespace

void PointerPlaces::add(std::uint64_t place, bool is_end) {
    const std::uint64_t page = place / page_bytes;
    if (page != newest_page_ || newest_ == nullptr) {
        newest_ = &pages_[page];  // stays where it is while others come
        newest_page_ = page;
    }
    const std::uint64_t word = place % page_bytes / mark_bytes;
    newest_->pointers[word / 64] |= std::uint64_t{1} << (word % 64);
    if (is_end) newest_->ends[word / 64] |= std::uint64_t{1} << (word % 64);
}

const PointerPlaces::Marks* PointerPlaces::find(std::uint64_t page) const {
    const auto found = pages_.find(page);
    return found == pages_.end() ? nullptr : &found->second;
}

std::uint16_t PointerPlaces::patch(PageNumber page, std::span<std::byte> image, const Relocation& relocation) {
    const Marks* const marks = find(page.value);
    std::uint16_t count = 0;
    for (unsigned part = 0; marks != nullptr && part < marks->pointers.size(); ++part) {
        for (std::uint64_t left = marks->pointers[part]; left != 0; left &= left - 1) {
            const auto bit = static_cast<unsigned>(std::countr_zero(left));
            std::byte* const at = image.data() + (part * 64 + bit) * mark_bytes;
            std::uint64_t value = 0;
            std::memcpy(&value, at, sizeof value);
            value = moved(relocation, value, (marks->ends[part] >> bit & 1U) != 0);
            std::memcpy(at, &value, sizeof value);
            ++count;
        }
    }
    return count;
}

void PointerPlaces::visit(std::uint64_t from, std::uint64_t to, const Visit& visit) const {
    for (std::uint64_t page = from / page_bytes; page * page_bytes < to; ++page) {
        const Marks* const marks = find(page);
        for (unsigned part = 0; marks != nullptr && part < marks->pointers.size(); ++part) {
            for (std::uint64_t left = marks->pointers[part]; left != 0; left &= left - 1) {
                const auto bit = static_cast<unsigned>(std::countr_zero(left));
                const std::uint64_t place = page * page_bytes + (part * 64 + bit) * mark_bytes;
                if (place < from || place >= to) continue;
                std::uint64_t value = 0;
                std::memcpy(&value, bytes_ + place, sizeof value);
                visit(place, value, (marks->ends[part] >> bit & 1U) != 0);
            }
        }
    }
}

std::vector<PointerFinder::Page> PointerPlaces::pages() const {
    std::vector<Page> all;
    all.reserve(pages_.size());
    for (const auto& [number, marks] : pages_) {
        unsigned count = 0;
        for (const std::uint64_t part : marks.pointers) count += static_cast<unsigned>(std::popcount(part));
        all.push_back({number, static_cast<std::uint16_t>(count)});
    }
    std::sort(all.begin(), all.end(), [](const Page& a, const Page& b) { return a.number < b.number; });
    return all;
}

}  // namespace transfer

std::size_t PointerWalk::State::Hash::operator()(const Target& target) const noexcept {
    return static_cast<std::size_t>(mix(target.offset, reinterpret_cast<std::uintptr_t>(target.step)));
}

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
    std::uint64_t value = 0;
    std::memcpy(&value, word, sizeof value);
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
    std::uint64_t value = 0;
    std::memcpy(&value, word, sizeof value);
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
    const auto block = state_.heap.engine.find_block(state_.heap.bytes + offset);
    if (block && state_.reached.insert(block->offset.value).second) state_.order.push_back(block->offset.value);
}

void PointerWalk::later(const void* object, std::size_t bytes, Step step) {
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(object) - state_.heap.base;
    if (offset >= state_.heap.engine.extent()) return;
    const auto block = state_.heap.engine.find_block(state_.heap.bytes + offset);
    // Too small for what it should be: the pointer is right, what it leads to is something else.
    if (!block || block->offset.value + block->usable_bytes - offset < bytes) return;
    reach(object);
    if (state_.seen.insert({offset, step}).second) state_.waiting.push_back({offset, step});
}

void PointerWalk::keyed_by_address(bool hashed) noexcept { (hashed ? state_.hashed : state_.ordered) = true; }

void PointerWalk::throw_unknown_layout(std::string_view container) const {
    throw Error(
        errc::type_mismatch, state_.heap.path,
        "in '" + state_.name + "', a " + std::string(container) +
            " isn't laid out as this build's standard library does it; the heap was written by another one, or is damaged: move it conservatively");
}

}  // namespace taiyen
