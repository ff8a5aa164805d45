// Durable memory on loan to objects outside the heap: what its free means after a commit, a rollback, an undo, a redo.

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
        BOOST_TEST(heap->owns_durable(texts()[0].data()));
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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
