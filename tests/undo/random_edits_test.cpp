#include <iostream>

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"
#include "undo/random_edits.hpp"
#include "undo/undo_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo::test;

RandomEditsOptions options_for(std::uint32_t seed) {
    RandomEditsOptions options;
    options.heap.capacity = std::size_t{32} << 20U;
    options.history.bytes = std::size_t{256} << 20U;
    options.seed = seed;
    std::cout << "seed " << seed << '\n';
    return options;
}

/// Each turn checks the content against the model and throws what differs.
void run(const RandomEditsOptions& options, int steps) {
    std::optional<WithCopyRecorder> copies;
    if (std::getenv("TAIYEN_COPY_RECORDER") != nullptr) copies.emplace();
    const ScratchDirectory directory;
    RandomEdits program(directory / "heap.tyn", options);
    BOOST_CHECK_GT(program.run(steps), static_cast<std::uint64_t>(steps) / 2);
}

BOOST_AUTO_TEST_SUITE(random_edits)

BOOST_AUTO_TEST_CASE(what_was_undone_redone_cancelled_or_thrown_has_the_models_content) {
    for (std::uint32_t i = 0; i < 2; ++i) run(options_for(seed_or(std::random_device()()) + i), 2500);
}

BOOST_AUTO_TEST_CASE(a_small_circular_history_undoes_what_it_still_has) {
    RandomEditsOptions options = options_for(seed_or(std::random_device()()));
    options.history.bytes = std::size_t{256} << 10U;
    options.keeps_all = false;
    run(options, 2500);
}

BOOST_AUTO_TEST_CASE(the_audit_of_each_scope_finds_nothing_uncaptured) {
    RandomEditsOptions options = options_for(seed_or(std::random_device()()));
    options.heap.audit = Audit::scope;
    run(options, 400);
}

BOOST_AUTO_TEST_CASE(a_history_in_memory_does_the_same) {
    RandomEditsOptions options = options_for(seed_or(std::random_device()()));
    options.history.persistent = false;
    options.reopens = false;
    run(options, 1500);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
