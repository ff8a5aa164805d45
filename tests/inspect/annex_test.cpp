// The annex: pages beside the span that are saved, recovered, healed and verified with it, and that end if nobody carries them on.

#include <boost/test/unit_test.hpp>

#include <random>
#include <tuple>

#include <taiyen/heap/scratch.hpp>
#include <taiyen/inspect/report.hpp>

#include <taiyen/store/parameters.hpp>

#include "base/checksum.hpp"
#include "io/disks/simulated_storage.hpp"
#include "seed.hpp"
#include "store/header.hpp"
#include "store/heap_probe.hpp"

BOOST_AUTO_TEST_SUITE(annex)

namespace {
using namespace probe;
using store::HeapFile;

using Kinds = std::tuple<ArchiveHeap, SnapshotHeap>;

constexpr ByteCount room = 64_MiB;

HeapFile& file_of(const ArchiveHeap& heap) { return HeapAccess::file(heap); }

/// The annex, opened, of at least `bytes`.
std::byte* annex_of(const ArchiveHeap& heap, ByteCount bytes = 0) {
    std::byte* const annex = file_of(heap).open_annex(room);
    if (bytes > file_of(heap).image().annex().used()) file_of(heap).extend_annex(bytes);
    return annex;
}

/// What verify() says, less what it says of the history: what fills the annex here is none.
Report verified(const ArchiveHeap& heap) {
    Report report = heap.verify();
    std::erase_if(report.findings, [](const Finding& finding) { return finding.what.starts_with("the undo history "); });
    return report;
}

void fill(std::byte* at, ByteCount bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (ByteCount i = 0; i + 8 <= bytes; i += 8) {
        const std::uint64_t word = random();
        std::memcpy(at + i, &word, 8);
    }
}

bool is_filled(const std::byte* at, ByteCount bytes, std::uint64_t seed) {
    std::vector<std::byte> expected(bytes);
    fill(expected.data(), bytes, seed);
    return std::memcmp(at, expected.data(), bytes) == 0;
}

/// Where a byte of the annex lies in a closed heap's file.
std::uint64_t annex_offset(const std::filesystem::path& path, std::uint64_t byte) {
    const auto file = io::posix_storage().open(path, io::Access::read_only);
    return store::FileLayout(store::read_slots(*file).newest()->annex.places).file_offset({store::annex_start.value + byte});
}

/// A heap with an annex of `bytes`, closed.
template <class Heap>
struct WithAnnex {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";

