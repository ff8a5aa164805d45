// Who may append to a target, and who is refused: another heap, a copy, an older image, a second owner.

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include "base/planted.hpp"
#include "replicate/replicated_heap.hpp"
#include "replicate/shipper.hpp"

using namespace taiyen;
using namespace taiyen::replicate::test;
using taiyen::test::throws;
using Fate = PretendedTarget::Fate;

BOOST_FIXTURE_TEST_SUITE(attaching, ReplicatedFixture)

BOOST_AUTO_TEST_CASE(behind_a_damaged_newest_frame_nothing_is_appended) {
    put(1, "one");
    {
        Replication replication(*heap, target);
        end(replication);
    }
    const std::uint64_t last = target->range().last;
    std::vector<std::byte> damaged = target->read(last);
    damaged.back() ^= std::byte{4};
    target->put(last, damaged);
    try {
        Replication(*heap, target);
        BOOST_ERROR("attached");
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        BOOST_TEST(std::string(error.what()).find("replicate to another place") != std::string::npos, error.what());
    }
    BOOST_TEST(target->range().last == last);
}

BOOST_AUTO_TEST_CASE(another_heap_does_not_get_into_the_target) {
    { Replication replication(*heap, target); }
    TransactionalHeap other(create_only, directory / "other.tyn", options);
    BOOST_TEST(throws(errc::mismatch, [&] { Replication(other, target); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { Replication(other, nullptr); }));
}

BOOST_AUTO_TEST_CASE(a_copy_of_the_heap_is_fenced_off) {
    put(1, "original");
    {
        Replication replication(*heap, target);
        end(replication);
    }
    write_copy(*heap, directory / "copy.tyn");
    heap.reset();
    TransactionalHeap copy(open_only, directory / "copy.tyn", options);
    BOOST_TEST(throws(errc::fenced, [&] { Replication(copy, target); }));
}

BOOST_AUTO_TEST_CASE(an_older_image_of_the_file_that_went_its_own_way_is_refused) {
    put(1, "both have it");
    {
        Replication replication(*heap, target);
        end(replication);
    }
    heap.reset();
    const auto image = directory / "image.tyn";
    std::filesystem::copy_file(path, image);
    heap.emplace(open_only, path, options);
    {
        Replication replication(*heap, target);
        put(2, "only the target has it");
        put(3, "and this");
        end(replication);
    }
    heap.reset();
    std::filesystem::remove(path);
    std::filesystem::copy_file(image, path);
    const auto frames = target->range().last;
    for (int transactions = 0; transactions < 3; ++transactions) {  // behind the target, and beyond it
        heap.emplace(open_only, path, options);
        BOOST_TEST(throws(errc::diverged, [&] { Replication(*heap, target); }));
        Transaction transaction(*heap);
        heap->find_or_construct<Map>("map")[77] = "another history";
        transaction.commit();
        heap.reset();
    }
    BOOST_TEST(target->range().last == frames);
}

BOOST_AUTO_TEST_CASE(an_older_image_would_go_on_unseen_if_opening_it_left_no_mark) {
    put(1, "both have it");
    const auto image = directory / "image.tyn";
    const auto copy_files = [](const std::filesystem::path& from, const std::filesystem::path& to) {
        for (const char* suffix : {"", ".log"})
            std::filesystem::copy_file(from.string() + suffix, to.string() + suffix, std::filesystem::copy_options::overwrite_existing);
    };
    {
        Replication replication(*heap, target);
        BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
        heap->snapshot();
        {
            const auto saves = HeapAccess::file(*heap).files().hold_saves();
            copy_files(path, image);
        }
        put(2, "only the target has it");  // shipped by the life that the image is of
        end(replication);
    }
    const auto attaches_after_going_its_own_way = [&] {
        heap.reset();
        copy_files(image, path);
        heap.emplace(open_only, path, options);
        for (int i = 0; i < 3; ++i) {
            Transaction transaction(*heap);
            heap->find_or_construct<Map>("map")[77] = "another history";
            transaction.commit();
        }
        return !throws(errc::diverged, [&] { Replication(*heap, target); });
    };
    BOOST_TEST(!attaches_after_going_its_own_way());
    const Planted planted(Bug::reopening_unmarked);
    BOOST_TEST(attaches_after_going_its_own_way());
}

BOOST_AUTO_TEST_CASE(who_appended_what_was_refused_would_make_two_histories_one) {
    const Quiet quiet_reports;
    put(1, "one");
    Replication replication(*heap, target, quick());
    put(2, "two");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    // Somebody takes the target over.
    const replicate::Frame newest_frame(*target, target->range().last);
    replicate::FrameHead head = newest_frame.head();
    head.kind = replicate::FrameKind::epoch;
    head.previous = newest_frame.head().checksum;
    ++head.number;
    ++head.epoch;
    head.epoch_frame = head.number;
    const std::vector<std::byte> body(sizeof(replicate::layout::EpochBody));
    const std::array pieces{std::span<const std::byte>(body)};
    const std::vector<std::byte> taken_over = replicate::encode(head, pieces);
    target->put(head.number, taken_over);
    const auto goes_on = [&](std::uint64_t key) {
        const Serial serial = put(key, "refused");
        try {
            while (!replication.wait_replicated(serial, std::chrono::seconds(1))) {}
            return true;
        } catch (const Error& error) {
            BOOST_TEST((error.code() == errc::fenced));
            return false;
        }
    };
    {
        const Planted planted(Bug::refused_appended_anyway);
        BOOST_TEST(goes_on(3));
    }
    target->put(target->range().last + 1, taken_over);
    BOOST_TEST(!goes_on(4));
}

BOOST_AUTO_TEST_CASE(a_second_owner_ends_the_first) {
    const Quiet quiet_reports;
    Replication replication(*heap, target, quick());
    put(1, "mine");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    target->put(target->range().last + 1, std::vector<std::byte>(8, std::byte{1}));  // somebody else's frame
    const Serial serial = put(2, "refused");
    BOOST_TEST(throws(errc::fenced, [&] {
        while (!replication.wait_replicated(serial, std::chrono::seconds(1))) {}
    }));
    BOOST_TEST((replication.status().state == ReplicationState::fenced));
    BOOST_TEST(throws(errc::fenced, [&] { replication.make_base(); }));
    put(3, "the heap goes on");
}

BOOST_AUTO_TEST_CASE(a_target_that_loses_this_attachment_gets_another_one) {
    const Quiet quiet_reports;
    put(1, "one");
    {
        Replication replication(*heap, target, quick());
        end(replication);
    }
    const std::uint64_t before = target->range().last;
    Replication replication(*heap, target, quick());
    put(2, "two");
    BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
    target->lose_from(before + 1);
    put(3, "three");
    end(replication);
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(an_attachment_elsewhere_that_fails_leaves_the_one_that_was) {
    put(1, "one");
    {
        Replication replication(*heap, target, quick());
        end(replication);
    }
    const auto elsewhere = std::make_shared<PretendedTarget>();
    elsewhere->fate = [](std::uint64_t) { return Fate::away; };
    BOOST_TEST(throws(errc::io_error, [&] { Replication(*heap, elsewhere); }));
    Replication replication(*heap, target, quick());
    put(2, "two");
    end(replication);
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(nothing_is_attached_within_a_transaction) {
    const Transaction transaction(*heap);
    BOOST_TEST(throws(errc::scope_open, [&] { Replication(*heap, target); }));
    BOOST_TEST(target->range().empty());
}

BOOST_AUTO_TEST_CASE(an_image_that_was_refused_is_not_accepted_by_way_of_another_target) {
    put(1, "both have it");
    const auto image = directory / "image.tyn";
    {
        Replication replication(*heap, target);
        BOOST_REQUIRE(replication.wait_replicated(newest(), std::chrono::seconds(60)));
        heap->snapshot();
        {
            const auto saves = HeapAccess::file(*heap).files().hold_saves();
            for (const char* suffix : {"", ".log"}) std::filesystem::copy_file(path.string() + suffix, image.string() + suffix);
        }
        put(2, "only the target has it");
        end(replication);
    }
    heap.reset();
    for (const char* suffix : {"", ".log"})
        std::filesystem::copy_file(image.string() + suffix, path.string() + suffix, std::filesystem::copy_options::overwrite_existing);
    heap.emplace(open_only, path, options);
    BOOST_TEST(throws(errc::diverged, [&] { Replication(*heap, target); }));
    { Replication elsewhere(*heap, std::make_shared<PretendedTarget>()); }
    put(3, "another history");
    put(4, "that is longer");
    BOOST_TEST(throws(errc::diverged, [&] { Replication(*heap, target); }));
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_replicate) {
    Replication replication(*heap, target, quick());
    put(1, "one");
    const pid_t child = ::fork();
    if (child == 0) {
        const bool refused = throws(errc::forked, [&] { (void)replication.status(); }) && throws(errc::forked, [&] { replication.make_base(); });
        replication.stop();
        { const Replication gone(std::move(replication)); }
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    put(2, "two");
    end(replication);
    BOOST_TEST((restore_it() == states[newest().value]));
}

BOOST_AUTO_TEST_CASE(a_reader_does_not_replicate) {
    heap.reset();
    TransactionalHeap reader(open_read_only, path, options);
    BOOST_TEST(throws(errc::read_only, [&] { Replication(reader, target); }));
}

BOOST_AUTO_TEST_SUITE_END()
