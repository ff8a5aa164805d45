// Transactions within transactions: one that is rolled back undoes exactly what it did, and the outer one goes on.

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <taiyen/change/procedure.hpp>

#include "change/recorder.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

const char* const long_text = "a text that is longer than what a string keeps inside itself";
const char* const longer_text = "another text, which takes a block of its own, as any does that is longer than a few letters";

struct InnerFixture : TransactionFixture {
    using Texts = taiyen::map<int, taiyen::string>;
    using Words = taiyen::vector<std::uint64_t>;

    Texts& texts() { return heap->find_or_construct<Texts>("texts"); }
    std::uint64_t blocks() { return HeapAccess::file(*heap).engine().stats().live_blocks; }
    bool is_block(const void* address) { return HeapAccess::file(*heap).engine().is_block(address); }
    void has(const std::vector<int>& expected) { BOOST_TEST(values() == expected, boost::test_tools::per_element()); }
    /// After a crash the heap has what the outermost transactions kept.
    void crash_has(const std::vector<int>& expected) {
        crash();
        has(expected);
        BOOST_TEST(heap->verify().ok());
    }
    change::RecorderCounters counters() { return change::Recorder::of(HeapAccess::file(*heap))->counters(); }
    /// `count` pages of words, as large as the heap's largest blocks go.
    Words& make_words(std::size_t pages) {
        transact(*heap, [&] { heap->construct<Words>("words", pages * (page_bytes / sizeof(std::uint64_t)), std::uint64_t{7}); });
        return *heap->find<Words>("words");
    }
};

BOOST_FIXTURE_TEST_SUITE(inner, InnerFixture)

BOOST_AUTO_TEST_CASE(an_inner_rollback_takes_back_its_own_part_and_the_outer_transaction_commits) {
    push(1);
    {
        Transaction outer(*heap);
        numbers().push_back(2);
        {
            Transaction inner(*heap);
            numbers().push_back(3);
            numbers()[0] = 9;
        }
        has({1, 2});
        {
            Transaction inner(*heap);
            numbers().push_back(4);
            inner.commit();
        }
        {
            Transaction inner(*heap);
            numbers().push_back(5);
            inner.rollback();
        }
        has({1, 2, 4});
        numbers().push_back(6);
        BOOST_TEST(outer.commit().value == 2U);
    }
    crash_has({1, 2, 4, 6});
    BOOST_TEST(push(7).value == 3U);
}

BOOST_AUTO_TEST_CASE(what_an_inner_transaction_kept_is_taken_back_with_the_outer_one) {
    push(1);
    const std::uint64_t before = blocks();
    {
        Transaction outer(*heap);
        {
            Transaction inner(*heap);
            numbers().push_back(2);
            texts()[1] = long_text;
            inner.commit();
        }
        numbers().push_back(3);
    }
    has({1});
    BOOST_TEST(blocks() == before);
    crash_has({1});
}

BOOST_AUTO_TEST_CASE(what_two_inner_transactions_kept_is_taken_back_with_the_one_between) {
    push(1);
    {
        Transaction outer(*heap);
        numbers().push_back(2);
        {
            Transaction middle(*heap);
            transact(*heap, [&] { numbers().push_back(3); });
            numbers().push_back(4);
            transact(*heap, [&] { numbers().assign({7, 8, 9}); });
        }
        has({1, 2});
        numbers().push_back(5);
        outer.commit();
    }
    crash_has({1, 2, 5});
}

BOOST_AUTO_TEST_CASE(transactions_nest_to_any_depth_and_each_ends_as_it_likes) {
    // Depth d pushes d; those whose depth is a multiple of 3 are rolled back, with all below them.
    const auto nest = [&](auto&& self, int depth) -> void {
        Transaction transaction(*heap);
        numbers().push_back(depth);
        if (depth < 60) self(self, depth + 1);
        numbers().push_back(-depth);
        if (depth % 30 != 0) transaction.commit();
    };
    nest(nest, 1);
    std::vector<int> expected;
    for (int depth = 1; depth < 30; ++depth) expected.push_back(depth);
    for (int depth = 29; depth > 0; --depth) expected.push_back(-depth);
    has(expected);
    crash_has(expected);
}

