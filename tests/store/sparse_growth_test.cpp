// What nobody has written takes neither disk nor room among what is unsaved: disk blocks come with the save that needs them, before it says anything.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "io/disks/simulated_storage.hpp"
#include "store/heap_file.hpp"
#include "store/heap_probe.hpp"

BOOST_AUTO_TEST_SUITE(sparse_growth)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;

constexpr HeapKind sparse_kinds[] = {HeapKind::archive, HeapKind::snapshot};

ByteCount disk_bytes(const std::filesystem::path& path) {
    ByteCount bytes = 0;
    for (const char* suffix : {"", ".data", ".journal"})
        if (const auto found = io::posix_storage().find(path.string() + suffix)) bytes += found->allocated_bytes;
    return bytes;
}

PersistentOptions wide_heap() {
    PersistentOptions options = small_heap(std::size_t{16} << 30U);
    options.dirty_limit = 64U << 20U;
    return options;
}

ArchiveHeap open_wide(const std::filesystem::path& path, OpenMode mode, HeapKind kind) {
    return HeapAccess::make<ArchiveHeap>(HeapAccess::open(path, mode, kind, wide_heap()));
}
}  // namespace

BOOST_AUTO_TEST_CASE(no_block_of_a_large_heap_has_a_small_number_in_its_address) {
    const ScratchDirectory dir;
    ArchiveHeap heap = open_wide(dir / "a.tyn", OpenMode::create_only, HeapKind::archive);
    const std::uintptr_t begin = HeapAccess::file(heap).ranges().durable;
    for (std::uintptr_t end = 0; end < 7_GiB;) {
        const ByteCount bytes = end < 5_GiB + 512_MiB ? 256_MiB : 1_MiB;
        const auto block = reinterpret_cast<std::uintptr_t>(heap.allocate(bytes));
        BOOST_TEST_REQUIRE(static_cast<std::uint32_t>(block) >= 1_MiB);
        end = block - begin + bytes;
    }
    heap.close();
}

BOOST_AUTO_TEST_CASE(a_block_that_nobody_has_written_takes_no_disk_and_is_not_dirty) {
    constexpr ByteCount bytes = 4_GiB;
    for (const HeapKind kind : sparse_kinds) {
        const ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        {
            ArchiveHeap heap = open_wide(path, OpenMode::create_only, kind);
            auto* const block = static_cast<char*>(heap.allocate(bytes));
            heap::add_named(*heap.core(), "block", {block, bytes, 1, "text"});
            BOOST_TEST(heap.dirty_bytes() < 8_MiB);
            BOOST_TEST(disk_bytes(path) < 4_MiB);
            heap.snapshot();
            BOOST_TEST(heap.dirty_bytes() == 0U);
            BOOST_TEST(disk_bytes(path) < 24_MiB);
            std::strcpy(block + bytes / 2, "in the middle");
            std::strcpy(block + bytes - 100, "at the end");
            BOOST_TEST(heap.dirty_bytes() == 2 * page_bytes);
            heap.snapshot();
            BOOST_TEST(disk_bytes(path) < 24_MiB);
            heap.close();
        }
        BOOST_TEST(disk_bytes(path) < 24_MiB);
        ArchiveHeap heap = open_wide(path, OpenMode::open_only, kind);
        const char* const block = find(heap, "block");
        BOOST_TEST(std::string(block + bytes / 2) == "in the middle");
        BOOST_TEST(std::string(block + bytes - 100) == "at the end");
        BOOST_TEST(std::all_of(block, block + 1_MiB, [](char byte) { return byte == 0; }));
        BOOST_TEST(heap.dirty_bytes() == 0U);
        heap.close();
    }
}

BOOST_AUTO_TEST_CASE(a_second_copy_of_it_that_is_attached_later_takes_no_disk_either) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    {
        ArchiveHeap heap = open_wide(path, OpenMode::create_only, HeapKind::archive);
        static_cast<char*>(heap.allocate(1_GiB))[500_MiB] = 'x';
        heap.snapshot();
        heap.close();
    }
    ArchiveHeap heap = open_wide(path, OpenMode::open_only, HeapKind::snapshot);
    BOOST_TEST(disk_bytes(path) < 16_MiB);
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_written_counts_against_the_limit_of_unsaved_bytes_however_it_grew) {
    const ScratchDirectory dir;
    ArchiveHeap heap = open_wide(dir / "a.tyn", OpenMode::create_only, HeapKind::archive);
    auto* const large = static_cast<char*>(heap.allocate(1_GiB));
    std::memset(large, 1, 80_MiB);
    BOOST_CHECK_EXCEPTION(heap.allocate(1_GiB), HeapFull,
                          [&](const HeapFull& full) { return full.cause() == HeapFull::Cause::dirty_limit && names_heap(full, dir / "a.tyn"); });
    heap.snapshot();
    heap.allocate(1_GiB);
    BOOST_CHECK_EXCEPTION(for (int i = 0; i < 100; ++i) std::memset(heap.allocate(4_MiB), 1, 4_MiB), HeapFull,
                          [](const HeapFull& full) { return full.cause() == HeapFull::Cause::dirty_limit; });
    BOOST_TEST(heap.dirty_bytes() <= (64_MiB + 5_MiB));
}

