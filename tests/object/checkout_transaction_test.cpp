// Changes that several threads prepare at once, committed to a transactional heap.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "threads.hpp"

namespace taiyen::object::test {

struct Account {
    std::int64_t money = 0;
    taiyen::vector<std::int64_t> bookings;
    taiyen::string owner;
    void book(std::int64_t amount) {
        money += amount;
        bookings.push_back(amount);
        owner += 'x';
    }
};
struct Plain {
    std::int64_t money = 0;
    std::int64_t bookings = 0;
};

}  // namespace taiyen::object::test

BOOST_AUTO_TEST_SUITE(checkout_transactions)

namespace {

using namespace taiyen;
using taiyen::object::test::Account;
using taiyen::object::test::Plain;
using taiyen::test::at_once;
using taiyen::test::require;

PersistentOptions small_heap(Capture capture) {
    PersistentOptions options;
    options.capacity = std::size_t{64} << 20U;
    options.log_capacity = std::size_t{1} << 20U;
    options.capture = capture;
    return options;
}

template <class T>
struct MoneyFixture {
    explicit MoneyFixture(Capture capture = Capture::pages) : heap(create_only, directory / "heap.tyn", small_heap(capture)) {
        if (capture == Capture::declared) {
            audit_free_setup();
        } else {
            transact(heap, [&] {
                auto& all = heap.construct<Accounts>("accounts");
                for (std::int64_t id = 0; id < 8; ++id) all[id].money = 1000;
            });
        }
        accounts = heap.find<Accounts>("accounts");
    }
    /// Containers declare nothing: the file is set up by another way of capture.
    void audit_free_setup() {
        heap.close();
        {
            TransactionalHeap first(open_only, directory / "heap.tyn", small_heap(Capture::pages));
            transact(first, [&] {
                auto& all = first.construct<Accounts>("accounts");
                for (std::int64_t id = 0; id < 8; ++id) all[id].money = 1000;
            });
        }
        heap = TransactionalHeap(open_only, directory / "heap.tyn", small_heap(Capture::declared));
    }
    using Accounts = taiyen::map<std::int64_t, T>;
    ScratchDirectory directory;
    TransactionalHeap heap;
    Accounts* accounts = nullptr;
    ObjectManager<T> manager{{.load = [this](std::int64_t id) {
        const auto found = accounts->find(id);
        return found == accounts->end() ? nullptr : &found->second;
    }}};
    std::int64_t money() const {
        const ReadLock lock(heap);
        std::int64_t sum = 0;
        for (const auto& [id, account] : *accounts) sum += account.money;
        return sum;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_changes_before_the_commit_and_everything_with_it) {
    MoneyFixture<Account> bank;
    auto held = bank.manager.checkout({1, 2});
    CheckoutTransaction<Account> change(bank.heap, held);
    change.draft(1).book(-5);
    change.draft(2).book(5);
    BOOST_TEST((*bank.accounts)[1].money == 1000);
    BOOST_TEST(change.draft(1).money == 995);
    const Serial serial = change.commit();
    BOOST_TEST((bank.heap.last_durable() >= serial));
    BOOST_TEST(bank.accounts->at(1).money == 995);
    BOOST_TEST(bank.accounts->at(2).bookings.at(0) == 5);
    BOOST_TEST(!change.has_draft(1));
    held.release();
    bank.heap.close();
    TransactionalHeap again(open_only, bank.directory / "heap.tyn", small_heap(Capture::pages));
    BOOST_TEST((again.find<MoneyFixture<Account>::Accounts>("accounts")->at(1).owner == "x"));
}

BOOST_AUTO_TEST_CASE(drafts_that_are_not_committed_leave_no_trace) {
    MoneyFixture<Account> bank;
    {
        auto held = bank.manager.checkout(1);
        CheckoutTransaction<Account> change(bank.heap, held);
        change.draft(1).book(7);
    }
    {
        auto held = bank.manager.checkout(1);
        CheckoutTransaction<Account> change(bank.heap, held);
        BOOST_TEST(change.draft(1).money == 1000);
        change.draft(1).book(7);
        BOOST_CHECK_THROW(change.commit([](Transaction&, Account& account, Account&& draft) {
            account = std::move(draft);
            throw std::runtime_error("halfway");
        }),
                          std::runtime_error);
    }
    BOOST_TEST(bank.accounts->at(1).money == 1000);
    BOOST_TEST(bank.accounts->at(1).bookings.empty());
}

BOOST_AUTO_TEST_CASE(what_was_committed_and_not_confirmed_is_no_draft_any_more) {
    /// Takes frames until it is away.
    class Target final : public ReplicationTarget {
    public:
        std::atomic<bool> away{false};
        std::string name() const override { return "a target"; }
        Range range() override { return {1, last_}; }
        bool append(std::uint64_t number, std::span<const std::byte>) override {
            if (away) throw Error(errc::unreachable, "it is away");
            last_ = number;
            return true;
        }
        std::vector<std::byte> read(std::uint64_t) override { throw Error(errc::not_found, "it keeps nothing"); }
        void trim(std::uint64_t) override {}

    private:
        std::uint64_t last_ = 0;
    };
    MoneyFixture<Account> bank;
    const auto target = std::make_shared<Target>();
    ReplicationOptions how;
    how.acknowledge = Acknowledge::replicated;
    how.confirm_timeout = std::chrono::milliseconds(20);
    how.close_timeout = std::chrono::milliseconds(0);
    const ReportHandler before = set_report_handler([](const Incident&) noexcept {});
    {
        const Replication replication(bank.heap, target, how);
        auto held = bank.manager.checkout({1, 2});
        CheckoutTransaction<Account> change(bank.heap, held);
        change.draft(1).book(-5);
        target->away = true;
        BOOST_CHECK_EXCEPTION(change.commit(), Error, [](const Error& error) { return error.code() == errc::unconfirmed; });
        BOOST_TEST(!change.has_draft(1));
        change.draft(2).book(5);
        BOOST_CHECK_EXCEPTION(change.commit(), Error, [](const Error& error) { return error.code() == errc::unconfirmed; });
        BOOST_TEST(bank.accounts->at(1).money == 995);
        BOOST_TEST(bank.accounts->at(1).bookings.size() == 1U);
        BOOST_TEST(bank.accounts->at(2).money == 1005);
    }
    set_report_handler(before);
}

BOOST_AUTO_TEST_CASE(only_what_is_checked_out_exclusively_has_drafts) {
    MoneyFixture<Account> bank;
    auto held = bank.manager.checkout(1, Access::shared);
    CheckoutTransaction<Account> change(bank.heap, held);
    BOOST_CHECK_THROW((void)change.draft(1), Error);
    BOOST_CHECK_THROW((void)change.draft(2), Error);
}

BOOST_AUTO_TEST_CASE(threads_prepare_at_the_same_time_what_is_committed_one_after_the_other, *boost::unit_test::label("threads")) {
    MoneyFixture<Account> bank;
    constexpr int transfers = 25;
    std::atomic<int> preparing{0};
    std::atomic<int> most{0};
    const std::uint64_t seed = taiyen::test::seed_of_run();
    at_once(4, [&](unsigned number) {
        std::mt19937_64 random(seed + number);
        for (int i = 0; i < transfers; ++i) {
            const auto from = static_cast<std::int64_t>(random() % 8);
            const std::int64_t to = (from + 1 + static_cast<std::int64_t>(random() % 7)) % 8;
            auto held = bank.manager.checkout({from, to});
            CheckoutTransaction<Account> change(bank.heap, held);
            const int now = ++preparing;
            int before = most;
            while (before < now && !most.compare_exchange_weak(before, now)) {}
            change.draft(from).book(-3);
            std::this_thread::yield();
            change.draft(to).book(3);
            --preparing;
            change.commit();
        }
    });
    BOOST_TEST(bank.money() == 8000);
    std::size_t bookings = 0;
    for (const auto& [id, account] : *bank.accounts) bookings += account.bookings.size();
    BOOST_TEST(bookings == 2U * 4 * transfers);
    BOOST_TEST(bank.heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(plain_objects_are_declared_by_the_commit) {
    MoneyFixture<Plain> bank(Capture::declared);
    for (int i = 0; i < 10; ++i) {
        auto held = bank.manager.checkout({1, 2});
        CheckoutTransaction<Plain> change(bank.heap, held);
        change.draft(1).money -= 3;
        change.draft(2).money += 3;
        ++change.draft(2).bookings;
        change.commit();
    }
    BOOST_TEST(bank.accounts->at(2).bookings == 10);
    // What was not declared would not be in the log, and so not in the files.
    bank.heap.close();
    TransactionalHeap again(open_only, bank.directory / "heap.tyn", small_heap(Capture::pages));
    BOOST_TEST((again.find<MoneyFixture<Plain>::Accounts>("accounts")->at(2).bookings == 10));
    BOOST_TEST((again.find<MoneyFixture<Plain>::Accounts>("accounts")->at(1).money == 970));
}

BOOST_AUTO_TEST_SUITE_END()
