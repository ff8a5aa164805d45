// A heap whose frames are sealed: restored, followed and promoted with the key, and by nobody without it.

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/seal/sealed_target.hpp>
#include <taiyen/taiyen.hpp>

#include "replicate/pretended_target.hpp"
#include "scratch_directory.hpp"
#include "seal/keys.hpp"
#include "throws.hpp"

using namespace taiyen;
using namespace taiyen::seal::test;
using taiyen::replicate::test::PretendedTarget;
using taiyen::test::throws;

namespace {

using Words = taiyen::vector<int>;

struct SealedHeap {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    PersistentOptions options = [] {
        PersistentOptions options;
        options.capacity = std::size_t{16} << 20U;
        options.log_capacity = std::size_t{256} << 10U;
        return options;
    }();
    ReplicationOptions how = [] {
        ReplicationOptions how;
        how.retry = std::chrono::milliseconds(2);
        return how;
    }();
    std::shared_ptr<PretendedTarget> place = std::make_shared<PretendedTarget>();
    ReportHandler before = set_report_handler(+[](const Incident&) noexcept {});
    int restored = 0;

    SealedHeap() = default;
    SealedHeap(const SealedHeap&) = delete;
    SealedHeap& operator=(const SealedHeap&) = delete;
    ~SealedHeap() { set_report_handler(before); }

