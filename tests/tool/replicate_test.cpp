// replicate, restore, replicas, follow, promote: a heap goes into a directory, and comes out of it.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace taiyen;
using namespace tool_test;
}  // namespace

BOOST_AUTO_TEST_SUITE(replicate)

BOOST_AUTO_TEST_CASE(a_heap_goes_into_a_directory_and_comes_out_of_it) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    std::filesystem::create_directory(dir / "frames");
    const Ran first = run_tool(dir, "replicate bank.tyn frames");
    BOOST_TEST_REQUIRE(first.exit == 0, first.err);
    BOOST_TEST(first.out.find("has everything up to transaction 7, in ") != std::string::npos, first.out);
    {
        TransactionalHeap heap(taiyen::open_only, dir / "bank.tyn");
        taiyen::Transaction transaction(heap);
        heap.find<Accounts>("accounts")->clear();
        transaction.commit();
        heap.close();
    }
    const auto second = run_tool(dir, "replicate --json bank.tyn frames").json();
    BOOST_TEST(second.get<std::uint64_t>("transaction") == 8U);
    const Ran restored = run_tool(dir, "restore frames out.tyn");
    BOOST_TEST_REQUIRE(restored.exit == 0, restored.err);
    BOOST_TEST(restored.out.find("out.tyn, as of transaction 8, ") != std::string::npos, restored.out);
    BOOST_TEST(run_tool(dir, "verify out.tyn").exit == 0);
    const auto earlier = run_tool(dir, "restore --json --serial 7 frames earlier.tyn").json();
    BOOST_TEST(earlier.get<std::uint64_t>("transaction") == 7U);
    {
        TransactionalHeap heap(taiyen::open_only, dir / "earlier.tyn");
        BOOST_TEST(heap.find<Accounts>("accounts")->size() == 7U);
    }
    const Ran there = run_tool(dir, "restore frames out.tyn");
    BOOST_TEST(there.exit == 2);
    BOOST_TEST(there.err.find("restoring overwrites nothing") != std::string::npos, there.err);
    const Ran never = run_tool(dir, "restore --serial 99 frames never.tyn");
    BOOST_TEST(never.exit == 2);
    BOOST_TEST(never.err.find("as of transaction 99, but as of 8") != std::string::npos, never.err);
    const Ran too_early = run_tool(dir, "restore --at '2001-01-01 00:00:00 UTC' frames never.tyn");
    BOOST_TEST(too_early.exit == 2);
    BOOST_TEST(too_early.err.find("no base that is old enough") != std::string::npos, too_early.err);
    BOOST_TEST(run_tool(dir, "restore --at 2999-01-01T00:00:00Z frames late.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "restore --log-file x frames never.tyn").exit == 2);
    const Ran no_time = run_tool(dir, "restore --at yesterday frames never.tyn");
    BOOST_TEST(no_time.exit == 2);
    BOOST_TEST(no_time.err.find("--at takes a time such as") != std::string::npos, no_time.err);
    BOOST_TEST(!std::filesystem::exists(dir / "never.tyn"));
}

BOOST_AUTO_TEST_CASE(heaps_of_a_group_come_out_as_of_one_moment) {
    const ScratchDirectory dir;
    for (const char* const name : {"one", "two", "shop"}) std::filesystem::create_directory(dir / name);
    const auto directory = [&](const char* name) { return std::make_shared<DirectoryTarget>(dir / name); };
    {
        TransactionalHeap one(create_only, dir / "one.tyn");
        TransactionalHeap two(create_only, dir / "two.tyn");
        Replication one_sent(one, directory("one"));
        Replication two_sent(two, directory("two"));
        ReplicationGroup shop(directory("shop"));
        shop.add("one", one, one_sent);
        shop.add("two", two, two_sent);
        const auto put = [](TransactionalHeap& heap, int value) {
            taiyen::Transaction transaction(heap);
            heap.find_or_construct<int>("value") = value;
            transaction.commit();
        };
        put(one, 1);
        put(two, 1);
        (void)shop.mark("first");
        put(one, 2);
        (void)shop.cut();
    }
    const Ran shown = run_tool(dir, "replicas --group shop/");
    BOOST_TEST_REQUIRE(shown.exit == 0, shown.err);
    for (const char* const part : {"newest  cut ", "HEAP", "one ", "two ", "MARK", "first"})
        BOOST_TEST(shown.out.find(part) != std::string::npos, shown.out);
    const auto json = run_tool(dir, "replicas --json --group shop").json();
    BOOST_TEST(json.get_child("newest.heaps").size() == 2U);
    BOOST_TEST(json.get_child("marks").front().second.get<std::string>("mark") == "first");

    const auto value_in = [&](const char* file) {
        const ArchiveHeap heap(open_read_only, dir / file);
        return *heap.find<int>("value");
    };
    std::filesystem::create_directory(dir / "out");
    const Ran newest = run_tool(dir, "restore --group shop/ out");
    BOOST_TEST_REQUIRE(newest.exit == 0, newest.err);
    BOOST_TEST(newest.out.find("2 heaps in out, as of ") != std::string::npos, newest.out);
    BOOST_TEST(value_in("out/one.tyn") == 2);
    BOOST_TEST(value_in("out/two.tyn") == 1);
    BOOST_TEST(run_tool(dir, "restore --group shop out").exit == 2);  // they are there
    std::filesystem::create_directory(dir / "then");
    const auto marked = run_tool(dir, "restore --json --mark first shop then").json();
    BOOST_TEST(marked.get<std::string>("mark") == "first");
    BOOST_TEST(marked.get_child("heaps").size() == 2U);
    BOOST_TEST(value_in("then/one.tyn") == 1);
    BOOST_TEST(run_tool(dir, "replicas one").out.find("marks   of 1 group keep transaction 1 and later") != std::string::npos);
    BOOST_TEST(run_tool(dir, "replicate --forget-marks one.tyn one").exit == 0);
    BOOST_TEST(run_tool(dir, "replicas one").out.find("marks") == std::string::npos);
    for (const char* const wrong :
         {"restore --mark second shop then", "restore --group --serial 1 shop then", "restore --group one then", "restore shop never.tyn",
          "restore --group --at '2001-01-01' shop then", "replicas --group one", "replicas shop"}) {
        const Ran refused = run_tool(dir, wrong);
        BOOST_TEST(refused.exit == 2, wrong << refused.out);
        BOOST_TEST_MESSAGE(refused.err);
    }
}

BOOST_AUTO_TEST_CASE(replicas_tells_what_is_there_and_what_is_damaged) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    std::filesystem::create_directory(dir / "frames");
    BOOST_TEST(run_tool(dir, "replicas frames").exit == 2);
    BOOST_TEST(run_tool(dir, "replicate bank.tyn frames").exit == 0);
    BOOST_TEST(run_tool(dir, "replicate --base bank.tyn frames").exit == 0);
    const auto json = run_tool(dir, "replicas --json --verify frames").json();
    BOOST_TEST(json.get<std::uint64_t>("transaction") == 7U);
    BOOST_TEST(json.get<std::uint64_t>("epoch") == 2U);
    BOOST_TEST(json.get<std::string>("damage") == "");
    BOOST_TEST(json.get<std::string>("heap") == run_tool(dir, "info --json bank.tyn").json().get<std::string>("uuid"));
    const auto bases = json.get_child("bases");
    BOOST_REQUIRE(bases.size() >= 2U);
    BOOST_TEST(bases.front().second.get<bool>("full"));
    const Ran text = run_tool(dir, "replicas --verify frames");
    BOOST_TEST(text.exit == 0, text.err);
    BOOST_TEST(text.out.find(", epoch 2\n") != std::string::npos, text.out);
    BOOST_TEST(text.out.find("sound: every frame continues the one before") != std::string::npos, text.out);
    flip(dir / "frames" / "0000000000000003.frame", 300);
    const Ran damaged = run_tool(dir, "replicas --verify frames");
    BOOST_TEST(damaged.exit == 1);
    BOOST_TEST(damaged.out.find("damaged: ") != std::string::npos, damaged.out);
    BOOST_TEST(damaged.out.find("frame 3 is damaged") != std::string::npos, damaged.out);
    std::filesystem::remove(dir / "frames" / "0000000000000003.frame");
    const Ran missing = run_tool(dir, "replicas --verify frames");
    BOOST_TEST(missing.exit == 1);
    BOOST_TEST(missing.out.find("frame 3 is damaged: it is missing") != std::string::npos, missing.out);
    BOOST_TEST(run_tool(dir, "replicate bank.tyn missing").exit == 2);
}

