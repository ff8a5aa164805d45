#include <boost/test/unit_test.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>
#include <tuple>

#include <taiyen/base/report.hpp>
#include <taiyen/store/parameters.hpp>

#include "heap_probe.hpp"
#include "store/heap_file.hpp"
#include "store/recovery.hpp"
#include "store/save_record.hpp"

namespace {
using namespace probe;

/// Both kinds that this room makes; every promise of an archive is one of a snapshot heap too.
using Kinds = std::tuple<ArchiveHeap, SnapshotHeap>;

template <class Heap>
void fill_pages(Heap& heap, const std::string& name, std::size_t bytes, char value) {
    void* block = heap.allocate(bytes);
    std::memset(block, value, bytes);
    heap::add_named(*heap.core(), name, {block, bytes, 1, "bytes"});
}
}  // namespace

BOOST_AUTO_TEST_SUITE(heaps_on_disk)

BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_saved_is_there_after_reopening, Heap, Kinds) {
    ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "greeting", "hello");
        heap.snapshot();
    }
    Heap heap(open_only, dir / "a.tyn");
    BOOST_TEST(get(heap, "greeting") == "hello");
    BOOST_TEST(heap.restoration().clean);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(closing_never_saves, Heap, Kinds) {
    ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "kept", "yes");
        heap.snapshot();
        put(heap, "lost", "no");
        std::strcpy(find(heap, "kept"), "bad");
        heap.close();
    }
    Heap heap(open_only, dir / "a.tyn");
    BOOST_TEST(get(heap, "kept") == "yes");
    BOOST_TEST(get(heap, "lost") == "(none)");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_crash_after_a_save_keeps_it, Heap, Kinds) {
    ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        for (int i = 0; i < 40; ++i) {
            put(heap, "n" + std::to_string(i), std::string(100, 'x') + std::to_string(i));
            heap.snapshot();
        }
        put(heap, "unsaved", "gone");
        crash_copy(dir / "a.tyn", dir / "b.tyn");
    }
    Heap heap(open_only, dir / "b.tyn");
    BOOST_TEST(!heap.restoration().clean);
    BOOST_TEST(heap.restoration().snapshots_replayed > 0U);
    BOOST_TEST(get(heap, "n39") == std::string(100, 'x') + "39");
    BOOST_TEST(get(heap, "unsaved") == "(none)");
    BOOST_TEST(heap::find_named(*heap.core(), "n0").has_value());
    put(heap, "more", "goes on");
    heap.snapshot();
    heap.close();
    Heap again(open_only, dir / "b.tyn");
    BOOST_TEST(get(again, "more") == "goes on");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(large_saves_and_many_small_ones_mix, Heap, Kinds) {
    ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap(64U << 20U));
        fill_pages(heap, "big", 6U << 20U, 'a');
        heap.snapshot();
        BOOST_TEST(heap.dirty_bytes() == 0U);
        for (int i = 0; i < 300; ++i) {
            find(heap, "big")[static_cast<std::size_t>(i) * 9000] = static_cast<char>('A' + i % 26);
            BOOST_TEST(heap.dirty_bytes() > 0U);
            heap.snapshot();
            BOOST_TEST(heap.dirty_bytes() == 0U);
        }
        crash_copy(dir / "a.tyn", dir / "b.tyn");
    }
    for (const char* name : {"a.tyn", "b.tyn"}) {
        Heap heap(open_only, dir / name);
        const char* big = find(heap, "big");
        BOOST_TEST_REQUIRE(big != nullptr);
        for (std::size_t i = 0; i < 300; ++i) {
            BOOST_TEST_REQUIRE(big[i * 9000] == static_cast<char>('A' + i % 26));
            BOOST_TEST_REQUIRE(big[i * 9000 + 1] == 'a');
        }
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_changed_back_is_not_dirty_after_a_save, Heap, Kinds) {
    ScratchDirectory dir;
    Heap heap(create_only, dir / "a.tyn", small_heap());
    fill_pages(heap, "block", 64U << 10U, 'a');
    heap.snapshot();
    heap.close();
    Heap again(open_only, dir / "a.tyn", small_heap());
    char* const block = find(again, "block");
    block[0] = 'b';
    block[0] = 'a';
    BOOST_TEST(again.dirty_bytes() == page_bytes);
    again.snapshot();  // nothing to save
    BOOST_TEST(again.dirty_bytes() == 0U);
    block[5 * page_bytes] = 'b';
    block[9 * page_bytes] = 'b';
    block[9 * page_bytes] = 'a';
    again.snapshot();
    BOOST_TEST(again.dirty_bytes() == 0U);
    block[9 * page_bytes] = 'c';
    BOOST_TEST(again.dirty_bytes() == page_bytes);
    again.snapshot();
    crash_copy(dir / "a.tyn", dir / "b.tyn");
    again.close();
    Heap recovered(open_only, dir / "b.tyn");
    BOOST_TEST(find(recovered, "block")[9 * page_bytes] == 'c');
}

