#include <taiyen/undo/history.hpp>

#include <boost/test/unit_test.hpp>

#include "undo/undo_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo::test;
using Values = std::vector<int>;
using Names = std::vector<std::string>;

struct HistoryFixture : UndoFixture {
    HistoryFixture() { heap->attach_undo(); }
    Names names() { return names_of(heap->undo_steps()); }
};

BOOST_FIXTURE_TEST_SUITE(history_of_a_heap, HistoryFixture)

BOOST_AUTO_TEST_CASE(steps_are_undone_and_redone_in_order) {
    for (int i = 1; i <= 5; ++i) push(i, "push " + std::to_string(i));
    BOOST_TEST(heap->undo_name() == "push 5");
    BOOST_TEST(heap->redo_name() == "");
    BOOST_TEST(heap->undo());
    BOOST_TEST(heap->undo());
    BOOST_TEST(values() == (Values{1, 2, 3}));
    BOOST_TEST(heap->undo_name() == "push 3");
    BOOST_TEST(heap->redo_name() == "push 4");
    BOOST_TEST(heap->redo());
    BOOST_TEST(values() == (Values{1, 2, 3, 4}));
    while (heap->undo()) {}
    BOOST_TEST(values() == Values{});
    BOOST_TEST(heap->find<Numbers>("numbers") == nullptr);
    while (heap->redo()) {}
    BOOST_TEST(values() == (Values{1, 2, 3, 4, 5}));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(an_edit_after_undo_forgets_what_could_be_redone) {
    push(1, "one");
    push(2, "two");
    heap->undo();
    push(3, "three");
    BOOST_TEST(!heap->can_redo());
    BOOST_TEST(names() == (Names{"one", "three"}));
    BOOST_TEST(values() == (Values{1, 3}));
}

BOOST_AUTO_TEST_CASE(a_cancelled_scope_keeps_what_can_be_redone) {
    push(1, "one");
    push(2, "two");
    heap->undo();
    {
        UndoScope scope(*heap, "three");
        numbers().push_back(3);
        scope.cancel();
    }
    BOOST_TEST(heap->redo_name() == "two");
    BOOST_TEST(heap->redo());
    BOOST_TEST(values() == (Values{1, 2}));
}

BOOST_AUTO_TEST_CASE(a_scope_that_changed_nothing_is_a_step) {
    push(1, "one");
    { UndoScope scope(*heap, "nothing"); }
    BOOST_TEST(names() == (Names{"one", "nothing"}));
    BOOST_TEST(heap->undo());
    BOOST_TEST(values() == Values{1});
}

BOOST_AUTO_TEST_CASE(what_is_stored_outside_scopes_becomes_an_implicit_step) {
    push(1, "one");
    push(2, "two");
    heap->undo();
    numbers().push_back(10);
    numbers().push_back(11);
    BOOST_TEST(!heap->can_redo());
    push(3, "three");
    BOOST_TEST(names() == (Names{"one", "*", "three"}));
    heap->undo();
    heap->undo();
    BOOST_TEST(values() == Values{1});
    heap->redo();
    BOOST_TEST(values() == (Values{1, 10, 11}));
    heap->redo();
    BOOST_TEST(values() == (Values{1, 10, 11, 3}));
}

BOOST_AUTO_TEST_CASE(undo_takes_back_what_was_stored_outside_scopes_first) {
    push(1, "one");
    numbers().push_back(10);
    BOOST_TEST(heap->undo());
    BOOST_TEST(values() == Values{1});
    BOOST_TEST(heap->undo());
    BOOST_TEST(values() == Values{});
}

BOOST_AUTO_TEST_CASE(a_save_makes_an_implicit_step) {
    push(1, "one");
    numbers().push_back(10);
    heap->snapshot();
    numbers().push_back(11);
    BOOST_TEST(names() == (Names{"one", "*", "*"}));
}

BOOST_AUTO_TEST_CASE(all_operations_of_the_heap_can_be_undone) {
    push(1);
    const auto before = heap->stats();
    void* block = nullptr;
    {
        UndoScope scope(*heap);
        block = heap->allocate(100'000);
        block = heap->resize(block, 3'000'000);
        heap->construct<taiyen::string>("name", "a text that is longer than what a string keeps inside itself");
        heap->destroy<Numbers>("numbers");
    }
    const std::size_t size = heap->usable_size(block);
    BOOST_TEST(heap->undo());
    BOOST_TEST(heap->usable_size(block) == 0U);
    BOOST_TEST(values() == Values{1});
    BOOST_TEST(heap->stats().live_bytes == before.live_bytes);
    BOOST_TEST(heap->verify().ok());
    BOOST_TEST(heap->redo());
    BOOST_TEST(heap->usable_size(block) == size);
    BOOST_TEST(*heap->find<taiyen::string>("name") == "a text that is longer than what a string keeps inside itself");
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(growth_that_was_undone_grows_again) {
    push(1);
    {
        UndoScope scope(*heap);
        heap->construct<taiyen::vector<char>>("bytes").assign(6'000'000, 'x');
    }
    heap->undo();
    BOOST_TEST(heap->verify().ok());
    {
        UndoScope scope(*heap);
        heap->construct<taiyen::vector<char>>("other").assign(5'000'000, 'y');
    }
    BOOST_TEST(heap->verify().ok());
    heap->undo();
    heap->snapshot();
    reopen();
    BOOST_TEST(heap->verify().ok());
    heap->attach_undo();
    BOOST_TEST(heap->redo());
    BOOST_TEST(heap->find<taiyen::vector<char>>("other")->at(4'999'999) == 'y');
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(steps_of_one_run_are_undone_in_a_later_one) {
    for (int i = 1; i <= 5; ++i) push(i, "push " + std::to_string(i));
    heap->undo();
    heap->snapshot();
    push(9, "never saved");
    reopen();
    BOOST_TEST(values() == (Values{1, 2, 3, 4}));
    BOOST_TEST(!heap->can_undo());  // not attached yet
    heap->attach_undo();
    BOOST_TEST(heap->undo_name() == "push 4");
    BOOST_TEST(heap->redo_name() == "push 5");
    BOOST_TEST(heap->redo());
    BOOST_TEST(heap->undo());
    BOOST_TEST(heap->undo());
    BOOST_TEST(values() == (Values{1, 2, 3}));
    heap->snapshot();
    reopen();
    heap->attach_undo();
    while (heap->redo()) {}
    BOOST_TEST(values() == (Values{1, 2, 3, 4, 5}));
    while (heap->undo()) {}
    BOOST_TEST(values() == Values{});
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_save_without_attaching_ends_the_history) {
    push(1, "one");
    heap->snapshot();
    reopen();
    numbers().push_back(2);
    heap->snapshot();
    reopen();
    heap->attach_undo();
    BOOST_TEST(!heap->can_undo());
    push(3, "three");
    heap->undo();
    BOOST_TEST(values() == (Values{1, 2}));
}

BOOST_AUTO_TEST_CASE(opening_without_saving_keeps_the_history) {
    push(1, "one");
    heap->snapshot();
    reopen();
    numbers().push_back(2);
    reopen();
    heap->attach_undo();
    BOOST_TEST(heap->undo_name() == "one");
}

BOOST_AUTO_TEST_CASE(changes_that_no_step_knows_are_a_conflict_and_change_nothing) {
    PersistentOptions options = small_heap();
    options.capture = Capture::declared;
    heap.emplace(create_only, directory / "declared.tyn", options);
    int& number = heap->construct<int>("number", 1);
    heap->attach_undo();
    {
        UndoScope scope(*heap, "two");
        scope.touch(&number, sizeof number);
        number = 2;
    }
    number = 77;  // and told nobody
    BOOST_TEST(throws(errc::history_conflict, [&] { heap->undo(); }));
    BOOST_TEST(number == 77);
    BOOST_TEST(heap->undo_name() == "two");
    number = 2;
    BOOST_TEST(heap->undo());
    BOOST_TEST(number == 1);
}

BOOST_AUTO_TEST_CASE(a_history_is_not_attached_to_a_heap_that_was_changed_since_it_was_saved) {
    push(1, "one");
    heap->snapshot();
    reopen();
    numbers().back() = 77;
    BOOST_CHECK_EXCEPTION(heap->attach_undo(), Error, [](const Error& error) {
        const std::string text = error.what();
        return error.code() == errc::history_conflict && text.find("history conflict") == text.rfind("history conflict");
    });
    BOOST_TEST(values() == Values{77});
    heap->attach_undo();
    BOOST_TEST(!heap->can_undo());
    push(2, "two");
    BOOST_TEST(names() == Names{"two"});
}

BOOST_AUTO_TEST_CASE(a_history_that_ends_is_gone_after_the_next_save) {
    push(1, "one");
    heap->snapshot();
    heap->end_undo();
    BOOST_TEST(!heap->can_undo());
    push(2, "two");
    heap->snapshot();
    reopen();
    heap->attach_undo();
    BOOST_TEST(!heap->can_undo());
}

BOOST_AUTO_TEST_CASE(marks_lead_back_and_forth) {
    const UndoMark begin = heap->undo_mark();
    push(1);
    push(2);
    const UndoMark two = heap->undo_mark();
    push(3);
    push(4);
    const UndoMark four = heap->undo_mark();
    BOOST_TEST(heap->go_to(two));
    BOOST_TEST(values() == (Values{1, 2}));
    BOOST_TEST(heap->go_to(four));
    BOOST_TEST(values() == (Values{1, 2, 3, 4}));
    BOOST_TEST(heap->go_to(begin));
    BOOST_TEST(values() == Values{});
    heap->go_to(two);
    push(5);
    BOOST_TEST(!heap->go_to(four));
    BOOST_TEST(values() == (Values{1, 2, 5}));
}

BOOST_AUTO_TEST_CASE(squashed_steps_are_one) {
    push(1, "one");
    const UndoMark mark = heap->undo_mark();
    push(2, "two");
    push(3, "three");
    push(4, "four");
    heap->squash_undo(2, "three and four");
    BOOST_TEST(names() == (Names{"one", "two", "three and four"}));
    heap->undo();
    BOOST_TEST(values() == (Values{1, 2}));
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->squash_undo(2); }));
    heap->redo();
    heap->squash_undo(mark, "all");
    BOOST_TEST(names() == (Names{"one", "all"}));
    heap->undo();
    BOOST_TEST(values() == Values{1});
    heap->redo();
    BOOST_TEST(values() == (Values{1, 2, 3, 4}));
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->squash_undo(3); }));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(full_history, UndoFixture)

