// The nested transactions of tests/txn in a program whose stores are announced by the compiler's hooks.
#include "txn/random_nesting.hpp"

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

void run_nesting(Audit audit, int steps) {
    RandomNestingOptions options;
    options.heap = small_heap(Capture::stores);
    options.heap.audit = audit;
    options.seed = static_cast<std::uint32_t>(taiyen::test::seed_of_run());
    RandomNesting program(options);
    BOOST_CHECK_GT(program.run(steps), 0U);
}

BOOST_AUTO_TEST_SUITE(instrumented_nesting)

BOOST_AUTO_TEST_CASE(what_an_inner_rollback_leaves_has_the_models_content) { run_nesting(Audit::off, 120); }

BOOST_AUTO_TEST_CASE(the_audit_of_each_inner_transaction_finds_nothing_uncaptured) { run_nesting(Audit::scope, 40); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