BOOST_AUTO_TEST_CASE(a_number_is_no_pointer_into_another_heap_where_that_heap_has_nothing) {
    ScratchDirectory dir;
    ArchiveHeap other(create_only, dir / "other.tyn");  // default capacity
    const auto* const their = static_cast<const std::byte*>(other.allocate(100));
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    auto* const word = static_cast<const std::byte**>(heap.allocate(8));
    *word = their + (std::size_t{16} << 30U);
    heap.snapshot();
    *word = their;
    BOOST_CHECK_EXCEPTION(heap.snapshot(), Error, [](const Error& error) { return error.code() == errc::foreign_pointer; });
}

BOOST_AUTO_TEST_CASE(a_pointer_into_a_heap_that_nobody_has_touched_yet_is_found) {
    ScratchDirectory dir;
    constexpr std::size_t blocks = 2000;
    std::uintptr_t last = 0;  // its metadata lies megabytes behind what opening looks at
    {
        ArchiveHeap other(create_only, dir / "other.tyn", small_heap());
        for (std::size_t i = 0; i < blocks; ++i) last = reinterpret_cast<std::uintptr_t>(other.allocate(2048));
        other.snapshot();
    }
    PersistentOptions options = small_heap();
    options.verify = Verify::at_first_touch;
    const ArchiveHeap other(open_only, dir / "other.tyn", options);
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    auto* const word = static_cast<std::uintptr_t*>(heap.allocate(8));
    *word = last + 16;
    heap.snapshot();
    *word = last;
    BOOST_CHECK_EXCEPTION(heap.snapshot(), Error, [](const Error& error) { return error.code() == errc::foreign_pointer; });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_sees_the_newest_save_and_writes_nothing, Heap, Kinds) {
    ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "first", "1");
        heap.snapshot();
        put(heap, "second", "2");
        heap.snapshot();
        crash_copy(dir / "a.tyn", dir / "b.tyn");
    }
    const auto before = bytes_of(dir / "b.tyn");
    const auto journal_before = bytes_of(dir / "b.tyn.journal");
    {
        const Heap heap(open_read_only, dir / "b.tyn");
        BOOST_TEST(get(heap, "second") == "2");
        BOOST_TEST((code_of([&] { const_cast<Heap&>(heap).snapshot(); }) == errc::read_only));
        BOOST_TEST((code_of([&] { const_cast<Heap&>(heap).allocate(10); }) == errc::read_only));
        BOOST_TEST((code_of([&] { const_cast<Heap&>(heap).resize(nullptr, 10); }) == errc::read_only));
        BOOST_TEST(heap.dirty_bytes() == 0U);
    }
    BOOST_TEST((bytes_of(dir / "b.tyn") == before));
    BOOST_TEST((bytes_of(dir / "b.tyn.journal") == journal_before));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_reader_of_a_crashed_heap_sees_pages_that_became_zero_as_zero, Heap, Kinds) {
    ScratchDirectory dir;
    const std::string pages(8 * page_bytes, 'p');
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        char* const block = put(heap, "block", pages);
        heap.snapshot();
        std::memset(block, 0, pages.size());
        heap.snapshot();  // stands in the journal only
        crash_copy(dir / "a.tyn", dir / "b.tyn");
    }
    const Heap heap(open_read_only, dir / "b.tyn");
    BOOST_TEST((std::string(find(heap, "block"), pages.size()) == std::string(pages.size(), '\0')));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_several_failures_the_first_is_told_and_closing_saves_nothing, Heap, Kinds) {
    ScratchDirectory dir;
    {
        Heap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "first", "1");
        heap.snapshot();
        put(heap, "second", "2");
        HeapAccess::file(heap).condition().poison("one", "failed");
        HeapAccess::file(heap).condition().poison("another", "failed");
        try {
            heap.snapshot();
            BOOST_TEST(false);
        } catch (const Error& error) {
            BOOST_TEST((error.code() == errc::poisoned));
            BOOST_TEST(std::string(error.what()).find("(one: failed)") != std::string::npos);
        }
        heap.close();
    }
    const Heap heap(open_only, dir / "a.tyn");
    BOOST_TEST(!heap.restoration().clean);
    BOOST_TEST(get(heap, "first") + get(heap, "second") == "1(none)");
}

