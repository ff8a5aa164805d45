#include <taiyen/change/procedure.hpp>

#include <algorithm>

#include <boost/test/unit_test.hpp>

#include "undo/undo_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo::test;

using Matrix = taiyen::vector<std::int32_t>;

void add(ProcedureHeap& heap, const std::string& name, std::int32_t summand) {
    for (std::int32_t& value : *heap.find<Matrix>(name)) value += summand;
}

struct Procedures {
    Procedures() {
        register_procedure(
            "reverse", [](ProcedureHeap& heap, const std::string& name) { std::ranges::reverse(*heap.find<Matrix>(name)); },
            [](ProcedureHeap& heap, const std::string& name) { std::ranges::reverse(*heap.find<Matrix>(name)); });
        register_procedure("add", &add, [](ProcedureHeap& heap, const std::string& name, std::int32_t summand) { add(heap, name, -summand); });
        register_procedure(
            "zero", [](ProcedureHeap&, Matrix* matrix) { std::ranges::fill(*matrix, 0); },
            [](ProcedureHeap&, Matrix* matrix) { std::ranges::fill(*matrix, 1); });
        register_procedure(
            "grow", [](ProcedureHeap&, Matrix* matrix) { matrix->resize(matrix->size() * 2, 5); },
            [](ProcedureHeap&, Matrix* matrix) { matrix->resize(matrix->size() / 2); });
        register_procedure(
            "fail",
            [](ProcedureHeap&, Matrix* matrix) {
                std::ranges::fill(*matrix, 9);
                throw std::runtime_error("no");
            },
            [](ProcedureHeap&, Matrix*) {});
        register_procedure(
            "random",
            [](ProcedureHeap&, Matrix* matrix) {
                for (auto& value : *matrix) value += ++calls;
            },
            [](ProcedureHeap&, Matrix* matrix) {
                for (auto i = matrix->size(); i-- > 0;) (*matrix)[i] -= calls - static_cast<std::int32_t>(matrix->size() - 1 - i);
            });
    }
    static inline std::int32_t calls = 0;
};

