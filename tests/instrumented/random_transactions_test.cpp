// The random transactions of tests/txn in a program whose stores are announced by the compiler's hooks.
#include "txn/random_transactions.hpp"

#include <iostream>

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

RandomTransactionsOptions options_for_stores() {
    RandomTransactionsOptions options;
    options.heap = small_heap();
    options.heap.capture = Capture::stores;
    options.seed = static_cast<std::uint32_t>(taiyen::test::seed_of_run());
    return options;
}

/// Each turn checks the content against the model and throws what differs.
void run(const RandomTransactionsOptions& options, int steps) {
    const ScratchDirectory directory;
    RandomTransactions program(directory.path(), options);
    BOOST_CHECK_GT(program.run(steps), static_cast<std::uint64_t>(steps) / 2);
}

BOOST_AUTO_TEST_SUITE(instrumented_transactions)

BOOST_AUTO_TEST_CASE(what_was_committed_rolled_back_or_replayed_has_the_models_content) { run(options_for_stores(), 250); }

BOOST_AUTO_TEST_CASE(so_it_has_when_commits_do_not_wait_for_the_disk) {
    RandomTransactionsOptions options = options_for_stores();
    options.heap.durability = Durability::async;
    options.heap.log_capacity = std::size_t{256} << 10U;
    run(options, 250);
}

BOOST_AUTO_TEST_CASE(the_audit_of_each_transaction_finds_nothing_uncaptured) {
    RandomTransactionsOptions options = options_for_stores();
    options.heap.audit = Audit::scope;
    run(options, 100);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
