#include "base/process.hpp"

#include <csignal>
#include <cstdlib>
#include <set>

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

namespace {

const bool wiping_is_refused = std::getenv("TAIYEN_TEST_REFUSE_WIPING") != nullptr;

}  // namespace

// Stands before that of the C library.
extern "C" int madvise(void* address, size_t length, int advice) noexcept {
    if (advice == MADV_WIPEONFORK && wiping_is_refused) {
        errno = EINVAL;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_madvise, address, length, advice));
}

namespace taiyen::test {
namespace {

pid_t clone_of_the_kernel() { return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); }

/// The status with which the child ends.
int result_of(pid_t child) {
    int status = 0;
    BOOST_REQUIRE(child > 0);
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// Each child in a line of them knows another number than all before it, and keeps it.
bool all_differ(pid_t (*make)(), int generations, std::set<ProcessNumber> seen) {
    const ProcessNumber mine = this_process();
    if (mine == 0 || !seen.insert(mine).second || this_process() != mine) return false;
    if (generations == 0) return true;
    const pid_t child = make();
    if (child == 0) ::_exit(all_differ(make, generations - 1, seen) ? 0 : 1);
    int status = 0;
    return ::waitpid(child, &status, 0) == child && status == 0 && this_process() == mine;
}

int number_is(void* expected) { return this_process() == *static_cast<const ProcessNumber*>(expected) ? 0 : 1; }

BOOST_AUTO_TEST_SUITE(processes)

BOOST_AUTO_TEST_CASE(each_child_of_fork_has_another_number) { BOOST_TEST(all_differ(::fork, 3, {})); }

BOOST_AUTO_TEST_CASE(each_child_that_no_handler_sees_has_another_number) {
    BOOST_TEST(all_differ(::_Fork, 3, {}));
    BOOST_TEST(all_differ(clone_of_the_kernel, 3, {}));
}

BOOST_AUTO_TEST_CASE(a_child_that_shares_the_memory_has_its_parents_number) {
    ProcessNumber mine = this_process();
    alignas(16) static std::byte stack[64 * 1024];
    BOOST_TEST(result_of(::clone(number_is, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &mine)) == 0);
    BOOST_TEST(this_process() == mine);
}

BOOST_AUTO_TEST_CASE(where_the_kernel_wipes_no_pages_a_handler_of_fork_does) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::setenv("TAIYEN_TEST_REFUSE_WIPING", "1", 1);
        ::execl("/proc/self/exe", "taiyen_base_tests", "--run_test=processes/each_child_of_fork_has_another_number", nullptr);
        ::_exit(99);
    }
    BOOST_TEST(result_of(child) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::test
