// Loans against a model that remembers the fate of each number by itself.

#include "change/loans.hpp"
#include "seed.hpp"

#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace {

using taiyen::change::Loans;
using Fate = Loans::Fate;

/// Begins as the library does.
std::uint32_t begin(Loans& loans) {
    const std::uint32_t number = loans.try_begin();
    return number != 0 ? number : loans.begin();
}
void end(Loans& loans, bool kept) {
    if (!kept || !loans.try_end()) loans.end(kept);
}

BOOST_AUTO_TEST_SUITE(loans)

BOOST_AUTO_TEST_CASE(the_fate_of_a_number_is_that_of_its_transaction) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 20; ++round) {
        Loans loans;
        std::map<std::uint32_t, bool> kept;                           // by number
        std::vector<std::pair<std::uint32_t, std::uint32_t>> steps;   // that can be undone
        std::vector<std::pair<std::uint32_t, std::uint32_t>> undone;  // the newest last
        BOOST_TEST((loans.fate(0) == Fate::committed));
        for (int i = 0; i < 300; ++i) {
            const std::uint32_t number = begin(loans);
            BOOST_REQUIRE((loans.fate(number) == Fate::open));
            const std::uint64_t what = random() % 8;
            if (what == 0 && !steps.empty()) {
                loans.undo(steps.back().first, steps.back().second);
                undone.push_back(steps.back());
                steps.pop_back();
            } else if (what == 1 && !undone.empty()) {
                loans.redo(undone.back().first, undone.back().second);
                steps.push_back(undone.back());
                undone.pop_back();
            } else if (what <= 4) {  // a new step; what is undone stays so
                loans.settle();
                for (const auto& [first, last] : undone)
                    for (std::uint32_t of = first; of <= last; ++of) kept[of] = false;
                undone.clear();
                steps.emplace_back(number, number);
            } else if (what == 5 && steps.size() > 1) {  // two steps become one
                const auto newest = steps.back();
                steps.pop_back();
                steps.back().second = newest.second;
            }
            const bool keeps = random() % 3 != 0 || what <= 5;
            end(loans, keeps);
            kept[number] = keeps;
            if (i % 10 != 0) continue;
            for (const auto& [of, was_kept] : kept) {
                bool is_undone = false;
                for (const auto& [first, last] : undone) is_undone = is_undone || (first <= of && of <= last);
                BOOST_REQUIRE((loans.fate(of) == (was_kept && !is_undone ? Fate::committed : Fate::rolled_back)));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(what_waits_is_freed_by_the_next_transaction_that_is_kept_unless_its_own_was_rolled_back) {
    Loans loans;
    int block[3] = {};
    const std::uint32_t kept = begin(loans);
    end(loans, true);
    const std::uint32_t rolled_back = begin(loans);
    end(loans, false);
    loans.wait(&block[0], kept);
    loans.wait(&block[1], rolled_back);
    BOOST_TEST(loans.any_waits());
    std::vector<void*> freed;
    const auto free = [&](void* at) { freed.push_back(at); };
    begin(loans);
    loans.free_waiting(free);
    BOOST_TEST(!loans.try_end());
    loans.end(false);  // it waits again
    BOOST_TEST((freed == std::vector<void*>{&block[0]}));
    BOOST_TEST(loans.any_waits());
    begin(loans);
    loans.free_waiting(free);
    loans.wait(&block[2], 0);  // from another thread, meanwhile
    loans.end(true);
    BOOST_TEST((freed == std::vector<void*>{&block[0], &block[0]}));
    BOOST_TEST(loans.any_waits());
    begin(loans);
    loans.free_waiting(free);
    loans.end(true);
    BOOST_TEST(freed.back() == &block[2]);
    BOOST_TEST(!loans.any_waits());
}

BOOST_AUTO_TEST_CASE(an_inner_transaction_that_was_rolled_back_takes_those_within_it_along_and_no_others) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 200; ++round) {
        Loans loans;
        std::map<std::uint32_t, Fate> fates;
        for (int i = 0; i < 20; ++i) {
            std::vector<std::uint32_t> open{begin(loans)};
            fates[open[0]] = Fate::open;
            const auto all_from = [&](std::uint32_t first, Fate from, Fate to) {
                for (auto at = fates.lower_bound(first); at != fates.end(); ++at)
                    if (at->second == from) at->second = to;
            };
            for (std::uint64_t turns = random() % 30; turns-- > 0;) {
                if (open.size() == 1 || random() % 2 == 0) {
                    const std::uint32_t number = loans.begin_inner(open.size() + 1);
                    BOOST_REQUIRE(number > open.back());
                    open.push_back(number);
                    fates[number] = Fate::open;
                } else {
                    if (random() % 2 == 0) {
                        loans.inner_rolled_back(open.back());
                        all_from(open.back(), Fate::open, Fate::rolled_back);
                    }
                    open.pop_back();
                }
                for (const auto& [number, fate] : fates) BOOST_REQUIRE((loans.fate(number) == fate));
            }
            const bool keeps = random() % 2 == 0;
            end(loans, keeps);
            all_from(open[0], Fate::open, keeps ? Fate::committed : Fate::rolled_back);
            for (const auto& [number, fate] : fates) BOOST_REQUIRE((loans.fate(number) == fate));
            BOOST_REQUIRE(loans.last() == fates.rbegin()->first);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_transaction_begins_without_the_lock_only_while_there_is_room_for_one_more_that_is_undone) {
    Loans loans;
    std::vector<std::uint32_t> kept;
    for (int i = 0; i < 17; ++i) {  // each between two that were rolled back: no two of them are a range
        kept.push_back(begin(loans));
        end(loans, true);
        begin(loans);
        end(loans, false);
    }
    int undone = 0;
    while (loans.try_begin() != 0) {
        BOOST_TEST_REQUIRE(undone < 16);
        const std::uint32_t newest = kept[kept.size() - 1 - static_cast<std::size_t>(undone)];
        loans.undo(newest, newest);
        ++undone;
        end(loans, true);
    }
    BOOST_TEST(undone == 16);  // what is undone is full, while what was rolled back has room for all of it
    BOOST_TEST(loans.begin() != 0U);
    loans.undo(kept.front(), kept.front());
    end(loans, true);
    for (const std::uint32_t number : kept) {
        BOOST_TEST((loans.fate(number) == Fate::rolled_back));
        BOOST_TEST((loans.fate(number + 1) == Fate::rolled_back));
    }
}

BOOST_AUTO_TEST_CASE(a_free_that_waits_goes_on_waiting_while_its_transaction_is_undone) {
    Loans loans;
    int block = 0;
    std::vector<void*> freed;
    const auto transaction = [&](bool kept) {
        begin(loans);
        loans.free_waiting([&](void* one) { freed.push_back(one); });
        end(loans, kept);
    };
    const std::uint32_t number = begin(loans);
    end(loans, true);
    loans.wait(&block, number);
    begin(loans);
    loans.undo(number, number);
    end(loans, true);
    transaction(true);
    transaction(false);
    BOOST_TEST(freed.empty());
    begin(loans);
    loans.redo(number, number);
    end(loans, true);
    transaction(false);
    BOOST_TEST(freed.size() == 1U);  // taken back
    transaction(true);
    BOOST_TEST(freed.size() == 2U);
    transaction(true);
    BOOST_TEST(freed.size() == 2U);
    BOOST_TEST(!loans.any_waits());
    // One that stays undone is forgotten.
    const std::uint32_t other = begin(loans);
    end(loans, true);
    loans.wait(&block, other);
    begin(loans);
    loans.undo(other, other);
    end(loans, true);
    begin(loans);
    loans.settle();
    end(loans, true);
    transaction(true);
    BOOST_TEST(freed.size() == 2U);
    BOOST_TEST(!loans.any_waits());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
