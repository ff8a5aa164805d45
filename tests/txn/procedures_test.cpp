#include <taiyen/change/procedure.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include <boost/test/unit_test.hpp>

#include "change/procedures.hpp"
#include "file_bytes.hpp"
#include "heap/core.hpp"
#include "shape/encoding.hpp"
#include "throws.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

using Matrix = taiyen::vector<std::int32_t>;

std::int32_t drift = 0;

struct Procedures {
    Procedures() {
        const auto add = [](ProcedureHeap& heap, const std::string& name, std::int32_t summand) {
            for (std::int32_t& value : *heap.find<Matrix>(name)) value += summand + drift;
        };
        register_procedure("txn add", add, [add](ProcedureHeap& heap, const std::string& name, std::int32_t summand) { add(heap, name, -summand); });
        register_procedure(
            "txn grow", [](ProcedureHeap&, Matrix* matrix) { matrix->resize(matrix->size() + 10, 5); },
            [](ProcedureHeap&, Matrix* matrix) { matrix->resize(matrix->size() - 10); });
        const auto fail = [](ProcedureHeap&, Matrix* matrix) {
            std::ranges::fill(*matrix, 9);
            throw std::runtime_error("no");
        };
        register_procedure("txn fail", fail, fail);
        const auto look = [](ProcedureHeap& heap, const std::string& name) {
            if (heap.find<Matrix>(name)->empty()) throw std::runtime_error("empty");
        };
        register_procedure("txn look", look, look);
    }
};

