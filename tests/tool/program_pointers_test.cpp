// verify, leaks: pointers to the memory of a program that is gone are told, and are neither damage nor leaks.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

BOOST_AUTO_TEST_SUITE(program_pointers)
using namespace tool_test;

BOOST_AUTO_TEST_CASE(verify_and_leaks_tell_them_of_another_process_and_return_zero) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    BOOST_TEST(run_tool(dir, "verify a.tyn").out.find("note") == std::string::npos);
    BOOST_TEST(run_tool(dir, "leaks a.tyn").out.find("program") == std::string::npos);
    {
        taiyen::SnapshotHeap heap(taiyen::open_only, dir / "a.tyn");
        auto& kept = heap.construct<taiyen::list<const std::string*>>("kept");
        for (std::uintptr_t i = 0; i < 10; ++i) kept.push_back(reinterpret_cast<const std::string*>(0x5c03'91d4'2010 + i * 32));
        heap.snapshot();
    }
    const auto before = contents(dir);
    const Ran verified = run_tool(dir, "verify a.tyn");
    BOOST_TEST(verified.exit == 0, verified.out);
    BOOST_TEST(verified.out.find("note  a.tyn: at byte") != std::string::npos, verified.out);
    BOOST_TEST(
        verified.out.find("9 others in blocks of that size; after a restart this points to nothing: keep an offset, an id or a name instead") !=
            std::string::npos,
        verified.out);
    BOOST_TEST(verified.out.find("sound") != std::string::npos);
    const auto noted = run_tool(dir, "verify --json a.tyn").json();
    BOOST_TEST(noted.get<bool>("ok"));
    BOOST_TEST(noted.get_child("findings").size() == 1U);
    BOOST_TEST(noted.get_child("findings").front().second.get<std::string>("severity") == "note");

    const Ran searched = run_tool(dir, "leaks a.tyn");
    BOOST_TEST(searched.exit == 0, searched.out);
    BOOST_TEST(searched.out.find("10 words look like pointers to a program's own memory") != std::string::npos, searched.out);
    BOOST_TEST(searched.out.find("held by kept: points to 0x") != std::string::npos, searched.out);
    BOOST_TEST(searched.out.find("no leaks") != std::string::npos);
    const auto json = run_tool(dir, "leaks --json a.tyn").json();
    BOOST_TEST(json.get<int>("leaked_blocks") == 0);
    BOOST_TEST(json.get<int>("program_pointers") == 10);
    BOOST_TEST(json.get<int>("program_places") == 1);
    BOOST_TEST(json.get<int>("program_words_unjudged") == 0);
    BOOST_TEST(json.get_child("program").front().second.get<std::string>("holder") == "kept");
    BOOST_TEST(json.get_child("program").front().second.get<int>("words") == 10);
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_SUITE_END()
