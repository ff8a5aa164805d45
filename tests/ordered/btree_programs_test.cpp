// Random programs on B-trees: whatever the key, its order and the shape of a node, a tree is what the standard library's container makes of the same steps, sound behind each, and all memory comes back.
#include <taiyen/ordered/btree_map.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "containers/allocators.hpp"
#include "seed.hpp"

namespace {

using namespace taiyen;
using taiyen::test::CountingAllocator;
using taiyen::test::Ledger;
using taiyen::test::OffsetPointerAllocator;

/// 300 bytes that can be copied as bytes: too large to stand in an inner node.
struct Large {
    std::int32_t number = 0;
    std::array<char, 296> rest{};
    auto operator<=>(const Large&) const = default;
};
/// 24 bytes that stand in inner nodes.
struct Middle {
    std::int64_t first = 0, second = 0, third = 0;
    auto operator<=>(const Middle&) const = default;
};
/// Orders as it is told to; part of the tree.
struct Modulo {
    int modulus = 1'000'000;
    bool operator()(int a, int b) const { return a % modulus < b % modulus; }
};
struct NoCase {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const {
        const auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
        return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return low(x) < low(y); });
    }
};
enum class Colour : std::uint16_t {};

/// One function for all instances: the macro in each would be most of what the compiler has to do.
void require(bool is_true, std::source_location where = std::source_location::current()) {
    BOOST_REQUIRE_MESSAGE(is_true, where.file_name() << ":" << where.line() << ": not as the model");
}

