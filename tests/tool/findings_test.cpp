// leaks, map: what they find and draw.

#include <boost/property_tree/xml_parser.hpp>
#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
using taiyen::ArchiveHeap;
using taiyen::SnapshotHeap;
}  // namespace

BOOST_AUTO_TEST_SUITE(findings)

BOOST_AUTO_TEST_CASE(leaks_returns_zero_where_everything_is_held_and_one_where_a_block_is_lost) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const Ran sound = run_tool(dir, "leaks a.tyn");
    BOOST_TEST(sound.exit == 0, sound.out << sound.err);
    BOOST_TEST(sound.out.find("no leaks") != std::string::npos);
    {
        SnapshotHeap heap(taiyen::open_only, dir / "a.tyn");
        auto* const lost = static_cast<char*>(heap.allocate(3000));
        std::memset(lost, 0, 3000);
        std::memcpy(lost, "lost and found", 14);
        heap.snapshot();
    }
    const auto before = contents(dir);
    const Ran leaking = run_tool(dir, "leaks a.tyn");
    BOOST_TEST(leaking.exit == 1);
    BOOST_TEST(leaking.out.find("lost and found") != std::string::npos, leaking.out);
    const auto json = run_tool(dir, "leaks --json a.tyn").json();
    BOOST_TEST(json.get<int>("leaked_blocks") == 1);
    BOOST_TEST(json.get_child("leaks").front().second.get<std::string>("beginning") == "6c6f737420616e6420666f756e640000");
    std::uint64_t held = json.get<std::uint64_t>("leaked_blocks");
    for (const auto& [key, object] : json.get_child("objects")) held += object.get<std::uint64_t>("blocks");
    BOOST_TEST(held == json.get<std::uint64_t>("live_blocks"));
    BOOST_TEST((contents(dir) == before));
}

BOOST_AUTO_TEST_CASE(repair_reclaims_what_is_lost_if_it_is_asked_to) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    {
        SnapshotHeap heap(taiyen::open_only, dir / "a.tyn");
        heap.allocate(3000);
        heap.snapshot();
    }
    const auto before = contents(dir);
    BOOST_TEST(run_tool(dir, "repair a.tyn").exit == 0);
    BOOST_TEST((contents(dir) == before));
    const Ran freed = run_tool(dir, "repair --reclaim a.tyn");
    BOOST_TEST(freed.exit == 0, freed.out << freed.err);
    BOOST_TEST(freed.out.find("reclaimed: 1 block that nothing led to") != std::string::npos, freed.out);
    const auto json = run_tool(dir, "repair --reclaim --json a.tyn").json();
    BOOST_TEST(json.get<int>("reclaimed.blocks") == 0);
    BOOST_TEST(run_tool(dir, "repair --reclaim a.tyn").out.find("nothing to reclaim") != std::string::npos);
    BOOST_TEST(run_tool(dir, "leaks a.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "verify a.tyn").exit == 0);
    {
        SnapshotHeap heap(taiyen::open_only, dir / "a.tyn");
        heap.attach_undo();
        heap.allocate(3000);
        heap.snapshot();
    }
    const auto edited = contents(dir);
    const Ran refused = run_tool(dir, "repair --reclaim a.tyn");
    BOOST_TEST(refused.exit == 2);
    BOOST_TEST(refused.err.find("undo history") != std::string::npos, refused.err);
    BOOST_TEST((contents(dir) == edited));
}

BOOST_AUTO_TEST_CASE(map_draws_text_json_and_svg) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const Ran text = run_tool(dir, "map a.tyn");
    BOOST_TEST(text.exit == 0, text.err);
    BOOST_TEST(text.out.find("page efficiency") != std::string::npos);
    const auto json = run_tool(dir, "map --json --cells 10 a.tyn").json();
    BOOST_TEST(json.get_child("cells").size() <= 10U);
    for (const std::string colour : {"size", "owner", "type"}) {
        const Ran drawn = run_tool(dir, "map --colour " + colour + " --svg out.svg a.tyn");
        BOOST_TEST(drawn.exit == 0, drawn.err);
        boost::property_tree::ptree tree;
        BOOST_CHECK_NO_THROW(boost::property_tree::read_xml((dir / "out.svg").string(), tree));
    }
    BOOST_TEST(run_tool(dir, "map --colour red a.tyn").exit == 2);
    BOOST_TEST(run_tool(dir, "map --svg nowhere/out.svg a.tyn").exit == 2);
}

BOOST_AUTO_TEST_SUITE_END()
