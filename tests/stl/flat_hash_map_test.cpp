// Flat hash tables are what std::unordered_map and std::unordered_set make of the same steps, whatever the key, its hash and what throws; and all memory comes back.
#include <taiyen/stl/flat_hash_map.hpp>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <ranges>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "containers/allocators.hpp"
#include "seed.hpp"

BOOST_AUTO_TEST_SUITE(flat_hash)

namespace {

using namespace taiyen;
using taiyen::test::CountingAllocator;
using taiyen::test::Ledger;
using taiyen::test::OffsetPointerAllocator;

template <class K, class V, class H = taiyen::hash<K>, class E = std::equal_to<>>
using Map = flat_hash_map<K, V, H, E, std::allocator<std::pair<const K, V>>>;
template <class K, class H = taiyen::hash<K>, class E = std::equal_to<>>
using Set = flat_hash_set<K, H, E, std::allocator<K>>;

using Plain = Map<int, std::string>;
static_assert(std::is_same_v<Plain::value_type, std::pair<const int, std::string>> && std::is_same_v<Plain::mapped_type, std::string>);
static_assert(std::forward_iterator<Plain::iterator> && std::forward_iterator<Plain::const_iterator> && std::ranges::forward_range<const Plain>);
static_assert(std::is_same_v<Set<int>::iterator, Set<int>::const_iterator>);
static_assert(std::is_convertible_v<Plain::iterator, Plain::const_iterator> && !std::is_convertible_v<Plain::const_iterator, Plain::iterator>);
static_assert(std::is_nothrow_move_constructible_v<Plain> && std::is_nothrow_move_assignable_v<Plain>);
static_assert(std::is_same_v<decltype((std::declval<const Plain&>().begin()->second)), const std::string&>);

/// Mixed by the table.
struct Identity {
    std::size_t operator()(int number) const noexcept { return static_cast<std::size_t>(number); }
};
/// Believed by the table: all elements begin their way at two of its groups, and have the same seven bits.
struct Crowding {
    using is_avalanching = void;
    std::size_t operator()(int number) const noexcept { return static_cast<std::size_t>(number % 2) << 7U; }
};
/// Part of the table.
struct Seeded {
    using is_transparent = void;
    std::uint64_t seed = 0;
    std::size_t operator()(std::string_view text) const { return stl::hash_bytes(text.data(), text.size(), seed); }
};

/// One function for all instances: the macro in each would be most of what the compiler has to do.
void require_as_model(bool is_true, std::source_location where = std::source_location::current()) {
    BOOST_REQUIRE_MESSAGE(is_true, where.file_name() << ":" << where.line() << ": not as the model");
}

template <class T>
T value_of(std::uint64_t number) {
    if constexpr (std::is_same_v<T, std::string>)
        return "a text that is longer than a small buffer, " + std::to_string(number);
    else
        return static_cast<T>(number);
}

/// Random steps on a table and a model side by side.
template <class Table, class Model>
class Steps {
    using K = typename Table::key_type;
    static constexpr bool is_map = requires { typename Table::mapped_type; };

public:
    Steps(std::uint64_t seed, const Table& empty, const Model& model)
        : table_(empty), other_(empty), model_(model), other_model_(model), random_(seed) {}

