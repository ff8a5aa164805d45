// Containers outside the heap that were filled, moved into or out of it, and destroyed after a commit or a rollback: every combination.

#include <memory>

#include <boost/test/unit_test.hpp>

#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

const char* const lent_text = "a text that is longer than what a string keeps inside itself";
const char* const filler = "another text that is as long as the first one was, or somewhat longer than it";

struct LentFixture : TransactionFixture {
    using Texts = taiyen::vector<taiyen::string>;
    LentFixture() {
        transact(*heap, [&] { fill(heap->construct<Texts>("texts")); });
    }
    static void fill(Texts& texts) {
        for (int i = 0; i < 4; ++i) texts.emplace_back(lent_text);
    }
    Texts& texts() { return *heap->find<Texts>("texts"); }
    std::uint64_t blocks() { return heap->stats().live_blocks; }
    /// Whoever freed too much loses it to these.
    void reuse() {
        transact(*heap, [&] {
            auto& more = heap->find_or_construct<Texts>("more");
            for (int i = 0; i < 200; ++i) more.emplace_back(filler);
        });
        transact(*heap, [&] { heap->destroy<Texts>("more"); });
    }
    void is_whole(std::size_t size = 4) {
        BOOST_TEST(texts().size() == size);
        for (const taiyen::string& found : texts()) BOOST_TEST((found == lent_text || found.empty()));
        BOOST_TEST(heap->verify().ok());
    }
    void start_again() {
        transact(*heap, [&] {
            heap->destroy<Texts>("texts");
            fill(heap->construct<Texts>("texts"));
        });
    }
};

enum class End { commit, rollback };
enum class Death { within, after, after_another, after_the_heap_reopened };

BOOST_FIXTURE_TEST_SUITE(lent, LentFixture)

BOOST_AUTO_TEST_CASE(whatever_moves_out_or_in_and_dies_when_it_likes_frees_its_own_blocks_and_no_others) {
    const Silence silence;  // what outlives the heap frees nothing, and says so
    int combinations = 0;
    for (const End end : {End::commit, End::rollback}) {
        for (const Death death : {Death::within, Death::after, Death::after_another, Death::after_the_heap_reopened}) {
            for (const int what : {0, 1, 2, 3, 4, 5, 6}) {
                // What looks at bytes of a heap that is closed, or keeps its scratch memory, can't go on.
                if (death == Death::after_the_heap_reopened && what != 0) continue;
                // What is held keeps its addresses until the process ends (held_test.cpp).
                if (death == Death::after_the_heap_reopened && end == End::commit) continue;
                BOOST_TEST_CONTEXT("end " << static_cast<int>(end) << ", death " << static_cast<int>(death) << ", what " << what) {
                    ++combinations;
                    start_again();
                    transact(*heap, [] {});
                    const std::uint64_t before = blocks();
                    auto string = std::make_unique<std::optional<taiyen::string>>();
                    auto vector = std::make_unique<std::optional<Texts>>();
                    {
                        Transaction transaction(*heap);
                        switch (what) {
                            case 0: string->emplace(std::move(texts()[0])); break;  // out
                            case 1: vector->emplace(std::move(texts())); break;
                            case 2:  // in
                                string->emplace(lent_text);
                                texts()[0] = std::move(**string);
                                break;
                            case 3:
                                vector->emplace();
                                fill(**vector);
                                texts() = std::move(**vector);
                                break;
                            case 4:  // out and in again
                                vector->emplace(std::move(texts()));
                                texts() = std::move(**vector);
                                break;
                            case 5:  // filled outside only
                                vector->emplace(texts());
                                (*vector)->emplace_back(lent_text);
                                break;
                            default:  // out, and filled there
                                vector->emplace(std::move(texts()));
                                for (int i = 0; i < 40; ++i) (*vector)->emplace_back(lent_text);
                        }
                        if (death == Death::within) {
                            string->reset();
                            vector->reset();
                        }
                        if (end == End::commit)
                            transaction.commit();
                        else
                            transaction.rollback();
                    }
                    if (death == Death::after_another) reuse();
                    if (death == Death::after_the_heap_reopened) heap->close();
                    string.reset();
                    vector.reset();
                    if (death == Death::after_the_heap_reopened) reopen();
                    reuse();
                    const bool went = end == End::commit && (what == 1 || what == 6);
                    is_whole(went ? 0 : 4);
                    if (end == End::rollback) BOOST_TEST(blocks() == before);
                    if (death != Death::after) continue;
                    crash();
                    is_whole(went ? 0 : 4);
                }
            }
        }
    }
    BOOST_TEST(combinations == 43);
}

BOOST_AUTO_TEST_CASE(a_loan_that_was_committed_is_freed_by_the_next_transaction) {
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        Transaction transaction(*heap);
        outside.emplace(std::move(texts()[0]));
        transaction.commit();
    }
    BOOST_TEST(blocks() == before);
    {
        const Transaction rolled_back(*heap);
        BOOST_TEST(blocks() == before - 1);
    }
    BOOST_TEST(blocks() == before);
    transact(*heap, [] {});
    BOOST_TEST(blocks() == before - 1);
    crash();
    BOOST_TEST(blocks() == before - 1);
}

BOOST_AUTO_TEST_CASE(what_waits_to_be_freed_is_freed_by_closing) {
    const std::uint64_t before = blocks();
    {
        std::optional<taiyen::string> outside;
        Transaction transaction(*heap);
        outside.emplace(std::move(texts()[0]));
        transaction.commit();
    }
    heap->close();
    reopen();
    BOOST_TEST(blocks() == before - 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
