// What an ordered store promises beside its content: limits, errors, views that stay, memory that comes back, typed keys that sort as they compare.
#include <taiyen/ordered/ordered_store.hpp>
#include <taiyen/ordered/ordered_store_view.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "throws.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(ordered_store)

using taiyen::errc;
using taiyen::OrderedStore;
using taiyen::OrderedStoreView;
using taiyen::VolatileHeap;
using taiyen::test::throws;

BOOST_AUTO_TEST_CASE(an_empty_value_is_a_value_and_the_empty_key_a_key) {
    VolatileHeap heap({.capacity = std::size_t{64} << 20U});
    OrderedStore store(heap);
    BOOST_TEST(!store.get("").has_value());
    BOOST_TEST(store.set("", ""));
    BOOST_TEST(store.get("").value() == "");
    BOOST_TEST(static_cast<bool>(store.view("")));
    BOOST_TEST(!store.view("a"));
    char buffer[4] = {};
    BOOST_TEST(store.get("", buffer).value() == 0U);
    BOOST_TEST(store.erase(""));
    BOOST_TEST(store.empty());
}

BOOST_AUTO_TEST_CASE(a_key_of_64_KiB_is_one_and_a_longer_one_is_refused) {
    VolatileHeap heap({.capacity = std::size_t{64} << 20U});
    OrderedStore store(heap);
    const std::string longest(OrderedStore::key_bytes_max, 'k');
    const std::string longer = longest + 'k';
    BOOST_TEST(store.set(longest, "value"));
    BOOST_TEST(store.get(longest).value() == "value");
    BOOST_TEST(throws(errc::invalid_argument, [&] { store.set(longer, "value"); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { store.insert(longer, "value"); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { store.fetch_add(longer, 1); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { store.compare_exchange(longer, std::nullopt, "value"); }));
    OrderedStore::Batch batch;
    batch.set("small", "value");
    batch.set(longer, "value");
    BOOST_TEST(throws(errc::invalid_argument, [&] { store.apply(batch); }));
    BOOST_TEST(!store.contains("small"));
    BOOST_TEST(!store.contains(longer));
    BOOST_TEST(!store.erase(longer));
    BOOST_TEST(store.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_closed_heap_is_refused) {
    VolatileHeap heap({.capacity = std::size_t{1} << 20U});
    heap.close();
    BOOST_TEST(throws(errc::closed, [&] { const OrderedStore store(heap); }));
}

BOOST_AUTO_TEST_CASE(a_view_stays_when_its_value_is_replaced_and_erased) {
    VolatileHeap heap({.capacity = std::size_t{64} << 20U});
    OrderedStore store(heap);
    const std::string large(100'000, 'v');
    store.set("large", large);
    store.set("small", "small");
    {
        OrderedStore::View first = store.view("large");
        const OrderedStore::View second = store.view("small");
        for (int i = 0; i != 500; ++i) store.set("large", std::string(100'000, static_cast<char>('a' + i % 20)));
        store.erase("large");
        store.erase("small");
        store.trim();
        BOOST_TEST(store.stats().retired != 0U);
        const OrderedStore::View moved = std::move(first);
        BOOST_TEST(!first);  // NOLINT(bugprone-use-after-move): that is what is tested
        BOOST_TEST((moved.value() == large && second.value() == "small"));
    }
    store.trim();
    BOOST_TEST(store.stats().retired == 0U);
}

BOOST_AUTO_TEST_CASE(an_addition_to_a_value_of_another_length_is_refused) {
    VolatileHeap heap({.capacity = std::size_t{1} << 20U});
    OrderedStore store(heap);
    store.set("text", "text");
    BOOST_TEST(throws(errc::type_mismatch, [&] { store.fetch_add("text", 1); }));
    BOOST_TEST(store.get("text").value() == "text");
    store.set("text", std::string(5'000, 't'));
    BOOST_TEST(throws(errc::type_mismatch, [&] { store.fetch_add("text", 1); }));
}

BOOST_AUTO_TEST_CASE(erased_keys_give_their_nodes_back) {
    VolatileHeap heap({.capacity = std::size_t{256} << 20U});
    OrderedStore store(heap);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::vector<std::uint64_t> keys(60'000);
    for (std::uint64_t& key : keys) key = random();
    OrderedStoreView<std::uint64_t, std::uint64_t> view(store);
    for (const std::uint64_t key : keys) view.set(key, key);
    const taiyen::OrderedStoreStats full = store.stats();
    BOOST_TEST(full.height == 3U);
    BOOST_TEST(full.keys * 40 > full.nodes * 4096);  // bytes a key
    for (std::size_t i = 0; i != keys.size(); ++i)
        if (i % 50 != 0) BOOST_REQUIRE(view.erase(keys[i]));
    store.trim();
    const taiyen::OrderedStoreStats thin = store.stats();
    BOOST_TEST(thin.nodes * 15 < full.nodes);
    BOOST_TEST(store.is_sound());
    for (std::size_t i = 0; i < keys.size(); i += 50) BOOST_REQUIRE(view.get(keys[i]) == keys[i]);
    for (std::size_t i = 0; i < keys.size(); i += 50) view.erase(keys[i]);
    store.trim();
    BOOST_TEST(store.stats().nodes == 1U);
    BOOST_TEST(store.stats().node_bytes * 10 < full.node_bytes);
}

BOOST_AUTO_TEST_CASE(ascending_keys_fill_their_nodes) {
    VolatileHeap heap({.capacity = std::size_t{256} << 20U});
    OrderedStore store(heap);
    OrderedStoreView<std::uint64_t, std::uint64_t> view(store);
    for (std::uint64_t key = 0; key != 50'000; ++key) view.set(key, key);
    BOOST_TEST(store.stats().nodes * 4096 < 50'000U * 22);  // 16 and a key's rest, 4, before the leaf had an upper fence
    BOOST_TEST(store.is_sound());
}

BOOST_AUTO_TEST_CASE(a_visitor_may_change_the_store_and_end_the_scan) {
    VolatileHeap heap({.capacity = std::size_t{64} << 20U});
    OrderedStore store(heap);
    for (int i = 0; i != 3'000; ++i) store.set("key" + std::to_string(i), "value");
    int seen = 0;
    store.scan({}, [&](std::string_view key, std::string_view) {
        store.erase(key);
        return ++seen != 2'000;
    });
    BOOST_TEST(seen == 2'000);
    BOOST_TEST(store.size() == 1'000U);
    BOOST_TEST(store.scan("key", 0).empty());
}

template <class T>
void keys_sort_as_they_compare(std::vector<T> keys) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int i = 0; i != 500; ++i) {
        T any;
        const std::uint64_t bits = random();
        std::memcpy(&any, &bits, sizeof any);
        if (any == any) keys.push_back(any);
    }
    VolatileHeap heap({.capacity = std::size_t{64} << 20U});
    OrderedStore store(heap);
    OrderedStoreView<T, T> view(store);
    for (const T key : keys) view.set(key, key);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::vector<T> found;
    view.scan([&](const T& key, const T& value) {
        BOOST_REQUIRE(key == value);
        found.push_back(key);
    });
    BOOST_TEST((found == keys));
    found.clear();
    view.scan_reverse(keys[keys.size() / 2], [&](const T& key, const T&) { found.push_back(key); });
    BOOST_TEST((found == std::vector<T>(keys.rend() - static_cast<std::ptrdiff_t>(keys.size() / 2) - 1, keys.rend())));
    BOOST_TEST(view.count(keys[3], keys[9]) == 6U);
}

BOOST_AUTO_TEST_CASE(typed_keys_sort_as_they_compare) {
    keys_sort_as_they_compare<std::int8_t>({});
    keys_sort_as_they_compare<std::uint16_t>({});
    keys_sort_as_they_compare<std::int32_t>({0, -1, 1, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()});
    keys_sort_as_they_compare<std::int64_t>({0, -1, 1, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()});
    keys_sort_as_they_compare<std::uint64_t>({0, std::numeric_limits<std::uint64_t>::max()});
    keys_sort_as_they_compare<float>({0.5F, -0.5F, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()});
    keys_sort_as_they_compare<double>({0.5, -0.5, std::numeric_limits<double>::denorm_min(), -std::numeric_limits<double>::denorm_min()});
    using Double = OrderedStoreView<double, int>;
    VolatileHeap heap({.capacity = std::size_t{1} << 20U});
    OrderedStore store(heap);
    Double view(store);
    BOOST_TEST(view.set(-0.0, 1));
    BOOST_TEST(view.set(0.0, 2));
    BOOST_TEST(view.get(-0.0).value() == 1);
}

BOOST_AUTO_TEST_CASE(typed_values_are_counted_exchanged_and_of_one_length) {
    VolatileHeap heap({.capacity = std::size_t{1} << 20U});
    OrderedStore store(heap);
    OrderedStoreView<std::string, std::int64_t> view(store);
    BOOST_TEST(view.fetch_add("a", 5) == 0);
    BOOST_TEST(view.fetch_add("a", -7) == 5);
    BOOST_TEST(view.get("a").value() == -2);
    BOOST_TEST(view.compare_exchange("a", -2, 8));
    BOOST_TEST(!view.compare_exchange("a", -2, 9));
    BOOST_TEST(view.compare_exchange("a", 8, std::nullopt));
    BOOST_TEST(view.compare_exchange("a", std::nullopt, 1));
    BOOST_TEST(view.insert("b", 2));
    OrderedStoreView<std::string, std::string> text(store);
    BOOST_TEST(!text.set("a", "x"));
    BOOST_TEST(!text.insert("a", "y"));
    BOOST_TEST(throws(errc::type_mismatch, [&] { view.get("a"); }));
    BOOST_TEST(throws(errc::type_mismatch, [&] { view.scan([](const std::string&, std::int64_t) {}); }));
    OrderedStoreView<std::uint32_t, std::string> numbered(store);
    BOOST_TEST(throws(errc::type_mismatch, [&] { numbered.scan([](std::uint32_t, const std::string&) {}); }));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
