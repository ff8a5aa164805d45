// What std::map's users count on in a B-tree: types, exceptions that change nothing, arguments that lie in the tree, homes, and look-ups by other types.
#include <taiyen/ordered/btree_map.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "containers/allocators.hpp"

namespace {

using namespace taiyen;
using taiyen::test::CountingAllocator;
using taiyen::test::Ledger;

template <class K, class V, class C = std::less<>>
using Map = btree_map<K, V, C, std::allocator<std::pair<const K, V>>>;
template <class K, class C = std::less<>>
using Set = btree_set<K, C, std::allocator<K>>;

using Plain = Map<int, std::string>;
static_assert(std::is_same_v<Plain::value_type, std::pair<const int, std::string>> && std::is_same_v<Plain::mapped_type, std::string>);
static_assert(std::bidirectional_iterator<Plain::iterator> && std::bidirectional_iterator<Plain::const_iterator> &&
              std::ranges::bidirectional_range<Plain>);
static_assert(std::bidirectional_iterator<Set<int>::iterator> && std::is_same_v<Set<int>::iterator, Set<int>::const_iterator>);
static_assert(std::is_convertible_v<Plain::iterator, Plain::const_iterator> && !std::is_convertible_v<Plain::const_iterator, Plain::iterator>);
// Heads of text may leave out a prefix: only those trees differ from what earlier programs read.
static_assert(Plain::layout_version == 1 && Set<std::string>::layout_version == 2);
static_assert(std::is_nothrow_move_constructible_v<Plain> && std::is_nothrow_move_assignable_v<Plain> && std::is_nothrow_swappable_v<Plain>);
static_assert(std::is_same_v<decltype(std::declval<const Plain&>().begin()->second), const std::string&>);
static_assert(std::is_same_v<decltype(std::declval<Plain&>().begin()->second), std::string&>);

// What they are made of says their types.
template <template <class...> class Container, class Greater = std::greater<>, class Allocator = std::allocator<std::pair<const int, std::string>>>
constexpr bool maps_are_deduced = [] {
    using It = std::vector<std::pair<int, std::string>>::const_iterator;
    using Pairs = std::initializer_list<std::pair<const int, std::string>>;
    using Ascending = Container<int, std::string, std::less<>, Allocator>;
    using Descending = Container<int, std::string, Greater, Allocator>;
    return std::is_same_v<decltype(Container(It(), It(), Allocator())), Ascending> &&
           std::is_same_v<decltype(Container(It(), It(), Greater(), Allocator())), Descending> &&
           std::is_same_v<decltype(Container(Pairs(), Allocator())), Ascending> &&
           std::is_same_v<decltype(Container(Pairs(), Greater(), Allocator())), Descending> &&
           std::is_same_v<decltype(Container(std::declval<Ascending&>().begin(), std::declval<Ascending&>().end(), Allocator())), Ascending> &&
           std::is_same_v<decltype(Container(std::declval<const Descending&>())), Descending>;
}();
template <template <class...> class Container, class Greater = std::greater<>, class Allocator = std::allocator<int>>
constexpr bool sets_are_deduced = [] {
    using It = std::vector<int>::const_iterator;
    using Ascending = Container<int, std::less<>, Allocator>;
    using Descending = Container<int, Greater, Allocator>;
    return std::is_same_v<decltype(Container(It(), It(), Allocator())), Ascending> &&
           std::is_same_v<decltype(Container(It(), It(), Greater(), Allocator())), Descending> &&
           std::is_same_v<decltype(Container({1, 2}, Allocator())), Ascending> &&
           std::is_same_v<decltype(Container({1, 2}, Greater(), Allocator())), Descending> &&
           std::is_same_v<decltype(Container(std::declval<const Descending&>())), Descending>;
}();
static_assert(maps_are_deduced<btree_map> && maps_are_deduced<btree_multimap> && maps_are_deduced<ordered_map> && maps_are_deduced<ordered_multimap>);
static_assert(sets_are_deduced<btree_set> && sets_are_deduced<btree_multiset> && sets_are_deduced<ordered_set> && sets_are_deduced<ordered_multiset>);

/// Copies, and comparisons, that fail when their time has come; counts who lives.
struct Chance {
    static inline std::uint64_t until = ~std::uint64_t{0};
    static inline std::int64_t alive = 0;
    static void take() {
        if (until == 0) throw std::runtime_error("now");
        --until;
    }
};
struct Risky {
    int number = 0;
    std::unique_ptr<int> own;  // a copy that is forgotten, or destroyed twice, is found