    void run(int steps, std::uint64_t keys) {
        keys_ = keys;
        for (int i = 0; i < steps; ++i) {
            // Mostly more, then mostly fewer elements.
            const bool grows = (i / 300) % 2 == 0;
            step(grows ? random_() % 12 : 4 + random_() % 10);
            if (i % 16 == 0 || i + 1 == steps) check(table_, model_);
        }
        check(other_, other_model_);
    }

private:
    K key() { return value_of<K>(random_() % keys_); }
    auto element() {
        if constexpr (is_map)
            return std::pair<const K, typename Table::mapped_type>(key(), static_cast<int>(random_() % 1000));
        else
            return key();
    }
    void step(std::uint64_t which) {
        switch (which) {
            case 0:
            case 1:
            case 2:
            case 3: {
                const auto one = element();
                const auto made = table_.insert(one);
                require_as_model(made.second == model_.insert(one).second && *made.first == *model_.find(key_of(one)));
                break;
            }
            case 4:
            case 5:
                if constexpr (is_map) {
                    const K wanted = key();
                    model_[wanted] += 7;
                    table_[wanted] += 7;
                } else {
                    const K wanted = key();
                    require_as_model(table_.emplace(wanted).second == model_.emplace(wanted).second);
                }
                break;
            case 6: {
                const K wanted = key();
                require_as_model(table_.contains(wanted) == model_.contains(wanted) && table_.count(wanted) == model_.count(wanted));
                break;
            }
            case 7:
            case 8:
            case 9:
            case 10: {
                const K wanted = key();
                require_as_model(table_.erase(wanted) == model_.erase(wanted));
                break;
            }
            case 11: {
                const auto at = table_.find(key());
                if (at == table_.end()) break;
                model_.erase(key_of(*at));
                const auto behind = table_.erase(at);
                require_as_model(behind == table_.end() || model_.contains(key_of(*behind)));
                break;
            }
            case 12: rarely(); break;
            default: {
                const auto is_gone = [](const auto& one) { return std::hash<K>()(key_of(one)) % 19 == 0; };
                require_as_model(erase_if(table_, is_gone) == std::erase_if(model_, is_gone));
            }
        }
    }
    void rarely() {
        switch (random_() % 12) {
            case 0:
                table_.clear();
                model_.clear();
                break;
            case 1: table_.rehash(random_() % 4 == 0 ? 0 : random_() % (keys_ * 2)); break;
            case 2: table_.reserve(random_() % (keys_ * 2)); break;
            case 3:
                table_.swap(other_);
                model_.swap(other_model_);
                break;
            case 4:
                table_ = other_;
                model_ = other_model_;
                break;
            case 5: {
                Table moved = std::move(table_);
                require_as_model(table_.empty() && table_.begin() == table_.end() && !table_.contains(key()));  // NOLINT(bugprone-use-after-move)
                table_ = std::move(moved);
                break;
            }
            case 6: {
                const Table copy = table_;
                require_as_model(copy == table_);
                check(copy, model_);
                break;
            }
            case 7:
                table_.merge(other_);
                model_.merge(other_model_);
                break;
            case 8: {
                auto from = table_.begin();
                for (std::uint64_t i = random_() % 9; i != 0 && from != table_.end(); --i) ++from;
                auto to = from;
                for (std::uint64_t i = random_() % 9; i != 0 && to != table_.end(); --i) model_.erase(key_of(*to++));
                require_as_model(table_.erase(from, to) == to);
                break;
            }
            default: check(table_, model_);
        }
    }
    template <class E>
    static const K& key_of(const E& element) {
        if constexpr (is_map)
            return element.first;
        else
            return element;
    }
    static void check(const Table& table, const Model& model) {
        require_as_model(table.is_sound() && table.size() == model.size());
        std::size_t count = 0;
        for (const auto& one : table) {
            ++count;
            const auto found = model.find(key_of(one));
            require_as_model(found != model.end() && *found == one);
        }
        require_as_model(count == model.size());
    }

    Table table_, other_;
    Model model_, other_model_;
    std::mt19937_64 random_;
    std::uint64_t keys_ = 0;
};

template <class K, class H, class Allocator>
void run_map(const Allocator& allocator, const H& hash = H(), std::uint64_t keys = 500) {
    using Table = flat_hash_map<K, int, H, std::equal_to<>, Allocator>;
    using Model = std::unordered_map<K, int>;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (const std::uint64_t few : {std::uint64_t{9}, keys})
        Steps<Table, Model>(seed, Table(0, hash, std::equal_to<>(), allocator), Model()).run(1500, few);
}

/// Copies, hashes and comparisons that fail when their time has come; counts who lives.
struct Chance {
    static inline std::uint64_t until = ~std::uint64_t{0};
    static inline std::int64_t alive = 0;
    static void take() {
        if (until == 0) throw std::runtime_error("now");
        --until;
    }
};
/// `MovesAway`: a move can't throw, and leaves nothing behind.
template <bool MovesAway>
struct Risky {
    int number = 0;
    std::unique_ptr<int> own;  // a copy that is forgotten, or destroyed twice, is found

