#include <taiyen/stl/allocator.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>

#include <boost/test/unit_test.hpp>

#include <taiyen/heap/scratch.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "heap/memory_core.hpp"
#include "stl/values.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;
using stl::test::long_text;

namespace {

/// Whether the container's elements are where they should be.
template <class C>
bool durable_in(const C& container, const MemoryCore& core) {
    return heap::in_durable(core, &*container.begin());
}
template <class C>
bool in_scratch(const C& container) {
    return heap::in_scratch(&*container.begin());
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

BOOST_AUTO_TEST_CASE(outside_it_is_scratch_memory_whatever_file_was_given) {
    MemoryCore core;
    const auto live = core.engine().stats().live_blocks;
    const taiyen::string given(long_text(1).c_str(), core);
    const taiyen::string plain(long_text(1).c_str());
    const auto dynamic = std::make_unique<taiyen::string>(long_text(1).c_str());
    const taiyen::string* const all[] = {&given, &plain, dynamic.get()};
    for (const taiyen::string* text : all) BOOST_TEST(in_scratch(*text));
    BOOST_TEST(core.engine().stats().live_blocks == live);
}

BOOST_AUTO_TEST_CASE(outside_nothing_needs_a_heap) {
    taiyen::string text("bolt");
    text.append(100, 'x');
    taiyen::map<taiyen::string, taiyen::vector<int>> numbers;
    numbers["a key that is longer than what a string keeps inside itself"].push_back(1);
    BOOST_TEST(numbers["a key that is longer than what a string keeps inside itself"].front() == 1);
    BOOST_TEST(text.substr(1).size() == 103U);
    BOOST_TEST(in_scratch(numbers.begin()->first));
}

BOOST_AUTO_TEST_CASE(a_copy_of_what_lies_in_a_heap_is_scratch_memory) {
    MemoryCore core;
    auto* const stored = stl::make<taiyen::string>(core, long_text(1).c_str());
    const taiyen::string copy(*stored);
    BOOST_TEST(in_scratch(copy));
    stl::destroy_object(core, stored);
    BOOST_TEST(copy == long_text(1).c_str());
}

BOOST_AUTO_TEST_CASE(what_lies_in_scratch_memory_is_moved_and_not_copied) {
    taiyen::vector<taiyen::string> texts;
    texts.emplace_back(long_text(1).c_str());
    const void* const first = texts.front().data();
    const taiyen::string* const elements = texts.data();
    taiyen::vector<taiyen::string> moved(std::move(texts));
    BOOST_TEST(moved.data() == elements);
    taiyen::vector<taiyen::string> assigned;
    assigned.emplace_back(long_text(2).c_str());
    assigned = std::move(moved);
    BOOST_TEST(assigned.data() == elements);
    assigned.reserve(100);  // elements move one by one
    BOOST_TEST(static_cast<const void*>(assigned.front().data()) == first);
    taiyen::string out(std::move(assigned.front()));  // from scratch memory to the stack
    BOOST_TEST(static_cast<const void*>(out.data()) == first);
    assigned.push_back(std::move(out));  // and back
    BOOST_TEST(static_cast<const void*>(assigned.back().data()) == first);
    taiyen::list<taiyen::vector<taiyen::string>> list;
    list.push_back(std::move(assigned));
    BOOST_TEST(static_cast<const void*>(list.front().back().data()) == first);
}

BOOST_AUTO_TEST_CASE(what_was_moved_out_of_a_heap_goes_through_scratch_memory_and_back) {
    MemoryCore core;
    auto* const stored = stl::make<taiyen::string>(core, long_text(1).c_str());
    const void* const bytes = stored->data();
    {
        taiyen::string out(std::move(*stored));
        BOOST_TEST(static_cast<const void*>(out.data()) == bytes);
        taiyen::vector<taiyen::string> texts;
        texts.push_back(std::move(out));
        BOOST_TEST(static_cast<const void*>(texts.front().data()) != bytes);  // elements are at home where their container is
        *stored = std::move(texts.front());
        BOOST_TEST(durable_in(*stored, core));
    }
    BOOST_TEST(*stored == long_text(1).c_str());
    stl::destroy_object(core, stored);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
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
}

BOOST_AUTO_TEST_CASE(equal_means_the_same_heap_or_both_scratch_memory) {
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
    BOOST_TEST((outside.get_allocator() == outside_elsewhere.get_allocator()));
    for (auto* each : {inside, inside_too}) stl::destroy_object(first, each);
    stl::destroy_object(second, elsewhere);
}

BOOST_AUTO_TEST_CASE(a_swap_between_different_homes_is_reported_and_aborts) {
    MemoryCore first;
    MemoryCore second;
    taiyen::vector<int> outside({1});
    auto* const inside = stl::make<taiyen::vector<int>>(first);
    auto* const inside_other = stl::make<taiyen::vector<int>>(second);
    BOOST_TEST(aborts([&] { inside->swap(*inside_other); }));
    BOOST_TEST(aborts([&] { std::swap(*inside, *inside_other); }));
    BOOST_TEST(aborts([&] { inside->swap(outside); }));
    BOOST_TEST(aborts([&] { outside.swap(*inside); }));
    BOOST_TEST(!aborts([&] { outside.swap(outside); }));
    stl::destroy_object(first, inside);
    stl::destroy_object(second, inside_other);
}

BOOST_AUTO_TEST_CASE(a_swap_outside_takes_memory_on_loan_along) {
    MemoryCore core;
    auto* const stored = stl::make<taiyen::string>(core, long_text(1).c_str());
    {
        taiyen::string out(std::move(*stored));
        taiyen::string plain(long_text(2).c_str());
        out.swap(plain);
        BOOST_TEST(durable_in(plain, core));
        BOOST_TEST(in_scratch(out));
    }
    stl::destroy_object(core, stored);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_container_that_outlives_the_heap_it_was_moved_out_of_is_refused_memory_and_its_free_is_reported) {
    const Reports reports;
    {
        taiyen::vector<int> numbers;
        {
            MemoryCore core;
            auto* const stored = stl::make<taiyen::vector<int>>(core, std::initializer_list<int>{1, 2, 3});
            taiyen::vector<int> out(std::move(*stored));
            numbers.swap(out);
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