    Risky(int value) : number(value), own(std::make_unique<int>(value)) { ++Chance::alive; }  // NOLINT(google-explicit-constructor): as keys are
    Risky(const Risky& other) : number(other.number), own((Chance::take(), std::make_unique<int>(other.number))) { ++Chance::alive; }
    Risky& operator=(const Risky&) = delete;
    ~Risky() { --Chance::alive; }
    bool operator==(const Risky& other) const { return number == other.number; }
    bool operator<(const Risky& other) const {
        Chance::take();
        return number < other.number;
    }
};

using RiskyMap = btree_map<Risky, Risky, ranked<>, CountingAllocator<std::pair<const Risky, Risky>>>;
using RiskyOrdered = ordered_map<Risky, Risky, ranked<>, CountingAllocator<std::pair<const Risky, Risky>>>;
using RiskyMultiset = btree_multiset<Risky, std::less<>, CountingAllocator<Risky>>;

template <class Tree>
std::vector<int> numbers_of(const Tree& tree) {
    std::vector<int> numbers;
    for (const auto& element : tree)
        if constexpr (!std::is_same_v<Tree, RiskyMultiset>)
            numbers.push_back(element.first.number * 1000 + element.second.number);
        else
            numbers.push_back(element.number);
    return numbers;
}

/// Calls `change` again and again, each time with more copies, comparisons or allocations that go well; each time it throws, `tree` is as it was. Ends when it doesn't throw.
template <class Tree, class F>
void fails_at_every_point(Tree& tree, Ledger& ledger, bool is_strong, const F& change) {
    for (const bool of_memory : {false, true}) {
        for (std::uint64_t point = 0;; point += is_strong ? 1 : 1 + point / 16) {
            Tree copy(tree, tree.get_allocator());
            const std::vector<int> before = numbers_of(copy);
            (of_memory ? ledger.until_failure : Chance::until) = point;
            bool has_thrown = false;
            try {
                change(copy);
            } catch (const std::exception&) {
                has_thrown = true;
            }
            ledger.until_failure = Chance::until = ~std::uint64_t{0};
            BOOST_REQUIRE(copy.is_sound());
            if (!has_thrown) break;
            if (is_strong) BOOST_REQUIRE(numbers_of(copy) == before);
        }
    }
}

/// A key that lies apart, and may be gone.
struct Mortal {
    int number;
    bool is_alive = true;
};
struct ByNumber {
    bool operator()(const Mortal* a, const Mortal* b) const {
        BOOST_TEST_REQUIRE((a->is_alive && b->is_alive));
        return a->number < b->number;
    }
};

}  // namespace

template <>
inline constexpr std::size_t taiyen::ordered::leaf_bytes_of<ByNumber> = 256;

