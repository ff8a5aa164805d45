/// Containers in a volatile heap, by taiyen's allocator and by std::pmr.

#include <boost/test/unit_test.hpp>

#include <memory_resource>
#include <string>

#include <taiyen/taiyen.hpp>

#include "threads.hpp"

namespace volatile_containers_test {

struct Part {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    double weight = 0;
};

}  // namespace volatile_containers_test

BOOST_AUTO_TEST_SUITE(volatile_containers)

namespace {

using volatile_containers_test::Part;

constexpr std::size_t capacity = std::size_t{64} << 20U;

BOOST_AUTO_TEST_CASE(a_container_outside_takes_its_memory_from_the_heap_it_was_given) {
    taiyen::VolatileHeap heap({.capacity = capacity});
    {
        taiyen::vector<taiyen::string> words(heap);
        for (int i = 0; i < 1000; ++i) words.emplace_back("a word that is too long for the string object " + std::to_string(i));
        BOOST_TEST(heap.owns(words.data()));
        BOOST_TEST(heap.owns(words.back().data()));
        BOOST_TEST(heap.stats().live_blocks == 1001U);
        taiyen::vector<taiyen::string> moved(std::move(words));
        BOOST_TEST(moved.size() == 1000U);
    }
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(named_and_unnamed_objects_live_in_the_heap_with_all_they_hold) {
    taiyen::VolatileHeap heap({.capacity = capacity});
    auto& parts = heap.find_or_construct<taiyen::map<taiyen::string, Part>>("parts");
    parts["bolt"].tags.push_back("a tag of steel that needs a block of its own");
    BOOST_TEST(heap.owns(parts["bolt"].tags.front().data()));
    BOOST_TEST((&heap.find_or_construct<taiyen::map<taiyen::string, Part>>("parts") == &parts));
    BOOST_CHECK_THROW(heap.find<int>("parts"), taiyen::Error);
    auto* const part = heap.make<Part>();
    part->name = "a name that is too long to be kept inside the object";
    heap.destroy_object(part);
    BOOST_TEST((heap.destroy<taiyen::map<taiyen::string, Part>>("parts")));
    BOOST_TEST((heap.find<taiyen::map<taiyen::string, Part>>("parts") == nullptr));
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_copy_of_what_a_volatile_heap_holds_is_its_own_too_and_needs_no_other_home) {
    taiyen::VolatileHeap heap({.capacity = capacity});
    const taiyen::string text("a text that is too long to be kept inside the object", heap);
    const taiyen::string copy(text);
    BOOST_TEST(heap.owns(copy.data()));
    auto& stored = heap.construct<taiyen::string>("text", text);
    const taiyen::string copy_of_stored(stored);
    BOOST_TEST(heap.owns(copy_of_stored.data()));
    heap.destroy<taiyen::string>("text");
}

BOOST_AUTO_TEST_CASE(containers_outside_exchange_their_memory_whatever_it_is) {
    taiyen::VolatileHeap heap({.capacity = capacity});
    {
        taiyen::vector<taiyen::string> given(heap);
        taiyen::vector<taiyen::string> plain;
        for (int i = 0; i < 100; ++i) given.emplace_back("a word that is too long for the string object " + std::to_string(i));
        plain.emplace_back("another word that is too long for the string object");
        const auto* const words = given.data();
        given.swap(plain);
        BOOST_TEST(plain.data() == words);
        plain.emplace_back("a word more");
        BOOST_TEST(heap.owns(plain.data()));
        BOOST_TEST(!heap.owns(given.data()));
        BOOST_TEST(given.size() == 1U);
    }
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(pmr_containers_take_their_memory_from_the_heap) {
    taiyen::VolatileHeap heap({.capacity = capacity});
    taiyen::VolatileHeap other_heap({.capacity = capacity});
    taiyen::memory_resource resource(heap);
    taiyen::memory_resource same(heap);
    taiyen::memory_resource other(other_heap);
    BOOST_TEST((resource == same && !(resource == other) && !(resource == *std::pmr::new_delete_resource())));
    {
        std::pmr::vector<std::pmr::string> words(&resource);
        words.emplace_back("a word that is too long to be kept inside the object");
        BOOST_TEST(heap.owns(words.front().data()));
        struct alignas(256) Wide {
            char bytes[256];
        };
        std::pmr::vector<Wide> wide(10, &resource);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(wide.data()) % 256 == 0U);
    }
    BOOST_TEST(heap.stats().live_blocks == 0U);
    std::pmr::vector<char> large(&resource);
    BOOST_CHECK_THROW(large.resize(2 * capacity), std::bad_alloc);
}

BOOST_AUTO_TEST_CASE(threads_fill_and_destroy_containers_of_each_other, *boost::unit_test::label("threads")) {
    taiyen::VolatileHeap heap({.capacity = capacity});
    constexpr unsigned threads = 4;
    std::vector<std::unique_ptr<taiyen::map<int, taiyen::string>>> maps(threads);
    taiyen::test::at_once(threads, [&](unsigned number) {
        maps[number] = std::make_unique<taiyen::map<int, taiyen::string>>(heap.allocator<int>());
        for (int i = 0; i < 2000; ++i) maps[number]->emplace(i, "a text that is too long to be kept inside the object");
    });
    taiyen::test::at_once(threads, [&](unsigned number) { maps[(number + 1) % threads].reset(); });
    BOOST_TEST(heap.stats().live_blocks <= 8000U * 2);  // frees that wait in boxes count until their threads' records are looked at
    heap.trim();
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
