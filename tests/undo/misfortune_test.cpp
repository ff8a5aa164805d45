// What goes wrong around scopes and steps: no memory, forks, procedures that meddle, changes that no step knows.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "base/sanitizers.hpp"
#include "store/heap_access.hpp"
#include "store/scarce_memory.hpp"
#include "undo/undo_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo::test;
using Values = std::vector<int>;

void negate_all(ProcedureHeap& heap) {
    for (int& value : *heap.find<UndoFixture::Numbers>("numbers")) value = ~value;
}

struct Registered {
    Registered() { register_procedure("negate all", &negate_all, &negate_all); }
};
const Registered registered;

struct MisfortuneFixture : UndoFixture {
    Silence silence;
    MisfortuneFixture() { heap->attach_undo(); }

    /// Calls `action` again and again, each time with one more allocation that succeeds, until none fails. Whatever it left behind must be the state before or after it.
    template <class F>
    void with_scarce_memory(F&& action, const Values& before, const Values& after) {
        for (std::int64_t k = 0;; ++k) {
            BOOST_REQUIRE(k < 1000);
            bool thrown = false;
            scarce_memory = {k, true, false, 0};
            try {
                action();
            } catch (const std::bad_alloc&) {
                thrown = true;
            }
            scarce_memory.armed = false;
            const bool fired = scarce_memory.failed != 0;
            BOOST_TEST_CONTEXT("allocation " << k) {
                BOOST_TEST(heap->has_undo());
                BOOST_TEST(values() == (thrown ? before : after));
                BOOST_TEST(heap->verify().ok());
            }
            if (!thrown) {
                if (!fired) return;
                BOOST_TEST(values() == after);
                return;
            }
        }
    }
};

BOOST_FIXTURE_TEST_SUITE(misfortune, MisfortuneFixture)

