#pragma once
/// Rot in a heap's file where its header says that nothing is yet: pages, table pages and places of chunks behind the extents, up to the file's end.

#include <algorithm>
#include <filesystem>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "io/storage.hpp"
#include "store/geometry.hpp"
#include "store/header.hpp"

namespace taiyen::store::test {

/// The parts {first byte, end} of a file with that header and size that no page within the extents and no table page of such a page takes.
inline std::vector<std::pair<std::uint64_t, std::uint64_t>> parts_behind(const Header& header, std::uint64_t size) {
    const FileLayout layout(header.annex.places);
    const Extents extents = header.extents();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> used{{0, chunks_offset}};
    for_each_table_page(extents,
                        [&](std::uint64_t index) { used.emplace_back(layout.table_offset(index), layout.table_offset(index) + page_bytes); });
    for (const Sequence sequence : {Sequence::span, Sequence::annex}) {
        for_each_piece(start_of(sequence), extents.of(sequence),
                       [&](HeapOffset at, ByteCount part) { used.emplace_back(layout.file_offset(at), layout.file_offset(at) + part); });
    }
    std::sort(used.begin(), used.end());
    used.emplace_back(size, size);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> behind;
    std::uint64_t end = 0;
    for (const auto& [first, last] : used) {
        if (end < std::min(first, size)) behind.emplace_back(end, std::min(first, size));
        end = std::max(end, last);
    }
    return behind;
}

/// Fills these parts of a file with noise; returns how many bytes. A file that isn't there or whose header is lost keeps what it has.
inline std::uint64_t rot_behind(io::Storage& disk, const std::filesystem::path& path, std::uint64_t seed) {
    if (!disk.find(path)) return 0;
    const auto file = disk.open(path, io::Access::read_write);
    const Slots slots = read_slots(*file);
    if (slots.newest() == nullptr) return 0;
    // Repeated where there is more to fill: it is no multiple of a page long, so that no two pages of a part get the same.
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> noise(8191);
    std::generate(noise.begin(), noise.end(), random);
    std::uint64_t rotted = 0;
    for (auto [first, end] : parts_behind(*slots.newest(), file->info().size_bytes)) {
        rotted += end - first;
        while (first < end) {
            const auto part = std::as_bytes(std::span(noise)).first(std::min<std::uint64_t>(end - first, noise.size() * sizeof(std::uint64_t)));
            file->write(part, first);
            first += part.size();
        }
    }
    file->sync();
    return rotted;
}

}  // namespace taiyen::store::test
