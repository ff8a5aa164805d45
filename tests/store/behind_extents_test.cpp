// What lies behind the extents in a heap's files is zero: it is the fresh memory of tomorrow. Where it isn't, heal() makes it so, and growing never shows it.

#include <algorithm>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "io/disks/simulated_storage.hpp"
#include "store/heap_file.hpp"
#include "store/heap_probe.hpp"
#include "store/page_copies.hpp"
#include "store/refusing_storage.hpp"

namespace {
using namespace probe;
using store::FileLayout;
using store::HeapFile;
using store::OpenMode;
using store::Sequence;

constexpr ByteCount annex_at_first = 2_MiB + 64_KiB;
constexpr ByteCount annex_later = 4_MiB;  // where its chunk ends

/// A closed heap whose sequences both end within a chunk. The one whose chunk was begun first has its rest in front of the file's end; each has a last table page for that chunk, which covers nothing yet.
struct HalfChunks {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    store::test::RefusingStorage disk{io::posix_storage()};
    HeapKind kind;
    ByteCount extent = 0;
    std::vector<std::uint64_t> places;  ///< in each file: of bytes behind the extents
    std::vector<std::filesystem::path> files;

    HalfChunks(HeapKind of_kind, Sequence first) : kind(of_kind) {
        ArchiveHeap heap = open(OpenMode::create_only);
        HeapFile& file = HeapAccess::file(heap);
        const auto fill_span = [&] { put(heap, "text", std::string(2'500'000, 'x')); };
        if (first == Sequence::span) fill_span();
        std::byte* const annex = file.open_annex(annex_later);
        file.extend_annex(annex_at_first);
        annex[0] = annex[annex_at_first - 1] = std::byte{7};
        heap.snapshot();
        if (first == Sequence::annex) {
            fill_span();
            heap.snapshot();
        }
        extent = file.image().mapped();
        const store::ChunkShape& chunk = store::chunk_shapes[store::chunk_of({extent - 1})];
        const ByteCount later = chunk.first + chunk.bytes;
        BOOST_TEST_REQUIRE(extent < later - 64_KiB);
        const FileLayout layout = file.files().backing().layout;
        const HeapOffset behind = first == Sequence::span ? HeapOffset{extent} : HeapOffset{store::annex_start.value + annex_at_first};
        for (const ByteCount at : {ByteCount{0}, 5 * page_bytes + 100}) places.push_back(layout.file_offset({behind.value + at}));
        for (const Sequence sequence : {Sequence::span, Sequence::annex}) {
            const HeapOffset last{(sequence == Sequence::span ? later : store::annex_start.value + annex_later) - page_bytes};
            places.push_back(layout.table_offset(store::place_of(page_of(last)).table_page) + 2000);
        }
        heap.close();
        files = {path};
        if (kind == HeapKind::snapshot) files.push_back(dir / "a.tyn.data");
    }
    ArchiveHeap open(OpenMode mode) { return HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, path, mode, kind, small_heap())); }
    void flip_all() const {
        for (const auto& file : files)
            for (const std::uint64_t place : places) flip_bit(file, place);
    }
    std::vector<std::vector<char>> bytes() const {
        std::vector<std::vector<char>> all;
        for (const auto& file : files) all.push_back(bytes_of(file));
        return all;
    }
    static bool all_zero(const std::byte* bytes, ByteCount count) {
        return std::all_of(bytes, bytes + count, [](std::byte byte) { return byte == std::byte{0}; });
    }
};

template <class F>
void for_each_heap(F&& action) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot})
        for (const Sequence first : {Sequence::span, Sequence::annex}) action(kind, first);
}
}  // namespace

BOOST_AUTO_TEST_SUITE(behind_extents)

BOOST_AUTO_TEST_CASE(healing_makes_zero_what_lies_there_in_every_copy) {
    for_each_heap([](HeapKind kind, Sequence first) {
        HalfChunks closed(kind, first);
        const auto before = closed.bytes();
        closed.flip_all();
        ArchiveHeap heap = closed.open(OpenMode::open_only);
        BOOST_TEST(heap.heal() == closed.places.size() * closed.files.size());
        BOOST_TEST(heap.heal() == 0U);
        heap.close();
        const auto after = closed.bytes();
        for (std::size_t i = 0; i < after.size(); ++i) {
            BOOST_TEST_REQUIRE(after[i].size() == before[i].size());
            BOOST_TEST(std::equal(after[i].begin() + store::chunks_offset, after[i].end(), before[i].begin() + store::chunks_offset));
        }
    });
}

