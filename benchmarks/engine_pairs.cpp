/// The block engine alone, on anonymous memory: nanoseconds per operation, and metadata bytes announced per operation.
/// Usage: engine_pairs [map nodes, default 2000000]

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <random>
#include <vector>

#include <taiyen/base/error.hpp>

#include "heap/engine.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::heap;

class Host : public SpanHost {
public:
    void extend(ByteCount extent_bytes) override {
        if (extent_bytes > limit) throw HeapFull(extent_bytes, 0, HeapFull::Cause::disk);
    }
    ByteCount limit = ~ByteCount{0};
};

class Counter : public WriteObserver {
public:
    void about_to_write(HeapOffset, ByteCount length) override {
        bytes += length;
        ++calls;
    }
    std::uint64_t bytes = 0;
    std::uint64_t calls = 0;
};

constexpr ByteCount capacity = 8_GiB;

struct Heap {
    explicit Heap(WriteObserver* observer = nullptr)
        : span(static_cast<std::byte*>(mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        Engine::format(span, capacity, host);
        engine.emplace(span, capacity, host, observer);
    }
    ~Heap() { munmap(span, capacity); }
    Host host;
    std::byte* span;
    std::optional<Engine> engine;
};

template <class Body>
double nanoseconds(std::uint64_t operations, Body body) {
    double best = 1e300;
    for (int round = 0; round < 5; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        body();
        const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
        best = std::min(best, time.count() / static_cast<double>(operations));
    }
    return best;
}

std::vector<ByteCount> mixed_sizes(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> size(1.0 / 43);
    std::vector<ByteCount> sizes(count);
    for (ByteCount& bytes : sizes) bytes = std::min<ByteCount>(1024, 1 + static_cast<ByteCount>(size(random)));
    return sizes;
}

template <class T>
struct EngineAllocator {
    using value_type = T;
    Engine* engine;
    explicit EngineAllocator(Engine& e) : engine(&e) {}
    template <class U>
    EngineAllocator(const EngineAllocator<U>& other) : engine(other.engine) {}
    T* allocate(std::size_t n) { return static_cast<T*>(engine->allocate(n * sizeof(T), alignof(T))); }
    void deallocate(T* block, std::size_t) { engine->deallocate(block); }
    bool operator==(const EngineAllocator&) const = default;
};

void pairs(Engine& engine, const char* name) {
    for (const ByteCount bytes : {16U, 64U, 200U, 1000U}) {
        const double time = nanoseconds(2'000'000, [&] {
            for (int i = 0; i < 2'000'000; ++i) engine.deallocate(engine.allocate(bytes));
        });
        std::printf("%-24s pair %4zu B: %6.1f ns\n", name, bytes, time);
    }
    const auto sizes = mixed_sizes(1U << 12U, 1);
    std::printf("%-24s pair, mixed: %6.1f ns\n", name, nanoseconds(2'000'000, [&] {
                    for (unsigned i = 0; i < 2'000'000; ++i) engine.deallocate(engine.allocate(sizes[i % sizes.size()]));
                }));
    for (const ByteCount bytes : {24U, 40U, 120U}) {
        std::printf("%-24s pair %4zu B, packed: %6.1f ns\n", name, bytes, nanoseconds(2'000'000, [&] {
                        for (int i = 0; i < 2'000'000; ++i) engine.deallocate(engine.allocate(bytes, 8));
                    }));
    }
    std::vector<void*> blocks(10'000);
    std::printf("%-24s batch of 1000 x 64 B: %6.1f ns a pair\n", name, nanoseconds(1'000'000, [&] {
                    for (unsigned round = 0; round < 1000; ++round) {
                        for (unsigned i = 0; i < 1000; ++i) blocks[i] = engine.allocate(64);
                        for (unsigned i = 0; i < 1000; ++i) engine.deallocate(blocks[i]);
                    }
                }));
    std::vector<unsigned> order(10'000);
    for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(2));
    std::printf("%-24s shuffled 10000, mixed: %6.1f ns a pair\n", name, nanoseconds(500'000, [&] {
                    for (unsigned round = 0; round < 50; ++round) {
                        for (unsigned i = 0; i < order.size(); ++i) blocks[i] = engine.allocate(sizes[i % sizes.size()]);
                        for (const unsigned i : order) engine.deallocate(blocks[i]);
                    }
                }));
}

void packed_churn(Engine& engine, std::size_t live, ByteCount alignment) {
    std::vector<void*> blocks(live);
    std::mt19937 random(4);
    for (void*& block : blocks) block = engine.allocate(40, alignment);
    std::printf("churn, %zu live of 40 B, alignment %zu: %6.1f ns a pair\n", live, alignment, nanoseconds(live, [&] {
                    for (std::size_t i = 0; i < live; ++i) {
                        void*& block = blocks[random() % live];
                        engine.deallocate(block);
                        block = engine.allocate(40, alignment);
                    }
                }));
    for (void* block : blocks) engine.deallocate(block);
}

void churn(Engine& engine, std::size_t live) {
    std::vector<void*> blocks(live);
    const auto sizes = mixed_sizes(1U << 16U, 3);
    std::mt19937 random(4);
    ByteCount requested = 0;
    for (std::size_t i = 0; i < live; ++i) blocks[i] = engine.allocate(sizes[i % sizes.size()]);
    const double time = nanoseconds(live, [&] {
        for (std::size_t i = 0; i < live; ++i) {
            void*& block = blocks[random() % live];
            engine.deallocate(block);
            block = engine.allocate(sizes[(i * 7) % sizes.size()]);
        }
    });
    (void)requested;
    const EngineStats stats = engine.stats();
    std::printf("churn, %zu live, mixed: %6.1f ns a pair; live %zu KiB of extent %zu KiB\n", live, time, stats.live_bytes / 1024,
                stats.extent_bytes / 1024);
    for (void* block : blocks) engine.deallocate(block);
}

void runs(Engine& engine) {
    std::printf("pair 100000 B: %6.1f ns\n", nanoseconds(100'000, [&] {
                    for (int i = 0; i < 100'000; ++i) engine.deallocate(engine.allocate(100'000));
                }));
    std::vector<void*> blocks(1000);
    std::mt19937 random(5);
    std::printf("churn of 1000 blocks of 4 to 260 KiB: %6.1f ns a pair\n", nanoseconds(100'000, [&] {
                    for (int i = 0; i < 100'000; ++i) {
                        void*& block = blocks[random() % blocks.size()];
                        if (block != nullptr) engine.deallocate(block);
                        block = engine.allocate(4096 + random() % (256U << 10U));
                    }
                }));
}

