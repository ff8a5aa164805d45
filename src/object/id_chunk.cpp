#include <taiyen/object/detail/id_chunk.hpp>

#include <algorithm>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taiyen::object {
namespace {

/// Loops over words are compiled twice on x86: for every processor, and for those that have AVX2.
#define TAIYEN_ALWAYS_INLINE __attribute__((always_inline)) inline
#if defined(__x86_64__)
#define TAIYEN_WITH_POPCOUNT __attribute__((target("avx2,bmi,bmi2,popcnt")))
bool counts_fast() noexcept {
    static const bool fast = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0 &&
                             __builtin_cpu_supports("popcnt") != 0;
    return fast;
}
#else
bool counts_fast() noexcept { return false; }
#endif

TAIYEN_ALWAYS_INLINE std::uint32_t ones(std::uint64_t word) { return static_cast<std::uint32_t>(__builtin_popcountll(word)); }
TAIYEN_ALWAYS_INLINE std::uint64_t together(Operation operation, std::uint64_t a, std::uint64_t b) {
    switch (operation) {
        case Operation::unite: return a | b;
        case Operation::intersect: return a & b;
        case Operation::subtract: return a & ~b;
        default: return a ^ b;
    }
}
/// Bits that follow a zero: a run begins there.
TAIYEN_ALWAYS_INLINE std::uint64_t starts(std::uint64_t word, std::uint64_t before) { return word & ~(word << 1U | before >> 63U); }

std::uint32_t bits_in_any(const std::uint64_t* words, std::uint32_t count) noexcept {
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < count; ++i) bits += ones(words[i]);
    return bits;
}
std::uint32_t runs_in_any(const std::uint64_t* words) noexcept {
    std::uint32_t runs = ones(starts(words[0], 0));
    for (std::size_t i = 1; i < bitmap_words; ++i) runs += ones(starts(words[i], words[i - 1]));
    return runs;
}
template <Operation operation>
TAIYEN_ALWAYS_INLINE void words_by(std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b) {
    for (std::size_t i = 0; i < bitmap_words; ++i) out[i] = together(operation, a[i], b[i]);
}
TAIYEN_ALWAYS_INLINE void words_by(Operation operation, std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b) {
    switch (operation) {
        case Operation::unite: words_by<Operation::unite>(out, a, b); break;
        case Operation::intersect: words_by<Operation::intersect>(out, a, b); break;
        case Operation::subtract: words_by<Operation::subtract>(out, a, b); break;
        case Operation::exclude: words_by<Operation::exclude>(out, a, b); break;
    }
}
void words_any(Operation operation, std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b) noexcept { words_by(operation, out, a, b); }
TAIYEN_ALWAYS_INLINE std::uint32_t runs_among(const std::uint16_t* values, std::uint32_t count) {
    std::uint32_t runs = count == 0 ? 0 : 1;
    for (std::uint32_t i = 1; i < count; ++i) runs += values[i] != static_cast<std::uint16_t>(values[i - 1] + 1U) ? 1U : 0U;
    return runs;
}
std::uint32_t runs_among_any(const std::uint16_t* values, std::uint32_t count) noexcept { return runs_among(values, count); }
TAIYEN_ALWAYS_INLINE std::uint32_t bit_positions(const std::uint64_t* words, std::uint16_t* out) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < bitmap_words; ++i)
        for (std::uint64_t word = words[i]; word != 0; word &= word - 1)
            out[count++] = static_cast<std::uint16_t>(i * 64U + static_cast<std::uint32_t>(__builtin_ctzll(word)));
    return count;
}
std::uint32_t bit_positions_any(const std::uint64_t* words, std::uint16_t* out) noexcept { return bit_positions(words, out); }
/// The values whose bit is `wanted`.
TAIYEN_ALWAYS_INLINE std::uint32_t filter(const std::uint16_t* values, std::uint32_t count, const std::uint64_t* words, std::uint64_t wanted,
                                          std::uint16_t* out) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint16_t value = values[i];
        out[kept] = value;
        kept += static_cast<std::uint32_t>((words[value / 64U] >> (value % 64U) & 1U) ^ wanted ^ 1U);
    }
    return kept;
}
std::uint32_t filter_any(const std::uint16_t* values, std::uint32_t count, const std::uint64_t* words, std::uint64_t wanted,
                         std::uint16_t* out) noexcept {
    return filter(values, count, words, wanted, out);
}

