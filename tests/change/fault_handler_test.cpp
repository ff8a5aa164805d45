// The process's SIGSEGV handler beside other handlers: what is ours is taken, what isn't reaches the others, and real crashes stay crashes.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <algorithm>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>

#include "base/sanitizers.hpp"
#include "change/captured_core.hpp"
#include "heap/fault_handler.hpp"

namespace taiyen::change {
BOOST_AUTO_TEST_SUITE(fault_handler)

namespace {

using test::CapturedCore;
using Action = struct sigaction;

constexpr std::uint64_t user = 2U << 20U;

/// The handler of SIGSEGV is as it was when this goes.
class Restored {
public:
    Restored() { ::sigaction(SIGSEGV, nullptr, &before_); }
    ~Restored() { ::sigaction(SIGSEGV, &before_, nullptr); }
    Restored(const Restored&) = delete;
    Restored& operator=(const Restored&) = delete;

private:
    Action before_{};
};

Action put(void (*handler)(int, siginfo_t*, void*)) {
    Action action{};
    Action before{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &before);
    return before;
}

/// How a child ended that did `what`.
template <class F>
int status_of(F&& what) {
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(20);
        what();
        ::_exit(0);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

/// No handler of Boost.Test, of a sanitizer, or of an earlier case.
void reset_handlers() {
    Action action{};
    action.sa_handler = SIG_DFL;
    ::sigaction(SIGSEGV, &action, nullptr);
}

bool died_of_fault(int status) {
#if defined(TAIYEN_ADDRESS_SANITIZER) || defined(TAIYEN_THREAD_SANITIZER)
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0) && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
#else
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
#endif
}

volatile sig_atomic_t seen = 0;
Action outer{};

/// Ends the child with a code that says who ran.
void leave_with_7(int, siginfo_t*, void*) { ::_exit(7); }
void count_and_pass_on(int signal, siginfo_t* info, void* context) {
    seen = seen + 1;
    if (seen > 3) ::_exit(9);
    outer.sa_sigaction(signal, info, context);
}

void store_wildly() {
    auto* volatile nowhere = reinterpret_cast<std::byte*>(0x10);
    *nowhere = std::byte{1};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_wild_store_is_a_real_crash) {
    const int status = status_of([] {
        reset_handlers();
        CapturedCore core;
        core.capture(Capture::pages).begin_scope();
        core.base()[user] = std::byte{1};
        store_wildly();
    });
    BOOST_TEST(died_of_fault(status));
}

BOOST_AUTO_TEST_CASE(a_signal_sent_by_somebody_is_not_swallowed) {
    const int status = status_of([] {
        reset_handlers();
        CapturedCore core;
        core.capture(Capture::pages).begin_scope();
        ::kill(::getpid(), SIGSEGV);
    });
    BOOST_TEST(died_of_fault(status));
}

BOOST_AUTO_TEST_CASE(stores_behind_the_mapped_span_and_into_heaps_that_nobody_listens_to_crash) {
    for (const bool stopped : {false, true}) {
        const int status = status_of([stopped] {
            reset_handlers();
            CapturedCore core;
            Recorder& recorder = core.capture(Capture::pages);
            recorder.begin_scope();
            if (stopped) {
                recorder.stop();
                ::mprotect(core.base() + user, page_bytes, PROT_READ);
            }
            // The gap between the durable span and the scratch range belongs to the heap's slots and to nobody.
            core.base()[stopped ? user : core.ranges().durable_bytes] = std::byte{1};
        });
        BOOST_TEST(died_of_fault(status));
    }
}

BOOST_AUTO_TEST_CASE(a_load_from_an_unreadable_page_of_the_span_crashes_and_does_not_loop) {
    const int status = status_of([] {
        reset_handlers();
        CapturedCore core;
        core.capture(Capture::pages).begin_scope();
        ::mprotect(core.base() + user, page_bytes, PROT_NONE);
        const volatile std::byte* const place = core.base() + user;
        (void)*place;
    });
    BOOST_TEST(died_of_fault(status));
}

BOOST_AUTO_TEST_CASE(a_handler_that_was_there_before_gets_what_is_not_ours) {
    const int status = status_of([] {
        put(leave_with_7);
        CapturedCore core;
        core.capture(Capture::pages).begin_scope();
        core.base()[user] = std::byte{1};
        store_wildly();
    });
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 7));
}

