// A data file is attached to a heap whose history has grown since the last save, and detached from one that has changed damaged pages.

#include <taiyen/taiyen.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "file_bytes.hpp"
#include "scratch_directory.hpp"
#include "store/scarce_memory.hpp"
#include "throws.hpp"

namespace {

using namespace taiyen;
using taiyen::test::file_bytes;
using taiyen::test::throws;

PersistentOptions little_heap() {
    PersistentOptions options;
    options.capacity = std::size_t{16} << 20U;
    options.verify = Verify::changes;
    return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_files)

BOOST_AUTO_TEST_CASE(one_is_attached_while_a_history_is_not_saved_yet) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    {
        SnapshotHeap heap(create_only, path, little_heap());
        heap.detach_data_file();
        heap.attach_undo();
        auto& numbers = heap.construct<taiyen::vector<int>>("numbers");
        {
            UndoScope scope(heap, "one");
            numbers.push_back(1);
            scope.commit();
        }
        heap.attach_data_file();
        heap.snapshot();
        BOOST_TEST(heap.verify().ok());
    }
    std::filesystem::remove(path);
    SnapshotHeap heap(open_only, path);
    heap.attach_undo();
    BOOST_TEST((heap.undo() && heap.find<taiyen::vector<int>>("numbers")->empty()));
}

BOOST_AUTO_TEST_CASE(one_that_alone_has_what_was_changed_stays) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    constexpr std::size_t bytes = std::size_t{1} << 20U;
    {
        SnapshotHeap heap(create_only, path, little_heap());
        std::memset(heap.construct<taiyen::vector<char>>("text", bytes).data(), 'A', bytes);
        heap.snapshot();
    }
    const std::size_t at = file_bytes(path).find(std::string(200'000, 'A')) + 100'017;
    {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(at));
        file.put('Z');
    }
    {
        SnapshotHeap heap(open_only, path, little_heap());
        auto& text = *heap.find<taiyen::vector<char>>("text");
        char* const rot = static_cast<char*>(std::memchr(text.data(), 'Z', bytes));
        BOOST_TEST_REQUIRE(rot != nullptr);
        *rot = 'B';
        BOOST_TEST(throws(errc::corrupt, [&] { heap.detach_data_file(); }));
        BOOST_TEST(heap.has_data_file());
        heap.snapshot();
        heap.detach_data_file();
    }
    ArchiveHeap heap(open_only, path, little_heap());
    BOOST_TEST((heap.verify().ok() && !heap.has_data_file()));
}

/// Runs `step` again and again, each time with one more allocation that succeeds, until none fails. Whatever it leaves behind, the heap goes on, or says that it can't, and has all that was committed when it is opened again.
template <class Step>
void expect_nothing_lost(const ScratchDirectory& dir, Step&& step) {
    const auto path = dir / "a.tyn";
    PersistentOptions options = little_heap();
    options.log_file = dir / "a.log";
    std::optional<TransactionalHeap> heap;
    heap.emplace(create_only, path, options);
    std::vector<int> expected;
    const auto push = [&](int value) {
        Transaction transaction(*heap);
        heap->find_or_construct<taiyen::vector<int>>("numbers").push_back(value);
        transaction.commit();
        expected.push_back(value);
    };
    for (int allowed = 0;; ++allowed) {
        BOOST_TEST_REQUIRE(allowed < 1000);
        push(allowed);
        scarce_memory = {allowed, true, false, 0};
        try {
            step(*heap, allowed);
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): what is left behind counts
        }
        scarce_memory.armed = false;
        const bool had_enough = scarce_memory.failed == 0;
        BOOST_TEST_CONTEXT("after " << allowed << " allocations") {
            try {
                push(-allowed);
            } catch (const Error& error) {
                BOOST_TEST((error.code() == errc::poisoned));
            }
            if (allowed % 5 == 0 || !heap->transaction_stats().last_error.empty() || had_enough) {
                heap.reset();
                heap.emplace(open_only, path, options);
            }
            const auto& found = *heap->find<taiyen::vector<int>>("numbers");
            BOOST_TEST(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
        }
        if (had_enough) break;
    }
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(memory_that_runs_out_while_the_log_is_replaced_takes_no_commit_along) {
    const ScratchDirectory dir;
    expect_nothing_lost(
        dir, [](TransactionalHeap& heap, int number) { heap.replace_log(std::size_t{64 + 4 * static_cast<unsigned>(number % 8)} << 10U); });
}

BOOST_AUTO_TEST_CASE(memory_that_runs_out_while_a_data_file_comes_and_goes_takes_no_commit_along) {
    const ScratchDirectory dir;
    expect_nothing_lost(dir, [](TransactionalHeap& heap, int) { heap.has_data_file() ? heap.detach_data_file() : heap.attach_data_file(); });
}

BOOST_AUTO_TEST_SUITE_END()
