#include "txn/random_transactions.hpp"

#include <iostream>

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "store/heap_access.hpp"
#include "txn/txn_fixture.hpp"

BOOST_AUTO_TEST_SUITE(random_transactions)

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

RandomTransactionsOptions options_for(std::uint64_t seed) {
    RandomTransactionsOptions options;
    options.heap = small_heap();
    options.seed = static_cast<std::uint32_t>(seed);
    return options;
}

/// Each turn checks the content against the model and throws what differs.
void run(const RandomTransactionsOptions& options, int steps) {
    const ScratchDirectory directory;
    RandomTransactions program(directory.path(), options);
    BOOST_CHECK_GT(program.run(steps), static_cast<std::uint64_t>(steps) / 2);
}

BOOST_AUTO_TEST_CASE(what_was_committed_rolled_back_or_replayed_has_the_models_content) { run(options_for(taiyen::test::seed_of_run()), 250); }

BOOST_AUTO_TEST_CASE(so_it_has_with_a_second_copy) {
    RandomTransactionsOptions options = options_for(taiyen::test::seed_of_run());
    const ScratchDirectory directory;
    options.heap.data_file = directory / "heap.tyn.data";
    RandomTransactions program(directory.path(), options);
    BOOST_CHECK_GT(program.run(120), 60U);
}

BOOST_AUTO_TEST_CASE(so_it_has_when_the_log_is_small_and_goes_round_often) {
    RandomTransactionsOptions options = options_for(taiyen::test::seed_of_run());
    options.heap.log_capacity = std::size_t{64} << 10U;
    run(options, 200);
}

BOOST_AUTO_TEST_CASE(so_it_has_when_it_may_keep_little_in_memory) {
    RandomTransactionsOptions options = options_for(taiyen::test::seed_of_run());
    options.heap.log_capacity = std::size_t{64} << 10U;
    options.heap.dirty_limit = std::size_t{64} << 10U;
    run(options, 200);
}

BOOST_AUTO_TEST_CASE(so_it_has_when_commits_do_not_wait_for_the_disk) {
    RandomTransactionsOptions options = options_for(taiyen::test::seed_of_run());
    options.heap.durability = Durability::async;
    options.heap.log_capacity = std::size_t{256} << 10U;
    run(options, 250);
}

BOOST_AUTO_TEST_CASE(so_it_has_when_every_range_is_declared) {
    RandomTransactionsOptions options = options_for(taiyen::test::seed_of_run());
    options.heap.capture = Capture::declared;
    options.large_bytes = 30'000;
    // The whole heap, with room to grow: what the containers of a document change can't be told in advance.
    options.prepare = [](TransactionalHeap& heap, Transaction& transaction) {
        const store::HeapFile& file = HeapAccess::file(heap);
        if (file.image().mapped() < (std::size_t{4} << 20U)) heap.deallocate(heap.allocate(std::size_t{4} << 20U));
        transaction.touch(reinterpret_cast<void*>(file.ranges().durable), file.image().mapped());
    };
    run(options, 60);
}

BOOST_AUTO_TEST_CASE(the_audit_of_each_transaction_finds_nothing_uncaptured) {
    RandomTransactionsOptions options = options_for(taiyen::test::seed_of_run());
    options.heap.audit = Audit::scope;
    run(options, 60);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
