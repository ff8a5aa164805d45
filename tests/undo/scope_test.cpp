#include <taiyen/undo/scope.hpp>

#include <array>
#include <cstring>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "store/heap_access.hpp"
#include "undo/undo_fixture.hpp"
#include "undo/undo_service.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo::test;
using Values = std::vector<int>;

struct Changed : std::exception {};

BOOST_FIXTURE_TEST_SUITE(undo_scope, UndoFixture)

BOOST_AUTO_TEST_CASE(a_scope_that_leaves_normally_keeps_its_changes) {
    push(1);
    push(2);
    BOOST_TEST(values() == (Values{1, 2}));
    BOOST_TEST(!heap->can_undo());  // no history is attached
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_cancelled_scope_never_ran) {
    push(1);
    {
        UndoScope scope(*heap, "two");
        numbers().push_back(2);
        heap->construct<Numbers>("more", std::size_t{1000});
        scope.cancel();
        BOOST_TEST(!scope.is_open());
    }
    BOOST_TEST(values() == Values{1});
    BOOST_TEST(heap->find<Numbers>("more") == nullptr);
    BOOST_TEST(heap->verify().ok());
    push(3);
    BOOST_TEST(values() == (Values{1, 3}));
}

BOOST_AUTO_TEST_CASE(a_scope_left_by_an_exception_never_ran) {
    push(1);
    const auto edit = [&] {
        UndoScope scope(*heap);
        for (int i = 0; i < 10'000; ++i) numbers().push_back(i);
        throw Changed();
    };
    BOOST_CHECK_THROW(edit(), Changed);
    BOOST_TEST(values() == Values{1});
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(undo_and_redo_keep_no_more_pages_open_than_scopes_do) {
    // Each step changes a page of its own.
    constexpr int steps = 600;
    constexpr std::uint64_t open_max = 300;  // what stays idle, what a step changes, and the pages of the engine
    heap->attach_undo();
    auto* const block = static_cast<std::byte*>(heap->allocate(steps * page_bytes));
    const auto& recorder = taiyen::undo::UndoService::find(HeapAccess::file(*heap))->recorder();
    for (int i = 0; i < steps; ++i) {
        UndoScope scope(*heap, "step");
        block[static_cast<std::size_t>(i) * page_bytes] = std::byte{1};
        scope.commit();
    }
    BOOST_TEST(recorder.counters().pages_hot < open_max);
    for (int i = 0; i < steps; ++i) BOOST_REQUIRE(heap->undo());
    BOOST_TEST(recorder.counters().pages_hot < open_max);
    for (int i = 0; i < steps; ++i) BOOST_REQUIRE(heap->redo());
    BOOST_TEST(recorder.counters().pages_hot < open_max);
}

BOOST_AUTO_TEST_CASE(a_scope_inside_a_destructor_that_runs_during_an_exception_is_kept) {
    struct AtExit {
        UndoFixture& fixture;
        ~AtExit() { fixture.push(7); }
    };
    try {
        const AtExit at_exit{*this};
        throw Changed();
    } catch (const Changed&) {}
    BOOST_TEST(values() == Values{7});
}

BOOST_AUTO_TEST_CASE(an_inner_scope_becomes_part_of_the_outer_one) {
    heap->attach_undo();
    {
        UndoScope outer(*heap, "outer");
        numbers().push_back(1);
        push(2, "inner");
        numbers().push_back(3);
    }
    BOOST_TEST(values() == (Values{1, 2, 3}));
    BOOST_TEST(names_of(heap->undo_steps()) == std::vector<std::string>{"outer"});
    BOOST_TEST(heap->undo());
    BOOST_TEST(values() == Values{});
    BOOST_TEST(heap->redo());
    BOOST_TEST(values() == (Values{1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(an_inner_scope_that_is_cancelled_takes_back_its_own_changes_only) {
    {
        UndoScope outer(*heap);
        numbers().push_back(1);
        {
            UndoScope middle(*heap);
            numbers().push_back(2);
            push(3);
            numbers().push_back(4);
            middle.cancel();
        }
        numbers().push_back(5);
    }
    BOOST_TEST(values() == (Values{1, 5}));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_range_that_was_touched_stays_so_until_its_scope_ends) {
    PersistentOptions options = small_heap();
    options.capture = Capture::declared;
    options.audit = Audit::scope;
    SnapshotHeap declared(create_only, directory / "declared.tyn", options);
    int* const values = declared.construct<std::array<int, 2>>("values").data();
    declared.snapshot();
    const auto are = [&](int first, int second) { return values[0] == first && values[1] == second; };
    declared.attach_undo();
    {
        UndoScope outer(declared, "outer");
        outer.touch(values, 2 * sizeof(int));
        values[0] = 1;
        {
            UndoScope inner(declared);
            values[0] = 2;
            inner.cancel();
        }
        BOOST_TEST(are(1, 0));
        values[1] = 3;
        {
            UndoScope inner(declared);
            values[0] = 4;
        }
        values[0] = 5;
    }
    BOOST_TEST(are(5, 3));
    BOOST_TEST(declared.undo());
    BOOST_TEST(are(0, 0));
    BOOST_TEST(declared.redo());
    BOOST_TEST(are(5, 3));
}

BOOST_AUTO_TEST_CASE(who_gets_the_place_of_a_block_that_a_cancelled_inner_scope_took_back_has_lent_nothing) {
    const char* const text = "a text that is longer than what a string keeps inside itself";
    heap->attach_undo();
    {
        UndoScope outer(*heap);
        auto& texts = heap->construct<taiyen::vector<taiyen::string>>("texts", std::size_t{2});
        const void* place = nullptr;
        std::size_t bytes = 0;
        {
            UndoScope inner(*heap);
            texts[0] = text;
            taiyen::string outside = std::move(texts[0]);
            place = outside.data();
            bytes = heap->usable_size(place);
            texts[1] = std::move(outside);
            inner.cancel();
        }
        const auto is_taken = [&] { return heap->usable_size(place) != 0; };
        for (int i = 0; i < 5000 && !is_taken(); ++i) std::memset(heap->allocate(bytes), 0, bytes);
        BOOST_TEST(is_taken());
    }
    BOOST_TEST(heap->stats().held_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(an_outer_scope_takes_back_what_inner_ones_kept) {
    push(0);
    {
        UndoScope outer(*heap);
        push(1);
        push(2);
        outer.cancel();
    }
    BOOST_TEST(values() == Values{0});
}

BOOST_AUTO_TEST_CASE(an_outer_scope_does_not_end_before_an_inner_one) {
    UndoScope outer(*heap);
    UndoScope inner(*heap);
    BOOST_TEST(throws(errc::scope_open, [&] { outer.commit(); }));
    BOOST_TEST(throws(errc::scope_open, [&] { outer.cancel(); }));
    inner.commit();
    outer.commit();
    BOOST_TEST(throws(errc::invalid_argument, [&] { outer.commit(); }));
}

BOOST_AUTO_TEST_CASE(saving_and_closing_within_a_scope_are_refused) {
    heap->attach_undo();
    {
        UndoScope scope(*heap);
        numbers().push_back(1);
        BOOST_TEST(throws(errc::scope_open, [&] { heap->snapshot(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->close(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->undo(); }));
        BOOST_TEST(heap->is_open());
    }
    heap->snapshot();
    BOOST_TEST(values() == Values{1});
}

BOOST_AUTO_TEST_CASE(what_does_not_lie_in_durable_memory_can_not_be_touched_and_its_last_byte_can) {
    push(1);
    const store::HeapFile& file = HeapAccess::file(*heap);
    auto* const begin = reinterpret_cast<std::byte*>(file.ranges().durable);
    std::byte* const end = begin + file.image().mapped();
    UndoScope scope(*heap);
    for (const auto& [from, bytes] : {std::pair(begin - 1, 1), std::pair(end + 1, 0), std::pair(end, 1), std::pair(end - 8, 9)})
        BOOST_TEST(throws(errc::invalid_argument, [&] { scope.touch(from, static_cast<std::size_t>(bytes)); }));
    scope.touch(begin, 1);
    scope.touch(end - 8, 8);
    scope.touch(end, 0);
    numbers().push_back(2);
    scope.commit();
    BOOST_TEST(values() == (Values{1, 2}));
}

BOOST_AUTO_TEST_CASE(what_is_refused_within_a_scope_is_named) {
    heap->attach_undo();
    const UndoScope scope(*heap);
    const auto is_refused_as = [&](const std::string& name, auto&& action) {
        try {
            action();
        } catch (const Error& error) {
            return error.code() == errc::scope_open && std::string(error.what()).find(name + ": a scope is open") != std::string::npos;
        }
        return false;
    };
    BOOST_TEST(is_refused_as("undo", [&] { heap->undo(); }));
    BOOST_TEST(is_refused_as("redo", [&] { heap->redo(); }));
    BOOST_TEST(is_refused_as("attach_undo", [&] { heap->attach_undo(); }));
    BOOST_TEST(is_refused_as("end_undo", [&] { heap->end_undo(); }));
    BOOST_TEST(is_refused_as("squash_undo", [&] { heap->squash_undo(0); }));
    BOOST_TEST(is_refused_as("squash_undo", [&] { heap->squash_undo(UndoMark()); }));
    BOOST_TEST(is_refused_as("go_to", [&] { heap->go_to(UndoMark()); }));
}

BOOST_AUTO_TEST_CASE(a_scope_outlives_its_heap_and_is_dead) {
    push(1);
    heap->snapshot();
    {
        UndoScope scope(*heap);
        numbers().push_back(2);
        heap.reset();
        BOOST_TEST(!scope.is_open());
        BOOST_TEST(throws(errc::closed, [&] { scope.commit(); }));
        scope.cancel();
    }
    heap.emplace(open_only, path, small_heap());
    BOOST_TEST(values() == Values{1});
}

BOOST_AUTO_TEST_CASE(another_threads_scope_is_refused) {
    UndoScope scope(*heap);
    bool refused = false;
    std::thread([&] { refused = throws(errc::scope_open, [&] { UndoScope other(*heap); }); }).join();
    BOOST_TEST(refused);
}

BOOST_AUTO_TEST_CASE(a_scope_that_an_ended_thread_left_open_is_not_taken_over_by_the_next_thread) {
    alignas(UndoScope) static std::byte memory[sizeof(UndoScope)];  // of a scope whose destructor nobody calls
    std::thread([&] { ::new (memory) UndoScope(*heap); }).join();
    for (int round = 0; round < 10; ++round) {
        bool refused = false;
        std::thread([&] { refused = throws(errc::scope_open, [&] { UndoScope other(*heap); }); }).join();
        BOOST_TEST(refused);
    }
}

BOOST_AUTO_TEST_CASE(scopes_of_two_heaps_nest) {
    SnapshotHeap other(create_only, directory / "other.tyn", small_heap());
    {
        UndoScope outer(*heap);
        numbers().push_back(1);
        UndoScope inner(other);
        other.find_or_construct<Numbers>("numbers").push_back(1);
        BOOST_TEST(throws(errc::scope_open, [&] { outer.commit(); }));
        inner.cancel();
    }
    BOOST_TEST(values() == Values{1});
    BOOST_TEST(other.find<Numbers>("numbers") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_step_that_can_not_be_kept_is_taken_back_and_told) {
    const WithCopyRecorder recorders;  // fails when asked to
    heap->attach_undo();
    push(1);
    {
        UndoScope scope(*heap, "fails");
        numbers().push_back(2);
        CopyRecorder::next_cut_fails = true;
    }
    BOOST_TEST(values() == Values{1});
    BOOST_REQUIRE(heap->last_error());
    BOOST_TEST((heap->last_error()->code() == errc::cancelled));
    {
        UndoScope scope(*heap, "fails first");
        numbers().push_back(3);
        CopyRecorder::next_cut_fails = true;
        BOOST_CHECK_THROW(scope.commit(), std::bad_alloc);
        BOOST_TEST(scope.is_open());
        scope.commit();
    }
    BOOST_TEST(values() == (Values{1, 3}));
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_parents_scope_alone) {
    heap->attach_undo();
    std::optional<UndoScope> scope(std::in_place, *heap, "parent");
    numbers().push_back(1);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool refused = throws(errc::forked, [&] { scope->commit(); });
        scope.reset();
        heap.reset();
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    scope.reset();
    BOOST_TEST(values() == Values{1});
    BOOST_TEST(heap->undo());
    BOOST_TEST(values() == Values{});
}

BOOST_AUTO_TEST_CASE(a_read_only_heap_has_no_scopes) {
    push(1);
    heap->snapshot();
    heap.reset();
    SnapshotHeap reader(open_read_only, path);
    BOOST_TEST(throws(errc::read_only, [&] { UndoScope scope(reader); }));
    BOOST_TEST(throws(errc::read_only, [&] { reader.attach_undo(); }));
    BOOST_TEST(!reader.can_undo());
    BOOST_TEST(!reader.undo());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
