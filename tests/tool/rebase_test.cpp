// rebase: what it moves, what it refuses, what it says.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace tool_test {
/// Numbers of which the heap knows nothing but their size.
class Untold {
public:
    std::uint64_t& operator[](std::size_t i) { return words_[i]; }
    const std::uint64_t& operator[](std::size_t i) const { return words_[i]; }
    static constexpr std::size_t size() { return 30; }

private:
    std::array<std::uint64_t, 30> words_{};
};
}  // namespace tool_test

namespace {
using namespace tool_test;
using taiyen::ArchiveHeap;
using taiyen::SnapshotHeap;
using taiyen::TransactionalHeap;

std::uintptr_t address_of(const std::filesystem::path& path) { return taiyen::read_parameters(path).address; }
}  // namespace

BOOST_AUTO_TEST_SUITE(rebasing)

BOOST_AUTO_TEST_CASE(each_kind_of_heap_moves_and_lists_the_same_objects_there) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "archive.tyn");
    make_drawing<SnapshotHeap>(dir / "snapshot.tyn");
    make_drawing<TransactionalHeap>(dir / "transactional.tyn");
    for (const std::string file : {"archive.tyn", "snapshot.tyn", "transactional.tyn"}) {
        const std::string listed = run_tool(dir, "ls --json " + file).out;
        const std::uintptr_t before = address_of(dir / file);
        const Ran ran = run_tool(dir, "rebase --conservative --json --address auto " + file);
        BOOST_TEST_REQUIRE(ran.exit == 0, file << ": " << ran.out << ran.err);
        BOOST_TEST(ran.json().get<bool>("moved"));
        BOOST_TEST(ran.json().get<std::uint64_t>("old_address") == before);
        BOOST_TEST(ran.json().get<std::uint64_t>("new_address") == address_of(dir / file));
        BOOST_TEST(ran.json().get<std::uint64_t>("pointers") > 1000U);
        BOOST_TEST(address_of(dir / file) != before);
        BOOST_TEST(run_tool(dir, "ls --json " + file).out == listed);
        BOOST_TEST(run_tool(dir, "verify " + file).exit == 0);
        BOOST_TEST(run_tool(dir, "leaks " + file).exit == 0);  // the walk along its pointers reaches every block
    }
}

BOOST_AUTO_TEST_CASE(a_heap_that_knows_its_types_moves_exactly_and_unasked) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    {
        ArchiveHeap heap(taiyen::open_only, dir / "a.tyn");
        auto& numbers = heap.construct<taiyen::vector<std::uint64_t>>("numbers", 30U);
        for (std::uint64_t& number : numbers) number = reinterpret_cast<std::uintptr_t>(&numbers);
        heap.snapshot();
        heap.close();
    }
    const std::string shown = run_tool(dir, "show --json a.tyn numbers").out;
    const Ran dry = run_tool(dir, "rebase a.tyn --address auto --dry-run");
    BOOST_TEST(dry.exit == 0, dry.out);
    BOOST_TEST(dry.out.find("told by the shapes of its types") != std::string::npos, dry.out);
    const Ran moved = run_tool(dir, "rebase a.tyn --address auto --json");
    BOOST_TEST(moved.exit == 0, moved.err);
    BOOST_TEST(moved.json().get<std::uint64_t>("guessed_words") == 0U);
    BOOST_TEST(run_tool(dir, "show --json a.tyn numbers").out == shown);
    BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 0);
}

BOOST_AUTO_TEST_CASE(a_dry_run_writes_nothing_and_tells_the_same_figures) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const auto before = contents(dir);
    const Ran dry = run_tool(dir, "rebase --conservative --dry-run --json --address auto a.tyn");
    BOOST_TEST(dry.exit == 0, dry.out);
    BOOST_TEST((contents(dir) == before));
    BOOST_TEST(run_tool(dir, "rebase --conservative --dry-run --address auto a.tyn").out.find("nothing was written") != std::string::npos);
    const Ran done = run_tool(dir, "rebase --conservative --json --address auto a.tyn");
    for (const char* figure : {"pointers", "pages_changed", "live_blocks", "ambiguous_words"})
        BOOST_TEST(dry.json().get<std::uint64_t>(figure) == done.json().get<std::uint64_t>(figure), figure);
}

BOOST_AUTO_TEST_CASE(ambiguous_words_are_listed_and_refused_where_that_is_asked_for) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    {
        ArchiveHeap heap(taiyen::open_only, dir / "a.tyn");
        heap.construct<Untold>("word")[0] = address_of(dir / "a.tyn") + (1U << 25U);
        heap.snapshot();
        heap.close();
    }
    const Ran dry = run_tool(dir, "rebase --conservative --dry-run --address auto a.tyn");
    BOOST_TEST(dry.exit == 1);
    BOOST_TEST(dry.out.find("beyond what is in use") != std::string::npos, dry.out);
    const auto before = address_of(dir / "a.tyn");
    const Ran refused = run_tool(dir, "rebase --conservative --refuse-ambiguous --address auto a.tyn");
    BOOST_TEST(refused.exit == 2);
    BOOST_TEST(refused.err.find("point to no live block") != std::string::npos, refused.err);
    BOOST_TEST(address_of(dir / "a.tyn") == before);
    BOOST_TEST(run_tool(dir, "rebase --conservative --address auto a.tyn").exit == 0);
}