BOOST_AUTO_TEST_CASE(a_scope_that_can_not_be_kept_for_lack_of_memory_is_taken_back_whole) {
    push(1, "one");
    for (int nested = 0; nested < 2; ++nested) {
        const Values before = values();
        const Values expected = [&] {
            Values v = before;
            v.push_back(2);
            v.push_back(3);
            return v;
        }();
        for (std::int64_t k = 0; k < 200; ++k) {
            bool kept = false;
            {
                UndoScope scope(*heap, "two");
                numbers().push_back(2);
                if (nested != 0) {
                    UndoScope inner(*heap);
                    numbers().push_back(3);
                } else {
                    numbers().push_back(3);
                }
                scarce_memory = {k, true, true, 0};
                try {
                    scope.commit();
                    kept = true;
                } catch (const std::bad_alloc&) {}
                scarce_memory.armed = false;
                if (!kept) scope.cancel();
            }
            BOOST_TEST_CONTEXT("allocation " << k << (nested != 0 ? ", nested" : "")) {
                BOOST_REQUIRE(heap->has_undo());
                BOOST_TEST(values() == (kept ? expected : before));
                BOOST_TEST(heap->verify().ok());
                if (kept && heap->can_undo()) {
                    BOOST_TEST(heap->undo_name() == "two");
                    heap->undo();
                    BOOST_TEST(values() == before);
                    heap->redo();
                }
            }
            if (scarce_memory.failed == 0) break;
            if (kept) heap->undo();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_scope_whose_commit_failed_can_be_committed_again) {
    push(1, "one");
    for (std::int64_t k = 0; k < 200; ++k) {
        {
            UndoScope scope(*heap, "two");
            numbers().push_back(2);
            scarce_memory = {k, true, true, 0};
            bool kept = false;
            try {
                scope.commit();
                kept = true;
            } catch (const std::bad_alloc&) {}
            scarce_memory.armed = false;
            if (!kept) {
                numbers().push_back(3);
                scope.commit();
            }
        }
        BOOST_TEST_CONTEXT("allocation " << k) {
            BOOST_REQUIRE(heap->has_undo());
            BOOST_TEST(heap->undo());
            BOOST_TEST(values() == Values{1});
            BOOST_TEST(heap->verify().ok());
        }
        if (scarce_memory.failed == 0) break;
    }
}

BOOST_AUTO_TEST_CASE(lack_of_memory_at_the_begin_of_a_scope_changes_nothing) {
    push(1, "one");
    with_scarce_memory(
        [&] {
            UndoScope scope(*heap, "a step with a name that is long enough to need memory");
            {
                UndoScope inner(*heap);
                numbers().push_back(2);
                inner.commit();
            }
            scope.commit();
        },
        {1}, {1, 2});
}

BOOST_AUTO_TEST_CASE(lack_of_memory_in_undo_and_redo_changes_nothing) {
    push(1, "one");
    {
        UndoScope scope(*heap, "two");
        numbers().push_back(2);
        scope.call("negate all");
        for (int i = 0; i < 100; ++i) numbers().push_back(i);
        scope.call("negate all");
    }
    const Values after = values();
    for (int i = 0; i < 3; ++i) {
        with_scarce_memory([&] { heap->undo(); }, after, {1});
        with_scarce_memory([&] { heap->redo(); }, {1}, after);
    }
}

BOOST_AUTO_TEST_CASE(lack_of_memory_in_a_call_changes_nothing) {
    push(1, "one");
    for (int i = 2; i < 600; ++i) push(i);
    const Values before = values();
    Values after = before;
    for (int& value : after) value = ~value;
    with_scarce_memory(
        [&] {
            UndoScope scope(*heap, "call");
            scope.call("negate all");
            scope.commit();
        },
        before, after);
}

BOOST_AUTO_TEST_CASE(lack_of_memory_for_an_implicit_step_changes_nothing) {
    push(1, "one");
    for (std::int64_t k = 0; k < 200; ++k) {
        numbers().push_back(2);
        scarce_memory = {k, true, true, 0};
        try {
            (void)heap->can_undo();
        } catch (const std::bad_alloc&) {}
        scarce_memory.armed = false;
        BOOST_TEST_CONTEXT("allocation " << k) {
            BOOST_REQUIRE(heap->has_undo());
            BOOST_TEST(heap->undo());
            BOOST_TEST(values() == Values{1});
        }
        if (scarce_memory.failed == 0) break;
    }
}

BOOST_AUTO_TEST_CASE(lack_of_memory_at_the_first_scope_leaves_a_heap_that_captures_or_none) {
    for (std::int64_t k = 0; k < 200; ++k) {
        heap.reset();
        const auto here = directory / ("first" + std::to_string(k));
        heap.emplace(create_only, here, small_heap());
        numbers().push_back(1);
        scarce_memory = {k, true, false, 0};
        try {
            UndoScope scope(*heap);
        } catch (const std::bad_alloc&) {}
        scarce_memory.armed = false;
        {
            UndoScope scope(*heap);
            numbers().push_back(2);
            for (int i = 0; i < 100; ++i) heap->allocate(48);
            scope.cancel();
        }
        BOOST_TEST_CONTEXT("allocation " << k) {
            BOOST_TEST(values() == Values{1});
            BOOST_TEST(heap->verify().ok());
            BOOST_TEST(heap->stats().live_blocks <= 4U);
        }
        if (scarce_memory.failed == 0) break;
    }
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_scopes_without_doing_anything) {
    push(1, "one");
    const auto in_child = [&]() -> int {
        bool in = false;
        int result = 0;
        {
            UndoScope scope(*heap, "two");
            const pid_t child = ::fork();
            in = child == 0;
            if (!in) {
                ::waitpid(child, &result, 0);
                numbers().push_back(2);
            }
        }
        if (in) ::_exit(7);
        return result;
    };
    const int result = in_child();
    BOOST_TEST(WIFEXITED(result));
    BOOST_TEST(WEXITSTATUS(result) == 7);
    BOOST_TEST(values() == (Values{1, 2}));
    heap->undo();
    BOOST_TEST(values() == Values{1});
}

#if !defined(TAIYEN_ADDRESS_SANITIZER) && !defined(TAIYEN_THREAD_SANITIZER)
BOOST_AUTO_TEST_CASE(a_limit_on_the_process_data_refuses_an_undo_and_changes_nothing) {
    constexpr std::size_t bytes = std::size_t{6} << 20U;
    std::byte* block = nullptr;
    {
        UndoScope scope(*heap, "large");
        block = static_cast<std::byte*>(heap->allocate(bytes));
        std::memset(block, 1, bytes);
    }
    for (int i = 0; i < 70; ++i) UndoScope scope(*heap, "nothing");  // its pages are protected again
    for (int i = 0; i < 70; ++i) heap->undo();
    std::size_t data = 0;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (word == "VmData:") status >> data;
    rlimit before{};
    ::getrlimit(RLIMIT_DATA, &before);
    rlimit scarce = before;
    scarce.rlim_cur = (data + 2048) * 1024;
    ::setrlimit(RLIMIT_DATA, &scarce);
    bool refused = false;
    try {
        heap->undo();
    } catch (const HeapFull&) {
        refused = true;
    }
    ::setrlimit(RLIMIT_DATA, &before);
    BOOST_TEST(refused);
    BOOST_TEST((block[0] == std::byte{1} && block[bytes - 1] == std::byte{1}));
    BOOST_TEST(heap->undo_name() == "large");
    BOOST_TEST(heap->undo());
    BOOST_TEST(heap->usable_size(block) == 0U);
    BOOST_TEST(heap->verify().ok());
}
#endif

BOOST_AUTO_TEST_CASE(a_procedure_can_not_end_its_scope_save_or_close) {
    static UndoFixture* fixture = nullptr;
    static UndoScope* open = nullptr;
    static int refused = 0;
    fixture = this;
    const auto meddle = [](ProcedureHeap& procedure_heap) {
        negate_all(procedure_heap);
        const auto is_refused = [](auto&& action) { refused += throws(errc::scope_open, action) ? 1 : 0; };
        is_refused([&] { fixture->heap->snapshot(); });
        is_refused([&] { fixture->heap->close(); });
        is_refused([&] { fixture->heap->undo(); });
        if (open != nullptr) {
            is_refused([&] { open->commit(); });
            is_refused([&] { open->cancel(); });
            is_refused([&] { UndoScope inner(*fixture->heap); });
        }
    };
    register_procedure("meddle", meddle, meddle);
    for (int i = 0; i < 300; ++i) push(i);
    const Values before = values();
    {
        UndoScope scope(*heap, "call");
        open = &scope;
        scope.call("meddle");
    }
    open = nullptr;
    BOOST_TEST(refused == 6);
    const Values after = values();
    BOOST_TEST(heap->undo());
    BOOST_TEST(refused == 9);
    BOOST_TEST(values() == before);
    BOOST_TEST(heap->redo());
    BOOST_TEST(values() == after);
}

BOOST_AUTO_TEST_CASE(changes_made_before_attaching_are_not_mixed_with_stored_steps) {
    for (const std::size_t size : {24U, 40U, 256U, 1024U}) {
        BOOST_TEST_CONTEXT("blocks of " << size) {
            heap.reset();
            heap.emplace(create_only, directory / ("mixed" + std::to_string(size)), small_heap());
            heap->attach_undo();
            push(1, "one");
            {
                UndoScope scope(*heap, "two");
                for (std::size_t i = 0; i < 1024 / size; ++i) (void)heap->allocate(size, 8);
            }
            heap->snapshot();
            heap.reset();
            heap.emplace(open_only, directory / ("mixed" + std::to_string(size)), small_heap());
            std::vector<void*> blocks;
            for (std::size_t i = 0; i < 2 * 1024 / size; ++i) {
                blocks.push_back(heap->allocate(size, 8));
                std::memset(blocks.back(), 0x55, size);
            }
            try {
                heap->attach_undo();
                while (heap->undo()) {}
            } catch (const Error&) {}
            BOOST_TEST(heap->verify().ok());
            for (void* block : blocks) BOOST_TEST(heap->usable_size(block) >= size);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_resumed_history_keeps_its_size) {
    push(1, "one");
    heap->snapshot();
    reopen();
    UndoOptions small;
    small.bytes = 16 * 1024;
    static std::vector<std::string> told;
    told.clear();
    const ReportHandler before = set_report_handler(+[](const Incident& incident) noexcept { told.emplace_back(incident.text); });
    heap->attach_undo(small);
    set_report_handler(before);
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST(told[0].find("room for 268435456 bytes, not the 16384 that were asked for; end_undo() and attach_undo()") != std::string::npos,
               told[0]);
    for (int i = 0; i < 2000; ++i) push(i, "with some name");
    BOOST_TEST(heap->undo_steps().size() == 2001U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
