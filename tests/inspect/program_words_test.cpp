// Pointers to a program's own memory are told by leaks and verify; numbers that look like them aren't.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/leaks.hpp>
#include <taiyen/taiyen.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>

#include "containers/offset_family.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"

BOOST_AUTO_TEST_SUITE(program_words)
using namespace taiyen;

constexpr std::uint64_t image = 0x5c03'91d4'2000;
constexpr std::uint64_t library = 0x7f3a'1c20'4000;
constexpr std::uint64_t stack = 0x7ffd'e3b1'c000;

PersistentOptions small_heap() {
    PersistentOptions options;
    options.capacity = 64U << 20U;
    return options;
}

LeakReport search(const ArchiveHeap& heap, ProgramSearch how) {
    LeakOptions options;
    options.program_pointers = how;
    return find_leaks(heap, options);
}

std::vector<Finding> notes(const ArchiveHeap& heap, ProgramSearch how) {
    VerifyOptions options;
    options.threads = 1;
    options.program_pointers = how;
    Report report = verify(heap, options);
    BOOST_TEST(report.ok());
    return std::move(report.findings);
}

/// What neither search tells of another process.
void check_untold(const ArchiveHeap& heap, const char* what) {
    const LeakReport report = search(heap, ProgramSearch::any_process);
    BOOST_TEST(report.program_pointers == 0U, what << ": " << report.program_pointers << " words");
    BOOST_TEST(report.program.empty());
    BOOST_TEST(report.program_words_unjudged == 0U);
    BOOST_TEST(notes(heap, ProgramSearch::any_process).empty(), what);
}

/// A named struct, element of a container, so large that its members count.
struct Row {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
};

/// Rows in nodes, in one large block, in many blocks of any size, and one alone.
template <class Make>
void fill(ArchiveHeap& heap, const char* name, std::mt19937_64& random, Make make) {
    const std::string text(name);
    auto& nodes = heap.construct<taiyen::map<int, Row>>((text + " in nodes").c_str());
    for (int i = 0; i < 2000; ++i) nodes[i] = {make(), make(), make()};
    auto& together = heap.construct<taiyen::vector<std::uint64_t>>((text + " together").c_str());
    for (int i = 0; i < 20'000; ++i) together.push_back(make());
    auto& blocks = heap.construct<taiyen::vector<taiyen::vector<std::uint64_t>>>((text + " in blocks").c_str());
    for (int i = 0; i < 300; ++i) {
        blocks.emplace_back(1 + random() % 200);
        for (std::uint64_t& word : blocks.back()) word = make();
    }
    heap.construct<Row>((text + " alone").c_str(), Row{make(), make(), make()});
}

std::uint64_t word_of(std::string_view bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    return word;
}

std::uint64_t pair_of(std::uint64_t low, std::uint64_t high) { return (low & 0xffff'ffffU) | high << 32U; }

const int a_constant = 1;

BOOST_AUTO_TEST_CASE(a_pointer_to_the_programs_memory_is_told_with_its_place_and_holder) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    const auto outside = std::make_unique<int>(1);
    auto& kept = heap.construct<taiyen::vector<const void*>>("kept");
    kept = {nullptr, &kept, &a_constant, outside.get()};
    BOOST_TEST(search(heap, ProgramSearch::none).program.empty());
    BOOST_TEST(notes(heap, ProgramSearch::none).empty());

    const LeakReport report = search(heap, ProgramSearch::this_process);
    BOOST_TEST(report.leaked_blocks == 0U);
    BOOST_TEST(report.program_pointers == 2U);
    BOOST_TEST_REQUIRE(report.program.size() == 2U);
    const ProgramPointer& first = report.program[0];
    BOOST_TEST(first.offset == first.block + 16);
    BOOST_TEST(first.block_bytes >= 32U);
    BOOST_TEST(first.target == reinterpret_cast<std::uintptr_t>(&a_constant));
    BOOST_TEST(first.words == 1U);
    BOOST_TEST(first.holder == "kept");
    BOOST_TEST(first.type.empty());
    BOOST_TEST(first.leads_to.starts_with("the program"));
    BOOST_TEST(report.program[1].target == reinterpret_cast<std::uintptr_t>(outside.get()));

    const std::vector<Finding> told = notes(heap, ProgramSearch::this_process);
    BOOST_TEST_REQUIRE(told.size() == 2U);
    BOOST_TEST((told[0].severity == Severity::note));
    BOOST_TEST(told[0].what.find("the program's own memory, the program") != std::string::npos, told[0].what);
    BOOST_TEST(told[0].what.find("byte 16 of the block of") != std::string::npos, told[0].what);
    BOOST_TEST(told[0].what.find("keep an offset, an id or a name instead") != std::string::npos, told[0].what);
}

BOOST_AUTO_TEST_CASE(a_pointer_in_a_named_object_is_told_with_its_type) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    heap.construct<Row>("row", Row{1, 2, 3}).second = reinterpret_cast<std::uintptr_t>(&a_constant);
    const LeakReport report = search(heap, ProgramSearch::this_process);
    BOOST_TEST_REQUIRE(report.program.size() == 1U);
    BOOST_TEST(report.program[0].offset == report.program[0].block + 8);
    BOOST_TEST(report.program[0].type.find("Row") != std::string::npos, report.program[0].type);
    const std::vector<Finding> told = notes(heap, ProgramSearch::this_process);
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST(told[0].what.find("in the object 'row' (") != std::string::npos, told[0].what);
}

BOOST_AUTO_TEST_CASE(numbers_in_pointer_free_blocks_are_not_read) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    heap.construct<taiyen::vector<std::int64_t>>("numbers", 1000U, reinterpret_cast<std::int64_t>(&a_constant));
    for (const ProgramSearch how : {ProgramSearch::this_process, ProgramSearch::any_process}) {
        BOOST_TEST(search(heap, how).program_pointers == 0U);
        BOOST_TEST(notes(heap, how).empty());
    }
}