BOOST_AUTO_TEST_CASE(what_the_device_refuses_there_is_written_anew_and_a_device_that_refuses_it_still_is_failing) {
    for (const bool until_written : {true, false}) {
        HalfChunks closed(HeapKind::snapshot, Sequence::span);
        closed.flip_all();
        ArchiveHeap heap = closed.open(OpenMode::open_only);
        for (const auto& file : closed.files) closed.disk.refuse({file, closed.places[1] / page_bytes * page_bytes, until_written});
        if (until_written) {
            BOOST_TEST(heap.heal() == closed.places.size() * closed.files.size());
            BOOST_TEST(closed.disk.refused() == 0U);
        } else {
            BOOST_TEST((code_of([&] { heap.heal(); }) == errc::corrupt));
            BOOST_TEST(HeapAccess::file(heap).condition().is_poisoned());
            closed.disk.forgive();
        }
    }
}

BOOST_AUTO_TEST_CASE(growing_shows_nothing_of_it) {
    for_each_heap([](HeapKind kind, Sequence first) {
        HalfChunks closed(kind, first);
        closed.flip_all();
        {
            ArchiveHeap heap = closed.open(OpenMode::open_only);
            HeapFile& file = HeapAccess::file(heap);
            const std::byte* const annex = file.open_annex(annex_later);
            file.extend_annex(annex_later);
            BOOST_TEST(HalfChunks::all_zero(annex + annex_at_first, annex_later - annex_at_first));
            while (file.image().mapped() < closed.extent + 8 * page_bytes) {
                const auto* const block = static_cast<const std::byte*>(heap.allocate(200'000));
                BOOST_TEST_REQUIRE(HalfChunks::all_zero(block, 200'000));
            }
            put(heap, "little", "text");
            heap.snapshot();
            put(heap, "more", "text");
            heap.snapshot();
        }
        ArchiveHeap heap = closed.open(OpenMode::open_only);
        BOOST_TEST((get(heap, "text") == std::string(2'500'000, 'x')));
        const HeapFile& file = HeapAccess::file(heap);
        for (const store::PageFile* copy : {&file.files().backing(), file.files().data()})
            if (copy != nullptr) BOOST_TEST(store::table_root_of(*copy, copy->header.extents(), store::Via::device) == copy->header.table_root);
        heap.heal();  // behind the new end there is more of it
        BOOST_TEST(heap.heal() == 0U);
    });
}

BOOST_AUTO_TEST_CASE(what_growing_has_cleared_stays_cleared_when_the_power_fails) {
    const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});  // of the closes that fail
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        io::SimulatedStorage disk({~ByteCount{0}, true});
        disk.add_directory("/disk");
        const auto open = [&](OpenMode mode) { return HeapFile::open(disk, "/disk/a.tyn", mode, kind, small_heap()); };
        open(OpenMode::create_only)->close();
        const ByteCount extent = open(OpenMode::read_only)->image().mapped();
        const std::uint64_t place = FileLayout().file_offset({extent});
        std::vector<std::filesystem::path> files{"/disk/a.tyn"};
        if (kind == HeapKind::snapshot) files.emplace_back("/disk/a.tyn.data");
        for (const auto& path : files) {
            const auto file = disk.open(path, io::Access::read_write);
            file->resize(std::max<std::uint64_t>(file->info().size_bytes, place + page_bytes));
            file->write(std::vector(page_bytes, std::byte{9}), place);
            file->sync();
        }
        {
            const auto file = open(OpenMode::open_only);
            file->extend(extent + 4 * page_bytes);
            disk.power_cut();
        }
        for (const auto& path : files) {
            std::vector<std::byte> page(page_bytes);
            disk.open(path, io::Access::read_only)->read(page, place);
            BOOST_TEST(HalfChunks::all_zero(page.data(), page_bytes), path.string());
        }
    }
    set_report_handler(handler);
}

BOOST_AUTO_TEST_CASE(a_table_page_that_is_rebuilt_has_no_checksum_of_a_page_that_is_not_there_yet) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        HalfChunks closed(kind, Sequence::span);
        const store::TablePlace place = store::place_of(page_of(HeapOffset{closed.extent + 2 * page_bytes}));
        BOOST_TEST_REQUIRE(place.table_page == store::place_of(page_of(HeapOffset{closed.extent - page_bytes})).table_page);
        {
            ArchiveHeap heap = closed.open(OpenMode::open_only);
            const std::uint64_t entry = HeapAccess::file(heap).files().backing().layout.table_offset(place.table_page) +
                                        offsetof(store::TablePage, entries) + place.entry * 8;
            heap.close();
            for (const auto& file : closed.files) flip_bit(file, entry);
        }
        ArchiveHeap heap = closed.open(OpenMode::open_only);
        BOOST_TEST(heap.heal() == closed.files.size());
        while (HeapAccess::file(heap).image().mapped() < closed.extent + 8 * page_bytes)
            BOOST_TEST_REQUIRE(HalfChunks::all_zero(static_cast<const std::byte*>(heap.allocate(200'000)), 200'000));
        heap.snapshot();
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
