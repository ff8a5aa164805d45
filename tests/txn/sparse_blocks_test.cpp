// Large blocks that nobody has written, in a transactional heap: nothing of them stands in the log, the history or on the disk.

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include <boost/test/unit_test.hpp>

#include "io/storage.hpp"
#include "txn/txn_fixture.hpp"

namespace sparse_blocks_test {
/// What a named object says of one.
struct Large {
    char* at = nullptr;
};
}  // namespace sparse_blocks_test

namespace {

using namespace taiyen;
using sparse_blocks_test::Large;
using namespace taiyen::txn::test;

constexpr std::size_t sparse_bytes = std::size_t{4} << 30U;

struct SparseFixture : TransactionFixture {
    SparseFixture() {
        PersistentOptions wide = small_heap();
        wide.capacity = std::size_t{16} << 30U;
        wide.dirty_limit = std::size_t{64} << 20U;
        wide.log_capacity = std::size_t{8} << 20U;
        replace(wide);
    }
    std::size_t disk_bytes() const {
        std::size_t bytes = 0;
        for (const char* suffix : {"", ".data", ".log"})
            if (const auto found = io::posix_storage().find(path.string() + suffix)) bytes += found->allocated_bytes;
        return bytes;
    }
    void make() {
        auto& block = heap->construct<Large>("block");
        block.at = static_cast<char*>(heap->allocate(sparse_bytes));
    }
    char* block() { return heap->find<Large>("block")->at; }
};
}  // namespace

BOOST_FIXTURE_TEST_SUITE(sparse_blocks, SparseFixture)

BOOST_AUTO_TEST_CASE(a_block_that_nobody_has_written_takes_little_log_and_no_disk) {
    heap.reset();
    const pid_t child = ::fork();  // it dies with the heap open
    if (child == 0) {
        heap.emplace(open_only, path, options);
        transact(*heap, [&] { make(); });
        const bool is_small = disk_bytes() < 32U << 20U;
        transact(*heap, [&] { std::strcpy(block() + sparse_bytes / 2, "in the middle"); });
        ::_exit(is_small ? 0 : 1);
    }
    int status = 0;
    BOOST_TEST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    heap.emplace(open_only, path, options);
    BOOST_TEST(heap->restoration().transactions_replayed == 2U);
    BOOST_TEST(std::string(block() + sparse_bytes / 2) == "in the middle");
    BOOST_TEST(block()[sparse_bytes - 1] == 0);
    heap->snapshot();
    BOOST_TEST(heap->dirty_bytes() < 1U << 20U);
    heap->close();
    BOOST_TEST(disk_bytes() < 32U << 20U);
}

BOOST_AUTO_TEST_CASE(a_history_takes_such_a_block_back_and_gives_it_again) {
    for (const bool persistent : {false, true}) {
        UndoOptions history;
        history.persistent = persistent;
        heap->attach_undo(history);
        char before = 0;
        {
            UndoScope scope(*heap, "large");
            make();
            scope.commit();
            before = block()[sparse_bytes / 2];  // what a block that was freed there held
        }
        {
            UndoScope scope(*heap, "written");
            std::strcpy(block() + sparse_bytes / 2, persistent ? "once more" : "in the middle");
            scope.commit();
        }
        BOOST_TEST(heap->undo());
        BOOST_TEST(block()[sparse_bytes / 2] == before);
        BOOST_TEST(heap->undo());
        BOOST_TEST(heap->find<Large>("block") == nullptr);
        BOOST_TEST(heap->redo());
        BOOST_TEST(heap->redo());
        BOOST_TEST(std::string(block() + sparse_bytes / 2) == (persistent ? "once more" : "in the middle"));
        BOOST_TEST(disk_bytes() < 64U << 20U);
        heap->end_undo();
        transact(*heap, [&] {
            heap->deallocate(block());
            heap->destroy<Large>("block");
        });
    }
}

BOOST_AUTO_TEST_SUITE_END()
