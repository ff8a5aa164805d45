#include "transfer/relocation_words.hpp"

#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {
namespace {

constexpr std::uint64_t told_step = std::uint64_t{1} << 22U;

}  // namespace

RelocationWords::RelocationWords(const HeapView& heap)
    : heap_(heap), bytes_(heap.bytes), base_(heap.base), range_bytes_(heap.range_bytes()), extent_(heap.engine.extent()),
      survey_(heap.metadata, heap.capacity) {}

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
    const auto doubt = [&](std::uint64_t place, std::uint64_t value, AmbiguousTarget target) {
        ++report.ambiguous_words;
        if (report.ambiguous.size() < listed_max) report.ambiguous.push_back({place, value, target});
    };
    const std::uint64_t end = block.offset.value + block.usable_bytes;
    const auto is_own = [base = base_, bytes = range_bytes_](std::uint64_t value) { return value - base < bytes; };
    std::uint64_t before = 0;
    bool before_settled = true;  // it is a pointer, or known to be none; nothing straddles the block's beginning
    heap::for_each_word(heap::WordsFrom{bytes_}, block.offset.value, end, [&](std::uint64_t place, std::uint64_t value) {
        bool settled = known != nullptr && known->test(place);
        if (!settled && is_own(value)) {
            settled = is_pointer(value);
            if (settled)
                places.add(place, false);
            else if (const auto target = ambiguity(value))
                doubt(place, value, *target);
        }
        if (!before_settled && !settled) {
            // What begins in the word before and ends in this one.
            for (unsigned bits = 8; bits < 64; bits += 8) {
                const std::uint64_t straddling = before >> bits | value << (64 - bits);
                if (is_own(straddling) && is_pointer(straddling)) doubt(place - heap::word_bytes + bits / 8, straddling, AmbiguousTarget::unaligned);
            }
        }
        before = value;
        before_settled = settled;
    });
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
