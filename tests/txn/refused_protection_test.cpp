// The system refuses mprotect(2) from some moment on: in a child, by a seccomp filter.

#include <boost/test/unit_test.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "refused_calls.hpp"
#include "txn/txn_fixture.hpp"

namespace taiyen::txn::test {
namespace {

/// Reports that a child heard; shared with its parent.
struct Heard {
    int of_no_memory = 0;
};
Heard* heard = nullptr;

void count(const Incident& incident) noexcept { heard->of_no_memory += incident.code == errc::out_of_address_space ? 1 : 0; }

constexpr int no_filter = 77;

void refuse_from_here_on() {
    if (!refuse_mprotect()) ::_exit(no_filter);
}

enum class Refuses { from_the_begin, when_told };

/// `what` with a heap in a child, after the system has begun to refuse. Returns the child's status.
template <class F>
int status_of_child(const std::filesystem::path& path, F&& what, Refuses when = Refuses::from_the_begin) {
    heard = static_cast<Heard*>(::mmap(nullptr, sizeof(Heard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    BOOST_REQUIRE(heard != MAP_FAILED);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(300);
        ::signal(SIGSEGV, SIG_DFL);
        try {
            std::optional<TransactionalHeap> heap(std::in_place, create_only, path, small_heap());
            transact(*heap, [&] { heap->construct<taiyen::vector<int>>("numbers").assign(3, 1); });
            set_report_handler(&count);
            if (when == Refuses::from_the_begin) refuse_from_here_on();
            what(heap);
            ::_exit(0);
        } catch (...) {
            ::_exit(1);
        }
    }
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

bool has_what_was_committed(const std::filesystem::path& path) {
    const ArchiveHeap heap(open_read_only, path);
    const auto* const numbers = heap.find<taiyen::vector<int>>("numbers");
    return heap.verify().ok() && numbers != nullptr && numbers->size() == 3 && numbers->front() == 1;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(refused_protection)

BOOST_AUTO_TEST_CASE(a_heap_closes_though_its_pages_cannot_be_made_writable_any_more) {
    const ScratchDirectory directory;
    const auto path = directory / "heap.tyn";
    const int status = status_of_child(path, [](std::optional<TransactionalHeap>& heap) { heap.reset(); });
    if (WIFEXITED(status) && WEXITSTATUS(status) == no_filter) {
        BOOST_TEST_MESSAGE("the system has no seccomp filters");
        return;
    }
    BOOST_TEST(status == 0);
    BOOST_TEST(heard->of_no_memory == 1);
    BOOST_TEST(has_what_was_committed(path));
}

BOOST_AUTO_TEST_CASE(a_store_whose_page_cannot_be_made_writable_is_told_before_the_process_ends) {
    const ScratchDirectory directory;
    const auto path = directory / "heap.tyn";
    const int status = status_of_child(path, [](std::optional<TransactionalHeap>& heap) {
        // Pages that nothing has been stored into yet.
        transact(*heap, [&] {
            auto* const place = static_cast<volatile char*>(heap->allocate(1U << 20U));
            for (std::size_t i = 0; i < (1U << 20U); i += 4096) place[i] = 1;
        });
    });
    if (WIFEXITED(status) && WEXITSTATUS(status) == no_filter) {
        BOOST_TEST_MESSAGE("the system has no seccomp filters");
        return;
    }
    // A heap that could not even be extended says so by an exception; where it could, the fault ends the process, and has been told.
    if (WIFSIGNALED(status)) BOOST_TEST(heard->of_no_memory >= 1);
    BOOST_TEST((WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) == 1));
    BOOST_TEST(has_what_was_committed(path));
}

BOOST_AUTO_TEST_CASE(a_rollback_whose_pages_an_inner_transaction_closed_and_the_system_keeps_so_poisons_the_heap) {
    const ScratchDirectory directory;
    const auto path = directory / "heap.tyn";
    const auto roll_back = [](std::optional<TransactionalHeap>& heap) {
        Transaction outer(*heap);
        auto* const place = static_cast<volatile char*>(heap->allocate(64 * page_bytes));
        for (std::size_t i = 0; i < 64 * page_bytes; i += page_bytes) place[i] = 1;
        { Transaction inner(*heap); }
        refuse_from_here_on();
        outer.rollback();
        try {
            const ReadLock lock(*heap);
        } catch (const Error& error) {
            ::_exit(error.code() == errc::poisoned ? 0 : 2);
        }
        ::_exit(3);
    };
    const int status = status_of_child(path, roll_back, Refuses::when_told);
    if (WIFEXITED(status) && WEXITSTATUS(status) == no_filter) {
        BOOST_TEST_MESSAGE("the system has no seccomp filters");
        return;
    }
    BOOST_TEST(status == 0);
    BOOST_TEST(has_what_was_committed(path));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::txn::test
