// sparsify: what it tells of free pages and gives back.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
using taiyen::SnapshotHeap;

void make_empty(taiyen::vector<char>& block) {
    block.clear();
    block.shrink_to_fit();
}

/// Blocks of two pages, every other one freed: what closing gives back lies in longer runs.
void make_holes(const std::filesystem::path& path) {
    SnapshotHeap heap(taiyen::create_only, path, small());
    auto& blocks = heap.construct<taiyen::vector<taiyen::vector<char>>>("blocks", 100U);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].assign(8192, static_cast<char>(i));
    for (std::size_t i = 0; i < blocks.size(); i += 2) make_empty(blocks[i]);
    heap.snapshot();
    heap.close();
}
}  // namespace

BOOST_AUTO_TEST_SUITE(sparsify)

BOOST_AUTO_TEST_CASE(gives_back_each_free_page_and_tells_what_there_was) {
    const ScratchDirectory dir;
    make_holes(dir / "a.tyn");
    const auto before = contents(dir);
    const auto dry = run_tool(dir, "sparsify --dry-run --json a.tyn").json();
    BOOST_TEST((contents(dir) == before));
    BOOST_TEST(dry.get<bool>("dry_run"));
    BOOST_TEST(!dry.get<bool>("has_history"));
    BOOST_TEST(dry.get<std::uint64_t>("free_pages") >= dry.get<std::uint64_t>("released_pages") + 90U);
    BOOST_TEST(dry.get<std::uint64_t>("pages_in_use") >= dry.get<std::uint64_t>("pages_needed"));
    BOOST_TEST(dry.get<std::uint64_t>("disk_bytes_before") == dry.get<std::uint64_t>("disk_bytes_after"));
    const Ran text = run_tool(dir, "sparsify --dry-run a.tyn");
    BOOST_TEST(text.exit == 0, text.err);
    BOOST_TEST(text.out.find("nothing was written") != std::string::npos, text.out);
    BOOST_TEST((contents(dir) == before));
    const auto done = run_tool(dir, "sparsify --json a.tyn").json();
    for (const char* const same : {"disk_bytes_before", "free_pages", "released_pages", "pages_in_use", "pages_needed", "live_bytes", "live_blocks"})
        BOOST_TEST(done.get<std::uint64_t>(same) == dry.get<std::uint64_t>(same), same);
    BOOST_TEST(done.get<std::uint64_t>("disk_bytes_after") + std::uint64_t{2 * 90 * 4096} <= done.get<std::uint64_t>("disk_bytes_before"));
    const Ran verified = run_tool(dir, "verify a.tyn");
    BOOST_TEST(verified.exit == 0, verified.out);
    SnapshotHeap heap(taiyen::open_only, dir / "a.tyn");
    const auto& blocks = *heap.find<taiyen::vector<taiyen::vector<char>>>("blocks");
    for (std::size_t i = 0; i < blocks.size(); ++i)
        BOOST_TEST((std::string_view(blocks[i].data(), blocks[i].size()) == std::string(i % 2 == 0 ? 0U : 8192U, static_cast<char>(i))));
}

BOOST_AUTO_TEST_CASE(names_the_call_that_lays_blocks_close_together_where_that_would_gain_pages) {
    const ScratchDirectory dir;
    make_holes(dir / "close.tyn");
    BOOST_TEST(run_tool(dir, "sparsify close.tyn").out.find("taiyen::compact()") == std::string::npos);
    {
        SnapshotHeap heap(taiyen::create_only, dir / "far.tyn", small());
        auto& blocks = heap.construct<taiyen::vector<taiyen::vector<char>>>("blocks", 2000U);
        for (auto& block : blocks) block.resize(500);
        for (std::size_t i = 0; i < blocks.size(); ++i)
            if (i % 8 != 0) make_empty(blocks[i]);
        heap.snapshot();
        heap.close();
    }
    const Ran far = run_tool(dir, "sparsify far.tyn");
    BOOST_TEST(far.exit == 0, far.err);
    BOOST_TEST(far.out.find("taiyen::compact() of a program that declares its types") != std::string::npos, far.out);
}

