#include "llds.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <string_view>
#include <thread>

namespace llds {
namespace {

/// Visits the numbers below `count` in an order that looks random: each step adds a number that has no divisor in common with the count.
class Order {
public:
    Order(std::uint64_t count, std::uint64_t seed) : count_(count), step_(count / 2 + seed % (count / 2 + 1) + 1) {
        while (std::gcd(step_, count_) != 1) ++step_;
    }
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (std::uint64_t i = 0, at = 0; i < count_; ++i, at = (at + step_) % count_) visit(at);
    }

private:
    std::uint64_t count_;
    std::uint64_t step_;
};

bool holds(const taiyen::OrderedStore& store, std::uint64_t number, const std::string& value) {
    std::array<char, 32> buffer{};  // no memory is taken for a value
    const auto bytes = store.get(key_of(number), buffer);
    return bytes && std::string_view(buffer.data(), *bytes) == value;
}

/// Each thread calls `is_right` for its keys.
Phase phase(const char* name, const Load& load, const std::function<bool(std::uint64_t)>& is_right) {
    std::atomic<std::uint64_t> wrong{0};
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < load.threads; ++thread) {
        threads.emplace_back([&, thread] {
            const std::uint64_t keys = (load.keys + load.threads - 1 - thread) / load.threads;
            if (keys == 0) return;
            std::uint64_t missed = 0;
            Order(keys, load.seed).for_each([&](std::uint64_t i) { missed += is_right(i * load.threads + thread) ? 0 : 1; });
            wrong += missed;
        });
    }
    for (std::thread& thread : threads) thread.join();
    return {name, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), load.keys, wrong};
}

}  // namespace

std::string key_of(std::uint64_t number) { return "key" + std::to_string(number); }
std::string value_of(std::uint64_t number) { return std::to_string(number * 7 % 1'000'003); }

std::vector<Phase> run(taiyen::OrderedStore& store, const Load& load) {
    const auto again = [](std::uint64_t number) { return std::to_string(number + 2'000'000); };
    return {
        phase("set", load, [&](std::uint64_t i) { return store.set(key_of(i), value_of(i)); }),
        phase("get", load, [&](std::uint64_t i) { return holds(store, i, value_of(i)); }),
        phase("set again", load, [&](std::uint64_t i) { return !store.set(key_of(i), again(i)); }),
        phase("get again", load, [&](std::uint64_t i) { return holds(store, i, again(i)); }),
        phase("delete", load, [&](std::uint64_t i) { return store.erase(key_of(i)) && !store.contains(key_of(i)); }),
    };
}

}  // namespace llds
