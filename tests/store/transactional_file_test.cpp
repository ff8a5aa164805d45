#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <thread>

#include <taiyen/store/parameters.hpp>

#include "heap_probe.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_storage.hpp"
#include "store/byte_log.hpp"
#include "store/header.hpp"
#include "store/page_file.hpp"
#include "store/refusing_storage.hpp"

// The store's side of a transactional heap, without the rooms above: a log that replays onto the files, in the background, quiesced and after a crash.

BOOST_AUTO_TEST_SUITE(a_transactional_file)

namespace {
using namespace probe;
using store::HeapFile;
using store::OpenMode;
using store::test::ByteLog;

constexpr ByteCount log_bytes = 256_KiB;

store::Tuning tuning() {
    store::Tuning tuning;
    tuning.batch_bytes = 16_KiB;
    tuning.log_replay = store::test::make_byte_replay;
    return tuning;
}

/// A heap of files in a folder, opened as whatever kind; as a transactional one with its log.
struct Opened {
    std::shared_ptr<HeapFile> file;
    std::shared_ptr<ByteLog> log;
    ArchiveHeap heap;

    Opened(io::Storage& storage, const std::filesystem::path& path, OpenMode mode, HeapKind kind, PersistentOptions options = small_heap(),
           const store::Tuning& tuned = tuning())
        : file(open(storage, path, mode, kind, options, tuned)), heap(HeapAccess::make<ArchiveHeap>(file)) {
        if (kind == HeapKind::transactional && mode != OpenMode::read_only) {
            log = std::make_shared<ByteLog>(*file);
            file->join(log);
        }
    }
    Opened(const std::filesystem::path& path, OpenMode mode, HeapKind kind, const PersistentOptions& options = small_heap())
        : Opened(io::posix_storage(), path, mode, kind, options) {}

    static std::shared_ptr<HeapFile> open(io::Storage& storage, const std::filesystem::path& path, OpenMode mode, HeapKind kind,
                                          PersistentOptions& options, const store::Tuning& tuned) {
        options.log_capacity = log_bytes;
        return HeapFile::open(storage, path, mode, kind, options, tuned);
    }
    void commit(const std::string& name, const std::string& text) {
        put(heap, name, text);
        log->commit();
    }
};

PersistentOptions with_data(const std::filesystem::path& path) {
    PersistentOptions options = small_heap();
    options.data_file = path.string() + ".data";
    return options;
}
/// The options of either sort of transactional heap.
std::vector<PersistentOptions> both_sorts(const std::filesystem::path& path) { return {small_heap(), with_data(path)}; }

std::vector<std::vector<char>> all_bytes(const std::filesystem::path& path) {
    std::vector<std::vector<char>> all;
    for (const char* suffix : {"", ".data", ".journal", ".log"}) all.push_back(bytes_of(path.string() + suffix));
    return all;
}

bool is_sound(ArchiveHeap& heap) { return heap.heal() == 0 && HeapAccess::file(heap).engine().check(1).empty(); }

/// Whether there is memory; the system looks, so that nothing is touched.
bool is_readable(const char* place) {
    int ends[2];
    BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const bool readable = ::write(ends[1], place, 1) == 1;
    ::close(ends[0]);
    ::close(ends[1]);
    return readable;
}

/// A crashed heap with transactions 1 … 20 in its log, the first ten in its files too.
void make_crashed(const ScratchDirectory& dir, const PersistentOptions& options, const std::filesystem::path& copy) {
    const std::filesystem::path path = dir / "made.tyn";
    PersistentOptions own = options;
    if (!own.data_file.empty()) own.data_file = path.string() + ".data";
    Opened made(path, OpenMode::create_only, HeapKind::transactional, own);
    for (int i = 1; i <= 20; ++i) {
        made.commit("n" + std::to_string(i), std::string(static_cast<std::size_t>(i) * 1000, 'x'));
        if (i == 10) made.log->snapshot();
    }
    put(made.heap, "uncommitted", "gone");
    crash_copy(path, copy);
    made.heap.close();
    for (const char* suffix : {"", ".data", ".log"}) std::filesystem::remove(path.string() + suffix);
}
}  // namespace

