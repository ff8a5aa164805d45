// compress and expand: what they make, what they leave alone, what they say.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;

/// What is in the heap, as the tool tells it.
std::string listing(const ScratchDirectory& dir, const std::string& heap) {
    const Ran ran = run_tool(dir, "ls " + heap);
    BOOST_TEST(ran.exit == 0);
    return ran.out;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(travelling)

BOOST_AUTO_TEST_CASE(a_heap_that_was_compressed_and_expanded_is_the_same_to_diff) {
    const ScratchDirectory dir;
    make_drawing(dir / "drawing.tyn");
    const Ran compressed = run_tool(dir, "compress drawing.tyn");
    BOOST_TEST(compressed.exit == 0);
    BOOST_TEST(compressed.err.empty());
    BOOST_TEST(compressed.out.starts_with("drawing.tyz: "));
    BOOST_TEST(std::filesystem::file_size(dir / "drawing.tyz") < std::filesystem::file_size(dir / "drawing.tyn") / 3);
    const Ran expanded = run_tool(dir, "expand drawing.tyz copy.tyn --kind archive");
    BOOST_TEST(expanded.exit == 0);
    BOOST_TEST(expanded.out == "copy.tyn: archive heap, 3 named objects, 136 KiB in use\n");
    BOOST_TEST(listing(dir, "copy.tyn") == listing(dir, "drawing.tyn"));
    BOOST_TEST(run_tool(dir, "verify copy.tyn").exit == 0);
}

BOOST_AUTO_TEST_CASE(kinds_codecs_and_files_elsewhere_are_what_was_asked_for) {
    const ScratchDirectory dir;
    make_drawing<taiyen::TransactionalHeap>(dir / "drawing.tyn");
    for (const char* codec : {"none", "lz4", "zstd"})
        BOOST_TEST(run_tool(dir, std::string("compress drawing.tyn ") + codec + ".tyz --threads 2 --codec " + codec).exit == 0);
    BOOST_TEST(std::filesystem::file_size(dir / "none.tyz") > std::filesystem::file_size(dir / "lz4.tyz"));
    BOOST_TEST(std::filesystem::file_size(dir / "lz4.tyz") > std::filesystem::file_size(dir / "zstd.tyz"));
    const Ran ran = run_tool(dir, "expand lz4.tyz --json --kind snapshot --data-file second.copy --capacity 134217728");
    BOOST_TEST(ran.exit == 0);
    BOOST_TEST(ran.json().get<std::string>("kind") == "snapshot");
    BOOST_TEST(ran.json().get<std::uint64_t>("names") == 3U);
    BOOST_TEST(std::filesystem::exists(dir / "second.copy"));
    const Ran info = run_tool(dir, "info --json lz4.tyn");
    BOOST_TEST(info.json().get<std::string>("kind") == "snapshot");
    BOOST_TEST(info.json().get<std::uint64_t>("capacity_bytes") == 134217728U);
}

BOOST_AUTO_TEST_CASE(a_heap_is_converted_to_another_kind_and_place) {
    const ScratchDirectory dir;
    make_drawing(dir / "drawing.tyn");
    const auto before = listing(dir, "drawing.tyn");
    for (const char* kind : {"archive", "transactional"}) {
        const std::string made = std::string(kind) + ".tyn";
        const Ran ran = run_tool(dir, "convert drawing.tyn " + made + " --json --conservative --address auto --capacity 134217728 --kind " + kind);
        BOOST_TEST(ran.exit == 0);
        BOOST_TEST(ran.err.empty());
        BOOST_TEST(ran.json().get<std::string>("kind") == kind);
        BOOST_TEST(ran.json().get<std::uint64_t>("old_address") != ran.json().get<std::uint64_t>("new_address"));
        BOOST_TEST(ran.json().get<std::uint64_t>("pointers") > 1000U);
        BOOST_TEST(taiyen::read_parameters(dir / made).capacity_bytes == 134217728U);
        BOOST_TEST(taiyen::read_parameters(dir / made).address == ran.json().get<std::uint64_t>("new_address"));
        BOOST_TEST(run_tool(dir, "verify " + made).exit == 0);
    }
    BOOST_TEST(run_tool(dir, "compress drawing.tyn").exit == 0);
    const Ran expanded = run_tool(dir, "expand drawing.tyz moved.tyn --address 0x4600_8000_0000 --conservative --kind archive");
    BOOST_TEST(expanded.exit == 0);
    BOOST_TEST(taiyen::read_parameters(dir / "moved.tyn").address == 0x4600'8000'0000U);
    BOOST_TEST(listing(dir, "moved.tyn") == before);
    for (const char* words :
         {"convert drawing.tyn", "convert drawing.tyn moved.tyn", "convert none.tyn other.tyn", "convert drawing.tyn other.tyn --address 12",
          "convert drawing.tyn other.tyn --defragment best", "convert drawing.tyn other.tyn --defragment address --capacity 1"}) {
        const Ran ran = run_tool(dir, words);
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(!ran.err.empty(), words);
        BOOST_TEST(!std::filesystem::exists(dir / "other.tyn"), words);
    }
}

BOOST_AUTO_TEST_CASE(capacities_are_bytes_or_bytes_with_a_unit) {
    const ScratchDirectory dir;
    make_drawing<taiyen::ArchiveHeap>(dir / "drawing.tyn");
    for (const std::string words : {"4194304", "4096K", "4M", "4MiB", "4MB"}) {
        const Ran ran = run_tool(dir, "convert drawing.tyn " + words + ".tyn --capacity " + words);
        BOOST_TEST_REQUIRE(ran.exit == 0, words << ": " << ran.err);
        BOOST_TEST(taiyen::read_parameters(dir / (words + ".tyn")).capacity_bytes == 4U << 20U);
        BOOST_TEST(listing(dir, words + ".tyn") == listing(dir, "drawing.tyn"));
    }
    BOOST_TEST(run_tool(dir, "convert drawing.tyn large.tyn --capacity 1T").exit == 0);
    BOOST_TEST(taiyen::read_parameters(dir / "large.tyn").capacity_bytes == std::size_t{1} << 40U);
    for (const std::string words : {"M", "4X", "4Mi", "4iB", "4 M", "-4M", "4M4", "99999999999T", "''"}) {
        const Ran ran = run_tool(dir, "convert drawing.tyn other.tyn --capacity " + ("'" + words + "'"));
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(ran.err.find("4MiB") != std::string::npos, words << ": " << ran.err);
        BOOST_TEST(!std::filesystem::exists(dir / "other.tyn"), words);
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_made_or_replaced_where_it_can_not_be) {
    const ScratchDirectory dir;
    make_drawing(dir / "drawing.tyn");
    BOOST_TEST(run_tool(dir, "compress drawing.tyn").exit == 0);
    const auto before = contents(dir);
    for (const char* words :
         {"compress drawing.tyn drawing.tyn", "compress drawing.tyn drawing.tyn.data", "compress none.tyn", "compress drawing.tyz other.tyz",
          "compress drawing.tyn --codec brotli", "compress drawing.tyn --level 99", "compress drawing.tyn --codec lz4 --level 13",
          "compress drawing.tyn --threads many", "expand drawing.tyz", "expand drawing.tyz drawing.tyn", "expand drawing.tyn other.tyn",
          "expand none.tyz", "expand drawing.tyz other.tyn --kind volatile", "expand drawing.tyz other.tyn --capacity 4096",
          "expand drawing.tyz other.tyn --max 4096", "expand drawing.tyz nowhere/other.tyn", "compress", "expand"}) {
        const Ran ran = run_tool(dir, words);
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(ran.out.empty(), words);
        BOOST_TEST(!ran.err.empty(), words);
        BOOST_TEST((contents(dir) == before), words);
    }
    flip(dir / "drawing.tyz", 500);
    const Ran damaged = run_tool(dir, "expand drawing.tyz other.tyn");
    BOOST_TEST(damaged.exit == 2);
    BOOST_TEST(damaged.err.starts_with("taiyen: drawing.tyz"));
    BOOST_TEST(!std::filesystem::exists(dir / "other.tyn"));
}

BOOST_AUTO_TEST_CASE(damage_is_not_passed_on_and_the_second_copy_helps) {
    const ScratchDirectory dir;
    make_drawing(dir / "drawing.tyn");
    make_drawing<taiyen::ArchiveHeap>(dir / "alone.tyn");
    flip(dir / "drawing.tyn", 50'000);
    flip(dir / "alone.tyn", 50'000);
    BOOST_TEST(run_tool(dir, "compress drawing.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "expand drawing.tyz copy.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "verify copy.tyn").exit == 0);
    const Ran ran = run_tool(dir, "compress alone.tyn");
    BOOST_TEST(ran.exit == 2);
    BOOST_TEST(!std::filesystem::exists(dir / "alone.tyz"));
}

BOOST_AUTO_TEST_SUITE_END()
