#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/stats.hpp>

#include "store/heap_probe.hpp"

namespace {
using namespace probe;

void make_heap(const std::filesystem::path& path) {
    SnapshotHeap heap(create_only, path, small_heap());
    for (int i = 0; i < 20; ++i) {
        put(heap, "n" + std::to_string(i), std::string(2500, static_cast<char>('a' + i)));
    }
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
    for (const Finding& finding : report.findings) {
        BOOST_TEST_MESSAGE(finding.path << " " << finding.offset << " " << finding.what);
    }
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
        if (i % 3 == 0) {
            heap.snapshot();
        }
        if (i % 20 == 0) {
            BOOST_TEST_REQUIRE(heap.verify().ok());
        }
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
            if (!seen) {
                BOOST_TEST_MESSAGE(name << ": bit at " << at << " not noticed");
            }
            flip_bit(dir / name, at);
        }
        BOOST_TEST(found == sectors);
    }
    BOOST_TEST(!noticed(dir / "a.tyn"));
}

BOOST_AUTO_TEST_CASE(damage_that_the_other_copy_can_heal_is_called_healable) {
    ScratchDirectory dir;
    make_heap(dir / "a.tyn");
    flip_bit(dir / "a.tyn", store::file_offset({6 * page_bytes + 9}));
    const ArchiveHeap heap(open_read_only, dir / "a.tyn");
    const Report report = heap.verify();
    BOOST_TEST_REQUIRE(report.findings.size() == 1U);
    BOOST_TEST((report.findings[0].severity == Severity::healable));
    BOOST_TEST(report.findings[0].offset == store::file_offset({6 * page_bytes}));
    BOOST_TEST(!report.ok());
}

BOOST_AUTO_TEST_SUITE_END()