struct ProcedureFixture : UndoFixture {
    ProcedureFixture() {
        static const Procedures registered;
        heap->attach_undo();
        UndoScope scope(*heap, "fill");
        Matrix& made = heap->construct<Matrix>("matrix");
        for (std::int32_t i = 0; i < 20'000; ++i) made.push_back(i);
        scope.commit();
    }
    Matrix& matrix() { return *heap->find<Matrix>("matrix"); }
    std::vector<std::int32_t> content() { return {matrix().begin(), matrix().end()}; }
    template <class... A>
    void call(std::string_view name, const A&... arguments) {
        UndoScope scope(*heap, name);
        scope.call(name, arguments...);
    }
    std::size_t last_bytes() { return heap->undo_steps().back().bytes; }
};

BOOST_FIXTURE_TEST_SUITE(procedures, ProcedureFixture)

BOOST_AUTO_TEST_CASE(a_call_is_remembered_instead_of_the_bytes_it_changes) {
    const auto before = content();
    call("reverse", "matrix");
    const auto after = content();
    BOOST_TEST((before != after));
    BOOST_TEST(last_bytes() < 1024U);
    BOOST_TEST(heap->undo());
    BOOST_TEST((content() == before));
    BOOST_TEST(heap->redo());
    BOOST_TEST((content() == after));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(edits_around_a_call_belong_to_the_step) {
    const auto before = content();
    {
        UndoScope scope(*heap, "mixed");
        matrix()[3] = -3;
        scope.call("add", std::string("matrix"), std::int32_t{7});
        matrix()[4] = -4;
        scope.call("reverse", "matrix");
        matrix()[5] = -5;
    }
    const auto after = content();
    BOOST_TEST(last_bytes() < 2048U);
    BOOST_TEST(heap->undo());
    BOOST_TEST((content() == before));
    BOOST_TEST(heap->redo());
    BOOST_TEST((content() == after));
}

BOOST_AUTO_TEST_CASE(a_cancelled_call_never_ran) {
    const auto before = content();
    {
        UndoScope scope(*heap);
        matrix()[3] = -3;
        scope.call("add", "matrix", std::int32_t{7});
        matrix()[4] = -4;
        scope.cancel();
    }
    BOOST_TEST((content() == before));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_procedure_that_throws_was_never_called) {
    UndoScope scope(*heap);
    matrix()[3] = -3;
    const auto before = content();
    BOOST_CHECK_THROW(scope.call("fail", &matrix()), std::runtime_error);
    BOOST_TEST((content() == before));
    scope.commit();
    BOOST_TEST(heap->undo());
    BOOST_TEST(matrix()[3] == 3);
}

BOOST_AUTO_TEST_CASE(a_procedure_that_allocates_is_recorded_as_bytes) {
    const auto before = content();
    call("grow", &matrix());
    const auto after = content();
    BOOST_TEST(last_bytes() > 10'000U);
    BOOST_TEST(heap->undo());
    BOOST_TEST((content() == before));
    BOOST_TEST(heap->redo());
    BOOST_TEST((content() == after));
}

BOOST_AUTO_TEST_CASE(an_inverse_that_does_not_restore_every_byte_is_refused) {
    call("zero", &matrix());
    const auto after = content();
    BOOST_TEST(throws(errc::history_conflict, [&] { heap->undo(); }));
    BOOST_TEST((content() == after));
    BOOST_TEST(heap->undo_name() == "zero");
}

BOOST_AUTO_TEST_CASE(a_procedure_that_is_not_deterministic_is_refused) {
    const auto before = content();
    call("random", &matrix());
    BOOST_TEST(heap->undo());
    BOOST_TEST((content() == before));
    BOOST_TEST(throws(errc::history_conflict, [&] { heap->redo(); }));
    BOOST_TEST((content() == before));
    BOOST_TEST(heap->redo_name() == "random");
}

BOOST_AUTO_TEST_CASE(missing_and_mistyped_procedures_change_nothing) {
    UndoScope scope(*heap);
    BOOST_TEST(throws(errc::missing_procedure, [&] { scope.call("unknown"); }));
    BOOST_TEST(throws(errc::type_mismatch, [&] { scope.call("add", "matrix", 7.5); }));
    std::int32_t outside = 0;
    BOOST_TEST(throws(errc::invalid_argument, [&] { scope.call("zero", &outside); }));
    BOOST_TEST(throws(errc::name_taken, [&] { register_procedure("add", &add, &add); }));
}

BOOST_AUTO_TEST_CASE(a_stored_call_runs_in_a_later_process_where_the_heap_is_opened_again) {
    const auto before = content();
    call("add", "matrix", std::int32_t{5});
    heap->snapshot();
    reopen();
    heap->attach_undo();
    BOOST_TEST(heap->undo());
    BOOST_TEST((content() == before));
}

BOOST_AUTO_TEST_CASE(a_changed_page_under_a_call_is_a_conflict) {
    call("reverse", "matrix");
    heap->snapshot();
    PersistentOptions options = small_heap();
    options.capture = Capture::declared;
    heap.reset();
    heap.emplace(open_only, path, options);
    heap->attach_undo();
    matrix()[100] = -1;  // and told nobody
    const auto before = content();
    BOOST_TEST(throws(errc::history_conflict, [&] { heap->undo(); }));
    BOOST_TEST((content() == before));
}

BOOST_AUTO_TEST_CASE(a_procedure_opens_no_scope) {
    static SnapshotHeap* in_use = nullptr;
    in_use = &*heap;
    static bool refused = false;
    static const bool once = [] {
        register_procedure(
            "nested", [](ProcedureHeap&) { refused = throws(errc::scope_open, [] { UndoScope scope(*in_use); }); }, [](ProcedureHeap&) {});
        return true;
    }();
    (void)once;
    call("nested");
    BOOST_TEST(refused);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
