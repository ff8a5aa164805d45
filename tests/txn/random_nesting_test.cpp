// Transactions within transactions, to a depth of five, in a program whose writes are captured through pages, or declared.
#include "txn/random_nesting.hpp"

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "store/heap_access.hpp"
#include "txn/txn_fixture.hpp"

BOOST_AUTO_TEST_SUITE(random_nesting)

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

RandomNestingOptions nesting_options(Capture capture = Capture::pages) {
    RandomNestingOptions options;
    options.heap = small_heap(capture);
    options.seed = static_cast<std::uint32_t>(taiyen::test::seed_of_run());
    return options;
}
void run_nesting(const RandomNestingOptions& options, int steps) {
    RandomNesting program(options);
    BOOST_CHECK_GT(program.run(steps), 0U);
}

BOOST_AUTO_TEST_CASE(what_an_inner_rollback_leaves_has_the_models_content) { run_nesting(nesting_options(), 120); }

BOOST_AUTO_TEST_CASE(so_it_has_as_steps_that_are_undone_and_redone) {
    RandomNestingOptions options = nesting_options();
    options.history = true;
    run_nesting(options, 80);
}

BOOST_AUTO_TEST_CASE(so_it_has_when_each_inner_transaction_is_audited) {
    RandomNestingOptions options = nesting_options();
    options.heap.audit = Audit::scope;
    run_nesting(options, 40);
}

BOOST_AUTO_TEST_CASE(so_it_has_when_the_outermost_transaction_declares_the_whole_heap) {
    RandomNestingOptions options = nesting_options(Capture::declared);
    options.large_bytes = 30'000;
    options.prepare = [](TransactionalHeap& heap, Transaction& transaction) {
        const store::HeapFile& file = HeapAccess::file(heap);
        if (file.image().mapped() < (std::size_t{2} << 20U)) heap.deallocate(heap.allocate(std::size_t{2} << 20U));
        transaction.touch(reinterpret_cast<void*>(file.ranges().durable), file.image().mapped());
    };
    run_nesting(options, 30);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