BOOST_AUTO_TEST_CASE(the_oldest_steps_of_a_circular_history_fall_off_whole) {
    heap->attach_undo({.bytes = 32 * 1024});
    for (int i = 0; i < 1000; ++i) push(i);
    const auto steps = heap->undo_steps();
    BOOST_TEST(steps.size() > 20U);
    BOOST_TEST(steps.size() < 500U);
    std::size_t undone = 0;
    while (heap->undo()) {
        ++undone;
        BOOST_TEST(values().size() == 1000 - undone);
    }
    BOOST_TEST(undone == steps.size());
    while (heap->redo()) {}
    BOOST_TEST(values().size() == 1000U);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_full_history_that_is_not_circular_ends_with_a_report) {
    const Silence silence;
    heap->attach_undo({.bytes = 32 * 1024, .circular = false});
    int pushed = 0;
    while (heap->has_undo()) push(pushed++);
    BOOST_TEST(pushed > 20);
    BOOST_TEST(values().size() == static_cast<std::size_t>(pushed));
    BOOST_TEST(!heap->can_undo());
    BOOST_REQUIRE(Silence::told.size() == 1U);
    BOOST_TEST((Silence::told[0] == errc::history_full));
    BOOST_TEST((heap->last_error()->code() == errc::history_full));
    push(1);
    heap->snapshot();
    BOOST_TEST(heap->verify().ok());
    heap->attach_undo({.bytes = 1024 * 1024});
    push(2, "goes on");
    BOOST_TEST(heap->undo_name() == "goes on");
}

