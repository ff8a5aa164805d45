// give_back_free_pages(): each free page becomes a hole in every file of a heap of any kind, and nothing else changes.

#include <boost/test/unit_test.hpp>

#include <numeric>
#include <tuple>

#include <taiyen/inspect/free_pages.hpp>
#include <taiyen/inspect/repair.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>
#include <taiyen/undo/scope.hpp>

#include "heap/geometry.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/posix_storage.hpp"
#include "store/heap_probe.hpp"

namespace {
using namespace probe;
using Kinds = std::tuple<ArchiveHeap, SnapshotHeap, TransactionalHeap>;

constexpr unsigned block_count = 60;
constexpr std::size_t block_bytes = 2 * page_bytes;

PersistentOptions with_small_log() {
    PersistentOptions options = small_heap();
    options.log_capacity = 1U << 20U;
    return options;
}

template <class Heap, class F>
void in_step(Heap& heap, F&& action) {
    if constexpr (std::is_same_v<Heap, TransactionalHeap>) {
        Transaction transaction(heap);
        action();
        transaction.commit();
    } else {
        action();
        heap.snapshot();
    }
}

std::string name_of_block(unsigned i) { return "block " + std::to_string(i); }
std::string text_of_block(unsigned i) { return std::string(block_bytes - 1, static_cast<char>('a' + i % 26)); }

void put_blocks(ArchiveHeap& heap) {
    for (unsigned i = 0; i < block_count; ++i) put(heap, name_of_block(i), text_of_block(i));
}

void free_every_other(ArchiveHeap& heap) {
    for (unsigned i = 0; i < block_count; i += 2) {
        char* const block = find(heap, name_of_block(i));
        heap::remove_named(*heap.core(), name_of_block(i));
        heap.deallocate(block);
    }
}

/// Free pages in runs of two.
template <class Heap>
void make_heap(const std::filesystem::path& path, const PersistentOptions& options = with_small_log()) {
    Heap heap(create_only, path, options);
    in_step(heap, [&] { put_blocks(heap); });
    in_step(heap, [&] { free_every_other(heap); });
    heap.close();
}

void check_heap(const ArchiveHeap& heap) {
    for (unsigned i = 0; i < block_count; ++i) BOOST_TEST((get(heap, name_of_block(i)) == (i % 2 == 0 ? "(none)" : text_of_block(i))));
    for (const Finding& finding : heap.verify().findings) BOOST_ERROR(finding.path << " at " << finding.offset << ": " << finding.what);
}

std::uint64_t disk_bytes(const std::filesystem::path& path) { return io::posix_storage().find(path)->allocated_bytes; }

/// Of the heap's file and of its second copy, if there is one.
std::vector<std::uint64_t> disk_bytes_of_copies(const std::filesystem::path& path) {
    std::vector<std::uint64_t> bytes{disk_bytes(path)};
    if (std::filesystem::exists(path.string() + ".data")) bytes.push_back(disk_bytes(path.string() + ".data"));
    return bytes;
}

/// Two pages for each block that was freed; a few may be in use for something else.
constexpr std::uint64_t least_freed = (block_count / 2 - 3) * 2;
/// A step of its history freed every other block.
void make_with_history(const std::filesystem::path& path) {
    SnapshotHeap heap(create_only, path, small_heap());
    put_blocks(heap);
    heap.snapshot();
    heap.attach_undo();
    {
        UndoScope scope(heap, "free");
        free_every_other(heap);
        scope.commit();
    }
    heap.snapshot();
    heap.close();
}

/// Files of second copies lie on a disk of their own.
class TwoDisks final : public io::Storage {
public:
    TwoDisks(io::Storage& first, io::Storage& second) : first_(first), second_(second) {}

