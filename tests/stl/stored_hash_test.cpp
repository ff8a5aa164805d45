// A container whose hash gives other values than those it was filled with finds nothing, and says so when it is found itself.
#include <taiyen/stl/detail/stored_hash.hpp>

#include <array>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "heap/memory_core.hpp"
#include "scratch_directory.hpp"
#include "throws.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using taiyen::test::throws;

namespace absl {
inline namespace lts_20250127 {
namespace hash_internal {
template <class T>
struct Hash {
    std::size_t operator()(const T&) const { return 0; }
};
}  // namespace hash_internal
namespace container_internal {
struct StringHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view) const { return 0; }
};
}  // namespace container_internal
}  // namespace lts_20250127
template <class T>
using Hash = hash_internal::Hash<T>;
}  // namespace absl

namespace stored_hash_test {

/// Another one in each process, which the tests play by this number.
std::size_t seed_of_process = 0;

struct SeededNumber {
    std::size_t operator()(int value) const noexcept { return stl::hash_combine(seed_of_process, static_cast<std::size_t>(value)); }
};
struct SeededText {
    std::size_t operator()(std::string_view value) const { return stl::hash_bytes(value.data(), value.size(), seed_of_process); }
};
struct Promised : absl::Hash<int> {};
struct Random {
    std::size_t operator()(int value) const { return static_cast<std::size_t>(value); }
};

/// A table with no buckets to look at, as libraries have it.
template <class K>
struct OpenTable {
    using key_type = K;
    using value_type = K;
    using hasher = SeededNumber;
    using key_equal = std::equal_to<>;
    using allocator_type = persistent_allocator<K>;
    using const_iterator = const K*;
    std::array<K, 64> elements{};
    std::array<unsigned, 64> places{};  ///< number of an element, from 1
    unsigned count = 0;
    static std::size_t home(const K& key) { return hasher()(key) % 64; }
    const_iterator begin() const { return elements.data(); }
    const_iterator end() const { return elements.data() + count; }
    const_iterator find(const K& key) const {
        for (std::size_t at = home(key); places[at] != 0; at = (at + 1) % 64)
            if (elements[places[at] - 1] == key) return &elements[places[at] - 1];
        return end();
    }
    void insert(const K& key) {
        std::size_t at = home(key);
        while (places[at] != 0) at = (at + 1) % 64;
        elements[count] = key;
        places[at] = ++count;
    }
};

}  // namespace stored_hash_test

template <>
inline constexpr bool taiyen::is_stable_hash<absl::hash_internal::Hash<long>> = true;
template <>
inline constexpr bool taiyen::is_stable_hash<stored_hash_test::Random> = false;

BOOST_AUTO_TEST_SUITE(stored_hashes)

using namespace stored_hash_test;

BOOST_AUTO_TEST_CASE(hashes_that_change_with_the_process_are_refused_by_name) {
    static_assert(!storable<taiyen::unordered_map<int, int, absl::Hash<int>>>);
    static_assert(!storable<taiyen::unordered_set<taiyen::string, absl::container_internal::StringHash>>);
    static_assert(!storable<taiyen::map<int, taiyen::vector<taiyen::unordered_set<int, absl::Hash<int>>>>>);
    static_assert(storable<taiyen::unordered_map<int, int>>);
    static_assert(storable<taiyen::unordered_map<int, int, std::hash<int>>>);
    static_assert(storable<taiyen::unordered_map<int, int, Promised>>);  // a name of its own: the look at its keys has to tell
    static_assert(storable<taiyen::unordered_map<long, int, absl::Hash<long>>>);
    static_assert(!storable<taiyen::unordered_map<int, int, Random>>);
    BOOST_TEST(!is_stable_hash<const absl::Hash<int>>);
}

template <class C, class Key>
void check_table(Key&& key) {
    seed_of_process = 1;
    const ScratchDirectory directory;
    const std::string path = directory / "table.tyn";
    {
        ArchiveHeap heap(create_only, path);
        auto& table = heap.construct<C>("table");
        heap.construct<C>("empty");
        for (int i = 0; i < 15; ++i)  // few enough for a container that would look at each of them
            if constexpr (requires { table.emplace(key(i), i); })
                table.emplace(key(i), i);
            else
                table.insert(key(i));
        BOOST_TEST((heap.find<C>("table") == &table));
        heap.snapshot();
    }
    {
        ArchiveHeap heap(open_only, path);
        BOOST_TEST((heap.find<C>("table") != nullptr));
    }
    unsigned told = 0;
    for (seed_of_process = 2; seed_of_process < 30; ++seed_of_process) {
        ArchiveHeap heap(open_only, path);
        BOOST_TEST((heap.find<C>("empty") != nullptr));
        BOOST_TEST((heap.find<C>("table", accept_layout) != nullptr));
        try {
            heap.find<C>("table");
        } catch (const Error& error) {
            ++told;
            BOOST_TEST((error.code() == errc::type_mismatch));
            BOOST_TEST(std::string(error.what()).find("a key of 'table' is not found by its own hash") != std::string::npos);
            BOOST_TEST(throws(errc::type_mismatch, [&] { std::as_const(heap).find<C>("table"); }));
            BOOST_TEST(throws(errc::type_mismatch, [&] { heap.find_or_construct<C>("table"); }));
        }
    }
    BOOST_TEST(told == 28U);
}

BOOST_AUTO_TEST_CASE(a_container_that_finds_its_keys_no_more_is_not_given_out) {
    const auto number = [](int i) { return i * 3; };
    const auto text = [](int i) { return std::string_view("0123456789abcdefghi").substr(0, static_cast<std::size_t>(i) % 16); };
    check_table<taiyen::unordered_map<int, int, SeededNumber>>(number);
    check_table<taiyen::unordered_multimap<int, int, SeededNumber>>(number);
    check_table<taiyen::unordered_map<taiyen::string, int, SeededText>>(text);
    check_table<OpenTable<int>>(number);
}

BOOST_AUTO_TEST_CASE(keys_that_share_a_bucket_are_all_found) {
    struct Same {
        std::size_t operator()(int) const noexcept { return 5; }
    };
    MemoryCore core;
    auto* const table = stl::make<taiyen::unordered_multiset<int, Same>>(core);
    for (int i = 0; i < 500; ++i) table->insert(i % 7);
    BOOST_TEST(stl::keys_are_found(*table));
    stl::destroy_object(core, table);
}

BOOST_AUTO_TEST_SUITE_END()
