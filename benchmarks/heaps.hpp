#pragma once
/// Heaps of a given size for the benchmarks of opening and saving.

#include <taiyen/taiyen.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <vector>

#include "harness.hpp"

namespace bench {

/// Content: blocks of 64 KiB, found through a table of pointers to them, so that every page of the heap can be touched.
struct Document {
    static constexpr std::size_t block_bytes = 64 * 1024;
    static constexpr std::size_t pages_per_block = block_bytes / 4096;

    std::uint64_t count;
    std::byte** blocks;

    std::size_t pages() const { return count * pages_per_block; }
    std::byte* page(std::size_t number) const { return blocks[number / pages_per_block] + number % pages_per_block * 4096; }
};

/// Words that no pointer looks like.
inline void fill(std::byte* bytes, std::size_t size, Random& random) {
    for (std::size_t i = 0; i + 8 <= size; i += 8) {
        const std::uint64_t word = random.next() | 0x8000'0000'0000'0000ULL;
        std::memcpy(bytes + i, &word, 8);
    }
}

/// Creates a heap with about `bytes` of content, saves and closes it.
template <class Heap>
void make_heap(const std::filesystem::path& path, std::size_t bytes, const taiyen::PersistentOptions& options = {}) {
    Heap heap(taiyen::create_only, path, options);
    Random random(bytes);
    auto* const document = static_cast<Document*>(heap.allocate(sizeof(Document)));
    document->count = bytes / Document::block_bytes;
    document->blocks = static_cast<std::byte**>(heap.allocate(document->count * sizeof(std::byte*)));
    heap.template construct<Document*>("document", document);
    for (std::uint64_t i = 0; i < document->count; ++i) {
        document->blocks[i] = static_cast<std::byte*>(heap.allocate(Document::block_bytes));
        fill(document->blocks[i], Document::block_bytes, random);
    }
    heap.snapshot();
    heap.close();
}

template <class Heap>
const Document& document_of(Heap& heap) {
    return **heap.template find<Document*>("document");
}

/// Reads a byte of each page of the document's first `bytes`.
inline std::uint64_t read_through(const Document& document, std::size_t bytes) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bytes / 4096; ++i) sum += static_cast<std::uint64_t>(*static_cast<volatile std::byte*>(document.page(i)));
    return sum;
}

inline const char* name_of(const taiyen::SnapshotHeap*) { return "SnapshotHeap"; }
inline const char* name_of(const taiyen::ArchiveHeap*) { return "ArchiveHeap"; }

}  // namespace bench
