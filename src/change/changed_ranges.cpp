#include "change/changed_ranges.hpp"

#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <taiyen/base/check.hpp>

namespace taiyen::change {
namespace {

/// Bit i: byte i of the two lines differs.
std::uint64_t differing_bytes(const std::byte* before, const std::byte* after) {
    std::uint64_t equal = 0;
#if defined(__SSE2__)
    for (unsigned i = 0; i < 4; ++i) {
        const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(before) + i);
        const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(after) + i);
        equal |= std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, right)))} << (16 * i);
    }
#else
    if (std::memcmp(before, after, line_bytes) == 0) return 0;
    for (unsigned i = 0; i < line_bytes; ++i) equal |= std::uint64_t{before[i] == after[i]} << i;
#endif
    return ~equal;
}

}  // namespace

void add_changed_ranges(ChangeSet& out, HeapOffset where, const std::byte* before, const std::byte* after, ByteCount length) {
    TAIYEN_CHECK(where.value % line_bytes == 0 && length % line_bytes == 0 && where.value % page_bytes + length <= page_bytes);
    ByteCount begin = 0;
    ByteCount end = 0;  // of the range that may still grow; equal to `begin`: none
    const auto add = [&] {
        if (begin != end) out.add_bytes({where.value + begin}, {before + begin, end - begin}, {after + begin, end - begin});
    };
    for (ByteCount line = 0; line < length; line += line_bytes) {
        std::uint64_t left = differing_bytes(before + line, after + line);
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