BOOST_AUTO_TEST_CASE(an_exception_takes_back_what_it_passes_and_no_more) {
    push(1);
    transact(*heap, [&] {
        numbers().push_back(2);
        try {
            transact(*heap, [&] {
                numbers().push_back(3);
                transact(*heap, [&] {
                    numbers().push_back(4);
                    throw std::runtime_error("no");
                });
            });
        } catch (const std::runtime_error&) {
            has({1, 2});
        }
        try {
            UndoScope scope(*heap);
            numbers().push_back(5);
            throw std::runtime_error("no");
        } catch (const std::runtime_error&) {
            has({1, 2});
        }
    });
    crash_has({1, 2});
}

BOOST_AUTO_TEST_CASE(blocks_and_names_made_or_freed_within_an_inner_transaction_are_as_before_after_its_rollback) {
    const void* kept = nullptr;
    Transaction outer(*heap);
    texts()[1] = long_text;
    heap->construct<int>("made by the outer one", 7);
    void* const of_outer = heap->allocate(500);
    void* const of_outer_too = heap->allocate(5000);
    std::memset(of_outer, 1, 500);
    std::memset(of_outer_too, 2, 5000);
    const std::uint64_t before = blocks();
    {
        Transaction inner(*heap);
        kept = heap->allocate(100);
        heap->deallocate(of_outer);
        heap->deallocate(of_outer_too);
        std::memset(heap->allocate(500), 3, 500);
        std::memset(heap->allocate(5000), 4, 5000);
        heap->destroy<int>("made by the outer one");
        heap->construct<int>("made by the inner one", 8);
        texts().clear();
        texts()[2] = longer_text;
        (void)heap->allocate(std::size_t{3} << 20U);  // the heap grows
    }
    BOOST_TEST(blocks() == before);
    BOOST_TEST(!is_block(kept));
    BOOST_TEST(is_block(of_outer));
    BOOST_TEST(heap->usable_size(of_outer_too) >= 5000U);
    BOOST_TEST((std::ranges::all_of(std::span(static_cast<const char*>(of_outer), 500), [](char c) { return c == 1; })));
    BOOST_TEST((std::ranges::all_of(std::span(static_cast<const char*>(of_outer_too), 5000), [](char c) { return c == 2; })));
    BOOST_TEST(*heap->find<int>("made by the outer one") == 7);
    BOOST_TEST(!heap->find<int>("made by the inner one"));
    BOOST_TEST(texts().size() == 1U);
    BOOST_TEST((texts()[1] == long_text));
    heap->deallocate(of_outer);
    void* const again = heap->allocate(500);
    BOOST_TEST(is_block(again));
    outer.commit();
    crash();
    BOOST_TEST(*heap->find<int>("made by the outer one") == 7);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_word_that_each_level_changes_has_the_value_of_the_innermost_one_that_was_kept) {
    push(0);
    int& word = numbers()[0];
    transact(*heap, [&] {
        word = 1;
        transact(*heap, [&] { word = 2; });
        {
            Transaction inner(*heap);
            word = 3;
            transact(*heap, [&] { word = 4; });
            BOOST_TEST(word == 4);
        }
        BOOST_TEST(word == 2);
    });
    crash_has({2});
    {
        Transaction outer(*heap);
        int& same = numbers()[0];
        same = 5;
        {
            Transaction inner(*heap);
            same = 2;  // as it was before all of them
            inner.commit();
        }
        outer.commit();
    }
    crash_has({2});
}

