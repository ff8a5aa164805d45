#include <taiyen/heap/live_blocks.hpp>

#include <algorithm>
#include <cstdio>

namespace taiyen {

std::string LiveBlocks::text() const {
    std::string text = std::to_string(count) + " live blocks, " + std::to_string(bytes) + " bytes:";
    for (const auto& [size, blocks] : by_size)
        text.append(" ").append(std::to_string(blocks)).append(" of ").append(std::to_string(size)).append(",");
    text.back() = '\n';
    for (const LiveBlock& block : listed) {
        char head[64];
        std::snprintf(head, sizeof head, "  %p %zu bytes:", block.address, block.bytes);
        text += head;
        for (std::size_t i = 0; i < std::min(block.bytes, LiveBlock::beginning_max); ++i) {
            char digits[4];
            std::snprintf(digits, sizeof digits, " %02x", static_cast<unsigned>(block.beginning[i]));
            text += digits;
        }
        if (block.held_blocks != 0)
            text += ", leads to " + std::to_string(block.held_blocks) + " more of " + std::to_string(block.held_bytes) + " bytes";
        if (!block.place.empty()) text += ", allocated at " + block.place;
        text += '\n';
    }
    return text;
}

}  // namespace taiyen
