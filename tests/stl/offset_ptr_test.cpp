#include <taiyen/heap/scratch.hpp>
#include <taiyen/stl/offset_ptr.hpp>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "heap/foreign_pointers.hpp"
#include "heap/memory_core.hpp"
#include "stl/values.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using stl::test::long_text;

namespace offset_test {

struct Part {
    offset::string name;
    offset::vector<offset::string> tags;
    offset_ptr<Part> next;
    double x;
};

/// Wrappers around what may be constructed from a raw pointer, and hold none.
struct Wraps {
    std::optional<offset::string> text;
    std::variant<int, offset::string> either;
    std::optional<offset_ptr<Part>> perhaps;
    std::pair<int, offset::string> pair;
    std::tuple<offset::string> tuple;
    std::array<offset::string, 2> names;
    int numbers[3];
};
struct Nested {
    Part part;
    Wraps wraps;
    offset::map<int, Wraps> map;
    bool flag;
};
struct Pointer {
    int number;
    Part* part;
};
struct PointerInOptional {
    offset::string name;
    std::optional<Part*> part;
};
struct PointerInPair {
    std::pair<int, int*> pair;
    int number;
};
struct Pointers {
    int number;
    Part* parts[2];
};
struct RawString {
    offset::string name;
    taiyen::string raw;
    int number;
};
struct RawVector {
    offset::vector<int> good;
    taiyen::vector<int> raw;
};
struct RawInOptional {
    std::optional<taiyen::string> text;
};
struct RawInVariant {
    std::variant<int, taiyen::string> either;
};
struct Deep {
    Pointer pointer;
    int number;
};
struct View {
    std::string_view view;
};
struct Literal {
    const char* text;
    int number;
};

}  // namespace offset_test

BOOST_AUTO_TEST_SUITE(offset_pointers)

using offset_test::Part;
using Parts = offset::map<offset::string, Part>;

namespace {

offset::string text(int n, MemoryCore& core) {
    const std::string characters = long_text(n);
    return {characters.data(), characters.size(), offset_allocator<char>(core)};
}

bool same(const offset::string& stored, int n) { return std::string_view(stored.data(), stored.size()) == long_text(n); }

}  // namespace

BOOST_AUTO_TEST_CASE(the_same_bytes_work_at_another_address) {
    MemoryCore first;
    MemoryCore second;
    auto* const parts = stl::make<Parts>(first);
    auto* const numbers = stl::make<std::vector<int, offset_allocator<int>>>(first);
    for (int n = 0; n < 50; ++n) {
        Part& part = parts->try_emplace(text(n, first)).first->second;
        part.name = text(n + 1, first);
        part.tags.push_back(text(n + 2, first));
        part.next = &part;
        part.x = n;
        numbers->push_back(n);
    }
    BOOST_TEST(!heap::ForeignPointerScan(first).find(HeapOffset{0}, first.engine().extent()).has_value());

    // The bytes alone, elsewhere; the first heap's are wiped.
    std::memcpy(reinterpret_cast<void*>(second.ranges().durable), reinterpret_cast<void*>(first.ranges().durable), first.engine().extent());
    std::memset(static_cast<void*>(parts), 0xee, sizeof(Parts));
    const std::ptrdiff_t moved = static_cast<std::ptrdiff_t>(second.ranges().durable) - static_cast<std::ptrdiff_t>(first.ranges().durable);
    const auto elsewhere = [moved](auto* object) { return reinterpret_cast<decltype(object)>(reinterpret_cast<std::byte*>(object) + moved); };
    const Parts& copy = *elsewhere(parts);
    BOOST_REQUIRE(copy.size() == 50U);
    for (int n = 0; n < 50; ++n) {
        const auto found = copy.find(text(n, second));
        BOOST_REQUIRE((found != copy.end()));
        BOOST_TEST(heap::in_durable(second, &*found));
        BOOST_TEST(same(found->second.name, n + 1));
        BOOST_TEST(same(found->second.tags.at(0), n + 2));
        BOOST_TEST(found->second.next.get() == &found->second);
        BOOST_TEST((*elsewhere(numbers))[static_cast<std::size_t>(n)] == n);
    }
}

