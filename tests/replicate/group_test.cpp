// Groups: heaps of one moment, whatever is committed meanwhile, kept by name, restored together or not at all.

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "base/planted.hpp"
#include "replicate/cuts.hpp"
#include "replicate/replicated_heap.hpp"
#include "seed.hpp"

using namespace taiyen;
using namespace taiyen::replicate;
using namespace taiyen::replicate::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using taiyen::test::throws;

namespace grouped {

constexpr unsigned threads_max = 4;
/// How often each thread has committed.
struct Counts {
    std::array<std::uint64_t, threads_max> of{};
};

}  // namespace grouped

namespace {

using grouped::Counts;
using grouped::threads_max;

/// Two heaps. What is counted in the first one is counted in the second one then.
struct GroupFixture {
    ScratchDirectory directory;
    PersistentOptions options = [] {
        PersistentOptions options;
        options.capacity = std::size_t{16} << 20U;
        options.log_capacity = std::size_t{256} << 10U;
        return options;
    }();
    std::map<std::string, std::shared_ptr<PretendedTarget>> targets{{"first", std::make_shared<PretendedTarget>()},
                                                                    {"second", std::make_shared<PretendedTarget>()}};
    std::shared_ptr<PretendedTarget> place = std::make_shared<PretendedTarget>();
    std::optional<TransactionalHeap> first{std::in_place, create_only, directory / "first.tyn", options};
    std::optional<TransactionalHeap> second{std::in_place, create_only, directory / "second.tyn", options};
    std::optional<Replication> first_sent{std::in_place, *first, targets["first"], quick()};
    std::optional<Replication> second_sent{std::in_place, *second, targets["second"], quick()};
    std::optional<ReplicationGroup> group;
    Quiet quiet;
    int restored = 0;

