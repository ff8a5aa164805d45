// Groups: who is in one, who makes its cuts, and how it ends.

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <taiyen/taiyen.hpp>

#include "replicate/grouped_heaps.hpp"
#include "store/opening_record.hpp"

using namespace taiyen;
using namespace taiyen::replicate;
using namespace taiyen::replicate::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using taiyen::test::throws;

BOOST_FIXTURE_TEST_SUITE(replicate_group, GroupFixture)

BOOST_AUTO_TEST_CASE(one_program_makes_the_cuts) {
    make();
    count_once();
    (void)group->cut();
    {
        ReplicationGroup other(place);
        other.add("first", *first, *first_sent);
        count_once();
        (void)other.cut();
    }
    count_once();
    BOOST_TEST(throws(errc::fenced, [&] { (void)group->cut(); }));
    BOOST_TEST(throws(errc::fenced, [&] { (void)group->mark("late"); }));
}

BOOST_AUTO_TEST_CASE(what_is_no_group_and_no_member_is_refused) {
    ReplicationGroup& made = make();
    BOOST_TEST(throws(errc::invalid_argument, [&] { made.add("first", *second, *second_sent); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { made.add("third", *second, *second_sent); }));
    for (const char* const name : {"", "a/b", ".", ".."})
        BOOST_TEST(throws(errc::invalid_argument, [&] { made.add(name, *second, *second_sent); }), name);
    BOOST_TEST(throws(errc::invalid_argument, [&] { ReplicationGroup(nullptr); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { (void)ReplicationGroup(std::make_shared<PretendedTarget>()).cut(); }));
    BOOST_TEST(throws(errc::mismatch, [&] { ReplicationGroup{targets["first"]}; }));
    BOOST_TEST(throws(errc::mismatch, [&] { Replication(*first, place, quick()); }));
    BOOST_TEST(throws(errc::mismatch, [&] { (void)replica_info(*place); }));
    BOOST_TEST(throws(errc::mismatch, [&] { (void)taiyen::restore(*place, directory / "no.tyn"); }));
    count_once();
    (void)made.cut();
    close();
    std::swap(targets["first"], targets["second"]);
    BOOST_TEST(throws(errc::mismatch, [&] { (void)restore(); }));
    std::swap(targets["first"], targets["second"]);
    // Of one of them nothing is left, since the other one can't be made.
    const std::filesystem::path folder = directory / "taken";
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "second.tyn") << "mine";
    BOOST_TEST(throws(errc::already_exists, [&] { (void)restore_group(*place, where(), folder); }));
    BOOST_TEST(!std::filesystem::exists(folder / "first.tyn"));
    BOOST_TEST(std::filesystem::file_size(folder / "second.tyn") == 4U);
}

BOOST_AUTO_TEST_CASE(a_name_leads_nowhere_else) {
    make();
    count_once();
    (void)group->cut();
    group.reset();
    Cut cut = *find_cut(*place, std::nullopt, {});
    cut.members.resize(1);
    cut.members.front().name = "../escaped";
    {
        CutLane lane(*place);
        lane.attach();
        lane.append_cut(cut);
    }
    close();
    const std::filesystem::path folder = directory / "inside";
    std::filesystem::create_directory(folder);
    const auto from = targets["first"];
    BOOST_TEST(throws(errc::corrupt, [&] { (void)restore_group(*place, [&](const std::string&) { return from; }, folder); }));
    BOOST_TEST(!std::filesystem::exists(directory / "escaped.tyn"));
}

BOOST_AUTO_TEST_CASE(whoever_is_fenced_trims_nothing) {
    Cutter old(*place, seconds(60));
    old.add("first", GroupMemberAccess::of(*first_sent));
    count_once();
    (void)old.cut({});
    Cutter now(*place, seconds(60));
    now.add("first", GroupMemberAccess::of(*first_sent));
    count_once();
    (void)now.cut("kept");
    count_once();
    (void)now.cut({});
    const std::uint64_t later = store::microseconds_of(store::time_now()) + 1'000'000;
    BOOST_TEST(throws(errc::fenced, [&] { old.trim(later); }));
    BOOST_TEST(find_cut(*place, std::nullopt, "kept").has_value());
}

BOOST_AUTO_TEST_CASE(stopping_waits_for_no_target) {
    GroupOptions how;
    how.patience = std::chrono::hours(1);
    how.cut_every = milliseconds(1);
    make(how);
    std::atomic<bool> is_away{true};
    targets["first"]->fate = [&](std::uint64_t) { return is_away ? PretendedTarget::Fate::away : PretendedTarget::Fate::works; };
    count_once();
    group->start();
    while (first_sent->status().state != ReplicationState::away) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(20));  // it waits for it
    group->stop();
    is_away = false;
    group->start();
    while (group->status().cuts == 0) std::this_thread::sleep_for(milliseconds(1));
    close();
}

BOOST_AUTO_TEST_CASE(who_is_over_can_start_again) {
    GroupOptions how;
    how.cut_every = milliseconds(1);
    make(how);
    count_once();
    group->start();
    while (group->status().cuts == 0) std::this_thread::sleep_for(milliseconds(1));
    {
        ReplicationGroup other(place);
        count_once();
        while (!group->status().is_over) std::this_thread::sleep_for(milliseconds(1));
    }
    const std::uint64_t frames = place->range().last;
    group->start();  // and is refused again
    while (!group->status().is_over) std::this_thread::sleep_for(milliseconds(1));
    BOOST_TEST(place->range().last == frames);
}

#if !defined(__SANITIZE_THREAD__)

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_group_to_its_parent) {
    make();
    count_once();
    group->start();
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(300);  // instead of waiting for ever
        const bool is_refused = throws(errc::forked, [&] { (void)group->cut(); }) && throws(errc::forked, [&] { group->unmark("x"); }) &&
                                throws(errc::forked, [&] { (void)group->status(); }) && throws(errc::forked, [&] { group->start(); });
        group->stop();
        group.reset();
        ::_exit(is_refused ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    BOOST_TEST(status == 0);
    (void)group->cut();
}
#endif

BOOST_AUTO_TEST_CASE(names_leave_room_for_what_restoring_adds) {
    group.emplace(place);
    BOOST_TEST(throws(errc::invalid_argument, [&] { group->add(std::string(201, 'x'), *first, *first_sent); }));
    const std::string longest(200, 'x');
    group->add(longest, *first, *first_sent);
    count(*first, 0);
    (void)group->cut();
    targets[longest] = targets["first"];
    close();
    const std::filesystem::path folder = directory / "long";
    std::filesystem::create_directory(folder);
    (void)restore_group(*place, where(), folder);
    BOOST_TEST(std::filesystem::exists(folder / (longest + ".tyn")));
}

BOOST_AUTO_TEST_SUITE_END()
