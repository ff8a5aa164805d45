// recover and copy: what they replay, what the copy holds, and that it overwrites nothing.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
using taiyen::ArchiveHeap;
using taiyen::SnapshotHeap;
using taiyen::TransactionalHeap;
}  // namespace

BOOST_AUTO_TEST_SUITE(copy)

BOOST_AUTO_TEST_CASE(what_a_crash_left_in_log_or_journal_is_brought_into_the_files) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    const auto json = run_tool(dir, "recover --json bank.tyn").json();
    BOOST_TEST(json.get<std::uint64_t>("transactions_replayed") == 7U);
    BOOST_TEST(!json.get<bool>("clean"));
    BOOST_TEST(json.get_child("done").size() == 1U);
    const auto again = run_tool(dir, "recover --json bank.tyn").json();
    BOOST_TEST(again.get<bool>("clean"));
    BOOST_TEST(again.get_child("done").empty());
    BOOST_TEST(run_tool(dir, "log --json bank.tyn").json().get<std::uint64_t>("files_contain") == 7U);
    BOOST_TEST(run_tool(dir, "verify bank.tyn").exit == 0);
    TransactionalHeap heap(taiyen::open_only, dir / "bank.tyn");
    BOOST_TEST(heap.restoration().transactions_replayed == 0U);
    BOOST_TEST(heap.find<Accounts>("accounts")->size() == 7U);
    heap.close();

    make_drawing<ArchiveHeap>(dir / "a.tyn");
    {
        ArchiveHeap archive(taiyen::open_only, dir / "a.tyn");
        *archive.find<int>("revision") = 8;
        archive.snapshot();
        copy_as_crashed(dir / "a.tyn", dir / "b.tyn");
    }
    const Ran ran = run_tool(dir, "recover b.tyn");
    BOOST_TEST(ran.exit == 0, ran.err);
    BOOST_TEST(ran.out.find("1 save of the journal") != std::string::npos, ran.out);
    BOOST_TEST(ran.out.find("up to date: generation") != std::string::npos, ran.out);
    BOOST_TEST(!std::filesystem::exists(dir / "b.tyn.journal"));
}

BOOST_AUTO_TEST_CASE(the_copy_is_the_heap_and_needs_no_other_file) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    make_drawing<SnapshotHeap>(dir / "s.tyn");
    make_crashed_bank(dir, "t.tyn", true);
    for (const std::string name : {"a", "s", "t"}) {
        const Ran ran = run_tool(dir, "copy " + name + ".tyn " + name + "-copy.tyn");
        BOOST_TEST_REQUIRE(ran.exit == 0, ran.err);
        BOOST_TEST(ran.out.find("copied to " + name + "-copy.tyn") != std::string::npos, ran.out);
        std::filesystem::create_directory(dir / "alone");
        std::filesystem::rename(dir / (name + "-copy.tyn"), dir / "alone" / (name + ".tyn"));
        BOOST_TEST(run_tool(dir, "verify alone/" + name + ".tyn").exit == 0);
        BOOST_TEST(run_tool(dir, "diff " + name + ".tyn alone/" + name + ".tyn").exit == 0);
        const auto info = run_tool(dir, "info --json alone/" + name + ".tyn").json();
        BOOST_TEST(info.get<bool>("clean"));
        BOOST_TEST(info.get<std::string>("data_file") == "");
        BOOST_TEST(info.get<std::string>("log_file") == "");
        BOOST_TEST(info.get<std::string>("uuid") == run_tool(dir, "info --json " + name + ".tyn").json().get<std::string>("uuid"));
        BOOST_TEST(run_tool(dir, "history --json alone/" + name + ".tyn").json().get<bool>("attached") == (name == "t"));
        BOOST_TEST(std::distance(std::filesystem::directory_iterator(dir / "alone"), {}) == 1);
        std::filesystem::remove_all(dir / "alone");
    }
    // It lives on, as a heap of any kind.
    BOOST_TEST(run_tool(dir, "copy t.tyn grown.tyn").exit == 0);
    TransactionalHeap heap(taiyen::open_only, dir / "grown.tyn", small());
    heap.attach_undo();
    BOOST_TEST(heap.undo());
    BOOST_TEST(heap.find<Accounts>("accounts")->size() == 6U);
}

BOOST_AUTO_TEST_CASE(a_program_copies_a_heap_that_it_goes_on_with) {
    const ScratchDirectory dir;
    {
        SnapshotHeap heap(taiyen::create_only, dir / "s.tyn", small());
        fill(heap);
        heap.snapshot();
        *heap.find<int>("revision") = 99;  // not saved: not in the copy
        taiyen::write_copy(heap, dir / "copy.tyn");
        BOOST_TEST(*heap.find<int>("revision") == 99);
        heap.snapshot();
        heap.close();
    }
    ArchiveHeap copy(taiyen::open_read_only, dir / "copy.tyn");
    BOOST_TEST(*copy.find<int>("revision") == 7);
    BOOST_TEST(copy.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_copy_heals_what_the_second_copy_has_and_there_is_none_of_what_nobody_has) {
    const ScratchDirectory dir;
    make_drawing<SnapshotHeap>(dir / "s.tyn");
    flip(dir / "s.tyn", 70'001);
    BOOST_TEST(run_tool(dir, "copy s.tyn copy.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "verify copy.tyn").exit == 0);
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    flip(dir / "a.tyn", 70'001);
    const Ran ran = run_tool(dir, "copy a.tyn lost.tyn");
    BOOST_TEST(ran.exit == 2);
    BOOST_TEST(ran.err.find("is damaged") != std::string::npos, ran.err);
    BOOST_TEST(!std::filesystem::exists(dir / "lost.tyn"));
}

BOOST_AUTO_TEST_CASE(nothing_is_overwritten_and_nothing_is_left_where_it_can_not_be_written) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    std::ofstream(dir / "there") << "mine";
    const auto before = contents(dir);
    for (const std::string to : {"there", "a.tyn", "nowhere/copy.tyn", "''", "."}) {
        const Ran ran = run_tool(dir, "copy a.tyn " + to);
        BOOST_TEST(ran.exit == 2, to << ran.out);
        BOOST_TEST(std::count(ran.err.begin(), ran.err.end(), '\n') == 1, ran.err);
    }
    const auto after = contents(dir);
    BOOST_TEST(after.size() == before.size());
    BOOST_TEST(after.at("there") == "mine");
    BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 0);
    std::ofstream(dir / "text") << std::string(20'000, 'x');
    for (const std::string file : {"text", "nothing.tyn", "."}) BOOST_TEST(run_tool(dir, "recover " + file).exit == 2, file);
}

BOOST_AUTO_TEST_SUITE_END()
