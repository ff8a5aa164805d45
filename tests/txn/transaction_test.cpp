// What one thread sees of transactions: atomic, durable; and what is refused. Transactions within transactions: inner_test.cpp.

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

using Ints = std::vector<int>;
constexpr auto each = boost::test_tools::per_element();

BOOST_FIXTURE_TEST_SUITE(transaction, TransactionFixture)

BOOST_AUTO_TEST_CASE(what_was_committed_is_there_after_a_crash) {
    BOOST_TEST(push(1).value == 1U);
    BOOST_TEST(push(2).value == 2U);
    BOOST_TEST(heap->last_durable().value == 2U);
    crash();
    BOOST_TEST(heap->restoration().transactions_replayed == 2U);
    BOOST_TEST(!heap->restoration().clean);
    BOOST_TEST(values() == (Ints{1, 2}), each);
    BOOST_TEST(heap->verify().ok());
    BOOST_TEST(push(3).value == 3U);
    crash();
    BOOST_TEST(values() == (Ints{1, 2, 3}), each);
}

BOOST_AUTO_TEST_CASE(what_was_committed_is_there_after_closing) {
    push(1);
    heap->close();
    reopen();
    BOOST_TEST(heap->restoration().clean);
    BOOST_TEST(heap->restoration().transactions_replayed == 0U);
    BOOST_TEST(values() == Ints{1}, each);
    BOOST_TEST(push(2).value == 2U);
    reopen();
    BOOST_TEST(heap->restoration().clean);
    BOOST_TEST(values() == (Ints{1, 2}), each);
}

