// The random moves of tests/transfer in a program whose stores are announced by the compiler's hooks.
#include "transfer/random_moves.hpp"

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"

namespace {

using namespace taiyen;

template <class Heap>
void run_moves(Audit audit, int turns) {
    PersistentOptions files;
    files.capacity = std::size_t{16} << 20U;
    files.log_capacity = std::size_t{1} << 20U;
    files.capture = Capture::stores;
    files.audit = audit;
    const ScratchDirectory directory;
    transfer::test::RandomMoves<Heap> moves(directory.path(), files, taiyen::test::seed_of_run());
    moves.run(turns);
    BOOST_TEST(moves.moved() != 0U);
}

BOOST_AUTO_TEST_SUITE(instrumented_moves)

BOOST_AUTO_TEST_CASE(steps_of_compact_are_undone_done_again_and_recovered_with_the_models_content) {
    run_moves<SnapshotHeap>(Audit::off, 100);
    run_moves<TransactionalHeap>(Audit::off, 100);
}

BOOST_AUTO_TEST_CASE(the_audit_of_each_step_of_compact_finds_nothing_uncaptured) {
    run_moves<SnapshotHeap>(Audit::scope, 30);
    run_moves<TransactionalHeap>(Audit::scope, 30);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
