// Marks of a group: cuts that are kept by name, and what they need at the targets of its heaps.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

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

BOOST_AUTO_TEST_CASE(what_marks_need_is_not_trimmed) {
    group.reset();
    first_sent.reset();
    targets["first"] = std::make_shared<PretendedTarget>();
    ReplicationOptions how = quick();
    how.keep = std::chrono::hours(1);
    first_sent.emplace(*first, std::make_shared<OldFrames>(targets["first"]), how);
    make();
    count_once();
    (void)group->mark("kept");
    const auto first_frame = [&] { return targets["first"]->range().first; };
    for (int i = 0; i < 3; ++i) {
        count_once();
        first_sent->make_base();
    }
    BOOST_TEST(first_frame() <= 2U);
    // Another program knows it, too; another group of the same heaps changes nothing.
    group.reset();
    make();
    ReplicationGroup(std::make_shared<PretendedTarget>()).add("first", *first, *first_sent);
    first_sent->make_base();
    BOOST_TEST(first_frame() <= 2U);
    {
        const auto kept = targets["first"];
        close();
        BOOST_TEST(restore({.mark = "kept"}).first.of[0] == 1U);
        open();
    }
    first_sent.reset();
    first_sent.emplace(*first, std::make_shared<OldFrames>(targets["first"]), how);
    make();
    group->unmark("kept");
    first_sent->make_base();
    BOOST_TEST(first_frame() > 2U);
}

