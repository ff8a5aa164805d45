// Stores outside scopes of a heap that has none: reported with address and block, then a crash at the line that stored.
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cstring>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/report.hpp>

#include "change/captured_core.hpp"
#include "change/logged_recorder.hpp"

namespace taiyen::change {
namespace {

using test::CapturedCore;

/// What a child told before it ended, and how it ended.
struct Told {
    std::string text;
    int status = 0;
};

int pipe_end = -1;
void tell(const Incident& incident) noexcept {
    char head[64];
    const int length = std::snprintf(head, sizeof head, "%d %p ", static_cast<int>(incident.code), incident.address);
    (void)!::write(pipe_end, head, static_cast<std::size_t>(length));
    (void)!::write(pipe_end, incident.text.data(), incident.text.size());
}

void leave_with_7(int, siginfo_t*, void*) { ::_exit(7); }

void put(void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action{};
    if (handler != nullptr) {
        action.sa_sigaction = handler;
        action.sa_flags = SA_SIGINFO;
    } else {
        action.sa_handler = SIG_DFL;
    }
    ::sigaction(SIGSEGV, &action, nullptr);
}

/// Runs `what` in a child whose reports are heard.
template <class F>
Told told_by(F&& what) {
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(20);
        pipe_end = ends[1];
        set_report_handler(&tell);
        what();
        ::_exit(0);
    }
    ::close(ends[1]);
    Told told;
    char buffer[4096];
    for (ssize_t count = 0; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;) told.text.append(buffer, static_cast<std::size_t>(count));
    ::close(ends[0]);
    BOOST_REQUIRE(::waitpid(child, &told.status, 0) == child);
    return told;
}

bool left_with(const Told& told, int code) { return WIFEXITED(told.status) && WEXITSTATUS(told.status) == code; }

/// A heap with a block, whose place parent and child agree on.
struct StrayFixture {
    CapturedCore core;
    std::byte* const block = static_cast<std::byte*>(core.allocate_durable(10'000, 16));
    std::byte* const place = block + 5'000;

    Told told_of(Capture mode, auto&& what) {
        return told_by([&] {
            // The child's own heap: the parent's is not usable in it.
            CapturedCore child;
            auto* const own = static_cast<std::byte*>(child.allocate_durable(10'000, 16)) + 5'000;
            put(&leave_with_7);
            Recorder& recorder = child.capture(mode, Audit::off, Outside::stray);
            what(recorder, child, own);
        });
    }
    void require_report(const Told& told, const std::string& where) {
        // The child's heap lies elsewhere, at the same offsets.
        const std::uint64_t offset = core.offset_of(place).value;
        BOOST_TEST(told.text.starts_with(std::to_string(static_cast<int>(errc::stray_write)) + " 0x"));
        BOOST_TEST(told.text.find("memory.tyn: " + where + ", at offset " + std::to_string(offset) + ", in the block of ") != std::string::npos,
                   told.text);
        BOOST_TEST(told.text.find(" bytes at " + std::to_string(core.offset_of(block).value)) != std::string::npos, told.text);
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(stray, StrayFixture)

BOOST_AUTO_TEST_CASE(a_store_between_scopes_is_reported_with_its_block_and_reaches_the_handler_before_ours) {
    const Told told = told_of(Capture::pages, [](Recorder& recorder, CapturedCore&, std::byte* own) {
        recorder.begin_scope();
        recorder.end_scope();
        *own = std::byte{1};
    });
    BOOST_TEST(left_with(told, 7));
    require_report(told, "a store while no transaction is open");
}

BOOST_AUTO_TEST_CASE(a_store_by_another_thread_than_the_scopes_is_reported) {
    const Told told = told_of(Capture::pages, [](Recorder& recorder, CapturedCore&, std::byte* own) {
        recorder.begin_scope();
        std::thread([&] { *own = std::byte{1}; }).join();
    });
    BOOST_TEST(left_with(told, 7));
    require_report(told, "a store by a thread other than the open transaction's");
}

BOOST_AUTO_TEST_CASE(stores_of_the_scopes_thread_and_the_engines_own_writes_are_not_stray) {
    for (const Capture mode : {Capture::pages, Capture::declared}) {
        const Told told = told_of(mode, [](Recorder& recorder, CapturedCore& child, std::byte* own) {
            recorder.begin_scope();
            recorder.touch(child.offset_of(own), 1);
            own[0] = std::byte{1};
            ChangeSet set;
            recorder.cut(set);
            recorder.end_scope();
            if (set.empty()) ::_exit(1);
            recorder.begin_scope();
            recorder.apply(set, Direction::backward);
            recorder.end_scope();
            if (own[0] != std::byte{0}) ::_exit(2);
            child.deallocate_durable(child.allocate_durable(100, 8));  // announced
        });
        BOOST_TEST(left_with(told, 0));
        BOOST_TEST(told.text == "");
    }
}

BOOST_AUTO_TEST_CASE(with_outside_implicit_such_a_store_is_a_change_like_any_other) {
    Recorder& recorder = core.capture(Capture::pages);
    *place = std::byte{1};
    std::thread([&] { place[1] = std::byte{1}; }).join();
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(!set.empty());
}

BOOST_AUTO_TEST_CASE(an_instrumented_store_outside_scopes_is_reported_and_aborts_before_it_is_made) {
    const Told told = told_by([] {
        CapturedCore child;
        auto* const own = static_cast<std::byte*>(child.allocate_durable(10'000, 16)) + 5'000;
        LoggedRecorder recorder(Capture::stores, child, child.ranges().durable_bytes, Audit::off, Outside::stray);
        recorder.start();
        recorder.begin_scope();
        recorder.on_store(own, 8);
        ChangeSet set;
        recorder.cut(set);
        recorder.end_scope();
        std::signal(SIGABRT, [](int) { ::_exit(8); });
        recorder.on_store(own, 8);
    });
    BOOST_TEST(left_with(told, 8));
    require_report(told, "a store while no transaction is open");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
