#pragma once
/// LoggedMemory: a history's memory that knows what was written since the last transaction ended: to tell the log, or to take it back.
/// Thread rule: as the history.

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "change/byte_buffer.hpp"
#include "change/change_set.hpp"
#include "undo/history.hpp"

namespace taiyen::undo {

class LoggedMemory final : public HistoryMemory {
public:
    explicit LoggedMemory(std::unique_ptr<HistoryMemory> memory) : memory_(std::move(memory)) {}

    std::byte* base() override { return memory_->base(); }
    ByteCount bytes() const override { return memory_->bytes(); }
    ByteCount capacity() const override { return memory_->capacity(); }
    void extend(ByteCount bytes) override { memory_->extend(bytes); }
    void about_to_write(std::uint64_t offset, ByteCount bytes) override {
        for (const Range& range : ranges_)
            if (range.offset <= offset && offset + bytes <= range.offset + range.bytes) return;
        const ByteCount kept = before_.size();
        before_.append({base() + offset, bytes});
        try {
            ranges_.push_back({offset, bytes, kept});
        } catch (...) {
            before_.truncate(kept);
            throw;
        }
    }

    /// Adds what was written. Throws: std::bad_alloc.
    void add_changes(change::ChangeSet& out) {
        for (const Range& range : ranges_)
            out.add_bytes({range.offset}, before_.bytes().subspan(range.kept, range.bytes), {base() + range.offset, range.bytes});
    }
    void take_back() noexcept {
        for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range)
            std::memcpy(base() + range->offset, before_.bytes().data() + range->kept, range->bytes);
        forget();
    }
    void forget() noexcept {
        ranges_.clear();
        if (before_.size() > kept_bytes) before_ = change::ByteBuffer();
        before_.truncate(0);
    }

private:
    /// A buffer that is used again keeps no more memory than this.
    static constexpr ByteCount kept_bytes = ByteCount{1} << 20U;
    struct Range {
        std::uint64_t offset;
        ByteCount bytes;
        ByteCount kept;  ///< where its old bytes are
    };
    std::unique_ptr<HistoryMemory> memory_;
    std::vector<Range> ranges_;
    change::ByteBuffer before_;
};

}  // namespace taiyen::undo
