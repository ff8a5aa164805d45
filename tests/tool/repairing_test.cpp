// scrub and repair: what they heal, what they leave, what they say.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
using taiyen::ArchiveHeap;
}  // namespace

BOOST_AUTO_TEST_SUITE(repairing)

BOOST_AUTO_TEST_CASE(repair_leaves_a_sound_heap_alone) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const auto before = contents(dir);
    const Ran ran = run_tool(dir, "repair a.tyn");
    BOOST_TEST(ran.exit == 0, ran.err);
    BOOST_TEST(ran.out.find("nothing to repair") != std::string::npos);
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(what_one_copy_has_whole_is_healed_wherever_the_bit_flipped) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const std::string listed = run_tool(dir, "ls --json a.tyn").out;
    for (const std::string command : {"scrub", "repair"}) {
        for (const std::string file : {"a.tyn", "a.tyn.data"}) {
            // Header slot, table page, the super block, pages.
            for (const std::uint64_t at : {100U, 9000U, 12'300U, 40'000U, 70'001U}) {
                flip(dir / file, at);
                BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 1);
                const Ran ran = run_tool(dir, command + " --json a.tyn");
                BOOST_TEST(ran.exit == 0, command << " of " << file << " at " << at << ": " << ran.out << ran.err);
                BOOST_TEST(ran.json().get_child("done").size() >= 1U, ran.out);
                const Ran after = run_tool(dir, "verify a.tyn");
                BOOST_TEST(after.exit == 0, command << " of " << file << " at " << at << ": " << after.out);
                BOOST_TEST(run_tool(dir, "ls --json a.tyn").out == listed);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(what_no_copy_has_whole_is_left_and_told) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    flip(dir / "a.tyn", 70'001);
    for (const std::string command : {"scrub", "repair"}) {
        const Ran ran = run_tool(dir, command + " a.tyn");
        BOOST_TEST(ran.exit == 1);
        BOOST_TEST(ran.out.find("not repaired") != std::string::npos, ran.out);
        BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 1);
    }
}

BOOST_AUTO_TEST_CASE(pages_that_are_lost_are_all_listed_and_keep_none_behind_them_from_being_healed) {
    const ScratchDirectory dir;
    for (const std::string command : {"scrub", "repair"}) {
        std::filesystem::remove(dir / "a.tyn");
        std::filesystem::remove(dir / "a.tyn.data");
        make_drawing(dir / "a.tyn");
        for (const std::uint64_t lost : {40'000U, 60'000U}) {  // in both copies
            flip(dir / "a.tyn", lost);
            flip(dir / "a.tyn.data", lost);
        }
        flip(dir / "a.tyn", 50'000);
        flip(dir / "a.tyn", 120'000);
        flip(dir / "a.tyn.data", 130'000);
        const Ran ran = run_tool(dir, command + " --json a.tyn");
        BOOST_TEST(ran.exit == 1, ran.err);
        BOOST_TEST(ran.json().get<std::uint64_t>("pages_healed") == 3U, ran.out);
        if (command == "scrub") {
            const auto json = ran.json();
            BOOST_TEST(json.get<std::uint64_t>("pages_lost") == 2U);
            std::vector<std::uint64_t> places;
            for (const auto& [key, lost] : json.get_child("lost")) places.push_back(lost.get<std::uint64_t>("offset") / 4096);
            BOOST_TEST((places == std::vector<std::uint64_t>{40'000 / 4096, 60'000 / 4096}));
        }
        const auto left = run_tool(dir, "verify --json a.tyn").json();
        BOOST_TEST(left.get_child("findings").size() == 4U);
        const Ran text = run_tool(dir, "scrub a.tyn");
        BOOST_TEST(text.exit == 1);
        BOOST_TEST(text.out.find("2 pages that no copy has whole") != std::string::npos, text.out);
    }
}

BOOST_AUTO_TEST_CASE(a_heap_that_can_not_be_opened_is_not_changed) {
    const ScratchDirectory dir;
    make_drawing<ArchiveHeap>(dir / "a.tyn");
    std::filesystem::resize_file(dir / "a.tyn", 20'000);
    const auto before = contents(dir);
    BOOST_TEST(run_tool(dir, "repair a.tyn").exit == 1);
    BOOST_TEST(run_tool(dir, "scrub a.tyn").exit == 2);
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(the_last_save_is_accepted_only_when_asked_for_and_told) {
    const ScratchDirectory dir;
    {
        taiyen::TransactionalHeap heap(taiyen::create_only, dir / "live.tyn");
        for (int i = 0; i < 4; ++i) {
            taiyen::Transaction transaction(heap);
            heap.find_or_construct<taiyen::vector<int>>("numbers").push_back(i);
            transaction.commit();
        }
        std::filesystem::copy_file(dir / "live.tyn", dir / "a.tyn");
        heap.close();
    }
    std::filesystem::remove(dir / "live.tyn");
    std::filesystem::remove(dir / "live.tyn.log");
    const auto before = contents(dir);
    const Ran refused = run_tool(dir, "repair a.tyn");
    BOOST_TEST(refused.exit == 1);
    BOOST_TEST(refused.out.find("taiyen repair --accept-last-save ") != std::string::npos, refused.out);
    BOOST_TEST(run_tool(dir, "repair --dry-run a.tyn").exit == 2);
    const Ran look = run_tool(dir, "repair --accept-last-save --dry-run a.tyn");
    BOOST_TEST(look.exit == 1, look.err);
    BOOST_TEST(look.out.find("how many are lost is unknown") != std::string::npos, look.out);
    BOOST_TEST(run_tool(dir, "repair --up-to-serial 3 a.tyn").exit == 2);
    BOOST_TEST((contents(dir) == before));
    const Ran ran = run_tool(dir, "repair --accept-last-save --json a.tyn");
    BOOST_TEST(ran.exit == 0, ran.err);
    BOOST_TEST(ran.json().get<bool>("done"));
    BOOST_TEST(ran.json().get_child("kept").size() == 1U);
    BOOST_TEST(std::filesystem::exists(dir / "a.tyn.before-repair"));
    BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "repair --accept-last-save a.tyn").out.find("nothing is given up") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
