#include <taiyen/ordered/detail/key_search.hpp>

#include <type_traits>

#if defined(__x86_64__)
#define TAIYEN_WITH_AVX2 1
#endif

namespace taiyen::ordered {
namespace {

/// Inlined into functions for one processor and another. The sum is as wide as the numbers: so it is a vector of theirs. The numbers may be of another type of that width, as `long long` is.
template <bool OrEqual, class Number>
[[gnu::always_inline]] inline std::uint32_t count(const Number* numbers, std::uint32_t count, Number than) noexcept {
    using Any [[gnu::may_alias]] = const Number;
    const auto* const any = reinterpret_cast<Any*>(numbers);
    std::conditional_t<sizeof(Number) == 8, std::uint64_t, std::uint32_t> below = 0;
    for (std::uint32_t i = 0; i != count; ++i) below += (OrEqual ? any[i] <= than : any[i] < than) ? 1U : 0U;
    return static_cast<std::uint32_t>(below);
}

#if defined(TAIYEN_WITH_AVX2)
template <bool OrEqual, class Number>
[[gnu::target("avx2")]] std::uint32_t count_by_avx2(const Number* numbers, std::uint32_t numbers_count, Number than) noexcept {
    return count<OrEqual>(numbers, numbers_count, than);
}
const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif

template <bool OrEqual, class Number>
std::uint32_t count_anywhere(const Number* numbers, std::uint32_t numbers_count, Number than) noexcept {
#if defined(TAIYEN_WITH_AVX2)
    if (has_avx2) return count_by_avx2<OrEqual>(numbers, numbers_count, than);
#endif
    return count<OrEqual>(numbers, numbers_count, than);
}

}  // namespace

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): six types, two functions.
#define TAIYEN_COUNT(Number)                                                                            \
    std::uint32_t count_less(const Number* numbers, std::uint32_t count, Number than) noexcept {        \
        return count_anywhere<false>(numbers, count, than);                                             \
    }                                                                                                   \
    std::uint32_t count_not_greater(const Number* numbers, std::uint32_t count, Number than) noexcept { \
        return count_anywhere<true>(numbers, count, than);                                              \
    }
TAIYEN_COUNT(std::int32_t)
TAIYEN_COUNT(std::uint32_t)
TAIYEN_COUNT(std::int64_t)
TAIYEN_COUNT(std::uint64_t)
TAIYEN_COUNT(float)
TAIYEN_COUNT(double)
#undef TAIYEN_COUNT

}  // namespace taiyen::ordered
