// Sets of ids. Bytes that nobody wrote: refused, or a sound set that serialises to a set with the same ids. Programs: the set is what a map of intervals is.
//
// First byte odd: the rest are the bytes of a serialised set, whose checksum is made right unless the second bit is set. Even: steps, 14 bytes each.

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "fuzz/input.hpp"
#include "object/interval_model.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::object::test;
using taiyen::fuzz::Input;
using Set = object_id_set<std::allocator<Id>>;

void foreign(std::span<const std::byte> given, bool seals) {
    std::vector<std::byte> bytes(given.begin(), given.end());
    if (seals && bytes.size() >= 8) {
        const std::uint64_t sum = object::ids_checksum(bytes.data(), bytes.size() - 8);
        std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
    }
    Set set{1, 2};
    try {
        set.deserialise(bytes);
    } catch (const Error&) {
        TAIYEN_CHECK(set.size() == 2);
        return;
    }
    TAIYEN_CHECK(set.is_sound());
    Set again;
    again.deserialise(set.serialise());
    TAIYEN_CHECK(again == set && again.size() == set.size());
    again.shrink_to_fit();
    TAIYEN_CHECK(again == set);
}

void program(Input& input) {
    Set set;
    Set other;
    Pair<Set> pair{set, other, {}, {}};
    for (int i = 0; i < 64 && !input.empty(); ++i) {
        const auto kind = static_cast<int>(input.number(1) % step_kinds);
        const auto near = static_cast<std::uint32_t>(input.number(1));
        constexpr Id anchors[] = {least, greatest, 0, Id{1} << 32U, -(Id{1} << 56U)};
        const auto a = static_cast<Id>(static_cast<std::uint64_t>(anchors[near % 5]) + input.number(4) - (near & 8U) * 300);
        auto b = static_cast<Id>(static_cast<std::uint64_t>(a) + (near >= 128 ? input.number(8) : input.number(3)));
        Step step{kind, a, b, static_cast<std::uint32_t>(input.number(2))};
        if (step.b < step.a) std::swap(step.a, step.b);
        pair.run(step);
    }
    check_equal(set, pair.model);
    check_equal(other, pair.other_model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const auto how = input.number(1);
    if (how % 2 == 1)
        foreign(input.rest(), (how & 2U) == 0);
    else
        program(input);
    return 0;
}