    std::shared_ptr<SealedTarget> sealed(const std::vector<SealingKey>& keys) const { return std::make_shared<SealedTarget>(place, keys); }
    /// Commits numbers, each as a transaction, while the heap is replicated there.
    void replicate(const std::shared_ptr<ReplicationTarget>& target, int first, int last, bool makes_base = false) const {
        TransactionalHeap heap(open_or_create, path, options);
        Replication replication(heap, target, how);
        for (int number = first; number <= last; ++number) transact(heap, [&] { heap.find_or_construct<Words>("words").push_back(number); });
        if (makes_base) replication.make_base();
        if (!replication.wait_replicated(heap.last_durable(), std::chrono::seconds(60))) throw std::runtime_error("the target doesn't get it");
        replication.stop();
        heap.close();
    }
    /// How many numbers the heap made of these frames has.
    std::size_t restored_from(ReplicationTarget& target, const RestoreOptions& what = {}) {
        const std::filesystem::path to = directory / (std::to_string(++restored) + ".tyn");
        (void)restore(target, to, what);
        const ArchiveHeap heap(open_read_only, to);
        return heap.find<Words>("words")->size();
    }
    /// That of an error.
    static std::string told(errc code, const std::function<void()>& action) {
        try {
            action();
        } catch (const Error& error) {
            BOOST_TEST((error.code() == code), error.what());
            return error.what();
        }
        return "nothing";
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sealed_replication, SealedHeap)

BOOST_AUTO_TEST_CASE(a_heap_goes_there_sealed_and_comes_back) {
    const auto target = sealed({key_of(0)});
    replicate(target, 1, 3);
    replicate(target, 4, 9);
    BOOST_TEST(restored_from(*target) == 9U);
    for (const auto& [number, bytes] : place->frames()) BOOST_TEST(std::string(reinterpret_cast<const char*>(bytes.data()), 8) == "TAYIENS\n");
}

BOOST_AUTO_TEST_CASE(a_directory_keeps_sealed_frames) {
    std::filesystem::create_directory(directory / "frames");
    const auto target = std::make_shared<SealedTarget>(std::make_shared<DirectoryTarget>(directory / "frames"), std::vector{key_of(0)});
    replicate(target, 1, 3);
    BOOST_TEST(restored_from(*target) == 3U);
    BOOST_TEST(target->name() == DirectoryTarget(directory / "frames").name());
}

BOOST_AUTO_TEST_CASE(who_has_no_key_is_told_so) {
    replicate(sealed({key_of(0)}), 1, 3);
    const std::string restoring = told(errc::permission, [&] { (void)restored_from(*place); });
    BOOST_TEST(restoring.find("is sealed; name the file of its key") != std::string::npos, restoring);
    BOOST_TEST(restoring.find("damaged") == std::string::npos, restoring);
    BOOST_TEST(!std::filesystem::exists(directory / "1.tyn"));
    const std::string replicating = told(errc::permission, [&] { replicate(place, 4, 4); });
    BOOST_TEST(replicating.find("is sealed") != std::string::npos, replicating);
    const std::string following = told(errc::permission, [&] { const Follower follower(place, directory / "standby.tyn"); });
    BOOST_TEST(following.find("is sealed") != std::string::npos, following);
    BOOST_TEST(throws(errc::permission, [&] { (void)replica_info(*place); }));
    const auto other = sealed({key_of(1)});
    const std::string wrong = told(errc::permission, [&] { (void)restored_from(*other); });
    BOOST_TEST(wrong.find("sealed with another key") != std::string::npos, wrong);
}

BOOST_AUTO_TEST_CASE(a_forged_frame_is_not_restored) {
    const auto target = sealed({key_of(0)});
    replicate(target, 1, 3);
    replicate(target, 4, 9);
    const std::uint64_t last = place->range().last;
    const std::vector<std::byte> plain = target->read(last);
    place->put(last, plain);  // a frame that continues the one before, by who hasn't got the key
    const std::string forged = told(errc::corrupt, [&] { (void)restored_from(*target); });
    BOOST_TEST(forged.find("isn't sealed") != std::string::npos, forged);
    place->put(last, place->frames().at(last - 1));  // moved
    const std::string moved = told(errc::corrupt, [&] { (void)restored_from(*target); });
    BOOST_TEST(moved.find("broken seal") != std::string::npos, moved);
    BOOST_TEST(restored_from(*target, {.serial = Serial{3}}) == 3U);  // what comes before it
}

BOOST_AUTO_TEST_CASE(a_plain_place_is_not_sealed_in_the_middle) {
    replicate(place, 1, 3);
    const std::string what = told(errc::corrupt, [&] { replicate(sealed({key_of(0)}), 4, 4); });
    BOOST_TEST(what.find("isn't sealed") != std::string::npos, what);
    BOOST_TEST(restored_from(*place) == 3U);
}

BOOST_AUTO_TEST_CASE(keys_are_rotated) {
    replicate(sealed({key_of(0)}), 1, 3);
    const auto both = sealed({key_of(1), key_of(0)});
    replicate(both, 4, 6, true);
    BOOST_TEST(restored_from(*both) == 6U);
    const auto latest = sealed({key_of(1)});
    std::uint64_t first = 1;
    while (throws(errc::permission, [&] { (void)latest->read(first); })) ++first;
    latest->trim(first);
    replicate(latest, 7, 7, true);
    BOOST_TEST(restored_from(*latest) == 7U);
}

BOOST_AUTO_TEST_CASE(a_follower_waits_for_the_key_that_it_has_not_got) {
    replicate(sealed({key_of(0)}), 1, 3);
    const std::uint64_t last = place->range().last;
    replicate(sealed({key_of(1), key_of(0)}), 4, 6, true);
    const auto frames = place->frames();
    place->lose_from(last + 1);  // they come later: the heap and the follower have one address
    FollowerOptions quick;
    quick.poll = quick.retry = std::chrono::milliseconds(2);
    std::optional<Follower> follower(std::in_place, sealed({key_of(0)}), directory / "standby.tyn", quick);
    BOOST_TEST(follower->wait_for(Serial{3}, std::chrono::seconds(60)));
    for (auto next = frames.upper_bound(last); next != frames.end(); ++next) place->put(next->first, next->second);
    FollowerStatus status = follower->status();
    for (int tries = 0; tries < 6000 && status.state == FollowerState::following; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        status = follower->status();
    }
    BOOST_TEST((status.state == FollowerState::away));
    BOOST_TEST(status.last_error.find("sealed with another key") != std::string::npos, status.last_error);
    BOOST_TEST(follower->heap().find<Words>("words")->size() == 3U);
    follower.reset();
    follower.emplace(sealed({key_of(1), key_of(0)}), directory / "standby.tyn", quick);
    BOOST_TEST(follower->wait_for(Serial{6}, std::chrono::seconds(60)));
}

BOOST_AUTO_TEST_CASE(cuts_of_a_group_are_sealed_as_their_heaps_are) {
    const auto member = sealed({key_of(0)});
    const auto cuts = std::make_shared<PretendedTarget>();
    const auto group_target = std::make_shared<SealedTarget>(cuts, std::vector{key_of(0)});
    {
        TransactionalHeap heap(open_or_create, path, options);
        Replication replication(heap, member, how);
        ReplicationGroup group(group_target);
        group.add("words", heap, replication);
        transact(heap, [&] { heap.find_or_construct<Words>("words").push_back(1); });
        group.mark("one");
    }
    const auto target_of = [&](const std::string&) { return member; };
    std::filesystem::create_directory(directory / "restored");
    BOOST_TEST(throws(errc::permission, [&] { (void)restore_group(*cuts, target_of, directory / "restored"); }));
    (void)restore_group(*group_target, target_of, directory / "restored", {.mark = "one"});
    const ArchiveHeap heap(open_read_only, directory / "restored" / "words.tyn");
    BOOST_TEST(heap.find<Words>("words")->size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_follower_has_the_key_and_is_promoted) {
    const auto target = sealed({key_of(0)});
    replicate(target, 1, 3);
    {
        Follower follower(target, directory / "standby.tyn");
        BOOST_TEST(follower.wait_for(Serial{3}, std::chrono::seconds(60)));
        TransactionalHeap heap = std::move(follower).promote(options);
        BOOST_TEST(heap.find<Words>("words")->size() == 3U);
        heap.close();
    }
    BOOST_TEST(throws(errc::fenced, [&] { replicate(target, 4, 4); }));
}

BOOST_AUTO_TEST_SUITE_END()
