// Several threads that write and read at once; also what the thread sanitizer looks at.

#include "threads.hpp"

#include <atomic>

#include <boost/test/unit_test.hpp>

#include "txn/txn_fixture.hpp"

namespace taiyen::txn::test {

struct Bank {
    taiyen::map<unsigned, std::int64_t> accounts;
    taiyen::vector<std::uint64_t> last;  ///< per thread, the number of its last transfer
};

}  // namespace taiyen::txn::test

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;
using taiyen::test::at_once;
using taiyen::test::require;

constexpr unsigned accounts = 64;
constexpr std::int64_t money = 1000;

/// Money moves between accounts; the sum stays.
struct BankFixture : TransactionFixture {
    using Bank = taiyen::txn::test::Bank;
    void open_bank() {
        transact(*heap, [&] {
            Bank& bank = heap->construct<Bank>("bank");
            for (unsigned i = 0; i < accounts; ++i) bank.accounts[i] = money;
            bank.last.resize(16);
        });
    }
    Bank& bank() { return *heap->find<Bank>("bank"); }
    static std::int64_t sum(const Bank& bank) {
        std::int64_t found = 0;
        for (const auto& [number, balance] : bank.accounts) found += balance;
        return found;
    }
    void transfer(unsigned thread, std::uint64_t number) {
        Transaction transaction(*heap);
        Bank& all = bank();
        const auto amount = static_cast<std::int64_t>(number % 17);
        all.accounts[(thread * 7 + static_cast<unsigned>(number)) % accounts] -= amount;
        all.accounts[(thread * 11 + 3 * static_cast<unsigned>(number)) % accounts] += amount;
        all.last[thread] = number;
        if (number % 13 == 0) return;  // rolled back
        transaction.commit();
    }
    void run(unsigned writers, unsigned readers, std::uint64_t transfers) {
        open_bank();
        std::atomic<unsigned> writing{writers};
        at_once(writers + readers, [&](unsigned thread) {
            if (thread < writers) {
                for (std::uint64_t i = 1; i <= transfers; ++i) transfer(thread, i);
                writing.fetch_sub(1);
                return;
            }
            Serial before;
            for (std::uint64_t rounds = 0; writing.load() != 0 || rounds == 0; ++rounds) {
                const ReadLock lock(*heap);
                const ReadLock inner(*heap);
                require(sum(bank()) == accounts * money, "a reader saw half a transaction");
                require(lock.serial() >= before, "a reader's serial went back");
                before = lock.serial();
                if (thread == writers && rounds % 64 == 0) require(heap->stats().live_blocks > accounts, "stats() lost blocks");
            }
        });
        BOOST_TEST(sum(bank()) == accounts * money);
        const std::uint64_t last = transfers % 13 == 0 ? transfers - 1 : transfers;
        for (unsigned thread = 0; thread < writers; ++thread) BOOST_TEST(bank().last[thread] == last);
        heap->wait_durable(heap->last_durable());
    }
};

BOOST_FIXTURE_TEST_SUITE(threads, BankFixture)

BOOST_AUTO_TEST_CASE(readers_see_whole_transactions_only, *boost::unit_test::label("threads")) {
    run(3, 2, 30);
    crash();
    BOOST_TEST(sum(bank()) == accounts * money);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(transactions_go_on_while_snapshots_are_made, *boost::unit_test::label("threads")) {
    PersistentOptions with = options;
    with.durability = Durability::async;
    with.log_capacity = std::size_t{64} << 10U;
    replace(with);
    run(3, 1, 1500);
    BOOST_TEST((HeapAccess::file(*heap).files().durable_serial() > Serial{0}));
    heap->snapshot();
    crash();
    BOOST_TEST(sum(bank()) == accounts * money);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(snapshots_verify_and_rebuild_are_asked_for_while_others_write, *boost::unit_test::label("threads")) {
    open_bank();
    at_once(4, [&](unsigned thread) {
        for (std::uint64_t i = 1; i <= 40; ++i)
            if (thread < 2)
                transfer(thread, i);
            else if (thread == 2)
                heap->snapshot();
            else if (i % 4 == 0)
                heap->rebuild();
            else if (i % 8 == 1)
                require(heap->verify().ok(), "verify() finds damage");
    });
    BOOST_TEST(sum(bank()) == accounts * money);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(blocks_on_loan_are_freed_by_other_threads, *boost::unit_test::label("threads")) {
    using Texts = taiyen::vector<taiyen::string>;
    transact(*heap, [&] { heap->construct<Texts>("texts"); });
    const std::uint64_t blocks = heap->stats().live_blocks;
    at_once(3, [&](unsigned thread) {
        for (unsigned i = 0; i < 30; ++i) {
            std::optional<Texts> outside;
            Transaction transaction(*heap);
            Texts& texts = *heap->find<Texts>("texts");
            texts.emplace_back("a text that is longer than what a string keeps inside itself");
            outside.emplace(std::move(texts));
            if ((i + thread) % 3 == 0)
                transaction.rollback();
            else
                transaction.commit();
        }
    });
    transact(*heap, [] {});
    BOOST_TEST(heap->stats().live_blocks == blocks);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
