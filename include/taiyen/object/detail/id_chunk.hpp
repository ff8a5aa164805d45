#pragma once
/// The ids of one chunk: the 65536 numbers that share their upper 48 bits, seen as sorted values, as runs or as a bitmap, whichever is smallest.
///
/// The three forms and the idea to choose between them for each chunk are those of Roaring bitmaps (Chambi, Lemire, Kaser, Godin, "Better bitmap performance with
/// Roaring bitmaps", 2016; Lemire, Ssi-Yan-Kai, Kaser, "Consistently faster and smaller compressed bitmaps with Roaring", 2016; Lemire et al., "Roaring Bitmaps:
/// Implementation of an Optimized Software Library", 2018).
///
/// What is computed here only reads chunks and writes scratch memory of the caller: what stores into a heap is compiled with the program, so that its stores are captured.
/// Thread rule: values; functions without state.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <taiyen/base/detail/export.hpp>

namespace taiyen::object {

static_assert(std::endian::native == std::endian::little, "short chunks lie in a word, its lowest bits first");

inline constexpr std::uint32_t chunk_ids = 65536;
inline constexpr std::uint32_t bitmap_words = chunk_ids / 64;
inline constexpr std::uint32_t bitmap_bytes = bitmap_words * 8;
inline constexpr std::uint32_t values_max = bitmap_bytes / 2;    ///< more of them and a bitmap is smaller
inline constexpr std::uint32_t runs_max = bitmap_bytes / 4 - 1;  ///< likewise

/// Neighbouring ids, both ends included.
struct IdRun {
    std::uint16_t first;
    std::uint16_t last;
};

enum class Shape : std::uint8_t { values, runs, bitmap };

/// Sorted ids of a chunk in somebody else's memory. Runs neither touch nor overlap.
struct ChunkView {
    Shape shape = Shape::values;
    std::uint32_t count = 0;  ///< values or runs
    std::uint32_t ids = 0;
    const void* data = nullptr;

    const std::uint16_t* values() const noexcept { return static_cast<const std::uint16_t*>(data); }
    const IdRun* runs() const noexcept { return static_cast<const IdRun*>(data); }
    const std::uint64_t* words() const noexcept { return static_cast<const std::uint64_t*>(data); }
};

inline constexpr IdRun whole_chunk{0, 0xffff};
inline ChunkView full_view() noexcept { return {Shape::runs, 1, chunk_ids, &whole_chunk}; }
inline ChunkView view_of(const IdRun& run) noexcept { return {Shape::runs, 1, static_cast<std::uint32_t>(run.last - run.first) + 1U, &run}; }

/// Calls `visit(first, last)` for each run of ids of the chunk in a row, ascending; the least that a form can tell, so neighbours may touch.
template <class Visit>
void for_each_run(const ChunkView& ids, Visit&& visit) {
    if (ids.shape == Shape::values) {
        for (std::uint32_t i = 0; i < ids.count; ++i) visit(std::uint32_t{ids.values()[i]}, std::uint32_t{ids.values()[i]});
        return;
    }
    if (ids.shape == Shape::runs) {
        for (std::uint32_t i = 0; i < ids.count; ++i) visit(std::uint32_t{ids.runs()[i].first}, std::uint32_t{ids.runs()[i].last});
        return;
    }
    for (std::uint32_t word = 0; word < bitmap_words; ++word) {
        for (std::uint64_t bits = ids.words()[word]; bits != 0;) {
            const auto from = static_cast<std::uint32_t>(std::countr_zero(bits));
            const auto count = static_cast<std::uint32_t>(std::countr_one(bits >> from));
            visit(word * 64U + from, word * 64U + from + count - 1U);
            bits = from + count == 64 ? 0 : bits & (~std::uint64_t{0} << (from + count));
        }
    }
}

enum class Operation : std::uint8_t { unite, intersect, subtract, exclude };

/// Scratch memory for the ids of one chunk and for what is made of two.
class TAIYEN_EXPORT ChunkBuffer {
public:
    ChunkBuffer() noexcept {}  // NOLINT(modernize-use-equals-default): 24 KiB that nobody needs to be zero
    ChunkBuffer(const ChunkBuffer&) = delete;
    ChunkBuffer& operator=(const ChunkBuffer&) = delete;
    ~ChunkBuffer() = default;

