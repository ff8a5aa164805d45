// Cuts of a group: of one moment, whatever is committed meanwhile.

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "replicate/grouped_heaps.hpp"
#include "store/opening_record.hpp"

using namespace taiyen;
using namespace taiyen::replicate;
using namespace taiyen::replicate::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using taiyen::test::throws;

namespace {

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

BOOST_AUTO_TEST_CASE(a_cut_that_was_lost_is_made_again_although_nothing_was_committed_since) {
    make();
    count_once();
    (void)group->cut();
    const std::uint64_t there = place->range().last;
    place->lose_from(there);
    (void)group->cut();
    BOOST_TEST(find_group_cut(*place).frame > there);
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

BOOST_AUTO_TEST_SUITE_END()
