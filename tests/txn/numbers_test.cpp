// Numbers, times and text are no pointers: whatever a program keeps in a heap is saved and committed, whichever heaps are open beside it.

#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <numeric>
#include <random>

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "txn/txn_fixture.hpp"

using namespace taiyen;

namespace {

using Random = std::mt19937_64;
using Words = std::vector<std::uint64_t>;

/// As the values of `next` lie in memory one after the other.
template <class T, class Next>
void fill(Words& words, Next next) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto* const bytes = reinterpret_cast<char*>(words.data());
    for (std::size_t at = 0; at + sizeof(T) <= words.size() * sizeof(std::uint64_t); at += sizeof(T)) {
        const T value = next();
        std::memcpy(bytes + at, &value, sizeof value);
    }
}

struct Content {
    const char* name;
    std::function<void(Words& words, Random& random)> make;
};

/// A word of a few letters of Latin, Greek, Cyrillic or Chinese.
std::string utf8_word(Random& random) {
    constexpr std::array<std::pair<unsigned, unsigned>, 5> alphabets{{{'a', 26}, {'A', 26}, {0x3b1, 25}, {0x430, 32}, {0x4e00, 5000}}};
    const auto [first, count] = alphabets[random() % alphabets.size()];
    std::string text;
    for (std::size_t letters = 1 + random() % 9; letters != 0; --letters) {
        const auto code = first + static_cast<unsigned>(random() % count);
        if (code < 0x80) {
            text += static_cast<char>(code);
        } else if (code < 0x800) {
            text += static_cast<char>(0xc0 | code >> 6U);
            text += static_cast<char>(0x80 | (code & 0x3fU));
        } else {
            text += static_cast<char>(0xe0 | code >> 12U);
            text += static_cast<char>(0x80 | (code >> 6U & 0x3fU));
            text += static_cast<char>(0x80 | (code & 0x3fU));
        }
    }
    return text;
}

/// Moments of the last twenty years and the next ten.
std::int64_t moment(Random& random, std::int64_t ticks_per_second) {
    const auto seconds = static_cast<std::int64_t>(1'160'000'000 + random() % 950'000'000);
    return seconds * ticks_per_second + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(ticks_per_second));
}

