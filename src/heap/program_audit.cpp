#include "heap/program_audit.hpp"

#include <algorithm>
#include <iterator>

#include "heap/word_walk.hpp"

namespace taiyen::heap {

void ProgramAudit::look_at(HeapOffset offset, ByteCount length) {
    const WordsFrom words{reinterpret_cast<const std::byte*>(core_.ranges().durable)};
    find_word(words, offset.value, offset.value + length, ProgramMemory::may_hold, [&](std::uint64_t place, std::uint64_t word) {
        count({place}, word);
        return false;
    });
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
