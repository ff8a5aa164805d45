// Writes the golden heaps into a folder: README.md. Run once for each format version; the files are kept, not made again.

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <taiyen/base/check.hpp>

#include "content.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_node.hpp"
#include "store/heap_file.hpp"

namespace {

using namespace taiyen;
using store::HeapFile;

const std::filesystem::path path = "/disk/heap.tyn";

void* put(HeapFile& heap, const golden::Named& named) {
    void* const block = heap.engine().allocate(named.bytes.size(), golden::alignment_of(named));
    std::memcpy(block, named.bytes.data(), named.bytes.size());
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(block) - heap.ranges().durable;
    heap.engine().add_root({named.name, golden::fingerprint, {offset}, named.bytes.size(), 1});
    return block;
}

std::shared_ptr<HeapFile> create(io::Storage& disk, HeapKind kind, std::uintptr_t address) {
    PersistentOptions options;
    options.capacity = golden::capacity;
    options.address = address;
    return HeapFile::open(disk, path, store::OpenMode::create_only, kind, options, {40_KiB});
}

using Bytes = std::vector<char>;

Bytes bytes_of(const io::SimulatedStorage& disk, const char* suffix) {
    const auto node = disk.node(path.string() + suffix);
    const auto* const begin = reinterpret_cast<const char*>(node->data());
    return {begin, begin + node->size_bytes()};
}

/// Without the zeros at its end.
void write(const std::filesystem::path& file, Bytes bytes) {
    std::printf("%s: %zu bytes", file.c_str(), bytes.size());
    while (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::printf(", without zeros at the end %zu\n", bytes.size());
}

/// Saved in two steps, with a freed run and a removed name in between, and closed.
void write_archive(const std::filesystem::path& folder) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    const auto heap = create(disk, HeapKind::archive, golden::archive_address);
    void* const gone = put(*heap, {"gone", golden::pattern(5'000, 9)});
    heap->save();
    for (const golden::Named& named : golden::archive_content()) put(*heap, named);
    heap->engine().remove_root("gone");
    heap->engine().deallocate(gone);
    heap->save();
    heap->close();
    write(folder / "archive-v1.tyn", bytes_of(disk, ""));
}

/// As a crash after the third save's record leaves it: one save in the files, two in the journal, which they fill, around its end.
void write_snapshot(const std::filesystem::path& folder) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    io::FaultyStorage crashing(disk);
    const auto heap = create(crashing, HeapKind::snapshot, golden::snapshot_address);
    auto* const changes = static_cast<char*>(put(*heap, golden::snapshot_content(1)[0]));
    put(*heap, golden::snapshot_content(1)[1]);
    heap->save();
    heap->saves().checkpoint();
    crashing.arm({.sticky = true, .calls = io::Call::write});  // a checkpoint gets no further than its first write
    for (unsigned save = 2; save <= 3; ++save) {
        std::memcpy(changes, golden::snapshot_content(save)[0].bytes.data(), 100);
        put(*heap, golden::snapshot_content(save).back());
        try {
            heap->save();
        } catch (const Error&) {
            TAIYEN_CHECK(save == 3);
        }
    }
    for (const char* const suffix : {"", ".data", ".journal"}) write(std::string(folder / "snapshot-v1.tyn") + suffix, bytes_of(disk, suffix));
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: taiyen_write_golden FOLDER\n");
        return 2;
    }
    try {
        write_archive(arguments[1]);
        write_snapshot(arguments[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