    std::vector<std::string> list(const std::filesystem::path& directory) override { return of(directory).list(directory); }
    std::optional<io::FileInfo> find(const std::filesystem::path& path) override { return of(path).find(path); }
    std::unique_ptr<io::File> open(const std::filesystem::path& path, io::Access access) override { return of(path).open(path, access); }
    std::unique_ptr<io::File> create(const std::filesystem::path& path) override { return of(path).create(path); }
    std::unique_ptr<io::File> create_unnamed(const std::filesystem::path& directory) override { return first_.create_unnamed(directory); }
    void publish(io::File& file, const std::filesystem::path& path) override { of(path).publish(file, path); }
    void rename(const std::filesystem::path& from, const std::filesystem::path& to, io::Existing existing) override {
        of(from).rename(from, to, existing);
    }
    bool remove(const std::filesystem::path& path) override { return of(path).remove(path); }
    void sync_directory(const std::filesystem::path& directory) override { first_.sync_directory(directory); }

private:
    io::Storage& of(const std::filesystem::path& path) { return path.extension() == ".data" ? second_ : first_; }
    io::Storage& first_;
    io::Storage& second_;
};

/// What give_back_free_pages() does, over another storage.
void give_back_over(io::Storage& storage, const std::filesystem::path& path) {
    const auto file = store::HeapFile::open(storage, path, store::OpenMode::open_only, HeapKind::archive, {});
    file->give_back().take_all();
    file->close();
}

void copy_files(const std::filesystem::path& heap, const std::filesystem::path& copy) {
    for (const char* suffix : {"", ".data", ".journal", ".log"}) {
        std::filesystem::remove(copy.string() + suffix);
        if (std::filesystem::exists(heap.string() + suffix)) std::filesystem::copy_file(heap.string() + suffix, copy.string() + suffix);
    }
}

/// Where a page lies that free_every_other() freed.
std::uint64_t offset_of_freed(const std::filesystem::path& path) {
    const ArchiveHeap heap(open_read_only, path);
    const auto base = reinterpret_cast<char*>(HeapAccess::file(heap).ranges().durable);
    return static_cast<std::uint64_t>(find(heap, name_of_block(11)) - base) - block_bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(free_pages)

BOOST_AUTO_TEST_CASE_TEMPLATE(become_holes_in_each_file, Heap, Kinds) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_heap<Heap>(path);
    const std::vector<std::uint64_t> before = disk_bytes_of_copies(path);
    BOOST_TEST(before.size() == (std::is_same_v<Heap, SnapshotHeap> ? 2U : 1U));
    FreePagesOptions options;
    std::uint64_t told = 0;
    std::uint64_t all = 0;
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
        BOOST_TEST(done > told);
        told = done;
        all = total;
    };
    const FreePagesReport report = give_back_free_pages(path, options);
    BOOST_TEST(!report.has_history);
    BOOST_TEST(report.free_pages >= least_freed);
    BOOST_TEST(report.released_pages + least_freed <= report.free_pages);
    BOOST_TEST(report.live_blocks == block_count / 2);
    BOOST_TEST(report.live_bytes >= block_count / 2 * block_bytes);
    BOOST_TEST(report.pages_needed >= block_count);
    BOOST_TEST(report.pages_in_use >= report.pages_needed);
    BOOST_TEST(report.pages_in_use <= report.pages_needed + 2);  // whole pages lie close together already
    BOOST_TEST(told == all);
    BOOST_TEST(all >= report.free_pages * page_bytes);  // pages that were kept for small blocks, too
    const std::vector<std::uint64_t> after = disk_bytes_of_copies(path);
    BOOST_TEST(report.disk_bytes_before == std::accumulate(before.begin(), before.end(), std::uint64_t{0}));
    BOOST_TEST(report.disk_bytes_after == std::accumulate(after.begin(), after.end(), std::uint64_t{0}));
    for (std::size_t i = 0; i < before.size(); ++i) BOOST_TEST(after[i] + least_freed * page_bytes <= before[i]);
    {
        Heap heap(open_only, path, with_small_log());
        check_heap(heap);
        in_step(heap, [&] { put(heap, "again", std::string(least_freed * page_bytes, 'z')); });
        in_step(heap, [&] {
            for (unsigned i = 0; i < block_count; i += 2) put(heap, name_of_block(i), text_of_block(i));  // they get their blocks back
        });
        in_step(heap, [&] { free_every_other(heap); });
        check_heap(heap);
        heap.close();
    }
    const FreePagesReport again = give_back_free_pages(path);
    BOOST_TEST(again.free_pages >= least_freed);
    const FreePagesReport nothing_left = give_back_free_pages(path);
    BOOST_TEST(nothing_left.free_pages == nothing_left.released_pages);
    BOOST_TEST(nothing_left.disk_bytes_after == nothing_left.disk_bytes_before);
    check_heap(ArchiveHeap(open_read_only, path));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_heap_that_was_not_closed_become_holes_behind_its_recovery, Heap, Kinds) {
    const ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", with_small_log());
        in_step(heap, [&] { put_blocks(heap); });
        in_step(heap, [&] { free_every_other(heap); });
        crash_copy(dir / "a.tyn", dir / "b.tyn");
    }
    std::map<std::string, std::vector<char>> files;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path())) files[entry.path()] = bytes_of(entry.path());
    FreePagesOptions look;
    look.dry_run = true;
    const FreePagesReport dry = give_back_free_pages(dir / "b.tyn", look);
    BOOST_TEST(dry.free_pages >= least_freed);
    BOOST_TEST(dry.disk_bytes_after == dry.disk_bytes_before);
    for (const auto& [name, bytes] : files) BOOST_TEST((bytes_of(name) == bytes), name);
    const FreePagesReport report = give_back_free_pages(dir / "b.tyn");
    BOOST_TEST(report.free_pages == dry.free_pages);
    BOOST_TEST(report.pages_in_use == dry.pages_in_use);
    BOOST_TEST(report.disk_bytes_after + least_freed * page_bytes <= report.disk_bytes_before);
    Heap heap(open_only, dir / "b.tyn", with_small_log());
    check_heap(heap);
    heap.close();
}