BOOST_AUTO_TEST_CASE(marks_are_kept_until_they_are_removed) {
    make();
    count_once();
    const GroupCut mark = group->mark("one");
    BOOST_TEST(mark.mark == "one");
    count_once();
    (void)group->mark("two");
    count_once();
    (void)group->cut();
    BOOST_TEST(group->marks().size() == 2U);
    BOOST_TEST(throws(errc::invalid_argument, [&] { (void)group->mark(""); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { (void)group->mark(std::string(256, 'x')); }));
    group.reset();
    // Another one knows them.
    make();
    BOOST_TEST(group->marks().size() == 2U);
    group->unmark("two");
    BOOST_TEST(throws(errc::not_found, [&] { group->unmark("two"); }));
    const auto marks = group_marks(*place);
    BOOST_REQUIRE(marks.size() == 1U);
    BOOST_TEST(marks.front().mark == "one");
    count_once();
    (void)group->mark("one");  // in its place
    BOOST_TEST(group->marks().size() == 1U);
    close();
    BOOST_TEST(restore({.mark = "one"}).first.of[0] == 4U);
    BOOST_TEST(throws(errc::not_found, [&] { (void)restore({.mark = "two"}); }));
}

BOOST_AUTO_TEST_CASE(a_mark_then_nothing) {
    Cutter cutter(*place, seconds(60));
    cutter.add("first", GroupMemberAccess::of(*first_sent));
    count_once();
    (void)cutter.cut("kept");
    cutter.unmark("kept");
    cutter.trim(store::microseconds_of(store::time_now()) + 1'000'000);
    (void)cutter.cut({});
    BOOST_TEST(find_cut(*place, std::nullopt, {}).has_value());
}

BOOST_AUTO_TEST_CASE(marks_live_through_another_name) {
    group.reset();
    first_sent.reset();
    targets["first"] = std::make_shared<PretendedTarget>();
    ReplicationOptions how = quick();
    how.keep = std::chrono::hours(1);
    first_sent.emplace(*first, std::make_shared<OldFrames>(targets["first"]), how);
    make();
    count_once();
    (void)group->mark("kept");
    group.reset();
    first_sent.reset();
    first_sent.emplace(*first, std::make_shared<OldFrames>(targets["first"]), how);
    group.emplace(place);
    group->add("renamed", *first, *first_sent);
    for (int i = 0; i < 3; ++i) {
        count_once();
        first_sent->make_base();
    }
    BOOST_TEST(targets["first"]->range().first <= 2U);
}

BOOST_AUTO_TEST_CASE(marks_are_kept_by_whoever_replicates_the_heap) {
    ReplicationOptions how = quick();
    how.keep = std::chrono::hours(1);
    const auto replicate_first = [&] {
        first_sent.reset();
        first_sent.emplace(*first, std::make_shared<OldFrames>(targets["first"]), how);
    };
    make();
    count_once();
    (void)group->mark("kept");
    group.reset();
    const auto keeps = [&] {
        const PretendedTarget::Range range = targets["first"]->range();
        return kept_at(*targets["first"], Frame(*targets["first"], range.last).head()).size() == 1U;
    };
    BOOST_TEST(keeps());
    // Nobody opens the group.
    for (int program = 0; program < 3; ++program) {
        replicate_first();
        for (int i = 0; i < 3; ++i) {
            count_once();
            first_sent->make_base();
        }
        BOOST_TEST(keeps());
    }
    // Another machine takes the heap's place.
    first_sent.reset();
    first.reset();
    {
        Follower follower(targets["first"], directory / "promoted.tyn");
        TransactionalHeap promoted = std::move(follower).promote();
        Replication replication(promoted, std::make_shared<OldFrames>(targets["first"]), how);
        for (int i = 0; i < 3; ++i) {
            count(promoted, 1);
            replication.make_base();
        }
        BOOST_TEST(keeps());
    }
    close();
    BOOST_TEST(restore({.mark = "kept"}).first.of[0] == 1U);
}

BOOST_AUTO_TEST_CASE(what_marks_of_a_lost_group_needed_is_trimmed_once_they_are_forgotten) {
    ReplicationOptions how = quick();
    how.keep = std::chrono::hours(1);
    first_sent.reset();
    first_sent.emplace(*first, std::make_shared<OldFrames>(targets["first"]), how);
    make();
    count_once();
    (void)group->mark("kept");
    const Serial marked = first->last_durable();
    group.reset();
    const auto make_bases = [&] {
        for (int i = 0; i < 3; ++i) {
            count_once();
            first_sent->make_base();
        }
        return *replica_info(*targets["first"]);
    };
    const ReplicaInfo before = make_bases();
    BOOST_TEST(before.groups_kept == 1U);
    BOOST_TEST(before.kept_from.value == marked.value);
    BOOST_TEST(before.bases.back().serial.value <= marked.value);
    BOOST_TEST(first_sent->forget_marks(seconds(60)));
    const ReplicaInfo after = make_bases();
    BOOST_TEST(after.groups_kept == 0U);
    BOOST_TEST(after.bases.back().serial.value > marked.value);
    first_sent->stop();
    BOOST_TEST(throws(errc::closed, [&] { (void)first_sent->forget_marks(seconds(60)); }));
}

BOOST_AUTO_TEST_CASE(what_marks_need_no_more_is_trimmed_and_what_newer_ones_need_is_not) {
    ReplicationOptions how = quick();
    how.keep = std::chrono::hours(1);
    first_sent.reset();
    first_sent.emplace(*first, std::make_shared<OldFrames>(targets["first"]), how);
    make();
    std::uint64_t trimmed_to = 0;
    for (int i = 0; i < 5; ++i) {
        count_once();
        first_sent->make_base();
        count_once();
        (void)group->mark("newest");  // the one before it goes
        first_sent->make_base();
        first_sent->make_base();
        BOOST_TEST(targets["first"]->range().first > trimmed_to);
        trimmed_to = targets["first"]->range().first;
    }
    close();
    BOOST_TEST(restore({.mark = "newest"}).first.of[0] == 10U);
}

BOOST_AUTO_TEST_CASE(a_mark_waits_until_the_targets_keep_what_it_needs) {
    GroupOptions how;
    how.patience = milliseconds(300);
    make(how);
    count_once();
    while (throws(errc::unconfirmed, [&] { (void)group->cut(); })) {}  // a busy machine
    std::atomic<bool> is_away{true};
    targets["second"]->fate = [&](std::uint64_t) { return is_away ? PretendedTarget::Fate::away : PretendedTarget::Fate::works; };
    BOOST_TEST(throws(errc::unconfirmed, [&] { (void)group->mark("kept"); }));
    BOOST_TEST(group->marks().empty());
    BOOST_TEST(group_marks(*place).empty());
    is_away = false;
    while (throws(errc::unconfirmed, [&] { (void)group->mark("kept"); })) {}
    BOOST_TEST(group_marks(*place).size() == 1U);
    close();
}

BOOST_AUTO_TEST_CASE(a_place_that_loses_its_newest_cuts_gets_the_marks_again) {
    make();
    count_once();
    (void)group->mark("one");
    const std::uint64_t with_one = place->range().last;
    for (const std::uint64_t first_lost : {with_one, std::uint64_t{1}}) {
        count_once();
        (void)group->mark("two");
        place->lose_from(first_lost);
        count_once();
        const GroupCut cut = group->cut();
        BOOST_TEST(cut.frame > 0U);
        BOOST_TEST(group_marks(*place).size() == 2U);
        BOOST_TEST(find_group_cut(*place).frame == cut.frame);
    }
    // Somebody else who has attached meanwhile goes first.
    place->lose_from(place->range().last - 1);
    const ReplicationGroup other(place);
    count_once();
    BOOST_TEST(throws(errc::fenced, [&] { (void)group->cut(); }));
}

BOOST_AUTO_TEST_CASE(marks_are_told_again_also_where_that_is_interrupted) {
    make();
    count_once();
    (void)group->mark("kept");
    place->lose_from(2);
    for (std::uint64_t away = 2; away <= 4; ++away) {  // the epoch frame, the marks, the cut
        place->fate = [&](std::uint64_t number) { return number == away ? PretendedTarget::Fate::away : PretendedTarget::Fate::works; };
        count_once();
        BOOST_TEST(throws(errc::io_error, [&] { (void)group->cut(); }), away);
        place->fate = {};
        (void)group->cut();
        BOOST_TEST(group_marks(*place).size() == 1U, away);
        place->lose_from(2);
    }
}

BOOST_AUTO_TEST_CASE(a_mark_whose_answer_was_lost_is_kept_or_made_again) {
    make();
    count_once();
    std::uint64_t loses = 0;
    place->fate = [&](std::uint64_t number) { return number == loses ? PretendedTarget::Fate::loses_answer : PretendedTarget::Fate::works; };
    loses = place->range().last + 2;  // the frame of marks behind the cut
    BOOST_TEST(throws(errc::io_error, [&] { (void)group->mark("one"); }));
    loses = 0;
    count_once();
    (void)group->mark("two");
    BOOST_TEST(group->marks().size() == 2U);
    BOOST_TEST(group_marks(*place).size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