BOOST_AUTO_TEST_CASE(containers_go_on_after_an_inner_rollback) {
    Transaction outer(*heap);
    auto& list = heap->construct<taiyen::list<taiyen::string>>("list");
    auto& table = heap->construct<taiyen::unordered_map<int, taiyen::string>>("table");
    auto& deque = heap->construct<taiyen::deque<int>>("deque");
    for (int i = 0; i < 300; ++i) {
        list.emplace_back(long_text);
        table[i] = long_text;
        deque.push_back(i);
    }
    for (int round = 0; round < 3; ++round) {
        Transaction inner(*heap);
        for (int i = 0; i < 2000; ++i) {
            list.emplace_front(longer_text);
            table[1000 + i] = longer_text;
            deque.push_front(i);
        }
        list.resize(10);
        for (int i = 0; i < 300; i += 2) table.erase(i);
        deque.clear();
        if (round == 1) inner.rollback();
    }
    BOOST_TEST(list.size() == 300U);
    BOOST_TEST(table.size() == 300U);
    BOOST_TEST((std::ranges::all_of(list, [](const taiyen::string& text) { return text == long_text; })));
    for (int i = 0; i < 300; ++i) BOOST_TEST_REQUIRE((table.at(i) == long_text && deque[static_cast<std::size_t>(i)] == i));
    list.emplace_back("last");
    table[300] = "last";
    deque.push_back(300);
    outer.commit();
    crash();
    BOOST_TEST((heap->find<taiyen::list<taiyen::string>>("list")->size() == 301U));
    BOOST_TEST((heap->find<taiyen::unordered_map<int, taiyen::string>>("table")->at(300) == "last"));
    BOOST_TEST((heap->find<taiyen::deque<int>>("deque")->back() == 300));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_large_inner_transaction_is_taken_back_from_a_large_outer_one) {
    Words& words = make_words(3000);
    const std::size_t step = page_bytes / sizeof(std::uint64_t);
    for (const bool keeps : {false, true}) {
        Transaction outer(*heap);
        for (std::size_t i = 0; i < words.size(); i += step) words[i] = 8;
        {
            Transaction inner(*heap);
            for (std::size_t i = 0; i < words.size(); i += step) words[i] = 9;
            for (std::size_t i = 1; i < words.size(); i += step) words[i] = 9;
            transact(*heap, [&] { std::ranges::fill(words, 10); });
        }
        bool right = true;
        for (std::size_t i = 0; i < words.size(); ++i) right = right && words[i] == (i % step == 0 ? 8U : 7U);
        BOOST_TEST(right);
        if (keeps) outer.commit();
    }
    crash();
    const Words& found = *heap->find<Words>("words");
    bool right = true;
    for (std::size_t i = 0; i < found.size(); ++i) right = right && found[i] == (i % step == 0 ? 8U : 7U);
    BOOST_TEST(right);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(pages_that_the_outer_transaction_changed_are_not_compared_by_each_inner_one) {
    Words& words = make_words(900);
    const std::size_t step = page_bytes / sizeof(std::uint64_t);
    Transaction outer(*heap);
    for (std::size_t i = 0; i < words.size(); i += step) words[i] = 8;
    BOOST_TEST(counters().pages_hot >= 900U);
    const auto inner = [&](std::uint64_t value) {
        Transaction transaction(*heap);
        words[0] = value;
        transaction.commit();
    };
    for (std::uint64_t i = 0; i < 20; ++i) inner(i);
    const std::uint64_t before = counters().pages_compared;
    for (std::uint64_t i = 0; i < 100; ++i) inner(i);
    BOOST_TEST(counters().pages_compared - before < 100U * 140);
    outer.rollback();
    BOOST_TEST((std::ranges::all_of(words, [](std::uint64_t word) { return word == 7; })));
}

BOOST_AUTO_TEST_CASE(many_inner_transactions_take_as_few_pieces_as_one) {
    push(0);
    Transaction outer(*heap);
    for (int i = 0; i < 10'000; ++i) {
        Transaction inner(*heap);
        ++numbers()[0];
        if (i % 2 == 0) inner.commit();
    }
    has({5000});
    outer.commit();
    crash_has({5000});
}

// Ranges that were touched

BOOST_AUTO_TEST_CASE(a_range_that_was_touched_stays_so_until_its_transaction_ends) {
    for (const Capture capture : {Capture::pages, Capture::declared}) {
        PersistentOptions with = small_heap(capture);
        with.audit = Audit::scope;
        replace(with);
        std::uint64_t* words = nullptr;
        transact(*heap, [&](Transaction& transaction) {
            words = &heap->construct<std::array<std::uint64_t, 4>>("words")[0];
            transaction.touch(words, 32);
            std::fill_n(words, 4, 0);
        });
        {
            Transaction outer(*heap);
            outer.touch(words, 16);
            words[0] = 1;
            {
                Transaction inner(*heap);
                words[0] = 2;
                inner.touch(words + 2, 16);
                words[2] = 2;
                inner.rollback();
            }
            BOOST_TEST(words[0] == 1U);
            BOOST_TEST(words[2] == 0U);
            words[1] = 3;
            {
                Transaction inner(*heap);
                inner.touch(words + 2, 16);
                {
                    Transaction innermost(*heap);
                    words[1] = 4;
                    words[3] = 4;
                    innermost.commit();
                }
                words[2] = 5;
                inner.commit();
            }
            words[0] = 6;
            outer.commit();
        }
        crash();
        const auto& found = *heap->find<std::array<std::uint64_t, 4>>("words");
        BOOST_TEST((found == std::array<std::uint64_t, 4>{6, 4, 5, 4}));
    }
}

BOOST_AUTO_TEST_CASE(a_system_call_writes_where_the_outer_transaction_touched) {
    Words& words = make_words(64);
    std::ofstream(directory / "bytes") << std::string(page_bytes, '\1');
    const int descriptor = ::open((directory / "bytes").c_str(), O_RDONLY | O_CLOEXEC);
    BOOST_REQUIRE(descriptor >= 0);
    Transaction outer(*heap);
    for (std::size_t i = 0; i < words.size(); i += 512) words[i] = 8;
    outer.touch(words.data() + 5120, 4000);
    for (int i = 0; i < 100; ++i) {  // its page would long be closed
        Transaction inner(*heap);
        words[0] = static_cast<std::uint64_t>(i);
        inner.commit();
    }
    BOOST_TEST(::read(descriptor, words.data() + 5120, 4000) == 4000);
    ::close(descriptor);
    outer.rollback();
    BOOST_TEST((std::ranges::all_of(words, [](std::uint64_t word) { return word == 7; })));
}

// What else a transaction does

BOOST_AUTO_TEST_CASE(calls_within_an_inner_transaction_are_taken_back_with_it_and_kept_with_it) {
    static const bool registered = [] {
        const auto add = [](ProcedureHeap& of, std::int32_t summand) {
            for (int& value : *of.find<Numbers>("numbers")) value += summand;
        };
        register_procedure("inner add", add, [add](ProcedureHeap& of, std::int32_t summand) { add(of, -summand); });
        return true;
    }();
    BOOST_TEST(registered);
    transact(*heap, [&] { numbers().assign(5000, 1); });
    {
        const auto saves = HeapAccess::file(*heap).files().hold_saves();
        Transaction outer(*heap);
        outer.call("inner add", std::int32_t{10});
        {
            Transaction inner(*heap);
            inner.call("inner add", std::int32_t{100});
            numbers()[7] = 0;
            inner.call("inner add", std::int32_t{200});
        }
        BOOST_TEST(values() == std::vector<int>(5000, 11), boost::test_tools::per_element());
        {
            Transaction inner(*heap);
            inner.call("inner add", std::int32_t{1000});
            inner.commit();
        }
        numbers()[0] = 5;
        outer.commit();
    }
    std::vector<int> expected(5000, 1011);
    expected[0] = 5;
    crash_has(expected);
}

BOOST_AUTO_TEST_CASE(an_inner_rollback_while_loading_is_relaxed_is_one_all_the_same) {
    push(1);
    {
        RelaxedLoading loading(*heap, RelaxedRollback::transaction);
        transact(*heap, [&] {
            numbers().push_back(2);
            {
                Transaction inner(*heap);
                numbers().push_back(3);
            }
            transact(*heap, [&] { numbers().push_back(4); });
        });
        has({1, 2, 4});
        loading.wait_until_strict();
    }
    crash_has({1, 2, 4});
}

BOOST_AUTO_TEST_CASE(a_pointer_out_of_the_heap_that_an_inner_rollback_took_back_does_not_matter) {
    push(1);
    const taiyen::string outside(long_text, *heap);
    const void* const smuggled = outside.data();
    Transaction outer(*heap);
    void* const block = heap->allocate(64);
    std::memset(block, 0, 64);
    {
        Transaction inner(*heap);
        std::memcpy(block, &smuggled, sizeof smuggled);
        Transaction innermost(*heap);
        innermost.commit();
    }
    outer.commit();
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_thread_that_ends_takes_back_all_that_it_has_left_open) {
    const Silence silence;
    push(0);
    std::thread([&] {
        alignas(Transaction) static std::byte memory[2][sizeof(Transaction)];
        ::new (memory[0]) Transaction(*heap);
        numbers().push_back(1);
        ::new (memory[1]) Transaction(*heap);
        numbers().push_back(2);
    }).join();
    BOOST_TEST((Silence::told == std::vector<errc>{errc::transaction_doomed}));
    has({0});
    push(3);
    crash_has({0, 3});
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_destroyed_takes_back_outer_and_inner_transactions) {
    push(1);
    Transaction outer(*heap);
    numbers().push_back(2);
    Transaction inner(*heap);
    numbers().push_back(3);
    heap.reset();
    BOOST_TEST(throws(errc::closed, [&] { inner.commit(); }));
    inner.rollback();
    outer.rollback();
    heap.emplace(open_only, path, options);
    has({1});
}

BOOST_AUTO_TEST_CASE(a_transaction_larger_than_the_log_has_nothing_of_its_inner_rollback) {
    Words& words = make_words(200);
    transact(*heap, [&] {
        std::ranges::fill(words, 1);
        {
            Transaction inner(*heap);
            std::ranges::fill(words, 2);
            transact(*heap, [&] { words[0] = 3; });
        }
        words[1] = 4;
    });
    BOOST_TEST(heap->transaction_stats().saves_in_commits >= 1U);
    crash();
    const Words& found = *heap->find<Words>("words");
    BOOST_TEST((found[0] == 1 && found[1] == 4 && std::all_of(found.begin() + 2, found.end(), [](std::uint64_t word) { return word == 1; })));
}

// Blocks on loan

BOOST_AUTO_TEST_CASE(what_an_inner_transaction_lent_and_took_back_belongs_to_the_heap) {
    transact(*heap, [&] { texts()[1] = long_text; });
    const std::uint64_t before = blocks();
    {
        Transaction outer(*heap);
        numbers().push_back(1);
        std::unique_ptr<taiyen::string> outside;
        {
            Transaction inner(*heap);
            outside = std::make_unique<taiyen::string>(std::move(texts()[1]));
            Transaction innermost(*heap);
            innermost.commit();
        }
        BOOST_TEST((texts()[1] == long_text));
        outside.reset();  // frees nothing
        BOOST_TEST((texts()[1] == long_text));
        for (int i = 10; i < 40; ++i) texts()[i] = longer_text;
        BOOST_TEST((texts()[1] == long_text));
        for (int i = 10; i < 40; ++i) texts().erase(i);
        outer.commit();
    }
    transact(*heap, [&] { heap->destroy<Numbers>("numbers"); });
    BOOST_TEST(blocks() == before);
    crash();
    BOOST_TEST((heap->find<Texts>("texts")->at(1) == long_text));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(what_a_kept_inner_transaction_lent_belongs_to_the_heap_again_when_its_step_is_undone) {
    transact(*heap, [&] { texts()[1] = long_text; });
    heap->attach_undo();
    std::unique_ptr<taiyen::string> outside;
    transact(*heap, [&] {
        numbers().push_back(1);
        transact(*heap, [&] { outside = std::make_unique<taiyen::string>(std::move(texts()[1])); });
    });
    BOOST_TEST(heap->undo());
    outside.reset();  // frees nothing
    transact(*heap, [&] {
        for (int i = 10; i < 40; ++i) texts()[i] = longer_text;
    });
    BOOST_TEST((texts()[1] == long_text));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(what_a_kept_inner_transaction_lent_is_freed_when_its_owner_dies) {
    transact(*heap, [&] {
        texts()[1] = long_text;
        texts()[2] = long_text;
        texts()[3] = long_text;
    });
    const std::uint64_t before = blocks();
    std::unique_ptr<taiyen::string> longest;
    {
        Transaction outer(*heap);
        std::unique_ptr<taiyen::string> outside;
        {
            Transaction inner(*heap);
            const taiyen::string within = std::move(texts()[1]);
            outside = std::make_unique<taiyen::string>(std::move(texts()[2]));
            longest = std::make_unique<taiyen::string>(std::move(texts()[3]));
            inner.commit();
        }
        outside.reset();
        BOOST_TEST(blocks() == before - 2);
        outer.commit();
    }
    longest.reset();
    transact(*heap, [] {});
    BOOST_TEST(blocks() == before - 3);
    crash();
    transact(*heap, [] {});
    BOOST_TEST(blocks() == before - 3);
}

BOOST_AUTO_TEST_CASE(what_died_within_an_inner_transaction_that_was_rolled_back_is_reclaimed) {
    transact(*heap, [&] { texts()[1] = long_text; });
    const std::uint64_t before = blocks();
    {
        Transaction outer(*heap);
        auto outside = std::make_unique<taiyen::string>(std::move(texts()[1]));
        {
            Transaction inner(*heap);
            outside.reset();
            BOOST_TEST(blocks() == before - 1);
        }
        BOOST_TEST(blocks() == before);
        outer.commit();
    }
    BOOST_TEST((texts()[1].empty()));
    heap->close();  // nobody holds it
    reopen();
    BOOST_TEST(reclaim(*heap).freed_blocks == 1U);
    BOOST_TEST(blocks() == before - 1);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(who_gets_the_place_of_a_block_that_an_inner_rollback_took_back_has_lent_nothing) {
    Transaction outer(*heap);
    texts();
    const void* place = nullptr;
    std::size_t bytes = 0;
    {
        Transaction inner(*heap);
        texts()[1] = long_text;
        taiyen::string outside = std::move(texts()[1]);
        place = outside.data();
        bytes = heap->usable_size(place);
        texts()[2] = std::move(outside);
    }
    std::vector<const void*> made;
    while (made.size() < 100 && !is_block(place)) made.push_back(std::memset(heap->allocate(bytes), 0, bytes));
    BOOST_TEST(is_block(place));
    outer.commit();
    BOOST_TEST(HeapAccess::file(*heap).held().size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_block_that_was_freed_within_an_inner_rollback_is_nobodys) {
    transact(*heap, [&] { texts()[1] = long_text; });
    std::unique_ptr<taiyen::string> outside;
    transact(*heap, [&] { outside = std::make_unique<taiyen::string>(std::move(texts()[1])); });
    const heap::HeldBlocks& held = HeapAccess::file(*heap).held();
    BOOST_TEST(held.size() == 1U);
    {
        Transaction outer(*heap);
        numbers().push_back(1);
        {
            Transaction inner(*heap);
            texts()[2] = std::move(*outside);
            Transaction innermost(*heap);
            texts().erase(2);
            BOOST_TEST(held.size() == 0U);
            innermost.commit();
        }
        outer.commit();
    }
    push(2);
    heap->close();  // nobody holds it
    reopen();
    BOOST_TEST(reclaim(*heap).freed_blocks == 1U);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
