#pragma once
/// SequentialWriter: writes much to a file from front to back, in the way that costs least: blocks are set aside ahead of the writes (a third of what a buffered write costs on ext4 is finding a block
/// for each page), and the device begins while there is more to come, so that the sync at the end finds little left.
///
/// (I1) What it sets aside and doesn't write, it gives back: at a gap at once, at the end by `finish`.
/// Both are hints, which change no byte and no size: a crash sees plain writes. Durability: none before the file's `sync`. Thread rule: one thread.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <taiyen/base/check.hpp>

#include "io/storage.hpp"

namespace taiyen::io {

class SequentialWriter {
public:
    /// Through the page cache, or past it (`File::write_direct`, with its alignment).
    enum class Via { cache, device };

    explicit SequentialWriter(File& file, Via via = Via::cache) : file_(file), via_(via) {}
    SequentialWriter(const SequentialWriter&) = delete;
    SequentialWriter& operator=(const SequentialWriter&) = delete;

    /// Requires: `offset` lies behind all that was written before. Throws: Error{no_space | io_error}.
    void write(std::span<const std::byte> bytes, std::uint64_t offset) {
        if (offset != end_) skip_to(offset);
        if (end_ - run_ >= reserve_behind && end_ + bytes.size() > reserved_) {
            const std::uint64_t from = std::max(end_, reserved_);
            reserved_ = end_ + bytes.size() + std::min(end_ - run_, ahead_max);
            file_.reserve(from, reserved_ - from);
        }
        via_ == Via::cache ? file_.write(bytes, end_) : file_.write_direct(bytes, end_);
        end_ += bytes.size();
        if (end_ - started_ >= write_ahead) {
            file_.start_writing(started_, end_ - started_);
            started_ = end_;
        }
    }
    /// Behind the newest byte.
    std::uint64_t end() const { return end_; }
    /// Gives back what is set aside: nothing more will be written, or somebody else needs the room.
    void finish() noexcept {
        if (end_ < reserved_) file_.unreserve(end_, reserved_ - end_);
        reserved_ = end_;
    }

private:
    static constexpr ByteCount write_ahead = 4_MiB;
    static constexpr ByteCount reserve_behind = 1_MiB;  ///< of bytes without a gap: it will not pay for fragments
    static constexpr ByteCount ahead_max = 8_MiB;

    void skip_to(std::uint64_t offset) {
        TAIYEN_CHECK(offset > end_);  // else what is given back might be what was written
        finish();
        reserved_ = end_ = run_ = offset;
    }

    File& file_;
    Via via_;
    std::uint64_t end_ = 0;
    std::uint64_t run_ = 0;       ///< where the newest bytes without a gap begin
    std::uint64_t started_ = 0;   ///< the device was asked to begin with what lies before
    std::uint64_t reserved_ = 0;  ///< blocks are set aside before that
};

}  // namespace taiyen::io