BOOST_AUTO_TEST_CASE(a_block_that_is_freed_twice_is_told_and_the_heap_goes_on) {
    ScratchDirectory dir;
    static int told;
    told = 0;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    void* const block = heap.allocate(100);
    heap.deallocate(block);
    const ReportHandler before = set_report_handler([](const Incident& incident) noexcept { told += incident.code == errc::double_free ? 1 : 0; });
    heap.deallocate(block);
    set_report_handler(before);
    BOOST_TEST(told == 1);
    put(heap, "a", "1");
    heap.snapshot();
    BOOST_TEST(HeapAccess::file(heap).engine().check(1).empty());
}

BOOST_AUTO_TEST_CASE(new_files_are_readable_by_their_owner_only) {
    ScratchDirectory dir;
    const mode_t old = ::umask(0);
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        for (const char* name : {"a.tyn", "a.tyn.data", "a.tyn.journal"}) {
            struct stat status{};
            BOOST_TEST(::stat((dir / name).c_str(), &status) == 0);
            BOOST_TEST((status.st_mode & 0777U) == 0600U);
        }
    }
    ::umask(old);
}

BOOST_AUTO_TEST_CASE(a_clean_close_leaves_no_journal) {
    ScratchDirectory dir;
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "y");
        heap.snapshot();
    }
    BOOST_TEST(!std::filesystem::exists(dir / "a.tyn.journal"));
    BOOST_TEST(read_parameters(dir / "a.tyn").clean);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_second_opener_is_told_that_the_heap_is_busy, Heap, Kinds) {
    ScratchDirectory dir;
    Heap heap(create_only, dir / "a.tyn", small_heap());
    BOOST_TEST((code_of([&] { Heap second(open_only, dir / "a.tyn"); }) == errc::busy));
    BOOST_TEST((code_of([&] { Heap second(open_read_only, dir / "a.tyn"); }) == errc::busy));
    BOOST_TEST((code_of([&] { Heap second(create_only, dir / "a.tyn"); }) == errc::already_exists));
    heap.close();
    Heap again(open_only, dir / "a.tyn");
    BOOST_TEST(again.is_open());
}