BOOST_AUTO_TEST_CASE(keeps_what_a_history_remembers_and_fails_where_there_is_no_heap_or_a_damaged_one) {
    const ScratchDirectory dir;
    {
        SnapshotHeap heap(taiyen::create_only, dir / "a.tyn", small());
        heap.attach_undo();
        ++heap.find_or_construct<int>("revision");
        heap.snapshot();
        heap.close();
    }
    const Ran kept = run_tool(dir, "sparsify a.tyn");
    BOOST_TEST(kept.exit == 0, kept.err);
    BOOST_TEST(kept.out.find("they are kept") != std::string::npos, kept.out);
    const Ran history = run_tool(dir, "history --json a.tyn");
    BOOST_TEST(history.json().get<bool>("attached"));
    BOOST_TEST(run_tool(dir, "sparsify nothing.tyn").exit == 2);
    BOOST_TEST(run_tool(dir, "sparsify").exit == 2);
    SnapshotHeap heap(taiyen::open_only, dir / "a.tyn");
    BOOST_TEST(run_tool(dir, "sparsify a.tyn").exit == 2);  // in use
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_heap_what_is_cut_and_what_somebody_has_open_and_writes_nothing) {
    const ScratchDirectory dir;
    make_holes(dir / "a.tyn");
    {
        SnapshotHeap heap(taiyen::open_only, dir / "a.tyn");
        taiyen::compress(heap, dir / "saved.tyz");
        taiyen::VolatileOptions unguarded;  // guarded heaps don't travel
        unguarded.tell_memory_tools = false;
        taiyen::VolatileHeap volatile_heap(unguarded);
        taiyen::compress(volatile_heap, dir / "volatile.tyz");
    }
    std::filesystem::copy_file(dir / "a.tyn", dir / "cut.tyn");
    std::filesystem::resize_file(dir / "cut.tyn", std::filesystem::file_size(dir / "cut.tyn") / 2);
    std::ofstream(dir / "empty.tyn");
    const auto before = contents(dir);
    for (const std::string file : {"saved.tyz", "volatile.tyz", "cut.tyn", "empty.tyn"}) {
        for (const std::string words : {"sparsify --dry-run ", "sparsify "}) {
            const Ran ran = run_tool(dir, words + file);
            BOOST_TEST(ran.exit == 2, words << file << ": " << ran.out);
            BOOST_TEST(ran.err.find(file) != std::string::npos, ran.err);
        }
    }
    const taiyen::ArchiveHeap reader(taiyen::open_read_only, dir / "a.tyn");
    BOOST_TEST(run_tool(dir, "sparsify a.tyn").exit == 2);  // in use
    BOOST_TEST(run_tool(dir, "sparsify --dry-run a.tyn").exit == 0);
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(makes_a_second_copy_whole_that_was_cut_or_is_missing) {
    const ScratchDirectory dir;
    make_holes(dir / "a.tyn");
    std::filesystem::resize_file(dir / "a.tyn.data", std::filesystem::file_size(dir / "a.tyn.data") / 2);
    const Ran cut = run_tool(dir, "sparsify a.tyn");
    BOOST_TEST(cut.exit == 0, cut.err);
    const Ran verified = run_tool(dir, "verify a.tyn");
    BOOST_TEST(verified.exit == 0, verified.out);
    std::filesystem::remove(dir / "a.tyn.data");
    const Ran missing = run_tool(dir, "sparsify a.tyn");
    BOOST_TEST(missing.exit == 0, missing.err);
    BOOST_TEST(std::filesystem::exists(dir / "a.tyn.data"));
    BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 0);
}

BOOST_AUTO_TEST_SUITE_END()
