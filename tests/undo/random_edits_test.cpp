#include <algorithm>
#include <array>
#include <iostream>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "undo/random_edits.hpp"
#include "undo/undo_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo::test;

RandomEditsOptions options_for(std::uint64_t seed) {
    RandomEditsOptions options;
    options.heap.capacity = std::size_t{32} << 20U;
    options.history.bytes = std::size_t{256} << 20U;
    options.seed = static_cast<std::uint32_t>(seed);
    return options;
}

/// Each turn checks the content against the model and throws what differs. In the campaign many programs, with the seeds that follow.
void run(RandomEditsOptions options, int steps) {
    std::optional<WithCopyRecorder> copies;
    if (std::getenv("TAIYEN_COPY_RECORDER") != nullptr) copies.emplace();
    for (int i = 0; i < taiyen::test::campaign_factor(); ++i, options.seed += 7919) {
        const ScratchDirectory directory;
        RandomEdits program(directory / "heap.tyn", options);
        BOOST_CHECK_GT(program.run(steps), static_cast<std::uint64_t>(steps) / 2);
    }
}

BOOST_AUTO_TEST_SUITE(random_edits)

BOOST_AUTO_TEST_CASE(what_was_undone_redone_cancelled_or_thrown_has_the_models_content) {
    for (std::uint32_t i = 0; i < 2; ++i) run(options_for(taiyen::test::seed_of_run() + i), 2500);
}

BOOST_AUTO_TEST_CASE(a_small_circular_history_undoes_what_it_still_has) {
    RandomEditsOptions options = options_for(taiyen::test::seed_of_run());
    options.history.bytes = std::size_t{256} << 10U;
    options.keeps_all = false;
    run(options, 2500);
}

BOOST_AUTO_TEST_CASE(the_audit_of_each_scope_finds_nothing_uncaptured) {
    RandomEditsOptions options = options_for(taiyen::test::seed_of_run());
    options.heap.audit = Audit::scope;
    run(options, 400);
}

BOOST_AUTO_TEST_CASE(a_history_in_memory_does_the_same) {
    RandomEditsOptions options = options_for(taiyen::test::seed_of_run());
    options.history.persistent = false;
    options.reopens = false;
    run(options, 1500);
}

/// Plain data that the program announces, range by range, in nested scopes: the model is the block's bytes after each step.
BOOST_AUTO_TEST_CASE(ranges_that_were_declared_are_undone_redone_and_cancelled) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    std::mt19937_64 random(seed);
    const ScratchDirectory directory;
    PersistentOptions options = small_heap();
    options.capture = Capture::declared;
    options.audit = Audit::scope;
    std::optional<SnapshotHeap> heap(std::in_place, create_only, directory / "heap.tyn", options);
    constexpr std::size_t size = 64 * 1024;
    using Block = std::array<unsigned char, size>;
    Block* block = &heap->construct<Block>("block");
    heap->snapshot();
    UndoOptions history;
    history.bytes = std::size_t{64} << 20U;
    heap->attach_undo(history);
    std::vector<std::vector<unsigned char>> states{{block->begin(), block->end()}};
    std::size_t at = 0;
    const auto content = [&] { return std::vector<unsigned char>(block->begin(), block->end()); };
    const auto edit = [&](UndoScope& scope) {
        for (std::uint64_t writes = random() % 5; writes > 0; --writes) {
            const std::size_t where = random() % size;
            const std::size_t length = std::min<std::size_t>(size - where, random() % 4 == 0 ? random() % 9000 : 1 + random() % 60);
            scope.touch(block->data() + where, length);
            for (std::size_t i = 0; i < length; ++i) (*block)[where + i] = static_cast<unsigned char>(random() % 3);
        }
    };
    const int steps = 600 * taiyen::test::campaign_factor();
    for (int step = 0; step < steps; ++step) {
        const auto die = random() % 10;
        if (die < 5) {
            const bool cancel = random() % 4 == 0;
            UndoScope scope(*heap, "edit");
            edit(scope);
            if (random() % 3 == 0) {
                const auto before = content();
                UndoScope inner(*heap);
                edit(inner);
                if (random() % 2 == 0) {
                    inner.cancel();
                    BOOST_REQUIRE_MESSAGE(content() == before, "seed " << seed << " step " << step);
                }
            }
            if (cancel) {
                scope.cancel();
            } else {
                scope.commit();
                states.resize(at + 1);
                states.push_back(content());
                ++at;
            }
        } else if (die < 7) {
            const bool undone = heap->undo();
            if (undone) --at;
        } else if (die < 9) {
            const bool redone = heap->redo();
            if (redone) ++at;
        } else if (random() % 20 == 0) {
            heap->snapshot();
            heap.reset();
            heap.emplace(open_only, directory / "heap.tyn", options);
            block = heap->find<Block>("block");
            heap->attach_undo(history);
        }
        BOOST_REQUIRE_MESSAGE(content() == states[at], "seed " << seed << " step " << step);
        // A history as long as the model's, which would take too much memory in the campaign.
        if (states.size() > 300) {
            heap->end_undo();
            heap->snapshot();
            heap->attach_undo(history);
            states = {content()};
            at = 0;
        }
    }
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
