#pragma once
/// SequentialWriter: writes much to a file from front to back through the page cache; the device begins while there is more to come, so that the sync at the end finds little left.
///
/// Blocks are not set aside ahead of the writes (fallocate(2)): on ext4 that takes a tenth of the processor time from the writes, and adds more than that behind them, where the blocks' state is changed.
/// Durability: none before the file's `sync`. Thread rule: one thread.

#include <cstddef>
#include <cstdint>
#include <span>

#include <taiyen/base/check.hpp>

#include "io/storage.hpp"

namespace taiyen::io {

class SequentialWriter {
public:
    explicit SequentialWriter(File& file) : file_(file) {}
    SequentialWriter(const SequentialWriter&) = delete;
    SequentialWriter& operator=(const SequentialWriter&) = delete;

    /// Requires: `offset` lies behind all that was written before. Throws: Error{no_space | io_error}.
    void write(std::span<const std::byte> bytes, std::uint64_t offset) {
        TAIYEN_CHECK(offset >= end_);
        file_.write(bytes, offset);
        end_ = offset + bytes.size();
        written_ += bytes.size();
        if (written_ >= step) finish();
    }
    /// Behind the newest byte.
    std::uint64_t end() const { return end_; }
    /// Nothing comes any more, or nothing soon: the device may begin with all that was written.
    void finish() noexcept {
        if (end_ != started_) file_.start_writing(started_, end_ - started_);
        started_ = end_;
        written_ = 0;
    }

private:
    static constexpr ByteCount step = 1_MiB;

    File& file_;
    std::uint64_t end_ = 0;
    std::uint64_t started_ = 0;  ///< the device was asked to begin with what lies before
    ByteCount written_ = 0;      ///< since then
};

}  // namespace taiyen::io