struct ProcedureFixture : TransactionFixture {
    ProcedureFixture() {
        static const Procedures registered;
        transact(*heap, [&] {
            Matrix& made = heap->construct<Matrix>("matrix");
            for (std::int32_t i = 0; i < 20'000; ++i) made.push_back(i);
        });
        heap->snapshot();
    }
    Matrix& matrix() { return *heap->find<Matrix>("matrix"); }
    template <class... A>
    Serial call(std::string_view name, const A&... arguments) {
        Transaction transaction(*heap);
        transaction.call(name, arguments...);
        return transaction.commit();
    }
    /// No snapshot can come before the crash while it is held.
    auto hold() { return HeapAccess::file(*heap).files().hold_saves(); }
};

BOOST_FIXTURE_TEST_SUITE(procedures, ProcedureFixture)

BOOST_AUTO_TEST_CASE(a_call_is_done_again_by_recovery) {
    std::filesystem::path left = directory / "left";
    std::filesystem::create_directory(left);
    {
        auto saves = hold();
        {
            Transaction transaction(*heap);
            matrix()[0] = 1000;
            transaction.call("txn add", "matrix", 7);
            matrix()[1] = 2000;
            transaction.commit();
        }
        for (const char* const file : {"heap.tyn", "heap.tyn.log"}) std::filesystem::copy_file(directory / file, left / file);
    }
    heap.reset();
    heap.emplace(open_only, left / "heap.tyn", options);
    BOOST_TEST(heap->restoration().transactions_replayed == 1U);
    BOOST_TEST(matrix()[0] == 1007);
    BOOST_TEST(matrix()[1] == 2000);
    BOOST_TEST(matrix()[19'999] == 19'999 + 7);
    BOOST_TEST(heap->verify().ok());
}

/// The heap learns the shape behind the call, and recovery makes the call before.
BOOST_AUTO_TEST_CASE(a_call_behind_an_accepted_layout_is_done_again) {
    const std::filesystem::path left = directory / "left";
    std::filesystem::create_directory(left);
    Shape other = shape_of<Matrix>();
    for (ShapeNode& node : other.nodes)
        if (node.kind == ShapeKind::signed_integer) node.kind = ShapeKind::unsigned_integer;
    transact(*heap, [&] {
        ++matrix()[0];
        heap->core()->engine().set_shape(stl::fingerprint<Matrix>(), shape::encode(other));
    });
    reopen();
    BOOST_TEST(throws(errc::type_mismatch, [&] { matrix(); }));
    BOOST_TEST(throws(errc::type_mismatch, [&] { call("txn add", "matrix", 7); }));
    heap->find<Matrix>("matrix", accept_layout);
    {
        auto saves = hold();
        call("txn add", "matrix", 7);
        for (const char* const file : {"heap.tyn", "heap.tyn.log"}) std::filesystem::copy_file(directory / file, left / file);
    }
    heap.reset();
    heap.emplace(open_only, left / "heap.tyn", options);
    BOOST_TEST(heap->restoration().transactions_replayed == 1U);
    BOOST_TEST(matrix()[1] == 8);
}

BOOST_AUTO_TEST_CASE(calls_are_done_again_one_after_the_other_also_where_the_data_file_was_lost) {
    for (const bool lost : {false, true}) {
        PersistentOptions with = options;
        if (lost) with.data_file = directory / "lost.data";
        replace(with);
        transact(*heap, [&] { heap->construct<Matrix>("matrix").assign(20'000, 1); });
        heap->snapshot();
        const std::filesystem::path left = directory / (lost ? "left alone" : "left");
        std::filesystem::create_directory(left);
        {
            auto saves = hold();
            Transaction transaction(*heap);
            transaction.call("txn add", "matrix", 7);
            transaction.call("txn add", "matrix", 5);
            transaction.commit();
            for (const char* const suffix : {"", ".log"})
                std::filesystem::copy_file(path.string() + suffix, left / (std::string("heap.tyn") + suffix));
        }
        heap.reset();
        if (lost) {
            std::filesystem::remove(with.data_file);
            with.data_file.clear();
            with.detach_data_file = true;
        }
        heap.emplace(open_only, left / "heap.tyn", with);
        BOOST_TEST(heap->restoration().transactions_replayed == 1U);
        BOOST_TEST(std::ranges::count(matrix(), 13) == 20'000);
        BOOST_TEST(heap->verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(a_call_that_gives_other_bytes_stops_recovery_and_touches_nothing) {
    std::filesystem::path left = directory / "left";
    std::filesystem::create_directory(left);
    {
        auto saves = hold();
        call("txn add", "matrix", 7);
        for (const char* const file : {"heap.tyn", "heap.tyn.log"}) std::filesystem::copy_file(directory / file, left / file);
    }
    heap.reset();
    drift = 1;
    BOOST_TEST(throws(errc::mismatch, [&] { TransactionalHeap refused(open_only, left / "heap.tyn", options); }));
    drift = 0;
    heap.emplace(open_only, left / "heap.tyn", options);
    BOOST_TEST(matrix()[1] == 8);
}

BOOST_AUTO_TEST_CASE(after_a_call_the_files_are_brought_up_to_date_so_that_recovery_needs_it_not_for_long) {
    const Serial serial = call("txn add", "matrix", 7);
    heap->snapshot();
    BOOST_TEST((HeapAccess::file(*heap).files().durable_serial() == serial));
    crash();
    BOOST_TEST(heap->restoration().transactions_replayed == 0U);
    BOOST_TEST(matrix()[1] == 8);
}

BOOST_AUTO_TEST_CASE(a_call_that_is_rolled_back_never_was) {
    {
        Transaction transaction(*heap);
        matrix()[0] = 1000;
        transaction.call("txn add", "matrix", 7);
        matrix()[1] = 2000;
        transaction.rollback();
    }
    BOOST_TEST(matrix()[0] == 0);
    BOOST_TEST(matrix()[1] == 1);
    {
        Transaction transaction(*heap);
        matrix()[0] = 1000;
        BOOST_CHECK_THROW(transaction.call("txn fail", &matrix()), std::runtime_error);
        BOOST_TEST(matrix()[5] == 5);
        transaction.commit();
    }
    crash();
    BOOST_TEST(matrix()[0] == 1000);
    BOOST_TEST(matrix()[5] == 5);
}

BOOST_AUTO_TEST_CASE(a_call_that_allocates_is_kept_as_bytes) {
    auto saves = hold();
    call("txn grow", &matrix());
    saves.unlock();
    crash();
    BOOST_TEST(matrix().size() == 20'010U);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_call_that_changes_nothing_is_no_part_of_its_transaction) {
    {
        Transaction transaction(*heap);
        transaction.call("txn look", "matrix");
        matrix()[0] = 1000;
        transaction.commit();
    }
    crash();
    BOOST_TEST(matrix()[0] == 1000);
    call("txn look", "matrix");
    crash();
    BOOST_TEST(matrix()[0] == 1000);
}

BOOST_AUTO_TEST_CASE(a_procedure_opens_no_transaction_and_does_not_end_the_one_that_called_it) {
    static TransactionalHeap* open_heap;
    static Transaction* caller;
    static std::vector<errc> codes;
    open_heap = &*heap;
    codes.clear();
    const auto tries = [](ProcedureHeap& inside, std::int32_t value) {
        const auto keep_code = [](auto&& action) {
            try {
                action();
            } catch (const Error& error) {
                codes.push_back(static_cast<errc>(error.code().value()));
            }
        };
        keep_code([] { Transaction inner(*open_heap); });
        keep_code([] { caller->commit(); });
        (*inside.find<Matrix>("matrix"))[0] = value;
    };
    register_procedure("txn tries", tries, tries);
    {
        Transaction transaction(*heap);
        caller = &transaction;
        transaction.call("txn tries", 1000);
        transaction.commit();
    }
    BOOST_TEST((codes == std::vector{errc::scope_open, errc::scope_open}));
    heap->snapshot();
    crash();
    BOOST_TEST(matrix()[0] == 1000);
}

BOOST_AUTO_TEST_CASE(a_procedure_that_is_refused_another_call_and_goes_on_is_done_again_by_recovery) {
    static Transaction* caller;
    static bool refused;
    // Each value changes by as much as the page tells: what is done twice shows.
    const auto add = [](ProcedureHeap& inside, std::int32_t summand) {
        Matrix& values = *inside.find<Matrix>("matrix");
        for (std::size_t i = 0; i < values.size() / 2; ++i) values[i] += summand;
        if (caller != nullptr) refused = throws(errc::scope_open, [] { caller->call("txn add", "matrix", 1); });
        for (std::size_t i = values.size() / 2; i < values.size(); ++i) values[i] += summand;
    };
    register_procedure("txn calls", add, [add](ProcedureHeap& inside, std::int32_t summand) { add(inside, -summand); });
    refused = false;
    {
        Transaction transaction(*heap);
        caller = &transaction;
        transaction.call("txn calls", 7);
        transaction.commit();
    }
    caller = nullptr;
    BOOST_TEST(refused);
    crash();
    BOOST_TEST(matrix()[0] == 7);
    BOOST_TEST(matrix()[19'999] == 19'999 + 7);
}

BOOST_AUTO_TEST_CASE(what_was_touched_before_a_call_is_captured_behind_it) {
    PersistentOptions declared = options;
    declared.capture = Capture::declared;
    replace(declared);
    const auto touch_all = [&](Transaction& transaction) {
        const heap::CoreRanges& ranges = HeapAccess::file(*heap).ranges();
        transaction.touch(reinterpret_cast<void*>(ranges.durable), HeapAccess::file(*heap).image().mapped());
    };
    {
        Transaction transaction(*heap);
        heap->deallocate(heap->allocate(std::size_t{4} << 20U));  // all that is needed is mapped
        touch_all(transaction);
        heap->construct<Matrix>("matrix").assign(20'000, 1);
        transaction.commit();
    }
    for (const bool fails : {false, true}) {
        Matrix& values = matrix();
        Transaction transaction(*heap);
        transaction.touch(&values[5], sizeof values[5]);
        if (fails)
            BOOST_CHECK_THROW(transaction.call("txn fail", &values), std::runtime_error);
        else
            transaction.call("txn look", "matrix");
        values[5] = fails ? 8 : 7;
        transaction.commit();
        crash();
        BOOST_TEST(matrix()[5] == (fails ? 8 : 7));
    }
    {
        Transaction transaction(*heap);
        transaction.touch(&matrix()[5], sizeof matrix()[5]);
        transaction.call("txn look", "matrix");
        matrix()[5] = 9;
        transaction.rollback();
    }
    BOOST_TEST(matrix()[5] == 8);
}

BOOST_AUTO_TEST_CASE(many_calls_and_transactions_fill_the_log_and_nobody_waits_for_ever) {
    for (int i = 0; i < 25; ++i) {
        call("txn add", "matrix", 1);
        transact(*heap, [&] {
            for (std::size_t j = 0; j < matrix().size(); j += 3) matrix()[j] ^= 0x0f0f;
        });
    }
    const std::vector<std::int32_t> content(matrix().begin(), matrix().end());
    crash();
    BOOST_TEST((content == std::vector<std::int32_t>(matrix().begin(), matrix().end())));
}

BOOST_AUTO_TEST_CASE(a_missing_or_mistaken_procedure_is_refused_when_it_is_called) {
    Transaction transaction(*heap);
    BOOST_TEST(throws(errc::missing_procedure, [&] { transaction.call("txn nobody", 1); }));
    BOOST_TEST(throws(errc::type_mismatch, [&] { transaction.call("txn add", 1); }));
    transaction.commit();
}

BOOST_AUTO_TEST_SUITE_END()

// The process that made the call dies; this one has not registered it.
BOOST_AUTO_TEST_CASE(a_log_that_calls_an_unknown_procedure_stops_recovery_and_touches_nothing) {
    const ScratchDirectory directory;
    const auto path = directory / "heap.tyn";
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            TransactionalHeap heap(create_only, path, small_heap());
            const auto negate = [](ProcedureHeap& inside) {
                for (std::int32_t& value : *inside.find<Matrix>("matrix")) value = -value;
            };
            register_procedure("txn of another program", negate, negate);
            transact(heap, [&] { heap.construct<Matrix>("matrix").assign(20'000, 3); });
            const auto saves = HeapAccess::file(heap).files().hold_saves();
            Transaction transaction(heap);
            transaction.call("txn of another program");
            transaction.commit();
            ::_exit(0);
        } catch (...) {
            ::_exit(1);
        }
    }
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_REQUIRE(status == 0);
    const std::string backing = taiyen::test::file_bytes(path);
    const std::string log = taiyen::test::file_bytes(path.string() + ".log");
    BOOST_TEST(throws(errc::missing_procedure, [&] { TransactionalHeap refused(open_only, path, small_heap()); }));
    BOOST_TEST(throws(errc::missing_procedure, [&] { ArchiveHeap refused(open_only, path, small_heap()); }));
    BOOST_TEST((taiyen::test::file_bytes(path) == backing));
    BOOST_TEST((taiyen::test::file_bytes(path.string() + ".log") == log));
}

}  // namespace