BOOST_AUTO_TEST_CASE(nothing_moves_by_guesses_that_nobody_has_asked_for_and_what_they_are_is_listed) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    BOOST_TEST(run_tool(dir, "compress a.tyn told.tyz").exit == 0);
    for (const char* words : {"expand told.tyz told.tyn --address auto", "convert told.tyn moved.tyn --address auto"}) {
        const Ran told = run_tool(dir, words);
        BOOST_TEST(told.exit == 0, told.err);
        BOOST_TEST(told.out.find("guess") == std::string::npos, told.out);
    }
    BOOST_TEST(run_tool(dir, "diff --fields 0 told.tyn moved.tyn").out.find("no field that is known differs") != std::string::npos);
    {
        ArchiveHeap heap(taiyen::open_only, dir / "a.tyn");
        auto& words = heap.construct<Untold>("numbers");
        for (std::size_t i = 0; i < words.size(); i += 2) words[i] = reinterpret_cast<std::uintptr_t>(&words);
        heap.snapshot();
        heap.close();
    }
    BOOST_TEST(run_tool(dir, "compress a.tyn").exit == 0);
    const auto before = contents(dir);
    BOOST_TEST(run_tool(dir, "rebase a.tyn --address auto").err.find("Untold is opaque") != std::string::npos);
    for (const std::string words : {"rebase a.tyn --address auto", "convert a.tyn b.tyn --address auto", "expand a.tyz b.tyn --address auto"}) {
        const Ran ran = run_tool(dir, words);
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(ran.err.find("--conservative") != std::string::npos, ran.err);
        BOOST_TEST((contents(dir) == before), words);
    }
    const Ran dry = run_tool(dir, "rebase a.tyn --dry-run --address auto");
    BOOST_TEST(dry.exit == 1);
    BOOST_TEST(dry.out.find("15 words are guessed") != std::string::npos, dry.out);
    BOOST_TEST(dry.out.find("only --conservative moves the heap") != std::string::npos, dry.out);
    BOOST_TEST(run_tool(dir, "rebase a.tyn --conservative --dry-run --address auto").exit == 0);
    BOOST_TEST((contents(dir) == before));
    const Ran converted = run_tool(dir, "convert a.tyn b.tyn --conservative --address auto --list 3");
    BOOST_TEST(converted.exit == 0, converted.err);
    BOOST_TEST(converted.out.find("15 words are guessed") != std::string::npos, converted.out);
    BOOST_TEST(converted.out.find("12 more") != std::string::npos, converted.out);
    const auto json = run_tool(dir, "rebase a.tyn --conservative --json --address auto --list 12").json();
    BOOST_TEST(json.get<std::uint64_t>("guessed_words") == 15U);
    BOOST_TEST_REQUIRE(json.get_child("guessed").size() == 12U);
    const auto& first = json.get_child("guessed").front().second;
    BOOST_TEST(first.get<std::string>("name") == "numbers");
    BOOST_TEST(first.get<std::uint64_t>("old_value") == first.get<std::uint64_t>("offset") + json.get<std::uint64_t>("old_address"));
    BOOST_TEST(first.get<std::uint64_t>("new_value") == first.get<std::uint64_t>("offset") + json.get<std::uint64_t>("new_address"));
    ArchiveHeap heap(taiyen::open_read_only, dir / "a.tyn");
    const auto& words = *heap.find<Untold>("numbers");
    BOOST_TEST(words[0] == reinterpret_cast<std::uintptr_t>(&words));
    BOOST_TEST(run_tool(
                   dir, "rebase --address 0x" +
                            [&] {
                                char text[32];
                                std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(address_of(dir / "a.tyn")));
                                return std::string(text);
                            }() +
                            " --dry-run a.tyn")
                   .exit == 0);  // it lies there
}

BOOST_AUTO_TEST_CASE(a_place_that_is_none_is_refused_with_the_way_to_write_one) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    const auto before = address_of(dir / "a.tyn");
    for (const std::string words : {"", "--address 4711", "--address 0x", "--address 0x12g4", "--address 0x0", "--address 0x4520_0000_1000",
                                    "--address 0xffff_0000_0000_0000", "--address 0x11111111111111111"}) {
        const Ran ran = run_tool(dir, "rebase --conservative a.tyn " + words);
        BOOST_TEST(ran.exit == 2, words << ": " << ran.out);
        BOOST_TEST(!ran.err.empty());
    }
    BOOST_TEST(address_of(dir / "a.tyn") == before);
}

BOOST_AUTO_TEST_SUITE_END()
