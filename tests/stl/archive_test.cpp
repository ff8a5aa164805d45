// Containers in heaps that are files: what the rooms below can't test.
#include <filesystem>
#include <memory>
#include <new>
#include <optional>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/store/snapshot_heap.hpp>

#include "heap/memory_core.hpp"
#include "scratch_directory.hpp"
#include "stl/values.hpp"

using namespace taiyen;
using heap::test::Reports;
using stl::test::long_text;

namespace archive_test {

struct Part {
    taiyen::string name;
    taiyen::vector<taiyen::string> tags;
    double x, y;
};
struct Note {
    std::optional<taiyen::string> text;
    std::optional<Part> part;
};

}  // namespace archive_test

namespace {

PersistentOptions small_heap() {
    PersistentOptions options;
    options.capacity = 8U << 20U;
    return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(containers_in_files)

using archive_test::Note;
using archive_test::Part;
using Parts = taiyen::map<taiyen::string, Part>;

BOOST_AUTO_TEST_CASE(plain_structs_in_nested_containers_are_there_after_reopening) {
    const ScratchDirectory directory;
    {
        ArchiveHeap heap(create_only, directory / "parts.tyn", small_heap());
        auto& parts = heap.find_or_construct<Parts>("parts");
        for (int n = 0; n < 100; ++n) {
            Part& part = parts[long_text(n).c_str()];
            part.name = long_text(n + 1).c_str();
            part.tags.push_back(long_text(n + 2).c_str());
            part.x = n;
        }
        heap.snapshot();
        parts.clear();  // not saved
    }
    ArchiveHeap heap(open_read_only, directory / "parts.tyn");
    const auto* const parts = heap.find<Parts>("parts");
    BOOST_REQUIRE(parts != nullptr);
    BOOST_REQUIRE(parts->size() == 100U);
    for (int n = 0; n < 100; ++n) {
        const Part& part = parts->find(std::string_view(long_text(n)))->second;
        BOOST_TEST(part.name == long_text(n + 1).c_str());
        BOOST_TEST(part.tags.at(0) == long_text(n + 2).c_str());
        BOOST_TEST(part.x == n);
    }
    const Part copy = parts->begin()->second;  // to scratch memory
    BOOST_TEST(!heap.owns(copy.name.data()));
    BOOST_CHECK_EXCEPTION(heap.construct<Parts>("more"), Error, [](const Error& error) { return error.code() == errc::read_only; });
}

BOOST_AUTO_TEST_CASE(a_smuggled_pointer_is_refused_at_the_snapshot_and_saved_once_put_right) {
    const ScratchDirectory directory;
    {
        SnapshotHeap heap(create_only, directory / "notes.tyn", small_heap());
        Note& note = heap.construct<Note>("note");
        heap.snapshot();
        note.text = taiyen::string(long_text(1).c_str());  // moved in past the allocator
        for (int attempt = 0; attempt < 2; ++attempt) {
            BOOST_CHECK_EXCEPTION(heap.snapshot(), Error, [&](const Error& error) {
                return error.code() == errc::foreign_pointer && error.path() == heap.path() &&
                       std::string(error.what()).find("'note'") != std::string::npos;
            });
        }
        const taiyen::string copy(*note.text);
        note.text.emplace(copy);  // an assignment might keep the buffer that is there
        heap.snapshot();
    }
    const ArchiveHeap heap(open_only, directory / "notes.tyn");
    BOOST_TEST(heap.find<Note>("note")->text.value() == long_text(1).c_str());
}

BOOST_AUTO_TEST_CASE(a_pointer_into_another_heap_is_refused_at_the_snapshot) {
    const ScratchDirectory directory;
    ArchiveHeap first(create_only, directory / "first.tyn", small_heap());
    ArchiveHeap second(create_only, directory / "second.tyn", small_heap());
    auto& pointers = first.construct<taiyen::vector<int*>>("pointers");
    pointers.push_back(second.make<int>(5));
    BOOST_CHECK_EXCEPTION(first.snapshot(), Error, [&](const Error& error) {
        return error.code() == errc::foreign_pointer && std::string(error.what()).find("second.tyn") != std::string::npos;
    });
    pointers.back() = first.make<int>(6);
    first.snapshot();
}

BOOST_AUTO_TEST_CASE(two_numbers_that_look_like_an_address_in_another_heap_are_saved_once_that_heap_is_closed) {
    const ScratchDirectory directory;
    ArchiveHeap first(create_only, directory / "first.tyn", small_heap());
    ArchiveHeap second(create_only, directory / "second.tyn", small_heap());
    const auto address = reinterpret_cast<std::uintptr_t>(second.make<int>(5));
    using Pair = std::pair<int, int>;
    const Pair look_alike(static_cast<int>(address & 0xffff'ffffU), static_cast<int>(address >> 32U));
    first.construct<taiyen::vector<Pair>>("pairs").push_back(look_alike);  // which hold no pointer
    first.snapshot();
    first.construct<taiyen::map<int, int>>("map").insert(look_alike);  // with links beside it, and a shape that tells which is which
    first.snapshot();
    new (first.allocate(sizeof(Pair))) Pair(look_alike);  // of which nobody tells anything
    BOOST_CHECK_EXCEPTION(first.snapshot(), Error, [&](const Error& error) {
        const std::string text = error.what();
        return error.code() == errc::foreign_pointer && text.find("close that heap") != std::string::npos &&
               text.find("taiyen rebase") != std::string::npos;
    });
    second.close();
    first.snapshot();
}

BOOST_AUTO_TEST_CASE(a_heap_object_that_moves_keeps_its_containers) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small_heap());
    auto& numbers = heap.construct<taiyen::vector<int>>("numbers");
    ArchiveHeap moved(std::move(heap));
    numbers.assign(1000, 1);
    BOOST_TEST(moved.owns(numbers.data()));
    BOOST_TEST(moved.find<taiyen::vector<int>>("numbers") == &numbers);
}

BOOST_AUTO_TEST_CASE(a_closed_heap_refuses_with_its_code) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small_heap());
    heap.close();
    const auto closed = [](const Error& error) { return error.code() == errc::closed; };
    BOOST_CHECK_EXCEPTION(heap.construct<int>("x"), Error, closed);
    BOOST_CHECK_EXCEPTION(heap.find<int>("x"), Error, closed);
    BOOST_CHECK_EXCEPTION(heap.destroy<int>("x"), Error, closed);
    BOOST_CHECK_EXCEPTION(heap.make<int>(1), Error, closed);
    BOOST_CHECK_EXCEPTION(heap.allocator<int>(), Error, closed);
    BOOST_CHECK_EXCEPTION(taiyen::string("bolt", heap), Error, closed);
}

BOOST_AUTO_TEST_CASE(a_container_outside_keeps_its_content_when_every_heap_is_closed) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small_heap());
    const taiyen::string outside(long_text(1).c_str(), heap);
    heap.close();
    BOOST_TEST(outside == long_text(1).c_str());
    const ArchiveHeap again(open_only, directory / "a.tyn");
    BOOST_TEST(outside == long_text(1).c_str());
}

BOOST_AUTO_TEST_SUITE_END()