BOOST_AUTO_TEST_CASE(that_an_interrupted_close_left_their_disk_blocks_lose_them) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_heap<SnapshotHeap>(path);
    std::uint64_t freed = 0;
    {
        const ArchiveHeap heap(open_read_only, path);
        freed =
            static_cast<std::uint64_t>(find(heap, name_of_block(1)) - reinterpret_cast<char*>(HeapAccess::file(heap).ranges().durable)) - block_bytes;
    }
    const std::uint64_t least = give_back_free_pages(path).disk_bytes_after;
    for (const char* suffix : {"", ".data"}) {
        const auto file = io::posix_storage().open(path.string() + suffix, io::Access::read_write);
        file->allocate(store::FileLayout().file_offset({freed}), block_bytes);
        file->sync();
    }
    const FreePagesReport report = give_back_free_pages(path);
    BOOST_TEST(report.disk_bytes_before == least + 2 * block_bytes);
    BOOST_TEST(report.disk_bytes_after == least);
    check_heap(ArchiveHeap(open_read_only, path));
}

BOOST_AUTO_TEST_CASE(that_a_program_wrote_into_are_zero_again) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_heap<SnapshotHeap>(path);
    const std::uint64_t least = give_back_free_pages(path).disk_bytes_after;
    {
        SnapshotHeap heap(open_only, path);
        std::memset(find(heap, name_of_block(1)) - page_bytes, 'x', 100);  // nobody's memory, a hole in the files
        heap.snapshot();
        heap.close();
    }
    check_heap(ArchiveHeap(open_read_only, path));
    BOOST_TEST(give_back_free_pages(path).disk_bytes_after == least);
    const ArchiveHeap heap(open_read_only, path);
    check_heap(heap);
    const char* const place = find(heap, name_of_block(1)) - page_bytes;
    BOOST_TEST(std::all_of(place, place + page_bytes, [](char c) { return c == 0; }));
}

BOOST_AUTO_TEST_CASE(are_kept_where_a_history_remembers_what_they_hold) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_with_history(path);
    const FreePagesReport report = give_back_free_pages(path);
    BOOST_TEST(report.has_history);
    BOOST_TEST(report.disk_bytes_after == report.disk_bytes_before);
    FreePagesOptions look;
    look.dry_run = true;
    BOOST_TEST(give_back_free_pages(path, look).has_history);
    SnapshotHeap heap(open_only, path);
    heap.attach_undo();
    check_heap(heap);
    BOOST_TEST(heap.undo());
    for (unsigned i = 0; i < block_count; ++i) BOOST_TEST((get(heap, name_of_block(i)) == text_of_block(i)));
    heap.close();
}