#if defined(__x86_64__)
/// Bits of each 64-bit lane, by a table of the sixteen half bytes (Mula, Kurz, Lemire, "Faster population counts using AVX2 instructions", 2018).
TAIYEN_WITH_POPCOUNT inline __m256i ones_of_lanes(__m256i words) noexcept {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i low_ones = _mm256_shuffle_epi8(table, _mm256_and_si256(words, low));
    const __m256i high_ones = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(words, 4), low));
    return _mm256_sad_epu8(_mm256_add_epi8(low_ones, high_ones), _mm256_setzero_si256());
}
TAIYEN_WITH_POPCOUNT inline __m256i load(const std::uint64_t* words) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(words));
}
TAIYEN_WITH_POPCOUNT inline std::uint32_t sum(__m256i lanes) noexcept {
    const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    return static_cast<std::uint32_t>(_mm_extract_epi64(half, 0) + _mm_extract_epi64(half, 1));
}
TAIYEN_WITH_POPCOUNT std::uint32_t bits_in_fast(const std::uint64_t* words, std::uint32_t count) noexcept {
    std::uint32_t bits = 0;
    std::uint32_t i = 0;
    if (count >= 32) {
        __m256i lanes = _mm256_setzero_si256();
        for (; i + 4 <= count; i += 4) lanes = _mm256_add_epi64(lanes, ones_of_lanes(load(words + i)));
        bits = sum(lanes);
    }
    for (; i < count; ++i) bits += ones(words[i]);
    return bits;
}
TAIYEN_WITH_POPCOUNT std::uint32_t runs_in_fast(const std::uint64_t* words) noexcept {
    std::uint32_t runs = ones(starts(words[0], 0));
    __m256i lanes = _mm256_setzero_si256();
    std::size_t i = 1;
    for (; i + 4 <= bitmap_words; i += 4) {
        const __m256i here = load(words + i);
        const __m256i follows = _mm256_or_si256(_mm256_slli_epi64(here, 1), _mm256_srli_epi64(load(words + i - 1), 63));
        lanes = _mm256_add_epi64(lanes, ones_of_lanes(_mm256_andnot_si256(follows, here)));
    }
    runs += sum(lanes);
    for (; i < bitmap_words; ++i) runs += ones(starts(words[i], words[i - 1]));
    return runs;
}
TAIYEN_WITH_POPCOUNT void words_fast(Operation operation, std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b) noexcept {
    words_by(operation, out, a, b);
}
TAIYEN_WITH_POPCOUNT std::uint32_t runs_among_fast(const std::uint16_t* values, std::uint32_t count) noexcept { return runs_among(values, count); }
TAIYEN_WITH_POPCOUNT std::uint32_t bit_positions_fast(const std::uint64_t* words, std::uint16_t* out) noexcept { return bit_positions(words, out); }
TAIYEN_WITH_POPCOUNT std::uint32_t filter_fast(const std::uint16_t* values, std::uint32_t count, const std::uint64_t* words, std::uint64_t wanted,
                                               std::uint16_t* out) noexcept {
    return filter(values, count, words, wanted, out);
}
#else
constexpr auto* bits_in_fast = &bits_in_any;
constexpr auto* runs_in_fast = &runs_in_any;
constexpr auto* words_fast = &words_any;
constexpr auto* runs_among_fast = &runs_among_any;
constexpr auto* bit_positions_fast = &bit_positions_any;
constexpr auto* filter_fast = &filter_any;
#endif
std::uint32_t runs_in(const std::uint64_t* words) noexcept { return counts_fast() ? runs_in_fast(words) : runs_in_any(words); }
std::uint32_t runs_of_values(const std::uint16_t* values, std::uint32_t count) noexcept {
    return count >= 16 && counts_fast() ? runs_among_fast(values, count) : runs_among_any(values, count);
}

