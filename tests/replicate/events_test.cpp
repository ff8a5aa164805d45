// What the event handler hears of replication.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "replicate/frame.hpp"
#include "replicate/replicated_heap.hpp"

using namespace taiyen;
using namespace taiyen::replicate::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// Events of replication, in order, while it lives.
struct Heard {
    struct One {
        EventKind kind;
        std::string text;
        std::uint64_t serial;
        std::uint64_t bytes;
        std::string heap;
    };
    static inline std::mutex mutex;
    static inline std::vector<One> all;

    static void hear(const Event& event) noexcept {
        if (event.kind != EventKind::replication && event.kind != EventKind::based) return;
        const std::lock_guard lock(mutex);
        all.push_back({event.kind, std::string(event.text), event.serial, event.bytes, std::string(event.heap)});
    }
    Heard() {
        all.clear();
        set_event_handler(&hear);
    }
    Heard(const Heard&) = delete;
    Heard& operator=(const Heard&) = delete;
    ~Heard() { set_event_handler(nullptr); }
    /// All that has happened by now.
    static std::vector<One> everything() {
        set_event_handler(&hear);  // returns when everything was told
        const std::lock_guard lock(mutex);
        return all;
    }
};

struct HeardFixture : ReplicatedFixture {
    Quiet quiet;
    Heard heard;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(replication_events, HeardFixture)

BOOST_AUTO_TEST_CASE(what_becomes_of_replication_is_told_once_each) {
    std::atomic<bool> away{false};
    target->fate = [&](std::uint64_t) { return away ? PretendedTarget::Fate::away : PretendedTarget::Fate::works; };
    put(1, "one");
    Replication replication(*heap, target, quick());
    const Serial first = newest();
    BOOST_TEST(replication.wait_replicated(first, seconds(60)));
    away = true;
    put(2, "two");
    while (replication.status().state != ReplicationState::away) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(20));  // some more tries
    away = false;
    BOOST_TEST(replication.wait_replicated(newest(), seconds(60)));
    while (replication.status().state != ReplicationState::streaming) std::this_thread::sleep_for(milliseconds(1));
    replication.make_base();
    replication.stop();

    const auto all = Heard::everything();
    std::vector<std::string> texts;
    std::uint64_t bases = 0;
    for (const auto& one : all) {
        BOOST_TEST(one.heap == path.string());
        if (one.kind == EventKind::replication) {
            texts.push_back(one.text);
            continue;
        }
        ++bases;
        BOOST_TEST(one.bytes > 1000U);
    }
    BOOST_REQUIRE(texts.size() == 4U);
    BOOST_TEST(texts[0] == "streaming");
    BOOST_TEST(texts[1].starts_with("away: "), texts[1]);
    BOOST_TEST(texts[1].find("it is away") != std::string::npos, texts[1]);
    BOOST_TEST(texts[2] == "streaming");
    BOOST_TEST(texts[3] == "stopped");
    BOOST_TEST(bases == 2U);
    BOOST_TEST(all.back().serial == newest().value);
    BOOST_TEST(all.front().serial == first.value);
}

BOOST_AUTO_TEST_CASE(what_is_not_there_yet_is_not_told_to_be) {
    /// Away whenever a base would be complete.
    class NeverBased final : public ReplicationTarget {
    public:
        explicit NeverBased(std::shared_ptr<PretendedTarget> inner) : inner_(std::move(inner)) {}
        std::string name() const override { return "never based"; }
        Range range() override { return inner_->range(); }
        bool append(std::uint64_t number, std::span<const std::byte> frame) override {
            replicate::FrameHead head;
            std::memcpy(&head, frame.data(), sizeof head);
            if (is_away && head.kind == replicate::FrameKind::base_done) throw Error(errc::io_error, name(), "it is away");
            return inner_->append(number, frame);
        }
        std::vector<std::byte> read(std::uint64_t number) override { return inner_->read(number); }
        void trim(std::uint64_t first) override { inner_->trim(first); }
        std::atomic<bool> is_away{false};

    private:
        const std::shared_ptr<PretendedTarget> inner_;
    };
    const auto never = std::make_shared<NeverBased>(target);
    put(1, "one");
    ReplicationOptions how = quick();
    how.codec = Codec::none;
    Replication replication(*heap, never, how);
    const Serial there = newest();
    BOOST_TEST(replication.wait_replicated(there, seconds(60)));
    never->is_away = true;
    {
        Transaction transaction(*heap);  // more than the log holds: it comes as pages
        heap->find_or_construct<taiyen::vector<char>>("large").assign(std::size_t{4} << 20U, 'x');
        transaction.commit();
    }
    while (replication.status().state != ReplicationState::away) std::this_thread::sleep_for(milliseconds(1));
    const auto all = Heard::everything();
    BOOST_TEST(all.back().text.starts_with("away: "), all.back().text);
    BOOST_TEST(all.back().serial == there.value);
    never->is_away = false;
    BOOST_TEST(replication.wait_replicated(newest(), seconds(60)));
}

BOOST_AUTO_TEST_CASE(who_loses_the_target_to_another_is_told_so) {
    put(1, "one");
    Replication replication(*heap, target, quick());
    BOOST_TEST(replication.wait_replicated(newest(), seconds(60)));
    target->put(target->range().last + 1, {std::byte{1}});
    put(2, "two");
    while (replication.status().state != ReplicationState::fenced) std::this_thread::sleep_for(milliseconds(1));
    BOOST_TEST(Heard::everything().back().text.starts_with("fenced: "));
}

BOOST_AUTO_TEST_SUITE_END()
