#include <taiyen/transfer/expand.hpp>

#include <algorithm>
#include <cstring>
#include <istream>

#include "transfer/stream_marks.hpp"
#include "transfer/stream_reader.hpp"

namespace taiyen {
namespace transfer {

namespace fs = std::filesystem;

ByteSource source_of(const io::File& file) {
    return [&file, at = std::uint64_t{0}](std::span<std::byte> bytes) mutable {
        const std::size_t got = file.read(bytes, at);
        at += got;
        return got;
    };
}

ByteSource source_of(std::istream& stream) {
    return [&stream](std::span<std::byte> bytes) {
        stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return static_cast<std::size_t>(stream.gcount());
    };
}

ByteSource source_of(std::span<const std::byte> left) {
    return [left](std::span<std::byte> bytes) mutable {
        const std::size_t count = std::min(bytes.size(), left.size());
        if (count != 0) std::memcpy(bytes.data(), left.data(), count);
        left = left.subspan(count);
        return count;
    };
}

Expanded expand_to(io::Storage& storage, const ByteSource& source, const fs::path& name, bool whole, const fs::path& path,
                   const ExpandOptions& options, const RewritePages& rewrite) {
    const ReadOptions how{options.expanded_bytes_max, options.threads, options.progress, options.cancel, whole};
    StreamReader reader(source, name, how);
    Expanded expanded{reader.heap(), {}};
    expanded.move = make_heap(storage, reader.shape(), path, options, [&](PageTarget& target, const RewritePages& change) {
        reader.read(target, [&](PageNumber first, std::span<std::byte> pages) {
            if (change) change(first, pages);
            if (rewrite) rewrite(first, pages);
        });
    });
    return expanded;
}

Expanded expand_to(io::Storage& storage, const fs::path& file, const fs::path& path, const ExpandOptions& options) {
    const auto opened = storage.open(file, io::Access::read_only);
    return expand_to(storage, source_of(*opened), file, true, path, options);
}

}  // namespace transfer

Expanded expand(const ByteSource& source, const std::filesystem::path& path, const ExpandOptions& options) {
    return transfer::expand_to(io::posix_storage(), source, {}, false, path, options);
}

Expanded expand(std::istream& stream, const std::filesystem::path& path, const ExpandOptions& options) {
    return expand(transfer::source_of(stream), path, options);
}

Expanded expand(std::span<const std::byte> stream, const std::filesystem::path& path, const ExpandOptions& options) {
    return transfer::expand_to(io::posix_storage(), transfer::source_of(stream), {}, true, path, options);
}

Expanded expand_file(const std::filesystem::path& file, const std::filesystem::path& path, const ExpandOptions& options) {
    return transfer::expand_to(io::posix_storage(), file, path, options);
}

CompressedHeap read_compressed(const std::filesystem::path& file) {
    const auto opened = io::posix_storage().open(file, io::Access::read_only);
    const ByteSource source = transfer::source_of(*opened);
    transfer::Incoming incoming(source, file);
    const auto head = incoming.read_mark<transfer::layout::StreamHead>();
    transfer::prove(head, file);
    return transfer::heap_of(head);
}

}  // namespace taiyen
