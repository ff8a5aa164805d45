#include "transfer/pinned_blocks.hpp"

#include <algorithm>

namespace taiyen::transfer {
namespace {

constexpr ByteCount straddling_bytes = sizeof(std::uint64_t) - 1;

}  // namespace

PinnedBlocks::PinnedBlocks(const HeapView& heap, const PointerWalk::State::Coverage& known, const std::vector<HeapOffset>& held,
                           CompactReport& report)
    : heap_(heap), known_(known), report_(report) {
    for (const HeapOffset block : held) pin(block.value, report_.held_blocks);
    pin_undeclared();
    for (const std::uint64_t place : known_.keys)
        if (!pin_at(place, report_.keyed_blocks) && place != 0) pin_at(place - 1, report_.keyed_blocks);  // whose end it is
    pin_suspected();
    offsets_.assign(pinned_.begin(), pinned_.end());
    std::sort(offsets_.begin(), offsets_.end());
}

void PinnedBlocks::pin(std::uint64_t block, std::uint64_t& count) {
    if (!pinned_.insert(block).second) return;
    ++count;
    report_.pinned_bytes += heap_.engine.usable_size(heap_.bytes + block);
}

bool PinnedBlocks::pin_at(std::uint64_t place, std::uint64_t& count) {
    if (place >= heap_.engine.extent()) return false;
    const auto block = heap_.engine.find_block(heap_.bytes + place);
    if (block) pin(block->offset.value, count);
    return block.has_value();
}

void PinnedBlocks::pin_undeclared() {
    std::vector<Part> parts = known_.parts;
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    std::size_t next = 0;
    heap_.engine.for_each_block([&](const heap::Block& block) {
        ++report_.live_blocks;
        report_.live_bytes += block.usable_bytes;
        const std::uint64_t begin = block.offset.value;
        const std::uint64_t end = begin + block.usable_bytes;
        // What a type covers may be the first byte, or the last ones, of an address that it knows nothing of.
        const auto unknown = [&](std::uint64_t from, std::uint64_t to) {
            unknown_.push_back({std::max(begin + straddling_bytes, from) - straddling_bytes, std::min(to + straddling_bytes, end)});
        };
        // Nothing in a pointer-free block leads anywhere.
        const bool is_whole = known_.whole.test(begin) || block.content == heap::Content::pointer_free;
        bool is_known = known_.whole.test(begin);
        std::uint64_t known = begin;
        for (; next < parts.size() && parts[next].begin < end; ++next) {
            is_known = true;
            if (parts[next].begin > known && !is_whole) unknown(known, parts[next].begin);
            known = std::max(known, parts[next].end);
        }
        if (known < end && !is_whole) unknown(known, end);
        if (!is_known) pin(begin, report_.undeclared_blocks);
        return true;
    });
}

void PinnedBlocks::pin_suspected() {
    const ByteCount extent = heap_.engine.extent();
    const auto suspect = [&](std::uint64_t place) {
        if (place == 0 || place > extent) return;
        pin_at(place, report_.suspected_blocks);
        pin_at(place - 1, report_.suspected_blocks);  // whose end it may be
    };
    for (const std::uint64_t place : known_.fixed) suspect(place);
    for (const Part& part : unknown_)
        for (std::uint64_t at = part.begin; at + sizeof(std::uint64_t) <= part.end; ++at) suspect(heap::word_at(heap_.bytes + at) - heap_.base);
}

}  // namespace taiyen::transfer