BOOST_AUTO_TEST_CASE(an_annex_that_gets_a_new_place_in_the_files_waits_for_the_save_that_looks_up_places, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    Opened opened(dir / "a.tyn", OpenMode::create_only, HeapKind::transactional);
    opened.file->open_annex(4_MiB);
    opened.file->extend_annex(64_KiB);
    auto save = std::optional(opened.file->files().hold_saves());
    opened.file->extend_annex(1_MiB);  // the same place: nobody waits
    std::atomic<bool> is_over{false};
    std::atomic<bool> too_early{false};
    std::thread thread([&] {
        opened.file->extend_annex(2_MiB);
        too_early = !is_over;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time for a wrong one to return
    is_over = true;
    save.reset();
    thread.join();
    BOOST_TEST(!too_early);
    BOOST_TEST(opened.file->image().annex().used() == 2_MiB);
    opened.heap.close();
}

BOOST_AUTO_TEST_CASE(what_was_committed_survives_a_crash_whatever_kind_opens_the_heap_then) {
    for (const HeapKind kind : {HeapKind::transactional, HeapKind::archive, HeapKind::snapshot}) {
        for (const bool data : {false, true}) {
            BOOST_TEST_CONTEXT(name_of(kind) << (data ? ", with a data file" : "")) {
                ScratchDirectory dir;
                const auto path = dir / "c.tyn";
                make_crashed(dir, data ? with_data(path) : small_heap(), path);
                const auto before = all_bytes(path);
                {
                    Opened reader(path, OpenMode::read_only, kind);
                    BOOST_TEST(reader.heap.restoration().transactions_replayed == 10U);
                    BOOST_TEST(get(reader.heap, "n20") == std::string(20'000, 'x'));
                    BOOST_TEST(get(reader.heap, "uncommitted") == "(none)");
                    BOOST_TEST(reader.file->files().durable_serial().value == 20U);
                }
                BOOST_TEST((all_bytes(path) == before));
                {
                    Opened opened(path, OpenMode::open_only, kind);
                    BOOST_TEST(!opened.heap.restoration().clean);
                    BOOST_TEST(opened.heap.restoration().transactions_replayed == 10U);
                    BOOST_TEST(opened.file->files().durable_serial().value == 20U);
                    BOOST_TEST(get(opened.heap, "n1") == std::string(1000, 'x'));
                    BOOST_TEST(get(opened.heap, "n20") == std::string(20'000, 'x'));
                    BOOST_TEST(get(opened.heap, "uncommitted") == "(none)");
                    BOOST_TEST(is_sound(opened.heap));
                    put(opened.heap, "more", "goes on");
                    opened.heap.snapshot();
                    opened.heap.close();
                }
                Opened again(path, OpenMode::open_only, HeapKind::transactional);
                BOOST_TEST(again.heap.restoration().clean);
                BOOST_TEST(get(again.heap, "more") == "goes on");
                BOOST_TEST(again.file->files().durable_serial().value == (kind == HeapKind::transactional ? 21U : 20U));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_snapshot_brings_into_the_files_what_was_committed_and_nothing_else) {
    ScratchDirectory dir;
    for (const PersistentOptions& options : both_sorts(dir / "a.tyn")) {
        const std::string copy = options.data_file.empty() ? "b.tyn" : "c.tyn";
        Opened opened(dir / "a.tyn", OpenMode::create_only, HeapKind::transactional, options);
        put(opened.heap, "one", std::string(300'000, '1'));  // larger than the log
        opened.commit("two", std::string(100'000, '2'));
        char* const two = find(opened.heap, "two");
        two[5] = 'x';  // never committed
        opened.log->snapshot();
        BOOST_TEST(opened.file->files().durable_serial().value == opened.log->serial().value);
        crash_copy(dir / "a.tyn", dir / copy);
        BOOST_TEST(two[5] == 'x');
        opened.heap.close();
        for (const auto& path : {dir / "a.tyn", dir / copy}) {
            Opened again(path, OpenMode::open_only, HeapKind::transactional);
            BOOST_TEST(again.heap.restoration().transactions_replayed == 0U);
            BOOST_TEST((get(again.heap, "one") == std::string(300'000, '1')));
            BOOST_TEST((get(again.heap, "two") == std::string(100'000, '2')));
            BOOST_TEST(is_sound(again.heap));
        }
        for (const char* suffix : {"", ".data", ".log"}) std::filesystem::remove((dir / "a.tyn").string() + suffix);
    }
}

BOOST_AUTO_TEST_CASE(a_snapshot_of_more_pages_than_a_batch_holds_takes_several) {
    ScratchDirectory dir;
    for (const PersistentOptions& options : both_sorts(dir / "a.tyn")) {
        Opened opened(dir / "a.tyn", OpenMode::create_only, HeapKind::transactional, options);
        put(opened.heap, "wide", std::string(2U << 20U, 'w'));
        opened.log->commit();
        char* const wide = find(opened.heap, "wide");
        for (std::size_t at = 100; at < (2U << 20U); at += 60'000) {
            wide[at] = 'c';
            opened.log->commit();
        }
        std::memset(wide + 1'000'000, 0, 20'000);  // zero pages have no image
        opened.log->commit();
        opened.log->batches = 0;
        opened.log->snapshot();
        BOOST_TEST(opened.log->batches > 3U);
        BOOST_TEST(is_sound(opened.heap));
        opened.heap.close();
        Opened again(dir / "a.tyn", OpenMode::open_only, HeapKind::transactional);
        const char* const found = find(again.heap, "wide");
        std::string expected(2U << 20U, 'w');
        for (std::size_t at = 100; at < (2U << 20U); at += 60'000) expected[at] = 'c';
        std::fill_n(expected.begin() + 1'000'000, 20'000, '\0');
        BOOST_TEST((std::string(found, expected.size()) == expected));
        again.heap.close();
        for (const char* suffix : {"", ".data", ".log"}) std::filesystem::remove((dir / "a.tyn").string() + suffix);
    }
}

BOOST_AUTO_TEST_CASE(the_program_goes_on_while_a_snapshot_is_taken) {
    ScratchDirectory dir;
    for (const PersistentOptions& options : both_sorts(dir / "a.tyn")) {
        std::string last;
        {
            Opened opened(dir / "a.tyn", OpenMode::create_only, HeapKind::transactional, options);
            opened.commit("first", std::string(100'000, 'f'));
            std::vector<PageNumber> pages;
            for (std::uint64_t page = 0; page < opened.file->image().mapped() / page_bytes; ++page) pages.push_back({page});
            std::atomic<bool> done = false;
            std::thread saver([&] {
                for (int i = 0; i < 10; ++i) {
                    opened.file->saves().save_patched({opened.file->files().durable_serial(), opened.file->files().point().log_start, 0}, pages,
                                                      [](std::span<const PageNumber>, std::span<std::byte>) {});
                }
                done = true;
            });
            int i = 0;
            for (; i < 30 || !done; ++i) {
                opened.file->check_usable(false);
                if (i < 60) {  // the heap grows meanwhile
                    last = "n" + std::to_string(i);
                    put(opened.heap, last, std::string(50'000, 'n'));
                }
            }
            saver.join();
            opened.log->commit();
            opened.log->snapshot();
            opened.heap.close();
        }
        Opened again(dir / "a.tyn", OpenMode::open_only, HeapKind::transactional);
        BOOST_TEST((get(again.heap, last) == std::string(50'000, 'n')));
        BOOST_TEST(is_sound(again.heap));
        again.heap.close();
        for (const char* suffix : {"", ".data", ".log"}) std::filesystem::remove((dir / "a.tyn").string() + suffix);
    }
}

BOOST_AUTO_TEST_CASE(the_log_stays_at_a_clean_close_and_is_used_again) {
    ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    const auto log = dir / "a.tyn.log";
    { Opened(path, OpenMode::create_only, HeapKind::transactional).commit("a", "1"); }
    BOOST_TEST(!std::filesystem::exists(dir / "a.tyn.journal"));
    BOOST_TEST(std::filesystem::file_size(log) == log::Ring::header_bytes + log_bytes);
    const auto uuid = log::Ring::read_identity(*io::posix_storage().open(log, io::Access::read_only)).ring;
    BOOST_TEST((read_parameters(path).kind == HeapKind::transactional));
    BOOST_TEST(read_parameters(path).clean);
    BOOST_TEST(read_parameters(path).serial == 1U);
    {
        ArchiveHeap archive(open_only, path);  // a lower kind leaves it alone
        BOOST_TEST(std::filesystem::exists(dir / "a.tyn.journal"));
        put(archive, "b", "2");
        archive.snapshot();
    }
    BOOST_TEST((read_parameters(path).kind == HeapKind::transactional));
    {
        Opened opened(path, OpenMode::open_only, HeapKind::transactional);
        opened.commit("c", "3");
        BOOST_TEST(opened.file->files().durable_serial().value == 1U);
        BOOST_TEST(opened.log->serial().value == 2U);
        opened.heap.close();
    }
    BOOST_TEST((log::Ring::read_identity(*io::posix_storage().open(log, io::Access::read_only)).ring == uuid));
    Opened again(path, OpenMode::open_only, HeapKind::transactional);
    BOOST_TEST(get(again.heap, "a") + get(again.heap, "b") + get(again.heap, "c") == "123");
}

BOOST_AUTO_TEST_CASE(a_missing_log_is_made_anew_for_a_clean_heap_and_refused_for_a_crashed_one) {
    ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    {
        Opened opened(path, OpenMode::create_only, HeapKind::transactional);
        opened.commit("a", "1");
        crash_copy(path, dir / "c.tyn");
        opened.heap.close();
    }
    std::filesystem::remove(dir / "a.tyn.log");
    std::filesystem::remove(dir / "c.tyn.log");
    {
        Opened opened(path, OpenMode::open_only, HeapKind::transactional);
        BOOST_TEST(opened.heap.restoration().clean);
        opened.commit("b", "2");
        crash_copy(path, dir / "d.tyn");
    }
    BOOST_TEST(get(Opened(dir / "d.tyn", OpenMode::open_only, HeapKind::transactional).heap, "b") == "2");
    const auto before = all_bytes(dir / "c.tyn");
    for (const HeapKind kind : {HeapKind::transactional, HeapKind::archive})
        for (const OpenMode mode : {OpenMode::open_only, OpenMode::read_only})
            BOOST_TEST((code_of([&] { Opened(dir / "c.tyn", mode, kind); }) == errc::log_missing));
    BOOST_TEST((all_bytes(dir / "c.tyn") == before));
    // That of another heap is neither taken nor overwritten.
    std::filesystem::copy_file(dir / "d.tyn.log", dir / "c.tyn.log");
    BOOST_TEST((code_of([&] { Opened(dir / "c.tyn", OpenMode::open_only, HeapKind::transactional); }) == errc::mismatch));
    std::filesystem::remove(dir / "a.tyn.log");
    { Opened(dir / "other.tyn", OpenMode::create_only, HeapKind::transactional); }
    std::filesystem::copy_file(dir / "other.tyn.log", dir / "a.tyn.log");
    BOOST_TEST((code_of([&] { Opened(path, OpenMode::open_only, HeapKind::transactional); }) == errc::mismatch));
}

BOOST_AUTO_TEST_CASE(a_log_that_is_empty_or_may_not_be_written_is_refused_and_kept) {
    ScratchDirectory dir;
    const auto path = dir / "x.tyn";
    make_crashed(dir, small_heap(), path);
    const auto log = dir / "x.tyn.log";
    const auto refused = [&](HeapKind kind) { return code_of([&] { Opened(path, OpenMode::open_only, kind); }); };

    // Nobody may write it.
    const auto before = all_bytes(path);
    for (const int error : {EROFS, EACCES}) {
        io::FaultyStorage faulty(io::posix_storage());
        faulty.arm({.at = 2, .error = error, .calls = io::Call::open});  // the heap's own file is the first one
        const errc code = error == EROFS ? errc::read_only : errc::permission;
        BOOST_TEST((code_of([&] { Opened(faulty, path, OpenMode::open_only, HeapKind::transactional); }) == code));
        BOOST_TEST((all_bytes(path) == before));
    }

    // It has lost what was in it: all of it, or its length too.
    const auto whole = bytes_of(log);
    std::filesystem::resize_file(log, 0);
    std::filesystem::resize_file(log, whole.size());
    for (const HeapKind kind : {HeapKind::transactional, HeapKind::archive, HeapKind::snapshot}) BOOST_TEST((refused(kind) == errc::not_a_heap));
    std::filesystem::resize_file(log, 0);
    for (const HeapKind kind : {HeapKind::transactional, HeapKind::archive, HeapKind::snapshot}) BOOST_TEST((refused(kind) == errc::not_a_heap));
    BOOST_TEST(std::filesystem::file_size(log) == 0U);

    std::ofstream(log, std::ios::binary).write(whole.data(), static_cast<std::streamsize>(whole.size()));
    BOOST_TEST((all_bytes(path) == before));
    Opened again(path, OpenMode::open_only, HeapKind::transactional);
    BOOST_TEST(get(again.heap, "n20").size() == 20'000U);
}

BOOST_AUTO_TEST_CASE(an_archive_becomes_transactional_also_after_a_crash) {
    for (const bool crashed : {false, true}) {
        ScratchDirectory dir;
        {
            ArchiveHeap archive(create_only, dir / "a.tyn", small_heap());
            put(archive, "a", "1");
            archive.snapshot();
            if (crashed) crash_copy(dir / "a.tyn", dir / "b.tyn");
        }
        const auto path = crashed ? dir / "b.tyn" : dir / "a.tyn";
        {
            Opened opened(path, OpenMode::open_only, HeapKind::transactional);
            BOOST_TEST(opened.heap.restoration().clean != crashed);
            BOOST_TEST(!std::filesystem::exists(path.string() + ".journal"));
            opened.commit("b", "2");
            crash_copy(path, dir / "c.tyn");
        }
        Opened again(dir / "c.tyn", OpenMode::open_only, HeapKind::transactional);
        BOOST_TEST(get(again.heap, "a") + get(again.heap, "b") == "12");
    }
}

BOOST_AUTO_TEST_CASE(a_heap_whose_log_holds_more_than_its_files_is_not_called_clean) {
    ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    {
        Opened opened(path, OpenMode::create_only, HeapKind::transactional);
        opened.commit("a", "1");
        opened.log->snapshot_at_close = false;
        opened.heap.close();
    }
    BOOST_TEST(!read_parameters(path).clean);
    Opened again(path, OpenMode::open_only, HeapKind::transactional);
    BOOST_TEST(again.heap.restoration().transactions_replayed == 1U);
    BOOST_TEST(get(again.heap, "a") == "1");
}

BOOST_AUTO_TEST_CASE(a_log_that_can_not_be_replayed_leaves_the_files_untouched) {
    // Its last group is wrong: by then the others have been applied, and the heap has grown.
    struct Missing final : store::LogReplay {
        Missing(const std::filesystem::path& log, ByteCount capacity, Serial contained) : good(log, capacity, contained) {}
        void check(const log::Record& group) override {
            refuse(group);
            good.check(group);
        }
        void apply(const log::Record& group, HeapFile& heap) override {
            refuse(group);
            good.apply(group, heap);
        }
        static void refuse(const log::Record& group) {
            if (group.number == 20) throw Error(errc::missing_procedure, "register it");
        }
        Serial last() const override { return good.last(); }
        std::uint64_t transactions() const override { return good.transactions(); }
        store::test::ByteReplay good;
    };
    store::Tuning tuned = tuning();
    tuned.log_replay = [](const auto& log, ByteCount capacity, Serial contained) { return std::make_unique<Missing>(log, capacity, contained); };
    for (const bool data : {false, true}) {
        for (const char* damage : {"none", "first page", "slot of the data file's header"}) {
            BOOST_TEST_CONTEXT((data ? "with a data file, damaged: " : "damaged: ") << damage) {
                if (!data && damage != std::string("none")) continue;
                ScratchDirectory dir;
                const auto path = dir / "c.tyn";
                make_crashed(dir, data ? with_data(path) : small_heap(), path);
                if (damage == std::string("first page")) {
                    flip_bit(path, store::chunks_offset + page_bytes + 100);
                } else if (damage != std::string("none")) {
                    flip_bit(path.string() + ".data", 100);
                    flip_bit(path.string() + ".data", page_bytes + 100);
                }
                const auto before = all_bytes(path);
                for (const OpenMode mode : {OpenMode::open_only, OpenMode::read_only}) {
                    BOOST_TEST((code_of([&] { Opened(io::posix_storage(), path, mode, HeapKind::transactional, small_heap(), tuned); }) ==
                                errc::missing_procedure));
                }
                BOOST_TEST((all_bytes(path) == before));
                Opened opened(path, OpenMode::open_only, HeapKind::transactional);
                BOOST_TEST(opened.heap.restoration().transactions_replayed == 10U);
                BOOST_TEST((get(opened.heap, "n20") == std::string(20'000, 'x')));
                BOOST_TEST(is_sound(opened.heap));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_log_that_is_damaged_further_on_leaves_the_files_untouched) {
    ScratchDirectory dir;
    const auto path = dir / "c.tyn";
    make_crashed(dir, small_heap(), path);
    {
        // The last group but one: what follows proves that it was acknowledged.
        const auto file = io::posix_storage().open(path.string() + ".log", io::Access::read_only);
        const log::RingIdentity identity = log::Ring::read_identity(*file);
        std::uint64_t position = 0;
        log::Ring::scan(*file, identity, store::read_slots(*io::posix_storage().open(path, io::Access::read_only)).newest()->ring_start,
                        [&](const log::Record& group) {
                            position = group.position;
                            return group.number < 19;
                        });
        flip_bit(path.string() + ".log", log::Ring::file_offset(identity, position) + 1000);
    }
    const auto before = all_bytes(path);
    for (const OpenMode mode : {OpenMode::open_only, OpenMode::read_only})
        BOOST_TEST((code_of([&] { Opened(path, mode, HeapKind::transactional); }) == errc::corrupt));
    BOOST_TEST((all_bytes(path) == before));
}

BOOST_AUTO_TEST_CASE(a_page_that_rotted_gets_its_good_base_from_the_data_file_or_the_save_is_refused) {
    for (const bool data : {false, true}) {
        ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        Opened opened(path, OpenMode::create_only, HeapKind::transactional, data ? with_data(path) : small_heap());
        opened.commit("text", std::string(20'000, 't'));
        opened.log->snapshot();
        char* const text = find(opened.heap, "text");
        const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(text) - opened.file->ranges().durable + 8'000;
        text[8'000] = 'c';
        opened.log->commit();
        flip_bit(path, opened.file->files().backing().layout.file_offset({offset + 100}));
        if (!data) {
            BOOST_TEST((code_of([&] { opened.log->snapshot(); }) == errc::corrupt));
            BOOST_TEST((code_of([&] { opened.file->check_usable(true); }) == errc::poisoned));
            opened.log->snapshot_at_close = false;
            continue;
        }
        opened.log->snapshot();
        BOOST_TEST(opened.heap.restoration().pages_healed == 1U);
        BOOST_TEST(is_sound(opened.heap));
        opened.heap.close();
        std::string expected(20'000, 't');
        expected[8'000] = 'c';
        BOOST_TEST(get(Opened(path, OpenMode::open_only, HeapKind::transactional).heap, "text") == expected);
    }
}

BOOST_AUTO_TEST_CASE(a_damaged_stage_is_told_and_leaves_the_files_untouched) {
    ScratchDirectory dir;
    const auto path = dir / "c.tyn";
    make_crashed(dir, small_heap(), path);
    {
        const auto file = io::posix_storage().open(path, io::Access::read_write);
        store::Header header = *store::read_slots(*file).newest();
        header.state = store::FileState::staged;
        header.staged.head = {header.generation.value + 1, 20, header.extent, 2, 2, 0, log::Ring::header_bytes + log_bytes, 77, 0};
        header.staged.annex = header.annex;
        header.staged.ring_start = header.ring_start;
        store::write_first_headers(*file, header);
    }
    const auto before = all_bytes(path);
    for (const OpenMode mode : {OpenMode::open_only, OpenMode::read_only})
        BOOST_TEST((code_of([&] { Opened(path, mode, HeapKind::transactional); }) == errc::corrupt));
    BOOST_TEST((all_bytes(path) == before));
}

BOOST_AUTO_TEST_CASE(what_was_dropped_is_as_the_files_have_it) {
    ScratchDirectory dir;
    Opened opened(dir / "a.tyn", OpenMode::create_only, HeapKind::transactional);
    opened.commit("a", "1");
    opened.log->snapshot();
    find(opened.heap, "a")[0] = 'x';
    put(opened.heap, "b", "2");
    opened.file->drop_private();
    BOOST_TEST(get(opened.heap, "a") == "1");
    BOOST_TEST(get(opened.heap, "b") == "(none)");
    BOOST_TEST(opened.heap.dirty_bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(copies_of_what_the_files_have_are_dropped_in_pieces_and_others_stay) {
    ScratchDirectory dir;
    Opened opened(dir / "a.tyn", OpenMode::create_only, HeapKind::transactional);
    opened.commit("wide", std::string(20 * page_bytes, 'w'));
    opened.log->snapshot();
    char* const changed = find(opened.heap, "wide") + 5 * page_bytes;
    *changed = 'x';  // not committed
    const auto count = [](const std::vector<vm::PageRun>& runs) {
        std::uint64_t pages = 0;
        for (const vm::PageRun& run : runs) pages += run.count;
        return pages;
    };
    std::vector<vm::PageRun> todo = opened.file->private_pages();
    const std::uint64_t all = count(todo);
    const AlignedBuffer buffer(3 * page_bytes);
    BOOST_TEST(opened.file->saves().drop_saved(todo, buffer.span(), std::chrono::hours(1)) == all - 1);
    BOOST_TEST(todo.empty());
    BOOST_TEST(count(opened.file->private_pages()) == 1U);
    BOOST_TEST(*changed == 'x');
    BOOST_TEST(changed[page_bytes] == 'w');
}

BOOST_AUTO_TEST_CASE(what_a_heap_has_grown_by_begins_with_zeros_in_its_files_whatever_lies_there) {
    for (const bool data : {false, true}) {
        ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        const PersistentOptions options = data ? with_data(path) : small_heap();
        constexpr std::size_t wide = 60 * page_bytes;
        {
            Opened opened(path, OpenMode::create_only, HeapKind::transactional, options);
            opened.commit("a", "1");
            opened.log->snapshot();
            const ByteCount before = opened.file->image().mapped();
            auto* const block = static_cast<char*>(opened.heap.allocate(wide));
            heap::add_named(*opened.heap.core(), "block", {block, wide, 1, "bytes"});
            for (std::size_t at = 0; at < wide; at += page_bytes) block[at] = 'b';
            opened.log->commit();
            crash_copy(path, dir / "b.tyn");
            const auto first = static_cast<ByteCount>(block - reinterpret_cast<char*>(opened.heap.core()->ranges().durable));
            BOOST_TEST_REQUIRE(first + wide >= before + 16 * page_bytes);
            const auto file = io::posix_storage().open(path, io::Access::read_write);
            for (ByteCount at = std::max<ByteCount>(before, round_up(first, page_bytes)); at + page_bytes <= first + wide; at += page_bytes)
                file->write(std::vector(page_bytes, std::byte{9}), opened.file->files().backing().layout.file_offset({at}));
            opened.log->snapshot();
            opened.heap.close();
        }
        {
            const Opened reader(dir / "b.tyn", OpenMode::read_only, HeapKind::transactional);
            const char* const span = reinterpret_cast<const char*>(reader.heap.core()->ranges().durable);
            BOOST_TEST(find(reader.heap, "block")[wide - page_bytes] == 'b');
            BOOST_TEST(is_readable(span + reader.file->image().mapped() - 1));
            BOOST_TEST(!is_readable(span + reader.file->image().mapped()));
        }
        Opened again(path, OpenMode::open_only, HeapKind::transactional);
        const char* const block = find(again.heap, "block");
        for (std::size_t at = 0; at < wide; ++at) BOOST_TEST_REQUIRE(block[at] == (at % page_bytes == 0 ? 'b' : 0));
        BOOST_TEST(is_sound(again.heap));
    }
}

BOOST_AUTO_TEST_CASE(what_a_save_left_behind_the_log_is_cut_off_by_the_next_opening) {
    ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    const std::filesystem::path log = path.string() + ".log";
    Opened(path, OpenMode::create_only, HeapKind::transactional).heap.close();
    const auto size = std::filesystem::file_size(log);
    std::filesystem::resize_file(log, size + 1_MiB);
    Opened again(path, OpenMode::open_only, HeapKind::transactional);
    BOOST_TEST(std::filesystem::file_size(log) == size);
    again.commit("a", "1");
    again.heap.close();
}

BOOST_AUTO_TEST_CASE(a_heap_whose_log_can_not_be_read_at_close_is_not_called_clean) {
    ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    Opened(path, OpenMode::create_only, HeapKind::transactional).heap.close();
    {
        store::test::RefusingStorage disk(io::posix_storage());
        Opened opened(disk, path, OpenMode::open_only, HeapKind::transactional);
        opened.commit("a", "1");
        for (std::uint64_t at = 0; at < log_bytes; at += page_bytes) disk.refuse({path.string() + ".log", log::Ring::header_bytes + at, false});
        opened.log->snapshot_at_close = false;
        opened.heap.close();
    }
    BOOST_TEST(!read_parameters(path).clean);
    Opened again(path, OpenMode::open_only, HeapKind::transactional);
    BOOST_TEST(get(again.heap, "a") == "1");
}

BOOST_AUTO_TEST_CASE(a_full_disk_refuses_the_snapshot_and_the_heap_goes_on) {
    io::SimulatedStorage disk({3_MiB, true});
    disk.add_directory("/disk");
    Opened opened(disk, "/disk/a.tyn", OpenMode::create_only, HeapKind::transactional);
    const std::string text(60'000, 't');
    opened.commit("a", text);
    opened.log->snapshot();
    {
        const auto filler = disk.create("/disk/filler");
        BOOST_TEST((code_of([&] {
                        for (std::uint64_t at = 0;; at += page_bytes) filler->allocate(at, page_bytes);
                    }) == errc::no_space));
    }
    find(opened.heap, "a")[0] = 'x';
    opened.log->commit();
    BOOST_TEST((code_of([&] { opened.log->snapshot(); }) == errc::no_space));
    opened.file->check_usable(false);
    disk.remove("/disk/filler");
    opened.log->snapshot();
    opened.heap.close();
    Opened again(disk, "/disk/a.tyn", OpenMode::open_only, HeapKind::transactional);
    BOOST_TEST(find(again.heap, "a")[0] == 'x');
    BOOST_TEST(again.heap.restoration().clean);
}

BOOST_AUTO_TEST_CASE(options_that_can_not_be_are_refused) {
    ScratchDirectory dir;
    PersistentOptions options = small_heap();
    options.log_capacity = 1000;
    BOOST_TEST((code_of([&] { HeapFile::open(io::posix_storage(), dir / "a.tyn", OpenMode::create_only, HeapKind::transactional, options); }) ==
                errc::invalid_argument));
    options.log_capacity = log_bytes;
    options.log_file = dir / "a.tyn";
    BOOST_TEST((code_of([&] { HeapFile::open(io::posix_storage(), dir / "a.tyn", OpenMode::create_only, HeapKind::transactional, options); }) ==
                errc::invalid_argument));
    BOOST_TEST(std::filesystem::is_empty(dir.path()));
}

BOOST_AUTO_TEST_SUITE_END()
