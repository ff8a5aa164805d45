// Heaps that may be mapped anywhere, as files: what is in them plays no part here.

#include <boost/test/unit_test.hpp>

#include <cstring>

#include <taiyen/store/archive_heap.hpp>
#include <taiyen/store/parameters.hpp>

#include "heap/core.hpp"
#include "scratch_directory.hpp"
#include "vm/address_space.hpp"

namespace {
using namespace taiyen;

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = std::size_t{1} << 20U;
    options.position_independent = true;
    return options;
}

std::uintptr_t place_of(const ArchiveHeap& heap) { return heap.core()->ranges().durable; }

BOOST_AUTO_TEST_SUITE(position_independent_heaps)

BOOST_AUTO_TEST_CASE(is_opened_where_it_was_made_or_where_there_is_room_and_keeps_its_recorded_place) {
    const ScratchDirectory directory;
    const std::filesystem::path path = directory / "a.tyn";
    std::uintptr_t made = 0;
    {
        ArchiveHeap heap(create_only, path, small());
        made = place_of(heap);
        auto* const text = static_cast<char*>(heap.allocate(100));
        std::strcpy(text, "first");
        heap::add_named(*heap.core(), "text", {text, 100, 1, "text"});
        heap.snapshot();
        heap.close();
    }
    BOOST_TEST(read_parameters(path).position_independent);
    BOOST_TEST(read_parameters(path).address == made);
    {
        const vm::Reservation other(made, heap::slot_bytes);
        ArchiveHeap heap(open_only, path);
        BOOST_TEST(place_of(heap) != made);
        auto* const text = static_cast<char*>(heap::find_named(*heap.core(), "text")->object);
        BOOST_TEST(heap.owns(text));
        BOOST_TEST(std::string(text) == "first");
        std::strcpy(text, "second");
        heap.snapshot();
        heap.close();
        BOOST_TEST(read_parameters(path).address == made);
        const ArchiveHeap one(open_read_only, path);
        const ArchiveHeap two(open_read_only, path);  // readers of the same file
        BOOST_TEST(place_of(one) != place_of(two));
        BOOST_TEST(std::string(static_cast<const char*>(heap::find_named(*two.core(), "text")->object)) == "second");
    }
    const ArchiveHeap heap(open_only, path);
    BOOST_TEST(place_of(heap) == made);
    BOOST_TEST(std::string(static_cast<const char*>(heap::find_named(*heap.core(), "text")->object)) == "second");
}

BOOST_AUTO_TEST_CASE(only_the_file_says_what_it_is) {
    const ScratchDirectory directory;
    PersistentOptions fixed = small();
    fixed.position_independent = false;
    ArchiveHeap(create_only, directory / "fixed.tyn", fixed).close();
    ArchiveHeap(create_only, directory / "any.tyn", small()).close();
    BOOST_TEST(!read_parameters(directory / "fixed.tyn").position_independent);
    const vm::Reservation first(read_parameters(directory / "fixed.tyn").address, heap::slot_bytes);
    const vm::Reservation second(read_parameters(directory / "any.tyn").address, heap::slot_bytes);
    BOOST_CHECK_EXCEPTION(ArchiveHeap(open_only, directory / "fixed.tyn", small()), Error,
                          [](const Error& error) { return error.code() == errc::address_in_use; });
    BOOST_CHECK_NO_THROW(ArchiveHeap(open_only, directory / "any.tyn", fixed).close());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
