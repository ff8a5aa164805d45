#pragma once
/// Figures as maps print them.

#include <cstdint>
#include <cstdio>
#include <string>

#include <taiyen/inspect/heap_map.hpp>

namespace taiyen::inspect {

/// "1.5 GiB"; exact where a unit divides it.
inline std::string bytes_text(std::uint64_t bytes) {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = static_cast<double>(bytes);
    int unit = 0;
    for (; value >= 1024 && unit < 5; ++unit) value /= 1024;
    char text[32];
    const bool is_whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
    std::snprintf(text, sizeof text, is_whole || value >= 100 ? "%.0f %s" : value >= 10 ? "%.1f %s" : "%.2f %s", value, units[unit]);
    return text;
}

inline std::string percent_text(double share) {
    char text[16];
    std::snprintf(text, sizeof text, "%.0f %%", share * 100);
    return text;
}

/// "0x1_4000_0000".
inline std::string offset_text(std::uint64_t offset) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%llx", static_cast<unsigned long long>(offset));
    std::string text = digits;
    for (std::size_t at = text.size(); at > 4;) text.insert(at -= 4, 1, '_');
    return "0x" + text;
}

/// One line: how much is live, free …
inline std::string figures_text(const HeapMap& map) {
    if (map.colour == MapColour::age) {
        return bytes_text(map.sum.live_bytes) + " live in " + std::to_string(map.live_blocks) + " values, " + bytes_text(map.sum.free_bytes) +
               " free or dead, " + bytes_text(map.sum.released_bytes) + " free without disk blocks; " + percent_text(map.page_efficiency) +
               " of the segments in use is live";
    }
    std::string text = bytes_text(map.sum.live_bytes) + " live in " + std::to_string(map.live_blocks) + " blocks, " + bytes_text(map.sum.free_bytes) +
                       " free, " + bytes_text(map.sum.released_bytes) + " free without disk blocks, " + bytes_text(map.sum.metadata_bytes) +
                       " metadata, " + bytes_text(map.sum.dirty_bytes) + " not saved; page efficiency " + percent_text(map.page_efficiency) +
                       ", availability";
    const char* between = " ";
    for (const Availability& available : map.availability) {
        text += between + bytes_text(available.bytes) + " " + percent_text(available.share);
        between = ", ";
    }
    return text;
}

}  // namespace taiyen::inspect
