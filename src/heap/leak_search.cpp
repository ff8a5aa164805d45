#include "heap/leak_search.hpp"

#include <algorithm>

#include "heap/word_walk.hpp"

namespace taiyen::heap {

// Bytes that the memory checkers keep others from may lie in a root region, and other threads' variables.
[[gnu::no_sanitize_address]] [[gnu::no_sanitize_thread]] [[gnu::noinline]] std::uintptr_t LeakSearch::word_at(std::uintptr_t address) const {
    std::uintptr_t word = *reinterpret_cast<const volatile std::uintptr_t*>(address);
    tool_defined(tool_, &word, sizeof word);
    return word;
}

void LeakSearch::sort() {
    if (sorted_) return;
    std::sort(blocks_.begin(), blocks_.end(), [](const Block& a, const Block& b) { return a.begin < b.begin; });
    sorted_ = true;
}

LeakSearch::Block* LeakSearch::find(std::uintptr_t address) {
    if (blocks_.empty() || address < blocks_.front().begin) return nullptr;
    const auto behind =
        std::upper_bound(blocks_.begin(), blocks_.end(), address, [](std::uintptr_t at, const Block& block) { return at < block.begin; });
    Block& block = *(behind - 1);
    return address - block.begin < block.bytes ? &block : nullptr;
}

template <class Visit>
void LeakSearch::for_each_reference(std::uintptr_t begin, ByteCount bytes, const Visit& visit) {
    const auto words = [this](std::uintptr_t at) { return word_at(at); };
    for_each_word(words, round_up(begin, word_bytes), begin + bytes, [&](std::uintptr_t at, std::uintptr_t value) {
        if (Block* const block = find(value)) visit(*block);
        if (links_ != Links::distances) return;
        if (Block* const block = find(distance_target(at, value))) visit(*block);
    });
}

void LeakSearch::mark(Block& first) {
    const auto open = [this](Block& block) {
        if (block.reached) return;
        block.reached = true;
        ++marked_;
        marked_bytes_ += block.bytes;
        open_.push_back(&block);
    };
    open(first);
    while (!open_.empty()) {
        const Block& next = *open_.back();
        open_.pop_back();
        for_each_reference(next.begin, next.bytes, open);
    }
}

void LeakSearch::reach_from(const void* begin, ByteCount bytes) {
    sort();
    for_each_reference(reinterpret_cast<std::uintptr_t>(begin), bytes, [this](Block& block) { mark(block); });
}

void LeakSearch::reach(const void* address) {
    sort();
    if (Block* const block = find(reinterpret_cast<std::uintptr_t>(address))) mark(*block);
}

std::vector<LeakSearch::Leak> LeakSearch::leaks() {
    sort();
    for (const Block& block : blocks_)
        if (!block.reached)
            for_each_reference(block.begin, block.bytes, [&block](Block& other) {
                if (&other != &block) other.referred = true;
            });
    std::vector<Leak> found;
    const auto take = [&](Block& block) {
        marked_ = 0;
        marked_bytes_ = 0;
        mark(block);
        found.push_back({reinterpret_cast<const std::byte*>(block.begin), block.bytes, marked_ - 1, marked_bytes_ - block.bytes});
    };
    for (Block& block : blocks_)
        if (!block.reached && !block.referred) take(block);
    for (Block& block : blocks_)  // rings
        if (!block.reached) take(block);
    std::sort(found.begin(), found.end(), [](const Leak& a, const Leak& b) { return a.block < b.block; });
    return found;
}

}  // namespace taiyen::heap
