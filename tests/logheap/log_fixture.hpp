#pragma once
/// Log heaps of tests: small ones, in a directory of their own, and values for them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include <taiyen/logheap/log_heap.hpp>

#include <boost/test/unit_test.hpp>

#include "io/disks/simulated_storage.hpp"
#include "logheap/log_layout.hpp"
#include "logheap/log_model.hpp"
#include "logheap/object_log.hpp"
#include "scratch_directory.hpp"

namespace taiyen::logheap::test {

inline LogHeapOptions small(std::size_t segments = 32) {
    LogHeapOptions options;
    options.segment_bytes = 64_KiB;
    options.capacity = segments * 64_KiB;
    options.log_capacity = 256_KiB;
    return options;
}

inline std::span<const std::byte> text(std::string_view of) { return std::as_bytes(std::span(of)); }
inline std::string text_of(const LogView& view) { return {reinterpret_cast<const char*>(view.bytes().data()), view.bytes().size()}; }
inline Bytes bytes_of(std::size_t length, std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    return some_bytes(random, length);
}
inline bool holds(const LogHeap& heap, LogHandle handle, const Bytes& bytes) {
    const LogView view = heap.get(handle);
    return view && std::equal(bytes.begin(), bytes.end(), view.bytes().begin(), view.bytes().end());
}

struct Place {
    ScratchDirectory directory;
    std::filesystem::path path = directory.path() / "values.tyl";
};

inline std::unique_ptr<ObjectLog> reopened(io::SimulatedStorage& disk, std::unique_ptr<ObjectLog> log, const LogHeapOptions& options = {}) {
    log->abandon();
    log.reset();
    disk.disconnect();
    return ObjectLog::open(disk, "/disk/x.tyl", options, ObjectLog::Opening::open);
}

inline layout::Header header_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::array<layout::Header, layout::slots> slots;
    file.read(reinterpret_cast<char*>(slots.data()), sizeof slots);
    BOOST_TEST_REQUIRE(file.good());
    return slots[0].sequence > slots[1].sequence ? slots[0] : slots[1];
}

/// Flips a bit.
inline void damage(const std::filesystem::path& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char was = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(was ^ 4));
}

}  // namespace taiyen::logheap::test