    static void count(TransactionalHeap& heap, unsigned thread) {
        Transaction transaction(heap);
        ++heap.find_or_construct<Counts>("counts").of[thread];
        transaction.commit();
    }
    void count_once(unsigned thread = 0) {
        count(*first, thread);
        count(*second, thread);
    }
    ReplicationGroup& make(const GroupOptions& how = {}) {
        group.emplace(place, how);
        group->add("first", *first, *first_sent);
        group->add("second", *second, *second_sent);
        return *group;
    }
    void close() {
        group.reset();
        first_sent.reset();
        second_sent.reset();
        first.reset();
        second.reset();
    }
    /// Requires: closed.
    void open() {
        first.emplace(open_only, directory / "first.tyn", options);
        second.emplace(open_only, directory / "second.tyn", options);
        first_sent.emplace(*first, targets["first"], quick());
        second_sent.emplace(*second, targets["second"], quick());
    }
    std::function<std::shared_ptr<ReplicationTarget>(const std::string&)> where() {
        return [this](const std::string& name) { return targets.at(name); };
    }
    struct Found {
        Counts first;
        Counts second;
        GroupCut cut;
    };
    /// Requires: closed.
    Found restore(const GroupRestoreOptions& how = {}) {
        const std::filesystem::path folder = directory / std::to_string(++restored);
        std::filesystem::create_directory(folder);
        Found found;
        found.cut = restore_group(*place, where(), folder, how).cut;
        const auto counts_in = [&](const char* name) {
            const ArchiveHeap heap(open_read_only, folder / name);
            const Counts* const counts = heap.find<Counts>("counts");
            return counts == nullptr ? Counts{} : *counts;
        };
        found.first = counts_in("first.tyn");
        found.second = counts_in("second.tyn");
        return found;
    }
    static bool is_of_one_moment(const Found& found) {
        for (unsigned i = 0; i < threads_max; ++i)
            if (found.first.of[i] != found.second.of[i] && found.first.of[i] != found.second.of[i] + 1) return false;
        return true;
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(replicate_group, GroupFixture)

BOOST_AUTO_TEST_CASE(heaps_are_restored_as_of_one_moment) {
    make();
    BOOST_TEST(throws(errc::not_found, [&] { (void)find_group_cut(*place); }));
    count_once();
    const GroupCut one = group->cut();
    BOOST_TEST(one.members.size() == 2U);
    BOOST_TEST(one.members[0].name == "first");
    BOOST_TEST(one.members[0].serial.value == first->last_durable().value);
    BOOST_TEST(group->cut().frame == one.frame);  // nothing new
    count(*first, 0);
    const GroupCut two = group->cut();
    BOOST_TEST(two.frame == one.frame + 1);
    count_once();
    BOOST_TEST(group->status().cuts == 2U);
    close();
    const Found found = restore();
    BOOST_TEST(found.cut.frame == two.frame);
    BOOST_TEST(found.first.of[0] == 2U);
    BOOST_TEST(found.second.of[0] == 1U);
    BOOST_TEST(restore({.at = one.made_at}).first.of[0] == 1U);
    BOOST_TEST(throws(errc::not_found, [&] { (void)restore({.at = one.made_at - seconds(1)}); }));
}

BOOST_AUTO_TEST_CASE(every_cut_is_of_one_moment_while_threads_commit, *boost::unit_test::label("threads")) {
    for (const Durability durability : {Durability::sync, Durability::async}) {
        close();
        options.durability = durability;
        open();
        make({.cut_every = milliseconds(1)}).start();
        std::atomic<bool> done{false};
        std::vector<std::jthread> threads;
        for (unsigned thread = 0; thread < threads_max; ++thread)
            threads.emplace_back([&, thread] {
                while (!done) count_once(thread);
            });
        const std::uint64_t before = group->status().cuts;
        while (group->status().cuts < before + 20) std::this_thread::sleep_for(milliseconds(1));
        done = true;
        threads.clear();
        (void)group->cut();
        const std::uint64_t last = find_group_cut(*place).frame;
        close();
        BOOST_TEST(is_of_one_moment(restore()));
        for (std::uint64_t frame = last; frame > last - 8; --frame) {
            const auto cuts = cuts_of(Frame(*place, frame));
            BOOST_REQUIRE(cuts.size() == 1U);
            const Found found = restore({.at = told(cuts.front()).made_at});
            BOOST_TEST(is_of_one_moment(found), frame);
        }
        open();
    }
}

BOOST_AUTO_TEST_CASE(a_cut_that_looks_at_one_heap_after_the_other_is_of_no_moment) {
    static GroupFixture* fixture;
    fixture = this;
    for (const bool is_planted : {false, true}) {
        make();
        count_once();
        {
            const Planted bug(is_planted ? Bug::cut_one_by_one : Bug::none);
            at_planted_step = +[]() noexcept { fixture->count_once(1); };
            (void)group->cut();
        }
        close();
        BOOST_TEST(is_of_one_moment(restore()) == !is_planted);
        open();
    }
}

BOOST_AUTO_TEST_CASE(a_cut_waits_for_the_targets_of_its_heaps) {
    std::atomic<bool> away{false};
    targets["second"]->fate = [&](std::uint64_t) { return away ? PretendedTarget::Fate::away : PretendedTarget::Fate::works; };
    make({.patience = milliseconds(50)});
    count_once();
    (void)group->cut();
    away = true;
    count_once();
    BOOST_TEST(throws(errc::unconfirmed, [&] { (void)group->cut(); }));
    {
        const Planted bug(Bug::cut_before_members);
        (void)group->cut();
    }
    away = false;
    BOOST_TEST(second_sent->wait_replicated(second->last_durable(), seconds(60)));
    close();
    BOOST_TEST(restore().second.of[0] == 2U);
    // With the bug the machine was lost before they were there.
    targets["second"]->lose_from(targets["second"]->range().last);
    BOOST_TEST(throws(errc::not_found, [&] { (void)restore(); }));
}

BOOST_AUTO_TEST_CASE(what_came_as_pages_is_in_no_cut) {
    make();
    count_once();
    // Larger than the log: it comes as pages.
    {
        Transaction transaction(*first);
        auto& bytes = first->construct<taiyen::vector<char>>("large");
        bytes.resize(std::size_t{2} << 20U, 'x');
        transaction.commit();
    }
    count_once();
    const GroupCut cut = group->cut();
    close();
    const Found found = restore();
    BOOST_TEST(found.cut.frame == cut.frame);
    BOOST_TEST(found.first.of[0] == 2U);
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

BOOST_AUTO_TEST_SUITE_END()
