#include "inspect/program_words.hpp"

#include <algorithm>
#include <iterator>

namespace taiyen::inspect {
namespace {

/// Whether all bytes before the zeros at the end are UTF-8 that is read; it may begin within a character.
bool is_text(std::uint64_t word) {
    unsigned following = 0;
    for (bool begun = false; word != 0; word >>= 8U) {
        const auto byte = static_cast<unsigned>(word & 0xffU);
        if (byte >= 0x80 && byte < 0xc0) {
            if (following == 0 && begun) return false;
            following -= following != 0 ? 1 : 0;
            continue;
        }
        if (following != 0 || byte < 0x20 || byte == 0x7f || byte >= 0xf8) return false;
        following = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
        begun = true;
    }
    return following == 0;
}

/// Two ints beside each other, the lower one small or round, or a float with few digits: hardly any object begins where a page does.
bool is_pair(std::uint64_t word) {
    constexpr std::uint32_t small = 1U << 26U;
    return static_cast<std::uint32_t>(word) + small < 2 * small || word % 4096 == 0;
}

}  // namespace

void ProgramWords::add(const heap::Block& block, HeapOffset place, std::uint64_t word, std::size_t holder) {
    const Key key{block.usable_bytes, block.usable_bytes <= small_block_max ? place.value - block.offset.value : 0};
    auto at = groups_.find(key);
    if (at == groups_.end()) {
        if (groups_.size() == groups_max) {
            ++unjudged_;
            return;
        }
        at = groups_.emplace(key, Group{}).first;
    }
    Group& group = at->second;
    if (group.words.size() == group_words_max) {
        ++group.more;
    } else if (kept_ == words_max) {
        ++unjudged_;
    } else if (search_ == ProgramSearch::any_process && is_pair(word)) {
        ++group.numbers;
    } else {
        group.words.push_back({word, place, block.offset, holder});
        ++kept_;
    }
}

ProgramWords::Areas ProgramWords::areas_of(const std::vector<Word>& words) {
    std::vector<std::uint64_t> values;
    values.reserve(words.size());
    for (const Word& word : words) values.push_back(word.value);
    std::sort(values.begin(), values.end());
    Areas areas;
    for (std::size_t i = 0; i < values.size();) {
        const std::uint64_t area = values[i] >> area_shift;
        std::size_t count = 0;
        std::size_t distinct = 0;
        std::size_t aligned = 0;
        for (; i < values.size() && values[i] >> area_shift == area; ++i) {
            distinct += count == 0 || values[i] != values[i - 1] ? 1 : 0;
            aligned += values[i] % 8 == 0 ? 1 : 0;
            ++count;
        }
        const bool are_literals = distinct >= 2 && count >= 2 * distinct;
        if (are_literals || (count >= 2 && 4 * aligned >= 3 * count)) areas.emplace(area, are_literals);
    }
    return areas;
}

bool ProgramWords::is_in(const Areas& areas, std::uint64_t word) {
    const auto area = areas.find(word >> area_shift);
    return area != areas.end() && (area->second || word % 8 == 0);
}

ProgramWords::Areas ProgramWords::areas() const {
    Areas all;
    const auto take = [&](const std::vector<Word>& words, std::uint64_t numbers) {
        const Areas found = areas_of(words);
        const auto within =
            static_cast<std::uint64_t>(std::count_if(words.begin(), words.end(), [&](const Word& word) { return is_in(found, word.value); }));
        if (2 * within <= words.size() + numbers) return;
        for (const auto& [area, has_literals] : found) all[area] |= has_literals;
    };
    std::vector<Word> few;
    for (const auto& [key, group] : groups_) {
        if (group.words.size() <= group.numbers) continue;
        const auto text =
            static_cast<std::size_t>(std::count_if(group.words.begin(), group.words.end(), [](const Word& word) { return is_text(word.value); }));
        if (group.words.size() < few_max)
            std::copy_if(group.words.begin(), group.words.end(), std::back_inserter(few), [](const Word& word) { return !is_text(word.value); });
        else if (10 * text < 9 * group.words.size())
            take(group.words, group.numbers);
    }
    take(few, 0);
    return all;
}

ProgramWords::Verdict ProgramWords::judge() {
    Verdict verdict;
    verdict.unjudged = unjudged_;
    std::optional<heap::ProgramMemory> memory;
    Areas guessed;
    if (search_ == ProgramSearch::this_process && kept_ != 0) memory.emplace();
    if (search_ == ProgramSearch::any_process) guessed = areas();
    const auto is_pointer = [&](const Word& word) { return memory ? memory->holds(word.value) : is_in(guessed, word.value); };
    for (const auto& [key, group] : groups_) {
        const auto pointers = static_cast<std::uint64_t>(std::count_if(group.words.begin(), group.words.end(), is_pointer));
        if (2 * pointers <= group.words.size() + group.numbers) continue;
        const Word* first = nullptr;
        for (const Word& word : group.words)
            if ((first == nullptr || word.place.value < first->place.value) && is_pointer(word)) first = &word;
        const std::uint64_t words = pointers + group.more;
        verdict.words += words;
        verdict.found.push_back(
            {first->place, {first->block, key.first}, first->value, words, first->holder, memory ? memory->describe(first->value) : std::string()});
    }
    std::sort(verdict.found.begin(), verdict.found.end(), [](const Found& a, const Found& b) { return a.place.value < b.place.value; });
    return verdict;
}

}  // namespace taiyen::inspect
