#include "transfer/relocation_words.hpp"

#include <algorithm>
#include <cstring>

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

void RelocationWords::look_at(const heap::Block& block, RebaseReport& report, std::size_t listed_max, std::vector<Page>& pages) {
    const std::uint64_t end = block.offset.value + block.usable_bytes / word_bytes * word_bytes;
    const auto doubt = [&](std::uint64_t place, std::uint64_t value, AmbiguousTarget target) {
        ++report.ambiguous_words;
        if (report.ambiguous.size() < listed_max) report.ambiguous.push_back({place, value, target});
    };
    std::uint64_t before = 0;
    bool before_points = true;  // nothing straddles the block's beginning
    for (std::uint64_t place = block.offset.value; place < end; place += word_bytes) {
        const std::uint64_t value = word(place);
        bool points = false;
        if (value - base_ < range_bytes_) {
            points = is_pointer(value);
            if (points) {
                const std::uint64_t page = place / page_bytes;
                if (pages.empty() || pages.back().number != page) pages.push_back({page, 0});
                ++pages.back().pointers;
                ++report.pointers;
            } else if (const auto target = ambiguity(value)) {
                doubt(place, value, *target);
            }
        }
        if (!before_points && !points) {
            // What begins in the word before and ends in this one.
            for (unsigned byte = 1; byte < word_bytes; ++byte) {
                const std::uint64_t straddling = before >> (8 * byte) | value << (64 - 8 * byte);
                if (straddling - base_ < range_bytes_ && is_pointer(straddling))
                    doubt(place - word_bytes + byte, straddling, AmbiguousTarget::unaligned);
            }
        }
        before = value;
        before_points = points;
    }
}

std::vector<PointerFinder::Page> RelocationWords::find(RebaseReport& report, std::size_t listed_max,
                                                       const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    heap_.engine.for_each_block([&](const heap::Block& block) {
        ++report.live_blocks;
        report.live_bytes += block.usable_bytes;
        return true;
    });
    std::vector<Page> pages;
    std::uint64_t done = 0;
    std::uint64_t told = 0;
    heap_.engine.for_each_block([&](const heap::Block& block) {
        look_at(block, report, listed_max, pages);
        done += block.usable_bytes;
        if (progress && done - told >= told_step) {
            told = done;
            progress(done, report.live_bytes);
        }
        return true;
    });
    report.pages_changed = pages.size();
    return pages;
}

std::uint16_t RelocationWords::patch(PageNumber page, std::span<std::byte> image, const Relocation& relocation) {
    std::uint16_t count = 0;
    const std::uint64_t first = page.value * page_bytes;
    for (std::size_t at = 0; at < page_bytes; at += word_bytes) {
        std::uint64_t value = 0;
        std::memcpy(&value, image.data() + at, sizeof value);
        if (value - base_ >= range_bytes_ || !lies_in_block(first + at, owner_)) continue;
        if (first + at + word_bytes > owner_->offset.value + owner_->usable_bytes || !is_pointer(value)) continue;
        value = relocation.map(value);
        std::memcpy(image.data() + at, &value, sizeof value);
        ++count;
    }
    return count;
}

}  // namespace taiyen::transfer
