#include <taiyen/stl/allocator.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "heap/memory_core.hpp"
#include "stl/values.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;
using stl::test::long_text;

namespace {

const auto no_heap = [](const Error& error) { return error.code() == errc::no_current_heap; };

/// Whether the container's elements are where they should be.
template <class C>
bool durable_in(const C& container, const MemoryCore& core) {
    return heap::in_durable(core, &*container.begin());
}
template <class C>
bool scratch_of(const C& container, const MemoryCore& core) {
    return heap::in_scratch(core, &*container.begin());
}

/// Runs `action` in a child process; whether it ended by abort().
template <class F>
bool aborts(F action) {
    const pid_t child = fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        set_report_handler(+[](const Incident& incident) noexcept {
            if (incident.code != errc::foreign_pointer) _exit(2);
        });
        action();
        _exit(0);
    }
    int status = 0;
    BOOST_REQUIRE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(homes)

BOOST_AUTO_TEST_CASE(inside_a_heap_the_address_wins_whatever_was_given) {
    MemoryCore first;
    MemoryCore second;
    const CurrentHeap use(second);
    auto* const plain = stl::make<taiyen::vector<int>>(first);
    auto* const given = stl::make<taiyen::vector<int>>(first, persistent_allocator<int>(second));
    const taiyen::vector<int> outside({1, 2, 3}, second);
    auto* const copied = stl::make<taiyen::vector<int>>(first, outside);
    auto* const moved = stl::make<taiyen::vector<int>>(first, taiyen::vector<int>({1, 2, 3}, second));
    plain->push_back(1);
    given->push_back(1);
    for (auto* const each : {plain, given, copied, moved}) {
        BOOST_TEST(durable_in(*each, first));
        stl::destroy_object(first, each);
    }
    BOOST_TEST(first.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(an_allocator_inside_a_heap_stores_zeros_only) {
    MemoryCore core;
    auto* const stored = stl::make<taiyen::vector<persistent_allocator<int>>>(core, 3U, persistent_allocator<int>(core));
    for (const auto& allocator : *stored) {
        std::uint64_t word = 1;
        std::memcpy(&word, &allocator, sizeof word);
        BOOST_TEST(word == 0U);
    }
    stl::destroy_object(core, stored);
}

BOOST_AUTO_TEST_CASE(outside_the_given_heap_wins_over_the_current_one) {
    MemoryCore first;
    MemoryCore second;
    const CurrentHeap use(second);
    const taiyen::string given(long_text(1).c_str(), first);
    const taiyen::string current(long_text(1).c_str());
    BOOST_TEST(scratch_of(given, first));
    BOOST_TEST(scratch_of(current, second));
}

BOOST_AUTO_TEST_CASE(without_any_heap_the_first_block_is_refused) {
    MemoryCore core;
    taiyen::string short_text("bolt");  // needs no block
    BOOST_TEST(short_text == "bolt");
    BOOST_CHECK_EXCEPTION(short_text.append(100, 'x'), Error, no_heap);
    taiyen::vector<int> numbers;
    BOOST_CHECK_EXCEPTION(numbers.push_back(1), Error, no_heap);
    const CurrentHeap use(core);
    numbers.push_back(1);  // decided now
    BOOST_TEST(scratch_of(numbers, core));
}

BOOST_AUTO_TEST_CASE(the_first_allocation_decides_for_good) {
    MemoryCore first;
    MemoryCore second;
    taiyen::vector<int> numbers;
    {
        const CurrentHeap use(first);
        numbers.push_back(1);
    }
    {
        const CurrentHeap use(second);
        numbers.assign(1000, 2);
    }
    numbers.assign(5000, 3);
    BOOST_TEST(scratch_of(numbers, first));
    BOOST_TEST(second.scratch_live() == 0U);
}

BOOST_AUTO_TEST_CASE(a_copy_goes_to_the_current_heap_and_without_one_to_its_sources) {
    MemoryCore first;
    MemoryCore second;
    auto* const stored = stl::make<taiyen::string>(first, long_text(1).c_str());
    const taiyen::string copy(*stored);
    BOOST_TEST(scratch_of(copy, first));
    const CurrentHeap use(second);
    const taiyen::string other(*stored);
    BOOST_TEST(scratch_of(other, second));
    stl::destroy_object(first, stored);
}

BOOST_AUTO_TEST_CASE(what_is_moved_out_stays_durable_and_is_freed_at_once) {
    MemoryCore core;
    auto* const stored = stl::make<taiyen::vector<taiyen::string>>(core);
    stored->emplace_back(long_text(1).c_str());
    const auto blocks = core.engine().stats().live_blocks;
    {
        const auto out = std::move(stored->front());
        BOOST_TEST(durable_in(out, core));
        BOOST_TEST(core.engine().stats().live_blocks == blocks);
    }
    BOOST_TEST(core.engine().stats().live_blocks == blocks - 1);
    stl::destroy_object(core, stored);
    BOOST_TEST(core.scratch_live() == 0U);
}

BOOST_AUTO_TEST_CASE(elements_of_a_volatile_container_are_volatile_too) {
    MemoryCore first;
    MemoryCore second;
    const CurrentHeap use(second);
    taiyen::vector<taiyen::string> strings(first);
    strings.emplace_back(long_text(1).c_str());
    BOOST_TEST(scratch_of(strings, first));
    BOOST_TEST(scratch_of(strings.front(), first));
}

BOOST_AUTO_TEST_CASE(equal_means_same_heap_and_both_durable_or_both_volatile) {
    MemoryCore first;
    MemoryCore second;
    auto* const inside = stl::make<taiyen::string>(first);
    auto* const inside_too = stl::make<taiyen::string>(first);
    auto* const elsewhere = stl::make<taiyen::string>(second);
    const taiyen::string outside(first);
    const taiyen::string outside_too(first);
    const taiyen::string outside_elsewhere(second);
    const auto lent = inside->get_allocator();
    BOOST_TEST((inside->get_allocator() == inside_too->get_allocator()));
    BOOST_TEST((lent == inside->get_allocator()));
    BOOST_TEST((outside.get_allocator() == outside_too.get_allocator()));
    BOOST_TEST((outside.get_allocator() == persistent_allocator<int>(first)));
    BOOST_TEST((inside->get_allocator() != elsewhere->get_allocator()));
    BOOST_TEST((inside->get_allocator() != outside.get_allocator()));
    BOOST_TEST((outside.get_allocator() != outside_elsewhere.get_allocator()));
    for (auto* each : {inside, inside_too}) stl::destroy_object(first, each);
    stl::destroy_object(second, elsewhere);
}

BOOST_AUTO_TEST_CASE(a_swap_between_different_homes_is_reported_and_aborts) {
    MemoryCore first;
    MemoryCore second;
    taiyen::vector<int> undecided;
    taiyen::vector<int> outside({1}, first);
    taiyen::vector<int> elsewhere({2}, second);
    BOOST_TEST(aborts([&] { outside.swap(elsewhere); }));
    auto* const inside = stl::make<taiyen::vector<int>>(first);
    auto* const inside_other = stl::make<taiyen::vector<int>>(second);
    BOOST_TEST(aborts([&] { inside->swap(*inside_other); }));
    BOOST_TEST(aborts([&] { std::swap(*inside, *inside_other); }));
    BOOST_TEST(aborts([&] { inside->swap(outside); }));
    BOOST_TEST(aborts([&] { outside.swap(*inside); }));
    BOOST_TEST(aborts([&] { inside->swap(undecided); }));
    BOOST_TEST(!aborts([&] { outside.swap(outside); }));
    stl::destroy_object(first, inside);
    stl::destroy_object(second, inside_other);
}

BOOST_AUTO_TEST_CASE(a_swap_of_volatile_containers_may_decide_one) {
    MemoryCore core;
    taiyen::vector<int> undecided;
    taiyen::vector<int> given({1, 2}, core);
    undecided.swap(given);
    BOOST_TEST(undecided.size() == 2U);
    undecided.assign(100, 3);  // it knows its heap now
    BOOST_TEST(scratch_of(undecided, core));
    BOOST_CHECK_EXCEPTION(given.push_back(1), Error, no_heap);
}

BOOST_AUTO_TEST_CASE(current_heaps_nest_and_belong_to_a_thread) {
    MemoryCore first;
    MemoryCore second;
    const CurrentHeap outer(first);
    {
        const CurrentHeap inner(second);
        const taiyen::string text(long_text(1).c_str());
        BOOST_TEST(scratch_of(text, second));
    }
    const taiyen::string text(long_text(1).c_str());
    BOOST_TEST(scratch_of(text, first));
    bool refused = false;
    std::thread([&] {
        try {
            const taiyen::string none(long_text(1).c_str());
        } catch (const Error& error) {
            refused = error.code() == errc::no_current_heap;
        }
    }).join();
    BOOST_TEST(refused);
}

BOOST_AUTO_TEST_CASE(a_container_that_outlives_its_heap_is_refused_memory_and_its_free_is_reported) {
    const Reports reports;
    {
        taiyen::vector<int> numbers;
        {
            MemoryCore core;
            taiyen::vector<int> given({1, 2, 3}, core);
            numbers.swap(given);
        }
        BOOST_CHECK_EXCEPTION(numbers.reserve(100), Error, [](const Error& error) { return error.code() == errc::closed; });
        BOOST_TEST(Reports::entries().empty());
    }
    BOOST_REQUIRE(Reports::entries().size() == 1U);
    BOOST_TEST((Reports::entries()[0].code == errc::foreign_pointer));
}

BOOST_AUTO_TEST_CASE(impossible_sizes_are_refused) {
    MemoryCore core;
    persistent_allocator<std::uint64_t> allocator(core);
    BOOST_CHECK_THROW((void)allocator.allocate(static_cast<std::size_t>(-1) / 4), std::bad_array_new_length);
    BOOST_CHECK_THROW((void)allocator.allocate(std::size_t{1} << 50U), HeapFull);
}

BOOST_AUTO_TEST_CASE(a_full_heap_leaves_containers_as_they_were) {
    MemoryCore core(1U << 20U);
    const auto before = core.engine().stats().live_blocks;
    auto* const map = stl::make<taiyen::map<taiyen::string, taiyen::vector<taiyen::string>>>(core);
    const stl::test::Maker make{&core};
    int added = 0;
    try {
        for (;; ++added) {
            auto strings = make.container<taiyen::vector<taiyen::string>>();
            for (int n = 0; n < 20; ++n) strings.push_back(make.string<taiyen::string>(n));
            map->emplace(make.string<taiyen::string>(added), std::move(strings));
        }
    } catch (const HeapFull&) {}
    BOOST_TEST(added > 100);
    BOOST_TEST(map->size() == static_cast<std::size_t>(added));
    for (int n = 0; n < added; ++n) BOOST_TEST(map->at(make.string<taiyen::string>(n)).size() == 20U);
    BOOST_TEST(core.scratch_live() == 0U);
    stl::destroy_object(core, map);
    BOOST_TEST(core.engine().stats().live_blocks == before);
}

BOOST_AUTO_TEST_CASE(a_constructor_that_throws_leaves_nothing_behind) {
    struct Fragile {
        taiyen::string name;
        Fragile(const char* text, bool fail) : name(text) {
            if (fail) throw std::runtime_error("as asked");
        }
    };
    MemoryCore core;
    auto* const vector = stl::make<taiyen::vector<Fragile>>(core);
    vector->reserve(4);
    vector->emplace_back(long_text(1).c_str(), false);
    const auto before = core.engine().stats().live_blocks;
    BOOST_CHECK_THROW(vector->emplace_back(long_text(2).c_str(), true), std::runtime_error);
    BOOST_TEST(core.engine().stats().live_blocks == before);
    BOOST_TEST(vector->size() == 1U);
    stl::destroy_object(core, vector);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