BOOST_AUTO_TEST_CASE(the_lock_of_a_killed_process_is_gone) {
    ScratchDirectory dir;
    { ArchiveHeap heap(create_only, dir / "a.tyn", small_heap()); }
    const pid_t child = ::fork();
    if (child == 0) {
        ArchiveHeap heap(open_only, dir / "a.tyn");
        put(heap, "saved", "by the child");
        heap.snapshot();
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST(WIFSIGNALED(status));
    ArchiveHeap heap(open_only, dir / "a.tyn");
    BOOST_TEST(get(heap, "saved") == "by the child");
    BOOST_TEST(!heap.restoration().clean);
}

BOOST_AUTO_TEST_CASE(a_lock_that_outlives_its_killed_owner_for_a_moment_is_waited_for) {
    ScratchDirectory dir;
    { ArchiveHeap heap(create_only, dir / "a.tyn", small_heap()); }
    std::array<int, 2> pipe{};
    BOOST_REQUIRE(::pipe(pipe.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const ArchiveHeap heap(open_only, dir / "a.tyn");
        // Whoever shares its memory holds what that maps: here for as long as the test likes.
        if (::vfork() == 0) {
            const pid_t own = ::getpid();
            (void)!::write(pipe[1], &own, sizeof own);
            for (;;) ::pause();
        }
        for (;;) ::pause();
    }
    pid_t looks = 0;
    BOOST_REQUIRE(::read(pipe[0], &looks, sizeof looks) == static_cast<ssize_t>(sizeof looks));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const auto patience = store::lock_goes_within.exchange(std::chrono::milliseconds(0));
    BOOST_TEST((code_of([&] { ArchiveHeap heap(open_only, dir / "a.tyn"); }) == errc::busy));
    store::lock_goes_within = std::chrono::minutes(1);
    std::thread lets_go([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ::kill(looks, SIGKILL);
    });
    {
        const ArchiveHeap heap(open_only, dir / "a.tyn");
        BOOST_TEST(heap.is_open());
    }
    lets_go.join();
    store::lock_goes_within = patience;
    ::close(pipe[0]);
    ::close(pipe[1]);
}

BOOST_AUTO_TEST_CASE(a_forked_child_cannot_use_the_heap_and_does_no_harm) {
    ScratchDirectory dir;
    auto heap = std::make_unique<ArchiveHeap>(create_only, dir / "a.tyn", small_heap());
    put(*heap, "x", "y");
    const pid_t child = ::fork();
    if (child == 0) {
        const bool refused = code_of([&] { heap->allocate(10); }) == errc::forked && code_of([&] { heap->snapshot(); }) == errc::forked;
        heap.reset();
        ::_exit(refused ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    heap->snapshot();
    heap->close();
    ArchiveHeap again(open_only, dir / "a.tyn");
    BOOST_TEST(get(again, "x") == "y");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_child_made_without_handlers_of_fork_does_no_harm_to_the_heap, Heap, Kinds) {
    ScratchDirectory dir;
    auto heap = std::make_unique<Heap>(create_only, dir / "a.tyn", small_heap());
    put(*heap, "first", "1");
    heap->snapshot();
    put(*heap, "second", "2");
    const pid_t child = ::_Fork();
    if (child == 0) {
        ::alarm(30);
        const bool refused = code_of([&] { heap->allocate(10); }) == errc::forked && code_of([&] { heap->snapshot(); }) == errc::forked;
        heap.reset();
        ::_exit(refused ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    BOOST_TEST((code_of([&] { Heap(open_only, dir / "a.tyn"); }) == errc::busy));
    put(*heap, "third", "3");
    heap->snapshot();
    // What a process that was killed now would leave behind.
    ScratchDirectory left;
    for (const auto& file : std::filesystem::directory_iterator(dir.path())) std::filesystem::copy_file(file.path(), left / file.path().filename());
    heap.reset();
    Heap again(open_only, left / "a.tyn");
    BOOST_TEST(get(again, "first") == "1");
    BOOST_TEST(get(again, "second") == "2");
    BOOST_TEST(get(again, "third") == "3");
}

BOOST_AUTO_TEST_CASE(an_archive_opened_as_a_snapshot_heap_gets_a_data_file_and_keeps_it) {
    ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
        put(heap, "x", "1");
        heap.snapshot();
    }
    BOOST_TEST((read_parameters(dir / "a.tyn").kind == HeapKind::archive));
    { SnapshotHeap heap(open_only, dir / "a.tyn"); }
    BOOST_TEST((read_parameters(dir / "a.tyn").kind == HeapKind::snapshot));
    BOOST_TEST(read_parameters(dir / "a.tyn").data_file == dir / "a.tyn.data");
    BOOST_TEST(read_parameters(dir / "a.tyn.data").data_file == dir / "a.tyn.data");
    BOOST_TEST(std::filesystem::exists(dir / "a.tyn.data"));
    {
        ArchiveHeap heap(open_only, dir / "a.tyn");  // a lower kind maintains what exists
        put(heap, "y", "2");
        heap.snapshot();
    }
    flip_bit(dir / "a.tyn", 60);
    flip_bit(dir / "a.tyn", 4096 + 60);
    SnapshotHeap heap(open_only, dir / "a.tyn");
    BOOST_TEST(heap.restoration().backing_rebuilt);
    BOOST_TEST(get(heap, "y") == "2");
}

BOOST_AUTO_TEST_CASE(parameters_are_read_without_opening) {
    ScratchDirectory dir;
    SnapshotHeap heap(create_only, dir / "a.tyn", small_heap(16U << 20U));
    const HeapParameters parameters = read_parameters(dir / "a.tyn");
    BOOST_TEST(parameters.capacity_bytes == (16U << 20U));
    BOOST_TEST((parameters.kind == HeapKind::snapshot));
    BOOST_TEST(!parameters.clean);
    BOOST_TEST(parameters.address % (1ULL << 31U) == 0U);
    BOOST_TEST((code_of([&] { read_parameters(dir / "none"); }) == errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_closed_heap_says_so) {
    ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap());
    heap.close();
    heap.close();
    BOOST_TEST(!heap.is_open());
    BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::closed));
    BOOST_TEST((code_of([&] { heap.allocate(1); }) == errc::closed));
    BOOST_TEST((code_of([&] { heap.resize(nullptr, 1); }) == errc::closed));
    ArchiveHeap moved_from(create_only, dir / "b.tyn", small_heap());
    ArchiveHeap moved_to(std::move(moved_from));
    BOOST_TEST((code_of([&] { moved_from.snapshot(); }) == errc::closed));
    BOOST_TEST(moved_to.is_open());
}

BOOST_AUTO_TEST_CASE(two_heaps_are_open_side_by_side_and_can_be_assigned) {
    ScratchDirectory dir;
    ArchiveHeap a(create_only, dir / "a.tyn", small_heap());
    ArchiveHeap b(create_only, dir / "b.tyn", small_heap());
    void* in_a = a.allocate(10);
    BOOST_TEST(a.owns(in_a));
    BOOST_TEST(!b.owns(in_a));
    b = std::move(a);
    BOOST_TEST(b.owns(in_a));
    ArchiveHeap reopened(open_only, dir / "b.tyn");
    BOOST_TEST(reopened.is_open());
}

BOOST_AUTO_TEST_CASE(an_address_that_is_taken_is_named_and_the_file_untouched) {
    ScratchDirectory dir;
    ArchiveHeap a(create_only, dir / "a.tyn", small_heap());
    put(a, "x", "1");
    a.snapshot();
    crash_copy(dir / "a.tyn", dir / "b.tyn");
    const auto before = bytes_of(dir / "b.tyn");
    BOOST_CHECK_EXCEPTION(ArchiveHeap(open_only, dir / "b.tyn"), Error, [&](const Error& error) {
        const std::string text = error.what();
        const std::string code = "address in use";
        return error.code() == errc::address_in_use && text.find("by the heap " + (dir / "a.tyn").string()) != std::string::npos &&
               text.find(code) == text.rfind(code);
    });
    BOOST_TEST((bytes_of(dir / "b.tyn") == before));
    a.close();
    ArchiveHeap b(open_only, dir / "b.tyn");
    BOOST_TEST(get(b, "x") == "1");
}

BOOST_AUTO_TEST_CASE(space_of_freed_blocks_goes_back_to_the_disk_at_close) {
    ScratchDirectory dir;
    {
        SnapshotHeap heap(create_only, dir / "a.tyn", small_heap(64U << 20U));
        fill_pages(heap, "big", 24U << 20U, 'q');
        put(heap, "small", "stays");
        heap.snapshot();
    }
    const std::size_t full = read_parameters(dir / "a.tyn").allocated_bytes;
    BOOST_TEST(full >= (24U << 20U));
    {
        SnapshotHeap heap(open_only, dir / "a.tyn");
        char* big = find(heap, "big");
        heap::remove_named(*heap.core(), "big");
        heap.deallocate(big);
        heap.snapshot();
    }
    BOOST_TEST(read_parameters(dir / "a.tyn").allocated_bytes < full / 8);
    SnapshotHeap heap(open_only, dir / "a.tyn");
    BOOST_TEST(get(heap, "small") == "stays");
    BOOST_TEST(heap.heal() == 0U);
    fill_pages(heap, "again", 24U << 20U, 'r');  // the blocks come back
    heap.snapshot();
    BOOST_TEST(find(heap, "again")[(24U << 20U) - 1] == 'r');
}

BOOST_AUTO_TEST_CASE(space_of_each_free_page_goes_back_to_the_disk_on_request) {
    for (const std::size_t block_bytes : {page_bytes, std::size_t{128} * page_bytes}) {  // by a small save, and by a large one
        ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        const auto open = [&](store::OpenMode mode = store::OpenMode::open_only) {
            return HeapAccess::make<SnapshotHeap>(
                store::HeapFile::open(io::posix_storage(), path, mode, HeapKind::snapshot, small_heap(64U << 20U), store::Tuning{32768}));
        };
        const auto allocated = [&] { return read_parameters(path).allocated_bytes + read_parameters(path.string() + ".data").allocated_bytes; };
        const auto close_giving_all_back = [&] {
            ByteCount told = 0;
            SnapshotHeap heap = open();
            ByteCount all = 0;
            HeapAccess::file(heap).give_back().take_all([&](std::uint64_t done, std::uint64_t total) {
                BOOST_TEST((done > told && done <= total && (all == 0 || all == total)));
                told = done;
                all = total;
            });
            heap.close();
            BOOST_TEST(told == all);
            return told;
        };
        {
            SnapshotHeap heap = open(store::OpenMode::create_only);
            for (char name = 'a'; name <= 'z'; ++name) fill_pages(heap, std::string(1, name), block_bytes, name);
            heap.snapshot();
            heap.close();
        }
        const std::size_t full = allocated();
        std::size_t freed = 0;
        {
            SnapshotHeap heap = open();
            for (char name = 'b'; name <= 'z'; name = static_cast<char>(name + 2)) {
                char* const block = find(heap, std::string(1, name));
                freed = static_cast<std::size_t>(block - reinterpret_cast<char*>(heap.core()->ranges().durable));
                heap::remove_named(*heap.core(), std::string(1, name));
                heap.deallocate(block);
            }
            heap.snapshot();
            crash_copy(path, dir / "kept.tyn");
            heap.close();
        }
        BOOST_TEST((allocated() + 2 * 13 * block_bytes <= full) == (block_bytes != page_bytes));
        for (const char* suffix : {"", ".data", ".journal"}) {
            std::filesystem::remove(path.string() + suffix);
            if (std::filesystem::exists((dir / "kept.tyn").string() + suffix))
                std::filesystem::rename((dir / "kept.tyn").string() + suffix, path.string() + suffix);
        }
        BOOST_TEST(close_giving_all_back() >= 13 * block_bytes);
        const std::size_t least = allocated();
        const std::size_t metadata =
            block_bytes == page_bytes ? 0 : 2 * 4 * page_bytes;  // pages of it that were zero, and so holes, while nothing was free
        BOOST_TEST(least + 2 * 13 * block_bytes <= full + metadata);
        const auto before = bytes_of(path);
        BOOST_TEST(close_giving_all_back() >= 13 * block_bytes);  // nothing to be saved
        BOOST_TEST(allocated() == least);
        BOOST_TEST((std::equal(before.begin() + store::chunks_offset, before.end(), bytes_of(path).begin() + store::chunks_offset)));
        {
            SnapshotHeap heap = open();
            std::memset(reinterpret_cast<char*>(heap.core()->ranges().durable) + freed, 'x', block_bytes);  // nobody's memory
            heap.snapshot();
            heap.close();
        }
        close_giving_all_back();
        BOOST_TEST(allocated() == least);
        SnapshotHeap heap = open();
        BOOST_TEST(heap.heal() == 0U);
        BOOST_TEST(reinterpret_cast<const char*>(heap.core()->ranges().durable)[freed] == 0);
        for (char name = 'a'; name <= 'z'; name = static_cast<char>(name + 2)) BOOST_TEST(find(heap, std::string(1, name))[block_bytes - 1] == name);
        fill_pages(heap, "again", 13 * block_bytes, 'r');
        heap.snapshot();
        BOOST_TEST(find(heap, "again")[13 * block_bytes - 1] == 'r');
    }
}

BOOST_AUTO_TEST_CASE(pages_that_were_given_back_are_zero_in_the_files_although_the_last_step_of_that_was_interrupted) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        ScratchDirectory dir;
        const auto open = [&](store::OpenMode mode) {
            return HeapAccess::make<ArchiveHeap>(store::HeapFile::open(io::posix_storage(), dir / "a.tyn", mode, kind, small_heap()));
        };
        {
            ArchiveHeap heap = open(store::OpenMode::create_only);
            for (char name = 'a'; name <= 'p'; ++name) fill_pages(heap, std::string(1, name), page_bytes, name);
            heap.snapshot();
            for (char name = 'a'; name <= 'o'; name = static_cast<char>(name + 2)) {
                char* const block = find(heap, std::string(1, name));
                heap::remove_named(*heap.core(), std::string(1, name));
                heap.deallocate(block);
            }
            heap.snapshot();
            HeapAccess::file(heap).give_back().take_all([](std::uint64_t, std::uint64_t) { throw std::runtime_error("the test interrupts it"); });
            BOOST_CHECK_THROW(heap.close(), Error);
        }
        ArchiveHeap heap = open(store::OpenMode::open_only);
        BOOST_TEST(heap.heal() == 0U);
        for (char name = 'b'; name <= 'p'; name = static_cast<char>(name + 2)) BOOST_TEST(find(heap, std::string(1, name))[page_bytes - 1] == name);
    }
}

BOOST_AUTO_TEST_CASE(a_save_is_one_record_of_the_journal_up_to_half_of_that_and_goes_past_it_from_there_on) {
    constexpr ByteCount journal_bytes = 128_KiB;
    ScratchDirectory dir;
    ArchiveHeap heap = HeapAccess::make<ArchiveHeap>(store::HeapFile::open(io::posix_storage(), dir / "a.tyn", store::OpenMode::create_only,
                                                                           HeapKind::archive, small_heap(), store::Tuning{journal_bytes}));
    fill_pages(heap, "block", 20 * page_bytes, 'a');
    heap.snapshot();
    char* const block = find(heap, "block");
    std::size_t into_files = 0;
    for (std::size_t pages = 8; pages <= 20; ++pages) {
        HeapAccess::file(heap).saves().checkpoint();
        const auto before = bytes_of(dir / "a.tyn");
        for (std::size_t page = 0; page < pages; ++page) ++block[page * page_bytes];
        heap.snapshot();
        const bool is_small = log::Ring::record_bytes(store::save_payload_bytes(false, pages, pages)) <= journal_bytes / 2;
        BOOST_TEST((bytes_of(dir / "a.tyn") == before) == is_small, "a save of " << pages << " pages");
        into_files += is_small ? 0 : 1;
    }
    BOOST_TEST(into_files > 0U);
    BOOST_TEST(into_files < 13U);
}

BOOST_AUTO_TEST_CASE(copies_that_nobody_changes_any_more_are_dropped_by_the_save_that_finds_more_than_1024) {
    ScratchDirectory dir;
    ArchiveHeap heap = HeapAccess::make<ArchiveHeap>(store::HeapFile::open(io::posix_storage(), dir / "a.tyn", store::OpenMode::create_only,
                                                                           HeapKind::archive, small_heap(64U << 20U), store::Tuning{16_MiB}));
    fill_pages(heap, "block", 2100 * page_bytes, 'a');
    heap.snapshot();
    HeapAccess::file(heap).saves().checkpoint();
    char* const block = find(heap, "block");
    const auto change = [&](std::size_t nth) { ++block[nth * 2 * page_bytes]; };  // no two beside each other
    const auto copies = [&] {
        std::uint64_t count = 0;
        for (const vm::PageRun& run : HeapAccess::file(heap).private_pages()) count += run.count;
        return count;
    };
    BOOST_TEST(copies() == 0U);
    for (std::size_t nth = 0; nth < 1025; ++nth) change(nth);
    heap.snapshot();
    BOOST_TEST(copies() == 1025U);
    change(0);
    heap.snapshot();
    BOOST_TEST(copies() == 1025U);
    change(1025);
    heap.snapshot();
    BOOST_TEST(copies() == 0U);
    BOOST_TEST(block[0] == 'c');
}

BOOST_AUTO_TEST_CASE(the_file_grows_with_use_and_not_with_capacity) {
    ScratchDirectory dir;
    PersistentOptions options;
    options.capacity = std::size_t{1} << 40U;
    ArchiveHeap heap(create_only, dir / "a.tyn", options);
    put(heap, "x", "1");
    heap.snapshot();
    BOOST_TEST(read_parameters(dir / "a.tyn").file_bytes < (1U << 20U));
}

BOOST_AUTO_TEST_CASE(a_heap_that_grows_takes_no_more_of_the_disk_and_of_memory_than_it_has) {
    ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small_heap(64U << 20U));
    const auto first = reinterpret_cast<std::uintptr_t>(HeapAccess::file(heap).ranges().durable);
    for (int i = 0; i < 20; ++i) {
        heap.allocate(1U << 20U);
        const ByteCount extent = HeapAccess::file(heap).image().mapped();
        BOOST_TEST(std::filesystem::file_size(dir / "a.tyn") < extent + (1U << 20U));
        // Whoever goes too far behind the heap's end is stopped by the processor.
        std::ifstream maps("/proc/self/maps");
        std::string access = "none";
        for (std::string line; std::getline(maps, line);) {
            std::uintptr_t from = 0;
            std::uintptr_t to = 0;
            char mode[5] = "";
            if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, mode) == 3 && from <= first + extent && first + extent < to) access = mode;
        }
        BOOST_TEST(access == "---p");
    }
}

