#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/stats.hpp>

#include <cerrno>

#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_storage.hpp"
#include "store/heap_probe.hpp"
#include "store/large_heap.hpp"

namespace {
using namespace probe;
using store::FileLayout;
using store::test::LargeHeap;
using store::test::place_of_page;

void make_heap(const std::filesystem::path& path) {
    SnapshotHeap heap(create_only, path, small_heap());
    for (int i = 0; i < 20; ++i) put(heap, "n" + std::to_string(i), std::string(2500, static_cast<char>('a' + i)));
    heap.snapshot();
    heap.deallocate(find(heap, "n3"));
    heap::remove_named(*heap.core(), "n3");
    heap.snapshot();
}

/// Whether opening or verify() notices that something is wrong.
bool noticed(const std::filesystem::path& path) {
    try {
        const ArchiveHeap heap(open_read_only, path);
        return !heap.verify().ok();
    } catch (const Error&) {
        return true;
    }
}
}  // namespace

BOOST_AUTO_TEST_SUITE(verification)

BOOST_AUTO_TEST_CASE(a_sound_heap_is_found_sound_and_left_alone) {
    ScratchDirectory dir;
    make_heap(dir / "a.tyn");
    const auto before = bytes_of(dir / "a.tyn");
    const auto data_before = bytes_of(dir / "a.tyn.data");
    const ArchiveHeap heap(open_read_only, dir / "a.tyn");
    const Report report = heap.verify();
    for (const Finding& finding : report.findings) BOOST_TEST_MESSAGE(finding.path << " " << finding.offset << " " << finding.what);
    BOOST_TEST(report.ok());
    BOOST_TEST(report.pages_checked > 10U);
    BOOST_TEST(report.blocks_checked == 19U);
    BOOST_TEST((bytes_of(dir / "a.tyn") == before));
    BOOST_TEST((bytes_of(dir / "a.tyn.data") == data_before));
}

BOOST_AUTO_TEST_CASE(an_open_heap_between_saves_is_sound_too) {
    ScratchDirectory dir;
    SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
    for (int i = 0; i < 200; ++i) {
        put(heap, "n" + std::to_string(i), std::string(1000, 'x'));
        if (i % 3 == 0) heap.snapshot();
        if (i % 20 == 0) BOOST_TEST_REQUIRE(heap.verify().ok());
    }
    BOOST_TEST(heap.stats().live_blocks >= 200U);
    BOOST_TEST(heap.stats().generation == 67U);
}

BOOST_AUTO_TEST_CASE(one_flipped_bit_in_any_sector_of_either_file_is_found) {
    ScratchDirectory dir;
    make_heap(dir / "a.tyn");
    for (const char* name : {"a.tyn", "a.tyn.data"}) {
        const auto size = std::filesystem::file_size(dir / name);
        std::uint64_t found = 0;
        std::uint64_t sectors = 0;
        for (std::uint64_t sector = 0; sector < size; sector += io::sector_bytes) {
            const std::uint64_t at = sector + sector / 7 % io::sector_bytes;
            flip_bit(dir / name, at);
            ++sectors;
            const bool seen = noticed(dir / "a.tyn");
            found += seen ? 1 : 0;
            if (!seen) BOOST_TEST_MESSAGE(name << ": bit at " << at << " not noticed");
            flip_bit(dir / name, at);
        }
        BOOST_TEST(found == sectors);
    }
    BOOST_TEST(!noticed(dir / "a.tyn"));
}

