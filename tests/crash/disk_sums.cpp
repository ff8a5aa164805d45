#include "crash/disk_sums.hpp"

#include <algorithm>
#include <span>

#include "base/checksum.hpp"
#include "io/disks/simulated_node.hpp"
#include "store/heap_layout.hpp"

namespace taiyen::crash {

std::map<std::filesystem::path, std::uint64_t> page_sums(const io::SimulatedStorage& disk) {
    std::map<std::filesystem::path, std::uint64_t> sums;
    for (const auto& [path, node] : disk.files()) {
        const std::uint64_t size = node->size_bytes();
        if (path.extension() == ".journal" || path.extension() == ".log" || size <= store::chunks_offset) continue;
        std::uint64_t sum = size;
        for (std::uint64_t at = store::chunks_offset; at < size; at += page_bytes) {
            const std::span page(node->data() + at, std::min<std::uint64_t>(page_bytes, size - at));
            sum += is_zero(page) ? 0 : checksum(page, at);
        }
        sums[path] = sum;
    }
    return sums;
}

std::uint64_t disk_sum(const io::SimulatedStorage& disk) {
    std::uint64_t sum = 0;
    for (const auto& [path, node] : disk.files()) sum = mix(sum, checksum({node->data(), node->size_bytes()}, node->size_bytes()));
    return sum;
}

}  // namespace taiyen::crash
