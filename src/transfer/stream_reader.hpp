#pragma once
/// StreamReader: the pages of a heap out of a stream, read once from front to back, expanded on several threads.
///
/// (I1) Nothing is believed before its checksum, nothing is allocated by what the stream promises.
/// Thread rule: one thread.

#include <filesystem>

#include "transfer/heap_maker.hpp"
#include "transfer/transfer_layout.hpp"

namespace taiyen::transfer {

/// How a stream is read.
struct ReadOptions {
    std::uint64_t expanded_bytes_max;
    unsigned threads;
    const Progress& progress;
    const std::stop_token& cancel;
    bool whole;  ///< nothing may follow
};

/// The stream's bytes, counted.
class Incoming {
public:
    Incoming(const ByteSource& source, const std::filesystem::path& name) : source_(source), name_(name) {}

    /// Throws: Error{truncated}.
    void read(std::span<std::byte> bytes);
    template <class Mark>
    Mark read_mark() {
        Mark mark;
        read(std::as_writable_bytes(std::span(&mark, 1)));
        return mark;
    }
    bool at_end() {
        std::byte one;
        return source_({&one, 1}) == 0;
    }
    std::uint64_t offset() const { return offset_; }
    const std::filesystem::path& name() const { return name_; }

private:
    const ByteSource& source_;
    const std::filesystem::path& name_;
    std::uint64_t offset_ = 0;
};

class StreamReader {
public:
    /// Reads the head. `source`, `name` (the file that errors name) and `options` are referred to. Throws: Error{not_a_heap | unsupported_version | corrupt | truncated | cancelled};
    /// Error{invalid_argument}: it reaches beyond the limit.
    StreamReader(const ByteSource& source, const std::filesystem::path& name, const ReadOptions& options);

    CompressedHeap heap() const;
    /// As what it comes into a file if nobody says otherwise.
    HeapShape shape() const;
    /// The rest. Throws: Error{truncated | corrupt | cancelled}, what the source throws, and as the target.
    void read(PageTarget& target, const RewritePages& rewrite);

private:
    void read_chunks(PageTarget& target, const RewritePages& rewrite);

    Incoming incoming_;
    const ReadOptions& options_;
    layout::StreamHead head_;
};

}  // namespace taiyen::transfer
