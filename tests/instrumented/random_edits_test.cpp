// The random edits of tests/undo in a program whose stores are announced by the compiler's hooks.
#include <iostream>
#include <random>

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "undo/random_edits.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo::test;

void run(RandomEditsOptions options, int steps) {
    options.heap.capture = Capture::stores;
    options.heap.capacity = std::size_t{32} << 20U;
    options.history.bytes = std::size_t{256} << 20U;
    options.seed = static_cast<std::uint32_t>(taiyen::test::seed_of_run());
    for (int i = 0; i < taiyen::test::campaign_factor(); ++i, options.seed += 7919) {
        const ScratchDirectory directory;
        RandomEdits program(directory / "heap.tyn", options);
        BOOST_CHECK_GT(program.run(steps), static_cast<std::uint64_t>(steps) / 2);
    }
}

BOOST_AUTO_TEST_SUITE(instrumented_edits)

BOOST_AUTO_TEST_CASE(what_was_undone_redone_cancelled_or_thrown_has_the_models_content) { run({}, 2500); }

BOOST_AUTO_TEST_CASE(the_audit_of_each_scope_finds_nothing_uncaptured) {
    RandomEditsOptions options;
    options.heap.audit = Audit::scope;
    run(options, 400);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
