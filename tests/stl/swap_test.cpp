// swap(a, b) as code that knows nothing of heaps calls it: between an element and a local value, between heaps, within one.
#include <taiyen/stl/swap.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "heap/foreign_pointers.hpp"
#include "heap/memory_core.hpp"
#include "stl/values.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;
using stl::test::long_text;

BOOST_AUTO_TEST_SUITE(swaps)

struct Both {
    MemoryCore core;
    MemoryCore other;
    Reports reports;

    bool is_sound() {
        const heap::ForeignPointerScan scan(core);
        const heap::ForeignPointerScan scan_other(other);
        return !scan.find(HeapOffset{0}, core.engine().extent()) && !scan_other.find(HeapOffset{0}, other.engine().extent()) &&
               Reports::entries().empty();
    }
};

template <class C>
C filled(int first, int count) {
    C made;
    for (int i = first; i < first + count; ++i)
        if constexpr (requires { typename C::mapped_type; })
            made.emplace(i, std::string_view(long_text(i)));
        else if constexpr (requires { made.before_begin(); })
            made.emplace_after(made.before_begin(), std::string_view(long_text(i)));
        else if constexpr (requires { typename C::key_type; })
            made.emplace(std::string_view(long_text(i)));
        else if constexpr (requires { made.length(); })
            made.append(long_text(i));
        else
            made.emplace_back(std::string_view(long_text(i)));
    return made;
}

template <class C, class Swap>
void check_swap(Swap&& swap_them) {
    Both heaps;
    const C three = filled<C>(1, 3);
    const C five = filled<C>(10, 5);
    const auto before = heaps.core.engine().stats().live_blocks;
    {
        C* const inside = stl::make<C>(heaps.core, three);
        C* const also_inside = stl::make<C>(heaps.core, five);
        C* const elsewhere = stl::make<C>(heaps.other, three);
        C outside(five);
        swap_them(*inside, outside);
        BOOST_TEST((*inside == five && outside == three && heaps.is_sound()));
        swap_them(outside, *inside);
        BOOST_TEST((*inside == three && outside == five && heaps.is_sound()));
        swap_them(*inside, *elsewhere);
        swap_them(*elsewhere, outside);
        BOOST_TEST((*elsewhere == five && outside == three && heaps.is_sound()));
        const void* const first = std::addressof(*inside->begin());
        swap_them(*inside, *also_inside);  // one home: nothing is copied
        BOOST_TEST((*inside == five && *also_inside == three && heaps.is_sound()));
        BOOST_TEST(std::addressof(*also_inside->begin()) == first);
        swap_them(*inside, *inside);
        BOOST_TEST((*inside == five));
        C moved_out(std::move(*inside));  // on loan
        swap_them(moved_out, *inside);
        BOOST_TEST((*inside == five && moved_out.empty() && heaps.is_sound()));
        stl::destroy_object(heaps.core, inside);
        stl::destroy_object(heaps.core, also_inside);
        stl::destroy_object(heaps.other, elsewhere);
    }
    BOOST_TEST(heaps.core.engine().stats().live_blocks == before);
    BOOST_TEST(heaps.other.engine().stats().live_blocks == before);
}

template <class C>
void check_container() {
    check_swap<C>([](C& a, C& b) {
        using std::swap;
        swap(a, b);
    });
    check_swap<C>([](C& a, C& b) { std::ranges::swap(a, b); });
    check_swap<C>([](C& a, C& b) { std::iter_swap(&a, &b); });
}

BOOST_AUTO_TEST_CASE(every_container_is_swapped_between_homes) {
    using S = taiyen::string;
    check_container<S>();
    check_container<taiyen::vector<S>>();
    check_container<taiyen::deque<S>>();
    check_container<taiyen::list<S>>();
    check_container<taiyen::forward_list<S>>();
    check_container<taiyen::map<int, S>>();
    check_container<taiyen::multimap<int, S>>();
    check_container<taiyen::set<S>>();
    check_container<taiyen::multiset<S>>();
    check_container<taiyen::unordered_map<int, S>>();
    check_container<taiyen::unordered_multimap<int, S>>();
    check_container<taiyen::unordered_set<S>>();
    check_container<taiyen::unordered_multiset<S>>();
}