/// What a mix leaves of its span: how much of it is asked for, and how much of the free rest can be had in blocks of one size.
template <class Draw>
void space(const char* mix, ByteCount live_bytes, std::size_t replacements, std::initializer_list<ByteCount> sizes, Draw draw) {
    struct Live {
        void* block;
        ByteCount bytes;
    };
    for (const ByteCount size : sizes) {
        Heap heap;
        std::vector<Live> live;
        std::mt19937 random(6);
        ByteCount asked = 0;
        for (std::size_t step = 0; asked < live_bytes || step < replacements;) {
            if (asked >= live_bytes) {
                Live& victim = live[random() % live.size()];
                heap.engine->deallocate(victim.block);
                asked -= victim.bytes;
                victim = live.back();
                live.pop_back();
                ++step;
                continue;
            }
            const ByteCount bytes = draw(random, static_cast<double>(step) / static_cast<double>(replacements));
            live.push_back({heap.engine->allocate(bytes), bytes});
            asked += bytes;
        }
        const ByteCount extent = heap.engine->extent();
        const ByteCount free_bytes = heap.engine->stats().free_bytes;
        heap.host.limit = extent;
        ByteCount had = 0;
        try {
            for (;; ++had) heap.engine->allocate(size);
        } catch (const HeapFull&) {}
        std::printf("%s, %zu MiB live: efficiency %.2f, availability for %zu B %.2f\n", mix, live_bytes >> 20U,
                    static_cast<double>(asked) / static_cast<double>(extent), size,
                    static_cast<double>(had * size) / static_cast<double>(free_bytes));
    }
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned nodes = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 2'000'000;
    {
        Heap heap;
        pairs(*heap.engine, "no observer");
        churn(*heap.engine, 1000);
        churn(*heap.engine, 1'000'000);
        packed_churn(*heap.engine, 1'000'000, 8);
        packed_churn(*heap.engine, 1'000'000, 16);
        runs(*heap.engine);
    }
    space("small mix", ByteCount{64} << 20U, 4'000'000, {48, 256}, [](std::mt19937& random, double progress) {
        const double mean = 43 * (progress < 0.5 ? 1 + 2 * progress : 2 - 2.6 * (progress - 0.5));  // x 1, x 2, x 0.7
        return std::min<ByteCount>(1024, 1 + static_cast<ByteCount>(std::exponential_distribution<double>(1 / mean)(random)));
    });
    space("wide mix", ByteCount{192} << 20U, 1'000'000, {16 * 1024, 4096, 256}, [](std::mt19937& random, double) {
        return static_cast<ByteCount>(16 * std::pow(4096.0, std::uniform_real_distribution<double>(0, 1)(random)));
    });
    {
        Counter counter;
        Heap heap(&counter);
        pairs(*heap.engine, "counting observer");
        counter = {};
        const auto sizes = mixed_sizes(1U << 16U, 3);
        std::vector<void*> blocks;
        for (const ByteCount bytes : sizes) blocks.push_back(heap.engine->allocate(bytes));
        std::printf("metadata announced by an allocation, mixed: %.1f bytes in %.2f writes\n",
                    static_cast<double>(counter.bytes) / static_cast<double>(sizes.size()),
                    static_cast<double>(counter.calls) / static_cast<double>(sizes.size()));
        counter = {};
        for (void* block : blocks) heap.engine->deallocate(block);
        std::printf("metadata announced by a free, mixed: %.1f bytes\n", static_cast<double>(counter.bytes) / static_cast<double>(sizes.size()));
    }
    {
        Heap heap;
        using Value = std::pair<const std::uint64_t, std::uint64_t>;
        const auto begin = std::chrono::steady_clock::now();
        std::map<std::uint64_t, std::uint64_t, std::less<>, EngineAllocator<Value>> map{EngineAllocator<Value>(*heap.engine)};
        for (unsigned i = 0; i < nodes; ++i) map.emplace_hint(map.end(), i, i);
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
        std::printf("std::map of %u nodes filled in order: %.3f s, extent %zu KiB\n", nodes, time.count(), heap.engine->extent() / 1024);
    }
    return 0;
}
