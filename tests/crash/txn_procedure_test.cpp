// A log that calls a procedure which the program that opens the heap doesn't have: refused, and nothing is touched.

#include <cstring>
#include <filesystem>
#include <map>

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <taiyen/change/procedure.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "file_bytes.hpp"
#include "store/heap_access.hpp"

namespace taiyen::crash {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t block_bytes = 3000;

void count_up(ProcedureHeap&, std::byte* bytes, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(static_cast<unsigned>(bytes[i]) + 1U);
}

PersistentOptions small_options() {
    PersistentOptions options;
    options.capacity = 1_MiB;
    options.log_capacity = 64_KiB;
    return options;
}

/// In a process of its own, which ends without closing the heap.
void commit_a_call(const fs::path& path) {
    register_procedure("known to one process", &count_up, &count_up);
    TransactionalHeap heap(create_only, path, small_options());
    heap::Engine& engine = HeapAccess::file(heap).engine();
    std::byte* block = nullptr;
    {
        Transaction transaction(heap);
        block = static_cast<std::byte*>(engine.allocate(block_bytes));
        std::memset(block, 1, block_bytes);
        transaction.commit();
    }
    Transaction transaction(heap);
    transaction.call("known to one process", block, block_bytes);
    transaction.commit();
    ::_exit(0);
}

std::map<std::string, std::string> files_in(const fs::path& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(directory)) files[entry.path().filename().string()] = taiyen::test::file_bytes(entry.path());
    return files;
}

bool is_missing_procedure(const Error& error) { return error.code() == errc::missing_procedure; }

BOOST_AUTO_TEST_SUITE(a_log_that_calls_a_procedure)

BOOST_AUTO_TEST_CASE(that_nobody_registered_is_refused_and_every_byte_stays) {
    const fs::path directory = fs::temp_directory_path() / ("taiyen-procedure-" + std::to_string(::getpid()));
    fs::create_directory(directory);
    const fs::path path = directory / "x.tyn";
    const ::pid_t child = ::fork();
    if (child == 0) {
        try {
            commit_a_call(path);
        } catch (...) {
            ::_exit(1);
        }
    }
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);

    const auto before = files_in(directory);
    BOOST_CHECK_EXCEPTION(TransactionalHeap(open_only, path, small_options()), Error, is_missing_procedure);
    BOOST_CHECK_EXCEPTION(TransactionalHeap(open_read_only, path, small_options()), Error, is_missing_procedure);
    BOOST_CHECK_EXCEPTION(ArchiveHeap(open_only, path, small_options()), Error, is_missing_procedure);
    BOOST_CHECK_EXCEPTION(SnapshotHeap(open_only, path, small_options()), Error, is_missing_procedure);
    BOOST_TEST((files_in(directory) == before));

    register_procedure("known to one process", &count_up, &count_up);
    {
        const TransactionalHeap heap(open_only, path, small_options());
        BOOST_TEST(heap.restoration().transactions_replayed == 2U);
    }
    fs::remove_all(directory);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