BOOST_AUTO_TEST_CASE(qualified_swaps_of_what_holds_containers_reach_them) {
    using S = taiyen::string;
    Both heaps;
    const auto text = [](int n) { return S(std::string_view(long_text(n))); };
    auto* const pair = stl::make<std::pair<S, int>>(heaps.core, text(1), 1);
    std::pair<S, int> local(text(2), 2);
    std::swap(*pair, local);
    BOOST_TEST((pair->first == text(2) && pair->second == 2 && local.first == text(1)));
    auto* const tuple = stl::make<std::tuple<S, taiyen::vector<S>>>(heaps.core);
    std::tuple<S, taiyen::vector<S>> local_tuple(text(3), filled<taiyen::vector<S>>(4, 2));
    std::swap(*tuple, local_tuple);
    BOOST_TEST((std::get<1>(*tuple).size() == 2U && std::get<1>(local_tuple).empty()));
    auto* const array = stl::make<std::array<S, 2>>(heaps.core);
    std::array<S, 2> local_array{text(5), text(6)};
    std::swap(*array, local_array);
    BOOST_TEST(((*array)[1] == text(6)));
    using Part = stl::test::Part<stl::test::Ours>;
    const stl::test::Maker make{};
    auto* const part = stl::make<Part>(heaps.core);
    Part local_part = make.part<stl::test::Ours>(7);
    std::swap(*part, local_part);
    BOOST_TEST((part->name == text(7) && local_part.name.empty()));
    BOOST_TEST(heaps.is_sound());
    stl::destroy_object(heaps.core, pair);
    stl::destroy_object(heaps.core, tuple);
    stl::destroy_object(heaps.core, array);
    stl::destroy_object(heaps.core, part);
}

struct Refusing {
    Refusing() = default;
    Refusing(const Refusing& other) : text(other.text) {
        if (refuses) throw std::runtime_error("as asked");
    }
    Refusing& operator=(const Refusing&) = default;
    taiyen::string text;
    static inline bool refuses = false;
};

BOOST_AUTO_TEST_CASE(a_swap_that_throws_leaves_both_as_they_were) {
    Both heaps;
    auto* const inside = stl::make<taiyen::vector<Refusing>>(heaps.core, 2U);
    inside->front().text = long_text(1).c_str();
    taiyen::vector<Refusing> outside(3);
    outside.back().text = long_text(2).c_str();
    const auto blocks = heaps.core.engine().stats().live_blocks;
    Refusing::refuses = true;
    BOOST_CHECK_THROW(std::ranges::swap(*inside, outside), std::runtime_error);
    Refusing::refuses = false;
    BOOST_TEST((inside->size() == 2U && inside->front().text == long_text(1) && outside.size() == 3U && outside.back().text == long_text(2)));
    BOOST_TEST(heaps.core.engine().stats().live_blocks == blocks);
    stl::destroy_object(heaps.core, inside);
}

BOOST_AUTO_TEST_CASE(elements_that_can_only_be_moved_are_moved) {
    struct Single {
        explicit Single(int n) : value(n) {}
        Single(Single&& other) noexcept : value(std::exchange(other.value, 0)) {}
        Single& operator=(Single&&) = delete;
        int value;
    };
    Both heaps;
    auto* const inside = stl::make<taiyen::list<Single>>(heaps.core);
    inside->emplace_back(1);
    taiyen::list<Single> outside;
    outside.emplace_back(2);
    outside.emplace_back(3);
    std::ranges::swap(*inside, outside);
    BOOST_TEST((inside->size() == 2U && inside->back().value == 3 && outside.size() == 1U && outside.front().value == 1));
    BOOST_TEST(heaps.is_sound());
    stl::destroy_object(heaps.core, inside);
}

BOOST_AUTO_TEST_CASE(containers_of_what_can_only_be_moved_are_moved_element_by_element) {
    struct Single {
        explicit Single(int n) : value(n) {}
        Single(Single&&) noexcept = default;
        Single& operator=(Single&&) = delete;
        int value;
    };
    Both heaps;
    using Rows = taiyen::vector<taiyen::list<Single>>;
    auto* const inside = stl::make<Rows>(heaps.core, 1U);
    inside->front().emplace_back(1);
    Rows outside(2);
    outside.back().emplace_back(2);
    std::ranges::swap(*inside, outside);
    BOOST_TEST((inside->size() == 2U && inside->back().front().value == 2 && outside.size() == 1U && outside.front().front().value == 1));
    BOOST_TEST(heaps.is_sound());
    stl::destroy_object(heaps.core, inside);
}

BOOST_AUTO_TEST_SUITE_END()
