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

BOOST_AUTO_TEST_CASE(map_draws_text_json_and_svg) {
    const ScratchDirectory dir;
    make_drawing(dir / "a.tyn");
    const Ran text = run_tool(dir, "map a.tyn");
    BOOST_TEST(text.exit == 0, text.err);
    BOOST_TEST(text.out.find("page efficiency") != std::string::npos);
    const auto json = run_tool(dir, "map --json --cells 10 a.tyn").json();
    BOOST_TEST(json.get_child("cells").size() <= 10U);
    for (const std::string colour : {"size", "owner"}) {
        const Ran drawn = run_tool(dir, "map --colour " + colour + " --svg out.svg a.tyn");
        BOOST_TEST(drawn.exit == 0, drawn.err);
        boost::property_tree::ptree tree;
        BOOST_CHECK_NO_THROW(boost::property_tree::read_xml((dir / "out.svg").string(), tree));
    }
    BOOST_TEST(run_tool(dir, "map --colour red a.tyn").exit == 2);
    BOOST_TEST(run_tool(dir, "map --svg nowhere/out.svg a.tyn").exit == 2);
}

BOOST_AUTO_TEST_SUITE_END()
