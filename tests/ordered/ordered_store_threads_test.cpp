// Threads in one ordered store: no update is lost, no reader sees half a value or an older one than before, scans miss nothing that is there all the time, and memory comes back.
#include <taiyen/ordered/ordered_store.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "threads.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(ordered_store_threads, *boost::unit_test::label("threads"))

using taiyen::OrderedStore;
using taiyen::VolatileHeap;
using taiyen::test::at_once;
using taiyen::test::require;

/// A value that tells its number, and by its other bytes whether it is whole. Some lie in the node, some outside, and lengths change.
std::string value_of(std::uint64_t number) {
    std::string value = std::to_string(number) + '/';
    value.append(number % 7 == 0 ? 300 : number % 40, static_cast<char>('a' + number % 26));
    return value;
}
std::uint64_t number_of(std::string_view value) {
    const std::uint64_t number = std::strtoull(std::string(value).c_str(), nullptr, 10);
    require(value == value_of(number), "a value is whole");
    return number;
}
/// Keys that share long beginnings, some too long for a node.
std::string key_of(std::uint64_t number) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%06llu", static_cast<unsigned long long>(number));
    return (number % 5 == 0 ? std::string(280, 'l') : number % 5 == 1 ? std::string("a shared beginning/") : std::string()) + digits;
}

BOOST_AUTO_TEST_CASE(no_addition_and_no_exchange_is_lost) {
    VolatileHeap heap({.capacity = std::size_t{1} << 30U});
    OrderedStore store(heap);
    constexpr int rounds = 1'500;
    at_once(4, [&](unsigned thread) {
        for (int i = 0; i != rounds; ++i) {
            store.fetch_add("sum" + std::to_string(i % 8), 1);
            const std::string key = "text" + std::to_string((i + static_cast<int>(thread)) % 4);
            for (;;) {
                const auto value = store.get(key);
                if (store.compare_exchange(key, value, value_of(value ? number_of(*value) + 1 : 1))) break;
            }
        }
    });
    std::int64_t sum = 0;
    std::uint64_t text_sum = 0;
    for (int i = 0; i != 8; ++i) sum += store.fetch_add("sum" + std::to_string(i), 0);
    for (int i = 0; i != 4; ++i) text_sum += number_of(*store.get("text" + std::to_string(i)));
    BOOST_TEST(sum == 4 * rounds);
    BOOST_TEST(text_sum == 4U * rounds);
    BOOST_TEST(store.is_sound());
}

BOOST_AUTO_TEST_CASE(readers_see_whole_values_that_never_grow_older) {
    VolatileHeap heap({.capacity = std::size_t{1} << 30U});
    OrderedStore store(heap);
    constexpr std::uint64_t keys = 40;
    for (std::uint64_t key = 0; key != keys; ++key) store.set(key_of(key), value_of(0));
    std::atomic<unsigned> writing{2};
    at_once(4, [&](unsigned thread) {
        if (thread < 2) {  // each has every other key
            for (std::uint64_t number = 1; number != 150; ++number)
                for (std::uint64_t key = thread; key < keys; key += 2) store.set(key_of(key), value_of(number));
            writing.fetch_sub(1);
            return;
        }
        std::map<std::uint64_t, std::uint64_t> seen;
        for (std::uint64_t i = 0; writing.load() != 0 || i % keys != 0; ++i) {
            const std::uint64_t key = i % keys;
            std::uint64_t number = 0;
            if (thread == 2) {
                number = number_of(*store.get(key_of(key)));
            } else {
                const OrderedStore::View view = store.view(key_of(key));
                number = number_of(view.value());
                require(number_of(view.value()) == number, "a view stays");
            }
            require(number >= seen[key], "values don't grow older");
            seen[key] = number;
        }
    });
    store.trim();
    BOOST_TEST(store.stats().retired == 0U);
}

BOOST_AUTO_TEST_CASE(scans_meet_all_that_is_there_while_others_come_and_go) {
    VolatileHeap heap({.capacity = std::size_t{1} << 30U});
    OrderedStore store(heap);
    constexpr std::uint64_t all = 3'000;
    // Every tenth key stays.
    std::map<std::string, std::uint64_t> lasting;
    for (std::uint64_t key = 0; key < all; key += 10) {
        lasting.emplace(key_of(key), key);
        store.set(key_of(key), value_of(key));
    }
    std::atomic<unsigned> writing{2};
    at_once(4, [&](unsigned thread) {
        if (thread < 2) {
            for (int round = 0; round != 3; ++round) {
                for (std::uint64_t key = thread; key < all; key += 2)
                    if (key % 10 != 0) store.set(key_of(key), value_of(key));
                for (std::uint64_t key = thread; key < all; key += 2)
                    if (key % 10 != 0) require(store.erase(key_of(key)), "what was set is there");
            }
            writing.fetch_sub(1);
            return;
        }
        do {
            auto next = lasting.begin();
            std::string before;
            const auto look = [&](std::string_view key, std::string_view value) {
                require(before.empty() || (thread == 2 ? key > before : key < before), "keys are in order");
                before = key;
                number_of(value);
                if (lasting.contains(before)) ++next;
            };
            if (thread == 2)
                store.scan({}, look);
            else
                store.scan_reverse(std::nullopt, look);
            require(next == lasting.end(), "what stays is met");
        } while (writing.load() != 0);
    });
    BOOST_TEST(store.size() == lasting.size());
    BOOST_TEST(store.is_sound());
    store.trim();
    BOOST_TEST(store.stats().retired == 0U);
}

BOOST_AUTO_TEST_CASE(each_writer_finds_its_own_keys_among_those_of_others) {
    VolatileHeap heap({.capacity = std::size_t{1} << 30U});
    const std::uint64_t before = heap.stats().live_blocks;
    {
        OrderedStore store(heap);
        const std::uint64_t seed = taiyen::test::seed_of_run();
        std::atomic<std::uint64_t> left{0};
        at_once(4, [&](unsigned thread) {
            std::mt19937_64 random(seed + thread);
            std::map<std::uint64_t, std::uint64_t> model;
            for (int i = 0; i != 4'000; ++i) {
                const std::uint64_t number = random() % 400 * 4 + thread;
                const std::string key = key_of(number);
                if (i / 1'000 % 2 == 0 ? random() % 4 != 0 : random() % 4 == 0) {
                    const std::uint64_t value = random() % 1'000;
                    require(store.set(key, value_of(value)) == !model.contains(number), "set says whether it was there");
                    model[number] = value;
                } else if (random() % 2 == 0) {
                    require(store.erase(key) == (model.erase(number) != 0), "erase says whether it was there");
                } else {
                    const auto value = store.get(key);
                    const auto known = model.find(number);
                    require(value == (known == model.end() ? std::nullopt : std::optional(value_of(known->second))),
                            "its own keys are as it left them");
                }
            }
            left.fetch_add(model.size());
        });
        BOOST_TEST(store.size() == left.load());
        BOOST_TEST(store.is_sound());
    }
    heap.trim();  // what was freed of blocks of threads that have ended counts as live before
    BOOST_TEST(heap.stats().live_blocks == before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
