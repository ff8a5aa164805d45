#pragma once
/// Where runs of available pages lately came into being, by length: best fit without an index of all runs.
///
/// A hint may be stale; who takes one looks at the page map before using it. Complexity: constant.

#include <array>
#include <bit>
#include <cstdint>

#include "heap/geometry.hpp"

namespace taiyen::heap {

class RunHints {
public:
    static constexpr Page length_max = 64;

    /// Forgets the oldest hint of that length if there are many.
    void add(Page first, Page length) {
        if (length == 0 || length > length_max) return;
        Bin& bin = bins_[length - 1];
        bin.first[bin.end++ % slots] = first;
        bin.count = bin.count < slots ? bin.count + 1 : slots;
        filled_ |= std::uint64_t{1} << (length - 1);
    }

    struct Hint {
        Page first = 0;
        Page length = 0;  ///< 0: none
    };
    /// Takes the latest hint of the smallest length that is at least `count`.
    Hint take(Page count) {
        const std::uint64_t fitting = count > length_max ? 0 : filled_ >> (count - 1) << (count - 1);
        if (fitting == 0) return {};
        const Page length = static_cast<Page>(std::countr_zero(fitting)) + 1;
        Bin& bin = bins_[length - 1];
        const Page first = bin.first[--bin.end % slots];
        if (--bin.count == 0) filled_ &= ~(std::uint64_t{1} << (length - 1));
        return {first, length};
    }

    enum class Verdict { take, keep, drop };
    /// Takes one of the latest few hints of that length of which `judge(first)` says so; 0: none.
    template <class Judge>
    Page take_if(Page length, Judge judge) {
        constexpr std::uint32_t tries = 6;
        if (length == 0 || length > length_max) return 0;
        Bin& bin = bins_[length - 1];
        Page taken = 0;
        for (std::uint32_t back = 1, left = tries; back <= bin.count && left != 0 && taken == 0; --left) {
            Page& first = bin.first[(bin.end - back) % slots];
            const Verdict verdict = judge(first);
            if (verdict == Verdict::keep) {
                ++back;
                continue;
            }
            if (verdict == Verdict::take) taken = first;
            first = bin.first[--bin.end % slots];
            if (--bin.count == 0) filled_ &= ~(std::uint64_t{1} << (length - 1));
        }
        return taken;
    }

private:
    static constexpr std::uint32_t slots = 64;
    struct Bin {
        std::uint32_t end = 0;
        std::uint32_t count = 0;
        std::array<Page, slots> first{};
    };
    std::array<Bin, length_max> bins_{};
    std::uint64_t filled_ = 0;  ///< bit l: there is a hint of length l + 1
};

}  // namespace taiyen::heap
