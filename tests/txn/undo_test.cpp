// Scopes and a history on a transactional heap.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

struct HistoryFixture : TransactionFixture {
    UndoOptions in_memory() {
        UndoOptions history;
        history.persistent = false;
        return history;
    }
    void step(int value, std::string_view name = {}) {
        UndoScope scope(*heap, name);
        numbers().push_back(value);
        scope.commit();
    }
    std::vector<std::string> names() {
        std::vector<std::string> found;
        for (const UndoStep& step : heap->undo_steps()) found.push_back(step.undone ? "(" + step.name + ")" : step.name);
        return found;
    }
    void has(const std::vector<int>& expected) { BOOST_TEST(values() == expected, boost::test_tools::per_element()); }
};
using Names = std::vector<std::string>;

BOOST_FIXTURE_TEST_SUITE(transactional_undo, HistoryFixture)

BOOST_AUTO_TEST_CASE(a_scope_is_a_transaction_that_can_be_taken_back) {
    heap->attach_undo(in_memory());
    const Serial before = heap->last_durable();
    step(1, "one");
    BOOST_TEST(heap->last_durable().value == before.value + 1);  // durable when commit() returns
    step(2, "two");
    BOOST_TEST(heap->undo_name() == "two");
    BOOST_TEST(heap->undo());
    has({1});
    BOOST_TEST(heap->last_durable().value == before.value + 3);  // so is an undo
    BOOST_TEST(heap->redo_name() == "two");
    BOOST_TEST(heap->redo());
    has({1, 2});
    BOOST_TEST(heap->undo());
    crash();
    has({1});
    BOOST_TEST(!heap->has_undo());
}

