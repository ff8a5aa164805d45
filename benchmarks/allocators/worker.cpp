/// One workload of the allocator suite, with whatever malloc this process has: `worker WORKLOAD PERCENT`. Prints lines "figure value".
///
/// The suite starts it once for each allocator and round, with LD_PRELOAD. Its own arrays come from the system, and are there before anything is counted.
/// Times are processor time; where two threads work, that of the one that needed longer.

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "../random.hpp"

namespace {

double percent = 100;
std::size_t scaled(double count) { return static_cast<std::size_t>(std::max(1.0, count * percent / 100)); }

void print(const char* figure, double value) { std::printf("%s %.6g\n", figure, value); }

// Time.

double seconds(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
template <class F>
double processor_seconds(F&& action, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
    const double start = seconds(clock);
    action();
    return seconds(clock) - start;
}

// Memory.

/// Anonymous memory only: the pages of programs and libraries come and go by themselves.
double resident_bytes() {
    static const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    char text[128] = {};
    if (::pread(file, text, sizeof text - 1, 0) <= 0) return 0;
    unsigned long size = 0;
    unsigned long resident = 0;
    unsigned long shared = 0;
    std::sscanf(text, "%lu %lu %lu", &size, &resident, &shared);
    return static_cast<double>(resident - shared) * 4096;
}
double mapping_count() {
    const int file = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    static char text[1U << 16U];
    double lines = 0;
    for (ssize_t count = 0; (count = ::read(file, text, sizeof text)) > 0;) lines += static_cast<double>(std::count(text, text + count, '\n'));
    ::close(file);
    return lines;
}

/// An array that is there, and not the allocator's.
template <class T>
T* array(std::size_t count) {
    void* const memory = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<T*>(memory);
}

using bench::Random;

void* touched(std::size_t bytes) {
    void* const block = std::malloc(bytes);
    if (block == nullptr) std::abort();
    *static_cast<volatile char*>(block) = 1;
    return block;
}

/// Sizes of 16 to 256 bytes, and choices, the same for everybody.
struct Script {
    static constexpr std::size_t length = 1U << 18U;
    std::uint32_t* sizes = array<std::uint32_t>(length);
    std::uint32_t* choices = array<std::uint32_t>(length);
    Script() {
        Random random(1);
        for (std::size_t i = 0; i < length; ++i) {
            sizes[i] = static_cast<std::uint32_t>(16 + random.below(241));
            choices[i] = static_cast<std::uint32_t>(random.next() >> 32U);
        }
    }
    std::uint32_t size(std::size_t i) const { return sizes[i % length]; }
    std::size_t choice(std::size_t i, std::size_t limit) const { return std::uint64_t{choices[i % length]} * limit >> 32U; }
};

// Small blocks.

void pair() {
    const Script script;
    const std::size_t count = scaled(4e6);
    const auto run = [&](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) std::free(touched(script.size(i)));
    };
    run(count / 8);
    print("ns", 1e9 * processor_seconds([&] { run(count); }) / static_cast<double>(count));
}

void batches(std::size_t batch, bool in_order) {
    const Script script;
    void** const blocks = array<void*>(batch);
    std::uint32_t* const order = array<std::uint32_t>(batch);
    for (std::uint32_t i = 0; i < batch; ++i) order[i] = i;
    if (Random random(2); !in_order)
        for (std::size_t i = batch; i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
    const std::size_t rounds = std::max<std::size_t>(1, scaled(2e6) / batch);
    const auto run = [&](std::size_t n) {
        for (std::size_t round = 0; round < n; ++round) {
            for (std::size_t i = 0; i < batch; ++i) blocks[i] = touched(script.size(round * batch + i));
            for (std::size_t i = 0; i < batch; ++i) std::free(blocks[order[i]]);
        }
    };
    run(rounds / 8 + 4);
    print("ns", 1e9 * processor_seconds([&] { run(rounds); }) / static_cast<double>(rounds * batch));
}

void churn(std::size_t live) {
    const Script script;
    void** const blocks = array<void*>(live);
    for (std::size_t i = 0; i < live; ++i) blocks[i] = touched(script.size(i));
    const std::size_t count = scaled(2e6);
    std::size_t at = 0;
    Random random(3);
    const auto run = [&](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i, ++at) {
            void*& block = blocks[random.below(live)];
            std::free(block);
            block = touched(script.size(at));
        }
    };
    run(live);
    print("ns", 1e9 * processor_seconds([&] { run(count); }) / static_cast<double>(count));
}

// Threads.

/// Two threads replace blocks in arrays that they exchange, so that half of what one frees was the other's.
void larson() {
    const Script script;
    constexpr std::size_t live = 1000;
    constexpr unsigned threads = 2;
    constexpr unsigned rounds = 8;
    void** const blocks = array<void*>(threads * live);
    const std::size_t count = scaled(4e6) / rounds;
    std::array<double, threads> spent{};
    for (unsigned round = 0; round < rounds; ++round) {
        std::vector<std::thread> all;
        for (unsigned number = 0; number < threads; ++number)
            all.emplace_back([&, number] {
                void** const mine = blocks + (number + round) % threads * live;
                spent[number] += processor_seconds([&] {
                    for (std::size_t i = 0; i < count; ++i) {
                        const std::size_t at = i + number * 1013;
                        void*& block = mine[script.choice(at, live)];
                        std::free(block);
                        block = touched(script.size(at));
                    }
                });
            });
        for (std::thread& thread : all) thread.join();
    }
    const double longest = *std::max_element(spent.begin(), spent.end());
    print("ns", 1e9 * longest / static_cast<double>(count * rounds));
    print("Mop/s", static_cast<double>(threads * count * rounds) / longest / 1e6);
}

/// One thread allocates, another one frees.
void xmalloc() {
    constexpr std::size_t bundle = 512;
    constexpr std::size_t places = 16;
    struct Bundle {
        std::atomic<bool> full;
        void* blocks[bundle];
    };
    Bundle* const ring = array<Bundle>(places);
    const std::size_t bundles = std::max<std::size_t>(1, scaled(4e6) / bundle);
    const auto wait_for = [](const std::atomic<bool>& full, bool wanted, double& waited) {
        if (full.load(std::memory_order_acquire) == wanted) return;
        waited += processor_seconds([&] {
            while (full.load(std::memory_order_acquire) != wanted) ::sched_yield();
        });
    };
    double freeing = 0;
    std::thread taker([&] {
        double waited = 0;
        freeing = processor_seconds([&] {
            for (std::size_t i = 0; i < bundles; ++i) {
                Bundle& from = ring[i % places];
                wait_for(from.full, true, waited);
                for (void* block : from.blocks) std::free(block);
                from.full.store(false, std::memory_order_release);
            }
        });
        freeing -= waited;
    });
    double waited = 0;
    double allocating = processor_seconds([&] {
        for (std::size_t i = 0; i < bundles; ++i) {
            Bundle& to = ring[i % places];
            wait_for(to.full, false, waited);
            for (void*& block : to.blocks) block = touched(64);
            to.full.store(true, std::memory_order_release);
        }
    });
    allocating -= waited;
    taker.join();
    const double blocks = static_cast<double>(bundles * bundle);
    print("ns", 1e9 * std::max(allocating, freeing) / blocks);
    print("Mfree/s", blocks / std::max(allocating, freeing) / 1e6);
    print("ns to allocate", 1e9 * allocating / blocks);
    print("ns to free", 1e9 * freeing / blocks);
}

/// Threads that start, use twenty blocks and end.
void thread_lives() {
    const std::size_t count = scaled(4000);
    const auto run = [](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
            std::thread([] {
                void* blocks[20];
                for (void*& block : blocks) block = touched(100);
                for (void* block : blocks) std::free(block);
            }).join();
    };
    run(50);
    const double before = resident_bytes();
    print("us", 1e6 * processor_seconds([&] { run(count); }, CLOCK_PROCESS_CPUTIME_ID) / static_cast<double>(count));
    print("KiB more", (resident_bytes() - before) / 1024);
}

// Fragmentation.

struct Live {
    char* block;
    std::uint32_t bytes;
};

/// How many blocks of that size fit until the process is as large as it was at most, as a part of what fits into one piece of all that is free. Frees them again.
double availability(std::size_t bytes, double peak, double base, double usable_live) {
    const std::size_t most = static_cast<std::size_t>((peak - base) / static_cast<double>(bytes)) + 1;
    const double before = resident_bytes();
    void** const blocks = array<void*>(most);
    const double own = static_cast<double>(most * sizeof(void*) + 4095) / 4096;
    constexpr double noise = 128 << 10U;
    const double limit = std::max(peak, before) + std::floor(own) * 4096 + noise;
    std::size_t count = 0;
    const std::size_t step = std::max<std::size_t>(1, 65536 / bytes);
    while (count < most) {
        std::size_t in_step = 0;
        for (; in_step < step && count < most; ++in_step, ++count) {
            blocks[count] = std::malloc(bytes);
            for (std::size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(blocks[count])[at] = 1;
            static_cast<volatile char*>(blocks[count])[bytes - 1] = 1;
        }
        if (resident_bytes() > limit) {
            count -= in_step;
            for (std::size_t i = 0; i < in_step; ++i) std::free(blocks[count + i]);
            break;
        }
    }
    for (std::size_t i = 0; i < count; ++i) std::free(blocks[i]);
    ::munmap(blocks, most * sizeof(void*));
    return static_cast<double>(count * bytes) / (peak - base - usable_live);
}

/// Keeps `target` bytes alive, replaces `count` blocks of the drawn sizes, and tells what became of the memory.
template <class Draw>
void mix(std::size_t target, std::size_t count, const Draw& draw, const std::vector<std::size_t>& probes) {
    Random random(4);
    const std::size_t places = target / 16;
    Live* const live = array<Live>(places);
    const double base = resident_bytes();
    double peak = base;
    std::size_t used = 0;
    double bytes_live = 0;
    const auto fill = [&](double phase) {
        while (bytes_live < static_cast<double>(target) && used < places) {
            const auto bytes = static_cast<std::uint32_t>(draw(random, phase));
            live[used++] = {static_cast<char*>(std::malloc(bytes)), bytes};
            std::memset(live[used - 1].block, 1, bytes);
            bytes_live += bytes;
        }
    };
    const auto drop = [&] {
        const std::size_t at = random.below(used);
        bytes_live -= live[at].bytes;
        std::free(live[at].block);
        live[at] = live[--used];
    };
    fill(0);
    const double spent = processor_seconds([&] {
        for (std::size_t i = 0; i < count; ++i) {
            drop();
            while (bytes_live > static_cast<double>(target)) drop();
            fill(static_cast<double>(i) / static_cast<double>(count));
            if (i % 65536 == 0) peak = std::max(peak, resident_bytes());
        }
    });
    const double now = resident_bytes();
    peak = std::max(peak, now);
    double usable = 0;
    for (std::size_t i = 0; i < used; ++i) usable += static_cast<double>(malloc_usable_size(live[i].block));
    print("efficiency", bytes_live / (now - base));
    print("of the peak", bytes_live / (peak - base));
    print("ns", 1e9 * spent / static_cast<double>(count));
    for (const std::size_t probe : probes) {
        const std::string name = "availability " + std::to_string(probe);
        print(name.c_str(), availability(probe, peak, base, usable));
    }
}

void small_mix() {
    mix(scaled(64.0 * (1U << 20U)), scaled(8e6),
        [](Random& random, double phase) {
            const double drift = phase < 0.5 ? 1 + 2 * phase : 2 - 2.6 * (phase - 0.5);  // 1, 2, 0.7
            return std::clamp(-43.0 * drift * std::log(1 - random.unit()), 1.0, 1024.0);
        },
        {48, 256});
}

void wide_mix() {
    mix(scaled(192.0 * (1U << 20U)), scaled(2e6), [](Random& random, double) { return 16 * std::pow(4096.0, random.unit()); }, {16384});
}

// Large blocks.

void dynamic() {
    constexpr std::size_t smallest = 16U << 10U;
    constexpr std::size_t largest = 4U << 20U;
    constexpr std::size_t live = 256;
    Live* const blocks = array<Live>(live);
    Random random(5);
    const double base = resident_bytes();
    const double mappings = mapping_count();
    double bytes_live = 0;
    double worst = 0;
    const auto touch = [](char* block, std::size_t from, std::size_t to) {
        for (std::size_t at = from; at < to; at += 4096) *static_cast<volatile char*>(block + at) = 1;
    };
    const auto fresh = [&](Live& place) {
        place.bytes = static_cast<std::uint32_t>(static_cast<double>(smallest) * std::pow(static_cast<double>(largest / smallest), random.unit()));
        place.block = static_cast<char*>(std::malloc(place.bytes));
        touch(place.block, 0, place.bytes);
        bytes_live += place.bytes;
    };
    for (std::size_t i = 0; i < live; ++i) fresh(blocks[i]);
    const std::size_t count = scaled(20'000);
    std::size_t resizes = 0;
    double resident = 0;
    std::size_t looks = 0;
    const double spent = processor_seconds([&] {
        for (std::size_t i = 0; i < count; ++i) {
            Live& place = blocks[random.below(live)];
            if (random.below(10) < 7) {
                const bool grows = random.below(2) == 0;
                const double factor = grows ? 2.3 : 0.52;
                const auto bytes =
                    static_cast<std::uint32_t>(std::clamp(place.bytes * factor, static_cast<double>(smallest), static_cast<double>(largest)));
                place.block = static_cast<char*>(std::realloc(place.block, bytes));
                touch(place.block, place.bytes, bytes);
                bytes_live += static_cast<double>(bytes) - place.bytes;
                place.bytes = bytes;
                ++resizes;
            } else {
                bytes_live -= place.bytes;
                std::free(place.block);
                fresh(place);
            }
            if (i % 1000 == 999) {
                worst = std::max(worst, (mapping_count() - mappings) / live);
                resident += (resident_bytes() - base) / bytes_live;
                ++looks;
            }
        }
    });
    print("us", 1e6 * spent / static_cast<double>(std::max<std::size_t>(1, resizes)));
    if (looks == 0) return;  // too short a run to tell
    print("resident/live", resident / static_cast<double>(looks));
    print("mappings/block", worst);
}

/// Seconds that the system takes to move written pages, whole page tables of them, to another address within one mapping: nobody who moves pages can be faster.
class PageMove {
public:
    explicit PageMove(std::size_t bytes) : bytes_(bytes) {
        constexpr std::size_t table = 2U << 20U;
        const std::size_t all = 8 * bytes;
        void* const memory = ::mmap(nullptr, all + table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        base_ = static_cast<char*>(memory) + (table - reinterpret_cast<std::uintptr_t>(memory) % table) % table;
        all_ = all;
    }
    double operator()() {
        // All of it one mapping once more, as a heap's memory is.
        ::mmap(base_, all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        std::memset(base_ + bytes_, 1, bytes_);
        return processor_seconds([&] {
            if (::mremap(base_ + bytes_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, base_ + 4 * bytes_) == MAP_FAILED)
                std::abort();
        });
    }

private:
    std::size_t bytes_;
    std::size_t all_ = 0;
    char* base_ = nullptr;
};

/// A block of 4 MiB that can't grow where it is.
void relocation() {
    constexpr std::size_t bytes = 4U << 20U;
    char* const from = array<char>(bytes);
    char* const to = array<char>(bytes);
    const std::size_t count = std::max<std::size_t>(4, scaled(400));
    std::vector<double> moving;
    std::vector<double> copying;
    std::vector<double> remapping;
    moving.reserve(count);
    copying.reserve(count);
    remapping.reserve(count);
    PageMove page_move(bytes);
    std::size_t moves = 0;
    for (std::size_t i = 0; i < count; ++i) {
        auto* block = static_cast<char*>(std::malloc(bytes));
        std::memset(block, 1, bytes);
        void* const neighbour = std::malloc(bytes);
        const char* const before = block;
        moving.push_back(processor_seconds([&] { block = static_cast<char*>(std::realloc(block, 4 * bytes)); }));
        moves += block != before ? 1 : 0;
        copying.push_back(processor_seconds([&] {
            std::memcpy(to, from, bytes);
            asm volatile("" : : "r"(to) : "memory");
        }));
        remapping.push_back(page_move());
        std::free(block);
        std::free(neighbour);
    }
    // A few microseconds: medians, or the interrupts of others count.
    const auto median = [](std::vector<double>& of) {
        std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
        return of[of.size() / 2];
    };
    const double moved_in = median(moving);
    print("us", 1e6 * moved_in);
    print("memcpy/it", median(copying) / moved_in);
    print("memcpy/mremap alone", median(copying) / median(remapping));
    print("moved", static_cast<double>(moves) / static_cast<double>(count));
}

// Reading.

/// Follows pointers through many blocks, in the order of a shuffle.
void walk() {
    struct Node {
        Node* next;
    };
    const std::size_t count = scaled(1.5e6);
    Node** const nodes = array<Node*>(count);
    Random random(6);
    for (std::size_t i = 0; i < count; ++i)
        nodes[i] = static_cast<Node*>(touched(static_cast<std::size_t>(std::clamp(-43.0 * std::log(1 - random.unit()), 8.0, 1024.0))));
    for (std::size_t i = count; i-- > 1;) std::swap(nodes[i], nodes[random.below(i + 1)]);
    for (std::size_t i = 0; i < count; ++i) nodes[i]->next = nodes[(i + 1) % count];
    const Node* at = nodes[0];
    const double spent = processor_seconds([&] {
        for (std::size_t i = 0; i < count; ++i) at = at->next;
        asm volatile("" : : "r"(at));
    });
    print("ns", 1e9 * spent / static_cast<double>(count));
    std::size_t crossing = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto begin = reinterpret_cast<std::uintptr_t>(nodes[i]);
        const std::size_t usable = malloc_usable_size(nodes[i]);
        crossing += (begin + usable - 1) / 64 - begin / 64 + 1 > (usable + 63) / 64 ? 1 : 0;
    }
    print("% with an extra line", 100 * static_cast<double>(crossing) / static_cast<double>(count));
}

void map() {
    const std::size_t count = scaled(10e6);
    const double base = resident_bytes();
    double resident = 0;
    print("s", processor_seconds([&] {
              std::map<std::uint64_t, std::uint64_t> map;
              for (std::size_t i = 0; i < count; ++i) map.emplace_hint(map.end(), i, i);
              resident = resident_bytes() - base;
          }));
    print("MB", resident / 1e6);
}

void list() {
    const std::size_t count = scaled(10e6);
    const double base = resident_bytes();
    double resident = 0;
    print("s", processor_seconds([&] {
              std::list<std::uint64_t> list;
              for (std::size_t i = 0; i < count; ++i) {
                  list.push_back(i);
                  if (i % 4 == 3) list.pop_front();
              }
              resident = resident_bytes() - base;
          }));
    print("MB", resident / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view name = argc > 1 ? argv[1] : "";
    if (argc > 2) percent = std::strtod(argv[2], nullptr);
    const std::pair<std::string_view, void (*)()> workloads[] = {{"pair", pair},
                                                                 {"batch", [] { batches(1000, true); }},
                                                                 {"shuffled", [] { batches(10'000, false); }},
                                                                 {"churn-small", [] { churn(1000); }},
                                                                 {"churn", [] { churn(scaled(1e6)); }},
                                                                 {"larson", larson},
                                                                 {"xmalloc", xmalloc},
                                                                 {"threads", thread_lives},
                                                                 {"small-mix", small_mix},
                                                                 {"wide-mix", wide_mix},
                                                                 {"dynamic", dynamic},
                                                                 {"relocation", relocation},
                                                                 {"walk", walk},
                                                                 {"map", map},
                                                                 {"list", list}};
    for (const auto& [workload, run] : workloads)
        if (workload == name) {
            run();
            return 0;
        }
    std::fprintf(stderr, "worker: there is no workload %.*s\n", static_cast<int>(name.size()), name.data());
    return 2;
}
