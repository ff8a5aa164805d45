// What each level of verify() finds, and what it leaves unread.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/stats.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include <algorithm>
#include <atomic>
#include <set>

#include "heap/engine_layout.hpp"
#include "seed.hpp"
#include "store/heap_probe.hpp"
#include "store/watching_storage.hpp"
#include "threads.hpp"

namespace {
using namespace probe;
using store::FileLayout;
using store::test::WatchingStorage;

constexpr VerifyLevel all_levels[] = {VerifyLevel::structure, VerifyLevel::sample, VerifyLevel::pages, VerifyLevel::everything};

/// A closed heap of about 3 MiB with a second copy, in 1,000 blocks, and where some of it lies.
struct LevelHeap {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    std::filesystem::path data = dir / "a.tyn.data";
    std::uint64_t user_page = 0;       ///< number in the span of one that belongs to a block
    std::uint64_t directory_page = 0;  ///< the same of the names

    LevelHeap() {
        SnapshotHeap heap(create_only, path, small_heap());
        char* block = nullptr;
        for (int i = 0; i < 1000; ++i) block = put(heap, "n" + std::to_string(i), std::string(3000, static_cast<char>('a' + i % 26)));
        heap.snapshot();
        const auto* const base = reinterpret_cast<const char*>(heap.core()->ranges().durable);
        user_page = static_cast<std::uint64_t>(block - base) / page_bytes;
        heap::layout::SuperBlock super;
        std::memcpy(&super, base, sizeof super);
        directory_page = super.directory / page_bytes;
    }
    static std::uint64_t place(std::uint64_t page) { return FileLayout().file_offset({page * page_bytes}); }
    ArchiveHeap open(io::Storage& disk = io::posix_storage()) const {
        return HeapAccess::make<ArchiveHeap>(store::HeapFile::open(disk, path, store::OpenMode::read_only, HeapKind::archive, {}));
    }
    Report verify_at(VerifyLevel level, double fraction = 0.01, std::uint64_t seed = 1) const {
        const ArchiveHeap heap = open();
        VerifyOptions how;
        how.level = level;
        how.sample_fraction = fraction;
        how.seed = seed;
        return verify(heap, how);
    }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(verification_levels)

BOOST_AUTO_TEST_CASE(each_level_finds_damage_of_the_regions_that_it_promises_and_of_no_others) {
    const LevelHeap heap;
    struct Region {
        const char* name;
        std::filesystem::path file;
        std::uint64_t offset;
        VerifyLevel least;
    };
    const std::uint64_t within = 100;
    const std::vector<Region> regions{
        {"a header slot", heap.path, store::header_slot_bytes + within, VerifyLevel::structure},
        {"a header slot of the second copy", heap.data, within, VerifyLevel::structure},
        {"a table page", heap.path, FileLayout().table_offset(1) + within, VerifyLevel::structure},
        {"a table page of the second copy", heap.data, FileLayout().table_offset(0) + within, VerifyLevel::structure},
        {"metadata", heap.path, LevelHeap::place(1) + within, VerifyLevel::structure},
        {"the names", heap.path, LevelHeap::place(heap.directory_page) + within, VerifyLevel::structure},
        {"metadata of the second copy", heap.data, LevelHeap::place(1) + within, VerifyLevel::pages},
        {"a block", heap.path, LevelHeap::place(heap.user_page) + within, VerifyLevel::pages},
        {"a block of the second copy", heap.data, LevelHeap::place(heap.user_page) + within, VerifyLevel::pages},
    };
    BOOST_TEST_REQUIRE(heap.directory_page != 0U);
    for (const Region& region : regions) {
        flip_bit(region.file, region.offset);
        for (const VerifyLevel level : all_levels) {
            BOOST_TEST_CONTEXT(region.name << ", level " << static_cast<int>(level)) {
                const Report report = heap.verify_at(level, 0.0);
                BOOST_TEST(report.ok() == (level < region.least));
                BOOST_TEST((report.level == level));
                if (!report.ok()) {
                    const auto is_there = [&](const Finding& finding) {
                        return finding.path == region.file && finding.offset <= region.offset && region.offset < finding.offset + page_bytes;
                    };
                    BOOST_TEST(std::any_of(report.findings.begin(), report.findings.end(), is_there));
                }
            }
        }
        BOOST_TEST(!heap.verify_at(VerifyLevel::sample, 1.0).ok());
        flip_bit(region.file, region.offset);
    }
    for (const VerifyLevel level : all_levels) BOOST_TEST(heap.verify_at(level, 1.0).ok());
}

BOOST_AUTO_TEST_CASE(what_lies_behind_the_end_is_looked_at_from_level_pages_on) {
    const LevelHeap heap;
    const auto behind = std::filesystem::file_size(heap.path);
    std::filesystem::resize_file(heap.path, behind + 2 * page_bytes);
    flip_bit(heap.path, behind + page_bytes);
    for (const VerifyLevel level : all_levels) BOOST_TEST(heap.verify_at(level).ok() == (level < VerifyLevel::pages));
}

BOOST_AUTO_TEST_CASE(a_level_reads_no_more_than_it_promises_and_says_how_much_that_was) {
    const LevelHeap files;
    WatchingStorage disk(io::posix_storage());
    const ArchiveHeap heap = files.open(disk);
    const std::uint64_t span_pages = HeapAccess::file(heap).image().mapped() / page_bytes;
    std::uint64_t before = 0;
    for (const VerifyLevel level : all_levels) {
        BOOST_TEST_CONTEXT("level " << static_cast<int>(level)) {
            disk.forget();
            VerifyOptions how;
            how.level = level;
            how.sample_pages = 20;
            how.seed = 7;
            const Report report = verify(heap, how);
            BOOST_TEST(report.ok());
            BOOST_TEST(report.bytes_read == disk.bytes_read());
            BOOST_TEST(report.bytes_read >= before);
            before = report.bytes_read;
            std::uint64_t of_blocks = 0;  // pages read that are neither headers, tables, metadata nor names
            for (const auto& file : {files.path, files.data}) {
                const std::set<std::uint64_t> read = disk.pages_read(file);
                for (std::uint64_t page = 0; page < span_pages; ++page) {
                    const bool is_block = !HeapAccess::file(heap).engine().is_metadata({page * page_bytes}) && page != files.directory_page;
                    of_blocks += is_block && read.contains(LevelHeap::place(page) / page_bytes) ? 1 : 0;
                }
            }
            const std::uint64_t directory = 40;  // its further pages
            if (level == VerifyLevel::structure) BOOST_TEST(of_blocks <= directory);
            if (level == VerifyLevel::sample) BOOST_TEST(of_blocks <= directory + 20);
            if (level == VerifyLevel::sample) BOOST_TEST(of_blocks >= 10U);
            if (level >= VerifyLevel::pages) BOOST_TEST(report.pages_checked == 2 * span_pages);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_sample_is_chosen_by_its_seed_which_the_report_tells) {
    const LevelHeap files;
    WatchingStorage disk(io::posix_storage());
    const ArchiveHeap heap = files.open(disk);
    const auto read_by = [&](std::uint64_t seed, std::uint64_t pages) {
        disk.forget();
        VerifyOptions how;
        how.level = VerifyLevel::sample;
        how.sample_pages = pages;
        how.seed = seed;
        const Report report = verify(heap, how);
        BOOST_TEST((seed == 0 || report.seed == seed));
        return std::pair{report.seed, std::pair{disk.pages_read(files.path), disk.pages_read(files.data)}};
    };
    const auto [seed, chosen] = read_by(0, 30);
    BOOST_TEST(seed != 0U);
    BOOST_TEST((read_by(seed, 30).second == chosen));
    BOOST_TEST((read_by(seed + 1, 30).second != chosen));
    // More than there are: all.
    VerifyOptions how;
    how.level = VerifyLevel::sample;
    how.sample_pages = 1'000'000;
    const Report all = verify(heap, how);
    BOOST_TEST(all.pages_checked >= 2 * HeapAccess::file(heap).image().mapped() / page_bytes);
}

BOOST_AUTO_TEST_CASE(samples_of_enough_seeds_find_any_page) {
    const LevelHeap heap;
    const std::uint64_t first = taiyen::test::seed_of_run();
    flip_bit(heap.data, LevelHeap::place(heap.user_page));
    // A page in two hundred each time: missed a thousand times and more in a row with a probability below 1 %.
    bool found = false;
    for (std::uint64_t seed = first; seed < first + 1000 && !found; ++seed) {
        const Report report = heap.verify_at(VerifyLevel::sample, 0.05, seed + 1);
        found = !report.ok();
    }
    BOOST_TEST(found);
}

BOOST_AUTO_TEST_CASE(a_report_of_a_verification_that_was_stopped_says_so) {
    const LevelHeap files;
    const ArchiveHeap heap = files.open();
    std::stop_source source;
    VerifyOptions how;
    how.threads = 1;
    how.stop = source.get_token();
    std::uint64_t pieces = 0;
    how.progress = [&](std::uint64_t, std::uint64_t) {
        ++pieces;
        source.request_stop();
    };
    const Report report = verify(heap, how);
    BOOST_TEST(report.stopped);
    BOOST_TEST(report.ok());
    BOOST_TEST(pieces == 1U);
    BOOST_TEST(report.pages_checked < 2 * HeapAccess::file(heap).image().mapped() / page_bytes);
    BOOST_TEST(report.blocks_checked == 0U);
    BOOST_TEST(!verify(heap, VerifyOptions{}).stopped);
}

BOOST_AUTO_TEST_CASE(what_was_changed_since_the_newest_save_is_counted_and_the_files_are_compared_all_the_same) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        const ScratchDirectory dir;
        auto heap = HeapAccess::make<ArchiveHeap>(HeapAccess::open(dir / "a.tyn", store::OpenMode::create_only, kind, small_heap()));
        char* const block = put(heap, "x", std::string(100'000, 'x'));
        heap.snapshot();
        const std::uint64_t before = verify(heap, VerifyOptions{}).pages_unsaved;
        BOOST_TEST(before == 0U);
        block[50'000] = 'y';
        const Report report = verify(heap, VerifyOptions{});
        BOOST_TEST(report.ok());
        BOOST_TEST(report.pages_unsaved == 1U);
        const auto page = static_cast<std::uint64_t>(block + 50'000 - reinterpret_cast<char*>(heap.core()->ranges().durable)) / page_bytes;
        HeapAccess::file(heap).saves().checkpoint();
        flip_bit(dir / "a.tyn", LevelHeap::place(page) + 5);
        BOOST_TEST(!verify(heap, VerifyOptions{}).ok());
        flip_bit(dir / "a.tyn", LevelHeap::place(page) + 5);
    }
}

BOOST_AUTO_TEST_CASE(a_heap_is_verified_while_four_threads_commit_and_it_is_saved_and_nothing_sound_is_called_damaged,
                     *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    PersistentOptions options = small_heap();
    options.log_capacity = 256U << 10U;  // saves in the background, all the time
    options.data_file = dir / "a.tyn.data";
    TransactionalHeap heap(create_only, dir / "a.tyn", options);
    constexpr unsigned threads = 4;
    char* blocks[threads];
    {
        Transaction transaction(heap);
        for (unsigned i = 0; i < threads; ++i) blocks[i] = put(heap, "n" + std::to_string(i), std::string(60'000, 'x'));
        transaction.commit();
    }
    std::atomic<bool> done = false;
    taiyen::test::at_once(threads + 1, [&](unsigned number) {
        if (number == threads) {
            for (int round = 0; round < 20; ++round) {
                VerifyOptions how;
                how.level = all_levels[round % 4];
                how.threads = 1 + static_cast<unsigned>(round % 3);
                how.sample_fraction = 0.5;
                const Report report = verify(heap, how);
                for (const Finding& finding : report.findings) taiyen::test::require(finding.severity == Severity::note, finding.what.c_str());
            }
            done = true;
            return;
        }
        for (unsigned i = 0; !done; ++i) {
            Transaction transaction(heap);
            for (unsigned k = 0; k < 5; ++k) {
                transaction.touch(blocks[number] + (i * 4096 + k * 8192) % 60'000, 8);
                blocks[number][(i * 4096 + k * 8192) % 60'000] = static_cast<char>(i);
            }
            transaction.commit();
        }
    });
    heap.close();
}

BOOST_AUTO_TEST_SUITE_END()