BOOST_AUTO_TEST_CASE(what_a_crash_leaves_is_not_called_damage) {
    // The process dies at each call of small saves with checkpoints and of a large one; a reader looks at what is left.
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        bool finished = false;
        for (std::uint64_t k = 1; !finished; ++k) {
            io::SimulatedStorage disk;
            disk.add_directory("/disk");
            io::FaultyStorage faults(disk);
            const store::Tuning small_ring{32768};
            {
                auto heap = HeapAccess::make<ArchiveHeap>(
                    store::HeapFile::open(faults, "/disk/a.tyn", store::OpenMode::create_only, kind, small_heap(1U << 20U), small_ring));
                char* block = put(heap, "x", std::string(100'000, 'x'));
                heap.snapshot();
                faults.arm({k, EIO, true});
                try {
                    for (int i = 0; i < 5; ++i) {
                        std::memset(block, 'a' + i, 3000);
                        heap.snapshot();
                    }
                    std::memset(block, 'z', 100'000);
                    heap.snapshot();
                    finished = true;
                } catch (const Error&) {}
                disk.disconnect();
                faults.disarm();
                const auto before = set_report_handler([](const Incident&) noexcept {});
                heap = HeapAccess::make<ArchiveHeap>(nullptr);
                set_report_handler(before);
            }
            const auto reader = HeapAccess::make<ArchiveHeap>(store::HeapFile::open(faults, "/disk/a.tyn", store::OpenMode::read_only, kind, {}));
            for (const Finding& finding : reader.verify().findings) {
                const bool expected = finding.severity == Severity::note || finding.what.find("being filled") != std::string::npos;
                BOOST_TEST(expected, "died at call " << k << " of kind " << name_of(kind) << ": " << finding.path << ": " << finding.what);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_healed_checksum_table_is_sound) {
    ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "1");
        heap.snapshot();
    }
    flip_bit(dir / "a.tyn", store::FileLayout().table_offset(0) + 9);  // the generation of a table page: nothing else has it
    ArchiveHeap heap(open_only, dir / "a.tyn");
    put(heap, "y", "2");
    heap.snapshot();
    heap.heal();
    for (const Finding& finding : heap.verify().findings) BOOST_TEST(false, finding.what);
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(damage_that_the_other_copy_can_heal_is_called_healable) {
    ScratchDirectory dir;
    make_heap(dir / "a.tyn");
    flip_bit(dir / "a.tyn", store::FileLayout().file_offset({6 * page_bytes + 9}));
    const ArchiveHeap heap(open_read_only, dir / "a.tyn");
    const Report report = heap.verify();
    BOOST_TEST_REQUIRE(report.findings.size() == 1U);
    BOOST_TEST((report.findings[0].severity == Severity::healable));
    BOOST_TEST(report.findings[0].offset == store::FileLayout().file_offset({6 * page_bytes}));
    BOOST_TEST(!report.ok());
}

BOOST_AUTO_TEST_CASE(a_page_that_the_device_refuses_is_a_finding_and_the_others_are_looked_at_all_the_same) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        LargeHeap closed(kind);
        flip_bit(closed.path, place_of_page(1201) + 5);
        closed.disk.refuse({closed.path, place_of_page(1200)});
        const ArchiveHeap heap = closed.open();
        const Report report = heap.verify();
        BOOST_TEST_REQUIRE(report.findings.size() == 3U);  // sorted by place
        BOOST_TEST((report.findings[0].severity == Severity::note));
        BOOST_TEST(report.findings[0].what.find("blocks were not looked at") != std::string::npos);
        const Severity expected = kind == HeapKind::archive ? Severity::damage : Severity::healable;
        BOOST_TEST((report.findings[1].severity == expected));
        BOOST_TEST(report.findings[1].offset == place_of_page(1200));
        BOOST_TEST(report.findings[1].what.find("can't be read: the test refuses") != std::string::npos);
        BOOST_TEST((report.findings[2].severity == expected));
        BOOST_TEST(report.findings[2].offset == place_of_page(1201));
        BOOST_TEST(report.blocks_checked == 0U);
    }
}

BOOST_AUTO_TEST_CASE(what_the_device_refuses_of_the_copy_that_is_not_mapped_is_a_finding_and_blocks_are_looked_at) {
    LargeHeap closed(HeapKind::snapshot);
    closed.disk.refuse({closed.data, place_of_page(1200)});
    closed.disk.refuse({closed.data, FileLayout().table_offset(2)});
    closed.disk.refuse({closed.data, store::header_slot_bytes, false});
    const ArchiveHeap heap = closed.open();
    const Report report = heap.verify();
    BOOST_TEST_REQUIRE(report.findings.size() == 3U);
    for (const Finding& finding : report.findings) BOOST_TEST((finding.severity == Severity::healable));
    BOOST_TEST(report.findings[0].offset == store::header_slot_bytes);
    BOOST_TEST(report.findings[1].offset == FileLayout().table_offset(2));
    BOOST_TEST(report.findings[2].offset == place_of_page(1200));
    BOOST_TEST(report.blocks_checked == 1U);
}

BOOST_AUTO_TEST_CASE(a_page_of_checksums_that_the_device_refuses_in_every_copy_is_damage) {
    LargeHeap closed(HeapKind::snapshot);
    closed.disk.refuse({closed.path, FileLayout().table_offset(1)});
    closed.disk.refuse({closed.data, FileLayout().table_offset(1)});
    const ArchiveHeap heap = closed.open();
    const Report report = heap.verify();
    std::size_t damages = 0;
    for (const Finding& finding : report.findings)
        damages += finding.severity == Severity::damage && finding.offset == FileLayout().table_offset(1) ? 1 : 0;
    BOOST_TEST(damages == 2U);
    BOOST_TEST(!report.ok());
}

BOOST_AUTO_TEST_SUITE_END()
