#pragma once
/// What a fuzz target reads its input with. Numbers come from the front, little endian; behind the end everything is zero, so every input means something, and a
/// shorter one means the same as one with zeros behind it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>

#include <taiyen/base/units.hpp>

namespace taiyen::fuzz {

class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

    std::uint64_t number(unsigned bytes) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes && at_ != end_; ++i) value |= std::uint64_t{*at_++} << (8 * i);
        return value;
    }
    bool empty() const { return at_ == end_; }
    /// What was not read yet.
    std::span<const std::byte> rest() const { return {reinterpret_cast<const std::byte*>(at_), static_cast<std::size_t>(end_ - at_)}; }
    /// The next bytes, fewer at the end.
    std::span<const std::byte> bytes(std::size_t count) {
        const auto taken = rest().first(std::min(count, rest().size()));
        at_ += taken.size();
        return taken;
    }

    /// `value` changed as the input says: a bit, a value that stands at an edge, a bit more or less, or anything.
    std::uint64_t changed(std::uint64_t value) {
        constexpr std::uint64_t telling[] = {0,           1,           2,           3,           4096,        4095,
                                             8192,        256_KiB,     1_MiB,       1ULL << 31U, 1ULL << 32U, 1ULL << 40U,
                                             1ULL << 43U, 1ULL << 46U, 1ULL << 47U, 1ULL << 63U, ~0ULL,       ~0ULL << 12U};
        const std::uint64_t how = number(1);
        switch (how % 4) {
            case 0: return value ^ 1ULL << (how / 4 % 64);
            case 1: return telling[how / 4 % std::size(telling)];
            case 2: return value + (how / 4 % 2 == 0 ? 1 : ~0ULL) * (how / 8 % 2 == 0 ? 1 : page_bytes) * (1 + how / 16);
            default: return number(8);
        }
    }
    /// The number of up to `count` bytes at `offset`, changed; nothing happens behind the end.
    template <class Bytes>
    void change(Bytes& bytes, std::uint64_t offset, unsigned count) {
        if (offset >= bytes.size()) return;
        const std::size_t length = std::min<std::size_t>(count, bytes.size() - offset);
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data() + offset, length);
        value = changed(value);
        std::memcpy(bytes.data() + offset, &value, length);
    }

private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

}  // namespace taiyen::fuzz