BOOST_AUTO_TEST_CASE(a_handler_that_came_later_does_not_take_the_heaps_faults_and_may_pass_on_to_ours) {
    const Restored restored;
    const int status = status_of([] {
        put(leave_with_7);
        CapturedCore core;
        Recorder& recorder = core.capture(Capture::pages);
        recorder.begin_scope();
        core.base()[user] = std::byte{1};
        outer = put(count_and_pass_on);
        core.base()[user + 10 * page_bytes] = std::byte{1};  // through the newcomer
        if (seen != 1) ::_exit(1);
        recorder.end_scope();
        recorder.begin_scope();  // ours comes first again
        core.base()[user + 20 * page_bytes] = std::byte{1};
        if (seen != 1) ::_exit(2);
        if (recorder.counters().faults != 3) ::_exit(3);
        store_wildly();  // ours, the newcomer, ours again, the oldest
    });
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 7), "exit code " << WEXITSTATUS(status) << " signal " << WTERMSIG(status));
}

BOOST_AUTO_TEST_CASE(a_handler_that_swallowed_our_faults_is_overruled_at_the_next_scope) {
    const Restored restored;
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    Action ignore{};
    ignore.sa_handler = SIG_IGN;
    for (int i = 0; i < 40; ++i) {  // again and again: that takes no room
        ::sigaction(SIGSEGV, &ignore, nullptr);
        recorder.begin_scope();
        core.base()[user + static_cast<unsigned>(i) * 10 * page_bytes] = std::byte{1};
        recorder.end_scope();
    }
    BOOST_TEST(recorder.counters().faults == 40U);
}

BOOST_AUTO_TEST_CASE(a_blocked_signal_is_let_through_at_the_scopes_start) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    std::thread([&] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        recorder.begin_scope();
        core.base()[user] = std::byte{1};
        recorder.end_scope();
    }).join();
    BOOST_TEST(recorder.counters().faults == 1U);
}

BOOST_AUTO_TEST_CASE(errno_survives_a_fault) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    recorder.begin_scope();
    errno = EXDEV;
    core.base()[user] = std::byte{1};
    BOOST_TEST(errno == EXDEV);
    recorder.end_scope();
}

BOOST_AUTO_TEST_CASE(a_fault_on_an_alternate_stack_is_taken_there) {
    CapturedCore core;
    Recorder& recorder = core.capture(Capture::pages);
    std::thread([&] {
        std::vector<std::byte> stack(static_cast<std::size_t>(::sysconf(_SC_MINSIGSTKSZ)) + 32 * 1024);
        stack_t ours{};
        stack_t before{};
        ours.ss_sp = stack.data();
        ours.ss_size = stack.size();
        BOOST_REQUIRE(::sigaltstack(&ours, &before) == 0);
        recorder.begin_scope();
        core.base()[user] = std::byte{1};
        recorder.end_scope();
        ::sigaltstack(&before, nullptr);
        BOOST_TEST((std::find_if(stack.begin(), stack.end(), [](std::byte b) { return b != std::byte{0}; }) != stack.end()));
    }).join();
    BOOST_TEST(recorder.counters().faults == 1U);
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_nothing_to_the_heap_and_its_stores_crash) {
    CapturedCore core;
    vm::prepare_heap_mapping(core.base(), core.ranges().durable_bytes);
    Recorder& recorder = core.capture(Capture::pages, Audit::scope);
    core.base()[user] = std::byte{1};
    const int quiet = status_of([&] {
        ChangeSet set;
        recorder.cut(set);
        recorder.restore();
        recorder.apply(set, Direction::backward);
        recorder.end_scope();
        recorder.stop();
        if (!set.empty()) ::_exit(1);
    });
    BOOST_TEST((WIFEXITED(quiet) && WEXITSTATUS(quiet) == 0));
    const int storing = status_of([&] {
        reset_handlers();
        heap::ensure_fault_handler();
        core.base()[user] = std::byte{2};
    });
    BOOST_TEST(died_of_fault(storing));
    ChangeSet set;
    recorder.cut(set);
    BOOST_TEST(!set.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
