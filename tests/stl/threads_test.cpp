// Threads and containers: readers of one heap, temporaries in its scratch memory, heaps of their own. Each case is run under the thread sanitizer.

#include <atomic>
#include <optional>

#include <boost/test/unit_test.hpp>

#include <taiyen/heap/scratch.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "containers/document.hpp"
#include "heap/memory_core.hpp"
#include "scratch_directory.hpp"
#include "stl/values.hpp"
#include "threads.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using stl::test::long_text;
using taiyen::test::at_once;
using taiyen::test::Document;
using taiyen::test::InHeap;
using taiyen::test::InMemory;
using taiyen::test::require;

BOOST_AUTO_TEST_SUITE(container_threads)

namespace {

taiyen::string text(int n) {
    const std::string outside = long_text(n);
    return {outside.data(), outside.size()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(readers_of_one_document_find_iterate_and_copy_at_once, *boost::unit_test::label("threads")) {
    MemoryCore core;
    Document<InMemory> expected;
    auto& document = stl::construct<Document<InHeap>>(core, "document");
    for (unsigned seed = 0; seed < 4; ++seed) {
        test::change(document, seed);
        test::change(expected, seed);
    }
    const std::string description = test::describe(expected);
    BOOST_REQUIRE(!document.parts.empty());
    at_once(4, [&](unsigned) {
        const auto* const found = stl::find<Document<InHeap>>(core, "document");
        require(found == &document, "the name leads to it");
        for (int round = 0; round < 3; ++round) {
            require(test::describe(*found) == description, "it reads as it was written");
            for (const auto& [key, part] : found->parts) {
                require(&found->parts.find(std::string_view(key))->second == &part, "a view finds a text key");
                require(&found->parts.find(taiyen::string(key.data(), key.size()))->second == &part, "so does a temporary in scratch memory");
            }
            for (const auto& [key, values] : found->table) require(&found->table.find(std::string_view(key))->second == &values, "hashed keys, too");
            const auto copy = *found;
            require(test::describe(copy) == description, "a copy outside, made in scratch memory, is the same");
        }
    });
}

BOOST_AUTO_TEST_CASE(temporaries_of_many_threads_lie_in_scratch_memory, *boost::unit_test::label("threads")) {
    at_once(4, [&](unsigned number) {
        taiyen::map<taiyen::string, taiyen::vector<taiyen::string>> mine;
        taiyen::unordered_map<int, taiyen::string> hashed;
        for (int i = 0; i < 300; ++i) {
            const int key = static_cast<int>(number) * 1000 + i % 50;
            mine[text(key)].push_back(text(i));
            hashed[key] = text(i);
            if (i % 7 == 0) mine.erase(text(key));
        }
        for (const auto& [key, values] : mine)
            require(heap::in_scratch(key.data()) && heap::in_scratch(values.data()), "outside a heap lies in scratch memory");
        require(hashed.size() == 50, "nothing is lost");
    });
}

BOOST_AUTO_TEST_CASE(a_container_outside_is_handed_from_thread_to_thread, *boost::unit_test::label("threads")) {
    std::atomic<taiyen::vector<taiyen::string>*> place{nullptr};
    at_once(2, [&](unsigned number) {
        for (int i = 0; i < 200; ++i) {
            if (number == 0) {
                auto made = std::make_unique<taiyen::vector<taiyen::string>>();
                for (int n = 0; n < 5; ++n) made->push_back(text(n));
                taiyen::vector<taiyen::string>* nothing = nullptr;
                while (!place.compare_exchange_weak(nothing, made.get(), std::memory_order_release)) {
                    nothing = nullptr;
                    std::this_thread::yield();
                }
                (void)made.release();
            } else {
                std::unique_ptr<taiyen::vector<taiyen::string>> taken;
                while (!taken) {
                    taken.reset(place.exchange(nullptr, std::memory_order_acquire));
                    std::this_thread::yield();
                }
                taken->push_back(text(5));
                require(taken->size() == 6 && heap::in_scratch(taken->back().data()), "it goes on in scratch memory");
            }
        }
    });
}

BOOST_AUTO_TEST_CASE(each_thread_writes_into_a_heap_of_its_own, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    PersistentOptions options;
    options.capacity = 16U << 20U;
    at_once(3, [&](unsigned number) {
        const auto path = dir / ("heap-" + std::to_string(number) + ".tyn");
        Document<InMemory> expected;
        for (unsigned seed = 0; seed < 3; ++seed) {
            ArchiveHeap heap(open_or_create, path, options);
            auto& document = heap.find_or_construct<Document<InHeap>>("document");
            require(test::describe(document) == test::describe(expected), "the heap holds what this thread left there");
            test::change(document, number * 10 + seed);
            test::change(expected, number * 10 + seed);
            heap.snapshot();
        }
    });
}

BOOST_AUTO_TEST_SUITE_END()
