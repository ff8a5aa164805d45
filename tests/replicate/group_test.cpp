// Groups: heaps of one moment, whatever is committed meanwhile, kept by name, restored together or not at all.

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

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

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "replicate/cutter.hpp"
#include "replicate/replicated_heap.hpp"
#include "seed.hpp"
#include "store/opening_record.hpp"

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

/// Frames are two hours older to who reads them.
class OldFrames final : public ReplicationTarget {
public:
    explicit OldFrames(std::shared_ptr<PretendedTarget> young) : young_(std::move(young)) {}
    std::string name() const override { return "old"; }
    Range range() override { return young_->range(); }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override { return young_->append(number, frame); }
    std::vector<std::byte> read(std::uint64_t number) override {
        const Frame frame(*young_, number);
        FrameHead head = frame.head();
        head.written_at -= static_cast<std::uint64_t>(std::chrono::microseconds(std::chrono::hours(2)).count());
        const std::array pieces{frame.body()};
        return encode(head, pieces);
    }
    void trim(std::uint64_t first) override { young_->trim(first); }

private:
    const std::shared_ptr<PretendedTarget> young_;
};

/// As encode_cut has it: with a name, of two heaps.
Cut cut_of_test() {
    Cut cut;
    cut.written_at = 6;
    cut.mark = "before";
    for (const char* const name : {"accounts", "index"}) {
        Cut::Member member{name, {}, {7}};
        member.heap.bytes.fill(static_cast<std::uint8_t>(name[0]));
        cut.members.push_back(member);
    }
    return cut;
}

Frame frame_of_cut(const std::vector<std::byte>& body) {
    FrameHead head{};
    head.kind = FrameKind::cut;
    head.number = 2;
    const std::array pieces{std::span<const std::byte>(body)};
    PretendedTarget target;
    target.put(2, encode(head, pieces));
    return {target, 2, Lane::group};
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(replicate_group, GroupFixture)

BOOST_AUTO_TEST_CASE(a_cut_has_these_bytes_for_ever) {
    const std::vector<std::byte> bytes = encode_cut(cut_of_test());
    BOOST_TEST(bytes.size() == 16U + 8 + 2 * (32 + 8));
    BOOST_TEST(std::string(reinterpret_cast<const char*>(bytes.data()) + 16, 8) == std::string("before\0", 8));
    BOOST_TEST(checksum(bytes, 0) == 9014092969966843337U);
    const std::vector<Cut> read = cuts_of(frame_of_cut(bytes));
    BOOST_REQUIRE(read.size() == 1U);
    BOOST_TEST(read.front().frame == 2U);
    BOOST_TEST(read.front().written_at == 6U);
    BOOST_TEST(read.front().mark == "before");
    BOOST_TEST((read.front().members == cut_of_test().members));
}

BOOST_AUTO_TEST_CASE(cuts_that_can_not_be_are_corrupt) {
    const std::vector<std::byte> whole = encode_cut(cut_of_test());
    for (std::size_t size = 1; size < whole.size(); ++size)
        BOOST_TEST(throws(errc::corrupt, [&] { (void)cuts_of(frame_of_cut({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)})); }),
                   size);
    // Whatever a byte is, it is refused, or is a cut that says something else.
    for (std::size_t at = 0; at < whole.size(); ++at)
        for (const unsigned value : {0x00U, 0x01U, 0x7FU, 0xFFU}) {
            std::vector<std::byte> bytes = whole;
            bytes[at] = std::byte{static_cast<std::uint8_t>(value)};
            try {
                for (const Cut& cut : cuts_of(frame_of_cut(bytes))) BOOST_TEST(!cut.members.empty());
            } catch (const Error& error) {
                BOOST_TEST(error.code() == errc::corrupt);
            }
        }
    for (const std::size_t at : {8U, 12U, 48U}) {  // lengths of names, and how many members there are
        std::vector<std::byte> bytes = whole;
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 4, std::byte{0xFF});
        BOOST_TEST(throws(errc::corrupt, [&] { (void)cuts_of(frame_of_cut(bytes)); }), at);
    }
}

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
            const auto cuts = cuts_of(Frame(*place, frame, Lane::group));
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
    make();
    count_once();
    (void)group->cut();
    group.reset();
    make({.patience = milliseconds(50)});
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