BOOST_AUTO_TEST_CASE(a_full_heap_tells_its_path) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    const auto names = [&](const HeapFull& full) { return full.cause() == HeapFull::Cause::capacity && names_heap(full, path); };
    const auto fill = [&](auto&& heap) {
        BOOST_CHECK_EXCEPTION(heap.allocate(1U << 30U), HeapFull, names);
        BOOST_CHECK_EXCEPTION(heap.resize(heap.allocate(100), 1U << 30U), HeapFull, names);
        BOOST_CHECK_EXCEPTION(heap.allocate(std::size_t{1} << 62U), HeapFull, names);
        BOOST_CHECK_EXCEPTION(heap.resize(heap.allocate(100), std::size_t{1} << 62U), HeapFull, names);
        BOOST_CHECK_EXCEPTION(for (;;) heap.allocate(1U << 20U), HeapFull, names);
    };
    PersistentOptions options = small_heap(8U << 20U);
    fill(ArchiveHeap(create_only, path, options));
    options.guarded = true;
    fill(SnapshotHeap(open_or_create, path, options));
}

BOOST_AUTO_TEST_CASE(unsaved_pages_are_limited_by_dirty_limit) {
    ScratchDirectory dir;
    PersistentOptions options = small_heap(64U << 20U);
    options.dirty_limit = 4U << 20U;
    ArchiveHeap heap(create_only, dir / "a.tyn", options);
    bool full = false;
    for (int i = 0; i < 64 && !full; ++i) {
        try {
            std::memset(heap.allocate(1U << 20U), 1, 1U << 20U);
        } catch (const HeapFull& reason) {
            full = reason.cause() == HeapFull::Cause::dirty_limit;
        }
    }
    BOOST_TEST(full);
    heap.snapshot();
    BOOST_TEST(heap.allocate(1U << 20U) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_heap_many_times_its_dirty_limit_grows_while_it_is_saved_often_enough) {
    ScratchDirectory dir;
    PersistentOptions options = small_heap(64U << 20U);
    options.dirty_limit = 8U << 20U;
    ArchiveHeap heap(create_only, dir / "a.tyn", options);
    constexpr std::size_t block = 1U << 20U;
    for (int i = 0; i < 48; ++i) {
        std::memset(heap.allocate(block), i, block);
        heap.snapshot();
    }
    BOOST_TEST(HeapAccess::file(heap).image().mapped() > 4 * options.dirty_limit);
}

BOOST_AUTO_TEST_SUITE_END()