/// What happens to the bits from first to last.
enum class Change : std::uint8_t { set, clear, flip };
void change_bits(std::uint64_t* words, IdRun run, Change change) noexcept {
    const auto apply = [change](std::uint64_t& word, std::uint64_t mask) {
        if (change == Change::set)
            word |= mask;
        else if (change == Change::clear)
            word &= ~mask;
        else
            word ^= mask;
    };
    const std::uint32_t from = run.first / 64U;
    const std::uint32_t to = run.last / 64U;
    const std::uint64_t head = ~0ULL << (run.first % 64U);
    const std::uint64_t tail = ~0ULL >> (63U - run.last % 64U);
    if (from == to) {
        apply(words[from], head & tail);
        return;
    }
    apply(words[from], head);
    for (std::uint32_t i = from + 1; i < to; ++i) apply(words[i], ~0ULL);
    apply(words[to], tail);
}
void change_bits(std::uint64_t* words, const ChunkView& ids, Change change) noexcept {
    if (ids.shape == Shape::runs) {
        for (std::uint32_t i = 0; i < ids.count; ++i) change_bits(words, ids.runs()[i], change);
        return;
    }
    for (std::uint32_t i = 0; i < ids.count; ++i) {
        const std::uint16_t value = ids.values()[i];
        std::uint64_t& word = words[value / 64U];
        const std::uint64_t bit = 1ULL << (value % 64U);
        word = change == Change::set ? word | bit : change == Change::clear ? word & ~bit : word ^ bit;
    }
}

/// The ids as a bitmap: their own, or one that is made in `scratch`.
const std::uint64_t* bitmap_of(const ChunkView& ids, std::uint64_t* scratch) noexcept {
    if (ids.shape == Shape::bitmap) return ids.words();
    std::memset(scratch, 0, bitmap_bytes);
    change_bits(scratch, ids, Change::set);
    return scratch;
}

IdRun run_at(const ChunkView& ids, std::uint32_t i) noexcept {
    return ids.shape == Shape::runs ? ids.runs()[i] : IdRun{ids.values()[i], ids.values()[i]};
}

std::uint32_t runs_of(const std::uint64_t* words, IdRun* out) noexcept {
    std::uint32_t count = 0;
    std::uint32_t i = 0;
    std::uint64_t word = words[0];
    while (true) {
        while (word == 0) {
            if (++i == bitmap_words) return count;
            word = words[i];
        }
        const auto first = static_cast<std::uint32_t>(std::countr_zero(word));
        out[count].first = static_cast<std::uint16_t>(i * 64U + first);
        word |= word - 1;  // ones below the run's first bit: the run ends at the first zero
        while (word == ~0ULL) {
            if (++i == bitmap_words) {
                out[count++].last = 0xffff;
                return count;
            }
            word = words[i];
        }
        const auto end = static_cast<std::uint32_t>(std::countr_one(word));
        out[count++].last = static_cast<std::uint16_t>(i * 64U + end - 1U);
        word &= word + 1;
    }
}

}  // namespace

std::uint32_t count_bits(const std::uint64_t* words, std::uint32_t count) noexcept {
    return counts_fast() ? bits_in_fast(words, count) : bits_in_any(words, count);
}

std::uint32_t count_runs(const ChunkView& ids) noexcept {
    switch (ids.shape) {
        case Shape::runs: return ids.count;
        case Shape::values: return runs_of_values(ids.values(), ids.count);
        default: return runs_in(ids.words());
    }
}

