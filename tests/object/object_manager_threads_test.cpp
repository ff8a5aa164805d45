// What ObjectManager promises to many threads: nothing is lost, nobody waits for ever, and each promise is seen to be kept by somebody.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/object/object_manager.hpp>

#include "object/check_outs_fixture.hpp"
#include "seed.hpp"
#include "threads.hpp"
#include "throws.hpp"

using taiyen::Access;
using taiyen::Bug;
using taiyen::Checkout;
using taiyen::errc;
using taiyen::ObjectManager;
using taiyen::Paused;
using taiyen::object::CheckOuts;
using taiyen::object::ObjectTable;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::test::seed_of_run;
using taiyen::test::throws;
using namespace taiyen::object::test;

BOOST_AUTO_TEST_SUITE(object_manager_threads)

namespace {

using Id = std::int64_t;
using Clock = std::chrono::steady_clock;

/// Tells on itself when two change it at once, or one reads meanwhile.
struct Thing {
    std::atomic<int> writers{0};
    std::atomic<int> readers{0};
    std::uint64_t changes = 0;

    void change() {
        require(writers.fetch_add(1) == 0 && readers.load() == 0, "a writer is alone");
        ++changes;
        require(writers.fetch_sub(1) == 1, "a writer is alone until it is done");
    }
    void read() {
        readers.fetch_add(1);
        require(writers.load() == 0, "no writer is beside a reader");
        readers.fetch_sub(1);
    }
};

struct Crowd {
    unsigned threads = 4;
    unsigned things = 5;
    unsigned ids_max = 3;
    int requests = 300;  ///< of each thread
    std::chrono::milliseconds lost_after = for_ever;
    Bug bug = Bug::none;
    unsigned one_step_in = 12;
    bool later = true;  ///< some requests have a callback
};

/// Threads that ask for random objects. False: a request waited for ever, or a callback wasn't called once.
bool all_are_granted(const Crowd& crowd, std::uint64_t seed) {
    const Hampered hampered(crowd.bug, crowd.one_step_in, seed);
    std::vector<Thing> things(crowd.things);
    auto manager = make_manager<Thing>();
    for (unsigned i = 0; i < crowd.things; ++i) manager->add(i, things[i]);
    std::atomic<bool> lost{false};
    std::atomic<int> asked_later{0};
    std::atomic<int> called{0};
    std::atomic<std::uint64_t> changes{0};
    at_once(crowd.threads, [&](unsigned number) {
        std::mt19937_64 random(seed + number);
        for (int i = 0; i < crowd.requests && !lost; ++i) {
            std::vector<Id> ids(1 + random() % crowd.ids_max);
            for (Id& id : ids) id = static_cast<Id>(random() % crowd.things);
            const Access access = random() % 3 == 0 ? Access::shared : Access::exclusive;
            const auto use = [&things, &changes](Checkout<Thing>& held) {
                held.for_each([&](Id id, const Thing&) {
                    if (held.access() == Access::shared) {
                        things[static_cast<std::size_t>(id)].read();
                    } else {
                        held.edit(id).change();
                        changes.fetch_add(1);
                    }
                });
            };
            const auto kind = random() % 10;
            if (kind == 0) {
                Checkout<Thing> held = manager->try_checkout(ids, access);
                if (held) use(held);
            } else if (kind == 1) {
                Checkout<Thing> held = manager->checkout_for(ids, std::chrono::microseconds(random() % 200), access);
                if (held) use(held);
            } else if (kind < 4 && crowd.later) {
                ++asked_later;
                manager->checkout_async(ids, access, [&called, use](Checkout<Thing> held, std::exception_ptr) {
                    use(held);
                    ++called;
                });
            } else {
                Checkout<Thing> held = manager->checkout_for(ids, crowd.lost_after, access);
                if (held)
                    use(held);
                else
                    lost = true;
            }
        }
    });
    // Whoever gave something back has called the callbacks that this made possible.
    const bool every_callback = called == asked_later;
    std::uint64_t counted = 0;
    for (const Thing& thing : things) counted += thing.changes;
    require(counted == changes, "every change is there");
    if (every_callback && !lost) require(manager->statistics().waiting == 0, "nobody waits");
    manager->stop();
    return !lost && every_callback;
}

/// Tries until it is seen.
template <class F>
bool comes_true(F&& condition) {
    const auto end = Clock::now() + for_ever;
    while (!condition()) {
        if (Clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_wake_up_is_lost_however_threads_interrupt_each_other, *boost::unit_test::label("threads")) {
    const std::uint64_t seed = seed_of_run();
    for (unsigned round = 0; round < 6; ++round) {
        Crowd crowd;
        crowd.threads = 2 + round % 4;
        crowd.things = 1 + round;
        crowd.ids_max = 1 + round % 3;
        crowd.one_step_in = round % 2 == 0 ? 12 : 3;
        BOOST_TEST(all_are_granted(crowd, seed + round));
    }
}

BOOST_AUTO_TEST_CASE(what_is_given_back_just_before_somebody_would_sleep_for_it_is_seen) {
    const auto sees = [](Bug bug, int steps_before) {
        const Hampered hampered(bug);
        Thing thing;
        bool granted = false;
        auto manager = make_manager<Thing>();
        manager->add(1, thing);
        Checkout<Thing> held = manager->checkout(1);
        int steps = 0;
        std::function<void()> step = [&] {
            if (++steps > steps_before)
                held.release();
            else
                TestSteps::at_next_step = step;
        };
        TestSteps::at_next_step = step;
        const std::vector<Id> ids{1};
        manager->checkout_async(ids, Access::exclusive, [&](Checkout<Thing>, std::exception_ptr) { granted = true; });
        TestSteps::at_next_step = nullptr;
        held.release();
        return granted;
    };
    // Wherever it happens on the request's way.
    bool noticed = false;
    for (int steps = 0; steps < 6; ++steps) {
        BOOST_TEST(sees(Bug::none, steps));
        noticed = noticed || !sees(Bug::sleep_without_look, steps);
    }
    BOOST_TEST(noticed);
}

BOOST_AUTO_TEST_CASE(who_is_counted_as_waiting_stands_where_it_will_be_woken) {
    for (const bool at_the_gate : {false, true}) {
        Thing thing;
        auto manager = make_manager<Thing>();
        manager->add(1, thing);
        Checkout<Thing> held;
        std::optional<ObjectManager<Thing>::Pause> paused;
        if (at_the_gate)
            paused.emplace(manager->pause());
        else
            held = manager->checkout(1);
        int steps = 0;
        int counted_on_its_way = 0;
        std::function<void()> step = [&] {
            ++steps;
            if (manager->statistics().waiting != 0) ++counted_on_its_way;
            TestSteps::at_next_step = step;
        };
        TestSteps::at_next_step = step;
        const std::vector<Id> ids{1};
        bool granted = false;
        manager->checkout_async(ids, Access::exclusive, [&](Checkout<Thing>, std::exception_ptr) { granted = true; });
        TestSteps::at_next_step = nullptr;
        BOOST_TEST(steps >= 2);
        BOOST_TEST(counted_on_its_way == 0);
        BOOST_TEST(manager->statistics().waiting == 1U);
        paused.reset();
        held.release();
        BOOST_TEST(granted);
        BOOST_TEST(manager->statistics().waiting == 0U);
    }
}

BOOST_AUTO_TEST_CASE(requests_that_overlap_in_opposite_orders_never_lock_each_other_up, *boost::unit_test::label("threads")) {
    // A second by default, a minute in the campaign.
    const char* const seconds = std::getenv("TAIYEN_CHECKOUT_SECONDS");
    const auto end = Clock::now() + (seconds != nullptr ? std::chrono::milliseconds(1000 * std::atoi(seconds)) : std::chrono::milliseconds(500));
    std::array<Thing, 4> things;
    auto manager = make_manager<Thing>();
    for (int i = 0; i < 4; ++i) manager->add(i, things[static_cast<std::size_t>(i)]);
    const Hampered hampered(Bug::none, 40);
    std::array<std::uint64_t, 4> grants{};
    at_once(4, [&](unsigned number) {
        const std::vector<Id> ids = number % 2 == 0 ? std::vector<Id>{0, 1, 2} : std::vector<Id>{2, 3, 0};
        do {
            Checkout<Thing> held = manager->checkout_for(ids, for_ever);
            require(static_cast<bool>(held), "every request is granted");
            for (const Id id : ids) held.edit(id).change();
            ++grants[number];
        } while (Clock::now() < end);
    });
    for (const std::uint64_t count : grants) BOOST_TEST(count > 0U);
    BOOST_TEST(things[0].changes == grants[0] + grants[1] + grants[2] + grants[3]);
}

BOOST_AUTO_TEST_CASE(a_request_for_sixteen_hot_objects_is_granted_among_requests_for_one, *boost::unit_test::label("threads")) {
    std::array<Thing, 16> things;
    auto manager = make_manager<Thing>();
    std::vector<Id> all;
    for (int i = 0; i < 16; ++i) {
        manager->add(i, things[static_cast<std::size_t>(i)]);
        all.push_back(i);
    }
    const Hampered hampered(Bug::none, 20);
    std::atomic<bool> done{false};
    const std::uint64_t seed = seed_of_run();
    at_once(5, [&](unsigned number) {
        if (number == 0) {
            struct Done {
                std::atomic<bool>& done;
                ~Done() { done = true; }
            } const at_end{done};
            for (int i = 0; i < 30; ++i) {
                Checkout<Thing> held = manager->checkout_for(all, for_ever, i % 3 == 0 ? Access::shared : Access::exclusive);
                require(held.size() == 16, "it gets all of them");
            }
            return;
        }
        std::mt19937_64 random(seed + number);
        while (!done) {
            Checkout<Thing> held = manager->checkout(static_cast<Id>(random() % 16));
            std::this_thread::yield();
            held.for_each([&](Id id, const Thing&) { held.edit(id).change(); });
        }
    });
    BOOST_TEST(manager->statistics().waiting == 0U);
}

BOOST_AUTO_TEST_CASE(an_absent_object_is_loaded_by_one_of_all_who_ask, *boost::unit_test::label("threads")) {
    const auto each_once = [](Bug bug) {
        const Hampered hampered(bug, 6);
        std::array<std::atomic<int>, 50> loads{};
        std::array<Thing, 50> things;
        auto manager = make_manager<Thing>(patient([&](Id id) -> void* {
            ++loads[static_cast<std::size_t>(id)];
            std::this_thread::yield();
            return &things[static_cast<std::size_t>(id)];
        }));
        at_once(4, [&](unsigned number) {
            for (Id id = 0; id < 50; ++id) {
                const std::vector<Id> ids{id, (id + 1 + number) % 50};
                Checkout<Thing> held = manager->checkout_for(ids, for_ever);
                require(static_cast<bool>(held), "what is loaded is granted");
                held.edit(id).change();
            }
        });
        return std::all_of(loads.begin(), loads.end(), [](const std::atomic<int>& count) { return count == 1; });
    };
    BOOST_TEST(each_once(Bug::none));
    bool is_seen = false;  // up to chance
    for (unsigned tries = 0; tries < 20 && !is_seen; ++tries) is_seen = !each_once(Bug::loaded_twice);
    BOOST_TEST(is_seen);
}

BOOST_AUTO_TEST_CASE(everybody_who_waits_for_a_load_learns_that_it_failed, *boost::unit_test::label("threads")) {
    const auto all_learn = [](Bug bug) {
        const Hampered hampered(bug, 6);
        std::atomic<int> loads{0};
        ObjectManager<Thing>* asked = nullptr;
        Thing thing;
        auto manager = make_manager<Thing>(patient([&](Id) -> void* {
            if (++loads > 1) return &thing;
            require(comes_true([&] { return asked->statistics().waiting == 3; }), "three others wait");
            throw std::runtime_error("disk");
        }));
        asked = manager.get();
        std::atomic<int> failures{0};
        at_once(4, [&](unsigned) {
            try {
                (void)manager->checkout(7);
            } catch (const std::runtime_error&) {
                ++failures;
            }
        });
        require(static_cast<bool>(manager->checkout(7)), "the next request tries again");
        return failures == 4 && loads == 2;
    };
    BOOST_TEST(all_learn(Bug::none));
    BOOST_TEST(!all_learn(Bug::failure_untold));
}

BOOST_AUTO_TEST_CASE(everybody_who_waits_for_a_load_learns_that_there_is_nothing, *boost::unit_test::label("threads")) {
    const Hampered hampered(Bug::none, 6);
    std::atomic<int> loads{0};
    ObjectManager<Thing>* asked = nullptr;
    auto manager = make_manager<Thing>(patient([&](Id) -> void* {
        ++loads;
        require(comes_true([&] { return asked->statistics().waiting == 3; }), "three others wait");
        return nullptr;
    }));
    asked = manager.get();
    at_once(4, [&](unsigned) {
        const Checkout<Thing> held = manager->checkout(7);
        require(!held && held.missing() == std::vector<Id>{7}, "it is missing");
    });
    BOOST_TEST(loads == 1);
    BOOST_TEST(manager->statistics().objects == 0U);
}

BOOST_AUTO_TEST_CASE(nobody_writes_during_a_pause, *boost::unit_test::label("threads")) {
    const Hampered hampered(Bug::none, 5);
    std::array<Thing, 8> things;
    auto manager = make_manager<Thing>();
    for (int i = 0; i < 8; ++i) manager->add(i, things[static_cast<std::size_t>(i)]);
    std::atomic<bool> done{false};
    std::atomic<bool> pausing{false};
    std::atomic<bool> disturbed{false};
    const std::uint64_t seed = seed_of_run();
    at_once(4, [&](unsigned number) {
        if (number == 0) {
            for (int i = 0; i < 60 && !disturbed; ++i) {
                auto paused = manager->pause();
                pausing = true;
                std::this_thread::sleep_for(std::chrono::microseconds(100));
                if (!manager->checkout_for({1, 2}, for_ever, Access::shared)) disturbed = true;  // readers pass
                pausing = false;
                paused.resume();
                std::this_thread::sleep_for(std::chrono::microseconds(50));  // writers begin by themselves
            }
            done = true;
            return;
        }
        std::mt19937_64 random(seed + number);
        while (!done) {
            Checkout<Thing> held = manager->checkout({static_cast<Id>(random() % 8), static_cast<Id>(random() % 8)});
            if (pausing) disturbed = true;
            std::this_thread::yield();
            if (pausing) disturbed = true;
        }
    });
    BOOST_TEST(!disturbed);
}

BOOST_AUTO_TEST_CASE(a_pause_that_begins_in_the_middle_of_a_request_holds_it_up) {
    const auto holds_up = [](Bug bug, int steps_before, Access access = Access::exclusive) {
        const Hampered hampered(bug);
        Thing thing;
        auto manager = make_manager<Thing>();
        manager->add(1, thing);
        bool granted = false;
        std::optional<ObjectManager<Thing>::Pause> paused;
        int steps = 0;
        std::function<void()> step = [&] {
            if (++steps > steps_before)
                paused.emplace(manager->pause(access == Access::shared ? Paused::everybody : Paused::writers));
            else
                TestSteps::at_next_step = step;
        };
        TestSteps::at_next_step = step;
        const std::vector<Id> ids{1};
        manager->checkout_async(ids, access, [&](Checkout<Thing>, std::exception_ptr) { granted = true; });
        const bool held_up = !granted;
        paused.reset();
        return held_up && granted;
    };
    // Before the request looks whether there is a pause, and right after it.
    for (const int steps : {0, 1}) BOOST_TEST(holds_up(Bug::none, steps));
    BOOST_TEST(!holds_up(Bug::entered_unseen, 1));
    for (const int steps : {0, 1}) BOOST_TEST(holds_up(Bug::none, steps, Access::shared));
    BOOST_TEST(!holds_up(Bug::entered_unseen, 1, Access::shared));
}

BOOST_AUTO_TEST_CASE(a_pause_that_begins_while_another_one_ends_sees_nobody_let_through, *boost::unit_test::label("threads")) {
    Thing thing;
    auto manager = make_manager<Thing>();
    manager->add(1, thing);
    std::optional<ObjectManager<Thing>::Pause> ends(manager->pause());
    std::atomic<bool> paused{false};
    bool granted = false;
    bool during_a_pause = false;
    const std::vector<Id> ids{1};
    manager->checkout_async(ids, Access::exclusive, [&](Checkout<Thing> checkout, std::exception_ptr) {
        granted = static_cast<bool>(checkout);
        during_a_pause = paused;
    });
    // When it is let through, and hasn't got anything yet:
    std::thread begins;
    TestSteps::at_next_step = [&] {
        begins = std::thread([&] {
            const auto pause = manager->pause();
            paused = true;
        });
        for (int i = 0; i < 50 && !paused; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    ends.reset();
    begins.join();
    BOOST_TEST(granted);
    BOOST_TEST(!during_a_pause);
}

BOOST_AUTO_TEST_CASE(a_load_that_fails_is_no_failure_of_who_waits_for_another_id, *boost::unit_test::label("threads")) {
    Id same_bucket = 2;
    while (ObjectTable::first_bucket_of(same_bucket) != ObjectTable::first_bucket_of(1)) ++same_bucket;
    enum class Told { the_truth, anothers_failure, nothing };
    /// Nothing: the request had fewer steps.
    const auto serves_another_at_step = [&](int number, Bug bug) {
        const Hampered hampered(bug);
        std::atomic<bool> loading{false};
        std::atomic<bool> fails{false};
        auto manager = make_manager<Thing>(patient([&](Id id) -> void* {
            if (id == 1) return nullptr;
            loading = true;
            while (!fails) std::this_thread::yield();
            throw std::runtime_error("the other one");
        }));
        Thing thing;
        manager->add(1, thing);
        Checkout<Thing> held = manager->checkout(1);
        std::thread loader;
        int steps = 0;
        std::function<void()> step = [&] {
            if (++steps < number) {
                TestSteps::at_next_step = step;
                return;
            }
            held.release();
            manager->remove(1);
            loader = std::thread([&] { BOOST_CHECK_THROW((void)manager->checkout(same_bucket), std::runtime_error); });
            while (!loading) std::this_thread::yield();
        };
        TestSteps::at_next_step = step;
        bool failed = true;
        std::vector<Id> missing;
        const std::vector<Id> ids{1};
        manager->checkout_async(ids, Access::exclusive, [&](Checkout<Thing> checkout, std::exception_ptr error) {
            failed = error != nullptr;
            missing = checkout.missing();
        });
        TestSteps::at_next_step = nullptr;
        fails = true;
        if (!loader.joinable()) {
            held.release();
            return Told::nothing;
        }
        loader.join();
        return !failed && missing == ids ? Told::the_truth : Told::anothers_failure;
    };
    // Wherever on the request's way its entry begins to serve another id; most of all where it has found that it has to wait, and doesn't stand in the queue yet.
    bool noticed = false;
    int number = 1;
    for (Told told = Told::the_truth; told != Told::nothing; ++number) {
        told = serves_another_at_step(number, Bug::none);
        BOOST_TEST((told != Told::anothers_failure));
        noticed = noticed || serves_another_at_step(number, Bug::stands_for_other_id) == Told::anothers_failure;
    }
    BOOST_TEST(number > 3);
    BOOST_TEST(noticed);
}

BOOST_AUTO_TEST_CASE(an_object_is_removed_when_nobody_has_it_any_more, *boost::unit_test::label("threads")) {
    const auto waits = [](Bug bug) {
        const Hampered hampered(bug);
        Thing thing;
        auto manager = make_manager<Thing>();
        manager->add(1, thing);
        Checkout<Thing> held = manager->checkout(1, Access::shared);
        std::atomic<bool> removed{false};
        std::thread remover([&] { manager->remove(1, [&](Thing&) { removed = true; }); });
        comes_true([&] { return removed || manager->statistics().waiting == 1; });
        const bool too_early = removed;
        held.release();
        remover.join();
        return !too_early && removed;
    };
    BOOST_TEST(waits(Bug::none));
    BOOST_TEST(!waits(Bug::removed_while_held));
}

BOOST_AUTO_TEST_CASE(who_waits_for_an_object_that_is_removed_is_told_that_it_is_missing, *boost::unit_test::label("threads")) {
    Thing thing;
    auto manager = make_manager<Thing>();
    manager->add(1, thing);
    std::vector<Id> missing;
    std::thread waiter;
    manager->remove(1, [&](Thing&) {
        waiter = std::thread([&] { missing = manager->checkout(1).missing(); });
        comes_true([&] { return manager->statistics().waiting == 1; });
    });
    waiter.join();
    BOOST_TEST(missing == std::vector<Id>{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_entry_that_serves_another_id_meanwhile_is_not_taken_for_the_first_one) {
    const auto compares = [](Bug bug) {
        const Hampered hampered(bug);
        std::array<Thing, 2> things;
        auto manager = make_manager<Thing>();
        manager->add(1, things[0]);
        // An id of the same bucket gets the entry that was given back.
        Id same_bucket = 2;
        while (ObjectTable::first_bucket_of(same_bucket) != ObjectTable::first_bucket_of(1)) ++same_bucket;
        // Within the request, when it has found the entry and not yet taken it:
        TestSteps::at_next_step = [&] {
            TestSteps::at_next_step = [&] {
                manager->remove(1);
                manager->add(same_bucket, things[1]);
            };
        };
        const Checkout<Thing> held = manager->checkout(1);
        TestSteps::at_next_step = nullptr;
        return held.missing() == std::vector<Id>{1};
    };
    BOOST_TEST(compares(Bug::none));
    BOOST_TEST(!compares(Bug::ids_not_compared));
}

BOOST_AUTO_TEST_CASE(what_moves_while_it_is_asked_for_is_there) {
    const Hampered hampered(Bug::none);
    auto manager = make_manager<Thing>();
    std::array<Thing, 11> things;
    std::vector<Id> ids;
    for (Id id = 0; ids.size() < things.size(); ++id)
        if (ObjectTable::mix(id) >> 58U == 0) ids.push_back(id);
    for (std::size_t i = 0; i < 10; ++i) manager->add(ids[i], things[i]);
    // When it has found the entry and not yet looked into it, their shard grows.
    TestSteps::at_next_step = [&] { manager->add(ids[10], things[10]); };
    BOOST_TEST(manager->contains(ids[0]));
    TestSteps::at_next_step = nullptr;
    BOOST_TEST(manager->statistics().objects == 11U);
}

BOOST_AUTO_TEST_CASE(a_request_does_not_wait_for_itself_when_a_load_moves_what_it_has_found) {
    // The load of one id makes the shard grow. The last one that moves leaves its entry to the loaded one, whose bucket is full: two ids of one request lead there.
    const auto bucket = [](Id id, std::uint64_t count) { return (ObjectTable::mix(id) >> 16U) & (count - 1); };
    std::vector<Id> ids;
    for (Id id = 0; ids.size() < 3; ++id)
        if (ObjectTable::mix(id) >> 58U == 0 && bucket(id, 16) == 3) ids.push_back(id);
    const Id loaded = ids.back();
    ids.pop_back();
    for (Id id = loaded + 1; ids.size() < 9; ++id)
        if (ObjectTable::mix(id) >> 58U == 0 && bucket(id, 8) == ids.size() - 2 && bucket(id, 16) != 3) ids.push_back(id);
    Id last = ids.back() + 1;
    while (ObjectTable::mix(last) >> 58U != 0 || bucket(last, 8) != 7) ++last;
    ids.push_back(last);
    for (const bool waits : {false, true}) {
        std::array<Thing, 11> things;
        auto manager = make_manager<Thing>(patient([&](Id id) { return id == loaded ? &things[10] : nullptr; }));
        for (std::size_t i = 0; i < ids.size(); ++i) manager->add(ids[i], things[i]);
        const std::array<Id, 2> both{loaded, last};
        const Checkout<Thing> held = waits ? manager->checkout(both) : manager->try_checkout(both);
        BOOST_REQUIRE(held);
        BOOST_TEST(&held.get(loaded) == &things[10]);
        BOOST_TEST(&held.get(last) == &things[9]);
    }
}

BOOST_AUTO_TEST_CASE(a_stop_wakes_everybody_who_waits, *boost::unit_test::label("threads")) {
    // Nothing: the three did not wait at the same time.
    const auto wakes = [](Bug bug, std::chrono::milliseconds lost_after) -> std::optional<bool> {
        const Hampered hampered(bug);
        Thing thing;
        auto manager = make_manager<Thing>();
        manager->add(1, thing);
        Checkout<Thing> held = manager->checkout(1);
        std::atomic<int> told{0};
        std::atomic<int> returned{0};
        bool waited = false;
        at_once(4, [&](unsigned number) {
            if (number == 0) {
                require(comes_true([&] {
                            waited = manager->statistics().waiting == 3;
                            return waited || returned == 3;
                        }),
                        "three wait");
                manager->stop();
                return;
            }
            if (throws(errc::stopped, [&] { (void)manager->checkout_for({1}, lost_after); })) ++told;
            ++returned;
        });
        return waited ? std::optional(told == 3) : std::nullopt;
    };
    BOOST_TEST((wakes(Bug::none, for_ever) == true));
    std::optional<bool> woken;
    for (std::chrono::milliseconds lost_after{100}; !woken; lost_after *= 2) woken = wakes(Bug::stop_wakes_nobody, lost_after);
    BOOST_TEST(!*woken);
}

BOOST_AUTO_TEST_CASE(objects_come_and_go_while_others_use_them, *boost::unit_test::label("threads")) {
    const std::uint64_t seed = seed_of_run();
    const Hampered hampered(Bug::none, 10, seed);
    constexpr int ids = 12;
    struct Life {
        std::atomic<bool> there{false};
        Thing thing;
    };
    // Without a text: the thread sanitizer doesn't see how the library counts the threads that share an exception.
    struct DiskFailure {};
    std::array<Life, ids> lives;
    auto manager = make_manager<Life>(patient([&](Id id) -> void* {
        if (id % 4 == 3) return nullptr;
        if (id % 4 == 2 && (id + Clock::now().time_since_epoch().count()) % 5 == 0) throw DiskFailure();
        Life& life = lives[static_cast<std::size_t>(id)];
        require(!life.there.exchange(true), "what is loaded was gone");
        return &life;
    }));
    at_once(4, [&](unsigned number) {
        std::mt19937_64 random(seed + number);
        for (int i = 0; i < 800; ++i) {
            const std::vector<Id> wanted{static_cast<Id>(random() % ids), static_cast<Id>(random() % ids)};
            try {
                if (random() % 4 == 0) {
                    manager->remove(wanted[0], [](Life& life) { require(life.there.exchange(false), "what is removed was there"); });
                    continue;
                }
                const Access access = random() % 2 == 0 ? Access::shared : Access::exclusive;
                Checkout<Life> held = manager->checkout_for(wanted, for_ever, access);
                require(held || !held.missing().empty(), "every request ends");
                held.for_each([&](Id id, const Life& life) {
                    require(&life == &lives[static_cast<std::size_t>(id)] && life.there, "what is held is there");
                    if (access == Access::exclusive)
                        held.edit(id).thing.change();
                    else
                        lives[static_cast<std::size_t>(id)].thing.read();
                });
            } catch (const DiskFailure&) {  // NOLINT(bugprone-empty-catch): the next one tries again
            }
        }
    });
    BOOST_TEST(manager->statistics().waiting == 0U);
}

BOOST_AUTO_TEST_CASE(every_callback_is_called_once_also_when_a_stop_comes_in_between, *boost::unit_test::label("threads")) {
    const std::uint64_t seed = seed_of_run();
    for (int round = 0; round < 20; ++round) {
        const Hampered hampered(Bug::none, 10, seed);
        std::array<Thing, 3> things;
        auto manager = make_manager<Thing>();
        for (int i = 0; i < 3; ++i) manager->add(i, things[static_cast<std::size_t>(i)]);
        std::array<std::atomic<int>, 200> called{};
        at_once(4, [&](unsigned number) {
            std::mt19937_64 random(seed + number);
            if (number == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
                manager->stop();
                return;
            }
            if (number == 1) {
                for (int i = 0; i < 20; ++i) {
                    const auto paused = manager->pause();
                    std::this_thread::yield();
                }
                return;
            }
            for (int i = 0; i < 100; ++i) {
                const std::vector<Id> ids{static_cast<Id>(random() % 3), static_cast<Id>(random() % 3)};
                manager->checkout_async(ids, random() % 2 == 0 ? Access::shared : Access::exclusive,
                                        [&, slot = (number - 2) * 100 + static_cast<unsigned>(i)](Checkout<Thing> held, std::exception_ptr error) {
                                            require(held ? !error : error != nullptr, "either objects or an error");
                                            ++called[slot];
                                        });
            }
        });
        for (const std::atomic<int>& count : called) BOOST_REQUIRE(count == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()
