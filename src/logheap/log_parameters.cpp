#include <taiyen/logheap/log_parameters.hpp>

#include <algorithm>
#include <array>

#include "logheap/log_files.hpp"

namespace taiyen {

bool is_log_heap(const std::filesystem::path& path) {
    namespace layout = logheap::layout;
    const auto file = io::posix_storage().open(path, io::Access::read_only);
    for (std::uint64_t slot = 0; slot < layout::slots; ++slot) {  // one of them is enough
        std::array<std::byte, sizeof layout::magic> begin{};
        if (file->read(begin, slot * layout::slot_bytes) == begin.size() &&
            std::equal(begin.begin(), begin.end(), reinterpret_cast<const std::byte*>(layout::magic)))
            return true;
    }
    return false;
}

LogHeapParameters read_log_heap_parameters(const std::filesystem::path& path) {
    logheap::LogFiles files = logheap::LogFiles::look(io::posix_storage(), path);
    logheap::LogFiles::Image image;
    for (int i = 0;; ++i) {  // a writer may write two images between the header and its image
        try {
            image = files.read_image();
            break;
        } catch (const Error&) {
            const std::uint64_t sequence = files.header().sequence;
            files = logheap::LogFiles::look(io::posix_storage(), path);
            if (i == 8 || files.header().sequence == sequence) throw;
        }
    }
    const logheap::layout::Header& header = files.header();
    LogHeapParameters found;
    found.version = header.version;
    found.uuid = files.heap_uuid().text();
    found.segment_bytes = header.segment_bytes;
    found.segments = header.segments;
    found.log_capacity = header.ring_capacity;
    found.serial = header.serial;
    for (const auto& shard : image.foot.shards) found.values += shard.cells;
    found.image_bytes = header.image_bytes;
    found.tail_segments = header.tail_segments;
    found.clean = (header.flags & logheap::layout::header_is_clean) != 0;
    const io::FileInfo info = files.values().info();
    found.file_bytes = info.size_bytes;
    found.allocated_bytes = info.allocated_bytes;
    found.log_file = path;
    found.log_file += ".log";
    return found;
}

}  // namespace taiyen
