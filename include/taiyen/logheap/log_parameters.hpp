#pragma once
/// What the file of a LogHeap says about itself, without opening the heap.
///
/// Thread rule: safe. Nothing is locked, so it works beside a program that has the heap open.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/error.hpp>

namespace taiyen {

/// As of the last header that was written.
struct LogHeapParameters {
    std::uint32_t version = 0;  ///< of the format
    std::string uuid;
    std::size_t segment_bytes = 0;
    std::uint64_t segments = 0;
    std::size_t log_capacity = 0;  ///< of the ring, bytes
    std::uint64_t serial = 0;      ///< newest operation that lies in segments; the ring may have more
    std::uint64_t values = 0;      ///< in the image of the index
    std::size_t image_bytes = 0;
    std::uint64_t tail_segments = 0;  ///< with records that the image doesn't know: opening reads them
    bool clean = false;               ///< closed by its last user
    std::size_t file_bytes = 0;
    std::size_t allocated_bytes = 0;
    std::filesystem::path log_file;  ///< where the ring is expected

    std::size_t capacity() const { return segments * segment_bytes; }
};

/// Whether the file begins as those of log heaps do. Throws: Error{not_found | permission | io_error | …}.
TAIYEN_EXPORT bool is_log_heap(const std::filesystem::path& path);
/// Throws: Error{not_found | not_a_heap | unsupported_version | foreign_byte_order | corrupt | truncated | …}. Complexity: reads the headers and the end of the image.
TAIYEN_EXPORT LogHeapParameters read_log_heap_parameters(const std::filesystem::path& path);

}  // namespace taiyen
