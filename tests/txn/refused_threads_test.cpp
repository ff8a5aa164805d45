// The system gives the heap none of the threads that it wants.

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include <boost/test/unit_test.hpp>

#include "refused_calls.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

std::ptrdiff_t open_files() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

BOOST_FIXTURE_TEST_SUITE(refused_threads, TransactionFixture)

BOOST_AUTO_TEST_CASE(a_heap_that_gets_no_thread_is_refused_and_opens_when_there_are_threads_again) {
    push(0);
    heap.reset();
    for (const Durability durability : {Durability::sync, Durability::async}) {
        options.durability = durability;
        const std::filesystem::path fresh = directory / (durability == Durability::sync ? "fresh" : "fresh too");
        const pid_t child = ::fork();
        BOOST_REQUIRE(child >= 0);
        if (child == 0) {
            ::alarm(300);
            if (!refuse_threads()) ::_exit(100);
            int wrong = 0;
            try {
                const std::ptrdiff_t before = open_files();
                for (int round = 0; round < 3; ++round) {
                    wrong |= throws(errc::too_many_threads, [&] { const TransactionalHeap refused(open_only, path, options); }) ? 0 : 1;
                    wrong |= throws(errc::too_many_threads, [&] { const TransactionalHeap refused(create_only, fresh, options); }) ? 0 : 2;
                }
                wrong |= open_files() == before ? 0 : 4;
            } catch (...) {
                wrong = 8;
            }
            ::_exit(wrong);
        }
        int status = 0;
        BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
        BOOST_REQUIRE(WIFEXITED(status));
        if (WEXITSTATUS(status) == 100) {
            BOOST_TEST_MESSAGE("skipped: no seccomp filters");
            return;
        }
        BOOST_TEST(WEXITSTATUS(status) == 0);
        heap.emplace(open_only, path, options);
        BOOST_TEST((values() == std::vector<int>{0}));
        BOOST_TEST(heap->verify().ok());
        heap.reset();
        BOOST_TEST(!std::filesystem::exists(fresh));
        TransactionalHeap created(create_only, fresh, options);
        BOOST_TEST(created.verify().ok());
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
