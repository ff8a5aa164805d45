// Sets of 64-bit ids: how many bytes and how much time, against Roaring64Map, std::set and absl::btree_set. Every operation of every contender on the same ids, one after the other in each round.
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "machine.hpp"

#if defined(TAIYEN_BENCH_ROARING)
#include <roaring/roaring64map.hh>
#endif
#if defined(TAIYEN_BENCH_ABSL)
#include <absl/container/btree_set.h>
#endif

// The books of malloc count what its caches keep; these don't.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

std::size_t taken_bytes = 0;

void* taken(void* block) {
    if (block != nullptr) taken_bytes += ::malloc_usable_size(block) + sizeof(std::size_t);
    return block;
}
void given_back(void* block) {
    if (block != nullptr) taken_bytes -= ::malloc_usable_size(block) + sizeof(std::size_t);
}

}  // namespace

extern "C" {
TAIYEN_EXPORT void* malloc(std::size_t count) noexcept { return taken(__libc_malloc(count)); }
TAIYEN_EXPORT void* calloc(std::size_t number, std::size_t count) noexcept { return taken(__libc_calloc(number, count)); }
TAIYEN_EXPORT void* realloc(void* block, std::size_t count) noexcept {
    given_back(block);
    return taken(__libc_realloc(block, count));
}
TAIYEN_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t count) noexcept { return taken(__libc_memalign(alignment, count)); }
TAIYEN_EXPORT void* memalign(std::size_t alignment, std::size_t count) noexcept { return taken(__libc_memalign(alignment, count)); }
TAIYEN_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t count) noexcept {
    *block = taken(__libc_memalign(alignment, count));
    return *block == nullptr ? ENOMEM : 0;
}
TAIYEN_EXPORT void free(void* block) noexcept {
    given_back(block);
    __libc_free(block);
}
}