BOOST_AUTO_TEST_CASE(a_newest_frame_that_is_damaged_is_found) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    std::filesystem::create_directory(dir / "frames");
    BOOST_TEST(run_tool(dir, "replicate bank.tyn frames").exit == 0);
    const auto last = run_tool(dir, "replicas --json frames").json().get<std::uint64_t>("last_frame");
    flip(dir / "frames" / ("000000000000000" + std::to_string(last) + ".frame"), 300);
    const Ran damaged = run_tool(dir, "replicas --verify frames");
    BOOST_TEST(damaged.exit == 1, damaged.err);
    BOOST_TEST(damaged.out.find("frame " + std::to_string(last) + " is damaged") != std::string::npos, damaged.out);
    BOOST_TEST(run_tool(dir, "replicas --verify --json frames").json().get<std::string>("damage") != "");
    BOOST_TEST(run_tool(dir, "replicas frames").exit == 2);
}

BOOST_AUTO_TEST_CASE(a_follower_is_brought_up_to_date_and_promoted) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    std::filesystem::create_directory(dir / "frames");
    BOOST_TEST(run_tool(dir, "follow --once frames standby.tyn").exit == 2);  // nothing is there
    BOOST_TEST(run_tool(dir, "replicate bank.tyn frames").exit == 0);
    const Ran first = run_tool(dir, "follow --once frames standby.tyn");
    BOOST_TEST(first.exit == 0, first.err);
    BOOST_TEST(first.out.find("following: standby.tyn has transaction 7, in ") != std::string::npos, first.out);
    BOOST_TEST(run_tool(dir, "info --json standby.tyn").json().get<std::string>("role") == "follower");
    BOOST_TEST(run_tool(dir, "info standby.tyn").out.find("a follower") != std::string::npos);
    BOOST_TEST(run_tool(dir, "verify standby.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "recover standby.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "copy standby.tyn own.tyn").exit == 0);  // a heap like others
    BOOST_TEST(run_tool(dir, "info --json own.tyn").json().get<std::string>("role") == "owner");
    BOOST_TEST(run_tool(dir, "replicate standby.tyn frames").exit == 2);
    {
        TransactionalHeap bank(open_only, dir / "bank.tyn");
        Transaction transaction(bank);
        bank.construct<int>("later") = 8;
        transaction.commit();
    }
    BOOST_TEST(run_tool(dir, "replicate bank.tyn frames").exit == 0);
    const auto json = run_tool(dir, "follow --once --json frames standby.tyn").json();
    BOOST_TEST(json.get<std::uint64_t>("transaction") == 8U);
    BOOST_TEST(json.get<std::string>("state") == "following");
    BOOST_TEST(run_tool(dir, "follow --once frames bank.tyn").exit == 2);
    BOOST_TEST(run_tool(dir, "promote missing.tyn frames").exit == 2);
    BOOST_TEST(!std::filesystem::exists(dir / "missing.tyn"));
    const Ran promoted = run_tool(dir, "promote standby.tyn frames");
    BOOST_TEST(promoted.exit == 0, promoted.err);
    BOOST_TEST(promoted.out.find("promoted: standby.tyn goes on behind transaction 8") != std::string::npos, promoted.out);
    BOOST_TEST(run_tool(dir, "info --json standby.tyn").json().get<std::string>("role") == "owner");
    const Ran former = run_tool(dir, "replicate bank.tyn frames");
    BOOST_TEST(former.exit == 2);
    BOOST_TEST(former.err.find("was promoted in this one's place") != std::string::npos, former.err);
    BOOST_TEST(run_tool(dir, "replicate standby.tyn frames").exit == 0);
    BOOST_TEST(run_tool(dir, "info --json bank.tyn").json().get<std::string>("role") == "deposed");
    BOOST_TEST(run_tool(dir, "copy bank.tyn former.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "info --json former.tyn").json().get<std::string>("role") == "owner");
    const Ran refused = run_tool(dir, "follow --once frames bank.tyn");
    BOOST_TEST(refused.exit == 2);
    BOOST_TEST(refused.err.find("taiyen follow --replace") != std::string::npos, refused.err);
    BOOST_TEST(run_tool(dir, "follow --once --replace frames bank.tyn").exit == 0);
    BOOST_TEST(run_tool(dir, "info --json bank.tyn").json().get<std::string>("role") == "follower");
    BOOST_TEST(run_tool(dir, "info --json bank.tyn.deposed").json().get<std::string>("role") == "deposed");
    BOOST_TEST(std::filesystem::exists(dir / "bank.tyn.deposed.log"));
    BOOST_TEST(run_tool(dir, "follow --once --replace frames bank.tyn").exit == 0);  // a follower that goes on
    BOOST_TEST(!std::filesystem::exists(dir / "bank.tyn.deposed-2"));
    BOOST_TEST(run_tool(dir, "follow --once --replace frames standby.tyn").exit == 2);  // the one that is changed
    const TransactionalHeap standby(open_only, dir / "standby.tyn");
    BOOST_TEST(*standby.find<int>("later") == 8);
}

BOOST_AUTO_TEST_CASE(following_ends_when_it_is_interrupted) {
    const ScratchDirectory dir;
    make_crashed_bank(dir, "bank.tyn");
    std::filesystem::create_directory(dir / "frames");
    BOOST_TEST(run_tool(dir, "replicate bank.tyn frames").exit == 0);
    // Interrupted again and again while it ends: each is the same wish.
    std::ofstream(dir / "interrupt") << "'" TAIYEN_TOOL
                                        "' follow frames standby.tyn >out 2>err &\n"
                                        "until grep -q following out; do sleep 0.02; done\n"
                                        "for i in $(seq 200); do kill -TERM $!; sleep 0.002; done 2>killed\n"
                                        "wait $!\n";
    const std::string line = "cd '" + dir.path().string() + "' && timeout 60 sh interrupt";
    BOOST_TEST(std::system(line.c_str()) == 0);
    BOOST_TEST(file_bytes(dir / "out").find("following: standby.tyn has transaction 7") != std::string::npos);
    BOOST_TEST(file_bytes(dir / "err") == "");
    BOOST_TEST(run_tool(dir, "info --json standby.tyn").json().get<bool>("clean"));
}

BOOST_AUTO_TEST_SUITE_END()