BOOST_AUTO_TEST_CASE(pointers_of_a_program_that_is_gone_are_told) {
    const ScratchDirectory dir;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (const std::uint64_t area : {image, library, stack}) {
        const std::string name = "a" + std::to_string(area) + ".tyn";
        ArchiveHeap heap(create_only, dir / name, small_heap());
        auto& rows = heap.construct<taiyen::map<int, Row>>("rows");
        for (int i = 0; i < 20; ++i) rows[i] = {random(), i % 3 == 0 ? 0 : area + random() % 4096 / 16 * 16 + 8, static_cast<std::uint64_t>(i)};
        heap.construct<taiyen::vector<std::uint64_t>>("numbers", 100U, random());
        heap.snapshot();
        heap.close();
        const ArchiveHeap again(open_read_only, dir / name);
        BOOST_TEST(search(again, ProgramSearch::this_process).program_pointers == 0U);
        const LeakReport report = search(again, ProgramSearch::any_process);
        BOOST_TEST_REQUIRE(report.program.size() == 1U);
        BOOST_TEST(report.program[0].words == 13U);
        BOOST_TEST(report.program[0].holder == "rows");
        BOOST_TEST((report.program[0].target ^ area) < 1U << 24U);
        BOOST_TEST(report.program[0].leads_to.empty());
        BOOST_TEST(report.leaked_blocks == 0U);
        BOOST_TEST(notes(again, ProgramSearch::any_process).size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(one_address_again_and_again_is_a_pointer_and_so_are_literals) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    auto& tables = heap.construct<taiyen::list<Row>>("tables");
    for (int i = 0; i < 5; ++i) tables.push_back({1, library + 0x230, 2});  // an empty table's constant
    BOOST_TEST(search(heap, ProgramSearch::any_process).program_pointers == 5U);
    tables.clear();
    auto& kinds = heap.construct<taiyen::map<int, Row>>("kinds");
    for (int i = 0; i < 30; ++i) kinds[i] = {image + 0x11 + static_cast<std::uint64_t>(i % 5) * 7, 0, 0};
    BOOST_TEST(search(heap, ProgramSearch::any_process).program_pointers == 30U);
}

BOOST_AUTO_TEST_CASE(a_lone_word_counts_only_with_another_near_by) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    auto& row = heap.construct<Row>("row", Row{library + 0x18, 0, 0});
    check_untold(heap, "alone");
    row.third = stack + 0x20;
    check_untold(heap, "far from each other");
    row.third = library + 0x4728;
    const LeakReport report = search(heap, ProgramSearch::any_process);
    BOOST_TEST(report.program_pointers == 2U);
    BOOST_TEST(report.program.size() == 2U);
    row.third = library + 0x4729;
    row.first += 1;
    check_untold(heap, "two unaligned numbers");
}

BOOST_AUTO_TEST_CASE(addresses_in_the_heap_are_no_programs) {
    const ScratchDirectory dir;
    PersistentOptions options = small_heap();
    options.address = 0x5480'0000'0000;
    ArchiveHeap heap(create_only, dir / "a.tyn", options);
    auto& names = heap.construct<taiyen::map<int, taiyen::string>>("names");
    for (int i = 0; i < 100; ++i) names[i] = "a name that doesn't fit into a string itself";
    check_untold(heap, "links");
    BOOST_TEST(search(heap, ProgramSearch::this_process).program_pointers == 0U);
}

BOOST_AUTO_TEST_CASE(position_independent_heaps_are_searched_as_well) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", taiyen::test::position_independent_heap());
    Row& row = heap.construct<Row>("row", Row{1, 2, 3});
    row.first = library + 8;
    row.second = library + 0x108;
    BOOST_TEST(search(heap, ProgramSearch::any_process).program_pointers == 2U);
}