BOOST_AUTO_TEST_CASE(a_step_larger_than_the_history_ends_it) {
    const Silence silence;
    heap->attach_undo({.bytes = 16 * 1024});
    push(1);
    {
        UndoScope scope(*heap);
        heap->construct<taiyen::vector<char>>("large").assign(100'000, 'x');
    }
    BOOST_TEST(!heap->has_undo());
    BOOST_TEST(heap->find<taiyen::vector<char>>("large")->size() == 100'000U);
    BOOST_TEST(Silence::told.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_history_gets_another_room_with_its_steps) {
    for (const bool persistent : {true, false}) {
        heap->end_undo();
        heap->attach_undo({.bytes = 32 * 1024, .persistent = persistent});
        {
            const UndoScope scope(*heap, "cleared");
            numbers().clear();
        }
        for (int i = 0; i < 1000; ++i) push(i);
        const std::size_t before = heap->undo_steps().size();
        heap->resize_undo(1024 * 1024);
        BOOST_TEST(heap->undo_steps().size() == before);
        for (int i = 1000; i < 2000; ++i) push(i);
        BOOST_TEST(heap->undo_steps().size() == before + 1000);
        const UndoMark mark = heap->undo_mark();
        heap->undo();
        heap->resize_undo(32 * 1024);
        const std::size_t left = heap->undo_steps().size();
        BOOST_TEST(left > 20U);
        BOOST_TEST(left < 500U);
        BOOST_TEST(heap->go_to(mark));
        BOOST_TEST(values().size() == 2000U);
        for (int i = 0; i < 10; ++i) heap->undo();
        if (persistent) {
            heap->snapshot();
            reopen();
            heap->attach_undo();
            BOOST_TEST(heap->undo_steps().size() == left);
        }
        while (heap->redo()) {}
        BOOST_TEST(values().size() == 2000U);
        std::size_t undone = 0;
        while (heap->undo()) ++undone;
        BOOST_TEST(undone == left);
        BOOST_TEST(values().size() == 2000 - undone);
        // The room is what it was resized to.
        while (heap->redo()) {}
        for (int i = 0; i < 1000; ++i) push(i);
        BOOST_TEST(heap->undo_steps().size() < 500U);
        BOOST_TEST(heap->verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(a_room_that_can_not_be_changes_nothing) {
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->resize_undo(1024 * 1024); }));
    heap->attach_undo({.bytes = 256 * 1024});
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->resize_undo(8 * 1024); }));
    BOOST_CHECK_EXCEPTION(heap->resize_undo(std::size_t{1} << 40U), HeapFull,
                          [&](const HeapFull& full) { return full.cause() == HeapFull::Cause::address_space && names_heap(full, heap->path()); });
    {
        const UndoScope scope(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { heap->resize_undo(1024 * 1024); }));
    }
    for (int i = 0; i < 500; ++i) push(i);
    const std::size_t steps = heap->undo_steps().size();
    while (heap->undo()) {}
    BOOST_TEST(throws(errc::history_full, [&] { heap->resize_undo(16 * 1024); }));
    BOOST_TEST(heap->undo_steps().size() == steps);
    while (heap->redo()) {}
    BOOST_TEST(values().size() == 500U);
}

BOOST_AUTO_TEST_CASE(a_history_in_memory_ends_with_the_process) {
    heap->attach_undo({.persistent = false});
    push(1, "one");
    heap->undo();
    heap->redo();
    heap->snapshot();
    BOOST_TEST(heap->can_undo());
    reopen();
    heap->attach_undo({.persistent = false});
    BOOST_TEST(!heap->can_undo());
    BOOST_TEST(values() == Values{1});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
