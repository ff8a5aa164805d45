// What makes moving blocks of an open heap hard: pointers to ends, into the middle, of bytes that nobody declared; budgets of nothing and of everything; memory that runs out; and then all of it at random.

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "containers/declared_shapes.hpp"
#include "io/disks/simulated_storage.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"
#include "store/scarce_memory.hpp"
#include "threads.hpp"
#include "transfer/joint_web.hpp"
#include "transfer/random_moves.hpp"
#include "transfer/transfer_fixture.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::transfer::test {

using PlainSlice = taiyen::test::PlainSlice<std::uint64_t>;
using RangeSlice = taiyen::test::RangeSlice<std::uint64_t>;

struct Counted {
    std::uint64_t number = 0;
};
/// Bytes of which nobody says what they are.
struct Opaque {
    unsigned char* bytes = nullptr;
    Counted* known = nullptr;
};

}  // namespace taiyen::transfer::test

template <>
struct taiyen::pointers_of<taiyen::transfer::test::Counted> : taiyen::no_pointers {};
template <>
struct taiyen::pointers_of<taiyen::transfer::test::Opaque> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Opaque& opaque, Visit visit) {
        visit(opaque.bytes, opaque.known);
    }
};

namespace taiyen::transfer::test {
namespace {

constexpr std::size_t page = 4096;

template <class... T>
CompactOptions declaring(std::size_t bytes = std::size_t{16} << 20U) {
    CompactOptions options;
    options.bytes_max = bytes;
    options.types.add<T...>();
    return options;
}

struct HardFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    std::mt19937_64 random{taiyen::test::seed_of_run()};
};

BOOST_FIXTURE_TEST_SUITE(hard_compaction, HardFixture)

BOOST_AUTO_TEST_CASE(the_end_of_a_block_goes_with_it_although_another_block_moves_to_where_it_ended) {
    ArchiveHeap heap(create_only, path, small_heap());
    auto& slices = heap.construct<taiyen::vector<PlainSlice>>("slices", 2U);
    const auto pages = [&](std::size_t count) { return static_cast<std::uint64_t*>(heap.allocate(count * page)); };
    auto* const hole = pages(1);
    pages(1);  // nobody's: it stays
    auto* const moves = pages(1);
    auto* const behind = pages(2);
    pages(1);
    auto* const large = pages(2);
    BOOST_TEST_REQUIRE(moves + page / 8 == behind);
    slices[0] = {moves, moves + page / 8};
    slices[1] = {large, large + 2 * page / 8};
    for (std::size_t i = 0; i < page / 8; ++i) moves[i] = i + 1;
    heap.deallocate(hole);
    heap.deallocate(behind);
    const CompactReport report = compact(heap, declaring<taiyen::vector<PlainSlice>>());
    BOOST_TEST_REQUIRE(report.moved_blocks == 2U);
    const auto& now = *heap.find<taiyen::vector<PlainSlice>>("slices");
    BOOST_TEST(now[0].first == hole);
    BOOST_TEST(now[1].first == behind);
    BOOST_TEST(now[0].last == now[0].first + page / 8);
    BOOST_TEST(report.relocation(moves + page / 8) == hole + page / 8);
    BOOST_TEST(report.relocation.end(moves + page / 8) == hole + page / 8);
    expect_verified(heap);
}

BOOST_AUTO_TEST_CASE(blocks_that_stay_on_both_sides_of_one_that_moves_keep_the_end_and_the_beginning_that_they_share_with_it) {
    ArchiveHeap heap(create_only, path, small_heap());
    auto& slices = heap.construct<taiyen::vector<RangeSlice>>("slices", 3U);
    const auto pages = [&](std::size_t count) { return static_cast<std::uint64_t*>(heap.allocate(count * page)); };
    auto* const hole = pages(1);
    pages(1);                       // nobody's: it stays
    auto* const before = pages(2);  // too long for the hole, as the one behind
    auto* const moves = pages(1);
    auto* const behind = pages(2);
    BOOST_TEST_REQUIRE(before + 2 * page / 8 == moves);
    BOOST_TEST_REQUIRE(moves + page / 8 == behind);
    slices[0] = {before, moves};
    slices[1] = {moves, behind};
    slices[2] = {behind, behind + 2 * page / 8};
    heap.deallocate(hole);
    compact(heap, declaring<taiyen::vector<RangeSlice>>());
    const auto& now = *heap.find<taiyen::vector<RangeSlice>>("slices");
    BOOST_TEST(now[0].first == before);
    BOOST_TEST(now[0].last == moves);
    BOOST_TEST(now[1].first == hole);
    BOOST_TEST(now[1].last == hole + page / 8);
    BOOST_TEST(now[2].first == behind);
    BOOST_TEST(now[2].last == behind + 2 * page / 8);
}

BOOST_AUTO_TEST_CASE(an_address_in_bytes_that_nobody_declared_keeps_its_block_also_where_it_begins_in_a_byte_that_is_declared) {
    ArchiveHeap heap(create_only, path, small_heap());
    std::vector<void*> blocks;
    const auto space = [&] {
        for (int i = 0; i < 300; ++i) blocks.push_back(heap.allocate(sizeof(Counted), alignof(Counted)));
    };
    constexpr std::size_t places = 16;
    auto& opaques = heap.construct<taiyen::vector<Opaque>>("opaques", places);
    std::vector<Counted*> hidden;
    for (std::size_t i = 0; i < places; ++i) {
        space();
        auto* const counted = heap.make<Counted>();
        counted->number = i;
        hidden.push_back(counted);
        space();
        opaques[i].bytes = static_cast<unsigned char*>(heap.allocate(128));
        opaques[i].known = counted;
        std::memset(opaques[i].bytes, 0xEE, 128);
        std::memcpy(opaques[i].bytes + i, &counted, sizeof counted);  // 0: it begins in the byte that the pointer's type speaks of
    }
    for (void* const block : blocks) heap.deallocate(block);
    for (int steps = 0; steps < 50 && !compact(heap, declaring<taiyen::vector<Opaque>>(page)).done(); ++steps) {}
    const auto& now = *heap.find<taiyen::vector<Opaque>>("opaques");
    for (std::size_t i = 0; i < places; ++i) {
        const Counted* found = nullptr;
        std::memcpy(&found, now[i].bytes + i, sizeof found);
        BOOST_TEST(found == hidden[i]);
        BOOST_TEST(found == now[i].known, "the block whose address stands at byte " << i << " has moved");
        BOOST_TEST(now[i].known->number == i);
    }
    expect_verified(heap);
}

BOOST_AUTO_TEST_CASE(a_block_to_which_a_pointer_leads_that_can_not_be_rewritten_stays) {
    ArchiveHeap heap(create_only, path, small_heap());
    std::vector<void*> blocks;
    const auto space = [&] {
        for (int i = 0; i < 300; ++i) blocks.push_back(heap.allocate(sizeof(Counted), alignof(Counted)));
    };
    auto& opaques = heap.construct<taiyen::vector<Opaque>>("opaques", 1U);
    auto& crooked = heap.construct<std::array<std::byte, 32>>("crooked");
    space();
    Counted* const counted = heap.make<Counted>();
    counted->number = 17;
    space();
    opaques[0].known = counted;
    std::memcpy(&crooked[1], &counted, sizeof counted);
    for (void* const block : blocks) heap.deallocate(block);
    CompactOptions options = declaring<taiyen::vector<Opaque>>();
    options.types.add(stl::fingerprint<std::array<std::byte, 32>>(),
                      {[](void* object, PointerWalk& walk) { walk.pointer(static_cast<std::byte*>(object) + 1); }, 32});
    CompactReport report;
    for (int steps = 0; steps < 10 && !(report = compact(heap, options)).done(); ++steps) {}
    const Counted* found = nullptr;
    std::memcpy(&found, heap.find<std::array<std::byte, 32>>("crooked")->data() + 1, sizeof found);
    BOOST_TEST(found == counted);
    BOOST_TEST(heap.find<taiyen::vector<Opaque>>("opaques")->front().known == counted);
    BOOST_TEST(counted->number == 17U);
    BOOST_TEST(report.suspected_blocks >= 1U);
}

BOOST_AUTO_TEST_CASE(a_block_whose_end_is_a_key_stays) {
    ArchiveHeap heap(create_only, path, small_heap());
    const auto pages = [&](std::size_t count) { return static_cast<std::uint64_t*>(heap.allocate(count * page)); };
    auto& slices = heap.construct<taiyen::vector<PlainSlice>>("slices", 1U);
    auto& ends = heap.construct<taiyen::map<const std::uint64_t*, int>>("ends");
    auto* const hole = pages(1);
    pages(1);
    auto* const block = pages(1);
    auto* const behind = pages(1);
    slices[0] = {block, block};
    ends.emplace(block + page / 8, 17);
    heap.deallocate(hole);
    heap.deallocate(behind);
    const auto options = declaring<taiyen::vector<PlainSlice>, taiyen::map<const std::uint64_t*, int>>();
    CompactReport report;
    for (int steps = 0; steps < 10 && !(report = compact(heap, options)).done(); ++steps) {}
    const auto* const now = heap.find<taiyen::vector<PlainSlice>>("slices")->front().first;
    BOOST_TEST(now == block);
    BOOST_TEST((heap.find<taiyen::map<const std::uint64_t*, int>>("ends")->count(now + page / 8) == 1U));
    BOOST_TEST(report.keyed_blocks == 1U);
}

using Numbers = taiyen::map<int, taiyen::string>;

void fill_with_holes(ArchiveHeap& heap, std::mt19937_64& random, int count) {
    auto& numbers = heap.find_or_construct<Numbers>("numbers");
    numbers.clear();
    std::vector<void*> blocks;
    for (int i = 0; i < count; ++i) {
        numbers[i] = std::string(random() % 100, 'x').c_str();
        for (int n = 0; n < 3; ++n) blocks.push_back(heap.allocate(random() % 300));
    }
    for (int i = 0; i < count; ++i)
        if (i % 4 != 0) numbers.erase(i);
    for (void* const block : blocks) heap.deallocate(block);
}

BOOST_AUTO_TEST_CASE(time_without_end_is_no_limit) {
    ArchiveHeap heap(create_only, path, small_heap());
    fill_with_holes(heap, random, 2000);
    CompactOptions options = declaring<Numbers>();
    options.time_max = std::chrono::microseconds::max();
    options.bytes_max = std::numeric_limits<std::size_t>::max();
    const CompactReport report = compact(heap, options);
    BOOST_TEST(report.moved_bytes > 10 * page);
    BOOST_TEST(report.pages_after + 10 < report.pages_before);
}

BOOST_AUTO_TEST_CASE(a_budget_of_nothing_is_a_page_of_blocks_a_step) {
    ArchiveHeap heap(create_only, path, small_heap());
    fill_with_holes(heap, random, 500);
    heap.construct<taiyen::vector<std::uint64_t>>("large", 2000U);
    std::uint64_t steps = 0;
    CompactReport report;
    while (!(report = compact(heap, declaring<Numbers, taiyen::vector<std::uint64_t>>(0))).done()) {
        BOOST_TEST(report.moved_blocks != 0U);
        BOOST_TEST(report.moved_bytes <= page);
        BOOST_TEST_REQUIRE(++steps < 1000U);
    }
    BOOST_TEST(steps > 3U);
    expect_verified(heap);
}

BOOST_AUTO_TEST_CASE(the_pages_in_use_behind_a_step_are_those_before_the_next) {
    for (int round = 0; round < 6; ++round) {
        std::filesystem::remove(path);
        ArchiveHeap heap(create_only, path, small_heap());
        using Blobs = taiyen::map<int, taiyen::vector<unsigned char>>;
        auto& blobs = heap.construct<Blobs>("blobs");
        for (int i = 0; i < 400; ++i) {
            const auto kind = random() % 4;
            blobs[i].assign(kind == 0 ? random() % 200 : kind == 1 ? 4096 + 16 * (random() % 200) : random() % 20'000, static_cast<unsigned char>(i));
        }
        for (int i = 0; i < 400; ++i)
            if (random() % 3 != 0) blobs.erase(i);
        std::optional<CompactReport> before;
        for (int steps = 0; steps < 200; ++steps) {
            const CompactReport report = compact(heap, declaring<Blobs>(random() % 60'000));
            if (before) {
                BOOST_TEST(report.pages_before == before->pages_after);
                BOOST_TEST(report.segments_before == before->segments_after);
            }
            before = report;
            for (const auto& [number, blob] : *heap.find<Blobs>("blobs"))
                BOOST_TEST_REQUIRE(std::count(blob.begin(), blob.end(), static_cast<unsigned char>(number)) ==
                                   static_cast<std::ptrdiff_t>(blob.size()));
            if (report.moved_blocks == 0) break;
        }
        expect_verified(heap);
    }
}

/// Where each text lies.
std::map<int, const void*> places_of(const ArchiveHeap& heap) {
    std::map<int, const void*> places;
    for (const auto& [number, text] : *heap.find<Numbers>("numbers")) places[number] = &text;
    return places;
}

/// `step` once more for each allocation that it makes, which fails, alone or with all behind it.
template <class Step>
void lack_memory(ArchiveHeap& heap, std::mt19937_64& random, Step&& step) {
    for (const bool sticky : {false, true}) {
        fill_with_holes(heap, random, 120);
        for (std::int64_t k = 0;; ++k) {
            BOOST_TEST_REQUIRE(k < 20'000);
            const auto before = places_of(heap);
            const auto live = heap.stats().live_blocks;
            CompactReport report;
            bool is_thrown = false;
            scarce_memory = {k, true, sticky, 0};
            try {
                report = step();
            } catch (const std::bad_alloc&) {
                is_thrown = true;
            }
            scarce_memory.armed = false;
            BOOST_TEST_CONTEXT("allocation " << k << (sticky ? " and all behind it" : "")) {
                const auto now = places_of(heap);
                BOOST_TEST(heap.stats().live_blocks == live);
                BOOST_TEST_REQUIRE(now.size() == before.size());
                for (const auto& [number, place] : before) BOOST_TEST_REQUIRE(now.at(number) == (is_thrown ? place : report.relocation(place)));
                if (k % 16 == 0 || !is_thrown) expect_verified(heap);
            }
            if (!is_thrown) {
                if (scarce_memory.failed == 0) {
                    BOOST_TEST(report.moved_blocks != 0U);
                    break;
                }
                fill_with_holes(heap, random, 120);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(without_memory_nothing_moves_or_the_program_is_told_where_everything_went) {
    {
        ArchiveHeap heap(create_only, path, small_heap());
        lack_memory(heap, random, [&] { return compact(heap, declaring<Numbers>()); });
    }
    std::filesystem::remove(path);
    SnapshotHeap heap(create_only, path, small_heap());
    heap.attach_undo();
    lack_memory(heap, random, [&] { return compact(heap, declaring<Numbers>()); });
}

BOOST_AUTO_TEST_CASE(without_memory_the_transaction_that_a_step_is_a_part_of_goes_on) {
    TransactionalHeap heap(create_only, path, small_heap());
    {
        Transaction transaction(heap);
        fill_with_holes(heap, random, 120);
        transaction.commit();
    }
    for (std::int64_t k = 0;; ++k) {
        BOOST_TEST_REQUIRE(k < 20'000);
        Transaction transaction(heap);
        const auto before = places_of(heap);
        const std::uint64_t live = heap.stats().live_blocks;
        heap.find_or_construct<std::int64_t>("attempts") = k;
        CompactReport report;
        bool is_thrown = false;
        scarce_memory = {k, true, k % 2 == 0, 0};
        try {
            report = compact(heap, declaring<Numbers>());
        } catch (const std::bad_alloc&) {
            is_thrown = true;
        }
        scarce_memory.armed = false;
        const auto now = places_of(heap);
        for (const auto& [number, place] : before) BOOST_TEST_REQUIRE(now.at(number) == (is_thrown ? place : report.relocation(place)));
        BOOST_TEST(heap.stats().live_blocks <= live + 1);
        BOOST_TEST_CONTEXT("allocation " << k) { BOOST_CHECK_NO_THROW(transaction.commit()); }
        BOOST_TEST_REQUIRE(heap.find<std::int64_t>("attempts") != nullptr);
        BOOST_TEST(*heap.find<std::int64_t>("attempts") == k);
        if (!is_thrown) break;
    }
    expect_verified(heap);
}

BOOST_AUTO_TEST_CASE(each_byte_of_a_step_is_captured_where_only_declared_bytes_are) {
    for (const bool has_history : {false, true}) {
        for (const bool is_part : {false, true}) {
            std::filesystem::remove_all(directory.path());
            std::filesystem::create_directories(directory.path());
            {
                TransactionalHeap heap(create_only, path, small_heap());
                Transaction transaction(heap);
                fill_with_holes(heap, random, 2000);
                transaction.commit();
            }
            std::map<int, std::string> model;
            PersistentOptions files = small_heap();
            files.capture = Capture::declared;
            files.audit = Audit::scope;
            {
                TransactionalHeap heap(open_only, path, files);
                if (has_history) heap.attach_undo();
                for (const auto& [number, text] : *heap.find<Numbers>("numbers")) model[number] = text.c_str();
                for (int steps = 0; steps < 3; ++steps) {
                    std::optional<Transaction> transaction;
                    if (is_part) transaction.emplace(heap);
                    BOOST_TEST(compact(heap, declaring<Numbers>(20'000)).moved_blocks != 0U);
                    if (is_part) transaction->commit();
                }
                if (has_history) {
                    BOOST_TEST(heap.undo());
                    BOOST_TEST(heap.undo());
                    BOOST_TEST(heap.redo());
                }
            }
            TransactionalHeap heap(open_only, path, small_heap());
            std::map<int, std::string> found;
            for (const auto& [number, text] : *heap.find<Numbers>("numbers")) found[number] = text.c_str();
            BOOST_TEST((found == model));
            expect_verified(heap);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_history_can_be_gone_through_across_steps_and_reopening) {
    PersistentOptions files = small_heap();
    files.audit = Audit::scope;
    std::vector<std::vector<std::byte>> states;
    {
        SnapshotHeap heap(create_only, path, files);
        heap.attach_undo();
        for (int round = 0; round < 6; ++round) {
            {
                const UndoScope scope(heap, "fill");
                fill_with_holes(heap, random, 200);
            }
            states.push_back(span_of(heap, path));
            const UndoScope outer(heap, "outer");
            {
                UndoScope inner(heap, "inner");
                compact(heap, declaring<Numbers>());
                if (round % 2 == 0) inner.cancel();
            }
            compact(heap, declaring<Numbers>(20'000));
        }
        heap.snapshot();
        while (heap.undo()) {}
        while (heap.redo()) {}
        heap.snapshot();
        heap.close();
    }
    SnapshotHeap heap(open_only, path, files);
    heap.attach_undo();
    const auto last = span_of(heap, path);
    for (std::size_t i = states.size(); i-- > 0;) {
        BOOST_TEST(heap.undo());
        auto now = span_of(heap, path);
        now.resize(states[i].size());
        BOOST_TEST((now == states[i]), "behind step " << i << " it was otherwise");
        expect_verified(heap);
        BOOST_TEST(heap.undo());
        expect_verified(heap);
    }
    while (heap.redo()) {}
    BOOST_TEST((span_of(heap, path) == last));
    BOOST_TEST(compact(heap, declaring<Numbers>()).live_blocks != 0U);
    expect_verified(heap);
}

/// Of 120 turns 6 are crashes, as a rule.
template <class Moves>
void run_until_crashed(Moves& moves) {
    for (int turns = 0; turns < 5 && moves.crashes() == 0; ++turns) moves.run(120);
    BOOST_TEST(moves.crashes() != 0);
}

BOOST_AUTO_TEST_CASE(steps_are_undone_done_again_and_recovered_after_crashes_with_the_models_content) {
    PersistentOptions files = small_heap();
    files.audit = Audit::scope;
    {
        RandomMoves<SnapshotHeap> moves(directory / "snapshots", files, random());
        run_until_crashed(moves);
        BOOST_TEST(moves.moved() != 0U);
    }
    RandomMoves<TransactionalHeap> moves(directory / "transactions", files, random());
    run_until_crashed(moves);
    BOOST_TEST(moves.moved() != 0U);
}

BOOST_AUTO_TEST_CASE(a_step_that_moves_nothing_leaves_what_can_be_redone) {
    SnapshotHeap heap(create_only, path, small_heap());
    heap.attach_undo();
    {
        const UndoScope scope(heap, "number");
        heap.construct<std::int64_t>("number", 1);
    }
    BOOST_TEST(heap.undo());
    for (int steps = 0; steps < 3; ++steps) BOOST_TEST(compact(heap, declaring<std::int64_t>()).done());
    BOOST_TEST(heap.redo());
    BOOST_TEST(*heap.find<std::int64_t>("number") == 1);
}

BOOST_AUTO_TEST_CASE(a_step_on_a_full_disk_is_in_the_log_and_the_close_that_has_no_room_for_it_loses_nothing) {
    using Blobs = taiyen::vector<taiyen::vector<std::uint64_t>>;
    constexpr std::size_t words = 20 * page / sizeof(std::uint64_t);
    const std::filesystem::path file_path = "/disk/heap.tyn";
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    const auto open = [&](store::OpenMode mode, HeapKind kind) {
        auto file = store::HeapFile::open(disk, file_path, mode, kind, small_heap());
        if (kind == HeapKind::transactional) txn::TransactionService::join(*file, small_heap());
        return file;
    };
    {
        const auto file = open(store::OpenMode::create_only, HeapKind::archive);
        auto heap = HeapAccess::make<ArchiveHeap>(file);
        heap.construct<std::uint64_t>("done", 1U);
        void* const hole = heap.allocate(2 * sizeof(std::uint64_t) * words);
        heap.construct<Blobs>("blobs", 1U)[0].assign(words, 17);
        heap.deallocate(hole);
        while (compact(heap, declaring<Blobs, std::uint64_t>(4 * page)).moved_blocks != 0) {}  // all but the blob are where they belong
        file->give_back().take_all();
        heap.snapshot();
        heap.close();
    }
    open(store::OpenMode::open_only, HeapKind::transactional)->close();  // it has its log now
    const auto compacted = [&](std::uint64_t now, bool has_room) {
        auto heap = HeapAccess::make<TransactionalHeap>(open(store::OpenMode::open_only, HeapKind::transactional));
        CompactReport report;
        {
            Transaction transaction(heap);
            *heap.find<std::uint64_t>("done") = now;
            report = compact(heap, declaring<Blobs, std::uint64_t>());
            transaction.commit();
        }
        BOOST_TEST(*heap.find<std::uint64_t>("done") == now);
        const auto& blob = heap.find<Blobs>("blobs")->front();
        BOOST_TEST((blob.size() == words && std::count(blob.begin(), blob.end(), 17U) == static_cast<std::ptrdiff_t>(words)));
        BOOST_TEST(heap.stats().live_blocks == report.live_blocks);
        expect_verified(heap);
        if (has_room)
            heap.close();
        else
            BOOST_CHECK_EXCEPTION(heap.close(), Error, [](const Error& error) { return error.code() == errc::no_space; });
        return report;
    };
    disk.set_space(disk.used_bytes() + 10 * page);  // not for the blob
    BOOST_TEST(compacted(2, false).moved_blocks != 0U);
    disk.set_space(~ByteCount{0});
    const CompactReport again = compacted(3, true);
    BOOST_TEST(again.moved_blocks == 0U);
    BOOST_TEST(again.left_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_heap_without_a_free_page_is_done_and_one_with_a_few_holes_too) {
    PersistentOptions files = small_heap();
    files.capacity = std::size_t{1} << 20U;
    ArchiveHeap heap(create_only, path, files);
    auto& lists = heap.construct<taiyen::forward_list<taiyen::vector<std::uint64_t>>>("lists");
    std::uint64_t count = 0;
    try {
        for (;;) lists.emplace_front(1 + random() % 400, ++count);
    } catch (const HeapFull&) {}
    for (int round = 0; round < 20; ++round) {
        using Lists = taiyen::forward_list<taiyen::vector<std::uint64_t>>;
        int steps = 0;
        while (!compact(heap, declaring<Lists>(random() % 30'000)).done()) BOOST_TEST_REQUIRE(++steps < 2000);
        auto& now = *heap.find<Lists>("lists");
        for (const auto& numbers : now)
            BOOST_TEST_REQUIRE(std::count(numbers.begin(), numbers.end(), numbers.front()) == static_cast<std::ptrdiff_t>(numbers.size()));
        std::size_t seen = 0;
        now.remove_if([&](const auto&) { return ++seen % 7 == 0; });
        try {
            for (int i = 0; i < 30; ++i) now.emplace_front(1 + random() % 400, ++count);
        } catch (const HeapFull&) {}
        expect_verified(heap);
    }
}

BOOST_AUTO_TEST_CASE(other_threads_see_what_they_should_before_and_behind_each_step, *boost::unit_test::label("threads")) {
    TransactionalHeap heap(create_only, path, small_heap());
    {
        Transaction transaction(heap);
        auto& numbers = heap.construct<Numbers>("numbers");
        for (int i = 0; i < 2000; ++i) numbers[i] = std::to_string(i) + " and more than fits into a small buffer";
        transaction.commit();
    }
    std::atomic<bool> ends{false};
    taiyen::test::at_once(4, [&](unsigned number) {
        std::mt19937 own(number);
        if (number == 0) {
            std::uint64_t moved = 0;
            for (int steps = 0; steps < 60; ++steps) moved += compact(heap, declaring<Numbers>(own() % 40'000)).moved_blocks;
            ends = true;
            taiyen::test::require(moved != 0, "nothing has moved");
        } else if (number == 1) {
            while (!ends) {
                const Transaction transaction(heap);  // is rolled back
                heap.find<Numbers>("numbers")->clear();
            }
        } else if (number == 2) {
            while (!ends) {
                Transaction transaction(heap);
                auto& numbers = *heap.find<Numbers>("numbers");
                for (int i = 0; i < 20; ++i) {
                    const int key = static_cast<int>(own() % 2000);
                    if (own() % 2 == 0)
                        numbers.erase(key);
                    else
                        numbers[key] = std::to_string(key) + " and more than fits into a small buffer";
                }
                transaction.commit();
            }
        } else {
            while (!ends) {
                const ReadLock lock(heap);
                for (const auto& [key, text] : *std::as_const(heap).find<Numbers>("numbers"))
                    taiyen::test::require(std::string_view(text).starts_with(std::to_string(key) + " and"), "a text is another one's");
            }
        }
    });
    expect_verified(heap);
}

template <class Heap>
void live_in_a_web(HardFixture& test, int rounds) {
    auto heap = std::make_unique<Heap>(create_only, test.path, small_heap());
    constexpr bool is_transactional = std::is_same_v<Heap, TransactionalHeap>;
    Web web(test.random);
    std::uint64_t moved = 0;
    for (int round = 0; round < rounds; ++round) {
        if constexpr (is_transactional) {
            if (round != 0 && test.random() % 3 == 0) {
                Transaction gone(*heap);
                compact(*heap, declaring<Web::Index>());
                web.expect(*heap);
                gone.rollback();
                web.expect(*heap);
            }
            Transaction transaction(*heap);
            web.change(*heap, 40);
            if (test.random() % 2 == 0) compact(*heap, declaring<Web::Index>(test.random() % 50'000));
            transaction.commit();
        } else {
            web.change(*heap, 40);
        }
        web.expect(*heap);
        CompactReport report;
        int steps = 0;
        do {
            report = compact(*heap, declaring<Web::Index>(test.random() % 100'000));
            moved += report.moved_blocks;
            BOOST_TEST(report.undeclared_blocks == web.spare());
            web.expect(*heap);
            BOOST_TEST_REQUIRE(++steps < 500);
        } while (!report.done() && test.random() % 8 != 0);
        expect_verified(*heap);
        if (test.random() % 5 == 0) {
            if constexpr (!is_transactional) heap->snapshot();
            heap.reset();
            heap = std::make_unique<Heap>(open_only, test.path, small_heap());
            web.expect(*heap);
        }
    }
    BOOST_TEST(moved > 100U);
}

BOOST_AUTO_TEST_CASE(a_web_of_all_kinds_of_pointers_holds) {
    live_in_a_web<ArchiveHeap>(*this, 30);
    std::filesystem::remove(path);
    live_in_a_web<TransactionalHeap>(*this, 20);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test
