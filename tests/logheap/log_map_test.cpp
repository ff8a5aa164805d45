// Maps in a log heap: keys and values of types, any number of maps in one heap, keys that share a record.
#include <taiyen/logheap/log_map.hpp>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "throws.hpp"

namespace {

struct Price {
    std::int64_t amount;
    std::int32_t currency;
    std::int32_t unused;
    bool operator==(const Price&) const = default;
};

struct Order {
    std::string customer;
    std::vector<std::uint32_t> articles;
    bool operator==(const Order&) const = default;
};

}  // namespace

template <>
struct taiyen::log_codec<Order> {
    using view = Order;
    static std::size_t size(const Order& order) { return 4 + order.customer.size() + order.articles.size() * 4; }
    static void write(const Order& order, std::span<std::byte> bytes) {
        const auto length = static_cast<std::uint32_t>(order.customer.size());
        std::memcpy(bytes.data(), &length, 4);
        std::memcpy(bytes.data() + 4, order.customer.data(), length);
        if (!order.articles.empty()) std::memcpy(bytes.data() + 4 + length, order.articles.data(), order.articles.size() * 4);
    }
    static Order read(std::span<const std::byte> bytes) {
        std::uint32_t length = 0;
        if (bytes.size() >= 4) std::memcpy(&length, bytes.data(), 4);
        if (bytes.size() < 4 || length > bytes.size() - 4) throw Error(errc::corrupt, "no order");
        Order order{{reinterpret_cast<const char*>(bytes.data()) + 4, length}, {}};
        order.articles.resize((bytes.size() - 4 - length) / 4);
        if (!order.articles.empty()) std::memcpy(order.articles.data(), bytes.data() + 4 + length, order.articles.size() * 4);
        return order;
    }
};

namespace {

BOOST_AUTO_TEST_SUITE(log_map)

using namespace taiyen;
using taiyen::test::throws;

static_assert(LogKey<std::string> && LogKey<std::uint64_t> && LogKey<std::vector<int>> && !LogKey<double> && !LogKey<std::vector<double>> &&
              LogKey<Order>);
static_assert(LogStored<double> && LogStored<Order> && !LogStored<std::map<int, int>> && !LogStored<const char*> && !LogStored<std::string_view>);

LogHeapOptions small() {
    LogHeapOptions options;
    options.segment_bytes = 64_KiB;
    options.capacity = 32 * 64_KiB;
    options.log_capacity = 256_KiB;
    options.durability = Durability::async;
    return options;
}

BOOST_AUTO_TEST_CASE(elements_come_and_go_and_stay_when_the_heap_is_reopened) {
    const ScratchDirectory directory;
    const auto path = directory.path() / "values.tyl";
    {
        LogHeap heap(create_only, path, small());
        LogMap<std::string, Price> prices(heap, "prices");
        BOOST_TEST(prices.insert("copper", {9120, 30, 0}));
        BOOST_TEST(!prices.insert("copper", {1, 1, 1}));
        BOOST_TEST((prices.find("copper") == Price{9120, 30, 0}));
        BOOST_TEST(!prices.insert_or_assign("copper", {9130, 30, 0}));
        BOOST_TEST(prices.insert_or_assign("tin", {2, 30, 0}));
        BOOST_TEST(prices.assign("tin", {3, 30, 0}));
        BOOST_TEST(!prices.assign("lead", {3, 30, 0}));
        BOOST_TEST(!prices.contains("lead"));
        BOOST_TEST(prices.update("tin", [](Price& price) { ++price.amount; }));
        BOOST_TEST(!prices.update("lead", [](Price& price) { ++price.amount; }));
        BOOST_TEST(prices.count() == 2U);
        BOOST_TEST(prices.insert("", {7, 7, 0}));
        BOOST_TEST(prices.erase("copper"));
        BOOST_TEST(!prices.erase("copper"));
        BOOST_TEST(!prices.find("copper").has_value());
    }
    LogHeap heap(open_only, path, small());
    const LogMap<std::string, Price> prices(heap, "prices");
    BOOST_TEST((prices.find("tin") == Price{4, 30, 0}));
    BOOST_TEST((prices.find("") == Price{7, 7, 0}));
    BOOST_TEST(prices.count() == 2U);
    const auto view = prices.view("tin");
    BOOST_TEST_REQUIRE(static_cast<bool>(view));
    BOOST_TEST((*view).amount == 4);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(&*view) % 8 == 0U);
    BOOST_TEST((view.version() <= heap.stats().appended));
}

