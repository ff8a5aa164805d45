#pragma once
/// What threads do in one ordered store, and what must hold then; each throws where it doesn't.
///
/// Two steps of the store's own lie further apart than they would: a thread gives its processor away there, now and then.

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <taiyen/ordered/ordered_store.hpp>

#include "base/planted.hpp"
#include "threads.hpp"

namespace taiyen::test::store_threads {

inline void step_aside() noexcept {
    static thread_local std::uint32_t chance = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&chance) >> 12U);
    chance = chance * 1'664'525U + 1'013'904'223U;
    if (chance >> 28U == 0) ::sched_yield();
}
/// While it lives they do.
struct FarApart {
    FarApart() { at_planted_step = step_aside; }
    FarApart(const FarApart&) = delete;
    FarApart& operator=(const FarApart&) = delete;
    ~FarApart() { at_planted_step = nullptr; }
};

/// A value that tells its number, and by its other bytes whether it is whole. Some lie in the node, some outside, and lengths change.
inline std::string value_of(std::uint64_t number) {
    std::string value = std::to_string(number) + '/';
    value.append(number % 7 == 0 ? 300 : number % 40, static_cast<char>('a' + number % 26));
    return value;
}
inline std::uint64_t number_of(std::string_view value) {
    const std::uint64_t number = std::strtoull(std::string(value).c_str(), nullptr, 10);
    require(value == value_of(number), "a value is whole");
    return number;
}
/// Keys that share long beginnings, some too long for a node.
inline std::string key_of(std::uint64_t number) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%06llu", static_cast<unsigned long long>(number));
    return (number % 5 == 0 ? std::string(280, 'l') : number % 5 == 1 ? std::string("a shared beginning/") : std::string()) + digits;
}

inline void add_and_exchange() {
    const FarApart far_apart;
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
    require(sum == 4 * rounds, "no addition is lost");
    require(text_sum == 4U * rounds, "no exchange is lost");
    require(store.is_sound(), "the tree is sound");
}

inline void read_beside_writers() {
    const FarApart far_apart;
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
                step_aside();
                require(number_of(view.value()) == number, "a view stays");
            }
            require(number >= seen[key], "values don't grow older");
            seen[key] = number;
        }
    });
    store.trim();
    require(store.stats().retired == 0, "nothing is kept back");
}

inline void scan_beside_writers() {
    const FarApart far_apart;
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
    require(store.size() == lasting.size(), "size() is exact");
    require(store.is_sound(), "the tree is sound");
    store.trim();
    require(store.stats().retired == 0, "nothing is kept back");
}

inline void write_side_by_side(std::uint64_t seed) {
    const FarApart far_apart;
    VolatileHeap heap({.capacity = std::size_t{1} << 30U});
    const std::uint64_t before = heap.stats().live_blocks;
    {
        OrderedStore store(heap);
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
        require(store.size() == left.load(), "size() is exact");
        require(store.is_sound(), "the tree is sound");
    }
    heap.trim();  // what was freed of blocks of threads that have ended counts as live before
    require(heap.stats().live_blocks == before, "all memory comes back");
}

}  // namespace taiyen::test::store_threads