namespace {

using bench::Random;
using bench::Samples;
using Id = std::int64_t;
using Ids = std::vector<Id>;

double heap_bytes() { return static_cast<double>(taken_bytes); }

/// What is measured; a contender that can't do it gives none.
enum Operation { bulk, one_by_one, shuffled, contains, iterate, erase_half, unite, intersect, subtract, rank, select, serialise, bytes, operations };
constexpr const char* names[operations] = {"insert all, ascending",
                                           "insert each, ascending",
                                           "insert each, shuffled",
                                           "contains, half of them missing",
                                           "iterate",
                                           "erase every second one",
                                           "union",
                                           "intersection",
                                           "difference",
                                           "rank",
                                           "select",
                                           "serialise",
                                           "bytes of memory"};

struct Work {
    std::string name;
    Ids ids;        ///< ascending
    Ids any_order;  ///< the same
    Ids questions;  ///< half of them missing
    Ids other;      ///< for operations on two sets
};

volatile std::uint64_t sink = 0;

struct Ours {
    static constexpr const char* name = "object_id_set";
    static constexpr bool sets = true;
    using Set = taiyen::object_id_set<std::allocator<Id>>;
    static void fill(Set& set, const Ids& ids) { set.insert(ids.begin(), ids.end()); }
    static void settle(Set&) {}
    static bool insert(Set& set, Id id) { return set.insert(id); }
    static bool erase(Set& set, Id id) { return set.erase(id); }
    static bool has(const Set& set, Id id) { return set.contains(id); }
    static std::uint64_t rank(const Set& set, Id id) { return set.rank(id); }
    static std::uint64_t select(const Set& set, std::uint64_t number) { return static_cast<std::uint64_t>(set.select(number)); }
    static std::uint64_t size(const Set& set) { return set.size(); }
    static void save(const Set& set) {
        std::unique_ptr<std::byte[]> out(new std::byte[set.serialised_bytes()]);
        set.serialise(std::span(out.get(), set.serialised_bytes()));
        sink = sink + std::to_integer<std::uint64_t>(out[40]);
    }
};

#if defined(TAIYEN_BENCH_ROARING)
struct Roar {
    static constexpr const char* name = "Roaring64Map";
    static constexpr bool sets = true;
    using Set = Roaring64Map;
    static void fill(Set& set, const Ids& ids) { set.addMany(ids.size(), reinterpret_cast<const std::uint64_t*>(ids.data())); }
    static void settle(Set& set) {
        set.runOptimize();
        set.shrinkToFit();
    }
    static bool insert(Set& set, Id id) { return set.addChecked(static_cast<std::uint64_t>(id)); }
    static bool erase(Set& set, Id id) { return set.removeChecked(static_cast<std::uint64_t>(id)); }
    static bool has(const Set& set, Id id) { return set.contains(static_cast<std::uint64_t>(id)); }
    static std::uint64_t rank(const Set& set, Id id) { return set.rank(static_cast<std::uint64_t>(id)); }
    static std::uint64_t select(const Set& set, std::uint64_t number) {
        std::uint64_t id = 0;
        set.select(number, &id);
        return id;
    }
    static std::uint64_t size(const Set& set) { return set.cardinality(); }
    static void save(const Set& set) {
        std::unique_ptr<char[]> out(new char[set.getSizeInBytes()]);
        set.write(out.get());
        sink = sink + static_cast<std::uint64_t>(out[12]);
    }
};
#endif

template <class S>
struct Ordered {
    static constexpr bool sets = false;
    using Set = S;
    static void fill(Set& set, const Ids& ids) {
        for (const Id id : ids) set.insert(set.end(), id);
    }
    static void settle(Set&) {}
    static bool insert(Set& set, Id id) { return set.insert(id).second; }
    static bool erase(Set& set, Id id) { return set.erase(id) != 0; }
    static bool has(const Set& set, Id id) { return set.count(id) != 0; }
};
struct Standard : Ordered<std::set<Id>> {
    static constexpr const char* name = "std::set";
};
#if defined(TAIYEN_BENCH_ABSL)
struct Absl : Ordered<absl::btree_set<Id>> {
    static constexpr const char* name = "absl::btree_set";
};
#endif

/// Nanoseconds for each id or question, and bytes for each id.
using Figures = std::vector<std::optional<double>>;

template <class Subject>
Figures run(const Work& work) {
    using Set = typename Subject::Set;
    Figures figures(operations);
    const auto each = [](double microseconds, std::size_t count) { return microseconds * 1000 / static_cast<double>(count); };
    const auto time = [&](Operation operation, std::size_t count, auto&& action) {
        figures[operation] = each(bench::processor_microseconds_of(action), count);
    };
    const double before = heap_bytes();
    std::optional<Set> set(std::in_place);
    time(bulk, work.ids.size(), [&] {
        Subject::fill(*set, work.ids);
        Subject::settle(*set);
    });
    figures[bytes] = (heap_bytes() - before) / static_cast<double>(work.ids.size());
    std::uint64_t found = 0;
    time(contains, work.questions.size(), [&] {
        for (const Id id : work.questions) found += Subject::has(*set, id) ? 1 : 0;
    });
    time(iterate, work.ids.size(), [&] {
        for (const auto id : *set) found += static_cast<std::uint64_t>(id);
    });
    if constexpr (Subject::sets) {
        Set other;
        Subject::fill(other, work.other);
        Subject::settle(other);
        const std::size_t both = work.ids.size() + work.other.size();
        time(unite, both, [&] { found += Subject::size(*set | other); });
        time(intersect, both, [&] { found += Subject::size(*set & other); });
        time(subtract, both, [&] { found += Subject::size(*set - other); });
        const std::size_t few = std::min<std::size_t>(work.questions.size(), 1000);
        time(rank, few, [&] {
            for (std::size_t i = 0; i < few; ++i) found += Subject::rank(*set, work.questions[i]);
        });
        time(select, few, [&] {
            Random random(7);
            for (std::size_t i = 0; i < few; ++i) found += Subject::select(*set, random.below(work.ids.size()));
        });
        time(serialise, work.ids.size(), [&] { Subject::save(*set); });
    }
    set.emplace();
    time(one_by_one, work.ids.size(), [&] {
        for (const Id id : work.ids) found += Subject::insert(*set, id) ? 1 : 0;
    });
    time(erase_half, work.ids.size() / 2, [&] {
        for (std::size_t i = 0; i < work.ids.size(); i += 2) found += Subject::erase(*set, work.ids[i]) ? 1 : 0;
    });
    set.emplace();
    time(shuffled, work.ids.size(), [&] {
        for (const Id id : work.any_order) found += Subject::insert(*set, id) ? 1 : 0;
    });
    set.reset();
    ::malloc_trim(0);
    sink = sink + found;
    return figures;
}

void compare(const bench::Options& options, const Work& work) {
    struct Contender {
        const char* name;
        Figures (*run)(const Work&);
        std::vector<Samples> samples = std::vector<Samples>(operations);
    };
    std::vector<Contender> contenders;
    contenders.push_back({Ours::name, &run<Ours>});
#if defined(TAIYEN_BENCH_ROARING)
    contenders.push_back({Roar::name, &run<Roar>});
#endif
    if (options.number("--trees") != 0) {
#if defined(TAIYEN_BENCH_ABSL)
        contenders.push_back({Absl::name, &run<Absl>});
#endif
        contenders.push_back({Standard::name, &run<Standard>});
    }
    for (int round = 0; round < options.rounds(); ++round) {
        for (std::size_t k = 0; k < contenders.size(); ++k) {
            Contender& contender = contenders[(static_cast<std::size_t>(round) + k) % contenders.size()];
            const Figures figures = contender.run(work);
            for (int operation = 0; operation < operations; ++operation)
                if (figures[static_cast<std::size_t>(operation)])
                    contender.samples[static_cast<std::size_t>(operation)].add(*figures[static_cast<std::size_t>(operation)]);
        }
    }
    std::printf("%s: %zu ids\n\n", work.name.c_str(), work.ids.size());
    std::vector<std::string> head{"ns for each, of processor time"};
    for (const Contender& contender : contenders) {
        head.emplace_back(contender.name);
        if (&contender != contenders.data()) head.emplace_back("ours \u00f7 it");
    }
    bench::Table table(head);
    for (std::size_t operation = 0; operation < operations; ++operation) {
        std::vector<std::string> row{names[operation]};
        for (const Contender& contender : contenders) {
            const Samples& samples = contender.samples[operation];
            row.push_back(samples.empty() ? ""
                                          : bench::spread(samples, operation == bytes || operation == unite || operation == intersect ||
                                                                           operation == subtract || operation == serialise
                                                                       ? 4
                                                                       : 1));
            if (&contender != contenders.data())
                row.push_back(samples.empty() ? "" : bench::fixed(bench::ratio(contenders[0].samples[operation], samples).median(), 2));
        }
        table.row(row);
    }
    table.print();
}

Work with_questions(std::string name, Ids ids) {
    Work work;
    work.name = std::move(name);
    Random random(42);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    work.any_order = ids;
    for (std::size_t i = work.any_order.size(); i > 1; --i) std::swap(work.any_order[i - 1], work.any_order[random.next() % i]);
    const std::size_t questions = std::min<std::size_t>(ids.size(), 2'000'000);
    const auto width = static_cast<std::uint64_t>(ids.back() - ids.front()) + 1;
    for (std::size_t i = 0; i < questions; ++i) {
        Id id = ids[random.next() % ids.size()];
        if (i % 2 == 0) {
            // Missing, near by if there is something missing near by.
            id = ids.size() == width ? ids.back() + 1 + static_cast<Id>(random.next() % width) : ids.front() + static_cast<Id>(random.next() % width);
            for (int tries = 0; tries < 64 && std::binary_search(ids.begin(), ids.end(), id); ++tries) ++id;
        }
        work.questions.push_back(id);
    }
    // Half of the ids, and as many that lie one further.
    for (std::size_t i = 0; i < ids.size(); i += 2) work.other.push_back(ids[i] + (i % 4 == 0 ? 0 : 1));
    std::sort(work.other.begin(), work.other.end());
    work.other.erase(std::unique(work.other.begin(), work.other.end()), work.other.end());
    work.ids = std::move(ids);
    return work;
}

/// Which blocks of 16 bytes begin a live block, after a heap was filled, half emptied and filled again.
Ids block_ids(std::size_t count) {
    taiyen::VolatileHeap heap;
    Random random(5);
    std::vector<void*> live;
    for (int lap = 0; lap < 4; ++lap) {
        while (live.size() < count) live.push_back(heap.allocate(16U << random.below(6)));
        for (std::size_t i = live.size(); i > 1; --i) std::swap(live[i - 1], live[random.next() % i]);
        if (lap == 3) break;
        for (std::size_t i = count / 2; i < live.size(); ++i) heap.deallocate(live[i]);
        live.resize(count / 2);
    }
    Ids ids;
    for (const void* block : live) ids.push_back(static_cast<Id>(reinterpret_cast<std::uintptr_t>(block) / 16));
    return ids;
}

/// From opening the heap to the first answer.
void reopen(const bench::Options& options, std::size_t count) {
    const bench::Folder folder(options.folder());
    taiyen::PersistentOptions heap_options;
    heap_options.capacity = std::size_t{1} << 30U;
    {
        taiyen::ArchiveHeap heap(taiyen::create_only, folder / "ids.tyn", heap_options);
        auto& set = heap.construct<taiyen::object_id_set<>>("ids");
        auto& gaps = heap.construct<taiyen::object_id_set<>>("gaps");
        set.insert_interval(0, static_cast<Id>(count) - 1);
        Ids some;
        for (std::size_t i = 0; i < count; ++i) {
            some.push_back(static_cast<Id>(2 * i));
            if (some.size() == 65'536) {
                gaps.insert(some.begin(), some.end());
                some.clear();
            }
        }
        gaps.insert(some.begin(), some.end());
        heap.snapshot();
    }
    Samples open;
    Samples find;
    Samples first;
    for (int round = 0; round < 5 * options.rounds(); ++round) {
        std::optional<taiyen::ArchiveHeap> heap;
        open.add(bench::microseconds_of([&] { heap.emplace(taiyen::open_only, folder / "ids.tyn", heap_options); }));
        const taiyen::object_id_set<>* set = nullptr;
        find.add(bench::microseconds_of([&] { set = heap->find<taiyen::object_id_set<>>("gaps"); }));
        first.add(bench::microseconds_of([&] { sink = sink + (set->contains(static_cast<Id>(count)) ? 1 : 0); }));
    }
    std::printf("a heap with %zu ids in a row and %zu with gaps, reopened\n\n", count, count);
    bench::Table table({"microseconds", ""});
    table.row({"opening the heap", bench::spread(open)});
    table.row({"finding the set by name", bench::spread(find)});
    table.row({"the first contains", bench::spread(first)});
    table.print();
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(
            argc, argv, "How large and how fast are sets of 64-bit ids of each kind?", 3, bench::Priority::normal,
            {{"--divide", "10", "how many times fewer ids than 50 M dense, 25 M alternating, 20 M churned, 5 M sparse, 5 M blocks"},
             {"--trees", "1", "0: without std::set and absl::btree_set, which take the longest and the most memory"}});
        bench::print_head(options, "Sets of 64-bit ids");
        const std::size_t divide = options.quick() ? 100 : std::max<std::size_t>(1, options.number("--divide"));
        Random random(1);
        {
            Ids ids(50'000'000 / divide);
            for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Id>(i);
            compare(options, with_questions("dense", std::move(ids)));
        }
        {
            Ids ids(25'000'000 / divide);
            for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Id>(2 * i);
            compare(options, with_questions("alternating", std::move(ids)));
        }
        {
            Ids ids;
            for (Id id = 0; ids.size() < 20'000'000 / divide;) {
                const Id length = 1 + static_cast<Id>(random.below(128));
                if (random.below(2) == 0)
                    for (Id i = 0; i < length; ++i) ids.push_back(id + i);
                id += length;
            }
            compare(options, with_questions("taken in blocks of 1 to 128, half of the blocks given back", std::move(ids)));
        }
        {
            Ids ids(5'000'000 / divide);
            for (Id& id : ids) id = static_cast<Id>(random.next() >> 32U);
            compare(options, with_questions("sparse: random below 2^32", std::move(ids)));
        }
        {
            Ids ids(5'000'000 / divide);
            for (Id& id : ids) id = static_cast<Id>(random.next() >> 2U);
            compare(options, with_questions("very sparse: random below 2^62", std::move(ids)));
        }
        compare(options, with_questions("blocks of a churned heap", block_ids(5'000'000 / divide)));
        reopen(options, 50'000'000 / divide);
        return 0;
    });
}
