#include "transfer/relocation_words.hpp"

#include <cstring>

#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {
namespace {

constexpr ByteCount word_bytes = 8;
constexpr std::uint64_t told_step = std::uint64_t{1} << 22U;

}  // namespace

RelocationWords::RelocationWords(const HeapView& heap)
    : heap_(heap), bytes_(heap.bytes), base_(heap.base), range_bytes_(heap.range_bytes()), extent_(heap.engine.extent()),
      survey_(heap.metadata, heap.capacity) {}

std::uint64_t RelocationWords::word(std::uint64_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_ + offset, sizeof value);
    return value;
}

bool RelocationWords::lies_in_block(std::uint64_t offset, Lately& lately) const {
    if (!lately || offset - lately->offset.value >= lately->usable_bytes) {
        const auto found = heap_.find_block(offset);
        if (!found) return false;
        lately = found;
    }
    return true;
}

bool RelocationWords::is_pointer(std::uint64_t value) {
    const std::uint64_t target = value - base_;
    if (target > extent_) return false;
    if (target < extent_ && lies_in_block(target, target_)) return true;
    // The end of a block is nobody's first byte here.
    return target != 0 && lies_in_block(target - 1, target_) && target_->offset.value + target_->usable_bytes == target;
}

std::optional<AmbiguousTarget> RelocationWords::ambiguity(std::uint64_t value) {
    const std::uint64_t target = value - base_;
    if (target >= range_bytes_) return std::nullopt;
    if (target >= extent_) return AmbiguousTarget::beyond;
    return survey_.is_free({target}) ? AmbiguousTarget::free_space : AmbiguousTarget::metadata;
}

void RelocationWords::look_at(const heap::Block& block, PointerPlaces& places, const PlaceBits* known, RebaseReport& report, std::size_t listed_max) {
    const std::uint64_t end = block.offset.value + block.usable_bytes / word_bytes * word_bytes;
    const auto doubt = [&](std::uint64_t place, std::uint64_t value, AmbiguousTarget target) {
        ++report.ambiguous_words;
        if (report.ambiguous.size() < listed_max) report.ambiguous.push_back({place, value, target});
    };
    std::uint64_t before = 0;
    bool before_settled = true;  // it is a pointer, or known to be none; nothing straddles the block's beginning
    for (std::uint64_t place = block.offset.value; place < end; place += word_bytes) {
        const std::uint64_t value = word(place);
        bool settled = known != nullptr && known->test(place);
        if (!settled && value - base_ < range_bytes_) {
            settled = is_pointer(value);
            if (settled)
                places.add(place, false);
            else if (const auto target = ambiguity(value))
                doubt(place, value, *target);
        }
        if (!before_settled && !settled) {
            // What begins in the word before and ends in this one.
            for (unsigned byte = 1; byte < word_bytes; ++byte) {
                const std::uint64_t straddling = before >> (8 * byte) | value << (64 - 8 * byte);
                if (straddling - base_ < range_bytes_ && is_pointer(straddling))
                    doubt(place - word_bytes + byte, straddling, AmbiguousTarget::unaligned);
            }
        }
        before = value;
        before_settled = settled;
    }
}

void RelocationWords::find(PointerPlaces& places, const PlaceBits* known, RebaseReport& report, std::size_t listed_max,
                           const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    std::uint64_t done = 0;
    std::uint64_t told = 0;
    heap_.engine.for_each_block([&](const heap::Block& block) {
        if (block.content == heap::Content::any) look_at(block, places, known, report, listed_max);
        done += block.usable_bytes;
        if (progress && done - told >= told_step) {
            told = done;
            progress(done, report.live_bytes);
        }
        return true;
    });
}

}  // namespace taiyen::transfer
