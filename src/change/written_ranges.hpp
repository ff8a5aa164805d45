#pragma once
/// WrittenRanges: where something was written, whether or not it changed a byte. Larger than that by what the capture can't tell: whole pages or lines.
/// Thread rule: external lock.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <taiyen/base/units.hpp>

namespace taiyen::change {

class WrittenRanges {
public:
    /// Cheap where it continues the range before it. Throws: std::bad_alloc.
    void add(HeapOffset where, ByteCount length) {
        const Range range{where.value, where.value + length};
        if (!ranges_.empty() && ranges_.back().end == range.begin) {
            ranges_.back().end = range.end;
            return;
        }
        if (ranges_.size() >= join_at_) {
            join();
            join_at_ = std::max(join_at_min, 2 * ranges_.size());
        }
        ranges_.push_back(range);
    }
    void clear() noexcept { ranges_.clear(); }

    /// Calls `visit(where, length)` with ranges that don't overlap, ascending.
    template <class F>
    void for_each(F&& visit) {
        join();
        for (const Range& range : ranges_) visit(HeapOffset{range.begin}, ByteCount{range.end - range.begin});
    }

private:
    static constexpr std::size_t join_at_min = 1024;
    struct Range {
        std::uint64_t begin;
        std::uint64_t end;
    };

    void join() noexcept {
        if (ranges_.empty()) return;
        std::ranges::sort(ranges_, {}, &Range::begin);
        auto last = ranges_.begin();
        for (const Range& range : ranges_)
            if (range.begin <= last->end)
                last->end = std::max(last->end, range.end);
            else
                *++last = range;
        ranges_.erase(last + 1, ranges_.end());
    }

    std::vector<Range> ranges_;
    std::size_t join_at_ = join_at_min;
};

}  // namespace taiyen::change