BOOST_AUTO_TEST_CASE(numbers_are_never_told) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    const auto try_out = [&](const char* what, auto make) {
        const ScratchDirectory dir;
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        fill(heap, what, random, make);
        check_untold(heap, what);
    };
    try_out("random bits", random);
    try_out("48 bits", [&] { return random() >> 16U; });
    const std::vector<std::uint64_t> keys = [&] {
        std::vector<std::uint64_t> made(300);
        for (std::uint64_t& key : made) key = random() >> 16U;
        return made;
    }();
    try_out("keys of 48 bits again and again", [&] { return keys[below(keys.size())]; });
    std::normal_distribution<double> normal(0, 1e3);
    try_out("doubles", [&] { return std::bit_cast<std::uint64_t>(normal(random)); });
    try_out("small doubles", [&] { return std::bit_cast<std::uint64_t>(static_cast<double>(below(1000)) / 8); });
    try_out("hashes", [&] { return std::hash<std::string>()(std::to_string(random())); });
    try_out("halves of hashes", [&] { return std::hash<std::string>()(std::to_string(random())) & 0xffff'ffff'ffffU; });
    try_out("UUIDs", [&, odd = false]() mutable {
        odd = !odd;
        return odd ? (random() & ~std::uint64_t{0xf000}) | 0x4000 : (random() >> 2U) | std::uint64_t{1} << 63U;
    });
    try_out("words of text", [&] {
        std::string text(below(9), ' ');
        for (char& letter : text) letter = static_cast<char>((below(2) == 0 ? 'a' : 'A') + below(26));
        return word_of(text);
    });
    const std::vector<std::string> words{"Zürich", "Malmö",  "GENÈV", "Łódź",   "TOKYO",  "OSLO",
                                         "DALLAS", "KRAKÓW", "Paris", "MOSKVA", "ABCDEU", "PUSZCZ"};
    try_out("few words of text", [&] { return word_of(words[below(words.size())]); });
    const std::int64_t now = 1'790'000'000;
    for (const std::int64_t unit : {1, 1'000, 1'000'000, 1'000'000'000})
        try_out("times", [&] { return static_cast<std::uint64_t>(now * unit) + below(static_cast<std::uint64_t>(unit) * 100'000); });
    // A day's uptime in nanoseconds is as large as an address.
    std::uint64_t ticks = 0x5600'0000'0000 + below(1ULL << 44U);
    try_out("times since the start", [&] { return ticks += below(200'000'000); });
    try_out("times close together", [&] { return ticks += below(300); });
    try_out("pairs", [&] { return pair_of(below(100'000), below(100'000)); });
    try_out("pairs of any first", [&] { return pair_of(random(), below(100'000)); });
    try_out("pairs with a constant", [&] { return pair_of(below(50'000'000), 27'017); });
    try_out("pairs of a negative and a constant", [&] { return pair_of(0 - below(50'000'000), 27'017); });
    try_out("pairs of a random and a constant", [&] { return pair_of(random(), 27'017); });
    try_out("floats and ints",
            [&] { return pair_of(std::bit_cast<std::uint32_t>(static_cast<float>(below(100'000)) / 10), 20'000 + below(10'000)); });
    try_out("round floats and a constant", [&] { return pair_of(std::bit_cast<std::uint32_t>(static_cast<float>(below(16)) / 2 + 1), 27'017); });
    try_out("floats and a constant", [&] { return pair_of(std::bit_cast<std::uint32_t>(static_cast<float>(below(100'000)) / 10), 27'017); });
}

BOOST_AUTO_TEST_CASE(numbers_beside_pointers_are_told_apart) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    auto& rows = heap.construct<taiyen::map<int, Row>>("rows");
    for (int i = 0; i < 3000; ++i) rows[i] = {random() >> 16U, library + random() % 1000 * 16 + 8, 0x5600'0000'0000 + (random() >> 20U)};
    const LeakReport report = search(heap, ProgramSearch::any_process);
    BOOST_TEST_REQUIRE(report.program.size() == 1U);
    BOOST_TEST((report.program[0].target ^ library) < 1U << 24U);
}

BOOST_AUTO_TEST_CASE(many_words_in_one_place_are_one_entry) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    auto& words = heap.construct<taiyen::vector<std::uint64_t>>("words", 100'000U);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = library + i * 16 + 8;
    const LeakReport report = search(heap, ProgramSearch::any_process);
    BOOST_TEST(report.program_pointers == 100'000U);
    BOOST_TEST(report.program_places == 1U);
    BOOST_TEST(report.program_words_unjudged == 0U);
    BOOST_TEST(notes(heap, ProgramSearch::any_process).size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_the_search_keeps_is_bounded_and_the_rest_is_counted) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    auto& blocks = heap.construct<taiyen::vector<taiyen::vector<std::uint64_t>>>("blocks");
    std::uint64_t words = 0;
    for (std::size_t i = 0; i < 4400; ++i) {
        auto& block = blocks.emplace_back(128 - i / 1100 * 16);
        for (std::uint64_t& word : block) word = library + words++ * 16 + 8;
    }
    const LeakReport report = search(heap, ProgramSearch::any_process);
    BOOST_TEST(report.program_pointers > 0U);
    BOOST_TEST(report.program_words_unjudged > 0U);
    BOOST_TEST(report.program_pointers + report.program_words_unjudged <= words);
    BOOST_TEST(report.program.size() == 100U);
    BOOST_TEST(report.program_places > 100U);
    const std::vector<Finding> told = notes(heap, ProgramSearch::any_process);
    BOOST_TEST(
        std::any_of(told.begin(), told.end(), [](const Finding& note) { return note.what.find("the search keeps no more") != std::string::npos; }));
}

BOOST_AUTO_TEST_SUITE_END()
