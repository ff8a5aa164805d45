// The tests of threads in an ordered store can see: each safeguard that is left out is noticed.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <exception>

#include <boost/test/unit_test.hpp>

#include "ordered/store_threads.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(ordered_store_planted)

using taiyen::Bug;
namespace scenarios = taiyen::test::store_threads;

/// Whether a process with that bug fails, in any way, within some rounds: what one sees who looks at memory of others is up to chance.
bool is_noticed(Bug bug, int rounds) {
    const pid_t child = ::fork();
    if (child == 0) {
        const int nowhere = ::open("/dev/null", O_WRONLY);
        ::dup2(nowhere, 1);
        ::dup2(nowhere, 2);
        for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGALRM}) ::signal(signal, SIG_DFL);  // not Boost's
        ::alarm(bug == Bug::none ? 600 : 10);                                                    // it may go on for ever
        taiyen::planted_bug = bug;
        try {
            for (int round = 0; round != rounds; ++round) {
                scenarios::read_beside_writers();
                scenarios::write_side_by_side(static_cast<std::uint64_t>(round));
                scenarios::scan_beside_writers();
                scenarios::add_and_exchange();
            }
        } catch (const std::exception&) {
            ::_exit(1);
        }
        ::_exit(0);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    return status != 0;
}

BOOST_AUTO_TEST_CASE(each_safeguard_is_needed) {
    BOOST_TEST(!is_noticed(Bug::none, 1));
    for (const Bug bug : {Bug::store_trusts_child, Bug::store_trusts_value, Bug::store_trusts_copy, Bug::store_locks_any_version,
                          Bug::store_keeps_version, Bug::store_enters_no_epoch})
        BOOST_TEST(is_noticed(bug, 100), "planted bug " << static_cast<int>(bug));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