std::uint32_t count_below(const ChunkView& ids, std::uint32_t low) noexcept {
    if (low >= chunk_ids) return ids.ids;
    if (ids.shape == Shape::bitmap) {
        const std::uint64_t part = ids.words()[low / 64U] & ((1ULL << (low % 64U)) - 1U);
        if (low < chunk_ids / 2) return count_bits(ids.words(), low / 64U) + count_bits(&part, 1);
        return ids.ids - count_bits(ids.words() + low / 64U, bitmap_words - low / 64U) + count_bits(&part, 1);
    }
    if (ids.shape == Shape::values) return low == 0 ? 0 : count_not_above(ids.values(), ids.count, static_cast<std::uint16_t>(low - 1));
    std::uint32_t below = 0;
    for (std::uint32_t i = 0; i < ids.count && ids.runs()[i].first < low; ++i)
        below += std::min<std::uint32_t>(ids.runs()[i].last + 1U, low) - ids.runs()[i].first;
    return below;
}

std::uint16_t select(const ChunkView& ids, std::uint32_t n) noexcept {
    if (ids.shape == Shape::values) return ids.values()[n];
    if (ids.shape == Shape::runs) {
        const IdRun* run = ids.runs();
        for (; n > static_cast<std::uint32_t>(run->last - run->first); ++run) n -= static_cast<std::uint32_t>(run->last - run->first) + 1U;
        return static_cast<std::uint16_t>(run->first + n);
    }
    const std::uint64_t* words = ids.words();
    std::uint32_t at = 0;
    for (std::uint32_t step = 16; at + step <= bitmap_words; at += step) {
        const std::uint32_t bits = count_bits(words + at, step);
        if (n < bits) break;
        n -= bits;
    }
    std::uint64_t word = words[at];
    for (auto bits = static_cast<std::uint32_t>(std::popcount(word)); n >= bits; bits = static_cast<std::uint32_t>(std::popcount(word))) {
        n -= bits;
        word = words[++at];
    }
    for (; n != 0; --n) word &= word - 1;
    return static_cast<std::uint16_t>(at * 64U + static_cast<std::uint32_t>(std::countr_zero(word)));
}

bool same_ids(const ChunkView& a, const ChunkView& b) noexcept {
    if (a.ids != b.ids) return false;
    if (a.shape == b.shape && a.shape != Shape::bitmap)
        return a.count == b.count && std::memcmp(a.data, b.data, a.count * (a.shape == Shape::values ? sizeof(std::uint16_t) : sizeof(IdRun))) == 0;
    std::uint64_t scratch_a[bitmap_words];
    std::uint64_t scratch_b[bitmap_words];
    return std::memcmp(bitmap_of(a, scratch_a), bitmap_of(b, scratch_b), bitmap_bytes) == 0;
}

bool is_subset(const ChunkView& part, const ChunkView& whole) noexcept {
    if (part.ids > whole.ids) return false;
    if (whole.ids == chunk_ids) return true;
    if (part.shape == Shape::values) {
        for (std::uint32_t i = 0; i < part.count; ++i)
            if (!contains(whole, part.values()[i])) return false;
        return true;
    }
    if (part.shape == Shape::runs && whole.shape == Shape::runs) {
        std::uint32_t at = 0;
        for (std::uint32_t i = 0; i < part.count; ++i) {
            while (at < whole.count && whole.runs()[at].last < part.runs()[i].first) ++at;
            if (at == whole.count || whole.runs()[at].first > part.runs()[i].first || whole.runs()[at].last < part.runs()[i].last) return false;
        }
        return true;
    }
    std::uint64_t scratch_a[bitmap_words];
    std::uint64_t scratch_b[bitmap_words];
    const std::uint64_t* const a = bitmap_of(part, scratch_a);
    const std::uint64_t* const b = bitmap_of(whole, scratch_b);
    for (std::uint32_t i = 0; i < bitmap_words; ++i)
        if ((a[i] & ~b[i]) != 0) return false;
    return true;
}