BOOST_AUTO_TEST_CASE(of_a_heap_whose_history_has_ended_become_holes_with_it) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_with_history(path);
    {
        SnapshotHeap heap(open_only, path);
        put(heap, "more", "a change that the history misses");
        heap.snapshot();
        crash_copy(path, dir / "b.tyn");  // nobody gave the history's pages back
    }
    const FreePagesReport report = give_back_free_pages(dir / "b.tyn");
    BOOST_TEST(!report.has_history);
    BOOST_TEST(report.disk_bytes_after + 2 * least_freed * page_bytes <= report.disk_bytes_before);
    check_heap(ArchiveHeap(open_read_only, dir / "b.tyn"));
}

BOOST_AUTO_TEST_CASE(of_a_heap_that_is_mapped_anywhere_or_has_lost_its_second_copy_become_holes) {
    const ScratchDirectory dir;
    PersistentOptions options = small_heap();
    options.position_independent = true;
    make_heap<ArchiveHeap>(dir / "a.tyn", options);
    FreePagesReport report = give_back_free_pages(dir / "a.tyn");
    BOOST_TEST(report.disk_bytes_after + least_freed * page_bytes <= report.disk_bytes_before);
    check_heap(ArchiveHeap(open_read_only, dir / "a.tyn"));

    make_heap<SnapshotHeap>(dir / "b.tyn");
    std::filesystem::remove(dir / "b.tyn.data");
    FreePagesOptions alone;
    alone.files.detach_data_file = true;
    report = give_back_free_pages(dir / "b.tyn", alone);
    BOOST_TEST(report.disk_bytes_after + least_freed * page_bytes <= report.disk_bytes_before);
    BOOST_TEST(report.disk_bytes_after == disk_bytes(dir / "b.tyn"));
    check_heap(ArchiveHeap(open_read_only, dir / "b.tyn"));
}

BOOST_AUTO_TEST_CASE(are_kept_where_a_page_that_names_them_is_damaged) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_heap<SnapshotHeap>(path);
    const std::uint64_t states = heap::Geometry(small_heap().capacity).region(1).first;
    flip_bit(path, store::FileLayout().file_offset({states * page_bytes + 100}));
    const std::vector<std::uint64_t> before = disk_bytes_of_copies(path);
    FreePagesOptions options;
    options.files.verify = Verify::changes;
    BOOST_TEST((code_of([&] { give_back_free_pages(path, options); }) == errc::corrupt));
    BOOST_TEST(disk_bytes_of_copies(path) == before, boost::test_tools::per_element());
    BOOST_TEST(repair(path).pages_healed == 1U);
    const FreePagesReport report = give_back_free_pages(path);
    BOOST_TEST(report.disk_bytes_after + 2 * least_freed * page_bytes <= report.disk_bytes_before);
    check_heap(ArchiveHeap(open_read_only, path));
}

BOOST_AUTO_TEST_CASE(become_zero_pages_in_a_copy_whose_file_system_makes_no_holes_and_holes_in_the_other) {
    io::PosixStorage full;
    io::PosixStorage without({.punch = false});
    for (const bool is_first : {true, false}) {
        const ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        make_heap<SnapshotHeap>(path);
        const std::uint64_t freed = offset_of_freed(path);
        const std::vector<std::uint64_t> before = disk_bytes_of_copies(path);
        TwoDisks disks(is_first ? without : full, is_first ? full : without);
        give_back_over(disks, path);
        const std::vector<std::uint64_t> after = disk_bytes_of_copies(path);
        BOOST_TEST(after[is_first ? 1 : 0] + least_freed * page_bytes <= before[is_first ? 1 : 0]);
        for (const char* suffix : {"", ".data"}) {
            const std::vector<char> bytes = bytes_of(path.string() + suffix);
            const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(store::FileLayout().file_offset({freed}));
            BOOST_TEST(std::all_of(first, first + block_bytes, [](char c) { return c == 0; }));
        }
        {
            SnapshotHeap heap(open_only, path, with_small_log());
            check_heap(heap);
            for (unsigned i = 0; i < block_count; i += 2) put(heap, name_of_block(i), text_of_block(i));
            heap.snapshot();
            free_every_other(heap);
            heap.snapshot();
            check_heap(heap);
            heap.close();
        }
        give_back_over(disks, path);
        const FreePagesReport report = give_back_free_pages(path);
        BOOST_TEST(report.free_pages == report.released_pages);
        check_heap(ArchiveHeap(open_read_only, path));
    }
}