const std::vector<Content>& contents() {
    static const std::vector<Content> all{
        {"ints in a row",
         [](Words& words, Random& random) { fill<int>(words, [next = static_cast<int>(random() % 80'000)]() mutable { return next++; }); }},
        {"ints below 100,000", [](Words& words, Random& random) { fill<int>(words, [&] { return static_cast<int>(random() % 100'000); }); }},
        {"pairs of an int and a larger one",
         [](Words& words, Random& random) {
             fill<std::array<std::uint32_t, 2>>(
                 words, [&] { return std::array{static_cast<std::uint32_t>(random() % 1'000), static_cast<std::uint32_t>(random() % 100'000)}; });
         }},
        {"floats", [](Words& words, Random& random) { fill<float>(words, [&] { return static_cast<float>(random() % 100'000) / 100.F; }); }},
        {"doubles", [](Words& words, Random& random) { fill<double>(words, [&] { return static_cast<double>(random() % 100'000'000) / 1000.; }); }},
        {"times in seconds", [](Words& words, Random& random) { fill<std::int64_t>(words, [&] { return moment(random, 1); }); }},
        {"times in seconds of 32 bits",
         [](Words& words, Random& random) { fill<std::int32_t>(words, [&] { return static_cast<std::int32_t>(moment(random, 1)); }); }},
        {"times in milliseconds", [](Words& words, Random& random) { fill<std::int64_t>(words, [&] { return moment(random, 1'000); }); }},
        {"times in microseconds", [](Words& words, Random& random) { fill<std::int64_t>(words, [&] { return moment(random, 1'000'000); }); }},
        {"times in nanoseconds", [](Words& words, Random& random) { fill<std::int64_t>(words, [&] { return moment(random, 1'000'000'000); }); }},
        {"words of text, each in a field of its own",
         [](Words& words, Random& random) {
             fill<std::array<char, 16>>(words, [&] {
                 std::array<char, 16> field{};
                 const std::string text = utf8_word(random);
                 std::memcpy(field.data(), text.data(), std::min(text.size(), field.size()));
                 return field;
             });
         }},
        {"text",
         [](Words& words, Random& random) {
             std::string text;
             while (text.size() < words.size() * sizeof(std::uint64_t)) text += utf8_word(random) + ' ';
             std::memcpy(words.data(), text.data(), words.size() * sizeof(std::uint64_t));
         }},
        {"random bits", [](Words& words, Random& random) { fill<std::uint64_t>(words, [&] { return random(); }); }},
    };
    return all;
}

PersistentOptions number_heap() {
    PersistentOptions options = txn::test::small_heap();
    options.durability = Durability::async;
    return options;
}

/// In which every number is compared with all there is.
PersistentOptions searched_heap() {
    PersistentOptions options = number_heap();
    options.program_pointers = ProgramPointers::any;
    return options;
}

/// Three open heaps of each kind, with blocks.
struct Neighbours {
    ScratchDirectory directory;
    std::list<VolatileHeap> volatiles;
    std::list<ArchiveHeap> archives;
    std::list<SnapshotHeap> snapshots;
    std::list<TransactionalHeap> transactionals;

    Neighbours() {
        for (int i = 0; i < 3; ++i) {
            const auto path = [&](const char* kind) { return directory / (kind + std::to_string(i) + ".tyn"); };
            fill(volatiles.emplace_back());
            fill(archives.emplace_back(create_only, path("archive"), number_heap()));
            fill(snapshots.emplace_back(create_only, path("snapshot"), number_heap()));
            transact(transactionals.emplace_back(create_only, path("transactional"), number_heap()), [&] { fill(transactionals.back()); });
            snapshots.back().snapshot();
        }
    }
    template <class Heap>
    static void fill(Heap& heap) {
        for (int i = 0; i < 1000; ++i) (void)heap.allocate(100);
    }
};

constexpr std::size_t word_count = 4096;
constexpr std::size_t rounds = 1001 / 13 + 1;  // of each content: a thousand in all

/// `save` refuses no content.
template <class Save>
void expect_no_refusals(std::uint64_t* block, Save save) {
    Random random(taiyen::test::seed_of_run());
    Words words(word_count);
    std::size_t saves = 0;
    for (const Content& content : contents()) {
        for (std::size_t round = 0; round < rounds; ++round, ++saves) {
            content.make(words, random);
            BOOST_TEST_CONTEXT(content.name) {
                BOOST_REQUIRE_NO_THROW(save([&] { std::copy(words.begin(), words.end(), block); }));
            }
        }
    }
    BOOST_TEST(saves >= 1000U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numbers)

BOOST_AUTO_TEST_CASE(no_save_takes_numbers_for_pointers) {
    const Neighbours neighbours;
    ArchiveHeap heap(create_only, neighbours.directory / "own.tyn", searched_heap());
    auto* const block = static_cast<std::uint64_t*>(heap.allocate(word_count * sizeof(std::uint64_t)));
    expect_no_refusals(block, [&](const auto& store) {
        store();
        heap.snapshot();
    });
}

BOOST_AUTO_TEST_CASE(no_commit_takes_numbers_for_pointers) {
    const Neighbours neighbours;
    TransactionalHeap heap(create_only, neighbours.directory / "own.tyn", searched_heap());
    std::uint64_t* block = nullptr;
    transact(heap, [&] { block = static_cast<std::uint64_t*>(heap.allocate(word_count * sizeof(std::uint64_t))); });
    expect_no_refusals(block, [&](const auto& store) { transact(heap, store); });
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_ints_are_saved_beside_a_volatile_heap) {
    const ScratchDirectory directory;
    VolatileHeap other;
    for (int i = 0; i < 1000; ++i) (void)other.allocate(100);
    ArchiveHeap heap(create_only, directory / "own.tyn", number_heap());
    auto& ints = heap.construct<taiyen::vector<int>>("ints");
    ints.resize(100'000);
    std::iota(ints.begin(), ints.end(), 0);
    heap.snapshot();
    BOOST_TEST(heap.dirty_bytes() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