bool is_well_formed(const ChunkView& ids) noexcept {
    if (ids.ids == 0 || ids.ids > chunk_ids) return false;
    if (ids.shape == Shape::values) {
        if (ids.count != ids.ids || ids.count > values_max) return false;
        for (std::uint32_t i = 1; i < ids.count; ++i)
            if (ids.values()[i - 1] >= ids.values()[i]) return false;
        return true;
    }
    if (ids.shape == Shape::bitmap) return count_bits(ids.words(), bitmap_words) == ids.ids;
    if (ids.count == 0 || ids.count > runs_max) return false;
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < ids.count; ++i) {
        const IdRun run = ids.runs()[i];
        if (run.first > run.last || (i != 0 && run.first <= ids.runs()[i - 1].last + 1)) return false;
        found += static_cast<std::uint32_t>(run.last - run.first) + 1U;
    }
    return found == ids.ids;
}

void ChunkBuffer::keep_values(std::uint32_t count) noexcept {
    const std::uint32_t runs = runs_of_values(numbers_, count);
    if (2 * runs < count) {
        if (runs <= runs_max) {
            // Not in place: a run's two numbers may take more room than the values of it.
            std::uint32_t made = 0;
            IdRun* const out = reinterpret_cast<IdRun*>(words_);
            for (std::uint32_t i = 0; i < count;) {
                std::uint32_t end = i + 1;
                while (end < count && numbers_[end] == numbers_[end - 1] + 1) ++end;
                out[made++] = {numbers_[i], numbers_[end - 1]};
                i = end;
            }
            view_ = {Shape::runs, made, count, out};
            return;
        }
    }
    if (count <= values_max) {
        view_ = {Shape::values, count, count, numbers_};
        return;
    }
    const ChunkView values{Shape::values, count, count, numbers_};
    std::memset(words_, 0, bitmap_bytes);
    change_bits(words_, values, Change::set);
    view_ = {Shape::bitmap, 0, count, words_};
}

void ChunkBuffer::keep_runs(std::uint32_t count, std::uint32_t ids) noexcept {
    view_ = {Shape::runs, count, ids, numbers_};
    if (count <= runs_max && 2 * count <= ids) return;
    if (ids > values_max) {
        std::memset(words_, 0, bitmap_bytes);
        change_bits(words_, view_, Change::set);
        view_ = {Shape::bitmap, 0, ids, words_};
        return;
    }
    auto* const values = reinterpret_cast<std::uint16_t*>(words_);
    std::uint32_t made = 0;
    for (std::uint32_t i = 0; i < count; ++i)
        for (std::uint32_t value = runs()[i].first; value <= runs()[i].last; ++value) values[made++] = static_cast<std::uint16_t>(value);
    view_ = {Shape::values, made, made, values};
}

void ChunkBuffer::keep_bitmap() noexcept {
    const std::uint32_t ids = count_bits(words_, bitmap_words);
    view_ = {Shape::bitmap, 0, ids, words_};
    const std::uint32_t runs_found = runs_in(words_);
    if (runs_found <= runs_max && 2 * runs_found < ids) {
        view_ = {Shape::runs, runs_of(words_, runs()), ids, numbers_};
    } else if (ids <= values_max) {
        (counts_fast() ? bit_positions_fast : bit_positions_any)(words_, numbers_);
        view_ = {Shape::values, ids, ids, numbers_};
    }
}

void ChunkBuffer::assign(const ChunkView& ids) noexcept {
    if (ids.shape == Shape::bitmap) {
        std::memcpy(words_, ids.data, bitmap_bytes);
        keep_bitmap();
    } else if (ids.shape == Shape::runs) {
        std::memcpy(numbers_, ids.data, ids.count * sizeof(IdRun));
        keep_runs(ids.count, ids.ids);
    } else {
        std::memcpy(numbers_, ids.data, ids.count * sizeof(std::uint16_t));
        keep_values(ids.count);
    }
}