template <class K>
K key_of(std::uint64_t number) {
    if constexpr (std::is_same_v<K, std::string>) {
        // Empty, short, with zeros and high bytes, and with long beginnings that others have, too.
        std::string text = std::to_string(number / 3);
        if (number % 3 == 0) return number == 0 ? "" : text;
        if (number % 3 == 1) return "a beginning that many have " + text;
        text.insert(text.size() / 2, 1, number % 2 == 0 ? '\0' : '\xff');
        return std::string(number % 9, '\0') + text;
    } else if constexpr (std::is_floating_point_v<K>) {
        constexpr K edges[] = {-std::numeric_limits<K>::infinity(),
                               std::numeric_limits<K>::infinity(),
                               std::numeric_limits<K>::max(),
                               std::numeric_limits<K>::lowest(),
                               K(0),
                               std::numeric_limits<K>::denorm_min()};
        return number < std::size(edges) ? edges[number] : (static_cast<K>(number) - 300) * K(.37);
    } else if constexpr (std::is_same_v<K, bool>) {
        return number % 2 == 1;
    } else if constexpr (std::is_integral_v<K>) {
        if (number == 0) return std::numeric_limits<K>::max();
        if (number == 1) return std::numeric_limits<K>::min();
        return static_cast<K>(number * 0x0101'0101'0101'0101U);
    } else if constexpr (std::is_enum_v<K>) {
        return static_cast<K>(number);
    } else if constexpr (std::is_pointer_v<K>) {
        static const std::vector<char> place(100'000);
        return place.data() + number % place.size();
    } else if constexpr (std::is_same_v<K, std::pair<int, int>>) {
        return {static_cast<int>(number / 7), -static_cast<int>(number % 7)};
    } else if constexpr (std::is_same_v<K, Middle>) {
        return {static_cast<std::int64_t>(number / 50), 7, -static_cast<std::int64_t>(number)};
    } else {
        return {static_cast<std::int32_t>(number), {static_cast<char>(number % 5)}};
    }
}

/// Trees and models of one type, sets and maps alike.
template <class Tree, class Model>
class Programs {
    using K = typename Tree::key_type;
    static constexpr bool is_map = !std::is_same_v<typename Tree::value_type, K>;
    static constexpr bool is_unique =
        !std::is_same_v<decltype(std::declval<Model&>().insert(std::declval<typename Model::value_type>())), typename Model::iterator>;

public:
    Programs(std::uint64_t seed, const typename Tree::key_compare& compare = {})
        : random_(seed), compare_(compare), tree_(compare, allocator()), other_(compare, allocator()), model_(compare), other_model_(compare) {}

    /// `keys`: of how many different ones.
    void run(int steps, std::uint64_t keys) {
        keys_ = keys;
        for (int i = 0; i < steps; ++i) {
            step();
            if (i % 4 == 0 || i + 1 == steps) check();
        }
        look_up_all();
        tree_.clear();
        other_.clear();
        require(ledger_.blocks == 0U && ledger_.bytes == 0U);
    }

private:
    auto allocator() {
        if constexpr (std::is_constructible_v<typename Tree::allocator_type, Ledger&>)
            return typename Tree::allocator_type(ledger_);
        else
            return typename Tree::allocator_type();
    }
    std::uint64_t pick(std::uint64_t limit) { return random_() % limit; }
    K any_key() { return key_of<K>(pick(keys_)); }
    auto element(const K& key) {
        if constexpr (is_map)
            return typename Tree::value_type(key, ++value_);
        else
            return key;
    }
    static bool same(const auto& a, const auto& b) {
        if constexpr (is_map)
            return a.first == b.first && a.second == b.second;
        else
            return a == b;
    }
    template <class A, class B>
    void both(const A& of_tree, const B& of_model) {
        require((of_tree == tree_.end()) == (of_model == model_.end()));
        if (of_model != model_.end()) require(same(*of_tree, *of_model));
    }
    void insert_one() {
        const auto one = element(any_key());
        if constexpr (is_unique) {
            const auto inserted = tree_.insert(one);
            const auto expected = model_.insert(one);
            require(inserted.second == expected.second);
            both(inserted.first, expected.first);
        } else {
            both(tree_.insert(one), model_.insert(one));
        }
    }
    void insert_hinted() {
        const K key = any_key();
        const auto one = element(key);
        auto hint = tree_.lower_bound(pick(3) == 0 ? any_key() : key);
        auto model_hint = model_.begin();
        std::advance(model_hint, std::distance(tree_.begin(), hint));
        if (pick(2) == 0) {
            hint = tree_.end();
            model_hint = model_.end();
        }
        both(tree_.insert(hint, one), model_.insert(model_hint, one));
    }
    void insert_many() {
        std::vector<std::conditional_t<is_map, std::pair<K, int>, K>> many;
        const std::uint64_t first = pick(keys_);
        const std::uint64_t stride = 1 + pick(3);
        for (std::uint64_t i = pick(200); i != 0; --i) many.push_back(element(key_of<K>(first + i * stride)));
        if (pick(2) == 0) std::reverse(many.begin(), many.end());
        if constexpr (!is_map) {
            if (pick(2) == 0) std::sort(many.begin(), many.end(), compare_);
        }
        tree_.insert(many.begin(), many.end());
        model_.insert(many.begin(), many.end());
    }
    void erase_range() {
        K from = any_key();
        K to = any_key();
        if (compare_(to, from)) std::swap(from, to);
        both(tree_.erase(tree_.lower_bound(from), tree_.upper_bound(to)), model_.erase(model_.lower_bound(from), model_.upper_bound(to)));
    }
    void erase_places() {
        const K key = any_key();
        auto at = tree_.lower_bound(key);
        auto model_at = model_.lower_bound(key);
        for (std::uint64_t i = pick(150); i != 0 && model_at != model_.end(); --i) {
            at = tree_.erase(at);
            model_at = model_.erase(model_at);
            both(at, model_at);
        }
    }
    /// And puts the parts together again, now and then.
    void split() {
        const K key = any_key();
        Tree to(compare_, allocator());
        Model of_model(compare_);
        tree_.split(tree_.lower_bound(key), to);
        for (auto at = model_.lower_bound(key); at != model_.end(); at = model_.erase(at)) of_model.insert(*at);
        require(tree_.is_sound() && to.is_sound() && to.size() == of_model.size());
        require(std::equal(to.begin(), to.end(), of_model.begin(), of_model.end(), [](const auto& a, const auto& b) { return same(a, b); }));
        if (pick(3) == 0) {
            tree_ = to;
            model_ = of_model;
        } else {
            tree_.merge(to);
            model_.merge(of_model);
        }
    }
    /// A node leaves one tree, takes another key, and goes into one of the two.
    void move_node() {
        const K key = any_key();
        const K other = any_key();
        auto node = tree_.extract(key);
        auto of_model = model_.extract(key);
        require(node.empty() == of_model.empty());
        if (node.empty()) return;
        if constexpr (is_map) {
            require(node.key() == of_model.key() && node.mapped() == of_model.mapped());
            node.key() = other;
            of_model.key() = other;
        } else {
            node.value() = other;
            of_model.value() = other;
        }
        const bool is_here = pick(2) == 0;
        if (pick(4) == 0) {
            auto dropped = std::move(node);
        } else if constexpr (is_unique) {
            const auto inserted = (is_here ? tree_ : other_).insert(std::move(node));
            const auto expected = (is_here ? model_ : other_model_).insert(std::move(of_model));
            require(inserted.inserted == expected.inserted && inserted.node.empty() == expected.node.empty());
            require(same(*inserted.position, *expected.position));
        } else {
            require(same(*(is_here ? tree_ : other_).insert(std::move(node)), *(is_here ? model_ : other_model_).insert(std::move(of_model))));
        }
    }
    void erase_some() {
        std::uint64_t at = 0;
        std::uint64_t model_at = 0;
        const std::uint64_t every = 2 + pick(5);
        require(erase_if(tree_, [&](const auto&) { return at++ % every == 0; }) ==
                std::erase_if(model_, [&](const auto&) { return model_at++ % every == 0; }));
    }
    void step() {
        switch (pick(23)) {
            case 0:
            case 1:
            case 2: insert_one(); break;
            case 3:
            case 4: insert_hinted(); break;
            case 5:
            case 6:
            case 7: insert_many(); break;
            case 8:
            case 9: {
                const K key = any_key();
                require(tree_.erase(key) == model_.erase(key));
                break;
            }
            case 10: erase_places(); break;
            case 11:
                if (pick(3) == 0) erase_range();
                break;
            case 12:
                if (pick(3) == 0) erase_some();
                break;
            case 13:
                other_ = tree_;
                other_model_ = model_;
                break;
            case 14:
                tree_ = std::move(other_);
                model_ = std::move(other_model_);
                other_.clear();
                other_model_.clear();
                break;
            case 15:
                tree_.swap(other_);
                model_.swap(other_model_);
                break;
            case 16:
                tree_.merge(other_);
                model_.merge(other_model_);
                require(other_.is_sound() && other_.size() == other_model_.size());
                break;
            case 17: {
                Tree copy(tree_, allocator());
                require(copy.is_sound() && copy == tree_ && (copy <=> tree_) == 0);
                Tree moved(std::move(copy));
                tree_ = moved;
                break;
            }
            case 19: split(); break;
            case 20:
            case 21:
                if constexpr (requires { tree_.extract(any_key()); }) move_node();
                break;
            case 18:
                if (pick(4) == 0) {
                    tree_.clear();
                    model_.clear();
                }
                break;
            default: look_up(any_key());
        }
        if (tree_.size() > 6000) erase_some();
        if constexpr (is_map && is_unique) {
            const K key = any_key();
            if (pick(4) == 0) {
                tree_.insert_or_assign(key, ++value_);
                model_.insert_or_assign(key, value_);
                tree_[key] += 3;
                model_[key] += 3;
                require(tree_.at(key) == model_.at(key));
            }
        }
    }
    void look_up(const K& key) {
        both(tree_.lower_bound(key), model_.lower_bound(key));
        both(tree_.upper_bound(key), model_.upper_bound(key));
        require(tree_.count(key) == model_.count(key) && tree_.contains(key) == model_.contains(key));
        if constexpr (is_unique)
            both(tree_.find(key), model_.find(key));
        else
            require((tree_.find(key) == tree_.end()) == (model_.find(key) == model_.end()));
    }
    void look_up_all() {
        std::vector<K> keys;
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(keys_, 500); ++i) keys.push_back(key_of<K>(i));
        if constexpr (!std::is_same_v<K, bool>) {
            std::vector<typename Tree::const_iterator> found(keys.size());
            std::as_const(tree_).find_many(std::span<const K>(keys), std::span(found));
            std::size_t met = 0;
            for (std::size_t i = 0; i < keys.size(); ++i) {
                require(found[i] == std::as_const(tree_).find(keys[i]));
                met += found[i] == tree_.end() ? 0 : 1;
            }
            tree_.for_each_found(std::span<const K>(keys), [&](std::size_t i, const auto& one) {
                require(same(one, *found[i]));
                --met;
            });
            require(met == 0U);
        }
        for (const K& key : keys) look_up(key);
    }
    /// Numbers of elements, in a ranked tree.
    void check_ranks() {
        const K key = any_key();
        const auto model_at = model_.lower_bound(key);
        const auto rank = static_cast<std::size_t>(std::distance(model_.begin(), model_at));
        const auto at = std::as_const(tree_).lower_bound(key);
        require(tree_.rank(key) == rank && tree_.index_of(at) == rank && tree_.select(rank) == at);
        require(tree_.select(tree_.size()) == tree_.end() && tree_.index_of(tree_.end()) == tree_.size());
        if (tree_.empty()) return;
        const std::uint64_t number = pick(tree_.size());
        const auto other = tree_.select(number);
        require(std::distance(tree_.begin(), other) == static_cast<std::ptrdiff_t>(number));
        require(tree_.distance(at, other) == static_cast<std::ptrdiff_t>(number) - static_cast<std::ptrdiff_t>(rank));
    }
    void check() {
        require(tree_.is_sound());
        if constexpr (requires { tree_.rank(any_key()); }) check_ranks();
        require(tree_.size() == model_.size());
        require(std::equal(tree_.begin(), tree_.end(), model_.begin(), model_.end(), [](const auto& a, const auto& b) { return same(a, b); }));
        require(std::equal(tree_.rbegin(), tree_.rend(), model_.rbegin(), model_.rend(), [](const auto& a, const auto& b) { return same(a, b); }));
    }

    Ledger ledger_;
    std::mt19937_64 random_;
    typename Tree::key_compare compare_;
    Tree tree_;
    Tree other_;
    Model model_;
    Model other_model_;
    std::uint64_t keys_ = 0;
    int value_ = 0;
};

template <class K>
void programs_of_maps(std::uint64_t keys) {
    using Allocator = CountingAllocator<std::pair<const K, int>>;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    Programs<btree_map<K, int, std::less<>, Allocator>, std::map<K, int, std::less<>>>(seed).run(400, keys);
    Programs<btree_multimap<K, int, std::less<>, Allocator>, std::multimap<K, int, std::less<>>>(seed + 1).run(300, keys / 3);
}
template <class K>
void programs_of_ordered_maps(std::uint64_t keys) {
    using Allocator = CountingAllocator<std::pair<const K, int>>;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    Programs<ordered_map<K, int, std::less<>, Allocator>, std::map<K, int, std::less<>>>(seed).run(400, keys);
    Programs<ordered_multimap<K, int, std::less<>, Allocator>, std::multimap<K, int, std::less<>>>(seed + 1).run(300, keys / 3);
}
template <class K>
void programs_of_ranked_multimaps(std::uint64_t keys) {
    using Allocator = CountingAllocator<std::pair<const K, int>>;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    Programs<btree_multimap<K, int, ranked<>, Allocator>, std::multimap<K, int, ranked<>>>(seed).run(400, keys);
}
template <class K, class C = std::less<>>
void programs_of_sets(std::uint64_t keys, const C& compare = {}) {
    Programs<btree_set<K, C, CountingAllocator<K>>, std::set<K, C>>(taiyen::test::seed_of_run(), compare).run(400, keys);
}
template <class K>
void programs_of_multisets(std::uint64_t keys) {
    Programs<btree_multiset<K, std::less<>, CountingAllocator<K>>, std::multiset<K, std::less<>>>(taiyen::test::seed_of_run()).run(300, keys);
}

BOOST_AUTO_TEST_SUITE(btree_programs)

BOOST_AUTO_TEST_CASE(of_small_integers) { programs_of_sets<std::int8_t>(250); }
BOOST_AUTO_TEST_CASE(of_integers) { programs_of_maps<std::int32_t>(20'000); }
BOOST_AUTO_TEST_CASE(of_long_unsigned_integers) { programs_of_sets<std::uint64_t>(20'000); }
BOOST_AUTO_TEST_CASE(of_floating_point_numbers) { programs_of_sets<double>(5'000); }
BOOST_AUTO_TEST_CASE(of_truth_values) { programs_of_sets<bool>(2); }
BOOST_AUTO_TEST_CASE(of_enumerations) { programs_of_multisets<Colour>(300); }
BOOST_AUTO_TEST_CASE(of_pointers) { programs_of_sets<const char*>(5'000); }
BOOST_AUTO_TEST_CASE(of_text) { programs_of_maps<std::string>(3'000); }
BOOST_AUTO_TEST_CASE(of_pairs) { programs_of_multisets<std::pair<int, int>>(2'000); }
BOOST_AUTO_TEST_CASE(of_structs_that_stand_in_inner_nodes) { programs_of_sets<Middle>(3'000); }
BOOST_AUTO_TEST_CASE(of_large_structs) { programs_of_multisets<Large>(500); }
BOOST_AUTO_TEST_CASE(of_descending_integers) { programs_of_sets<int, std::greater<>>(10'000); }
BOOST_AUTO_TEST_CASE(of_a_comparison_that_holds_something) { programs_of_sets<int, Modulo>(10'000, Modulo{777}); }
BOOST_AUTO_TEST_CASE(of_text_without_regard_to_case) { programs_of_sets<std::string, NoCase>(2'000); }
BOOST_AUTO_TEST_CASE(of_integers_apart) { programs_of_ordered_maps<std::uint64_t>(20'000); }
BOOST_AUTO_TEST_CASE(of_small_integers_apart) { programs_of_ordered_maps<std::int16_t>(3'000); }
BOOST_AUTO_TEST_CASE(of_text_apart) { programs_of_ordered_maps<std::string>(3'000); }
BOOST_AUTO_TEST_CASE(of_large_structs_apart) {
    Programs<ordered_multiset<Large, ranked<>, CountingAllocator<Large>>, std::multiset<Large, ranked<>>>(taiyen::test::seed_of_run())
        .run(400, 2'000);
}
BOOST_AUTO_TEST_CASE(of_pointers_apart_that_are_distances) {
    using Tree = ordered_set<std::string, std::less<>, OffsetPointerAllocator<std::string>>;
    Programs<Tree, std::set<std::string, std::less<>>>(taiyen::test::seed_of_run()).run(400, 3'000);
}
BOOST_AUTO_TEST_CASE(of_ranked_integers) { programs_of_sets<std::uint64_t, ranked<>>(20'000); }
BOOST_AUTO_TEST_CASE(of_ranked_structs_with_few_to_an_inner_node) { programs_of_sets<Middle, ranked<>>(20'000); }
BOOST_AUTO_TEST_CASE(of_ranked_equal_keys) { programs_of_ranked_multimaps<std::int16_t>(60); }
BOOST_AUTO_TEST_CASE(of_ranked_text) { programs_of_ranked_multimaps<std::string>(1'500); }
BOOST_AUTO_TEST_CASE(of_pointers_that_are_distances) {
    using Tree = btree_map<int, int, std::less<>, OffsetPointerAllocator<std::pair<const int, int>>>;
    Programs<Tree, std::map<int, int, std::less<>>>(taiyen::test::seed_of_run()).run(400, 10'000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
