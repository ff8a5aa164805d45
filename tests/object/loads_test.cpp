// What is loaded at once, what is loaded in the background, what is held, and pauses for everybody.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/object/object_manager.hpp>

#include "object/check_outs_fixture.hpp"
#include "seed.hpp"
#include "threads.hpp"
#include "throws.hpp"

namespace loads_test {

using namespace taiyen;
using namespace taiyen::object::test;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::test::seed_of_run;
using taiyen::test::throws;
using namespace std::chrono_literals;

using Ids = std::vector<std::int64_t>;

/// There are objects for 0 to 99; all calls are kept.
struct ManyLoaded {
    std::vector<int> objects = std::vector<int>(100);
    std::mutex mutex;
    std::vector<Ids> calls;

    void load(std::span<const std::int64_t> ids, std::span<int*> found) {
        const std::lock_guard lock(mutex);
        calls.emplace_back(ids.begin(), ids.end());
        for (std::size_t i = 0; i < ids.size(); ++i) {
            require(found[i] == nullptr, "nothing is there before");
            if (ids[i] >= 0 && ids[i] < 100) found[i] = &objects[static_cast<std::size_t>(ids[i])];
        }
    }
    ObjectManager<int>::Options options() {
        return {.load_many = [this](std::span<const std::int64_t> ids, std::span<int*> found) { load(ids, found); }};
    }
};

BOOST_FIXTURE_TEST_SUITE(loads, ManyLoaded)

BOOST_AUTO_TEST_CASE(what_a_request_lacks_is_loaded_in_one_call) {
    ObjectManager<int> manager(options());
    manager.add(5, objects[5]);
    {
        auto held = manager.checkout({7, 3, 5, 9, 3});
        BOOST_TEST(static_cast<bool>(held));
        held.edit(9) = 90;
    }
    BOOST_TEST((calls == std::vector<Ids>{{3, 7, 9}}));
    BOOST_TEST(objects[9] == 90);
    auto partly = manager.checkout({-2, 3, 4, 1000});
    BOOST_TEST(!partly);
    BOOST_TEST((partly.missing() == Ids{-2, 1000}));
    BOOST_TEST((calls.back() == Ids{-2, 4, 1000}));
    // What there was stays known, what there wasn't is asked for again.
    BOOST_TEST(static_cast<bool>(manager.checkout({3, 4})));
    BOOST_TEST(calls.size() == 2U);
    BOOST_TEST(!manager.checkout(-2));
    BOOST_TEST(calls.size() == 3U);
    BOOST_TEST(manager.statistics().loaded == 4U);
    BOOST_TEST(manager.statistics().objects == 5U);
}

BOOST_AUTO_TEST_CASE(a_call_that_throws_has_loaded_nothing_and_the_next_request_tries_again) {
    bool fails = true;
    ObjectManager<int> manager({.load_many = [&](std::span<const std::int64_t> ids, std::span<int*> found) {
        load(ids, found);
        if (fails) throw std::runtime_error("no");
    }});
    BOOST_CHECK_THROW((void)manager.checkout({1, 2, 3}), std::runtime_error);
    BOOST_TEST(manager.statistics().objects == 0U);
    BOOST_TEST(!manager.contains(2));
    fails = false;
    BOOST_TEST(manager.checkout({1, 2, 3}).size() == 3U);
    BOOST_TEST(manager.statistics().loaded == 3U);
}

BOOST_AUTO_TEST_CASE(requests_that_overlap_load_each_object_once, *boost::unit_test::label("threads")) {
    ObjectManager<int> manager(options());
    const std::uint64_t seed = seed_of_run();
    at_once(4, [&](unsigned number) {
        std::mt19937_64 random(seed + number);
        for (int i = 0; i < 200; ++i) {
            Ids ids;
            for (int j = 0; j < 6; ++j) ids.push_back(static_cast<std::int64_t>(random() % 100));
            if (random() % 4 == 0) manager.prefetch(ids);
            auto held = manager.checkout(ids);
            require(static_cast<bool>(held), "all of them are there");
            held.edit_each([](std::int64_t, int& object) { ++object; });
        }
    });
    std::map<std::int64_t, int> times;
    for (const Ids& call : calls)
        for (const std::int64_t id : call) ++times[id];
    BOOST_TEST(std::ranges::all_of(times, [](const auto& one) { return one.second == 1; }));
    BOOST_TEST(manager.statistics().loaded == times.size());
}

BOOST_AUTO_TEST_CASE(what_is_prefetched_is_loaded_by_another_thread_while_the_caller_goes_on, *boost::unit_test::label("threads")) {
    for (const bool many : {false, true}) {
        std::latch let_go(1);
        std::atomic<std::thread::id> loader{};
        ObjectManager<int>::Options with;
        const auto wait = [&] {
            let_go.wait();
            loader = std::this_thread::get_id();
        };
        if (many) {
            with.load_many = [&](std::span<const std::int64_t> ids, std::span<int*> found) {
                wait();
                load(ids, found);
            };
        } else {
            with.load = [&](std::int64_t id) -> int* {
                wait();
                if (id == 13) throw std::runtime_error("unlucky");
                return id < 0 ? nullptr : &objects[static_cast<std::size_t>(id)];
            };
        }
        ObjectManager<int> manager(with);
        manager.prefetch({1, 2, 1});
        manager.prefetch({2, -1, 13});
        BOOST_TEST(!manager.contains(1));
        BOOST_TEST(!manager.try_checkout(1));
        std::atomic<std::thread::id> called{};
        std::promise<void> told;
        const Ids ids{1, 2};
        manager.checkout_async(ids, Access::shared, [&](Checkout<int> got, std::exception_ptr error) {
            if (got && !error) called = std::this_thread::get_id();
            told.set_value();
        });
        auto missing = manager.checkout_later({-1});
        auto unlucky = manager.checkout_later({13});
        BOOST_TEST((told.get_future().wait_for(0s) == std::future_status::timeout));
        let_go.count_down();
        BOOST_TEST(manager.checkout({2}).size() == 1U);
        BOOST_TEST((missing.get().missing() == Ids{-1}));
        if (many)
            BOOST_TEST(unlucky.get().size() == 1U);
        else
            BOOST_CHECK_THROW((void)unlucky.get(), std::runtime_error);
        (void)manager.checkout({1});
        manager.stop();
        BOOST_TEST((called.load() == loader.load()));
        BOOST_TEST((called.load() != std::this_thread::get_id()));
    }
    // What is known already needs no loader, and no thread.
    ObjectManager<int> knows;
    knows.add(1, objects[1]);
    knows.prefetch({1, 2});
    BOOST_TEST(!knows.checkout({2}));
}

BOOST_AUTO_TEST_CASE(what_is_said_not_to_exist_is_asked_for_once, *boost::unit_test::label("threads")) {
    std::latch let_go(1);
    std::atomic<int> asked{0};
    ObjectManager<int> manager({.load_many = [&](std::span<const std::int64_t>, std::span<int*>) {
        ++asked;
        let_go.wait();
    }});
    manager.prefetch({1});
    std::vector<std::future<Checkout<int>>> waiting;
    for (int i = 0; i < 5; ++i) waiting.push_back(manager.checkout_later({1}));
    let_go.count_down();
    for (auto& one : waiting) BOOST_TEST((one.get().missing() == Ids{1}));
    BOOST_TEST(asked == 1);
}

BOOST_AUTO_TEST_CASE(a_pause_for_writers_that_begins_while_one_for_everybody_ends_lets_readers_pass, *boost::unit_test::label("threads")) {
    for (int round = 0; round < 20; ++round) {
        ObjectManager<int> manager(options());
        auto everybody = std::make_optional(manager.pause(Paused::everybody));
        std::vector<std::future<Checkout<int>>> readers;
        for (int i = 0; i < 40; ++i) readers.push_back(manager.checkout_later({i}, Access::shared));
        std::optional<ObjectManager<int>::Pause> for_writers;
        std::thread begins([&] { for_writers.emplace(manager.pause()); });
        everybody.reset();
        begins.join();
        for (auto& reader : readers) BOOST_TEST(static_cast<bool>(reader.get()));
        for_writers.reset();
    }
}

BOOST_AUTO_TEST_CASE(a_manager_that_stops_loads_no_more_and_leaves_nobody_waiting, *boost::unit_test::label("threads")) {
    std::latch begun(1);
    std::latch let_go(1);
    std::atomic<int> loaded{0};
    std::optional<ObjectManager<int>> manager;
    manager.emplace(ObjectManager<int>::Options{.load = [&](std::int64_t id) {
        ++loaded;
        if (id == 1) {
            begun.count_down();
            let_go.wait();
        }
        return &objects[static_cast<std::size_t>(id)];
    }});
    manager->prefetch({1, 4, 5});
    manager->prefetch({2, 3});
    begun.wait();
    auto waits = manager->checkout_later({2});
    manager->stop();
    BOOST_TEST(throws(errc::stopped, [&] { (void)waits.get(); }));
    BOOST_TEST(throws(errc::stopped, [&] { manager->prefetch({4}); }));
    std::thread later([&] {
        std::this_thread::sleep_for(5ms);
        let_go.count_down();
    });
    manager.reset();
    later.join();
    BOOST_TEST(loaded == 1);
}

BOOST_AUTO_TEST_CASE(what_is_held_is_told_by_id_with_its_readers) {
    ObjectManager<int> manager(options());
    BOOST_TEST(manager.held().empty());
    const auto writes = manager.checkout({40, 4});
    const auto reads = manager.checkout({7, 20}, Access::shared);
    const auto reads_too = manager.checkout({7}, Access::shared);
    manager.prefetch({50});
    (void)manager.checkout({50});
    const auto found = manager.held();
    BOOST_REQUIRE(found.size() == 4U);
    const auto is = [&](std::size_t i, std::int64_t id, Access access, unsigned readers) {
        return found[i].id == id && found[i].access == access && found[i].readers == readers;
    };
    BOOST_TEST(is(0, 4, Access::exclusive, 0));
    BOOST_TEST(is(1, 7, Access::shared, 2));
    BOOST_TEST(is(2, 20, Access::shared, 1));
    BOOST_TEST(is(3, 40, Access::exclusive, 0));
}

BOOST_AUTO_TEST_CASE(held_objects_are_told_also_while_the_table_grows_around_them) {
    ObjectManager<int> manager;
    std::vector<int> many(5000);
    Ids ids;
    for (std::size_t i = 0; i < many.size(); ++i) manager.add(ids.emplace_back(static_cast<std::int64_t>(i * 7)), many[i]);
    const auto reads = manager.checkout(ids, Access::shared);
    std::vector<int> more(20'000);
    for (std::size_t i = 0; i < more.size(); ++i) manager.add(static_cast<std::int64_t>(1'000'000 + i), more[i]);
    const auto found = manager.held();
    BOOST_TEST(std::ranges::equal(found, ids, {}, &HeldObject::id));
}

BOOST_AUTO_TEST_CASE(a_pause_that_nobody_lets_begin_ends_with_its_time) {
    ObjectManager<int> manager(options());
    {
        const auto writes = manager.checkout({1});
        BOOST_TEST(!manager.pause_for(1ms));
        BOOST_TEST(!manager.pause_for(1ms, Paused::everybody));
    }
    const auto reads = manager.checkout({1}, Access::shared);
    BOOST_TEST(!manager.pause_for(1ms, Paused::everybody));
    // Nothing is left of it: everybody passes.
    BOOST_TEST(static_cast<bool>(manager.try_checkout({1}, Access::shared)));
    BOOST_TEST(static_cast<bool>(manager.try_checkout({2})));
    const auto quiet = manager.pause_for(std::chrono::nanoseconds::max());
    BOOST_TEST(static_cast<bool>(quiet));
    BOOST_TEST(!manager.try_checkout({2}));
    BOOST_TEST(static_cast<bool>(manager.try_checkout({2}, Access::shared)));
}

BOOST_AUTO_TEST_CASE(readers_wait_for_the_end_of_a_pause_for_everybody_and_pass_one_for_writers) {
    ObjectManager<int> manager(options());
    auto for_writers = manager.pause();
    auto everybody = manager.pause(Paused::everybody);
    BOOST_TEST(!manager.try_checkout({1}, Access::shared));
    auto reads = manager.checkout_later({1}, Access::shared);
    auto writes = manager.checkout_later({2});
    BOOST_TEST((reads.wait_for(0s) == std::future_status::timeout));
    everybody.resume();
    BOOST_TEST(static_cast<bool>(reads.get()));
    BOOST_TEST((writes.wait_for(0s) == std::future_status::timeout));
    for_writers.resume();
    BOOST_TEST(static_cast<bool>(writes.get()));
}

/// How many check-outs were alive in pauses for everybody.
int seen_in_pauses(std::uint64_t seed) {
    auto manager = make_manager<int>();
    std::vector<int> objects(8);
    for (std::size_t i = 0; i < objects.size(); ++i) manager->add(static_cast<std::int64_t>(i), objects[i]);
    std::atomic<int> inside{0};
    std::atomic<int> seen{0};
    std::atomic<bool> over{false};
    at_once(4, [&](unsigned number) {
        std::mt19937_64 random(seed + number);
        if (number == 0) {
            for (int i = 0; i < 100; ++i) {
                const bool hurries = random() % 3 == 0;
                const auto quiet =
                    hurries ? manager->pause_for(std::chrono::microseconds(random() % 200), Paused::everybody) : manager->pause(Paused::everybody);
                if (quiet) seen += inside;
            }
            over = true;
            return;
        }
        while (!over) {
            const Ids ids{static_cast<std::int64_t>(random() % 8), static_cast<std::int64_t>(random() % 8)};
            const auto held = manager->checkout(ids, random() % 3 == 0 ? Access::exclusive : Access::shared);
            ++inside;
            std::this_thread::yield();
            --inside;
        }
    });
    return seen;
}

BOOST_AUTO_TEST_CASE(nobody_has_anything_in_a_pause_for_everybody, *boost::unit_test::label("threads")) {
    const std::uint64_t seed = seed_of_run();
    const Hampered hampered(Bug::none, 20, seed);
    for (std::uint64_t i = 0; i < 5; ++i) BOOST_TEST(seen_in_pauses(seed + 100 * i) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace loads_test