void ChunkBuffer::combine(Operation operation, const ChunkView& a, const ChunkView& b) noexcept {
    if (a.shape == Shape::values && b.shape == Shape::values) {
        merge_values(operation, a, b);
    } else if (a.shape == Shape::runs && b.shape == Shape::runs && operation == Operation::intersect) {
        intersect_runs(a, b);
    } else if (a.shape == Shape::runs && b.shape == Shape::runs && operation == Operation::unite) {
        unite_runs(a, b);
    } else if (a.shape != Shape::bitmap && b.shape != Shape::bitmap && a.count + b.count <= values_max) {
        merge_runs(operation, a, b);
    } else if (a.shape == Shape::values && b.shape == Shape::bitmap && (operation == Operation::intersect || operation == Operation::subtract)) {
        filter_values(a, b.words(), operation == Operation::intersect);
    } else if (b.shape == Shape::values && a.shape == Shape::bitmap && operation == Operation::intersect) {
        filter_values(b, a.words(), true);
    } else if (operation == Operation::intersect || b.shape == Shape::bitmap) {
        auto* const scratch = reinterpret_cast<std::uint64_t*>(numbers_);
        const std::uint64_t* const words_a = bitmap_of(a, words_);
        const std::uint64_t* const words_b = bitmap_of(b, scratch);
        (counts_fast() ? words_fast : words_any)(operation, words_, words_a, words_b);
        keep_bitmap();
    } else {
        const std::uint64_t* const words = bitmap_of(a, words_);
        if (words != words_) std::memcpy(words_, words, bitmap_bytes);
        change_bits(words_, b, operation == Operation::unite ? Change::set : operation == Operation::subtract ? Change::clear : Change::flip);
        keep_bitmap();
    }
}

void ChunkBuffer::merge_values(Operation operation, const ChunkView& a, const ChunkView& b) noexcept {
    if (b.count == 1 && operation == Operation::unite) {
        const std::uint16_t value = b.values()[0];
        const std::uint32_t at = count_not_above(a.values(), a.count, value);
        const std::uint32_t more = at == 0 || a.values()[at - 1] != value ? 1 : 0;
        std::memcpy(numbers_, a.values(), at * sizeof value);
        numbers_[at - 1 + more] = value;
        std::memcpy(numbers_ + at + more, a.values() + at, (a.count - at) * sizeof value);
        return keep_values(a.count + more);
    }
    const bool keeps_a = operation != Operation::intersect;
    const bool keeps_b = operation == Operation::unite || operation == Operation::exclude;
    const bool keeps_both = operation == Operation::unite || operation == Operation::intersect;
    const std::uint16_t* at_a = a.values();
    const std::uint16_t* at_b = b.values();
    const std::uint16_t* const end_a = at_a + a.count;
    const std::uint16_t* const end_b = at_b + b.count;
    std::uint16_t* out = numbers_;
    while (at_a != end_a && at_b != end_b) {
        const std::uint16_t value_a = *at_a;
        const std::uint16_t value_b = *at_b;
        const bool from_a = value_a <= value_b;
        const bool from_b = value_b <= value_a;
        *out = from_a ? value_a : value_b;
        out += from_a ? (from_b ? keeps_both : keeps_a) : keeps_b;
        at_a += from_a ? 1 : 0;
        at_b += from_b ? 1 : 0;
    }
    if (keeps_a) {
        std::memcpy(out, at_a, static_cast<std::size_t>(end_a - at_a) * sizeof *out);
        out += end_a - at_a;
    }
    if (keeps_b) {
        std::memcpy(out, at_b, static_cast<std::size_t>(end_b - at_b) * sizeof *out);
        out += end_b - at_b;
    }
    keep_values(static_cast<std::uint32_t>(out - numbers_));
}

