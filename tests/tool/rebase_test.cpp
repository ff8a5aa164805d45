// rebase: what it moves, what it refuses, what it says.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

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
        const Ran ran = run_tool(dir, "rebase --json --to auto " + file);
        BOOST_TEST_REQUIRE(ran.exit == 0, file << ": " << ran.out << ran.err);
        BOOST_TEST(ran.json().get<bool>("moved"));
        BOOST_TEST(ran.json().get<std::uint64_t>("from") == before);
        BOOST_TEST(ran.json().get<std::uint64_t>("to") == address_of(dir / file));
        BOOST_TEST(ran.json().get<std::uint64_t>("pointers") > 1000U);
        BOOST_TEST(address_of(dir / file) != before);
        BOOST_TEST(run_tool(dir, "ls --json " + file).out == listed);
        BOOST_TEST(run_tool(dir, "verify " + file).exit == 0);
        BOOST_TEST(run_tool(dir, "leaks " + file).exit == 0);  // the walk along its pointers reaches every block
    }
}

BOOST_AUTO_TEST_CASE(a_dry_run_writes_nothing_and_tells_the_same_figures) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const auto before = contents(dir);
    const Ran dry = run_tool(dir, "rebase --dry-run --json --to auto a.tyn");
    BOOST_TEST(dry.exit == 0, dry.out);
    BOOST_TEST((contents(dir) == before));
    BOOST_TEST(run_tool(dir, "rebase --dry-run --to auto a.tyn").out.find("nothing was written") != std::string::npos);
    const Ran done = run_tool(dir, "rebase --json --to auto a.tyn");
    for (const char* figure : {"pointers", "pages_changed", "live_blocks", "ambiguous_words"}) {
        BOOST_TEST(dry.json().get<std::uint64_t>(figure) == done.json().get<std::uint64_t>(figure), figure);
    }
}

BOOST_AUTO_TEST_CASE(ambiguous_words_are_listed_and_refused_where_that_is_asked_for) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    {
        ArchiveHeap heap(taiyen::open_only, dir / "a.tyn");
        auto& word = heap.construct<std::uint64_t>("word");
        word = address_of(dir / "a.tyn") + (1U << 25U);
        heap.snapshot();
        heap.close();
    }
    const Ran dry = run_tool(dir, "rebase --dry-run --to auto a.tyn");
    BOOST_TEST(dry.exit == 1);
    BOOST_TEST(dry.out.find("beyond what is in use") != std::string::npos, dry.out);
    const auto before = address_of(dir / "a.tyn");
    const Ran refused = run_tool(dir, "rebase --refuse-ambiguous --to auto a.tyn");
    BOOST_TEST(refused.exit == 2);
    BOOST_TEST(refused.err.find("point to no live block") != std::string::npos, refused.err);
    BOOST_TEST(address_of(dir / "a.tyn") == before);
    BOOST_TEST(run_tool(dir, "rebase --to auto a.tyn").exit == 0);
}

BOOST_AUTO_TEST_CASE(a_place_that_is_none_is_refused_with_the_way_to_write_one) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    const auto before = address_of(dir / "a.tyn");
    for (const std::string words :
         {"", "--to 4711", "--to 0x", "--to 0x12g4", "--to 0x0", "--to 0x4520_0000_1000", "--to 0xffff_0000_0000_0000", "--to 0x11111111111111111"}) {
        const Ran ran = run_tool(dir, "rebase a.tyn " + words);
        BOOST_TEST(ran.exit == 2, words << ": " << ran.out);
        BOOST_TEST(!ran.err.empty());
    }
    BOOST_TEST(address_of(dir / "a.tyn") == before);
}

BOOST_AUTO_TEST_SUITE_END()
