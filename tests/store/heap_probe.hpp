#pragma once
/// What the store's tests do to a heap, below the containers: named byte blocks, file damage, crashes by copying the files.

#include <taiyen/base/error.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/store/snapshot_heap.hpp>

#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "file_bytes.hpp"
#include "io/storage.hpp"
#include "scratch_directory.hpp"
#include "store/heap_access.hpp"
#include "throws.hpp"

namespace probe {

using namespace taiyen;
using taiyen::test::file_bytes;
using taiyen::test::names_heap;

/// Options for small test heaps.
inline PersistentOptions small_heap(std::size_t capacity = 8U << 20U) {
    PersistentOptions options;
    options.capacity = capacity;
    return options;
}

/// For opening a heap whose damage is to be met later.
inline PersistentOptions unverified() {
    PersistentOptions options;
    options.verify = Verify::changes;
    return options;
}

/// Stores `text` in a fresh block under `name`.
inline char* put(ArchiveHeap& heap, const std::string& name, const std::string& text) {
    auto* block = static_cast<char*>(heap.allocate(text.size() + 1));
    std::memcpy(block, text.c_str(), text.size() + 1);
    heap::add_named(*heap.core(), name, {block, text.size() + 1, 1, "text"});
    return block;
}

inline char* find(const ArchiveHeap& heap, const std::string& name) {
    const auto found = heap::find_named(*heap.core(), name);
    return found ? static_cast<char*>(found->object) : nullptr;
}

inline std::string get(const ArchiveHeap& heap, const std::string& name) {
    const char* text = find(heap, name);
    return text != nullptr ? text : "(none)";
}

/// The code of the Error that `action` throws; nullopt: it throws none.
template <class F>
std::optional<errc> code_of(F&& action) {
    try {
        action();
    } catch (const Error& error) {
        return static_cast<errc>(error.code().value());
    }
    return std::nullopt;
}

inline std::vector<char> bytes_of(const std::filesystem::path& path) {
    const std::string bytes = file_bytes(path);
    return {bytes.begin(), bytes.end()};
}

inline void flip_bit(const std::filesystem::path& path, std::uint64_t offset) {
    const auto file = io::posix_storage().open(path, io::Access::read_write);
    std::byte byte{};
    if (file->read({&byte, 1}, offset) != 1) throw std::out_of_range("no such byte");
    byte ^= std::byte{16};
    file->write({&byte, 1}, offset);
    file->sync();
}

/// Copies the heap's files as they are on disk: what a crash of the process would leave.
inline void crash_copy(const std::filesystem::path& heap, const std::filesystem::path& copy) {
    for (const char* suffix : {"", ".data", ".journal", ".log"})
        if (std::filesystem::exists(heap.string() + suffix)) std::filesystem::copy_file(heap.string() + suffix, copy.string() + suffix);
}

}  // namespace probe