BOOST_AUTO_TEST_CASE(that_a_file_refuses_to_give_back_at_any_call_are_given_back_by_the_next_one) {
    const ScratchDirectory dir;
    make_heap<SnapshotHeap>(dir / "a.tyn");
    copy_files(dir / "a.tyn", dir / "b.tyn");
    const std::uint64_t least = give_back_free_pages(dir / "b.tyn").disk_bytes_after;
    for (const auto& [error, sticky] : {std::pair(EIO, false), std::pair(ENOSPC, true)}) {
        std::uint64_t refused = 0;
        for (std::uint64_t at = 1;; at += at < 3 ? 1 : 37) {
            copy_files(dir / "a.tyn", dir / "b.tyn");
            io::FaultyStorage faulty(io::posix_storage());
            faulty.arm({.at = at, .error = error, .sticky = sticky, .calls = io::Call::punch});
            const std::optional<errc> code = code_of([&] { give_back_over(faulty, dir / "b.tyn"); });
            BOOST_TEST_CONTEXT("punch " << at << (sticky ? " and all behind it" : "")) {
                BOOST_TEST((code == (faulty.fired() == 0 ? std::nullopt : std::optional(error == EIO ? errc::io_error : errc::no_space))));
                check_heap(ArchiveHeap(open_read_only, dir / "b.tyn"));
                const FreePagesReport report = give_back_free_pages(dir / "b.tyn");
                BOOST_TEST(report.disk_bytes_after == least);
                check_heap(ArchiveHeap(open_read_only, dir / "b.tyn"));
            }
            if (faulty.fired() == 0) break;
            ++refused;
        }
        BOOST_TEST(refused > 3U);
    }
}

BOOST_AUTO_TEST_CASE(are_holes_behind_damage_of_their_own_and_leave_damage_of_live_ones_to_healing) {
    for (const char* const damaged : {"", ".data"}) {
        const ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        make_heap<SnapshotHeap>(path);
        const std::uint64_t freed = offset_of_freed(path);
        for (const std::uint64_t offset : {freed + 17, freed + page_bytes + 5, freed + block_bytes + 100})
            flip_bit(path.string() + damaged, store::FileLayout().file_offset({offset}));
        FreePagesOptions options;
        options.files.verify = Verify::changes;
        const FreePagesReport report = give_back_free_pages(path, options);
        BOOST_TEST(report.disk_bytes_after + 2 * least_freed * page_bytes <= report.disk_bytes_before);
        SnapshotHeap heap(open_only, path, unverified());
        BOOST_TEST(heap.verify().findings.size() == 1U);
        BOOST_TEST(heap.heal() == 1U);
        check_heap(heap);
    }
}

BOOST_AUTO_TEST_CASE(are_kept_behind_a_crash_where_a_history_remembers_what_they_hold_and_nobody_has_closed_it) {
    const ScratchDirectory dir;
    const auto remember = [&](auto heap_type) {
        using Heap = typename decltype(heap_type)::type;
        {
            Heap heap(create_only, dir / "a.tyn", with_small_log());
            heap.attach_undo();
            {
                UndoScope scope(heap, "put");
                put_blocks(heap);
                scope.commit();
            }
            heap.snapshot();
            {
                UndoScope scope(heap, "free");
                free_every_other(heap);
                scope.commit();
            }
            heap.snapshot();
            crash_copy(dir / "a.tyn", dir / "b.tyn");
        }
        FreePagesOptions look;
        look.dry_run = true;
        BOOST_TEST(give_back_free_pages(dir / "b.tyn", look).has_history);
        const FreePagesReport report = give_back_free_pages(dir / "b.tyn");
        BOOST_TEST(report.has_history);
        {
            Heap heap(open_only, dir / "b.tyn", with_small_log());
            heap.attach_undo();
            check_heap(heap);
            BOOST_TEST(heap.undo());
            for (unsigned i = 0; i < block_count; ++i) BOOST_TEST((get(heap, name_of_block(i)) == text_of_block(i)));
            BOOST_TEST(heap.redo());
            check_heap(heap);
            heap.close();
        }
        for (const auto& entry : std::filesystem::directory_iterator(dir.path())) std::filesystem::remove(entry.path());
    };
    remember(std::type_identity<SnapshotHeap>());
    remember(std::type_identity<TransactionalHeap>());
}

BOOST_AUTO_TEST_SUITE_END()
