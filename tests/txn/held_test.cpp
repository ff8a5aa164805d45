// Blocks that objects outside have taken along when their transaction was committed: nobody reuses them while the owner is alive, and what a process that dies leaks is reclaimed.

#include <algorithm>
#include <array>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>

#include <boost/test/unit_test.hpp>

#include "txn/transaction_service.hpp"
#include "txn/txn_fixture.hpp"

namespace taiyen::txn::test {

struct Observer {
    taiyen::forward_list<int> list;
    std::uint64_t number = 0;
    taiyen::string* observed = nullptr;  // where other containers have their first node
};

}  // namespace taiyen::txn::test

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

const char* const text = "a text that is longer than what a string keeps inside itself";

struct HeldFixture : TransactionFixture {
    using Texts = taiyen::vector<taiyen::string>;
    HeldFixture() {
        transact(*heap, [&] {
            Texts& made = heap->construct<Texts>("texts");
            made.reserve(5);  // the address of its end is no other block's begin
            for (int i = 0; i < 4; ++i) made.emplace_back(text);
        });
    }
    Texts& texts() { return *heap->find<Texts>("texts"); }
    std::uint64_t blocks() { return heap->stats().live_blocks; }
    std::uint64_t held() { return heap->stats().held_blocks; }
    void nothing() {
        transact(*heap, [] {});
    }
    void reclaims(std::uint64_t blocks) { BOOST_TEST(reclaim(*heap).freed_blocks == blocks); }
    void fill(const char* name) {
        transact(*heap, [&] {
            auto& more = heap->construct<Texts>(name);
            for (int i = 0; i < 200; ++i) more.emplace_back("another text that is as long as the first one was, or somewhat longer than it");
        });
    }
    std::optional<taiyen::string> moved_out(std::size_t index = 0) {
        std::optional<taiyen::string> outside;
        Transaction transaction(*heap);
        outside.emplace(std::move(texts()[index]));
        transaction.commit();
        return outside;
    }
    void is_sound() { BOOST_TEST(heap->verify().ok()); }
};

BOOST_FIXTURE_TEST_SUITE(held, HeldFixture)

BOOST_AUTO_TEST_CASE(what_a_string_that_outlives_its_transaction_leaks_is_reclaimed_by_the_next_process) {
    const std::uint64_t before = blocks();
    auto outside = moved_out();
    BOOST_TEST(held() == 1U);
    outside.reset();
    crash();
    BOOST_TEST(held() == 0U);
    BOOST_TEST(blocks() == before);
    reclaims(1);
    reclaims(0);
    BOOST_TEST(blocks() == before - 1);
    is_sound();
    crash();
    BOOST_TEST(blocks() == before - 1);
    BOOST_TEST(texts()[1] == text);
}

BOOST_AUTO_TEST_CASE(what_is_held_keeps_its_bytes_until_its_owner_lets_go_and_can_be_used_again_then) {
    const std::uint64_t before = blocks();
    auto outside = moved_out();
    const void* const block = outside->data();
    fill("more");
    BOOST_TEST(*outside == text);
    transact(*heap, [&] { heap->destroy<Texts>("more"); });
    BOOST_TEST(*outside == text);
    outside.reset();
    nothing();
    BOOST_TEST(blocks() == before - 1);
    BOOST_TEST(held() == 0U);
    transact(*heap, [&] {
        std::vector<void*> given;
        for (int i = 0; i < 2000 && (given.empty() || given.back() != block); ++i)
            given.push_back(heap::allocate_durable(*heap->core(), 61, 16, heap::Content::pointer_free));
        BOOST_TEST(given.back() == block);
        for (void* const one : given) heap->deallocate(one);
    });
}

BOOST_AUTO_TEST_CASE(a_string_that_is_moved_in_again_belongs_to_the_heap_again) {
    const std::uint64_t before = blocks();
    {
        auto outside = moved_out();
        fill("more");
        transact(*heap, [&] { heap->destroy<Texts>("more"); });
        transact(*heap, [&] { texts()[2] = std::move(*outside); });
        BOOST_TEST(held() == 0U);
    }
    crash();
    reclaims(0);
    BOOST_TEST(texts()[2] == text);
    BOOST_TEST(texts()[0].empty());
    BOOST_TEST(blocks() == before - 1);  // texts[2] gave up its own
    is_sound();
}