BOOST_AUTO_TEST_CASE(what_was_rolled_back_never_happened) {
    push(1);
    const std::uint64_t blocks = heap->stats().live_blocks;
    {
        Transaction transaction(*heap);
        for (int i = 0; i < 10'000; ++i) numbers().push_back(i);
        heap->construct<taiyen::string>("more", "text that is longer than a string keeps inside itself");
        transaction.rollback();
        BOOST_TEST(!transaction.is_open());
        transaction.rollback();
        BOOST_TEST(throws(errc::invalid_argument, [&] { transaction.commit(); }));
    }
    BOOST_TEST(values() == Ints{1}, each);
    BOOST_TEST(heap->stats().live_blocks == blocks);
    BOOST_TEST((heap->find<taiyen::string>("more") == nullptr));
    BOOST_TEST(heap->verify().ok());
    BOOST_TEST(push(2).value == 2U);
    crash();
    BOOST_TEST(values() == (Ints{1, 2}), each);
}

BOOST_AUTO_TEST_CASE(a_transaction_that_nobody_commits_is_rolled_back) {
    push(1);
    {
        Transaction transaction(*heap);
        numbers().push_back(2);
    }
    try {
        Transaction transaction(*heap);
        numbers().push_back(3);
        throw 7;
    } catch (int) {}
    const auto failing = [&] {
        numbers().push_back(4);
        throw std::runtime_error("no");
    };
    BOOST_CHECK_THROW(transact(*heap, failing), std::runtime_error);
    BOOST_TEST(values() == Ints{1}, each);
    const auto pushing = [&] {
        numbers().push_back(5);
        return numbers().size();
    };
    BOOST_TEST(transact(*heap, pushing) == 2U);
    transact(*heap, [&](Transaction& transaction) {
        numbers().push_back(6);
        transaction.touch(numbers().data(), sizeof(int));
    });
    BOOST_TEST(values() == (Ints{1, 5, 6}), each);
}

BOOST_AUTO_TEST_CASE(transact_tells_the_serial_that_it_committed_and_none_if_it_failed) {
    taiyen::Serial committed;
    transact(*heap, committed, [&] { numbers().push_back(1); });
    BOOST_TEST(committed.value == taiyen::ReadLock(*heap).serial().value);
    const std::uint64_t before = committed.value;
    const auto pushing = [&] {
        numbers().push_back(2);
        return numbers().size();
    };
    BOOST_TEST(transact(*heap, committed, pushing) == 2U);
    BOOST_TEST(committed.value == before + 1);
    heap->wait_durable(committed);
    const auto failing = [&] {
        numbers().push_back(3);
        throw std::runtime_error("no");
    };
    BOOST_CHECK_THROW(transact(*heap, committed, failing), std::runtime_error);
    BOOST_TEST(committed.value == before + 1);
}

BOOST_AUTO_TEST_CASE(an_empty_transaction_takes_no_serial) {
    push(1);
    Transaction transaction(*heap);
    BOOST_TEST(transaction.commit().value == 1U);
    BOOST_TEST(push(2).value == 2U);
}

BOOST_AUTO_TEST_CASE(a_transaction_within_another_is_part_of_it) {
    {
        Transaction outer(*heap);
        numbers().push_back(1);
        {
            Transaction inner(*heap);
            numbers().push_back(2);
            BOOST_TEST(throws(errc::scope_open, [&] { outer.commit(); }));
            BOOST_TEST(inner.commit().value == 1U);
        }
        BOOST_TEST(outer.is_open());
        BOOST_TEST(outer.commit().value == 1U);
    }
    crash();
    BOOST_TEST(values() == (Ints{1, 2}), each);
}

BOOST_AUTO_TEST_CASE(a_transaction_waits_for_what_was_opened_within_it_also_on_another_heap_and_also_if_it_is_a_scope) {
    TransactionalHeap other(create_only, directory / "another.tyn", options);
    Transaction outer(*heap);
    numbers().push_back(1);
    const auto is_held_up = [&] {
        BOOST_TEST(throws(errc::scope_open, [&] { outer.touch(numbers().data(), sizeof(int)); }));
        BOOST_TEST(throws(errc::scope_open, [&] { outer.commit(); }));
        BOOST_TEST(outer.is_open());
    };
    {
        Transaction inner(other);
        is_held_up();
        inner.commit();
    }
    {
        UndoScope inner(*heap);
        is_held_up();
        inner.commit();
    }
    outer.touch(numbers().data(), sizeof(int));
    outer.commit();
    BOOST_TEST(values() == Ints{1}, each);
}

BOOST_AUTO_TEST_CASE(outside_a_transaction_nothing_is_allocated_named_or_resized_and_frees_wait) {
    push(1);
    void* block = nullptr;
    transact(*heap, [&] { block = heap->allocate(100); });
    const std::uint64_t blocks = heap->stats().live_blocks;
    BOOST_TEST(throws(errc::no_transaction, [&] { (void)heap->allocate(100); }));
    BOOST_TEST(throws(errc::no_transaction, [&] { (void)heap->resize(block, 200); }));
    BOOST_TEST(throws(errc::no_transaction, [&] { heap->construct<int>("number", 7); }));
    BOOST_TEST(throws(errc::no_transaction, [&] { heap->destroy<Numbers>("numbers"); }));
    BOOST_TEST(throws(errc::no_transaction, [&] { (void)heap->make<int>(7); }));
    BOOST_TEST(heap->stats().live_blocks == blocks);
    heap->deallocate(block);
    BOOST_TEST(heap->stats().live_blocks == blocks);
    transact(*heap, [] {});
    BOOST_TEST(heap->stats().live_blocks == blocks - 1);
    BOOST_TEST(values() == Ints{1}, each);
}

BOOST_AUTO_TEST_CASE(a_pointer_out_of_the_heap_is_not_committed) {
    push(1);
    const std::uint64_t blocks = heap->stats().live_blocks;
    {
        Transaction transaction(*heap);
        const taiyen::string outside("a text that is longer than what a string keeps inside itself", *heap);
        const void* const smuggled = outside.data();
        void* const block = heap->allocate(64);
        std::memcpy(block, &smuggled, sizeof smuggled);
        numbers().push_back(2);
        BOOST_TEST(throws(errc::foreign_pointer, [&] { transaction.commit(); }));
        BOOST_TEST(!transaction.is_open());
    }
    BOOST_TEST(values() == Ints{1}, each);
    BOOST_TEST(heap->stats().live_blocks == blocks);
    push(2);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_pointer_to_memory_of_the_program_that_leads_back_is_not_committed) {
    struct Linked {
        void* other;
    };
    const std::uint64_t blocks = heap->stats().live_blocks;
    Linked outside{};
    {
        Transaction transaction(*heap);
        auto* const inside = static_cast<Linked*>(heap->allocate(sizeof(Linked)));
        outside.other = inside;
        inside->other = &outside;
        BOOST_TEST(throws(errc::foreign_pointer, [&] { transaction.commit(); }));
    }
    BOOST_TEST(heap->stats().live_blocks == blocks);
    push(1);
    BOOST_TEST(values() == Ints{1}, each);
}

BOOST_AUTO_TEST_CASE(what_does_not_lie_in_durable_memory_can_not_be_touched) {
    push(1);
    const store::HeapFile& file = HeapAccess::file(*heap);
    auto* const begin = reinterpret_cast<std::byte*>(file.ranges().durable);
    std::byte* const end = begin + file.image().mapped();
    Transaction transaction(*heap);
    BOOST_TEST(throws(errc::invalid_argument, [&] { transaction.touch(begin - 1, 1); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { transaction.touch(end + 1, 1); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { transaction.touch(end - 8, 9); }));
    transaction.touch(end - 8, 8);
    numbers().push_back(2);
    transaction.commit();
    BOOST_TEST((values() == std::vector<int>{1, 2}));
}

BOOST_AUTO_TEST_CASE(a_snapshot_brings_the_files_up_to_date) {
    for (int i = 0; i < 100; ++i) push(i);
    heap->snapshot();
    heap->snapshot();
    push(100);
    crash();
    BOOST_TEST(heap->restoration().transactions_replayed == 1U);
    BOOST_TEST(values().size() == 101U);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(within_a_transaction_or_a_read_lock_nobody_saves_closes_or_rebuilds) {
    push(1);
    {
        Transaction transaction(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { heap->snapshot(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->close(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->rebuild(); }));
    }
    {
        const ReadLock lock(*heap);
        BOOST_TEST(lock.serial().value == 1U);
        BOOST_TEST(throws(errc::scope_open, [&] { heap->snapshot(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->close(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->rebuild(); }));
        BOOST_TEST(throws(errc::scope_open, [&] { Transaction(*heap).rollback(); }));
        const ReadLock inner(*heap);
    }
    push(2);
    {
        Transaction transaction(*heap);
        const ReadLock lock(*heap);
        BOOST_TEST(lock.serial().value == 2U);
    }
    BOOST_TEST(heap->is_open());
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_destroyed_rolls_its_open_transaction_back) {
    push(1);
    {
        Transaction transaction(*heap);
        numbers().push_back(2);
        heap.reset();
        BOOST_TEST(!transaction.is_open());
        BOOST_TEST(throws(errc::closed, [&] { transaction.commit(); }));
    }
    heap.emplace(open_only, path, options);
    BOOST_TEST(values() == Ints{1}, each);
    BOOST_TEST(heap->restoration().clean);
    std::optional<Transaction> late(std::in_place, *heap);
    numbers().push_back(3);
    heap.reset();
    late.reset();
}

BOOST_AUTO_TEST_CASE(a_heap_may_be_destroyed_while_its_thread_reads_it) {
    push(1);
    {
        const ReadLock lock(*heap);
        heap.reset();
    }
    heap.emplace(open_only, path, options);
    BOOST_TEST(values() == Ints{1}, each);
}

BOOST_AUTO_TEST_CASE(a_moved_heap_goes_on) {
    push(1);
    TransactionalHeap other(std::move(*heap));
    transact(other, [&] { other.find<Numbers>("numbers")->push_back(2); });
    *heap = std::move(other);
    BOOST_TEST(values() == (Ints{1, 2}), each);
    push(3);
}

BOOST_AUTO_TEST_CASE(a_transaction_larger_than_the_log_is_durable_too) {
    push(1);
    const std::size_t size = options.log_capacity / sizeof(int) * 4;
    {
        Transaction transaction(*heap);
        for (std::size_t i = 0; i < size; ++i) numbers().push_back(static_cast<int>(i * 7919));
        BOOST_TEST(transaction.commit().value == 2U);
    }
    BOOST_TEST(heap->last_durable().value == 2U);
    heap->wait_durable({2});
    BOOST_TEST(push(-1).value == 3U);
    crash();
    BOOST_TEST(heap->restoration().transactions_replayed == 1U);
    BOOST_TEST(values().size() == size + 2);
    BOOST_TEST(values().back() == -1);
    BOOST_TEST(heap->verify().ok());
    {
        Transaction transaction(*heap);
        numbers().assign(size, 3);
        transaction.rollback();
    }
    BOOST_TEST(values().size() == size + 2);
    push(4);
    crash();
    BOOST_TEST(values().size() == size + 3);
}

BOOST_AUTO_TEST_CASE(nobody_waits_for_a_transaction_that_was_never_committed) {
    push(1);
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->wait_durable({2}); }));
    heap->wait_durable({1});
}

BOOST_AUTO_TEST_CASE(a_rebuilt_heap_is_as_committed) {
    for (int i = 0; i < 50; ++i) push(i);
    heap->snapshot();
    for (int i = 50; i < 100; ++i) push(i);
    heap->rebuild();
    BOOST_TEST(values().size() == 100U);
    BOOST_TEST(heap->verify().ok());
    push(100);
    crash();
    BOOST_TEST(values().size() == 101U);
}

BOOST_AUTO_TEST_CASE(a_rebuilt_heap_allocates_what_is_free_then_not_what_was_when_a_call_was_repeated) {
    using Texts = taiyen::vector<taiyen::string>;
    const auto fill = [](ProcedureHeap& in, unsigned count) {
        Texts& texts = *in.find<Texts>("texts");
        texts.assign(count, taiyen::string(60, 'c', texts.get_allocator()));
        texts.resize(count / 2);  // what is free is known from here on
    };
    register_procedure("rebuilt: fill", fill, fill);
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;  // nothing is saved before the heap is rebuilt
    replace(with);
    {
        Transaction transaction(*heap);
        heap->construct<Texts>("texts").reserve(2000);
        transaction.commit();
    }
    heap->snapshot();
    {
        Transaction transaction(*heap);
        transaction.call("rebuilt: fill", 2000U);
        transaction.commit();
    }
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;
    const auto allocate = [&](std::size_t bytes, int count) {
        Transaction transaction(*heap);
        for (int i = 0; i < count; ++i) {
            blocks.emplace_back(static_cast<unsigned char*>(heap->allocate(bytes)), bytes);
            std::memset(blocks.back().first, static_cast<int>(blocks.size() % 251), bytes);
        }
        transaction.commit();
    };
    {
        Transaction transaction(*heap);
        heap->find<Texts>("texts")->clear();
        transaction.commit();
    }
    allocate(20'000, 30);  // where texts were
    allocate(61, 300);
    heap->rebuild();
    allocate(61, 1500);
    allocate(20'000, 10);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const auto [block, bytes] = blocks[i];
        BOOST_TEST(std::all_of(block, block + bytes, [&](unsigned char byte) { return byte == (i + 1) % 251; }), "block " << i);
    }
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_reader_of_a_crashed_heap_sees_what_was_committed) {
    push(1);
    push(2);
    const auto copy = directory / "copy.tyn";
    std::filesystem::copy_file(path, copy);
    std::filesystem::copy_file(path.string() + ".log", copy.string() + ".log");
    heap.reset();
    const TransactionalHeap reader(open_read_only, copy);
    const ReadLock lock(reader);
    BOOST_TEST(reader.find<Numbers>("numbers")->size() == 2U);
    BOOST_TEST(lock.serial().value == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