BOOST_AUTO_TEST_CASE(free_pages_that_were_given_back_stay_holes_when_they_are_allocated_again) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    {
        ArchiveHeap heap = open_wide(path, OpenMode::create_only, HeapKind::snapshot);
        put(heap, "text", std::string(40U << 20U, 'x'));
        heap.snapshot();
        heap::deallocate(find(heap, "text"));
        heap::remove_named(*heap.core(), "text");
        heap.snapshot();
        heap.close();
    }
    BOOST_TEST(disk_bytes(path) < 4_MiB);
    ArchiveHeap heap = open_wide(path, OpenMode::open_only, HeapKind::snapshot);
    auto* const block = static_cast<char*>(heap.allocate(40U << 20U));
    heap.snapshot();
    BOOST_TEST(disk_bytes(path) < 6_MiB);  // before it is read: tmpfs gives a hole memory then
    BOOST_TEST(std::all_of(block, block + (40U << 20U), [](char byte) { return byte == 0; }));
    std::memset(block, 7, 40U << 20U);
    heap.snapshot();
    BOOST_TEST(heap.heal() == 0U);
}

/// Saves, small ones and large ones, over a disk that is full for one of them.
BOOST_AUTO_TEST_CASE(a_save_that_the_disk_has_no_room_for_changes_nothing_and_can_be_tried_again) {
    const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});
    for (const HeapKind kind : sparse_kinds) {
        for (const ByteCount bytes : {ByteCount{120'000}, ByteCount{900'000}}) {  // within the journal, and beyond it
            for (ByteCount room = 0; room < 16 * page_bytes; room += 5 * page_bytes) {
                io::SimulatedStorage disk({~ByteCount{0}, true});
                disk.add_directory("/disk");
                store::Tuning tuning;
                tuning.journal_bytes = 512_KiB;
                const auto open = [&](OpenMode mode) {
                    return HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, "/disk/a.tyn", mode, kind, small_heap(), tuning));
                };
                {
                    ArchiveHeap heap = open(OpenMode::create_only);
                    put(heap, "first", "1");
                    heap.snapshot();
                    disk.set_space(disk.used_bytes() + room);
                    put(heap, "second", std::string(bytes, 'x'));
                    BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::no_space));
                    BOOST_TEST(!HeapAccess::file(heap).condition().is_poisoned());
                    disk.set_space(~ByteCount{0});
                    if (room != 0) heap.snapshot();
                    disk.power_cut();
                }
                ArchiveHeap heap = open(OpenMode::open_only);
                BOOST_TEST(get(heap, "first") == "1");
                BOOST_TEST((get(heap, "second") == (room != 0 ? std::string(bytes, 'x') : "(none)")));
                BOOST_TEST(heap.heal() == 0U);
            }
        }
    }
    set_report_handler(handler);
}

BOOST_AUTO_TEST_CASE(recovery_of_a_heap_that_grew_takes_no_disk_for_it) {
    for (const HeapKind kind : sparse_kinds) {
        const ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        const pid_t killed = ::fork();
        BOOST_REQUIRE(killed >= 0);
        if (killed == 0) {
            ArchiveHeap heap = open_wide(path, OpenMode::create_only, kind);
            auto* const block = static_cast<char*>(heap.allocate(4_GiB));
            heap::add_named(*heap.core(), "block", {block, 4_GiB, 1, "text"});
            std::strcpy(block + 1_GiB, "saved");
            heap.snapshot();
            ::_exit(0);
        }
        int status = 1;
        BOOST_REQUIRE(::waitpid(killed, &status, 0) == killed);
        BOOST_TEST_REQUIRE(status == 0);
        const ArchiveHeap heap = open_wide(path, OpenMode::open_only, kind);
        BOOST_TEST(!heap.restoration().clean);
        BOOST_TEST(std::string(find(heap, "block") + 1_GiB) == "saved");
        BOOST_TEST(disk_bytes(path) < 48_MiB);
    }
}

BOOST_AUTO_TEST_SUITE_END()