BOOST_AUTO_TEST_CASE(what_goes_out_and_in_again_in_one_transaction_is_held_by_nobody) {
    const std::uint64_t before = blocks();
    transact(*heap, [&] {
        taiyen::string outside = std::move(texts()[0]);
        texts()[0] = std::move(outside);
        Texts all = std::move(texts());
        texts() = std::move(all);
        texts().insert(texts().begin(), "first");
        taiyen::string moved = std::move(texts()[1]);
        texts().erase(texts().begin());
        texts()[0] = std::move(moved);
    });
    BOOST_TEST(held() == 0U);
    crash();
    reclaims(0);
    BOOST_TEST(texts().size() == 4U);
    for (const taiyen::string& found : texts()) BOOST_TEST(found == text);
    BOOST_TEST(blocks() == before);
    is_sound();
}

BOOST_AUTO_TEST_CASE(what_a_rolled_back_transaction_lent_is_not_held) {
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        Transaction transaction(*heap);
        outside.emplace(std::move(texts()[0]));
        {
            Transaction inner(*heap);
            outside.emplace(std::move(texts()[1]));
            inner.commit();
        }
        transaction.rollback();
    }
    nothing();
    BOOST_TEST(held() == 0U);
    crash();
    reclaims(0);
    BOOST_TEST(blocks() == before);
    for (const taiyen::string& found : texts()) BOOST_TEST(found == text);
}

BOOST_AUTO_TEST_CASE(nested_transactions_hold_what_is_out_when_the_outermost_one_ends) {
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> first;
        std::optional<taiyen::string> second;
        Transaction outer(*heap);
        {
            Transaction inner(*heap);
            first.emplace(std::move(texts()[0]));
            second.emplace(std::move(texts()[1]));
            inner.commit();
        }
        second.reset();
        outer.commit();
        BOOST_TEST(held() == 1U);
    }
    crash();
    reclaims(1);
    BOOST_TEST(blocks() == before - 2);
}

/// Builds, moves out, and compares what a process that dies leaves with what one leaves that destroys it.
template <class C, class F>
void is_reclaimed(HeldFixture& fixture, F&& build, bool in_one_transaction) {
    std::optional<TransactionalHeap>& heap = fixture.heap;
    fixture.nothing();
    const auto make = [&] { build(heap->construct<C>("container")); };
    if (!in_one_transaction) transact(*heap, make);
    std::unique_ptr<C> outside;
    {
        Transaction transaction(*heap);
        if (in_one_transaction) make();
        outside = std::make_unique<C>(std::move(*heap->find<C>("container")));
        heap->destroy<C>("container");
        transaction.commit();
    }
    const std::uint64_t with = fixture.blocks();
    fixture.fill("more");
    transact(*heap, [&] { heap->destroy<HeldFixture::Texts>("more"); });
    {
        C expected;
        build(expected);
        BOOST_TEST((*outside == expected));
    }
    BOOST_TEST(fixture.blocks() == with);
    // The image of a process that died now.
    const std::filesystem::path lived = fixture.path;
    const std::filesystem::path died = fixture.directory / ("died " + std::to_string(++fixture.copies));
    std::filesystem::create_directory(died);
    for (const auto& file : std::filesystem::directory_iterator(lived.parent_path()))
        if (file.is_regular_file()) std::filesystem::copy_file(file.path(), died / file.path().filename());
    transact(*heap, [&] { outside.reset(); });  // hash tables clear their buckets
    fixture.nothing();
    const std::uint64_t destroyed = fixture.blocks();
    BOOST_TEST(destroyed < with);
    heap.reset();
    fixture.path = died / "heap.tyn";
    heap.emplace(open_only, fixture.path, fixture.options);
    BOOST_TEST(fixture.blocks() == with);
    fixture.reclaims(with - destroyed);
    BOOST_TEST(fixture.blocks() == destroyed);
    fixture.is_sound();
}