BOOST_AUTO_TEST_CASE(values_may_have_any_type_that_becomes_bytes) {
    const ScratchDirectory directory;
    LogHeap heap(create_only, directory.path() / "values.tyl", small());
    LogMap<std::uint64_t, std::string> names(heap, "names");
    LogMap<std::uint64_t, std::vector<double>> series(heap, "series");
    LogMap<std::vector<std::uint16_t>, Order> orders(heap, "orders");
    for (std::uint64_t i = 0; i < 100; ++i) {
        BOOST_TEST(names.insert(i, "name " + std::to_string(i)));
        BOOST_TEST(series.insert(i, std::vector<double>(i, 0.5 * static_cast<double>(i))));
    }
    const Order order{"somebody", {3, 1, 2}};
    BOOST_TEST(orders.insert({1, 2, 3}, order));
    BOOST_TEST((orders.find({1, 2, 3}) == order));
    BOOST_TEST(!orders.contains({1, 2}));
    BOOST_TEST(orders.update({1, 2, 3}, [](Order& changed) { changed.articles.clear(); }));
    BOOST_TEST((orders.find({1, 2, 3}) == Order{"somebody", {}}));
    for (std::uint64_t i = 0; i < 100; ++i) {
        BOOST_TEST(names.find(i).value() == "name " + std::to_string(i));
        BOOST_TEST((series.find(i) == std::vector<double>(i, 0.5 * static_cast<double>(i))));
    }
    std::map<std::uint64_t, std::string> found;
    names.for_each([&](std::uint64_t key, std::string_view name) { found.emplace(key, name); });
    BOOST_TEST(found.size() == 100U);
    BOOST_TEST(found[42] == "name 42");
    BOOST_TEST(heap.size() == 201U);
    // Other types than those that were stored.
    const LogMap<std::uint64_t, std::uint32_t> wrong(heap, "names");
    BOOST_TEST(throws(errc::type_mismatch, [&] { static_cast<void>(wrong.find(1)); }));
    BOOST_TEST(throws(errc::type_mismatch, [&] { wrong.for_each([](auto, auto) {}); }));
}

BOOST_AUTO_TEST_CASE(a_value_that_is_no_maps_is_told) {
    const ScratchDirectory directory;
    LogHeap heap(create_only, directory.path() / "values.tyl", small());
    LogMap<int, int> map(heap, "numbers");
    map.insert(1, 2);
    LogId id{};
    heap.for_each([&](const LogView& view) { id = view.id(); });
    BOOST_TEST((static_cast<std::uint64_t>(id) >> 63U) == 1U);
    for (const std::string& bytes : {std::string("foreign"), std::string(24, 'x'), std::string(100, '\0'), std::string()}) {
        heap.put_as(id, bytes);
        const auto look = [&] { return map.contains(1); };
        if (bytes.empty())
            BOOST_TEST(!look());
        else
            BOOST_TEST(throws(errc::type_mismatch, look));
        if (!bytes.empty()) BOOST_TEST(throws(errc::type_mismatch, [&] { map.insert_or_assign(1, 3); }));
    }
}

BOOST_AUTO_TEST_CASE(keys_of_one_hash_stay_two_keys) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (const unsigned bits : {0U, 3U, 63U}) {
        std::mt19937_64 random(seed + bits);
        const ScratchDirectory directory;
        LogHeap heap(create_only, directory.path() / "values.tyl", small());
        using logheap::ByteMap;
        const std::array<ByteMap, 2> maps{ByteMap(heap, "one", bits), ByteMap(heap, "other", bits)};
        std::array<std::map<std::string, std::string>, 2> models;
        const auto bytes = [](const std::string& of) { return std::as_bytes(std::span(of)); };
        const auto text = [](ByteMap::Bytes of) { return std::string(reinterpret_cast<const char*>(of.data()), of.size()); };
        for (int step = 0; step < 3000; ++step) {
            const std::size_t which = random() % 2;
            const std::string key(random() % 12, static_cast<char>('a' + random() % 3));
            const std::string value(random() % 40, static_cast<char>('a' + random() % 26));
            auto& model = models[which];
            const bool was_there = model.contains(key);
            switch (random() % 5) {
                case 0: {
                    const auto done = maps[which].put(bytes(key), bytes(value), ByteMap::When::absent);
                    BOOST_REQUIRE((done.is_done == !was_there && done.was_there == was_there));
                    model.emplace(key, value);
                    break;
                }
                case 1:
                    BOOST_REQUIRE(maps[which].put(bytes(key), bytes(value), ByteMap::When::always).was_there == was_there);
                    model[key] = value;
                    break;
                case 2:
                    BOOST_REQUIRE(maps[which].put(bytes(key), bytes(value), ByteMap::When::present).is_done == was_there);
                    if (was_there) model[key] = value;
                    break;
                case 3:
                    BOOST_REQUIRE(maps[which].erase(bytes(key)) == was_there);
                    model.erase(key);
                    break;
                default: {
                    const auto found = maps[which].find(bytes(key));
                    BOOST_REQUIRE(static_cast<bool>(found.record) == was_there);
                    if (was_there) BOOST_REQUIRE(text(found.value) == model[key]);
                    if (was_there && random() % 2 == 0) {
                        const LogHandle record = found.record.handle();
                        BOOST_REQUIRE(maps[which].replace(record, found.record.version(), bytes(key), bytes(value)));
                        BOOST_REQUIRE(!maps[which].replace(record, found.record.version(), bytes(key), bytes(value)));  // it is another one by now
                        model[key] = value;
                    }
                }
            }
        }
        for (std::size_t which = 0; which < 2; ++which) {
            std::map<std::string, std::string> found;
            maps[which].for_each([&](ByteMap::Bytes key, ByteMap::Bytes value) { BOOST_REQUIRE(found.emplace(text(key), text(value)).second); });
            BOOST_TEST((found == models[which]));
        }
        if (bits == 0) BOOST_TEST(heap.size() == 1U);  // all entries of both maps lie in one record
    }
}

