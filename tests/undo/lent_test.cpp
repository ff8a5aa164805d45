// Durable memory on loan to objects outside the heap: what its free means after a commit, a rollback, an undo, a redo.

#include <memory>

#include <boost/test/unit_test.hpp>

#include "undo/undo_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo::test;

const char* const text = "a text that is longer than what a string keeps inside itself";

struct LentFixture : UndoFixture {
    using Texts = taiyen::vector<taiyen::string>;
    LentFixture() {
        UndoScope scope(*heap);
        Texts& made = heap->construct<Texts>("texts");
        for (int i = 0; i < 4; ++i) made.emplace_back(text);
    }
    Texts& texts() { return *heap->find<Texts>("texts"); }
    std::uint64_t blocks() { return heap->stats().live_blocks; }
    void is_whole() {
        BOOST_TEST(texts().size() == 4U);
        for (const taiyen::string& found : texts()) BOOST_TEST(found == text);
        BOOST_TEST(heap->verify().ok());
        BOOST_TEST(heap->owns(texts()[0].data()));
    }
    /// Fills what was freed wrongly with something else.
    void reuse() {
        UndoScope scope(*heap);
        auto& more = heap->construct<Texts>("more");
        for (int i = 0; i < 200; ++i) more.emplace_back("another text that is as long as the first one was, or somewhat longer");
        scope.commit();
    }
};

BOOST_FIXTURE_TEST_SUITE(lent, LentFixture)

BOOST_AUTO_TEST_CASE(a_string_moved_out_in_a_cancelled_scope_frees_nothing) {
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        {
            UndoScope scope(*heap);
            outside.emplace(std::move(texts()[0]));
            scope.cancel();
        }
        BOOST_TEST(*outside == text);
    }
    BOOST_TEST(blocks() == before);
    reuse();
    is_whole();
}

BOOST_AUTO_TEST_CASE(elements_of_a_vector_moved_out_in_a_cancelled_scope_are_not_destroyed) {
    {
        std::optional<Texts> outside;
        UndoScope scope(*heap);
        outside.emplace(std::move(texts()));
        scope.cancel();
    }
    reuse();
    is_whole();
}

BOOST_AUTO_TEST_CASE(what_is_freed_in_the_scope_that_lent_it_is_freed_at_once) {
    const std::uint64_t before = blocks();
    UndoScope scope(*heap);
    { const taiyen::string outside = std::move(texts()[0]); }
    BOOST_TEST(blocks() == before - 1);
    scope.cancel();
    BOOST_TEST(blocks() == before);
    is_whole();
}

BOOST_AUTO_TEST_CASE(without_a_history_a_committed_loan_is_freed_at_once) {
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        {
            UndoScope scope(*heap);
            outside.emplace(std::move(texts()[0]));
        }
    }
    BOOST_TEST(blocks() == before - 1);
}

BOOST_AUTO_TEST_CASE(with_a_history_a_committed_loan_is_freed_by_the_next_scope) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        UndoScope scope(*heap, "move out");
        outside.emplace(std::move(texts()[0]));
        scope.commit();
    }
    BOOST_TEST(blocks() == before);
    BOOST_TEST(names_of(heap->undo_steps()) == std::vector<std::string>{"move out"});
    {
        UndoScope scope(*heap, "taken back");
        BOOST_TEST(blocks() == before - 1);
        scope.cancel();
    }
    BOOST_TEST(blocks() == before);
    { UndoScope scope(*heap, "next"); }
    BOOST_TEST(blocks() == before - 1);
    heap->undo();
    heap->undo();
    is_whole();
}

BOOST_AUTO_TEST_CASE(a_loan_whose_step_is_undone_frees_nothing) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        {
            UndoScope scope(*heap);
            outside.emplace(std::move(texts()[0]));
        }
        heap->undo();
    }
    BOOST_TEST(blocks() == before);
    is_whole();
}

BOOST_AUTO_TEST_CASE(a_queued_free_does_nothing_after_the_step_is_undone) {
    heap->attach_undo();
    {
        std::optional<taiyen::string> outside;
        UndoScope scope(*heap);
        outside.emplace(std::move(texts()[0]));
        scope.commit();
    }
    heap->undo();
    reuse();
    is_whole();
}

BOOST_AUTO_TEST_CASE(a_loan_whose_step_is_redone_is_freed_again) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        {
            UndoScope scope(*heap);
            outside.emplace(std::move(texts()[0]));
        }
        heap->undo();
        heap->redo();
    }
    { UndoScope scope(*heap); }
    BOOST_TEST(blocks() == before - 1);
}

BOOST_AUTO_TEST_CASE(a_loan_made_outside_scopes_comes_back_with_its_implicit_step) {
    heap->attach_undo();
    {
        const taiyen::string outside = std::move(texts()[0]);
        heap->undo();
    }
    reuse();
    is_whole();
}

