#include "change/changed_ranges.hpp"

#include <atomic>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <taiyen/base/check.hpp>

namespace taiyen::change {
namespace {

/// The first line, not before `line`, that differs: bit i is set if byte i does. No bits: there is none up to `length`.
struct Difference {
    ByteCount line;
    std::uint64_t bytes;
};

#if defined(__SSE2__)
Difference next_difference_sse2(const std::byte* before, const std::byte* after, ByteCount line, ByteCount length) {
    for (; line < length; line += line_bytes) {
        const auto* const left = reinterpret_cast<const __m128i*>(before + line);
        const auto* const right = reinterpret_cast<const __m128i*>(after + line);
        __m128i equal[4];  // NOLINT: std::array drops the vector's attributes
        for (unsigned i = 0; i < 4; ++i) equal[i] = _mm_cmpeq_epi8(_mm_loadu_si128(left + i), _mm_loadu_si128(right + i));
        if (_mm_movemask_epi8(_mm_and_si128(_mm_and_si128(equal[0], equal[1]), _mm_and_si128(equal[2], equal[3]))) == 0xffff) continue;
        std::uint64_t bytes = 0;
        for (unsigned i = 0; i < 4; ++i) bytes |= std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(equal[i]))} << (16 * i);
        return {line, ~bytes};
    }
    return {length, 0};
}

/// Most of what is compared is equal, so the speed of this loop is the price of a page that stays open.
__attribute__((target("avx2"))) Difference next_difference_avx2(const std::byte* before, const std::byte* after, ByteCount line, ByteCount length) {
    const auto halves = [&](ByteCount at, unsigned half) __attribute__((target("avx2"))) {
        return _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(before + at) + half),
                                 _mm256_loadu_si256(reinterpret_cast<const __m256i*>(after + at) + half));
    };
    constexpr ByteCount stride = 4 * line_bytes;
    while (line + stride <= length) {
        __m256i equal = _mm256_set1_epi8(-1);
        for (unsigned half = 0; half < stride / 32; ++half) equal = _mm256_and_si256(equal, halves(line, half));
        if (_mm256_movemask_epi8(equal) != -1) break;
        line += stride;
    }
    for (; line < length; line += line_bytes) {
        const auto low = static_cast<std::uint32_t>(_mm256_movemask_epi8(halves(line, 0)));
        const auto high = static_cast<std::uint32_t>(_mm256_movemask_epi8(halves(line, 1)));
        if ((low & high) != 0xffff'ffffU) return {line, ~(std::uint64_t{high} << 32U | low)};
    }
    return {length, 0};
}

using NextDifference = Difference (*)(const std::byte*, const std::byte*, ByteCount, ByteCount);
Difference choose(const std::byte* before, const std::byte* after, ByteCount line, ByteCount length);
/// Chosen by the first call, which may come before this file's statics are made.
constinit std::atomic<NextDifference> chosen{&choose};
Difference choose(const std::byte* before, const std::byte* after, ByteCount line, ByteCount length) {
    __builtin_cpu_init();
    const NextDifference best = __builtin_cpu_supports("avx2") ? &next_difference_avx2 : &next_difference_sse2;
    chosen.store(best, std::memory_order_relaxed);
    return best(before, after, line, length);
}
Difference next_difference(const std::byte* before, const std::byte* after, ByteCount line, ByteCount length) {
    return chosen.load(std::memory_order_relaxed)(before, after, line, length);
}
#else
Difference next_difference(const std::byte* before, const std::byte* after, ByteCount line, ByteCount length) {
    for (; line < length; line += line_bytes) {
        if (std::memcmp(before + line, after + line, line_bytes) == 0) continue;
        std::uint64_t bytes = 0;
        for (unsigned i = 0; i < line_bytes; ++i) bytes |= std::uint64_t{before[line + i] != after[line + i]} << i;
        return {line, bytes};
    }
    return {length, 0};
}
#endif

}  // namespace

void add_changed_ranges(ChangeSet& out, HeapOffset where, const std::byte* before, const std::byte* after, ByteCount length) {
    TAIYEN_CHECK(where.value % line_bytes == 0 && length % line_bytes == 0 && where.value % page_bytes + length <= page_bytes);
    ByteCount begin = 0;
    ByteCount end = 0;  // of the range that may still grow; equal to `begin`: none
    const auto add = [&] {
        if (begin != end) out.add_bytes({where.value + begin}, {before + begin, end - begin}, {after + begin, end - begin});
    };
    for (ByteCount line = 0;; line += line_bytes) {
        const Difference difference = next_difference(before, after, line, length);
        if (difference.bytes == 0) break;
        line = difference.line;
        std::uint64_t left = difference.bytes;
        while (left != 0) {
            const auto first = static_cast<unsigned>(std::countr_zero(left));
            const auto count = static_cast<unsigned>(std::countr_one(left >> first));
            if (begin == end || line + first - end >= merge_gap) {
                add();
                begin = line + first;
            }
            end = line + first + count;
            left &= left + (std::uint64_t{1} << first);  // without its lowest run of ones
        }
    }
    add();
}

}  // namespace taiyen::change
