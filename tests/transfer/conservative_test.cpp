// Moves by guesses: only who asks for them by name gets them, and the report lists each word that was guessed.

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <random>
#include <set>

#include "file_bytes.hpp"
#include "heap/core.hpp"
#include "seed.hpp"
#include "transfer/transfer_fixture.hpp"
#include "vm/address_space.hpp"

namespace taiyen::transfer::test {

struct Point {
    std::int32_t x = 0;
    std::int32_t y = 0;
};
using Numbers = taiyen::vector<std::uint64_t>;
using Points = taiyen::vector<Point>;
using Tree = taiyen::map<int, int>;

/// All kinds of containers, none of them with a pointer of the program's own.
struct Shelf {
    taiyen::vector<taiyen::string> texts;
    taiyen::vector<bool> bits;
    taiyen::deque<taiyen::string> queue;
    taiyen::deque<int> no_queue;
    taiyen::list<taiyen::vector<int>> list;
    taiyen::list<int> no_list;
    taiyen::map<int, taiyen::list<int>> map;
    taiyen::set<taiyen::string> set;
    taiyen::multimap<int, taiyen::deque<int>> multimap;
    taiyen::map<int, int> no_map;
    taiyen::unordered_map<int, taiyen::unordered_set<int>> table;
    taiyen::unordered_map<taiyen::string, int> named;
    taiyen::unordered_multimap<int, taiyen::u16string> no_table;
    taiyen::u16string wide;
    taiyen::u32string wider;
    std::optional<taiyen::map<int, taiyen::string>> optional;

    void fill(std::mt19937_64& random) {
        const auto text = [&] { return taiyen::string(random() % 200, 'x'); };
        const int count = 1 + static_cast<int>(random() % 200);
        for (int i = 0; i < count; ++i) {
            texts.push_back(text());
            bits.push_back(random() % 2 == 0);
            i % 2 == 0 ? queue.push_back(text()) : queue.push_front(text());
            list.emplace_back(random() % 40, i);
            auto& numbers = map[static_cast<int>(random() % 1000)];
            for (unsigned n = 0; n < random() % 4; ++n) numbers.push_back(i);
            set.insert(text());
            multimap.emplace(i % 20, taiyen::deque<int>())->second.resize(random() % 500);
            for (unsigned n = 0; n < random() % 30; ++n) table[i].insert(static_cast<int>(random()));
            named.emplace(text(), i);
            if (random() % 5 == 0 && !map.empty()) map.erase(map.begin());
            if (random() % 5 == 0 && !named.empty()) named.erase(named.begin());
        }
        wide.assign(random() % 100, u'x');
        wider.assign(random() % 100, U'x');
        if (random() % 2 == 0) optional.emplace()[1] = text();
    }
};

}  // namespace taiyen::transfer::test

template <>
struct taiyen::pointers_of<taiyen::transfer::test::Point> : taiyen::no_pointers {};
template <>
struct taiyen::pointers_of<taiyen::transfer::test::Shelf> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Shelf& shelf, Visit visit) {
        visit(shelf.texts, shelf.bits, shelf.queue, shelf.no_queue, shelf.list, shelf.no_list, shelf.map, shelf.set, shelf.multimap, shelf.no_map);
        visit(shelf.table, shelf.named, shelf.no_table, shelf.wide, shelf.wider, shelf.optional);
    }
};

namespace taiyen::transfer::test {
namespace {

struct ConservativeFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    std::mt19937_64 random{taiyen::test::seed_of_run()};
    std::vector<GuessedWord> guessed;