BOOST_AUTO_TEST_CASE(a_loan_made_between_scopes_has_nothing_to_do_with_the_scope_before_it) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    const auto move_out = [&] {
        { UndoScope scope(*heap, "before"); }
        return taiyen::string(std::move(texts()[0]));
    };
    { const taiyen::string outside = move_out(); }
    BOOST_TEST(blocks() == before - 1);  // at once, as what belongs to the step that is being made
    heap->undo();
    BOOST_TEST(blocks() == before);
    {
        const taiyen::string outside = move_out();
        heap->undo();
    }
    reuse();
    is_whole();
}

BOOST_AUTO_TEST_CASE(a_loan_of_an_inner_scope_that_was_cancelled_comes_back_alone) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> first;
        std::optional<taiyen::string> second;
        UndoScope outer(*heap);
        first.emplace(std::move(texts()[0]));
        {
            UndoScope inner(*heap);
            second.emplace(std::move(texts()[1]));
            inner.cancel();
        }
        outer.commit();
    }
    { UndoScope scope(*heap); }
    BOOST_TEST(blocks() == before - 1);
    BOOST_TEST(texts()[1] == text);
}

BOOST_AUTO_TEST_CASE(what_is_held_when_the_heap_is_saved_is_reclaimed_by_the_next_process) {
    const std::uint64_t before = blocks();
    for (const bool history : {false, true}) {
        BOOST_TEST_CONTEXT("history " << history) {
            if (history) heap->attach_undo();
            const std::uint64_t now = blocks();
            {
                std::optional<taiyen::string> outside;
                {
                    UndoScope scope(*heap, "move out");
                    outside.emplace(std::move(texts()[history ? 1 : 0]));
                }
                heap->snapshot();
                BOOST_TEST(heap->stats().held_blocks == 1U);
            }
            reopen();  // nothing that came after the save
            BOOST_TEST(blocks() == now);
            if (history) heap->attach_undo();
            BOOST_TEST(reclaim(*heap).freed_blocks == 1U);
            heap->snapshot();
            BOOST_TEST(blocks() == now - 1);
            BOOST_TEST(heap->stats().held_blocks == 0U);
            BOOST_TEST(heap->verify().ok());
            if (!history) continue;
            BOOST_TEST(names_of(heap->undo_steps()) == (std::vector<std::string>{"move out", "reclaim"}));
            heap->undo();
            heap->undo();
            BOOST_TEST(texts()[1] == text);
            heap->snapshot();
            reopen();
            heap->attach_undo();
            { UndoScope scope(*heap); }
            BOOST_TEST(texts()[1] == text);
        }
    }
    BOOST_TEST(blocks() == before - 1);
}

BOOST_AUTO_TEST_CASE(what_is_moved_out_between_scopes_is_held_from_its_implicit_step_on) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    {
        const taiyen::string outside = std::move(texts()[0]);
        BOOST_TEST(heap->can_undo());
        heap->snapshot();
        BOOST_TEST(heap->stats().held_blocks == 1U);
    }
    reopen();
    heap->attach_undo();
    BOOST_TEST(reclaim(*heap).freed_blocks == 1U);
    BOOST_TEST(blocks() == before - 1);
    heap->undo();
    heap->undo();
    is_whole();
}

BOOST_AUTO_TEST_CASE(a_held_block_is_freed_in_the_step_that_frees_it) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        UndoScope scope(*heap);
        outside.emplace(std::move(texts()[0]));
        scope.commit();
        BOOST_TEST(heap->stats().held_blocks == 1U);
    }
    { UndoScope scope(*heap); }
    BOOST_TEST(heap->stats().held_blocks == 0U);
    BOOST_TEST(blocks() == before - 1);
    heap->undo();
    heap->undo();
    heap->redo();
    heap->redo();
    BOOST_TEST(blocks() == before - 1);
    heap->undo();
    heap->undo();
    is_whole();
    heap->snapshot();
    heap->close();
    heap.reset();
    heap.emplace(open_only, path, small_heap());
    is_whole();
}

BOOST_AUTO_TEST_CASE(without_a_history_what_is_moved_out_and_in_between_saves_is_held_by_nobody) {
    {
        std::optional<taiyen::string> outside(std::move(texts()[0]));
        heap->snapshot();
        texts()[0] = std::move(*outside);
        heap->snapshot();
        BOOST_TEST(heap->stats().held_blocks == 0U);
    }
    reopen();
    BOOST_TEST(reclaim(*heap).freed_blocks == 0U);
    reuse();
    is_whole();
}

BOOST_AUTO_TEST_CASE(closing_with_something_moved_out_that_no_save_knows_keeps_its_bytes) {
    const Silence silence;
    auto outside = std::make_unique<Texts>(std::move(texts()));
    BOOST_TEST(throws(errc::still_in_use, [&] { heap->close(); }));
    for (const taiyen::string& found : *outside) BOOST_TEST(found == text);
    outside.reset();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