BOOST_AUTO_TEST_CASE(a_cut_of_what_came_as_pages_would_not_be_restored) {
    /// When it is first waited for, more follows than the log has room for, and the target is back.
    class Member final : public GroupMember {
    public:
        Member(std::shared_ptr<GroupMember> real, std::function<void()> first) : real_(std::move(real)), first_(std::move(first)) {}
        store::HeapFile& heap_file() const noexcept override { return real_->heap_file(); }
        const log::GroupLog& log() const override { return real_->log(); }
        bool wait_replicated(Serial serial, milliseconds patience) const override {
            if (first_) std::exchange(first_, nullptr)();
            return real_->wait_replicated(serial, patience);
        }
        bool is_exact(Serial serial) const override { return real_->is_exact(serial); }
        bool has_unlogged(Serial since) const override { return real_->has_unlogged(since); }
        bool keep_from(const Uuid& which, std::optional<Serial> serial, milliseconds patience) override {
            return real_->keep_from(which, serial, patience);
        }

    private:
        const std::shared_ptr<GroupMember> real_;
        mutable std::function<void()> first_;
    };
    std::atomic<bool> away{false};
    targets["first"]->fate = [&](std::uint64_t) { return away ? PretendedTarget::Fate::away : PretendedTarget::Fate::works; };
    for (const bool is_planted : {false, true}) {
        BOOST_TEST(first_sent->wait_replicated(first->last_durable(), seconds(60)));
        Cutter cutter(*place, seconds(60));
        const auto real = GroupMemberAccess::of(*first_sent);
        cutter.add("first", std::make_shared<Member>(real, [&] {
                       for (int i = 0; i < 100; ++i) {
                           Transaction transaction(*first);
                           first->find_or_construct<taiyen::vector<char>>("large").assign(10'000, static_cast<char>(i));
                           transaction.commit();
                       }
                       away = false;
                   }));
        away = true;
        count(*first, 0);  // on its way as a frame
        while (first_sent->status().state != ReplicationState::away) std::this_thread::sleep_for(milliseconds(1));
        count(*first, 0);
        const Serial before = first->last_durable();
        const Planted bug(is_planted ? Bug::cut_within_gap : Bug::none);
        const Serial serial = cutter.cut({}).members.front().serial;
        BOOST_TEST((serial == before) == is_planted);
        BOOST_TEST(real->is_exact(serial) == !is_planted);
    }
    close();
    BOOST_TEST(throws(errc::not_found, [&] { (void)restore(); }));
}

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

BOOST_AUTO_TEST_CASE(an_idle_group_keeps_its_newest_cut) {
    Cutter cutter(*place, seconds(60));
    cutter.add("first", GroupMemberAccess::of(*first_sent));
    count_once();
    (void)cutter.cut("kept");
    count_once();
    const Cut made = cutter.cut({});
    const std::uint64_t later = store::microseconds_of(store::time_now()) + 1'000'000;
    for (int i = 0; i < 3; ++i) {
        cutter.trim(later);
        BOOST_TEST(cutter.cut({}).frame == made.frame);  // told to be the newest one
        BOOST_TEST(find_cut(*place, std::nullopt, {}).has_value());
    }
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

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back) {
    const std::uint64_t now = store::microseconds_of(store::time_now());
    constexpr std::uint64_t hour = 3'600'000'000ULL;
    CutLane lane(*place);
    lane.attach();
    Cut cut = cut_of_test();
    cut.mark.clear();
    cut.written_at = now;
    lane.append_cut(cut);
    const std::uint64_t young = cut.frame;
    for (int i = 0; i < 8; ++i) {  // the machine has started without its clock
        cut.written_at = now - 1000 * hour;
        lane.append_cut(cut);
    }
    lane.trim(now - 24 * hour);
    BOOST_TEST(place->range().first <= young);
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
    (void)group->cut();
    targets["second"]->fate = [](std::uint64_t) { return PretendedTarget::Fate::away; };
    BOOST_TEST(throws(errc::unconfirmed, [&] { (void)group->mark("kept"); }));
    BOOST_TEST(group->marks().empty());
    BOOST_TEST(group_marks(*place).empty());
    targets["second"]->fate = {};
    while (throws(errc::unconfirmed, [&] { (void)group->mark("kept"); })) {}  // a busy machine
    BOOST_TEST(group_marks(*place).size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_loaded_relaxed_is_in_the_cut_or_there_is_none) {
    count_once();
    for (const bool is_planted : {true, false}) {
        RelaxedLoading loading(*first);
        count(*first, 0);  // it stands in no log
        count(*second, 0);
        {
            Cutter cutter(*place, is_planted ? seconds(60) : milliseconds(50));
            cutter.add("first", GroupMemberAccess::of(*first_sent));
            cutter.add("second", GroupMemberAccess::of(*second_sent));
            const Planted bug(is_planted ? Bug::cut_without_relaxed : Bug::none);
            if (is_planted) {
                const Cut cut = cutter.cut({});
                BOOST_TEST((cut.members[0].serial < cut.members[1].serial));
            } else {
                // Replication may have had it saved, to send its pages.
                try {
                    const Cut cut = cutter.cut({});
                    BOOST_TEST((cut.members[0].serial == cut.members[1].serial));
                } catch (const Error& error) {
                    BOOST_TEST((error.code() == errc::unconfirmed));
                }
            }
        }
        loading.wait_until_strict();
    }
    make();
    const GroupCut cut = group->cut();
    BOOST_TEST((cut.members[0].serial == cut.members[1].serial));
    close();
    BOOST_TEST(restore().first.of[0] == 3U);
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

BOOST_AUTO_TEST_CASE(a_cut_that_was_lost_is_made_again_although_nothing_was_committed_since) {
    make();
    count_once();
    (void)group->cut();
    const std::uint64_t there = place->range().last;
    place->lose_from(there);
    (void)group->cut();
    BOOST_TEST(find_group_cut(*place).frame > there);
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

BOOST_AUTO_TEST_CASE(stopping_waits_for_no_target) {
    GroupOptions how;
    how.patience = std::chrono::hours(1);
    how.cut_every = milliseconds(1);
    make(how);
    targets["first"]->fate = [](std::uint64_t) { return PretendedTarget::Fate::away; };
    count_once();
    group->start();
    while (first_sent->status().state != ReplicationState::away) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(20));  // it waits for it
    group->stop();
    targets["first"]->fate = {};
    group->start();
    while (group->status().cuts == 0) std::this_thread::sleep_for(milliseconds(1));
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
        ::alarm(60);  // instead of waiting for ever
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
