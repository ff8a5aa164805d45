#pragma once
/// Random: the benchmarks' source of chance; needs nothing of the harness, so that the bare workers have it, too.

#include <cstdint>

namespace bench {

/// A small, fast, repeatable source of random numbers (xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled").
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e37'79b9'7f4a'7c15ULL + 1) {}
    std::uint64_t next() {
        state_ ^= state_ >> 12U;
        state_ ^= state_ << 25U;
        state_ ^= state_ >> 27U;
        return state_ * 0x2545'f491'4f6c'dd1dULL;
    }
    std::uint64_t below(std::uint64_t limit) { return (next() >> 32U) * limit >> 32U; }
    double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

private:
    std::uint64_t state_;
};

}  // namespace bench