    template <class Fill>
    void make(Fill&& fill, std::uintptr_t address = 0) {
        PersistentOptions options = small_heap();
        options.address = address;
        ArchiveHeap heap(create_only, path, options);
        fill(heap);
        heap.snapshot();
        heap.close();
    }
    std::map<std::string, std::string> files() const {
        std::map<std::string, std::string> all;
        for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
            all[entry.path().filename().string()] = taiyen::test::file_bytes(entry.path());
        return all;
    }
    RebaseOptions guessing() {
        guessed.clear();
        RebaseOptions options;
        options.by_shapes = false;
        options.conservative = true;
        options.guessed = [this](const GuessedWord& word) { guessed.push_back(word); };
        return options;
    }
    /// Nothing tells which words are pointers.
    static RebaseOptions untold() {
        RebaseOptions options;
        options.by_shapes = false;
        return options;
    }
    errc refusal(const RebaseOptions& options) const {
        try {
            rebase(path, anywhere, options);
        } catch (const Error& error) {
            return static_cast<errc>(error.code().value());
        }
        return errc{};
    }
    std::uintptr_t address() const { return read_parameters(path).address; }
    /// Where pairs of small numbers look like addresses, as heaps lie that were told to.
    static std::uintptr_t at_a_multiple_of_4_gib() {
        const vm::Zone zone = vm::default_zone();
        return vm::find_free(heap::slot_bytes, heap::slot_bytes, vm::Placement::high, zone.first, zone.last).value();
    }
    /// A number that is the address of something in the first blocks of a heap there, as (small int, upper half) is.
    std::uint64_t look_alike() { return address() + random() % (std::uint64_t{1} << 17U); }
};

/// What programs keep that is no pointer, a word each.
struct Content {
    const char* name;
    std::uint64_t (*word)(std::mt19937_64& random);
};

std::uint64_t halves(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32U | low; }

template <class T>
std::uint64_t bits_of(T value) {
    static_assert(sizeof value == sizeof(std::uint64_t));
    return std::bit_cast<std::uint64_t>(value);
}

/// Seconds of the last and the next thirty years.
std::uint64_t time_of(std::mt19937_64& random, std::uint64_t per_second) {
    return (750'000'000 + random() % 2'000'000'000) * per_second + random() % per_second;
}

constexpr Content contents_of_programs[] = {
    {"ints",
     [](std::mt19937_64& random) { return halves(static_cast<std::uint32_t>(random() % 100'000), static_cast<std::uint32_t>(random() % 100'000)); }},
    {"floats",
     [](std::mt19937_64& random) {
         const auto some = [&] { return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(random() % 2'000'000) / 1000 - 1000)); };
         return halves(some(), some());
     }},
    {"doubles", [](std::mt19937_64& random) { return bits_of(static_cast<double>(random() % 2'000'000) / 1000 - 1000); }},
    {"seconds", [](std::mt19937_64& random) { return time_of(random, 1); }},
    {"milliseconds", [](std::mt19937_64& random) { return time_of(random, 1'000); }},
    {"microseconds", [](std::mt19937_64& random) { return time_of(random, 1'000'000); }},
    {"nanoseconds", [](std::mt19937_64& random) { return time_of(random, 1'000'000'000); }},
    {"words",
     [](std::mt19937_64& random) {
         std::uint64_t word = 0;
         const unsigned letters = 1 + static_cast<unsigned>(random() % 8);
         for (unsigned i = 0; i < letters; ++i) word |= std::uint64_t{' ' + random() % 95} << (8 * i);
         return word;
     }},
    {"random bits", [](std::mt19937_64& random) { return random(); }},
};

BOOST_FIXTURE_TEST_SUITE(conservative_moves, ConservativeFixture)

BOOST_AUTO_TEST_CASE(nobody_asked_for_are_refused_and_nothing_is_touched) {
    make([&](ArchiveHeap& heap) { heap.construct<Tree>("tree")[1] = 2; });
    const auto before = files();
    BOOST_CHECK(refusal(untold()) == errc::type_mismatch);
    ConvertOptions options;
    options.address = anywhere;
    options.pointers.by_shapes = false;
    BOOST_CHECK_EXCEPTION(convert(path, directory / "other.tyn", options), Error, [](const Error& error) {
        const std::string_view what = error.what();
        return error.code() == errc::type_mismatch && what.find("PointerOptions::types") != what.npos && what.find("--conservative") != what.npos;
    });
    BOOST_TEST((files() == before));
    // Where nothing is rewritten nobody has to ask.
    BOOST_TEST(!rebase(path, address()).moved);
    convert(path, directory / "other.tyn");
    options = {};
    options.capacity = std::size_t{4} << 20U;
    options.kind = HeapKind::snapshot;
    convert(path, directory / "small.tyn", options);
    BOOST_TEST(read_parameters(directory / "small.tyn").address == address());
}

BOOST_AUTO_TEST_CASE(that_are_refused_leave_even_a_crashed_heap_as_it_was) {
    std::filesystem::create_directory(directory / "left");
    {
        ArchiveHeap heap(create_only, path, small_heap());
        heap.construct<taiyen::vector<int>>("numbers", 100U);
        heap.snapshot();
        std::filesystem::copy_file(path, directory / "left" / "heap.tyn");
        const std::filesystem::path journal = path.string() + ".journal";
        if (std::filesystem::exists(journal)) std::filesystem::copy_file(journal, directory / "left" / "heap.tyn.journal");
    }
    path = directory / "left" / "heap.tyn";
    BOOST_REQUIRE(!read_parameters(path).clean);
    const std::string before = taiyen::test::file_bytes(path);
    BOOST_CHECK(refusal(untold()) == errc::type_mismatch);
    BOOST_TEST((taiyen::test::file_bytes(path) == before));
    BOOST_TEST(!read_parameters(path).clean);
}

BOOST_AUTO_TEST_CASE(list_each_value_that_they_change_and_declared_ones_change_none) {
    constexpr std::size_t count = 20'000;
    for (const Content& content : contents_of_programs) {
        BOOST_TEST_CONTEXT(content.name) {
            std::filesystem::remove(path);
            std::vector<std::uint64_t> values(count);
            for (std::uint64_t& value : values) value = content.word(random);
            make([&](ArchiveHeap& heap) { heap.construct<Numbers>("numbers", values.begin(), values.end()); });
            // Whatever chance has not put there.
            for (std::size_t i = 0; i < 50; ++i) values[random() % count] = look_alike();
            {
                ArchiveHeap heap(open_only, path);
                std::copy(values.begin(), values.end(), heap.find<Numbers>("numbers")->begin());
                heap.snapshot();
                heap.close();
            }
            BOOST_CHECK(refusal(untold()) == errc::type_mismatch);
            RebaseOptions declared;
            declared.types.add<Numbers>();
            declared.guessed = [](const GuessedWord&) { BOOST_ERROR("nothing is guessed"); };
            const RebaseReport exact = rebase(path, anywhere, declared);
            BOOST_TEST(exact.guessed_words == 0U);
            {
                const ArchiveHeap heap(open_read_only, path);
                BOOST_TEST((std::equal(values.begin(), values.end(), heap.find<Numbers>("numbers")->begin())));
            }
            for (std::size_t i = 0; i < 50; ++i) values[random() % count] = look_alike();
            {
                ArchiveHeap heap(open_only, path);
                std::copy(values.begin(), values.end(), heap.find<Numbers>("numbers")->begin());
                heap.snapshot();
                heap.close();
            }
            const RebaseReport report = rebase(path, anywhere, guessing());
            BOOST_TEST(report.guessed_words == guessed.size());
            BOOST_TEST(report.guessed.size() == std::min<std::size_t>(guessed.size(), 20));
            const ArchiveHeap heap(open_read_only, path);
            const Numbers& now = *heap.find<Numbers>("numbers");
            std::size_t next = 0;
            for (std::size_t i = 0; i < count; ++i) {
                if (now[i] == values[i]) continue;
                BOOST_TEST_REQUIRE(next < guessed.size());
                const GuessedWord& word = guessed[next++];
                BOOST_TEST(word.offset == reinterpret_cast<std::uintptr_t>(&now[i]) - report.new_address);
                BOOST_TEST(word.block == reinterpret_cast<std::uintptr_t>(now.data()) - report.new_address);
                BOOST_TEST(word.old_value == values[i]);
                BOOST_TEST(word.new_value == now[i]);
                BOOST_TEST(word.name == "");  // the vector has the name, not its elements
            }
            BOOST_TEST(next == guessed.size());  // no link of the vector is among them
            BOOST_TEST(next > 0U);
            BOOST_TEST(report.pointers == guessed.size() + 3);
        }
    }
}

BOOST_AUTO_TEST_CASE(leave_points_alone_and_of_maps_of_ints_list_exactly_what_changes) {
    const auto fill = [&](ArchiveHeap& heap) {
        auto& points = heap.construct<Points>("points", 50'000U);
        auto& tree = heap.construct<Tree>("tree");
        const auto upper = static_cast<int>(address() >> 32U);
        for (Point& point : points) point = {static_cast<int>(random() % 100'000), static_cast<int>(upper - 20 + static_cast<int>(random() % 40))};
        for (int i = 0; i < 20'000; ++i) tree.emplace(i * 32, random() % 50 == 0 ? upper : i);
    };
    make(fill, at_a_multiple_of_4_gib());
    std::vector<Point> points;
    std::map<int, int> tree;
    {
        const ArchiveHeap heap(open_read_only, path);
        points.assign(heap.find<Points>("points")->begin(), heap.find<Points>("points")->end());
        tree.insert(heap.find<Tree>("tree")->begin(), heap.find<Tree>("tree")->end());
    }
    const RebaseReport report = rebase(path, anywhere, guessing());
    const ArchiveHeap heap(open_read_only, path);
    std::uint64_t changed = 0;
    const Points& points_now = *heap.find<Points>("points");
    for (std::size_t i = 0; i < points.size(); ++i) BOOST_REQUIRE((points[i].x == points_now[i].x && points[i].y == points_now[i].y));
    auto expected = tree.begin();
    for (const auto& [key, value] : *heap.find<Tree>("tree")) {
        changed += key != expected->first || value != expected->second ? 1 : 0;
        ++expected;
    }
    BOOST_TEST(changed > 100U);
    BOOST_TEST(report.guessed_words == changed);
    BOOST_TEST(report.pointers - changed > 40'000U);
    for (const GuessedWord& word : guessed) BOOST_TEST(word.new_value - word.old_value == report.new_address - report.old_address);
}

BOOST_AUTO_TEST_CASE(know_the_links_of_standard_containers_and_list_what_else_they_change) {
    for (int round = 0; round < 5; ++round) {
        std::filesystem::remove(path);
        std::uint64_t offset = 0;
        make([&](ArchiveHeap& heap) {
            heap.construct<Shelf>("shelf").fill(random);
            heap.construct<Shelf>("another").fill(random);
            heap.construct<Shelf>("empty");
            auto& pointer = heap.construct<const void*>("pointer");
            pointer = heap.find<Shelf>("shelf");
            offset = reinterpret_cast<std::uintptr_t>(&pointer) - address();
        });
        RebaseOptions options = guessing();
        options.dry_run = true;
        const RebaseReport told = rebase(path, anywhere, options);
        BOOST_TEST(told.guessed_words == guessed.size());
        BOOST_TEST(told.pointers > 300U);
        const auto planted = std::find_if(guessed.begin(), guessed.end(), [&](const GuessedWord& word) { return word.offset == offset; });
        BOOST_TEST_REQUIRE((planted != guessed.end()));
        BOOST_TEST(planted->name == "pointer");
        BOOST_TEST(planted->block == offset);
        guessed.erase(planted);
        // What is left are bytes that no object uses any more: were it a link, declared types would change it.
        BOOST_TEST(guessed.size() <= told.pointers / 50);
        RebaseOptions exactly;
        exactly.types.add<Shelf, const void*>();
        const RebaseReport report = rebase(path, anywhere, exactly);
        BOOST_TEST(report.unreached_blocks == 0U);
        const ArchiveHeap heap(open_read_only, path);
        for (const GuessedWord& word : guessed) {
            std::uint64_t now = 0;
            std::memcpy(&now, reinterpret_cast<const std::byte*>(report.new_address + word.offset), sizeof now);
            BOOST_TEST(now == word.old_value, "a link at " << word.offset << ", in the block at " << word.block);
        }
    }
}

BOOST_AUTO_TEST_CASE(end_with_what_the_listener_throws_and_the_heap_stays) {
    make([&](ArchiveHeap& heap) { heap.construct<Numbers>("numbers", 100U, address() + 4096 * 3); });
    {
        ArchiveHeap heap(open_only, path);
        for (auto& number : *heap.find<Numbers>("numbers")) number = reinterpret_cast<std::uintptr_t>(&number);
        heap.snapshot();
        heap.close();
    }
    const std::string before = taiyen::test::file_bytes(path).substr(8192);
    const std::uintptr_t was = address();
    RebaseOptions options = guessing();
    options.guessed = [](const GuessedWord&) { throw std::runtime_error("enough"); };
    BOOST_CHECK_THROW(rebase(path, anywhere, options), std::runtime_error);
    BOOST_TEST(address() == was);
    BOOST_TEST((taiyen::test::file_bytes(path).substr(8192) == before));
    options = guessing();
    options.listed_max = 7;
    const RebaseReport report = rebase(path, anywhere, options);
    BOOST_TEST(report.guessed.size() == 7U);
    BOOST_TEST(report.guessed_words == 100U);
    BOOST_TEST(guessed.size() == 100U);
    for (std::size_t i = 0; i < 7; ++i) BOOST_TEST(report.guessed[i].offset == guessed[i].offset);
}

BOOST_AUTO_TEST_CASE(guess_only_in_what_no_declared_type_covers) {
    const auto fill = [](Numbers& numbers) {
        for (auto& number : numbers) number = reinterpret_cast<std::uintptr_t>(&number);
    };
    make([&](ArchiveHeap& heap) {
        fill(heap.construct<Numbers>("known", 100U));
        fill(heap.construct<Numbers>("unknown", 50U));
        heap.construct<taiyen::unordered_set<int*>>("hashed").insert(heap.make<int>());
    });
    RebaseOptions options = guessing();
    options.types.add<taiyen::vector<int>>();  // of nothing that is there
    options.conservative = false;
    BOOST_CHECK(refusal(options) == errc::type_mismatch);
    options.conservative = true;
    BOOST_CHECK(refusal(options) == errc::type_mismatch);  // it hashes pointers
    options.accept_hashed_by_address = true;
    guessed.clear();
    const RebaseReport all = rebase(path, anywhere, options);
    BOOST_TEST(all.guessed_words == 151U);
    BOOST_TEST((all.hashed_by_address == std::vector<std::string>{"hashed"}));
    {
        ArchiveHeap heap(open_only, path);
        BOOST_TEST(heap.destroy<Numbers>("known"));
        fill(heap.construct<Numbers>("known", 100U));
        BOOST_TEST(heap.destroy<Numbers>("unknown"));
        heap.construct<taiyen::vector<taiyen::vector<std::uint64_t*>>>("unknown", 1U).front().resize(50);
        for (auto& pointer : heap.find<taiyen::vector<taiyen::vector<std::uint64_t*>>>("unknown")->front())
            pointer = heap.find<Numbers>("known")->data();
        heap.snapshot();
        heap.close();
    }
    options = guessing();
    options.accept_hashed_by_address = true;
    options.types.add<Numbers>();
    const RebaseReport report = rebase(path, anywhere, options);
    BOOST_TEST(report.by_declared_types);
    BOOST_TEST(report.guessed_words == 51U);
    const ArchiveHeap heap(open_read_only, path);
    const Numbers& known = *heap.find<Numbers>("known");
    for (const auto& number : known) BOOST_TEST(number == reinterpret_cast<std::uintptr_t>(&number) - report.new_address + report.old_address);
    for (const auto* const pointer : heap.find<taiyen::vector<taiyen::vector<std::uint64_t*>>>("unknown")->front())
        BOOST_TEST(pointer == known.data());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