BOOST_AUTO_TEST_CASE(no_update_is_lost_between_threads, *boost::unit_test::label("threads")) {
    const ScratchDirectory directory;
    LogHeap heap(create_only, directory.path() / "values.tyl", small());
    LogMap<std::string, std::uint64_t> counters(heap, "counters");
    constexpr std::uint64_t keys = 5;
    constexpr std::uint64_t rounds = 1500;
    std::vector<std::thread> threads;
    std::atomic<std::uint64_t> inserted{0};
    for (unsigned t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937_64 random(t);
            for (std::uint64_t i = 0; i < rounds; ++i) {
                const std::string key = "key " + std::to_string(random() % keys);
                if (counters.insert(key, 1))
                    inserted.fetch_add(1);
                else
                    counters.update(key, [](std::uint64_t& count) { ++count; });
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    std::uint64_t sum = 0;
    counters.for_each([&](std::string_view, std::uint64_t count) { sum += count; });
    BOOST_TEST(sum == 3 * rounds);
    BOOST_TEST(inserted.load() == keys);
}

BOOST_AUTO_TEST_CASE(threads_share_a_record_and_keep_their_keys_apart, *boost::unit_test::label("threads")) {
    const ScratchDirectory directory;
    LogHeap heap(create_only, directory.path() / "values.tyl", small());
    using logheap::ByteMap;
    const ByteMap map(heap, "one hash", 0);
    std::vector<std::thread> threads;
    std::atomic<std::uint64_t> wrong{0};
    for (unsigned t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937_64 random(t);
            std::map<std::string, std::string> model;
            const auto bytes = [](const std::string& of) { return std::as_bytes(std::span(of)); };
            for (int i = 0; i < 600; ++i) {
                const std::string key = std::to_string(t) + "/" + std::to_string(random() % 4);
                const std::string value = std::to_string(i);
                const bool was_there = model.contains(key);
                if (random() % 2 == 0) {
                    if (map.erase(bytes(key)) != was_there) wrong.fetch_add(1);
                    model.erase(key);
                } else {
                    if (map.put(bytes(key), bytes(value), ByteMap::When::always).was_there != was_there) wrong.fetch_add(1);
                    model[key] = value;
                }
                const auto found = map.find(bytes(key));
                if (static_cast<bool>(found.record) != model.contains(key)) wrong.fetch_add(1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(wrong.load() == 0U);
}

BOOST_AUTO_TEST_CASE(inserting_and_removing_look_at_what_is_there) {
    const ScratchDirectory directory;
    LogHeap heap(create_only, directory.path() / "values.tyl", small());
    const auto first = heap.insert(LogId{7}, "first");
    BOOST_TEST_REQUIRE(first.has_value());
    BOOST_TEST(!heap.insert(LogId{7}, "second").has_value());
    BOOST_TEST(heap.get(*first).text() == "first");
    const Serial version = heap.get(*first).version();
    BOOST_TEST(heap.update(*first, "changed"));
    BOOST_TEST(!heap.remove(*first, version));
    BOOST_TEST(!heap.replace(*first, version, "lost"));
    BOOST_TEST(heap.get(*first).text() == "changed");
    const Serial newer = heap.get(*first).version();
    BOOST_TEST(heap.remove(*first, newer));
    BOOST_TEST(!heap.remove(*first, newer));
    const auto second = heap.insert(LogId{7}, Price{1, 2, 3});
    BOOST_TEST_REQUIRE(second.has_value());
    BOOST_TEST(!heap.remove(*first, newer));
    BOOST_TEST(!heap.contains(*first));
    BOOST_TEST((heap.get(*second).as<Price>() == Price{1, 2, 3}));
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap.remove(*second, Serial{}); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap.insert(LogId::none, "nothing"); }));
    heap.close();
    LogHeap reader(open_read_only, directory.path() / "values.tyl", small());
    BOOST_TEST(throws(errc::read_only, [&] { reader.insert(LogId{8}, "more"); }));
    BOOST_TEST((reader.get(*second).as<Price>() == Price{1, 2, 3}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