namespace {

BOOST_AUTO_TEST_SUITE(btree)

BOOST_AUTO_TEST_CASE(an_insertion_that_throws_changes_nothing_and_loses_nothing) {
    Ledger ledger;
    const std::int64_t before = Chance::alive;
    for (const int size : {0, 1, 2, 3, 7, 8, 12, 31, 32, 48, 49, 60, 200, 700}) {
        RiskyMap map{CountingAllocator<std::pair<const Risky, Risky>>(ledger)};
        RiskyMultiset set{CountingAllocator<Risky>(ledger)};
        RiskyOrdered ordered{CountingAllocator<std::pair<const Risky, Risky>>(ledger)};
        for (int i = 0; i < size; ++i) {
            map.emplace(i * 2, i);
            ordered.emplace(i * 2, i);
            set.emplace(i / 3);
        }
        for (const int key : {-1, size, size | 1, size * 2 + 1}) {
            fails_at_every_point(map, ledger, true, [&](RiskyMap& tree) { tree.emplace(key, 5); });
            fails_at_every_point(map, ledger, true, [&](RiskyMap& tree) { tree.try_emplace(Risky(key), 5); });
            fails_at_every_point(set, ledger, true, [&](RiskyMultiset& tree) { tree.emplace(key); });
            fails_at_every_point(ordered, ledger, true, [&](RiskyOrdered& tree) { tree.try_emplace(Risky(key), 5); });
        }
    }
    BOOST_TEST(Chance::alive == before);
    BOOST_TEST(ledger.blocks == 0U);
}

BOOST_AUTO_TEST_CASE(an_insertion_that_throws_leaves_no_separator_that_is_its_key) {
    using Pointers = btree_multimap<const Mortal*, Risky, ByNumber, std::allocator<std::pair<const Mortal* const, Risky>>>;
    std::deque<Mortal> names;
    Pointers whole;
    for (int i = 0; i < 100; ++i) whole.emplace(&names.emplace_back(Mortal{i}), i);
    const Risky value(1);
    unsigned thrown = 0;
    for (const Mortal& there : names) {
        for (std::uint64_t point = 0;; ++point) {
            Pointers map(whole);
            Mortal key{there.number};
            Chance::until = point;
            try {
                map.emplace_hint(map.find(&there), &key, value);
                Chance::until = ~std::uint64_t{0};
                BOOST_TEST_REQUIRE(map.is_sound());
                break;
            } catch (const std::runtime_error&) {
                Chance::until = ~std::uint64_t{0};
            }
            ++thrown;
            key.is_alive = false;
            BOOST_TEST_REQUIRE((map.is_sound() && map.size() == whole.size() && map.contains(&there)));
        }
    }
    BOOST_TEST(thrown > 200U);
}

BOOST_AUTO_TEST_CASE(an_erasure_that_throws_changes_nothing_and_what_takes_many_steps_leaves_a_sound_tree) {
    Ledger ledger;
    const std::int64_t before = Chance::alive;
    for (const int size : {1, 9, 60, 300}) {
        RiskyMap map{CountingAllocator<std::pair<const Risky, Risky>>(ledger)};
        for (int i = 0; i < size; ++i) map.emplace(i, i);
        const Risky middle(size / 2);
        fails_at_every_point(map, ledger, true, [&](RiskyMap& tree) { tree.erase(middle); });
        fails_at_every_point(map, ledger, true, [&](RiskyMap& tree) { tree.erase(tree.begin()); });
        fails_at_every_point(map, ledger, false, [&](RiskyMap& tree) { tree.erase(tree.begin(), tree.find(middle)); });
        fails_at_every_point(map, ledger, false, [&](RiskyMap& tree) { erase_if(tree, [](const auto& one) { return one.first.number % 3 != 0; }); });
        fails_at_every_point(map, ledger, true, [&](RiskyMap& tree) {
            const RiskyMap copy(tree, tree.get_allocator());
            BOOST_TEST(copy.size() == tree.size());
        });
        fails_at_every_point(map, ledger, false, [&](RiskyMap& tree) {
            RiskyMap other{tree.get_allocator()};
            for (int i = 0; i < size; ++i) other.emplace(i * 2, i);
            tree.merge(other);
        });
    }
    BOOST_TEST(Chance::alive == before);
    BOOST_TEST(ledger.blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_node_is_in_one_tree_or_in_the_handle_whatever_throws) {
    Ledger ledger;
    const std::int64_t before = Chance::alive;
    for (const int size : {1, 9, 300}) {
        RiskyOrdered ordered{CountingAllocator<std::pair<const Risky, Risky>>(ledger)};
        for (int i = 0; i < size; ++i) ordered.emplace(i, i);
        fails_at_every_point(ordered, ledger, true, [&](RiskyOrdered& tree) { tree.extract(tree.begin()); });
        fails_at_every_point(ordered, ledger, true, [&](RiskyOrdered& tree) { tree.extract(Risky(size / 2)); });
        fails_at_every_point(ordered, ledger, true, [&](RiskyOrdered& tree) { tree.erase(tree.begin()); });
        fails_at_every_point(ordered, ledger, false, [&](RiskyOrdered& tree) { tree.erase(tree.begin(), tree.find(Risky(size / 2))); });
        fails_at_every_point(ordered, ledger, false, [&](RiskyOrdered& tree) {
            auto node = tree.extract(std::next(tree.begin(), size / 3));
            const int wanted = node.key().number;
            try {
                tree.insert(std::move(node));
            } catch (...) {
                BOOST_TEST(node.key().number == wanted);
                throw;
            }
        });
        fails_at_every_point(ordered, ledger, false, [&](RiskyOrdered& tree) {
            RiskyOrdered other{tree.get_allocator()};
            for (int i = 0; i < size; ++i) other.emplace(i * 2, i);
            const std::size_t both = tree.size() + other.size();
            try {
                tree.merge(other);
            } catch (...) {
                BOOST_TEST(tree.size() + other.size() == both);
                BOOST_TEST(other.is_sound());
                throw;
            }
        });
    }
    BOOST_TEST(Chance::alive == before);
    BOOST_TEST(ledger.blocks == 0U);
}

BOOST_AUTO_TEST_CASE(elements_that_lie_apart_never_move) {
    using Ordered = ordered_map<std::string, std::unique_ptr<int>, std::less<>, std::allocator<std::pair<const std::string, std::unique_ptr<int>>>>;
    Ordered tree;
    Ordered other;
    std::map<std::string, const Ordered::value_type*> places;
    const auto name = [](int i) { return "a name that many others begin with, " + std::to_string(i * 7919 % 5000); };
    const auto check = [&] {
        for (const auto& [key, place] : places) {
            const auto at = tree.find(key);
            BOOST_REQUIRE((at != tree.end() && &*at == place && *place->second == static_cast<int>(key.size())));
            BOOST_REQUIRE((tree.iterator_to(*place) == at));
        }
        BOOST_REQUIRE((tree.size() == places.size() && tree.is_sound()));
    };
    for (int i = 0; i < 3000; ++i) {
        const auto inserted = tree.try_emplace(name(i), std::make_unique<int>(static_cast<int>(name(i).size())));
        BOOST_REQUIRE(inserted.second);
        places.emplace(name(i), &*inserted.first);
    }
    check();
    for (int i = 0; i < 3000; i += 3) BOOST_REQUIRE((tree.erase(name(i)) == 1U && places.erase(name(i)) == 1U));
    check();
    tree.split(std::next(tree.begin(), 700), other);
    tree.merge(other);
    check();
    tree.swap(other);
    tree = std::move(other);
    check();
    for (int i = 1; i < 3000; i += 3) {
        auto node = tree.extract(name(i));
        BOOST_REQUIRE((!node.empty() && node.key() == name(i)));
        BOOST_REQUIRE(tree.insert(std::move(node)).inserted);
    }
    check();
}

/// Bytes that heads leave out: the least of all leaves.
template <class Tree>
std::uint32_t least_skip(const Tree& map) {
    using Nodes = std::remove_cvref_t<decltype(map.tree())>;
    std::uint32_t least = 0xffff;
    for (const auto* leaf = Nodes::leaf_at(map.tree().first()); leaf != nullptr; leaf = Nodes::leaf_or_null(leaf->next))
        least = std::min<std::uint32_t>(least, leaf->skip);
    return least;
}
template <class Tree>
void heads_begin_behind_what_keys_have_in_common() {
    Tree map;
    const std::string common = "https://example.org/customers/";
    const auto key = [&](int i) { return common + std::to_string(100'000 + i * 7919 % 50'000); };
    for (int i = 0; i < 5000; ++i) map.emplace(key(i), i);
    BOOST_TEST(least_skip(map) >= common.size());
    BOOST_TEST(map.is_sound());
    const auto check = [&](int from) {
        for (int i = from; i < 5000; ++i) BOOST_REQUIRE(map.at(key(i)) == i);
        for (const std::string& other :
             {std::string(), common, common.substr(0, 20), common + "0", common + "9", std::string("https"), std::string("i")}) {
            BOOST_REQUIRE(!map.contains(other));
            BOOST_REQUIRE(std::distance(map.begin(), map.lower_bound(other)) == (other <= common + "0" ? 0 : static_cast<int>(map.size())));
        }
        BOOST_REQUIRE(map.is_sound());
    };
    check(0);
    // What begins otherwise is taken in, in front, behind and between.
    for (const char* other : {"", "a", "http", "https://example.org/customers/1", "zebra"}) {
        map.emplace(other, -1);
        BOOST_REQUIRE((map.is_sound() && map.at(other) == -1));
    }
    BOOST_TEST(least_skip(map) == 0U);
    for (const char* other : {"", "a", "http", "https://example.org/customers/1", "zebra"}) BOOST_REQUIRE(map.erase(other) == 1U);
    check(0);
    // So much that separators begin otherwise, too, on both sides.
    const auto other = [](int i) { return (i % 2 == 0 ? "another beginning " : "the third beginning ") + std::to_string(i * 7919 % 50'000); };
    for (int i = 0; i < 3000; ++i) {
        map.emplace(other(i), i);
        if (i % 50 == 0) BOOST_REQUIRE(map.is_sound());
    }
    for (int i = 0; i < 3000; ++i) BOOST_REQUIRE(map.at(other(i)) == i);
    for (int i = 0; i < 5000; ++i) BOOST_REQUIRE(map.at(key(i)) == i);
    for (int i = 0; i < 3000; ++i) BOOST_REQUIRE(map.erase(other(i)) == 1U);
    check(0);
    for (int i = 0; i < 4900; ++i) BOOST_REQUIRE(map.erase(key(i)) == 1U);
    check(4900);
}
BOOST_AUTO_TEST_CASE(heads_begin_behind_what_the_keys_of_a_node_have_in_common) {
    heads_begin_behind_what_keys_have_in_common<Map<std::string, int>>();
    heads_begin_behind_what_keys_have_in_common<ordered_map<std::string, int, std::less<>, std::allocator<std::pair<const std::string, int>>>>();
}

BOOST_AUTO_TEST_CASE(arguments_may_lie_in_the_tree) {
    Map<std::string, std::string> map;
    btree_multiset<std::string, std::less<>, std::allocator<std::string>> set;
    const auto text = [](int i) { return "a text longer than a small buffer " + std::to_string(i); };
    map.emplace(text(0), text(0));
    set.insert(text(0));
    for (int i = 1; i < 1000; ++i) {
        const auto from = map.find(text(i / 2));
        map.emplace(text(i), from->second);
        BOOST_REQUIRE(map.at(text(i)) == text(0));
        map.insert_or_assign(text(i), map.begin()->second);
        set.insert(*set.begin());
        set.emplace(*set.rbegin());
        set.insert(set.end(), *set.find(text(0)));
    }
    BOOST_TEST(set.size() == 2998U);
    BOOST_TEST((set.is_sound() && map.is_sound()));
    while (!map.empty()) BOOST_REQUIRE(map.erase(map.begin()->first) == 1U);
    BOOST_REQUIRE(set.erase(*set.begin()) == 2998U);

    auto& same = map;
    map.emplace("x", "y");
    map = same;
    map.swap(same);
    map = std::move(same);
    map.merge(same);
    set.insert({"a", "a", "b"});
    set.merge(set);
    BOOST_TEST(map.at("x") == "y");
    BOOST_TEST(set.size() == 3U);
}

BOOST_AUTO_TEST_CASE(look_ups_by_other_types_say_what_comparing_says) {
    Map<std::int64_t, int> numbers;
    std::map<std::int64_t, int, std::less<>> model;
    for (std::int64_t i = -50; i < 50; ++i) {
        numbers.emplace(i * 3, 0);
        model.emplace(i * 3, 0);
    }
    numbers.emplace(std::int64_t{1} << 60, 0);
    model.emplace(std::int64_t{1} << 60, 0);
    const auto same = [&](const auto& asked) {
        BOOST_TEST(numbers.contains(asked) == model.contains(asked));
        BOOST_TEST(std::distance(numbers.begin(), numbers.lower_bound(asked)) == std::distance(model.begin(), model.lower_bound(asked)));
        BOOST_TEST(std::distance(numbers.begin(), numbers.upper_bound(asked)) == std::distance(model.begin(), model.upper_bound(asked)));
        BOOST_TEST(numbers.count(asked) == model.count(asked));
    };
    same(3);
    same(std::int8_t{-3});
    same(std::int64_t{1} << 60);
    same(3.5);
    same(-3.0F);
    same(1e300);
    same(-1e300);
    same(std::uint32_t{9});

    Map<std::string, int> names;
    names.emplace("abcdefgh", 1);
    names.emplace("abcdefghi", 2);
    names.emplace(std::string("abcdefgh\0", 9), 3);
    BOOST_TEST(names.find("abcdefgh")->second == 1);
    BOOST_TEST(names.find(std::string_view("abcdefghi"))->second == 2);
    BOOST_TEST(names.find(std::string_view("abcdefgh\0", 9))->second == 3);
    BOOST_TEST((names.find("abcdefg") == names.end()));
    BOOST_TEST(names.erase("abcdefgh") == 1U);
    BOOST_CHECK_THROW(names.at("abcdefgh"), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(homes_are_kept) {
    Ledger here;
    Ledger there;
    using Tree = btree_map<int, std::string, std::less<>, CountingAllocator<std::pair<const int, std::string>>>;
    {
        Tree a{CountingAllocator<std::pair<const int, std::string>>(here)};
        Tree b{CountingAllocator<std::pair<const int, std::string>>(there)};
        for (int i = 0; i < 500; ++i) a.emplace(i, std::to_string(i));
        BOOST_TEST(there.blocks == 0U);
        b = a;
        BOOST_TEST((b == a));
        const std::uint64_t of_b = there.bytes;
        a = std::move(b);  // element by element
        BOOST_TEST(there.bytes < of_b);
        BOOST_TEST((a.size() == 500U && a.get_allocator().ledger() == &here));
        Tree c(std::move(a), CountingAllocator<std::pair<const int, std::string>>(there));
        BOOST_TEST((c.size() == 500U && c.is_sound() && here.blocks == 0U));
        Tree d(c);
        BOOST_TEST(d.get_allocator().ledger() == &there);
    }
    BOOST_TEST((here.blocks == 0U && there.blocks == 0U && here.bytes == 0U && there.bytes == 0U));
}

BOOST_AUTO_TEST_CASE(elements_that_move_to_another_home_and_find_no_memory_leave_two_sound_trees) {
    using Tree = btree_map<std::string, std::string, std::less<>, CountingAllocator<std::pair<const std::string, std::string>>>;
    Ledger here;
    for (std::uint64_t until = 0; until < 12; ++until) {
        Ledger there;
        Tree from{CountingAllocator<std::pair<const std::string, std::string>>(here)};
        Tree to{CountingAllocator<std::pair<const std::string, std::string>>(there)};
        for (int i = 0; i < 500; ++i) from.emplace("a key of more than a few letters " + std::to_string(i), "x");
        there.until_failure = until;
        BOOST_CHECK_THROW(to = std::move(from), std::bad_alloc);
        BOOST_TEST((to.is_sound() && from.is_sound()));  // NOLINT(bugprone-use-after-move): promised
        from.emplace("b", "c");
        BOOST_TEST(from.at("b") == "c");
        there.until_failure = ~std::uint64_t{0};
    }
    BOOST_TEST(here.blocks == 0U);
}

BOOST_AUTO_TEST_CASE(values_that_can_only_be_moved_and_such_as_cannot_be) {
    Map<int, std::unique_ptr<int>> owners;
    for (int i = 0; i < 1000; ++i) owners.emplace(i * 7 % 1000, std::make_unique<int>(i));
    BOOST_TEST(owners.try_emplace(5, nullptr).second == false);
    BOOST_TEST(*owners.at(7) == 1);
    auto moved = std::move(owners);
    BOOST_TEST((moved.is_sound() && moved.size() == 1000U && owners.empty()));  // NOLINT(bugprone-use-after-move): promised

    struct alignas(32) Aligned {
        std::byte bytes[32];
    };
    Map<std::uint8_t, Aligned> aligned;
    for (int i = 0; i < 256; ++i) {
        const auto place = reinterpret_cast<std::uintptr_t>(&aligned.try_emplace(static_cast<std::uint8_t>(i * 37)).first->second);
        BOOST_REQUIRE(place % 32 == 0U);
    }
    BOOST_TEST(aligned.size() == 256U);
}

BOOST_AUTO_TEST_CASE(ascending_input_leaves_full_leaves_and_a_byte_of_overhead) {
    Map<std::uint64_t, std::uint64_t> map;
    for (std::uint64_t i = 0; i < 100'000; ++i) map.emplace_hint(map.end(), i, i);
    BOOST_TEST(map.is_sound());
    BOOST_TEST(map.node_bytes() < 100'000U * 18);
    Map<std::uint64_t, std::uint64_t> plain;
    for (std::uint64_t i = 0; i < 100'000; ++i) plain.emplace(i, i);
    BOOST_TEST(plain.node_bytes() == map.node_bytes());
    for (std::uint64_t i = 0; i < 100'000; ++i)
        if (i % 10 != 0) plain.erase(i);
    BOOST_TEST(plain.is_sound());
    BOOST_TEST(plain.node_bytes() < 10'000U * 60);
}

BOOST_AUTO_TEST_CASE(runs_of_keys_leave_full_leaves_wherever_they_lie) {
    constexpr std::uint64_t count = 100'000;
    const auto bytes_of = [](std::initializer_list<std::uint64_t> first, auto&& key) {
        Map<std::uint64_t, std::uint64_t> map;
        for (const std::uint64_t there : first) map.emplace(there, there);
        for (std::uint64_t i = 0; i < count; ++i) map.emplace(key(i), i);
        BOOST_TEST(map.is_sound());
        BOOST_TEST(map.size() == count + first.size());
        return map.node_bytes();
    };
    const auto rising = [](std::uint64_t i) { return count + i; };
    const auto falling = [](std::uint64_t i) { return 2 * count - i; };
    BOOST_TEST(bytes_of({10 * count}, rising) < count * 19);
    BOOST_TEST(bytes_of({1, 10 * count}, rising) < count * 19);
    BOOST_TEST(bytes_of({}, falling) < count * 19);
    BOOST_TEST(bytes_of({10 * count}, falling) < count * 19);
    BOOST_TEST(bytes_of({1, 10 * count}, falling) < count * 19);
    // One that turns around at each step has its ends in one leaf.
    BOOST_TEST(bytes_of({1, 10 * count}, [](std::uint64_t i) { return i % 2 == 0 ? count + i : 9 * count - i; }) < count * 40);
}

BOOST_AUTO_TEST_CASE(algorithms_of_ranges_take_them) {
    Plain map;
    for (int i = 0; i < 300; ++i) map.emplace(i, std::to_string(i));
    const auto found = std::ranges::find_if(map, [](const auto& element) { return element.second == "77"; });
    BOOST_TEST(found->first == 77);
    BOOST_TEST(std::ranges::count_if(map, [](const auto& element) { return element.first % 2 == 0; }) == 150);
    std::vector<std::pair<int, std::string>> copied(map.begin(), map.end());
    BOOST_TEST(copied.back().second == "299");
    const Plain again(copied.begin(), copied.end());
    BOOST_TEST((again == map));
    for (auto&& [key, value] : map) value += std::to_string(key);
    BOOST_TEST(map.at(5) == "55");
    BOOST_TEST((again < map));
}

/// Pairs in order, and a look-up by the first number alone, which many pairs equal.
struct Pair {
    int first, second;
};
struct ByFirst {
    using is_transparent = void;
    bool operator()(const Pair& a, const Pair& b) const { return a.first != b.first ? a.first < b.first : a.second < b.second; }
    bool operator()(const Pair& a, int b) const { return a.first < b; }
    bool operator()(int a, const Pair& b) const { return a < b.first; }
};

template <class Pairs>
void look_up_many_at_once() {
    Pairs pairs;
    std::set<Pair, ByFirst> model;
    for (int i = 0; i < 2500; ++i) {
        pairs.insert(Pair{i / 500, i % 500});
        model.insert(Pair{i / 500, i % 500});
    }
    for (const int first : {-1, 0, 3, 4, 5}) {
        const auto [from, to] = pairs.equal_range(first);
        BOOST_TEST((from == pairs.lower_bound(first) && to == pairs.upper_bound(first)));
        BOOST_TEST(std::distance(pairs.begin(), from) == std::distance(model.begin(), model.lower_bound(first)));
        BOOST_TEST(pairs.count(first) == model.count(first));
        const auto found = pairs.find(first);
        BOOST_TEST((found == pairs.end() || found->second == 0));
    }
    pairs.erase(3);
    BOOST_TEST(pairs.size() == 2000U);
    BOOST_TEST(pairs.is_sound());
}

BOOST_AUTO_TEST_CASE(a_look_up_that_many_keys_equal_finds_all_of_them) {
    look_up_many_at_once<btree_set<Pair, ByFirst, std::allocator<Pair>>>();
    look_up_many_at_once<ordered_set<Pair, ByFirst, std::allocator<Pair>>>();
}

template <class A, class B>
void merge_all(A& to, B& from) {
    for (int i = 0; i < 1000; ++i) from.emplace("key" + std::to_string(i), i);
    to.emplace("key7", -1);
    to.merge(from);
    BOOST_TEST((to.size() == 1000U && from.size() == 1U && from.begin()->second == 7));
    BOOST_TEST((to.is_sound() && from.is_sound()));
}

BOOST_AUTO_TEST_CASE(merging_needs_neither_the_order_of_moved_keys_nor_the_same_order) {
    using Reverse = std::greater<>;
    Map<std::string, int, Reverse> a, b;
    merge_all(a, b);
    Map<std::string, int> c;
    Map<std::string, int, Reverse> d;
    merge_all(c, d);
    using Elements = std::allocator<std::pair<const std::string, int>>;
    ordered_map<std::string, int, std::less<>, Elements> e;
    ordered_map<std::string, int, Reverse, Elements> f;
    merge_all(e, f);
}

BOOST_AUTO_TEST_CASE(merging_that_runs_out_of_memory_loses_nothing) {
    using Names = btree_map<std::string, std::string, std::less<>, CountingAllocator<std::pair<const std::string, std::string>>>;
    const auto name = [](int i) { return "a name that is not short " + std::to_string(10'000 + i); };
    std::uint64_t thrown = 0;
    for (std::uint64_t until = 0; until < 40; ++until) {
        Ledger ledger;
        Names to{CountingAllocator<std::pair<const std::string, std::string>>(ledger)};
        Names from{to.get_allocator()};
        for (int i = 0; i < 500; ++i) from.emplace(name(i), name(i));
        for (int i = 0; i < 500; i += 7) to.emplace(name(i) + "x", "");
        ledger.until_failure = until;
        try {
            to.merge(from);
        } catch (const std::bad_alloc&) {
            ++thrown;
        }
        ledger.until_failure = std::numeric_limits<std::uint64_t>::max();
        BOOST_TEST((to.is_sound() && from.is_sound()));
        for (int i = 0; i < 500; ++i) {
            const Names& has = to.contains(name(i)) ? to : from;
            BOOST_TEST_REQUIRE(has.at(name(i)) == name(i));
        }
    }
    BOOST_TEST(thrown > 20U);
}

BOOST_AUTO_TEST_CASE(elements_apart_whose_keys_can_only_be_moved_are_split_and_extracted) {
    using Key = std::unique_ptr<int>;
    using Owners = ordered_map<Key, int, std::less<Key>, CountingAllocator<std::pair<const Key, int>>>;
    Ledger here, there;
    for (Ledger* const home : {&here, &there}) {
        Owners owners{CountingAllocator<std::pair<const Key, int>>(here)};
        Owners rest{CountingAllocator<std::pair<const Key, int>>(*home)};
        for (int i = 0; i < 600; ++i) owners.try_emplace(std::make_unique<int>(i), i);
        owners.split(std::next(owners.begin(), 200), rest);
        BOOST_TEST((owners.size() == 200U && rest.size() == 400U && owners.is_sound() && rest.is_sound()));
        BOOST_TEST((std::prev(owners.end())->first < rest.begin()->first));
    }
    ordered_map<std::string, int, std::less<std::string>, std::allocator<std::pair<const std::string, int>>> named{{{"a", 1}, {"b", 2}}};
    BOOST_TEST(named.extract("a").mapped() == 1);
    BOOST_TEST((named.extract("a").empty() && named.size() == 1U));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
