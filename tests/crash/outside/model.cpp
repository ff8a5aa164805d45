#include "model.hpp"

namespace outside {
namespace {

/// The finaliser of SplitMix64 (Steele, Lea, Flood).
std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111eb;
    return value ^ (value >> 31U);
}

std::uint64_t bytes_of(const Shape& shape, std::uint64_t dice, std::uint64_t more) {
    if (dice < 700) return 1 + more % 120;
    if (dice < 950) return 200 + more % 3000;
    if (dice < 995 || shape.large_bytes == 0) return 4096 + more % 16'000;
    return shape.large_bytes + more % 1000;
}

}  // namespace

Step step_of(const Shape& shape, unsigned lane, std::uint64_t number) {
    const std::uint64_t first = mixed(shape.seed * 0x9e3779b97f4a7c15 + (std::uint64_t{lane} << 56U) + number);
    const std::uint64_t second = mixed(first);
    return {first % 100 < 15, (first >> 32U) % shape.keys, bytes_of(shape, second % 1000, second >> 20U), mixed(second)};
}

std::string text_of(const Shape& shape, unsigned lane, std::uint64_t number) {
    const Step step = step_of(shape, lane, number);
    std::string text(step.bytes, ' ');
    std::uint64_t word = step.mark;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (i % 8 == 0) word = word * 0x9e3779b97f4a7c15 + i;
        text[i] = static_cast<char>('!' + (word >> (8 * (i % 8))) % 90);
    }
    return text;
}

void LaneModel::advance(const Shape& shape, unsigned lane) {
    const Step next = step_of(shape, lane, ++step);
    if (next.erase)
        entries.erase(next.key);
    else
        entries[next.key] = step;
    trail.push_back(next.mark);
    if (trail.size() > trail_max) trail.erase(trail.begin(), trail.begin() + trail_max / 2);
}

}  // namespace outside