    Risky(int value) : number(value), own(std::make_unique<int>(value)) { ++Chance::alive; }  // NOLINT(google-explicit-constructor): as keys are
    Risky(const Risky& other) : number(other.number), own((Chance::take(), std::make_unique<int>(other.number))) { ++Chance::alive; }
    Risky(Risky&& other) noexcept
        requires MovesAway
        : number(std::exchange(other.number, -1)), own(std::move(other.own)) {
        ++Chance::alive;
    }
    Risky& operator=(const Risky&) = delete;
    ~Risky() { --Chance::alive; }
    bool operator==(const Risky& other) const {
        Chance::take();
        return number == other.number;
    }
};
struct RiskyHash {
    template <bool MovesAway>
    std::size_t operator()(const Risky<MovesAway>& one) const {
        Chance::take();
        return static_cast<std::size_t>(one.number / 2);
    }
};

template <class R>
std::vector<std::pair<int, int>> numbers_of(const flat_hash_map<R, R, RiskyHash, std::equal_to<>, CountingAllocator<std::pair<const R, R>>>& map) {
    std::vector<std::pair<int, int>> numbers;
    for (const auto& [key, value] : map) numbers.emplace_back(key.number, value.number);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

/// Calls `change` again and again, each time with more copies, hashes, comparisons or allocations that go well; each time it throws, `map` is as it was. Ends when it doesn't throw.
template <class Table, class F>
void changes_or_throws(const Table& map, Ledger& ledger, bool is_strong, const F& change) {
    for (const bool of_memory : {false, true}) {
        for (std::uint64_t point = 0;; ++point) {
            Table copy(map, map.get_allocator());
            const auto before = numbers_of(copy);
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

template <bool MovesAway>
void insertions_change_nothing_if_they_throw() {
    using R = Risky<MovesAway>;
    using Table = flat_hash_map<R, R, RiskyHash, std::equal_to<>, CountingAllocator<std::pair<const R, R>>>;
    Ledger ledger;
    const std::int64_t before = Chance::alive;
    for (const int size : {0, 1, 3, 7, 13, 14, 28}) {
        Table map{CountingAllocator<std::pair<const R, R>>(ledger)};
        for (int i = 0; i < size; ++i) map.emplace(i, i);
        for (const int key : {0, size}) {
            const R wanted(key);
            changes_or_throws(map, ledger, true, [&](Table& table) { table.emplace(key, 5); });
            changes_or_throws(map, ledger, true, [&](Table& table) { table.try_emplace(wanted, wanted); });
            changes_or_throws(map, ledger, true, [&](Table& table) { table.erase(wanted); });
        }
        changes_or_throws(map, ledger, true, [&](Table& table) { table.rehash(200); });
        changes_or_throws(map, ledger, true, [&](Table& table) { const Table copy(table, table.get_allocator()); });
        changes_or_throws(map, ledger, true, [&](Table& table) {
            Table made{table.get_allocator()};
            made.emplace(1, 1);
            table = made;
        });
        changes_or_throws(map, ledger, false, [&](Table& table) {
            Table more{table.get_allocator()};
            for (int i = 0; i < 9; ++i) more.emplace(i * 2, i);
            table.merge(more);
        });
    }
    BOOST_TEST(Chance::alive == before);
    BOOST_TEST(ledger.blocks == 0U);
}

/// As taiyen::string's, but tells of keys that are made for a look-up.
struct Told {
    static inline int made = 0;
    std::string text;
    explicit Told(std::string_view from) : text(from) { ++made; }
};
struct ToldHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return taiyen::hash<std::string_view>()(text); }
    std::size_t operator()(const Told& told) const { return (*this)(told.text); }
};
struct ToldEqual {
    using is_transparent = void;
    bool operator()(const Told& a, const Told& b) const { return a.text == b.text; }
    bool operator()(const Told& a, std::string_view b) const { return a.text == b; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_steps_on_a_map_of_numbers_are_as_the_standard_librarys) {
    Ledger ledger;
    run_map<int, taiyen::hash<int>>(CountingAllocator<std::pair<const int, int>>(ledger));
    BOOST_TEST(ledger.blocks == 0U);
}
BOOST_AUTO_TEST_CASE(random_steps_with_a_hash_that_mixes_nothing_or_crowds_are_as_the_standard_librarys) {
    run_map<int, Identity>(std::allocator<std::pair<const int, int>>());
    run_map<int, Crowding>(std::allocator<std::pair<const int, int>>(), Crowding(), 150);
}
BOOST_AUTO_TEST_CASE(random_steps_on_a_map_of_texts_with_a_seed_are_as_the_standard_librarys) {
    run_map<std::string>(std::allocator<std::pair<const std::string, int>>(), Seeded{7});
}
BOOST_AUTO_TEST_CASE(random_steps_with_pointers_that_are_distances_are_as_the_standard_librarys) {
    run_map<int, Identity>(OffsetPointerAllocator<std::pair<const int, int>>());
}
BOOST_AUTO_TEST_CASE(random_steps_on_a_set_are_as_the_standard_librarys) {
    Ledger ledger;
    const CountingAllocator<std::string> allocator(ledger);
    using Table = flat_hash_set<std::string, taiyen::hash<std::string>, std::equal_to<>, CountingAllocator<std::string>>;
    using Model = std::unordered_set<std::string>;
    Steps<Table, Model>(taiyen::test::seed_of_run(), Table(allocator), Model()).run(1500, 300);
    BOOST_TEST(ledger.blocks == 0U);
}

BOOST_AUTO_TEST_CASE(an_insertion_that_throws_changes_nothing_and_loses_nothing) {
    insertions_change_nothing_if_they_throw<false>();
    insertions_change_nothing_if_they_throw<true>();
}

BOOST_AUTO_TEST_CASE(an_empty_table_points_to_nothing_and_has_no_memory) {
    Ledger ledger;
    using Table = flat_hash_set<int, taiyen::hash<int>, std::equal_to<>, CountingAllocator<int>>;
    Table set{CountingAllocator<int>(ledger)};
    const Table copy(set);
    const Table moved(std::move(set));
    BOOST_TEST(ledger.blocks == 0U);
    BOOST_TEST((!copy.table().block() && !moved.table().block()));
    BOOST_TEST((set.begin() == set.end() && !set.contains(3)));  // NOLINT(bugprone-use-after-move): promised
    set.insert(3);
    BOOST_TEST(ledger.blocks == 1U);
    set.clear();
    BOOST_TEST(ledger.blocks == 1U);
    set.rehash(0);
    BOOST_TEST(ledger.blocks == 0U);
    BOOST_TEST(set.bucket_count() == 0U);
}

BOOST_AUTO_TEST_CASE(elements_that_come_and_go_need_no_larger_array) {
    Set<int> set;
    for (int i = 0; i < 800; ++i) set.insert(i);
    const std::size_t slots = set.bucket_count();
    BOOST_TEST(slots == 1024U);
    for (int i = 800; i < 50'000; ++i) {
        set.erase(i - 800);
        set.insert(i);
    }
    BOOST_TEST(set.bucket_count() == slots);
    BOOST_TEST((set.size() == 800U && set.is_sound()));
    set.reserve(set.size());
    BOOST_TEST(set.bucket_count() == slots);
    Set<int> few;
    few.insert(1);
    const std::size_t seats = few.table().free();
    for (int i = 2; i < 100; ++i) {
        few.insert(i);
        few.erase(i);
    }
    BOOST_TEST(few.table().free() == seats);
    set.reserve(2000);
    const std::size_t reserved = set.bucket_count();
    for (int i = 0; i < 1200; ++i) set.insert(i);
    BOOST_TEST(set.bucket_count() == reserved);
}

BOOST_AUTO_TEST_CASE(arguments_may_be_elements_of_the_table) {
    Map<std::string, std::string> map;
    map.emplace("the first one of them all, on the heap", "a value that lies on the heap, too");
    for (int i = 0; i < 500; ++i) {
        const auto& first = *map.find("the first one of them all, on the heap");
        map.emplace(first.first + std::to_string(i), first.second);
        map.insert(*map.begin());
    }
    BOOST_TEST(map.size() == 501U);
    for (const auto& [key, value] : map) BOOST_REQUIRE(value == "a value that lies on the heap, too");
}

BOOST_AUTO_TEST_CASE(values_may_be_moved_only_and_elements_aligned_to_cache_lines) {
    Map<int, std::unique_ptr<int>> owners;
    for (int i = 0; i < 100; ++i) owners.emplace(i, std::make_unique<int>(i));
    owners.insert_or_assign(5, std::make_unique<int>(-5));
    auto moved = std::move(owners);
    BOOST_TEST(*moved.at(5) == -5);
    BOOST_TEST(*moved.at(99) == 99);
    struct alignas(64) Line {
        int number = 0;
    };
    Map<int, Line> lines;
    for (int i = 0; i < 100; ++i) lines[i].number = i;
    for (const auto& [key, line] : lines) BOOST_REQUIRE((line.number == key && reinterpret_cast<std::uintptr_t>(&line) % 64 == 0));
}

BOOST_AUTO_TEST_CASE(a_look_up_by_another_type_makes_no_key) {
    flat_hash_map<Told, int, ToldHash, ToldEqual, std::allocator<std::pair<const Told, int>>> map;
    map.emplace("a", 1);
    const int made = Told::made;
    BOOST_TEST((map.contains(std::string_view("a")) && map.count("b") == 0 && map.find("a")->second == 1 && map.at("a") == 1));
    BOOST_TEST((map.equal_range("a").first == map.begin() && map.equal_range("a").second == map.end()));
    BOOST_CHECK_THROW(map.at("b"), std::out_of_range);
    BOOST_TEST(map.erase("a") == 1U);
    BOOST_TEST(Told::made == made);
}

BOOST_AUTO_TEST_CASE(between_unequal_allocators_elements_are_moved_or_copied_one_by_one) {
    Ledger left, right;
    using Table = flat_hash_map<int, std::string, taiyen::hash<int>, std::equal_to<>, CountingAllocator<std::pair<const int, std::string>>>;
    {
        Table a{CountingAllocator<std::pair<const int, std::string>>(left)};
        Table b{CountingAllocator<std::pair<const int, std::string>>(right)};
        for (int i = 0; i < 40; ++i) a.emplace(i, value_of<std::string>(static_cast<std::uint64_t>(i)));
        b = a;
        BOOST_TEST((a == b));
        b = std::move(a);
        BOOST_TEST((a.empty() && b.size() == 40U && b.is_sound()));  // NOLINT(bugprone-use-after-move): promised
        const Table c(std::move(b), CountingAllocator<std::pair<const int, std::string>>(left));
        BOOST_TEST((b.empty() && c.size() == 40U && c.is_sound()));  // NOLINT(bugprone-use-after-move): promised
    }
    BOOST_TEST((left.blocks == 0U && right.blocks == 0U));
}

BOOST_AUTO_TEST_SUITE_END()