BOOST_AUTO_TEST_CASE(every_container_that_was_moved_out_is_reclaimed_if_the_process_dies) {
    for (const bool at_once : {false, true}) {
        BOOST_TEST_CONTEXT((at_once ? "built in the transaction that moves it out" : "built before")) {
            const auto push = [](auto& container) {
                for (int i = 0; i < 30; ++i) container.push_back(taiyen::string(text));
            };
            const auto insert = [](auto& container) {
                for (int i = 0; i < 30; ++i) container.emplace(i, text);
            };
            is_reclaimed<taiyen::string>(*this, [](taiyen::string& s) { s = text; }, at_once);
            is_reclaimed<taiyen::vector<taiyen::string>>(*this, push, at_once);
            is_reclaimed<taiyen::deque<taiyen::string>>(*this, push, at_once);
            is_reclaimed<taiyen::list<taiyen::string>>(*this, push, at_once);
            is_reclaimed<taiyen::map<int, taiyen::string>>(*this, insert, at_once);
            is_reclaimed<taiyen::unordered_map<int, taiyen::string>>(*this, insert, at_once);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_somebody_else_in_the_heap_refers_to_stays_when_its_holder_dies) {
    using Pointers = taiyen::vector<taiyen::string*>;
    transact(*heap, [&] {
        Pointers& made = heap->construct<Pointers>("pointers");
        for (taiyen::string& one : texts()) made.push_back(&one);
    });
    const std::uint64_t before = blocks();
    {
        std::unique_ptr<Pointers> outside;
        Transaction transaction(*heap);
        outside = std::make_unique<Pointers>(std::move(*heap->find<Pointers>("pointers")));
        transaction.commit();
    }
    crash();
    reclaims(1);
    BOOST_TEST(blocks() == before - 1);
    for (const taiyen::string& found : texts()) BOOST_TEST(found == text);
    is_sound();
}

BOOST_AUTO_TEST_CASE(a_block_that_a_word_still_refers_to_is_not_reclaimed) {
    transact(*heap, [&] { heap->construct<const char*>("alias", texts()[0].data()); });
    const std::uint64_t before = blocks();
    moved_out();
    crash();
    reclaims(0);
    BOOST_TEST(blocks() == before);
    BOOST_TEST(std::string(*heap->find<const char*>("alias")) == text);
}

BOOST_AUTO_TEST_CASE(closing_a_heap_of_which_blocks_are_held_closes_it_and_says_so) {
    const Silence silence;
    std::unique_ptr<Texts> all;
    {
        Transaction transaction(*heap);
        all = std::make_unique<Texts>(std::move(texts()));
        transaction.commit();
    }
    BOOST_TEST(throws(errc::still_in_use, [&] { heap->close(); }));
    BOOST_TEST(!heap->is_open());
    for (const taiyen::string& found : *all) BOOST_TEST(found == text);
    BOOST_TEST(throws(errc::address_in_use, [&] { TransactionalHeap(open_only, path, options); }));
    all.reset();  // tells that its heap is gone
    BOOST_TEST(!Silence::told.empty());
}

/// Moved nowhere, though for a moment somebody outside had a copy of the container's allocator.
template <class C>
void almost_lends(const C& container) {
    const auto copy = container.get_allocator();
    BOOST_REQUIRE((copy == container.get_allocator()));
}

BOOST_AUTO_TEST_CASE(a_node_made_again_where_one_was_freed_keeps_what_follows_it) {
    using List = taiyen::list<int>;
    transact(*heap, [&] { heap->construct<List>("list").assign({1, 2, 3}); });
    transact(*heap, [&] { heap->find<List>("list")->pop_front(); });
    transact(*heap, [&] {
        List& list = *heap->find<List>("list");
        almost_lends(list);
        list.push_front(1);  // its link to the next node is what it was
    });
    BOOST_TEST(held() == 0U);
    heap->close();
}

BOOST_AUTO_TEST_CASE(so_it_does_when_what_was_written_is_cut_before_the_transaction_ends) {
    using List = taiyen::list<int>;
    transact(*heap, [&] { heap->construct<List>("list").assign({1, 2, 3}); });
    transact(*heap, [&] { heap->find<List>("list")->pop_front(); });
    {
        Transaction transaction(*heap);
        List& list = *heap->find<List>("list");
        almost_lends(list);
        list.push_front(1);
        dynamic_cast<txn::TransactionService&>(*HeapAccess::file(*heap).participant()).end_part();
        for (int i = 0; i < 3; ++i) texts().emplace_back(text);
        transaction.commit();
    }
    BOOST_TEST(held() == 0U);
    heap->close();
}

BOOST_AUTO_TEST_CASE(the_block_behind_a_vector_is_not_the_vectors) {
    using Numbers64 = taiyen::vector<std::uint64_t>;
    using Many = taiyen::vector<Numbers64>;
    transact(*heap, [&] {
        Many& many = heap->construct<Many>("many");
        many.reserve(200);
        for (std::size_t i = 0; i < 200; ++i) many.emplace_back(8U);
    });
    // On another page than what is written below.
    transact(*heap, [&] {
        Many& many = *heap->find<Many>("many");
        for (std::size_t i = 0; i < 200; i += 40) {
            almost_lends(many[i]);
            many[i].push_back(1);
        }
    });
    BOOST_TEST(held() == 0U);
}

// A deque copies its allocator to free its map, when its nodes are free already.
BOOST_AUTO_TEST_CASE(who_gets_the_place_of_a_node_of_a_deque_that_is_gone_has_lent_nothing) {
    using Deque = taiyen::deque<std::size_t>;  // its blocks lie where any allocation may get their places
    void* block = nullptr;
    transact(*heap, [&] {
        Deque& deque = heap->construct<Deque>("deque");
        deque.push_back(1);
        const void* const node = &deque.front();
        const auto words = reinterpret_cast<std::uintptr_t*>(&deque);
        heap->destroy<Deque>("deque");
        std::fill_n(words, sizeof deque / sizeof *words, 0U);  // as the next owner does
        std::vector<void*> others;
        while ((block = heap->allocate(512)) != node && others.size() < 1000) others.push_back(block);
        BOOST_TEST_REQUIRE(block == node);
        for (void* const other : others) heap->deallocate(other);
    });
    BOOST_TEST(held() == 0U);
    transact(*heap, [&] { heap->deallocate(block); });
    heap->close();
}

BOOST_AUTO_TEST_CASE(what_was_in_memory_before_a_string_was_made_there_is_none_of_its_pointers) {
    void* page = nullptr;
    volatile std::uintptr_t* words = nullptr;  // what was there before isn't the compiler's to forget
    taiyen::string* string = nullptr;
    transact(*heap, [&] {
        page = heap->allocate(page_bytes);  // an address that ends with the zero of an empty string
        auto* const memory = heap->allocate(sizeof(taiyen::string));
        words = static_cast<volatile std::uintptr_t*>(memory);
        words[3] = reinterpret_cast<std::uintptr_t>(page);
        string = ::new (memory) taiyen::string;
        BOOST_TEST(words[3] == reinterpret_cast<std::uintptr_t>(page));
        almost_lends(*string);
        *string = text;
    });
    BOOST_TEST(held() == 0U);
    transact(*heap, [&] {
        heap->destroy_object(string);
        heap->deallocate(page);
    });
    heap->close();
}

BOOST_AUTO_TEST_CASE(what_lies_where_a_map_has_its_comparison_is_none_of_its_pointers) {
    using Map = taiyen::map<int, int>;
    void* page = nullptr;
    transact(*heap, [&] {
        page = heap->allocate(page_bytes);
        auto* const memory = heap->allocate(sizeof(Map));
        auto* const words = static_cast<volatile std::uintptr_t*>(memory);
        for (const bool is_empty : {false, true}) {
            words[1] = reinterpret_cast<std::uintptr_t>(page);
            Map& map = *::new (memory) Map;
            if (!is_empty) map[1] = 2;
            almost_lends(map);
            std::destroy_at(&map);
            for (std::size_t i = 0; i < sizeof(Map) / sizeof *words; ++i) words[i] = 0;
        }
        heap->deallocate(memory);
    });
    BOOST_TEST(held() == 0U);
    transact(*heap, [&] { heap->deallocate(page); });
    heap->close();
}

BOOST_AUTO_TEST_CASE(a_map_in_memory_where_a_string_was_is_held_when_it_moves_out) {
    using Map = taiyen::map<int, int>;
    const std::uint64_t before = blocks();
    std::optional<Map> outside;
    transact(*heap, [&] {
        auto* const memory = heap->allocate(sizeof(Map));
        auto* const words = static_cast<volatile std::uintptr_t*>(memory);
        words[1] = reinterpret_cast<std::uintptr_t>(words + 3);  // as a string's, where a map has its comparison
        Map& map = *::new (memory) Map;
        BOOST_TEST_REQUIRE(words[1] == reinterpret_cast<std::uintptr_t>(words + 3));
        map[1] = 2;
        outside.emplace(std::move(map));
        heap->destroy_object(&map);
    });
    BOOST_TEST(held() == 1U);
    BOOST_TEST(outside->at(1) == 2);
    outside.reset();
    nothing();
    BOOST_TEST(held() == 0U);
    BOOST_TEST(blocks() == before);
}

BOOST_AUTO_TEST_CASE(a_heap_closes_if_what_seems_to_be_held_is_its_own) {
    transact(*heap, [&] {
        auto*& owner = heap->construct<taiyen::string*>("owner");
        owner = heap->make<taiyen::string>(text);
        heap->construct<std::array<std::byte, 3 * page_bytes>>("between");
        heap->construct<Observer>("observer").observed = owner;
    });
    transact(*heap, [&] {
        auto& observer = *heap->find<Observer>("observer");
        almost_lends(observer.list);
        observer.observed = nullptr;
    });
    BOOST_TEST(held() == 1U);  // a suspicion
    heap->close();
    reopen();
    BOOST_TEST(**heap->find<taiyen::string*>("owner") == text);
}

BOOST_AUTO_TEST_CASE(destroying_a_heap_of_which_blocks_are_held_reports_it) {
    const Silence silence;
    auto outside = moved_out();
    heap.reset();
    BOOST_REQUIRE(Silence::told.size() == 1U);
    BOOST_TEST((Silence::told[0] == errc::still_in_use));
    BOOST_TEST(*outside == text);
}

BOOST_AUTO_TEST_CASE(undo_gives_a_held_block_back_and_redo_takes_it_again) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    for (const int moves : {0, 1, 2, 3}) {
        BOOST_TEST_CONTEXT("moves " << moves) {
            {
                auto outside = moved_out();
                for (int i = 0; i < moves; ++i) BOOST_TEST((i % 2 == 0 ? heap->undo() : heap->redo()));
            }
            const bool is_out = moves % 2 == 0;
            crash();
            heap->attach_undo();
            reclaims(is_out ? 1 : 0);
            BOOST_TEST(blocks() == before - (is_out ? 1 : 0));
            while (heap->undo()) {}
            BOOST_TEST(blocks() == before);
            for (const taiyen::string& found : texts()) BOOST_TEST(found == text);
            is_sound();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_free_that_is_undone_leaves_a_block_to_be_reclaimed) {
    heap->attach_undo();
    const std::uint64_t before = blocks();
    moved_out();
    nothing();  // frees it
    BOOST_TEST(blocks() == before - 1);
    BOOST_TEST(heap->undo());
    BOOST_TEST(blocks() == before);
    crash();
    heap->attach_undo();
    reclaims(1);
    BOOST_TEST(blocks() == before - 1);
    BOOST_TEST(heap->undo());
    BOOST_TEST(heap->undo());
    BOOST_TEST(texts()[0] == text);
    heap->close();  // nobody holds it
    reopen();
    BOOST_TEST(texts()[0] == text);
    BOOST_TEST(blocks() == before);
}

BOOST_AUTO_TEST_CASE(threads_may_each_hold_what_they_moved_out) {
    const std::uint64_t before = blocks();
    {
        std::vector<std::optional<taiyen::string>> outside(4);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < 4; ++i) {
            threads.emplace_back([&, i] {
                for (int round = 0; round < 20; ++round) {
                    transact(*heap, [&] { outside[i].emplace(std::move(texts()[i])); });
                    transact(*heap, [&] { texts()[i] = std::move(*outside[i]); });
                }
                transact(*heap, [&] { outside[i].emplace(std::move(texts()[i])); });
            });
        }
        for (std::thread& thread : threads) thread.join();
        BOOST_TEST(held() == 4U);
        for (const auto& one : outside) BOOST_TEST(*one == text);
    }
    crash();
    reclaims(4);
    BOOST_TEST(blocks() == before - 4);
    is_sound();
}

BOOST_AUTO_TEST_CASE(each_heap_counts_its_own_holders) {
    TransactionalHeap other(create_only, directory / "other.tyn", options);
    transact(other, [&] { other.construct<taiyen::string>("string", text); });
    std::optional<taiyen::string> outside;
    transact(other, [&] { outside.emplace(std::move(*other.find<taiyen::string>("string"))); });
    BOOST_TEST(held() == 0U);
    BOOST_TEST(other.stats().held_blocks == 1U);
    crash();
    BOOST_TEST(*outside == text);
    outside.reset();
    other.close();
}

BOOST_AUTO_TEST_CASE(a_heap_of_a_lower_kind_reclaims_with_its_save) {
    const std::uint64_t before = blocks();
    moved_out();
    crash();
    heap.reset();
    {
        ArchiveHeap archive(open_only, path, options);
        BOOST_TEST(reclaim(archive).freed_blocks == 1U);
        archive.snapshot();
        BOOST_TEST(archive.stats().live_blocks == before - 1);
        archive.close();
    }
    heap.emplace(open_only, path, options);
    BOOST_TEST(blocks() == before - 1);
    is_sound();
}

BOOST_AUTO_TEST_CASE(reclaiming_is_refused_where_something_outside_may_have_blocks) {
    const std::uint64_t before = blocks();
    auto outside = moved_out();
    BOOST_TEST(throws(errc::still_in_use, [&] { reclaim(*heap); }));
    {
        const Transaction transaction(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { reclaim(*heap); }));
    }
    BOOST_TEST(*outside == text);
    outside.reset();
    nothing();
    BOOST_TEST(throws(errc::still_in_use, [&] { reclaim(*heap); }));  // nobody knows what else has come out
    reopen();
    reclaims(0);  // it freed its block itself
    BOOST_TEST(blocks() == before - 1);
}

BOOST_AUTO_TEST_CASE(a_heap_without_named_objects_is_not_reclaimed) {
    TransactionalHeap other(create_only, directory / "other.tyn", options);
    BOOST_TEST(reclaim(other).freed_blocks == 0U);
    void* block = nullptr;
    transact(other, [&] { block = other.allocate(100); });
    BOOST_TEST(throws(errc::invalid_argument, [&] { reclaim(other); }));
    BOOST_TEST(other.stats().live_blocks == 1U);
    other.close();
}

// What went out by way of one object, and came back in the middle of a growing vector, is the heap's.
BOOST_AUTO_TEST_CASE(what_comes_back_somewhere_else_is_held_by_nobody) {
    transact(*heap, [&] {
        Texts& more = heap->construct<Texts>("more");
        for (int i = 0; i < 300; ++i) {
            taiyen::string one(text);
            more.push_back(std::move(one));
            std::swap(more.front(), more.back());
        }
        std::sort(more.begin(), more.end());
        std::rotate(more.begin(), more.begin() + 7, more.end());
        more.shrink_to_fit();
    });
    BOOST_TEST(held() == 0U);
    std::unique_ptr<taiyen::list<taiyen::string>> outside;
    transact(*heap, [&] {
        outside = std::make_unique<taiyen::list<taiyen::string>>(std::move(heap->construct<taiyen::list<taiyen::string>>("list", 3U, text)));
    });
    BOOST_TEST(held() != 0U);
    transact(*heap, [&] {
        outside->emplace_back(text);  // a node of the heap's that nothing in the heap knows
        outside->emplace_front(text);
    });
    BOOST_TEST(outside->size() == 5U);
    transact(*heap, [&] { *heap->find<taiyen::list<taiyen::string>>("list") = std::move(*outside); });
    outside.reset();
    heap->close();  // nothing is held
    reopen();
    BOOST_TEST(heap->find<taiyen::list<taiyen::string>>("list")->size() == 5U);
    reclaims(0);
    is_sound();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
