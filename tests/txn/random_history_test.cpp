#include "txn/random_history.hpp"

#include <iostream>

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "txn/random_transactions.hpp"
#include "txn/txn_fixture.hpp"

BOOST_AUTO_TEST_SUITE(random_history)

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

RandomHistoryOptions options_for(std::uint64_t seed, bool persistent) {
    RandomHistoryOptions options;
    options.heap = small_heap();
    options.history.persistent = persistent;
    options.seed = static_cast<std::uint32_t>(seed);
    return options;
}

void run(const RandomHistoryOptions& options, int steps) {
    const ScratchDirectory directory;
    RandomHistory program(directory.path(), options);
    BOOST_CHECK_GT(program.run(steps), static_cast<std::uint64_t>(steps) / 2);
}

BOOST_AUTO_TEST_CASE(scopes_undo_and_redo_have_the_models_content) { run(options_for(taiyen::test::seed_of_run(), false), 100); }

BOOST_AUTO_TEST_CASE(a_persistent_history_survives_crashes_with_its_content) { run(options_for(taiyen::test::seed_of_run(), true), 150); }

BOOST_AUTO_TEST_CASE(so_it_does_with_a_second_copy) {
    RandomHistoryOptions options = options_for(taiyen::test::seed_of_run(), true);
    const ScratchDirectory directory;
    options.heap.data_file = directory / "heap.tyn.data";
    RandomHistory program(directory.path(), options);
    BOOST_CHECK_GT(program.run(60), 30U);
}

BOOST_AUTO_TEST_CASE(so_it_does_when_the_log_is_small_and_steps_are_larger_than_it) {
    RandomHistoryOptions options = options_for(taiyen::test::seed_of_run(), true);
    options.heap.log_capacity = std::size_t{64} << 10U;
    run(options, 60);
}

BOOST_AUTO_TEST_CASE(so_it_does_when_commits_do_not_wait_for_the_disk) {
    RandomHistoryOptions options = options_for(taiyen::test::seed_of_run(), true);
    options.heap.durability = Durability::async;
    run(options, 60);
}

BOOST_AUTO_TEST_CASE(so_it_does_when_every_range_is_declared) {
    RandomHistoryOptions options = options_for(taiyen::test::seed_of_run(), true);
    options.heap.capture = Capture::declared;
    options.large_bytes = 30'000;
    options.prepare = [](TransactionalHeap& heap, const std::function<void(void*, std::size_t)>& touch) {
        const store::HeapFile& file = HeapAccess::file(heap);
        if (file.image().mapped() < (std::size_t{4} << 20U)) heap.deallocate(heap.allocate(std::size_t{4} << 20U));
        touch(reinterpret_cast<void*>(file.ranges().durable), file.image().mapped());
    };
    run(options, 30);
}

BOOST_AUTO_TEST_CASE(the_audit_of_each_scope_finds_nothing_uncaptured) {
    RandomHistoryOptions options = options_for(taiyen::test::seed_of_run(), true);
    options.heap.audit = Audit::scope;
    run(options, 60);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
