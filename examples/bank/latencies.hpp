#pragma once
/// Latencies: a histogram of times with buckets of about 6 %, for quantiles of any number of samples in 8 KiB.
///
/// Thread rule: `add` is safe; the rest when nobody adds.

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

namespace bank {

class Latencies {
public:
    void add(std::chrono::nanoseconds time) {
        buckets_[bucket_of(static_cast<std::uint64_t>(time.count()))].fetch_add(1, std::memory_order_relaxed);
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
    /// The upper edge of the bucket below which that share of the samples lies; 0 without samples.
    std::chrono::nanoseconds quantile(double share) const {
        const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count()));
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            seen += buckets_[i].load(std::memory_order_relaxed);
            if (seen > wanted || (seen == count() && seen > 0)) return std::chrono::nanoseconds(edge_of(i));
        }
        return {};
    }

private:
    static constexpr unsigned steps_bits = 4;  ///< buckets between one power of two and the next: 16
    static std::size_t bucket_of(std::uint64_t value) {
        const auto bits = static_cast<unsigned>(std::bit_width(value));
        if (bits <= steps_bits) return static_cast<std::size_t>(value);
        const unsigned shift = bits - steps_bits - 1;
        return ((std::size_t{shift} + 1) << steps_bits) + static_cast<std::size_t>((value >> shift) - (1U << steps_bits));
    }
    static std::uint64_t edge_of(std::size_t bucket) {
        const std::size_t group = bucket >> steps_bits;
        const std::uint64_t step = bucket & ((1U << steps_bits) - 1);
        return group == 0 ? step : (((std::uint64_t{1} << steps_bits) + step + 1) << (group - 1)) - 1;
    }

    std::array<std::atomic<std::uint64_t>, 1024> buckets_{};
    std::atomic<std::uint64_t> count_{0};
};

}  // namespace bank