void ChunkBuffer::intersect_runs(const ChunkView& a, const ChunkView& b) noexcept {
    std::uint32_t at_a = 0;
    std::uint32_t at_b = 0;
    std::uint32_t made = 0;
    std::uint32_t ids = 0;
    while (at_a != a.count && at_b != b.count) {
        const IdRun run_a = a.runs()[at_a];
        const IdRun run_b = b.runs()[at_b];
        const std::uint16_t first = std::max(run_a.first, run_b.first);
        const std::uint16_t last = std::min(run_a.last, run_b.last);
        const std::uint32_t some = first <= last ? 1 : 0;  // counted instead of asked: nobody could predict the answer
        runs()[made] = {first, last};
        made += some;
        ids += (std::uint32_t{last} + 1U - first) * some;
        at_a += run_a.last <= run_b.last ? 1 : 0;
        at_b += run_b.last <= run_a.last ? 1 : 0;
    }
    keep_runs(made, ids);
}

void ChunkBuffer::unite_runs(const ChunkView& a, const ChunkView& b) noexcept {
    std::uint32_t at_a = 0;
    std::uint32_t at_b = 0;
    std::uint32_t made = 0;
    std::uint32_t ids = 0;
    std::uint32_t first = 0;
    std::uint32_t end = 0;  // of the run in hand; none yet
    while (at_a != a.count || at_b != b.count) {
        const bool from_a = at_b == b.count || (at_a != a.count && a.runs()[at_a].first <= b.runs()[at_b].first);
        const IdRun run = from_a ? a.runs()[at_a++] : b.runs()[at_b++];
        if (run.first <= end && end != 0) {
            end = std::max<std::uint32_t>(end, run.last + 1U);
            continue;
        }
        if (end != 0) {
            runs()[made++] = {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(end - 1)};
            ids += end - first;
        }
        first = run.first;
        end = run.last + 1U;
    }
    runs()[made++] = {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(end - 1)};
    keep_runs(made, ids + end - first);
}

/// Walks over all places where one of the two changes, and notes where what is wanted of both changes.
void ChunkBuffer::merge_runs(Operation operation, const ChunkView& a, const ChunkView& b) noexcept {
    constexpr std::uint32_t never = 2 * chunk_ids;
    std::uint32_t at_a = 0;
    std::uint32_t at_b = 0;
    bool in_a = false;
    bool in_b = false;
    const auto turn = [](const ChunkView& ids, std::uint32_t at, bool inside) -> std::uint32_t {
        if (at == ids.count) return never;
        const IdRun run = run_at(ids, at);
        return inside ? run.last + 1U : run.first;
    };
    std::uint32_t next_a = turn(a, 0, false);
    std::uint32_t next_b = turn(b, 0, false);
    std::uint32_t made = 0;
    std::uint32_t ids = 0;
    bool inside = false;
    while (next_a != never || next_b != never) {
        const std::uint32_t now = std::min(next_a, next_b);
        if (next_a == now) {
            at_a += in_a ? 1 : 0;
            in_a = !in_a;
            next_a = turn(a, at_a, in_a);
            if (!in_a && next_a == now) {  // values that touch
                in_a = true;
                next_a = turn(a, at_a, true);
            }
        }
        if (next_b == now) {
            at_b += in_b ? 1 : 0;
            in_b = !in_b;
            next_b = turn(b, at_b, in_b);
            if (!in_b && next_b == now) {
                in_b = true;
                next_b = turn(b, at_b, true);
            }
        }
        const bool wanted = operation == Operation::unite       ? in_a || in_b
                            : operation == Operation::intersect ? in_a && in_b
                            : operation == Operation::subtract  ? in_a && !in_b
                                                                : in_a != in_b;
        if (wanted == inside) continue;
        if (wanted) {
            runs()[made].first = static_cast<std::uint16_t>(now);
        } else {
            runs()[made].last = static_cast<std::uint16_t>(now - 1U);
            ids += now - runs()[made].first;
            ++made;
        }
        inside = wanted;
    }
    keep_runs(made, ids);
}

void ChunkBuffer::filter_values(const ChunkView& values, const std::uint64_t* words, bool wanted) noexcept {
    const std::uint32_t kept = (counts_fast() ? filter_fast : filter_any)(values.values(), values.count, words, wanted ? 1 : 0, numbers_);
    keep_values(kept);
}

}  // namespace taiyen::object
