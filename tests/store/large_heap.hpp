#pragma once
/// A heap over three chunks on a device that can refuse to read pages of it.

#include <string>
#include <vector>

#include "io/storage.hpp"
#include "store/geometry.hpp"
#include "store/heap_probe.hpp"
#include "store/refusing_storage.hpp"

namespace taiyen::store::test {

using namespace probe;

/// A heap over three chunks, so that it has three table pages, cleanly closed.
struct LargeHeap {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    std::filesystem::path data = dir / "a.tyn.data";
    HeapKind kind;
    RefusingStorage disk{io::posix_storage()};

    explicit LargeHeap(HeapKind of_kind) : kind(of_kind) {
        auto heap = HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, path, OpenMode::create_only, kind, small_heap()));
        put(heap, "text", std::string(3U << 20U, 'x'));
        heap.snapshot();
    }
    ArchiveHeap open() { return HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, path, OpenMode::open_only, kind, small_heap())); }
    /// Makes an entry of that table page and its checksum others, in every file: nobody knows then what its page should be, and the headers stand for another table.
    void lose_table_page(std::uint64_t index) {
        for (const auto& file : {path, data}) {
            if (std::filesystem::exists(file)) {
                flip_bit(file, FileLayout().table_offset(index) + offsetof(store::TablePage, entries) + 100);
                flip_bit(file, FileLayout().table_offset(index) + offsetof(store::TablePage, checksum));
            }
        }
    }
    std::vector<std::vector<char>> all_bytes() const {
        return {bytes_of(path), std::filesystem::exists(data) ? bytes_of(data) : std::vector<char>()};
    }
};

/// Of each chunk a page in the middle of the text.
inline constexpr std::uint64_t page_in_chunk[] = {100, 300, 600};
inline std::uint64_t place_of_page(std::uint64_t page) { return FileLayout().file_offset({page * page_bytes}); }

}  // namespace taiyen::store::test
