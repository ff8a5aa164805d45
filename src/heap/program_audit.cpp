#include "heap/program_audit.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace taiyen::heap {

void ProgramAudit::look_at(HeapOffset offset, ByteCount length) {
    constexpr ByteCount group = 8 * sizeof(std::uint64_t);
    const std::byte* const begin = reinterpret_cast<const std::byte*>(core_.ranges().durable) + offset.value;
    const auto word_at = [&](ByteCount at) {
        std::uint64_t word;
        std::memcpy(&word, begin + at, sizeof word);
        return word;
    };
    const auto each_word = [&](ByteCount from, ByteCount to) {
        for (ByteCount at = from; at < to; at += sizeof(std::uint64_t))
            if (const std::uint64_t word = word_at(at); ProgramMemory::may_hold(word)) count({offset.value + at}, word);
    };
    ByteCount at = 0;
    for (; at + group <= length; at += group) {
        unsigned hits = 0;
        for (ByteCount word = 0; word < group; word += sizeof(std::uint64_t))
            hits |= static_cast<unsigned>(ProgramMemory::may_hold(word_at(at + word)));
        if (hits != 0) [[unlikely]]
            each_word(at, at + group);
    }
    each_word(at, length);
}

void ProgramAudit::count(HeapOffset where, std::uintptr_t value) {
    const auto block = core_.engine().find_block(reinterpret_cast<const void*>(core_.ranges().durable + where.value));
    if (!block || block->content == Content::pointer_free) return;
    if (!memory_) memory_.emplace();
    Words& words = by_size_[block->usable_bytes];
    if (!memory_->holds(value)) {
        ++words.numbers;
    } else if ((!linked_ || leads_back(value, where)) && words.pointers++ == 0) {
        words.where = where;
        words.target = value;
    }
}

bool ProgramAudit::leads_back(std::uintptr_t target, HeapOffset where) const {
    constexpr std::uintptr_t head_bytes = 64;  // of an object, before its pointer
    std::uint64_t there[4];
    if (!vm::try_copy(reinterpret_cast<const void*>(target), there, sizeof there)) return false;
    const std::uintptr_t place = core_.ranges().durable + where.value;
    return std::any_of(std::begin(there), std::end(there), [&](std::uint64_t value) { return place - value <= head_bytes; });
}

std::vector<ProgramAudit::Finding> ProgramAudit::findings() const {
    std::vector<Finding> found;
    for (const auto& [size, words] : by_size_)
        if (words.pointers > words.numbers) found.push_back({words.where, words.target, words.pointers});
    return found;
}

}  // namespace taiyen::heap
