// What do small blocks cost in a volatile heap, beside the allocators that programs use?
//
// Peers are loaded while the program runs, so that they serve their own calls only and the C library goes on serving the program. Times are processor time of the threads
// that work (of threads that start and end: elapsed time), so that a busy machine disturbs less. Instructions are counted in a child process by single-stepping.

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <taiyen/heap/volatile_heap.hpp>

#include "harness.hpp"
#include "instructions.hpp"
#include "machine.hpp"

namespace {

using bench::Random;

/// An allocator as the workloads see it: two functions and what they need.
struct Allocator {
    std::string name;
    void* (*allocate)(void*, std::size_t);
    void (*free)(void*, void*);
    void* context;
};

struct Foreign {
    void* (*allocate)(std::size_t);
    void (*free)(void*);
};

std::vector<Allocator> allocators() {
    static taiyen::VolatileHeap heap;
    std::vector<Allocator> all{
        {"taiyen", [](void* context, std::size_t bytes) { return static_cast<taiyen::VolatileHeap*>(context)->allocate(bytes); },
         [](void* context, void* block) { static_cast<taiyen::VolatileHeap*>(context)->deallocate(block); }, &heap},
        {"glibc", [](void*, std::size_t bytes) { return std::malloc(bytes); }, [](void*, void* block) { std::free(block); }, nullptr}};
    struct Peer {
        const char* name;
        const char* file;
        const char* allocate;
        const char* free;
    };
    for (const Peer& peer : {Peer{"mimalloc", "libmimalloc.so.2", "mi_malloc", "mi_free"}, Peer{"jemalloc", "libjemalloc.so.2", "malloc", "free"},
                             Peer{"tcmalloc", "libtcmalloc_minimal.so.4", "tc_malloc", "tc_free"},
                             Peer{"tbbmalloc", "libtbbmalloc.so.2", "scalable_malloc", "scalable_free"}}) {
        void* const library = ::dlopen(peer.file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        if (library == nullptr) {
            std::printf("without %s: %s\n", peer.name, ::dlerror());
            continue;
        }
        auto* const foreign = new Foreign{reinterpret_cast<void* (*)(std::size_t)>(::dlsym(library, peer.allocate)),
                                          reinterpret_cast<void (*)(void*)>(::dlsym(library, peer.free))};
        if (foreign->allocate == nullptr || foreign->free == nullptr) continue;
        all.push_back({peer.name, [](void* context, std::size_t bytes) { return static_cast<Foreign*>(context)->allocate(bytes); },
                       [](void* context, void* block) { static_cast<Foreign*>(context)->free(block); }, foreign});
    }
    return all;
}

/// The same sizes, victims and orders for everybody.
struct Script {
    std::vector<std::uint32_t> sizes;
    std::vector<std::uint32_t> random;
    std::vector<std::uint32_t> shuffled;
    explicit Script(std::size_t count) {
        Random draw(1);
        for (std::size_t i = 0; i < count; ++i) {
            sizes.push_back(static_cast<std::uint32_t>(16 + draw.below(241)));
            random.push_back(static_cast<std::uint32_t>(draw.next() >> 32U));
        }
        for (std::uint32_t i = 0; i < 10'000; ++i) shuffled.push_back(i);
        for (std::uint32_t i = 9'999; i > 0; --i) std::swap(shuffled[i], shuffled[draw.below(i + 1)]);
    }
};

class Work {
public:
    Work(const Allocator& allocator, const Script& script) : a_(allocator), script_(script) {}
    ~Work() {
        for (void* block : live_) free(block);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    void pairs(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) free(allocate(size(i)));
    }
    void batches(std::size_t count) {
        blocks_.resize(1000);
        for (std::size_t i = 0; i < count; i += 1000) {
            for (std::size_t k = 0; k < 1000; ++k) blocks_[k] = allocate(size(i + k));
            for (void* block : blocks_) free(block);
        }
    }
    void shuffled(std::size_t count) {
        blocks_.resize(10'000);
        for (std::size_t i = 0; i < count; i += 10'000) {
            for (std::size_t k = 0; k < 10'000; ++k) blocks_[k] = allocate(size(i + k));
            for (const std::uint32_t k : script_.shuffled) free(blocks_[k]);
        }
    }
    /// Replaces random ones of `live` blocks.
    void churn(std::size_t live, std::size_t count) {
        while (live_.size() < live) live_.push_back(allocate(size(live_.size())));
        for (std::size_t i = 0; i < count; ++i) {
            void*& block = live_[std::uint64_t{script_.random[next_++ % script_.random.size()]} * live >> 32U];
            free(block);
            block = allocate(size(i));
        }
    }

private:
    std::size_t size(std::size_t i) const { return script_.sizes[i % script_.sizes.size()]; }
    void* allocate(std::size_t bytes) const {
        void* const block = a_.allocate(a_.context, bytes);
        *static_cast<volatile char*>(block) = 1;
        return block;
    }
    void free(void* block) const { a_.free(a_.context, block); }

    const Allocator& a_;
    const Script& script_;
    std::vector<void*> blocks_;
    std::vector<void*> live_;
    std::size_t next_ = 0;
};

/// Nanoseconds of processor time of an operation, where two threads replace blocks in an array of their own that they exchange (larson).
double larson(const Allocator& a, const Script& script, std::size_t count) {
    constexpr unsigned threads = 2;
    std::vector<void*> blocks[threads];
    std::atomic<double> spent{0};
    for (unsigned round = 0; round < 4; ++round) {
        std::vector<std::thread> all;
        for (unsigned number = 0; number < threads; ++number)
            all.emplace_back([&, number] {
                std::vector<void*>& mine = blocks[(number + round) % threads];
                mine.resize(1000, nullptr);
                spent.fetch_add(bench::processor_microseconds_of([&] {
                    for (std::size_t i = 0; i < count / 4; ++i) {
                        const std::size_t at = i + number * 1013;
                        void*& block = mine[std::uint64_t{script.random[at % script.random.size()]} * mine.size() >> 32U];
                        if (block != nullptr) a.free(a.context, block);
                        block = a.allocate(a.context, script.sizes[at % script.sizes.size()]);
                    }
                }));
            });
        for (std::thread& thread : all) thread.join();
    }
    for (const auto& array : blocks)
        for (void* block : array)
            if (block != nullptr) a.free(a.context, block);
    return 1000 * spent / static_cast<double>(threads * count);
}

/// Nanoseconds of both threads' processor time for a block that one allocates and the other one frees (xmalloc).
double handed_over(const Allocator& a, std::size_t count) {
    constexpr std::size_t bundle = 500;
    std::atomic<std::vector<void*>*> box{nullptr};
    std::atomic<double> spent{0};
    std::thread taker([&] {
        spent.fetch_add(bench::processor_microseconds_of([&] {
            for (std::size_t i = 0; i < count; i += bundle) {
                std::vector<void*>* blocks = nullptr;
                while ((blocks = box.exchange(nullptr)) == nullptr) std::this_thread::yield();
                for (void* block : *blocks) a.free(a.context, block);
                delete blocks;
            }
        }));
    });
    spent.fetch_add(bench::processor_microseconds_of([&] {
        for (std::size_t i = 0; i < count; i += bundle) {
            auto* blocks = new std::vector<void*>(bundle);
            for (void*& block : *blocks) block = a.allocate(a.context, 64);
            for (std::vector<void*>* nobody = nullptr; !box.compare_exchange_weak(nobody, blocks); nobody = nullptr) std::this_thread::yield();
        }
    }));
    taker.join();
    return 1000 * spent / static_cast<double>(count);
}

/// Microseconds for a thread that starts, allocates and frees twenty blocks, and ends.
double thread_lives(const Allocator& a, std::size_t count) {
    return bench::microseconds_of([&] {
               for (std::size_t i = 0; i < count; ++i)
                   std::thread([&] {
                       void* blocks[20];
                       for (void*& block : blocks) block = a.allocate(a.context, 100);
                       for (void* block : blocks) a.free(a.context, block);
                   }).join();
           }) /
           static_cast<double>(count);
}

int run(const bench::Options& options) {
    bench::print_head(options, "Small blocks in a volatile heap (16 to 256 B)");
    const std::vector<Allocator> all = allocators();
    const Script script(1U << 18U);
    const std::size_t count = options.quick() ? 100'000 : 1'000'000;
    const std::size_t live = options.quick() ? 100'000 : 1'000'000;
    const auto nanoseconds = [](std::size_t operations, const std::function<void()>& action) {
        return 1000 * bench::processor_microseconds_of(action) / static_cast<double>(operations);
    };
    struct Question {
        const char* text;
        std::function<double(const Allocator&, Work&)> run;
        std::function<void(Work&, std::size_t)> step;  ///< for counting; none: not counted
    };
    const std::vector<Question> questions{
        {"pair: allocate and free at once, ns", [&](const Allocator&, Work& w) { return nanoseconds(count, [&] { w.pairs(count); }); },
         [](Work& w, std::size_t n) { w.pairs(n); }},
        {"batch: allocate 1,000, free them in order, ns", [&](const Allocator&, Work& w) { return nanoseconds(count, [&] { w.batches(count); }); },
         options.quick() ? std::function<void(Work&, std::size_t)>() : [](Work& w, std::size_t n) { w.batches(n); }},
        {"shuffled: allocate 10,000, free them in random order, ns",
         [&](const Allocator&, Work& w) { return nanoseconds(count, [&] { w.shuffled(count); }); }, nullptr},
        {"churn: replace a random one of many live blocks, ns",
         [&](const Allocator&, Work& w) { return nanoseconds(count, [&] { w.churn(live, count); }); }, nullptr},
        {"larson: two threads replace blocks and exchange arrays, ns", [&](const Allocator& a, Work&) { return larson(a, script, count); }, nullptr},
        {"xmalloc: one thread allocates, another frees, ns", [&](const Allocator& a, Work&) { return handed_over(a, count); }, nullptr},
        {"threads that start, allocate 20 blocks and end, \u00b5s",
         [&](const Allocator& a, Work&) { return thread_lives(a, options.quick() ? 200 : 2000); }, nullptr}};
    for (const Question& question : questions) {
        std::vector<std::unique_ptr<Work>> works;
        std::vector<bench::Contender> contenders;
        for (const Allocator& a : all) {
            works.push_back(std::make_unique<Work>(a, script));
            Work& work = *works.back();
            question.run(a, work);  // into its steady state
            contenders.push_back({a.name, [&question, &a, &work] { return question.run(a, work); }});
        }
        const auto samples = bench::interleave(options.rounds(), contenders);
        std::printf("%s\n", question.text);
        bench::Table table({"", "median (range)", "ratio to taiyen", "instructions"});
        const auto idle = bench::count_instructions([] { return std::function<void()>([] {}); });
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::string steps = "-";
            if (question.step && idle) {
                constexpr std::size_t stepped = 1000;
                const auto counted = bench::count_instructions([&]() -> std::function<void()> {
                    auto work = std::make_shared<Work>(all[i], script);
                    question.step(*work, 20'000);
                    return [work, &question] { question.step(*work, stepped); };
                });
                if (counted) steps = bench::fixed(static_cast<double>(*counted - *idle) / stepped, 0);
            }
            table.row({all[i].name, bench::spread(samples[i]), bench::spread(bench::ratio(samples[i], samples[0]), 2), steps});
        }
        table.print();
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv, "What do small blocks cost in a volatile heap, beside the allocators that programs use?", 7,
                                     bench::Priority::normal, {}, bench::Processors::all);
        return run(options);
    });
}
