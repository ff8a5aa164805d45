#include "heap/line.hpp"

namespace taiyen::heap {

namespace {

struct Bits {
    std::uint64_t word[4];

    bool any() const { return (word[0] | word[1] | word[2] | word[3]) != 0; }
    Bits operator&(const Bits& other) const {
        return {{word[0] & other.word[0], word[1] & other.word[1], word[2] & other.word[2], word[3] & other.word[3]}};
    }
    /// Bit i of the result is bit i + distance; zeros come in. 0 < distance < 256.
    Bits down(unsigned distance) const {
        const unsigned bits = distance % 64;
        if (distance < 64)  // (x << 1) << (63 - bits) is x << (64 - bits) without a shift by 64
            return {{word[0] >> bits | word[1] << 1U << (63 - bits), word[1] >> bits | word[2] << 1U << (63 - bits),
                     word[2] >> bits | word[3] << 1U << (63 - bits), word[3] >> bits}};
        const Bits rest{{word[1], word[2], word[3], 0}};
        return distance == 64 ? rest : rest.down(distance - 64);
    }
};

}  // namespace

unsigned free_around(const layout::Line& line, unsigned at) {
    unsigned pair = at / 64;
    const unsigned bit = at % 64;
    const std::uint64_t occupied = line.pairs[pair].occupied;
    if (((occupied >> bit) & 1U) != 0) return 0;
    const std::uint64_t behind = occupied >> bit;
    const std::uint64_t before = occupied << (63 - bit);
    unsigned length = 0;  // granule `at` counts on both sides
    if (behind != 0) {
        length += static_cast<unsigned>(std::countr_zero(behind));
    } else {
        length += 64 - bit;
        for (unsigned next = pair + 1; next < 4; ++next) {
            const auto run = static_cast<unsigned>(std::countr_zero(line.pairs[next].occupied));
            length += run;
            if (run < 64) break;
        }
    }
    if (before != 0) return length + static_cast<unsigned>(std::countl_zero(before)) - 1;
    length += bit;
    while (pair-- > 0) {
        const auto run = static_cast<unsigned>(std::countl_zero(line.pairs[pair].occupied));
        length += run;
        if (run < 64) break;
    }
    return length;
}

unsigned front_granules(const layout::Line& line) {
    unsigned length = 0;
    for (const layout::Pair& pair : line.pairs) {
        const std::uint64_t stop = pair.start | ~pair.occupied;
        if (stop != 0) return length + static_cast<unsigned>(std::countr_zero(stop));
        length += 64;
    }
    return length;
}

std::uint64_t fitting_starts(const layout::Line& line, unsigned pair, unsigned granules) {
    // Doubling: a run of 2n begins where a run of n begins and another one n further. Three words suffice for 128 granules.
    std::uint64_t a = ~line.pairs[pair].occupied;
    std::uint64_t b = pair + 1 < 4 ? ~line.pairs[pair + 1].occupied : 0;
    std::uint64_t c = pair + 2 < 4 && granules > 64 ? ~line.pairs[pair + 2].occupied : 0;
    unsigned length = 1;
    while (length < granules && a != 0) {
        const unsigned step = length < granules - length ? length : granules - length;
        if (step < 64) {
            a &= (a >> step) | (b << (64 - step));
            b &= (b >> step) | (c << (64 - step));
            c &= c >> step;
        } else {
            a &= b;
            b &= c;
            c = 0;
        }
        length += step;
    }
    return a;
}

unsigned longest_run(const std::uint64_t (&bits)[4]) {
    // Run by run while there are few of them: the k-th first bit and the k-th last bit belong together.
    constexpr unsigned few = 4;
    std::uint64_t firsts[4];
    std::uint64_t lasts[4];
    for (unsigned i = 0; i < 4; ++i) {
        firsts[i] = bits[i] & ~(bits[i] << 1U | (i > 0 ? bits[i - 1] >> 63U : 0));
        lasts[i] = bits[i] & ~(bits[i] >> 1U | (i < 3 ? bits[i + 1] << 63U : 0));
    }
    unsigned longest = 0;
    unsigned first_word = 0;
    unsigned last_word = 0;
    for (unsigned runs = 0; runs < few; ++runs) {
        while (first_word < 4 && firsts[first_word] == 0) ++first_word;
        if (first_word == 4) return longest;
        while (lasts[last_word] == 0) ++last_word;
        const unsigned first = first_word * 64 + static_cast<unsigned>(std::countr_zero(firsts[first_word]));
        const unsigned last = last_word * 64 + static_cast<unsigned>(std::countr_zero(lasts[last_word]));
        longest = last - first + 1 > longest ? last - first + 1 : longest;
        firsts[first_word] &= firsts[first_word] - 1;
        lasts[last_word] &= lasts[last_word] - 1;
    }
    Bits level[9];
    level[0] = {{bits[0], bits[1], bits[2], bits[3]}};
    if (!level[0].any()) return 0;
    unsigned top = 0;
    while (top < 8) {
        level[top + 1] = level[top] & level[top].down(1U << top);
        if (!level[top + 1].any()) break;
        ++top;
    }
    unsigned length = 1U << top;
    if (length == layout::page_granules) return length;
    Bits runs = level[top];
    for (unsigned k = top; k-- > 0;) {
        const Bits longer = runs & level[k].down(length);
        if (longer.any()) {
            runs = longer;
            length += 1U << k;
        }
    }
    return length;
}

unsigned first_fit(const layout::Line& line, unsigned granules, std::uint64_t starts, unsigned from) {
    if (granules <= 128) {
        for (unsigned pair = from / 64; pair < 4; ++pair) {
            std::uint64_t fits = fitting_starts(line, pair, granules) & starts;
            if (pair == from / 64) fits &= ~low_bits(from % 64);
            if (fits != 0) return pair * 64 + static_cast<unsigned>(std::countr_zero(fits));
        }
        return layout::page_granules;
    }
    // More than half a page: there is at most one such run, and it contains the middle.
    constexpr unsigned middle = layout::page_granules / 2;
    const unsigned length = free_around(line, middle);
    if (length < granules) return layout::page_granules;
    unsigned begin = middle;
    for (unsigned pair = 2; pair-- > 0;) {
        const auto run = static_cast<unsigned>(std::countl_zero(line.pairs[pair].occupied));
        begin -= run;
        if (run < 64) break;
    }
    const unsigned last = begin + length - granules;
    for (unsigned at = begin > from ? begin : from; at <= last; ++at)
        if (((starts >> (at % 64)) & 1U) != 0) return at;
    return layout::page_granules;
}

}  // namespace taiyen::heap
