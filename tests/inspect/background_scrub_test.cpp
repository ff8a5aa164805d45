// A scrub of an open heap, while the program goes on.

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>
#include <taiyen/inspect/background_scrub.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>
#include <taiyen/undo/history.hpp>
#include <taiyen/undo/scope.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <random>
#include <thread>

#include "io/disks/faulty_storage.hpp"
#include "seed.hpp"
#include "store/heap_probe.hpp"
#include "threads.hpp"
#include "txn/transaction_service.hpp"

namespace {
using namespace probe;
using store::FileLayout;
using store::HeapFile;
using taiyen::test::at_once;
using taiyen::test::require;
using namespace std::chrono_literals;

constexpr std::size_t text_bytes = 600'000;

/// What the report handler is told while it lives.
class Told {
public:
    Told() {
        lines().clear();
        before_ = set_report_handler([](const Incident& incident) noexcept {
            const std::lock_guard lock(mutex());
            lines().emplace_back(incident.text);
        });
    }
    ~Told() { set_report_handler(before_); }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    std::size_t count(const std::string& part) const {
        const std::lock_guard lock(mutex());
        return static_cast<std::size_t>(
            std::count_if(lines().begin(), lines().end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
    }

private:
    static std::mutex& mutex() {
        static std::mutex all;
        return all;
    }
    static std::vector<std::string>& lines() {
        static std::vector<std::string> all;
        return all;
    }
    ReportHandler before_;
};

BackgroundScrubOptions fast(std::chrono::milliseconds pause = 0ms) {
    BackgroundScrubOptions options;
    options.bytes_per_second = 0;
    options.pause = pause;
    return options;
}

/// Returns when the scrub has begun and ended a round since the call, or doesn't run any more.
BackgroundScrubStats after_a_round(const BackgroundScrub& scrub) {
    BackgroundScrubStats stats = scrub.stats();
    for (const std::uint64_t ours = stats.rounds + 2; stats.running && stats.rounds < ours; stats = scrub.stats()) std::this_thread::yield();
    return stats;
}

/// An open heap with a second copy and a text in it.
struct ScrubbedHeap {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    std::filesystem::path data = dir / "a.tyn.data";
    io::FaultyStorage disk{io::posix_storage()};
    ArchiveHeap heap;
    char* text;

    explicit ScrubbedHeap(HeapKind kind)
        : heap(HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, path, store::OpenMode::create_only, kind, with_data(kind), joined(kind)))),
          text(make_text(kind)) {
        heap.snapshot();
        file().saves().checkpoint();
    }
    store::Tuning joined(HeapKind kind) const {
        store::Tuning tuning;
        if (kind == HeapKind::transactional)
            tuning.join = [options = with_data(kind)](HeapFile& made) { txn::TransactionService::join(made, options); };
        return tuning;
    }
    char* make_text(HeapKind kind) {
        if (kind != HeapKind::transactional) return put(heap, "text", std::string(text_bytes, 'x'));
        txn::TransactionService& service = *txn::TransactionService::of(file());
        service.begin();
        char* const made = put(heap, "text", std::string(text_bytes, 'x'));
        service.commit();
        return made;
    }
    PersistentOptions with_data(HeapKind kind) const {
        PersistentOptions options = small_heap();
        if (kind == HeapKind::transactional) options.data_file = data;
        return options;
    }
    HeapFile& file() const { return HeapAccess::file(heap); }
    std::uint64_t page_of_text(std::uint64_t offset) const {
        return static_cast<std::uint64_t>(text + offset - reinterpret_cast<char*>(heap.core()->ranges().durable)) / page_bytes;
    }
    std::uint64_t place(std::uint64_t offset) const { return FileLayout().file_offset({page_of_text(offset) * page_bytes}); }
    /// One round, without a thread.
    std::vector<store::DamagedPage> look_over(ByteCount piece = 64U << 10U) const {
        std::vector<store::DamagedPage> damaged;
        PageNumber next{0};
        do file().healing().look_over(next, piece, damaged);
        while (next.value != 0);
        return damaged;
    }
};

bool has_whole_page(const std::filesystem::path& path, std::uint64_t place) {
    const auto bytes = bytes_of(path);
    return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(place), bytes.begin() + static_cast<std::ptrdiff_t>(place + page_bytes),
                       [](char byte) { return byte == 'x'; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(background_scrub)

BOOST_AUTO_TEST_CASE(a_round_looks_at_each_page_of_both_copies_by_pieces_and_at_nothing_that_is_sound) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        const ScrubbedHeap scrubbed(kind);
        const bool twice = scrubbed.file().files().data() != nullptr;
        BOOST_TEST(twice == (kind != HeapKind::archive));
        const ByteCount piece = 5 * page_bytes;
        std::vector<store::DamagedPage> damaged;
        PageNumber next{0};
        ByteCount read = 0;
        std::uint64_t pieces = 0;
        do {
            const ByteCount of_piece = scrubbed.file().healing().look_over(next, piece, damaged);
            BOOST_TEST(of_piece <= (piece + page_bytes) * (twice ? 2 : 1));
            read += of_piece;
            ++pieces;
        } while (next.value != 0);
        BOOST_TEST(damaged.empty());
        BOOST_TEST(pieces >= scrubbed.file().image().mapped() / piece);
        BOOST_TEST(read >= scrubbed.file().image().mapped() * (twice ? 2 : 1));
    }
}

BOOST_AUTO_TEST_CASE(what_stands_in_the_journal_alone_is_not_taken_for_damage) {
    ScrubbedHeap scrubbed(HeapKind::snapshot);
    scrubbed.text[100] = 'y';
    scrubbed.heap.snapshot();
    scrubbed.text[90'000] = 'z';
    BOOST_TEST(scrubbed.look_over().empty());
    put(scrubbed.heap, "more", std::string(3'000'000, 'm'));
    BOOST_TEST(scrubbed.look_over().empty());
    scrubbed.heap.snapshot();
    BOOST_TEST(scrubbed.look_over().empty());
}

BOOST_AUTO_TEST_CASE(rot_of_either_copy_of_a_transactional_heap_is_healed_while_it_is_open_and_told_once) {
    ScrubbedHeap scrubbed(HeapKind::transactional);
    const Told told;
    flip_bit(scrubbed.path, scrubbed.place(100'000) + 7);
    flip_bit(scrubbed.data, scrubbed.place(200'000) + 7);
    flip_bit(scrubbed.data, FileLayout().table_offset(0) + 500);
    BackgroundScrub scrub(scrubbed.heap, fast());
    const BackgroundScrubStats stats = after_a_round(scrub);
    BOOST_TEST(stats.pages_healed == 3U);
    BOOST_TEST(stats.pages_damaged == 3U);
    BOOST_TEST(stats.pages_lost == 0U);
    BOOST_TEST(has_whole_page(scrubbed.path, scrubbed.place(100'000)));
    BOOST_TEST(has_whole_page(scrubbed.data, scrubbed.place(200'000)));
    BOOST_TEST(told.count("restored") == 3U);
    flip_bit(scrubbed.data, scrubbed.place(200'000) + 7);
    BOOST_TEST(after_a_round(scrub).pages_healed == 4U);
    BOOST_TEST(told.count("restored") == 4U);
    scrub.stop();
    BOOST_TEST(!scrub.stats().running);
    BOOST_TEST(scrub.stats().last_error.empty());
    BOOST_TEST(scrubbed.heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_snapshot_heap_has_its_second_copy_healed_at_once_and_its_own_file_by_the_next_save) {
    ScrubbedHeap scrubbed(HeapKind::snapshot);
    const Told told;
    flip_bit(scrubbed.path, scrubbed.place(100'000) + 7);
    flip_bit(scrubbed.data, scrubbed.place(200'000) + 7);
    BackgroundScrub scrub(scrubbed.heap, fast());
    BackgroundScrubStats stats = after_a_round(scrub);
    BOOST_TEST(stats.pages_healed == 1U);
    BOOST_TEST(stats.pages_damaged == 2U);
    BOOST_TEST(!has_whole_page(scrubbed.path, scrubbed.place(100'000)));
    BOOST_TEST(has_whole_page(scrubbed.data, scrubbed.place(200'000)));
    BOOST_TEST(told.count("the next snapshot()") == 1U);
    scrubbed.heap.snapshot();
    BOOST_TEST(has_whole_page(scrubbed.path, scrubbed.place(100'000)));
    stats = after_a_round(scrub);
    BOOST_TEST(stats.pages_waiting == 0U);
    scrub.stop();
    BOOST_TEST(told.count("the next snapshot()") == 1U);
    BOOST_TEST(scrubbed.heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(what_nobody_has_whole_is_told_once_and_left_as_it_is) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        ScrubbedHeap scrubbed(kind);
        const Told told;
        flip_bit(scrubbed.path, scrubbed.place(100'000) + 7);
        if (kind != HeapKind::archive) flip_bit(scrubbed.data, scrubbed.place(100'000) + 8);
        const auto before = bytes_of(scrubbed.path);
        BackgroundScrub scrub(scrubbed.heap, fast());
        const std::uint64_t copies = kind == HeapKind::archive ? 1 : 2;
        BOOST_TEST(after_a_round(scrub).pages_damaged == copies);
        const BackgroundScrubStats stats = after_a_round(scrub);
        BOOST_TEST(stats.pages_damaged == copies);
        BOOST_TEST(stats.pages_healed == 0U);
        BOOST_TEST(told.count("no other copy") == copies);
        scrub.stop();
        BOOST_TEST((bytes_of(scrubbed.path) == before));
        BOOST_TEST(!scrubbed.heap.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(a_page_that_rots_before_it_is_changed_is_not_healed_below_what_was_stored) {
    ScrubbedHeap scrubbed(HeapKind::snapshot);
    flip_bit(scrubbed.path, scrubbed.place(100'000) + 7);
    // Memory has the page as it is in the file now, and a byte of its own that hides no rot.
    scrubbed.text[100'000 / page_bytes * page_bytes + 3000] = 'n';
    for (const store::DamagedPage& page : scrubbed.look_over()) BOOST_TEST((scrubbed.file().healing().heal_one(page) == store::Healed::waits));
    BOOST_TEST((code_of([&] { scrubbed.heap.snapshot(); }) == errc::corrupt));
}

BOOST_AUTO_TEST_CASE(a_scrub_heals_below_four_threads_that_commit, *boost::unit_test::label("threads")) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    PersistentOptions options = small_heap();
    options.log_capacity = 512U << 10U;  // saves in the background, all the time
    options.data_file = dir / "a.tyn.data";
    TransactionalHeap heap(create_only, dir / "a.tyn", options);
    constexpr unsigned threads = 4;
    constexpr std::size_t counted_bytes = 40'000;
    char* quiet = nullptr;
    std::uint64_t* counters[threads];
    {
        Transaction transaction(heap);
        quiet = put(heap, "quiet", std::string(400'000, 'q'));
        for (unsigned i = 0; i < threads; ++i)
            counters[i] = reinterpret_cast<std::uint64_t*>(put(heap, "n" + std::to_string(i), std::string(counted_bytes, '\0')));
        transaction.commit();
    }
    heap.snapshot();
    const Told told;
    const auto* const base = reinterpret_cast<const char*>(heap.core()->ranges().durable);
    BackgroundScrub scrub(heap, fast());
    std::atomic<bool> done = false;
    std::vector<std::uint64_t> seeds;
    for (unsigned i = 0; i <= threads; ++i) seeds.push_back(random());
    at_once(threads + 1, [&](unsigned number) {
        std::mt19937_64 own(seeds[number]);
        if (number == threads) {
            for (int i = 0; i < 10; ++i) {
                // A page that nobody changes rots in one copy, and is whole in the other one.
                const std::uint64_t page = (static_cast<std::uint64_t>(quiet - base) + 8192 + own() % 380'000) / page_bytes;
                const std::uint64_t before = scrub.stats().pages_healed;
                flip_bit(own() % 2 == 0 ? dir / "a.tyn" : dir / "a.tyn.data", FileLayout().file_offset({page * page_bytes}) + own() % page_bytes);
                while (scrub.stats().running && scrub.stats().pages_healed == before) std::this_thread::yield();
                require(scrub.stats().running, "the scrub goes on");
            }
            done = true;
            return;
        }
        std::uint64_t commits = 0;
        while (!done) {
            Transaction transaction(heap);
            ++commits;
            for (int k = 0; k < 4; ++k) {
                std::uint64_t& counter = counters[number][1 + own() % (counted_bytes / 8 - 2)];
                transaction.touch(&counter, sizeof counter);
                counter = commits;
            }
            transaction.touch(counters[number], 8);
            counters[number][0] = commits;
            transaction.commit();
        }
        require(counters[number][0] == commits, "what was committed is there");
    });
    BOOST_TEST(scrub.stats().pages_healed == 10U);
    BOOST_TEST(told.count("restored") == 10U);
    scrub.stop();
    heap.close();
    const ArchiveHeap reader(open_read_only, dir / "a.tyn");
    BOOST_TEST(reader.verify().ok());
    BOOST_TEST(get(reader, "quiet") == std::string(400'000, 'q'));
}

BOOST_AUTO_TEST_CASE(a_scrub_runs_beside_stores_growth_undo_steps_and_saves_of_a_snapshot_heap, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    PersistentOptions options = small_heap(64U << 20U);
    SnapshotHeap heap(create_only, dir / "a.tyn", options);
    heap.attach_undo();
    {
        BackgroundScrub scrub(heap, fast());
        for (int i = 0; i < 60; ++i) {
            {
                UndoScope scope(heap, "more");
                put(heap, "n" + std::to_string(i), std::string(30'000 + 10'000U * static_cast<unsigned>(i % 7), static_cast<char>('a' + i % 26)));
            }
            char* const text = put(heap, "m" + std::to_string(i), std::string(5000, 'm'));
            text[i] = 'x';
            if (i % 4 == 0) heap.snapshot();
            if (i % 10 == 9) heap.deallocate(heap.allocate(1'000'000));
        }
        const BackgroundScrubStats stats = after_a_round(scrub);
        BOOST_TEST(stats.running);
        BOOST_TEST(stats.pages_damaged == 0U);
    }
    heap.snapshot();
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(closing_and_destroying_heap_and_scrub_in_any_order_ends_both, *boost::unit_test::label("threads")) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot, HeapKind::transactional}) {
        for (int order = 0; order < 4; ++order) {
            for (const std::chrono::milliseconds pause : {0ms, 3'600'000ms}) {
                auto scrubbed = std::make_unique<ScrubbedHeap>(kind);
                auto scrub = std::make_unique<BackgroundScrub>(scrubbed->heap, fast(pause));
                if (order == 1)
                    while (scrub->stats().rounds == 0) std::this_thread::yield();
                if (order <= 1) {
                    scrubbed->heap.close();
                    while (scrub->stats().running) std::this_thread::yield();
                    BOOST_TEST(scrub->stats().last_error.empty());
                } else if (order == 2) {
                    scrubbed.reset();
                } else {
                    scrub.reset();
                    BOOST_TEST(scrubbed->heap.verify().ok());
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_scrub_heals_a_file_while_it_is_detached_and_another_one_comes, *boost::unit_test::label("threads")) {
    for (const HeapKind kind : {HeapKind::snapshot, HeapKind::transactional}) {
        ScrubbedHeap scrubbed(kind);
        const Told told;
        BackgroundScrub scrub(scrubbed.heap, fast());
        for (int i = 0; i < 10; ++i) {
            // Some of them are found, others go with the file.
            for (const std::uint64_t offset : {100'000U, 200'000U, 300'000U}) flip_bit(scrubbed.data, scrubbed.place(offset) + 7);
            scrubbed.heap.detach_data_file();
            BOOST_TEST(!std::filesystem::exists(scrubbed.data));
            scrubbed.heap.attach_data_file();
            require(scrub.stats().running, "the scrub goes on");
        }
        after_a_round(scrub);
        scrub.stop();
        BOOST_TEST(told.count("poisoned") == 0U);
        BOOST_TEST(scrubbed.look_over().empty());
        BOOST_TEST(scrubbed.heap.verify().ok());
        BOOST_TEST(has_whole_page(scrubbed.data, scrubbed.place(200'000)));
    }
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_poisoned_or_whose_file_is_cut_ends_its_scrub_which_writes_nothing_more) {
    ScrubbedHeap scrubbed(HeapKind::snapshot);
    const Told told;
    BackgroundScrub scrub(scrubbed.heap, fast());
    scrubbed.file().condition().poison("testing", "on purpose");
    while (scrub.stats().running) std::this_thread::yield();
    BOOST_TEST(scrub.stats().last_error.find("on purpose") != std::string::npos);
    BOOST_TEST(told.count("on purpose") == 1U);
    BOOST_CHECK_THROW(BackgroundScrub{scrubbed.heap}, Error);

    ScrubbedHeap cut(HeapKind::transactional);
    std::filesystem::resize_file(cut.data, 200'000);
    BackgroundScrub other(cut.heap, fast());
    while (other.stats().running) std::this_thread::yield();
    BOOST_TEST(other.stats().last_error.find("cut") != std::string::npos);
    BOOST_TEST(std::filesystem::file_size(cut.data) == 200'000U);
    BOOST_TEST(!cut.file().condition().is_poisoned());
}

BOOST_AUTO_TEST_CASE(a_page_that_cannot_be_written_back_poisons_and_is_not_tried_again) {
    ScrubbedHeap scrubbed(HeapKind::snapshot);
    const Told told;
    flip_bit(scrubbed.data, scrubbed.place(200'000) + 7);
    scrubbed.disk.arm({1, EIO, false, io::Call::sync});
    BackgroundScrub scrub(scrubbed.heap, fast());
    while (scrub.stats().running) std::this_thread::yield();
    BOOST_TEST(scrubbed.disk.calls() == 1U);
    BOOST_TEST(scrubbed.file().condition().is_poisoned());
    BOOST_TEST(!scrub.stats().last_error.empty());
}

BOOST_AUTO_TEST_CASE(in_a_forked_child_there_is_no_scrub_and_the_parents_goes_on) {
    ScrubbedHeap scrubbed(HeapKind::transactional);
    auto scrub = std::make_unique<BackgroundScrub>(scrubbed.heap, fast());
    const pid_t child = ::fork();
    if (child == 0) {
        const bool ran = scrub->stats().running;
        scrub.reset();
        ::_exit(ran ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    BOOST_TEST(after_a_round(*scrub).running);
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_only_read_takes_no_scrub) {
    const ScratchDirectory dir;
    { ArchiveHeap heap(create_only, dir / "a.tyn", small_heap()); }
    ArchiveHeap heap(open_read_only, dir / "a.tyn");
    BOOST_TEST((code_of([&] { BackgroundScrub scrub(heap); }) == errc::read_only));
}

BOOST_AUTO_TEST_SUITE_END()