BOOST_AUTO_TEST_CASE(homes_are_the_same_as_with_raw_pointers) {
    MemoryCore core;
    {
        auto* const strings = stl::make<offset::vector<offset::string>>(core);
        offset::string outside = text(1, core);
        strings->push_back(outside);
        strings->push_back(std::move(outside));
        strings->insert(strings->begin(), text(2, core));
        strings->emplace_back(text(3, core));
        for (const offset::string& each : *strings) BOOST_TEST(heap::in_durable(core, each.data()));
        const offset::vector<offset::string> copy(*strings);
        BOOST_TEST(heap::in_scratch(copy.data()));
        BOOST_TEST(heap::in_scratch(copy.front().data()));
        offset::vector<offset::string> out(std::move(*strings));
        BOOST_TEST(heap::in_durable(core, out.data()));
        *strings = std::move(out);
        BOOST_TEST(same(strings->front(), 2));
        stl::destroy_object(core, strings);
    }
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(types_are_checked_as_with_raw_pointers) {
    static_assert(storable<Part> && storable<Parts> && storable<offset_ptr<Part>>);
    static_assert(!storable<offset::vector<std::string>> && !storable<boost::container::vector<int>>);
    static_assert(stl::has_raw_links<std::_Fwd_list_node<int>> && stl::has_raw_links<std::__detail::_Hash_node<int, true>>);
    BOOST_TEST(sizeof(offset_allocator<int>) == 8U);
}

BOOST_AUTO_TEST_CASE(raw_pointers_are_told_apart_as_far_as_the_compiler_can_know) {
    using namespace offset_test;
    static_assert(position_independent<int> && position_independent<Part> && position_independent<Parts> && position_independent<Wraps> &&
                  position_independent<Nested> && position_independent<offset::map<offset::string, offset::vector<Nested>>> &&
                  position_independent<offset::small_vector<int, 3>> && position_independent<offset::stable_vector<Part>> &&
                  position_independent<std::vector<int, offset_allocator<int>>>);
    static_assert(!position_independent<int*> && !position_independent<taiyen::string> && !position_independent<offset::vector<int*>> &&
                  !position_independent<offset::vector<taiyen::string>> && !position_independent<offset::map<int, taiyen::vector<int>>>);
    static_assert(!position_independent<Pointer> && !position_independent<PointerInOptional> && !position_independent<PointerInPair> &&
                  !position_independent<Pointers> && !position_independent<RawString> && !position_independent<RawVector> &&
                  !position_independent<RawInOptional> && !position_independent<RawInVariant> && !position_independent<Deep> &&
                  !position_independent<View> && !position_independent<Literal> && !position_independent<offset::vector<Pointer>>);
    static_assert(storable<Pointer> && storable<RawString> && !position_independent<std::string>);
    BOOST_TEST(sizeof(offset_ptr<int>) == 8U);
}

BOOST_AUTO_TEST_CASE(vectors_that_keep_elements_in_place_have_homes_too) {
    MemoryCore core;
    auto* const stable = stl::make<offset::stable_vector<offset::string>>(core);
    auto* const small = stl::make<offset::small_vector<offset::string, 2>>(core);
    for (int n = 0; n < 10; ++n) {
        stable->push_back(text(n, core));
        small->push_back(text(n, core));
    }
    for (int n = 0; n < 10; ++n) {
        BOOST_TEST(same((*stable)[static_cast<std::size_t>(n)], n));
        BOOST_TEST(same((*small)[static_cast<std::size_t>(n)], n));
        BOOST_TEST(heap::in_durable(core, (*stable)[static_cast<std::size_t>(n)].data()));
        BOOST_TEST(heap::in_durable(core, (*small)[static_cast<std::size_t>(n)].data()));
    }
    stl::destroy_object(core, stable);
    stl::destroy_object(core, small);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
