// Closing where the disk is full: giving free pages back takes room first, and is not worth a heap that isn't closed.

#include <boost/test/unit_test.hpp>

#include "io/disks/simulated_node.hpp"
#include "store/heap_file.hpp"
#include "store/heap_probe.hpp"

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

struct FullDisk {
    io::SimulatedStorage disk;
    HeapKind kind;

    explicit FullDisk(HeapKind of_kind) : kind(of_kind) {
        disk.add_directory("/disk");
        ArchiveHeap heap = open(OpenMode::create_only);
        put(heap, "big", std::string(6U << 20U, 'x'));
        put(heap, "small", "1");
        heap.snapshot();
        heap.close();
    }
    ArchiveHeap open(OpenMode mode) {
        store::Tuning tuning;
        tuning.journal_bytes = 32_KiB;  // what is given back is more than half of that
        return HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, "/disk/a.tyn", mode, kind, small_heap(16U << 20U), tuning));
    }
    void free_most(ArchiveHeap& heap) {
        heap::deallocate(find(heap, "big"));
        heap::remove_named(*heap.core(), "big");
        heap.snapshot();
    }
    void fill() { disk.set_space(disk.used_bytes()); }
    void empty() { disk.set_space(~ByteCount{0}); }
};
}  // namespace

BOOST_AUTO_TEST_SUITE(full_disk)

BOOST_AUTO_TEST_CASE(closing_keeps_free_pages_that_there_is_no_room_to_give_back_and_is_clean) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        FullDisk full(kind);
        {
            ArchiveHeap heap = full.open(OpenMode::open_only);
            full.free_most(heap);
            full.fill();
            BOOST_TEST(!code_of([&] { heap.close(); }).has_value());
        }
        full.empty();
        {
            ArchiveHeap heap = full.open(OpenMode::open_only);
            BOOST_TEST(heap.restoration().clean);
            BOOST_TEST(get(heap, "small") == "1");
            BOOST_TEST(heap.heal() == 0U);
            put(heap, "other", "2");
            heap.snapshot();
        }
        BOOST_TEST(full.disk.node("/disk/a.tyn")->info().allocated_bytes < 2_MiB);  // now there was
        ArchiveHeap heap = full.open(OpenMode::open_only);
        BOOST_TEST(get(heap, "other") == "2");
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(closing_that_was_asked_to_give_all_back_says_that_there_is_no_room_and_loses_nothing) {
    FullDisk full(HeapKind::archive);
    {
        ArchiveHeap heap = full.open(OpenMode::open_only);
        full.free_most(heap);
        full.fill();
        HeapAccess::file(heap).give_back().take_all();
        BOOST_TEST((code_of([&] { heap.close(); }) == errc::no_space));
    }
    full.empty();
    ArchiveHeap heap = full.open(OpenMode::open_only);
    BOOST_TEST(get(heap, "small") == "1");
    BOOST_TEST((find(heap, "big") == nullptr));
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
