#pragma once
/// The walk over the words of a heap among which references are looked for: of leaks, loans, pointers that lead out, pointers that move.
///
/// (W1) A word is 8 bytes at a place that is a multiple of 8, as `from` is. What is no whole word at the end is left out.
/// What is walked, which words count and what is asked about them is the caller's policy. Where a word leads: links.hpp.
/// Thread rule: as the heap's whose words they are.

#include <cstdint>
#include <cstring>

#include <taiyen/base/units.hpp>

namespace taiyen::heap {

constexpr ByteCount word_bytes = sizeof(std::uint64_t);

inline std::uint64_t word_at(const void* address) noexcept {
    std::uint64_t word;
    std::memcpy(&word, address, sizeof word);
    return word;
}
inline std::uint64_t word_at(std::uintptr_t address) noexcept { return word_at(reinterpret_cast<const void*>(address)); }

/// Reads words by their distance from `begin`.
struct WordsFrom {
    const std::byte* begin;
    std::uint64_t operator()(std::uint64_t place) const noexcept { return word_at(begin + place); }
};

/// Calls `visit(place, word)` for each word of [from, to). `words(place)` reads one.
template <class Words, class Visit>
void for_each_word(const Words& words, std::uint64_t from, std::uint64_t to, const Visit& visit) {
    const std::uint64_t end = to / word_bytes * word_bytes;
    for (std::uint64_t place = from; place < end; place += word_bytes) visit(place, words(place));
}

/// The same where few words count: eight are asked at a time without a branch between them. Ends with the first for which `is_found(place, word)`; whether there was one.
template <class Words, class MayCount, class IsFound>
bool find_word(const Words& words, std::uint64_t from, std::uint64_t to, const MayCount& may_count, const IsFound& is_found) {
    constexpr ByteCount group = 8 * word_bytes;
    const auto look_at = [&](std::uint64_t first, std::uint64_t end) {
        for (std::uint64_t place = first; place + word_bytes <= end; place += word_bytes)
            if (const std::uint64_t word = words(place); may_count(word) && is_found(place, word)) return true;
        return false;
    };
    std::uint64_t place = from;
    for (; place + group <= to; place += group) {
        unsigned hits = 0;
        for (ByteCount at = 0; at < group; at += word_bytes) hits |= static_cast<unsigned>(may_count(words(place + at)));
        if (hits != 0 && look_at(place, place + group)) [[unlikely]]
            return true;
    }
    return look_at(place, to);
}

}  // namespace taiyen::heap