    /// What it holds, in the form that takes the fewest bytes. Invalidated by the next change.
    const ChunkView& view() const noexcept { return view_; }
    /// The ids of `a` and `b` together, in both, in `a` only, in one only. Neither may lie in this buffer.
    void combine(Operation operation, const ChunkView& a, const ChunkView& b) noexcept;
    /// A copy in the form that takes the fewest bytes.
    void assign(const ChunkView& ids) noexcept;
    /// Where a caller may put up to `values_max` ascending values for `take_values`.
    std::uint16_t* free_values() noexcept { return numbers_; }
    void take_values(std::uint32_t count) noexcept { keep_values(count); }

private:
    void keep_values(std::uint32_t count) noexcept;
    void keep_runs(std::uint32_t count, std::uint32_t ids) noexcept;
    void keep_bitmap() noexcept;
    IdRun* runs() noexcept { return reinterpret_cast<IdRun*>(numbers_); }
    void merge_values(Operation operation, const ChunkView& a, const ChunkView& b) noexcept;
    void intersect_runs(const ChunkView& a, const ChunkView& b) noexcept;
    void unite_runs(const ChunkView& a, const ChunkView& b) noexcept;
    void merge_runs(Operation operation, const ChunkView& a, const ChunkView& b) noexcept;
    void filter_values(const ChunkView& values, const std::uint64_t* words, bool wanted) noexcept;

    ChunkView view_;
    alignas(64) std::uint64_t words_[bitmap_words];
    alignas(64) std::uint16_t numbers_[2 * values_max + 8];
};

/// How many neighbouring ids there are.
TAIYEN_EXPORT std::uint32_t count_runs(const ChunkView& ids) noexcept;
/// Bits that are set.
TAIYEN_EXPORT std::uint32_t count_bits(const std::uint64_t* words, std::uint32_t count) noexcept;
/// How many ids lie below `low` (0 … 65536).
TAIYEN_EXPORT std::uint32_t count_below(const ChunkView& ids, std::uint32_t low) noexcept;
/// The id that has `n` smaller ones; `n` < ids.
TAIYEN_EXPORT std::uint16_t select(const ChunkView& ids, std::uint32_t n) noexcept;
TAIYEN_EXPORT bool same_ids(const ChunkView& a, const ChunkView& b) noexcept;
TAIYEN_EXPORT bool is_subset(const ChunkView& part, const ChunkView& whole) noexcept;
/// Whether bytes from outside are what their shape promises: ascending values, ascending runs that don't touch, as many bits as ids.
TAIYEN_EXPORT bool is_well_formed(const ChunkView& ids) noexcept;

/// How many of the ascending numbers are at most `wanted`.
template <class Number>
inline std::uint32_t count_not_above(const Number* numbers, std::uint32_t count, Number wanted) noexcept {
    const Number* base = numbers;
    std::uint32_t left = count;
    while (left > 1) {
        const std::uint32_t half = left / 2;
        base += base[half - 1] <= wanted ? half : 0;
        left -= half;
    }
    return static_cast<std::uint32_t>(base - numbers) + (left == 1 && *base <= wanted ? 1U : 0U);
}

/// How many of the runs begin at or before `low`.
inline std::uint32_t runs_not_above(const IdRun* runs, std::uint32_t count, std::uint16_t low) noexcept {
    const IdRun* base = runs;
    std::uint32_t left = count;
    while (left > 1) {
        const std::uint32_t half = left / 2;
        base += base[half - 1].first <= low ? half : 0;
        left -= half;
    }
    return static_cast<std::uint32_t>(base - runs) + (left == 1 && base->first <= low ? 1U : 0U);
}

inline bool contains(const ChunkView& ids, std::uint16_t low) noexcept {
    if (ids.shape == Shape::bitmap) return (ids.words()[low / 64U] >> (low % 64U) & 1U) != 0;
    if (ids.shape == Shape::runs) {
        const std::uint32_t at = runs_not_above(ids.runs(), ids.count, low);
        return at != 0 && low <= ids.runs()[at - 1].last;
    }
    const std::uint32_t at = count_not_above(ids.values(), ids.count, low);
    return at != 0 && ids.values()[at - 1] == low;
}

}  // namespace taiyen::object