    explicit WithAnnex(ByteCount bytes = 20 * page_bytes) {
        Heap heap(create_only, path, small_heap());
        put(heap, "text", "first");
        fill(annex_of(heap, bytes), bytes, 1);
        heap.snapshot();
    }
};

BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_in_it_at_the_save_is_there_after_reopening, Heap, Kinds) {
    WithAnnex<Heap> closed;
    {
        Heap heap(open_only, closed.path);
        BOOST_TEST(file_of(heap).image().annex().used() == 20 * page_bytes);
        BOOST_TEST(!file_of(heap).image().annex().is_open());
        std::byte* const annex = annex_of(heap);
        BOOST_TEST(is_filled(annex, 20 * page_bytes, 1));
        BOOST_TEST(get(heap, "text") == "first");
        annex[5] = std::byte{77};  // alone: the span is unchanged
        heap.snapshot();
        annex[6] = std::byte{78};
        BOOST_TEST(verified(heap).ok());
    }
    Heap heap(open_only, closed.path);
    const std::byte* const annex = annex_of(heap);
    BOOST_TEST(heap.restoration().clean);
    BOOST_TEST((annex[5] == std::byte{77}));
    BOOST_TEST((annex[6] != std::byte{78}));
    BOOST_TEST(verified(heap).ok());
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(growth_that_was_not_saved_is_gone, Heap, Kinds) {
    WithAnnex<Heap> closed;
    const auto size = std::filesystem::file_size(closed.path);
    {
        Heap heap(open_only, closed.path);
        std::byte* const annex = annex_of(heap, 3_MiB);
        std::memset(annex, 1, 3_MiB);
    }
    BOOST_TEST(std::filesystem::file_size(closed.path) == size);
    Heap heap(open_only, closed.path);
    BOOST_TEST(is_filled(annex_of(heap), 20 * page_bytes, 1));
    BOOST_TEST(file_of(heap).image().annex().used() == 20 * page_bytes);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_heap_without_one_is_laid_out_as_if_there_were_none, Heap, Kinds) {
    ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "big", std::string(3_MiB, 'x'));
        heap.snapshot();
        file_of(heap).open_annex(room);  // opened, never used
        put(heap, "more", "y");
        heap.snapshot();
    }
    const auto file = io::posix_storage().open(dir / "a.tyn", io::Access::read_only);
    const store::Header header = *store::read_slots(*file).newest();
    BOOST_TEST(header.annex.extent == 0U);
    BOOST_TEST(file->info().size_bytes == store::FileLayout().file_bytes_for({header.extent, 0}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(span_and_annex_grow_by_turns_through_small_and_large_saves, Heap, Kinds) {
    ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    constexpr ByteCount step = 700'000;
    {
        Heap heap(create_only, path, small_heap(32U << 20U));
        for (unsigned turn = 1; turn <= 8; ++turn) {
            std::byte* const annex = annex_of(heap, turn * step);
            const ByteCount part = turn % 2 == 0 ? step : 10'000;  // even turns are large saves
            fill(annex + (turn - 1) * step, part, turn);
            put(heap, "block" + std::to_string(turn), std::string(part, static_cast<char>('a' + turn)));
            heap.snapshot();
        }
        BOOST_TEST(verified(heap).ok());
        for (const char* suffix : {"", ".data", ".journal"})  // what a crash of the process leaves
            if (std::filesystem::exists(path.string() + suffix))
                std::filesystem::copy_file(path.string() + suffix, (dir / "c.tyn").string() + suffix);
    }
    for (const auto& copy : {path, dir / "c.tyn"}) {
        const auto check = [&](const ArchiveHeap& heap) {
            BOOST_TEST(file_of(heap).image().annex().used() == round_up(8 * step, page_bytes));
            const std::byte* const annex = annex_of(heap);
            for (unsigned turn = 1; turn <= 8; ++turn) {
                const ByteCount part = turn % 2 == 0 ? step : 10'000;
                BOOST_TEST(is_filled(annex + (turn - 1) * step, part, turn));
                BOOST_TEST(get(heap, "block" + std::to_string(turn)) == std::string(part, static_cast<char>('a' + turn)));
            }
            BOOST_TEST(verified(heap).ok());
        };
        check(Heap(open_read_only, copy));
        Heap heap(open_only, copy);
        check(heap);
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_sees_it_as_the_journal_says, Heap, Kinds) {
    WithAnnex<Heap> closed;
    Heap heap(open_only, closed.path);
    std::byte* const annex = annex_of(heap, 2_MiB);
    fill(annex + 20 * page_bytes, page_bytes, 2);    // fresh
    fill(annex + 1_MiB, 2 * page_bytes, 3);          // in a chunk that only the journal knows
    std::memset(annex + page_bytes, 0, page_bytes);  // zero again
    heap.snapshot();
    crash_copy(closed.path, closed.dir / "c.tyn");
    const auto before = bytes_of(closed.dir / "c.tyn");
    heap.close();
    const Heap reader(open_read_only, closed.dir / "c.tyn");
    BOOST_TEST(file_of(reader).image().annex().used() == 2_MiB);
    const std::byte* const seen = file_of(reader).open_annex(0);
    BOOST_TEST(is_filled(seen, page_bytes, 1));
    BOOST_TEST(is_zero({seen + page_bytes, page_bytes}));
    BOOST_TEST(is_filled(seen + 20 * page_bytes, page_bytes, 2));
    BOOST_TEST(is_filled(seen + 1_MiB, 2 * page_bytes, 3));
    BOOST_TEST(is_zero({seen + 1_MiB + 2 * page_bytes, page_bytes}));
    BOOST_TEST(verified(reader).ok());
    BOOST_TEST((bytes_of(closed.dir / "c.tyn") == before));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_nobody_opens_ends_with_the_next_save_and_close_gives_it_back, Heap, Kinds) {
    WithAnnex<Heap> closed(2_MiB);
    const auto allocated = read_parameters(closed.path).allocated_bytes;
    { Heap heap(open_only, closed.path); }  // neither saved nor opened: kept
    {
        Heap heap(open_only, closed.path);
        BOOST_TEST(is_filled(annex_of(heap), 2_MiB, 1));
    }
    {
        Heap heap(open_only, closed.path);
        heap.snapshot();  // saves nothing
        BOOST_TEST(file_of(heap).image().annex().used() == 2_MiB);
        std::strcpy(find(heap, "text"), "other");
        heap.snapshot();
        crash_copy(closed.path, closed.dir / "c.tyn");
        std::strcpy(find(heap, "text"), "again");
        heap.snapshot();
    }
    {
        // A crash behind the save that ended it.
        Heap heap(open_only, closed.dir / "c.tyn");
        BOOST_TEST(get(heap, "text") == "other");
        BOOST_TEST(file_of(heap).image().annex().used() == 2_MiB);
        BOOST_TEST(is_zero({annex_of(heap), page_bytes}));
        BOOST_TEST(verified(heap).ok());
    }
    {
        Heap heap(open_only, closed.path);
        BOOST_TEST(get(heap, "text") == "again");
        BOOST_TEST(file_of(heap).image().annex().used() == 0U);
        BOOST_TEST(read_parameters(closed.path).allocated_bytes + 2_MiB <= allocated + 64_KiB);
        BOOST_TEST(verified(heap).ok());
        // It begins anew, in the same places and behind them, all zero.
        std::byte* const annex = annex_of(heap, 4_MiB);
        BOOST_TEST(is_zero({annex, 4_MiB}));
        fill(annex, 3_MiB, 9);
        heap.snapshot();
        BOOST_TEST(verified(heap).ok());
    }
    Heap heap(open_only, closed.path);
    BOOST_TEST(is_filled(annex_of(heap), 3_MiB, 9));
    BOOST_TEST(file_of(heap).image().annex().used() == 4_MiB);
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_ended_can_be_opened_in_the_same_run, Heap, Kinds) {
    WithAnnex<Heap> closed;
    {
        Heap heap(open_only, closed.path);
        std::strcpy(find(heap, "text"), "other");
        heap.snapshot();
        std::byte* const annex = annex_of(heap);
        BOOST_TEST(is_zero({annex, page_bytes}));
        fill(annex, 20 * page_bytes, 4);
        heap.snapshot();
        std::strcpy(find(heap, "text"), "third");
        heap.snapshot();
    }
    Heap heap(open_only, closed.path);
    BOOST_TEST(is_filled(annex_of(heap), 20 * page_bytes, 4));
    BOOST_TEST(get(heap, "text") == "third");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(it_also_ends_in_a_large_save, Heap, Kinds) {
    WithAnnex<Heap> closed;
    {
        Heap heap(open_only, closed.path);
        put(heap, "large", std::string(2_MiB, 'l'));
        heap.snapshot();
        BOOST_TEST(verified(heap).ok());
    }
    Heap heap(open_only, closed.path);
    BOOST_TEST(file_of(heap).image().annex().used() == 0U);
    BOOST_TEST(get(heap, "large") == std::string(2_MiB, 'l'));
    BOOST_TEST(verified(heap).ok());
}

BOOST_AUTO_TEST_CASE(an_archive_with_one_becomes_a_snapshot_heap_with_one) {
    WithAnnex<ArchiveHeap> closed(3_MiB);
    {
        SnapshotHeap heap(open_only, closed.path);
        std::byte* const annex = annex_of(heap);
        BOOST_TEST(is_filled(annex, 3_MiB, 1));
        annex[2_MiB] ^= std::byte{1};
        heap.snapshot();
        BOOST_TEST(verified(heap).ok());
    }
    flip_bit(closed.path, annex_offset(closed.path, 2_MiB));
    flip_bit(closed.path, 60);
    flip_bit(closed.path, store::header_slot_bytes + 60);  // rebuilt from the data file
    SnapshotHeap heap(open_only, closed.path);
    BOOST_TEST(heap.restoration().backing_rebuilt);
    std::byte* const annex = annex_of(heap);
    annex[2_MiB] ^= std::byte{1};
    BOOST_TEST(is_filled(annex, 3_MiB, 1));
    BOOST_TEST(verified(heap).ok());
}

BOOST_AUTO_TEST_CASE(a_damaged_page_of_it_is_found_and_healed_from_the_other_copy) {
    for (const bool opened : {false, true}) {
        for (const char* suffix : {"", ".data"}) {
            WithAnnex<SnapshotHeap> closed;
            flip_bit(closed.path.string() + suffix, annex_offset(closed.path, 7 * page_bytes + 9));
            SnapshotHeap heap(open_only, closed.path, unverified());
            if (opened) annex_of(heap);
            const Report report = verified(heap);
            BOOST_TEST_REQUIRE(report.findings.size() == 1U);
            BOOST_TEST((report.findings[0].severity == Severity::healable));
            BOOST_TEST(report.findings[0].what.find("page 7 of the annex") != std::string::npos);
            BOOST_TEST(heap.heal() == 1U);
            BOOST_TEST(verified(heap).ok());
            BOOST_TEST(is_filled(annex_of(heap), 20 * page_bytes, 1));
        }
    }
    WithAnnex<ArchiveHeap> alone;
    flip_bit(alone.path, annex_offset(alone.path, 7 * page_bytes + 9));
    ArchiveHeap heap(open_only, alone.path);
    BOOST_TEST((verified(heap).findings.at(0).severity == Severity::damage));
    BOOST_TEST((code_of([&] { heap.heal(); }) == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(rot_under_a_changed_page_of_it_is_not_laundered) {
    WithAnnex<SnapshotHeap> closed;
    flip_bit(closed.path, annex_offset(closed.path, 7 * page_bytes + 9));
    {
        SnapshotHeap heap(open_only, closed.path);
        annex_of(heap)[7 * page_bytes + 100] = std::byte{3};
        heap.snapshot();
        BOOST_TEST(heap.restoration().pages_healed == 1U);
    }
    SnapshotHeap heap(open_only, closed.path);
    std::byte* const annex = annex_of(heap);
    BOOST_TEST((annex[7 * page_bytes + 100] == std::byte{3}));
    fill(annex + 7 * page_bytes + 96, 8, 0);
    std::vector<std::byte> expected(20 * page_bytes);
    fill(expected.data(), expected.size(), 1);
    BOOST_TEST(std::memcmp(annex + 7 * page_bytes, expected.data() + 7 * page_bytes, 96) == 0);

    WithAnnex<ArchiveHeap> alone;
    flip_bit(alone.path, annex_offset(alone.path, 7 * page_bytes + 9));
    ArchiveHeap poisoned(open_only, alone.path);
    annex_of(poisoned)[7 * page_bytes + 100] = std::byte{3};
    BOOST_TEST((code_of([&] { poisoned.snapshot(); }) == errc::corrupt));
    BOOST_TEST((code_of([&] { poisoned.snapshot(); }) == errc::poisoned));
}

BOOST_AUTO_TEST_CASE(it_counts_neither_as_written_ranges_nor_as_pointers_of_the_heap) {
    ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    heap.snapshot();
    const auto before = heap.dirty_bytes();
    std::byte* const annex = annex_of(heap, 1_MiB);
    void* const scratch = heap::allocate_scratch(100, 16);
    const auto pointer = reinterpret_cast<std::uintptr_t>(scratch);
    std::memcpy(annex + 800, &pointer, sizeof pointer);
    BOOST_TEST(heap.dirty_bytes() == before);
    BOOST_CHECK_NO_THROW(heap.snapshot());
    heap::deallocate(scratch);
}

BOOST_AUTO_TEST_CASE(its_capacity_and_the_disk_bound_it) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    PersistentOptions options = small_heap(1U << 20U);
    const auto heap = HeapFile::open(disk, "/disk/a.tyn", store::OpenMode::create_only, HeapKind::snapshot, options, {64_KiB});
    std::byte* const annex = heap->open_annex(4_MiB);
    BOOST_TEST(heap->open_annex(1_MiB) == annex);
    BOOST_TEST((code_of([&] { heap->open_annex(5_MiB); }) == errc::invalid_argument));
    const auto cause_of = [&](ByteCount bytes) -> std::optional<HeapFull::Cause> {
        try {
            heap->extend_annex(bytes);
        } catch (const HeapFull& full) {
            return full.cause();
        }
        return std::nullopt;
    };
    BOOST_TEST((cause_of(5_MiB) == HeapFull::Cause::address_space));
    heap->extend_annex(5000);
    BOOST_TEST(heap->image().annex().used() == 2 * page_bytes);
    disk.set_space(disk.used_bytes() + 1_MiB);
    BOOST_TEST((cause_of(3_MiB) == std::nullopt));  // nobody has written it
    annex[0] = std::byte{1};
    heap->save();
    std::memset(annex, 5, 3_MiB);
    BOOST_TEST((code_of([&] { heap->save(); }) == errc::no_space));
    BOOST_TEST(!heap->condition().is_poisoned());
    disk.set_space(~ByteCount{0});
    heap->save();
    BOOST_TEST((cause_of(4_MiB) == std::nullopt));
    std::memset(annex, 5, 4_MiB);
    heap->save();
    heap->close();
    const auto again = HeapFile::open(disk, "/disk/a.tyn", store::OpenMode::read_only, HeapKind::archive, options, {64_KiB});
    BOOST_TEST(again->image().annex().used() == 4_MiB);
    const std::byte* const seen = again->open_annex(0);
    BOOST_TEST((seen[4_MiB - 1] == std::byte{5}));
    BOOST_TEST((code_of([&] { again->extend_annex(8_MiB); }) == errc::read_only));
}

/// Random growth, changes, saves, closings and crashes against a model of both sequences.
BOOST_AUTO_TEST_CASE_TEMPLATE(random_lives_keep_span_and_annex_of_the_same_save, Heap, Kinds) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    struct Model {
        std::vector<char> text = std::vector<char>(200'000);
        std::vector<std::byte> annex;
    };
    const HeapKind kind = std::is_same_v<Heap, ArchiveHeap> ? HeapKind::archive : HeapKind::snapshot;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    auto heap = HeapFile::open(disk, "/disk/a.tyn", store::OpenMode::create_only, kind, small_heap(), {64_KiB});
    const auto open_again = [&] { heap = HeapFile::open(disk, "/disk/a.tyn", store::OpenMode::open_only, kind, small_heap(), {64_KiB}); };
    std::optional<ArchiveHeap> face;  // of the heap, for verify()
    Model now;
    void* const block = heap->engine().allocate(now.text.size());
    std::memset(block, 0, now.text.size());
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(block) - heap->ranges().durable;
    heap->save();
    Model saved = now;
    const auto text = [&] { return reinterpret_cast<char*>(heap->ranges().durable + at); };
    bool carried = false;
    bool dirty = false;
    for (int step = 0; step < 600; ++step) {
        switch (random() % 12) {
            case 0:
                if (now.annex.size() < 3_MiB && carried) {
                    now.annex.resize(now.annex.size() + (1 + random() % 100) * page_bytes);
                    heap->extend_annex(now.annex.size());
                    now.annex[0] = std::byte{1};
                    fill(now.annex.data() + 8, 8, now.annex.size());  // a save that changes nothing would not save its growth either
                    std::memcpy(heap->open_annex(room), now.annex.data(), 16);
                }
                break;
            case 1:
            case 2:
            case 3:
            case 4: {
                if (!carried) break;
                if (now.annex.empty()) {
                    now.annex.resize(page_bytes);
                    heap->extend_annex(page_bytes);
                }
                now.annex[0] = std::byte{1};
                const std::size_t from = random() % now.annex.size();
                const std::size_t count = std::min<std::size_t>(now.annex.size() - from, 1 + random() % (random() % 8 == 0 ? 300'000 : 9000));
                fill(now.annex.data() + from, count, random());
                now.annex[0] = std::byte{1};
                std::memcpy(heap->open_annex(room), now.annex.data(), now.annex.size());
                break;
            }
            case 5:
            case 6: {
                const std::size_t from = random() % now.text.size();
                now.text[from] = static_cast<char>(random());
                text()[from] = now.text[from];
                dirty = true;
                break;
            }
            case 7:
                heap->engine().allocate(1 + random() % 30'000);
                dirty = true;
                break;
            case 8:
            case 9:
                heap->save();
                if (!carried && dirty) now.annex.clear();
                saved = now;
                dirty = false;
                break;
            default:
                if (random() % 3 != 0) break;
                if (random() % 2 == 0) {
                    disk.disconnect();  // the process dies
                    BOOST_CHECK_THROW(heap->abandon(), Error);
                } else {
                    heap->abandon();
                }
                open_again();
                now = saved;
                dirty = false;
                carried = random() % 4 != 0;
                BOOST_TEST_REQUIRE(std::memcmp(text(), now.text.data(), now.text.size()) == 0);
                if (carried) {
                    std::byte* const annex = heap->open_annex(room);
                    if (!now.annex.empty()) {
                        BOOST_TEST_REQUIRE(heap->image().annex().used() == now.annex.size());
                        BOOST_TEST_REQUIRE(std::memcmp(annex, now.annex.data(), now.annex.size()) == 0);
                    } else if (heap->image().annex().used() != 0) {  // it ended: begun anew over what is left of it
                        BOOST_TEST_REQUIRE(is_zero({annex, page_bytes}));
                        annex[0] = std::byte{1};
                        now.annex.assign(annex, annex + heap->image().annex().used());
                    }
                }
                BOOST_TEST_REQUIRE(heap->healing().heal() == 0U);
                face.emplace(HeapAccess::make<ArchiveHeap>(heap));
                BOOST_TEST_REQUIRE(verified(*face).ok());
        }
    }
    heap->abandon();
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