BOOST_AUTO_TEST_CASE(blocks_that_were_taken_back_are_given_to_nobody_who_then_shares_them) {
    heap->attach_undo(in_memory());
    std::vector<void*> small;
    {
        UndoScope scope(*heap);
        for (int i = 0; i < 400; ++i) small.push_back(heap->allocate(static_cast<std::size_t>(i % 2 == 0 ? 48 : 400)));
        scope.commit();
    }
    {
        UndoScope scope(*heap);
        for (int i = 0; i < 400; i += 3) heap->deallocate(small[static_cast<std::size_t>(i)]);  // what is free is known from here on
        scope.commit();
    }
    BOOST_TEST(heap->undo());
    BOOST_TEST(heap->undo());
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;
    {
        UndoScope scope(*heap);
        for (const std::size_t bytes : {20'000U, 48U, 400U}) {
            for (int i = 0; i < 60; ++i) {
                blocks.emplace_back(static_cast<unsigned char*>(heap->allocate(bytes)), bytes);
                std::memset(blocks.back().first, static_cast<int>(blocks.size()), bytes);
            }
        }
        scope.commit();
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const auto [block, bytes] = blocks[i];
        BOOST_TEST(std::all_of(block, block + bytes, [&](unsigned char byte) { return byte == i + 1; }), "block " << i);
    }
    BOOST_TEST(heap->verify().ok());
}

/// The log tells only what is not zero already: so pieces of the history's bytes begin and end anywhere in their pages.
BOOST_AUTO_TEST_CASE(pieces_of_a_step_that_lie_across_the_ends_of_pages_are_done_again_after_a_crash) {
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;
    replace(with);
    heap->attach_undo();
    constexpr std::size_t period = 29;  // of 20 bytes and 9 zeros
    constexpr std::size_t size = period * page_bytes;
    using Bytes = taiyen::vector<unsigned char>;
    {
        UndoScope scope(*heap, "made");
        heap->construct<Bytes>("bytes", size, static_cast<unsigned char>(0xff));
        scope.commit();  // durable when it returns
    }
    {
        UndoScope scope(*heap, "changed");
        Bytes& bytes = *heap->find<Bytes>("bytes");
        scope.touch(bytes.data(), size);
        for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i % period < 20 ? 1 + i / period % 200 : 0);
        scope.commit();
    }
    const Bytes& live = *heap->find<Bytes>("bytes");
    const std::vector<unsigned char> changed(live.begin(), live.end());
    for (int opening = 0; opening < 2; ++opening) {  // from the log; then from what the first one has saved
        crash();
        heap->attach_undo();
        BOOST_TEST(heap->undo_name() == "changed");
        BOOST_TEST(heap->undo());
        const Bytes& found = *heap->find<Bytes>("bytes");
        BOOST_TEST(std::ranges::all_of(found, [](unsigned char byte) { return byte == 0xff; }));
        BOOST_TEST(heap->redo());
        BOOST_TEST(std::ranges::equal(found, changed));
    }
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(without_a_history_a_scope_can_be_cancelled_and_leaves_no_step) {
    step(1);
    {
        UndoScope scope(*heap);
        numbers().push_back(2);
        scope.cancel();
        BOOST_TEST(!scope.is_open());
    }
    has({1});
    BOOST_TEST(!heap->undo());
    BOOST_TEST(heap->undo_steps().empty());
}

BOOST_AUTO_TEST_CASE(each_transaction_that_changes_something_is_a_step_and_forgets_what_could_be_redone) {
    heap->attach_undo(in_memory());
    push(1);
    push(2);
    BOOST_TEST(heap->undo());
    { Transaction(*heap).commit(); }  // nothing: no step
    {
        Transaction transaction(*heap);
        numbers().push_back(9);
    }
    BOOST_TEST(heap->can_redo());  // rolled back: the redo stays
    push(3);
    BOOST_TEST(!heap->can_redo());
    has({1, 3});
    BOOST_TEST((names() == Names{"", ""}));
    BOOST_TEST(!heap->undo_steps()[0].implicit);
}

BOOST_AUTO_TEST_CASE(a_scope_that_changes_nothing_is_a_step_all_the_same) {
    for (const bool persistent : {false, true}) {
        UndoOptions history;
        history.persistent = persistent;
        heap->attach_undo(history);
        { UndoScope scope(*heap, "nothing"); }
        BOOST_TEST((names() == Names{"nothing"}));
        BOOST_TEST(heap->undo());
        heap->end_undo();
    }
}

BOOST_AUTO_TEST_CASE(a_cancelled_inner_scope_takes_back_its_own_changes_only) {
    heap->attach_undo(in_memory());
    step(1, "one");
    {
        UndoScope outer(*heap, "outer");
        numbers().push_back(2);
        {
            UndoScope inner(*heap, "inner");
            numbers().push_back(3);
            inner.cancel();
        }
        has({1, 2});
        outer.commit();
    }
    {
        UndoScope outer(*heap, "another");
        Transaction inner(*heap);
        numbers().push_back(3);
    }
    has({1, 2});
    BOOST_TEST(!heap->last_error());
    BOOST_TEST((names() == Names{"one", "outer", "another"}));
    BOOST_TEST(heap->undo());
    has({1, 2});
    BOOST_TEST(heap->undo());
    has({1});
    BOOST_TEST(heap->redo());
    has({1, 2});
}

BOOST_AUTO_TEST_CASE(a_step_has_the_name_of_the_outermost_named_scope_that_was_kept) {
    heap->attach_undo(in_memory());
    const auto scope_within = [&](const char* name, bool keeps) {
        UndoScope scope(*heap, name);
        if (!keeps) scope.cancel();
    };
    {
        Transaction outer(*heap);
        numbers().push_back(2);
        scope_within("cancelled", false);
        scope_within("named", true);
        scope_within("later", true);
        scope_within("cancelled again", false);
        outer.commit();
    }
    {
        Transaction outer(*heap);
        {
            Transaction middle(*heap);
            scope_within("of the middle", true);
        }
        numbers().push_back(3);
        outer.commit();
    }
    BOOST_TEST((names() == Names{"named", ""}));
    {
        Transaction outer(*heap);  // in the end it was no scope, and changed nothing: no step
        scope_within("cancelled", false);
        outer.commit();
    }
    BOOST_TEST((names() == Names{"named", ""}));
}

BOOST_AUTO_TEST_CASE(an_inner_scope_that_is_open_keeps_the_outer_one_open) {
    UndoScope outer(*heap);
    {
        Transaction inner(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { outer.commit(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->undo(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->attach_undo(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->squash_undo(std::size_t{1}); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->go_to({}); }));
        inner.commit();
    }
    outer.commit();
    const ReadLock lock(*heap);
    BOOST_TEST(throws(errc::scope_open, [&] { UndoScope scope(*heap); }));
    BOOST_TEST(throws(errc::scope_open, [&] { heap->attach_undo(); }));
    BOOST_TEST(!heap->can_undo());  // looking is free
}

BOOST_AUTO_TEST_CASE(a_history_goes_on_after_a_crash_and_after_closing) {
    heap->attach_undo();
    step(1, "one");
    step(2, "two");
    step(3, "three");
    heap->undo();
    const UndoMark mark = heap->undo_mark();
    crash();
    has({1, 2});
    BOOST_TEST(!heap->has_undo());
    heap->attach_undo();
    BOOST_TEST((names() == Names{"one", "two", "(three)"}));
    BOOST_TEST(heap->redo());
    has({1, 2, 3});
    reopen();
    heap->attach_undo();
    BOOST_TEST(heap->go_to(mark));
    has({1, 2});
    heap->snapshot();
    crash();
    heap->attach_undo();
    BOOST_TEST((names() == Names{"one", "two", "(three)"}));
    BOOST_TEST(heap->undo());
    BOOST_TEST(heap->undo());
    BOOST_TEST(!heap->undo());
    has({});
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_changed_without_its_history_loses_it) {
    for (const int how : {0, 1, 2, 3}) {
        BOOST_TEST_CONTEXT("how " << how) {
            heap->attach_undo();
            step(1, "one");
            reopen();
            UndoOptions history;
            switch (how) {
                case 0: push(2); break;
                case 1:
                    push(2);
                    crash();
                    break;
                case 2:
                    push(2);
                    heap->snapshot();
                    crash();
                    break;
                default:  // another history, in memory
                    heap->attach_undo(in_memory());
                    push(2);
                    crash();
            }
            heap->attach_undo(history);
            BOOST_TEST(names().empty());
            step(3, "three");
            crash();
            heap->attach_undo();
            BOOST_TEST((names() == Names{"three"}));
            heap->end_undo();
            crash();
            heap->attach_undo();
            BOOST_TEST(names().empty());
            heap->end_undo();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_only_read_keeps_its_history) {
    heap->attach_undo();
    step(1, "one");
    reopen();
    heap->snapshot();
    reopen();
    heap->attach_undo();
    BOOST_TEST((names() == Names{"one"}));
}

BOOST_AUTO_TEST_CASE(a_reader_of_a_crashed_heap_sees_what_the_log_holds_and_leaves_the_history_to_the_next_writer) {
    for (const bool data : {false, true}) {
        PersistentOptions with = options;
        if (data) with.data_file = directory / "reader.data";
        replace(with);
        heap->attach_undo();
        step(1, "one");
        heap->snapshot();
        const std::filesystem::path left = directory / (data ? "read with data" : "read");
        std::filesystem::create_directory(left);
        {
            const auto saves = HeapAccess::file(*heap).files().hold_saves();
            for (int i = 2; i < 20; ++i) step(i, "more");
            for (const char* const suffix : {"", ".log"})
                std::filesystem::copy_file(path.string() + suffix, left / (std::string("heap.tyn") + suffix));
            if (data) std::filesystem::copy_file(with.data_file, left / "reader.data");
        }
        heap.reset();
        path = left / "heap.tyn";
        if (data) options.data_file = left / "reader.data";
        heap.emplace(open_read_only, path, options);
        BOOST_TEST(values().size() == 19U);
        BOOST_TEST(heap->restoration().transactions_replayed == 18U);
        reopen();
        heap->attach_undo();
        BOOST_TEST(names().size() == 19U);
        while (heap->undo()) {}
        has({});
    }
}

BOOST_AUTO_TEST_CASE(other_kinds_of_heaps_go_on_with_the_history) {
    heap->attach_undo();
    step(1, "one");
    crash();  // the log is replayed by the next opening
    heap->attach_undo();
    step(2, "two");
    heap.reset();
    {
        SnapshotHeap other(open_only, path, options);
        other.attach_undo();
        BOOST_TEST(other.undo_name() == "two");
        BOOST_TEST(other.undo());
        other.snapshot();
    }
    heap.emplace(open_only, path, options);
    heap->attach_undo();
    BOOST_TEST((names() == Names{"one", "(two)"}));
    has({1});
}

BOOST_AUTO_TEST_CASE(a_full_history_ends_with_a_report_and_the_change_stays) {
    const Silence silence;
    for (const bool persistent : {false, true}) {
        UndoOptions history;
        history.persistent = persistent;
        history.circular = false;
        history.bytes = std::size_t{16} << 10U;
        heap->attach_undo(history);
        int kept = 0;
        for (; heap->has_undo(); ++kept) {
            UndoScope scope(*heap);
            numbers().resize(numbers().size() + 100, 7);
        }
        BOOST_TEST(kept > 2);
        BOOST_TEST(!heap->undo());
        BOOST_TEST((heap->last_error() && heap->last_error()->code() == errc::history_full));
        BOOST_TEST(Silence::told.back() == errc::history_full);
        crash();
        heap->attach_undo();
        BOOST_TEST(names().empty());
        heap->end_undo();
        transact(*heap, [&] { numbers().clear(); });
    }
}

BOOST_AUTO_TEST_CASE(a_small_circular_history_loses_its_oldest_steps_whole) {
    UndoOptions history;
    history.bytes = std::size_t{16} << 10U;
    heap->attach_undo(history);
    for (int i = 0; i < 200; ++i) step(i, std::to_string(i));
    crash();
    heap->attach_undo();
    const Names left = names();
    BOOST_TEST(left.size() > 10U);
    BOOST_TEST(left.size() < 200U);
    BOOST_TEST(left.back() == "199");
    for (std::size_t i = 0; i < left.size(); ++i) BOOST_TEST(heap->undo());
    BOOST_TEST(!heap->undo());
    BOOST_TEST(values().size() == 200U - left.size());
}

BOOST_AUTO_TEST_CASE(a_step_larger_than_the_log_is_saved_with_its_history) {
    heap->attach_undo();
    step(1, "small");
    {
        UndoScope scope(*heap, "large");
        numbers().assign(400'000, 5);
        scope.commit();
    }
    crash();
    heap->attach_undo();
    BOOST_TEST((names() == Names{"small", "large"}));
    BOOST_TEST(heap->undo());
    has({1});
    crash();
    heap->attach_undo();
    BOOST_TEST(heap->redo());
    BOOST_TEST(values().size() == 400'000U);
}

BOOST_AUTO_TEST_CASE(a_scope_that_its_destructor_keeps_is_durable_soon) {
    {
        UndoScope scope(*heap);
        numbers().push_back(1);
    }
    const Serial kept = ReadLock(*heap).serial();
    while (heap->last_durable() < kept) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    crash();
    has({1});
}

BOOST_AUTO_TEST_CASE(procedures_are_undone_by_their_inverse) {
    static const bool registered = [] {
        const auto add = [](ProcedureHeap&, taiyen::vector<std::uint64_t>* matrix, std::uint64_t summand) {
            for (std::uint64_t& value : *matrix) value += summand;
        };
        register_procedure("txn undo add", add,
                           [add](ProcedureHeap& of, taiyen::vector<std::uint64_t>* matrix, std::uint64_t summand) { add(of, matrix, ~summand + 1); });
        return true;
    }();
    BOOST_TEST(registered);
    taiyen::vector<std::uint64_t>* matrix = nullptr;
    transact(*heap, [&] { (matrix = &heap->construct<taiyen::vector<std::uint64_t>>("matrix"))->assign(20'000, 3); });
    heap->attach_undo();
    {
        UndoScope scope(*heap, "add");
        (*matrix)[0] = 100;
        scope.call("txn undo add", matrix, std::uint64_t{7});
        (*matrix)[1] = 200;
        scope.commit();
    }
    BOOST_TEST(heap->undo_steps().back().bytes < 20'000U);  // the call, not 20,000 numbers twice
    const auto is = [&](std::uint64_t first, std::uint64_t second, std::uint64_t rest) {
        matrix = heap->find<taiyen::vector<std::uint64_t>>("matrix");
        BOOST_TEST((*matrix)[0] == first);
        BOOST_TEST((*matrix)[1] == second);
        BOOST_TEST(matrix->back() == rest);
    };
    is(107, 200, 10);
    BOOST_TEST(heap->undo());
    is(3, 3, 3);
    crash();
    heap->attach_undo();
    is(3, 3, 3);
    BOOST_TEST(heap->redo());
    is(107, 200, 10);
    crash();
    is(107, 200, 10);
}

BOOST_AUTO_TEST_CASE(what_a_step_lent_belongs_to_the_heap_again_while_it_is_undone) {
    heap->attach_undo(in_memory());
    const char* const text = "a text that is longer than what a string keeps inside itself";
    using Texts = taiyen::vector<taiyen::string>;
    transact(*heap, [&] { heap->construct<Texts>("texts").emplace_back(text); });
    const std::uint64_t blocks = heap->stats().live_blocks;
    auto outside = std::make_unique<std::optional<taiyen::string>>();
    {
        UndoScope scope(*heap, "out");
        outside->emplace(std::move(heap->find<Texts>("texts")->front()));
    }
    heap->undo();
    outside->reset();  // frees nothing
    transact(*heap, [] {});
    BOOST_TEST(heap->find<Texts>("texts")->front() == text);
    BOOST_TEST(heap->stats().live_blocks == blocks);
    BOOST_TEST(heap->verify().ok());
    {
        UndoScope scope(*heap, "out again");
        outside->emplace(std::move(heap->find<Texts>("texts")->front()));
    }
    heap->undo();
    heap->redo();
    outside->reset();
    transact(*heap, [] {});  // the free waited for it
    BOOST_TEST(heap->stats().live_blocks == blocks - 1);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(threads_make_undo_and_look_at_steps_at_the_same_time) {
    heap->attach_undo();
    std::array<std::thread, 3> threads;
    std::atomic<bool> done = false;
    std::atomic<int> failed = 0;
    for (int id = 0; id < 2; ++id) {
        threads[static_cast<std::size_t>(id)] = std::thread([&, id] {
            try {
                for (int i = 0; i < 60; ++i) {
                    {
                        UndoScope scope(*heap, std::to_string(id));
                        auto& mine = numbers();
                        mine.push_back(id);
                        mine.push_back(id);
                        scope.commit();
                    }
                    if (i % 3 == 0) heap->undo();
                    if (i % 7 == 0) heap->redo();
                    if (i % 25 == 0) heap->snapshot();
                }
            } catch (const std::exception& error) {
                BOOST_TEST_MESSAGE(error.what());
                ++failed;
            }
        });
    }
    threads[2] = std::thread([&] {
        while (!done) {
            try {
                const ReadLock lock(*heap);
                std::size_t undoable = 0;
                for (const UndoStep& step : heap->undo_steps()) undoable += step.undone ? 0 : 1;
                if (values().size() != 2 * undoable) ++failed;  // history and content are of one moment
                (void)heap->undo_name();
                (void)heap->can_redo();
            } catch (const std::exception&) {
                ++failed;
            }
        }
    });
    threads[0].join();
    threads[1].join();
    done = true;
    threads[2].join();
    BOOST_TEST(failed == 0);
    const std::vector<int> last = values();
    const Names steps = names();
    crash();
    has(last);
    heap->attach_undo();
    BOOST_TEST(names() == steps, boost::test_tools::per_element());
    while (heap->undo()) {}
    has({});
}

BOOST_AUTO_TEST_CASE(stores_outside_transactions_that_nobody_saw_are_a_conflict_and_nothing_is_changed) {
    PersistentOptions declared = small_heap(Capture::declared);
    replace(declared);
    int* number = nullptr;
    transact(*heap, [&](Transaction& transaction) {
        number = &heap->construct<int>("number", 1);
        transaction.touch(number, sizeof *number);
        *number = 1;
    });
    heap->attach_undo();
    {
        UndoScope scope(*heap);
        scope.touch(number, sizeof *number);
        *number = 2;
    }
    *number = 3;
    BOOST_TEST(throws(errc::history_conflict, [&] { heap->undo(); }));
    BOOST_TEST(heap->can_undo());
    *number = 2;
    BOOST_TEST(heap->undo());
    BOOST_TEST(*number == 1);
}

BOOST_AUTO_TEST_CASE(a_resumed_history_of_another_size_than_was_asked_for_is_told_and_one_of_the_same_is_not) {
    const auto attached = [&](std::size_t bytes) {
        reopen();
        const Silence silence;
        UndoOptions history;
        history.bytes = bytes;
        heap->attach_undo(history);
        return Silence::told;
    };
    BOOST_TEST(attached(1U << 20U).empty());
    step(1);
    BOOST_TEST(attached(1U << 20U).empty());
    BOOST_TEST(attached(0).empty());
    BOOST_TEST((attached(2U << 20U) == std::vector{errc::invalid_argument}));
    BOOST_TEST(heap->undo());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
