// Pages that rotted before they were changed: what was acknowledged on top of them is kept, from whichever copy it takes, or refused, but never taken back.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/report.hpp>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <utility>

#include "file_bytes.hpp"
#include "heap/geometry.hpp"
#include "io/storage.hpp"
#include "seed.hpp"
#include "store/geometry.hpp"
#include "txn/txn_fixture.hpp"

namespace taiyen::txn::test {
namespace {

using Table = std::array<int, 100'000>;
constexpr int middle = 50'000;
constexpr ByteCount sector = 512;

PersistentOptions met_late(const std::filesystem::path& path, bool with_data = true, Capture capture = Capture::pages) {
    PersistentOptions options = small_heap(capture);
    options.capacity = 8_MiB;
    options.verify = Verify::changes;
    if (with_data) options.data_file = path.string() + ".data";
    return options;
}

std::uint64_t offset_in(const ArchiveHeap& heap, const void* place) {
    return reinterpret_cast<std::uintptr_t>(place) - HeapAccess::file(heap).ranges().durable;
}

/// The sector of the heap's file that holds the offset becomes zero.
void lose_sector(const std::filesystem::path& path, std::uint64_t offset) {
    const auto file = io::posix_storage().open(path, io::Access::read_write);
    const std::array<std::byte, sector> zeros{};
    file->write(zeros, round_down(store::FileLayout().file_offset({offset}), sector));
    file->sync();
}

/// A heap whose table is full of twos, in its files.
struct RotFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    PersistentOptions options;
    std::uint64_t place = 0;

    void make(const PersistentOptions& with) {
        options = with;
        TransactionalHeap heap(create_only, path, met_late(path, !options.data_file.empty()));
        transact(heap, [&] { heap.construct<Table>("table").fill(2); });
        heap.snapshot();
        place = offset_in(heap, &(*heap.find<Table>("table"))[middle]);
    }
    /// What a process that died now would leave; the heap goes on there.
    void crash() {
        const std::filesystem::path left = directory / "left";
        std::filesystem::create_directory(left);
        for (const char* suffix : {"", ".data", ".log"})
            if (std::filesystem::exists(path.string() + suffix))
                std::filesystem::copy_file(path.string() + suffix, left / ("heap.tyn" + std::string(suffix)));
        path = left / "heap.tyn";
        if (!options.data_file.empty()) options.data_file = path.string() + ".data";
    }
    void expect_sound() const {
        const ArchiveHeap heap(open_read_only, path, options);
        for (const Finding& finding : heap.verify().findings) BOOST_TEST((finding.severity == Severity::healable), finding.what);
    }
};

/// A transaction that stores zeros where twos were, and one beside it a seven.
template <class Heap>
void store_zero(Heap& heap, bool seven_too) {
    Transaction transaction(heap);
    Table& table = *heap.template find<Table>("table");
    transaction.touch(&table[middle], 2 * sizeof(int));
    table[middle] = 0;
    if (seven_too) table[middle + 1] = 7;
    transaction.commit();
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(rot, RotFixture)

BOOST_AUTO_TEST_CASE(zeros_committed_before_their_sector_was_lost_are_there_after_a_recovery) {
    make(met_late(path));
    {
        TransactionalHeap heap(open_only, path, options);
        store_zero(heap, true);
        crash();
    }
    lose_sector(path, place);
    {
        TransactionalHeap heap(open_only, path, options);
        const Table& table = *heap.find<Table>("table");
        BOOST_TEST(table[middle] == 0);
        BOOST_TEST(table[middle + 1] == 7);
        BOOST_TEST(table[middle + 2] == 2);
        BOOST_TEST(heap.restoration().transactions_replayed == 1U);
        BOOST_TEST(heap.restoration().pages_healed == 1U);
        heap.close();
    }
    expect_sound();
}

BOOST_AUTO_TEST_CASE(zeros_stored_over_a_sector_that_was_lost_before_are_kept_by_each_way_of_capture) {
    for (const Capture capture : {Capture::pages, Capture::declared}) {
        for (const bool seven_too : {false, true}) {  // alone they look like no change
            for (const bool crashes : {false, true}) {
                RotFixture test;
                test.make(met_late(test.path, true, capture));
                lose_sector(test.path, test.place);
                {
                    TransactionalHeap heap(open_only, test.path, test.options);
                    store_zero(heap, seven_too);
                    BOOST_TEST((*heap.find<Table>("table"))[middle + 2] == 2);  // restored before the first store
                    if (crashes)
                        test.crash();
                    else
                        heap.close();
                }
                TransactionalHeap heap(open_only, test.path, test.options);
                const Table& table = *heap.find<Table>("table");
                BOOST_TEST(table[middle] == 0);
                BOOST_TEST(table[middle + 1] == (seven_too ? 7 : 2));
                BOOST_TEST(table[middle + 2] == 2);
                heap.close();
                test.expect_sound();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(rolling_back_leaves_the_page_restored) {
    make(met_late(path));
    lose_sector(path, place);
    TransactionalHeap heap(open_only, path, options);
    {
        Transaction transaction(heap);
        (*heap.find<Table>("table"))[middle] = 0;
        transaction.rollback();
    }
    BOOST_TEST((*heap.find<Table>("table"))[middle] == 2);
    BOOST_TEST(heap.restoration().pages_healed == 1U);
    store_zero(heap, false);
    heap.close();
    TransactionalHeap again(open_only, path, options);
    BOOST_TEST((*again.find<Table>("table"))[middle] == 0);
}

BOOST_AUTO_TEST_CASE(without_a_second_copy_nothing_is_acknowledged_on_top_of_it) {
    make(met_late(path, false));
    lose_sector(path, place);
    {
        TransactionalHeap heap(open_only, path, options);
        Transaction transaction(heap);
        (*heap.find<Table>("table"))[middle] = 0;
        BOOST_TEST((throws(errc::poisoned, [&] { transaction.commit(); })));
    }
    TransactionalHeap heap(open_only, path, options);
    BOOST_TEST((*heap.find<Table>("table"))[middle - 1000] == 2);
    transact(heap, [&] { (*heap.find<Table>("table"))[middle - 5000] = 3; });  // elsewhere it goes on
}

BOOST_AUTO_TEST_CASE(zeros_loaded_relaxed_over_a_lost_sector_are_kept) {
    make(met_late(path));
    lose_sector(path, place);
    {
        TransactionalHeap heap(open_only, path, options);
        RelaxedLoading loading(heap, RelaxedRollback::transaction);
        store_zero(heap, true);
        loading.wait_until_strict();
        heap.close();
    }
    TransactionalHeap heap(open_only, path, options);
    BOOST_TEST((*heap.find<Table>("table"))[middle] == 0);
    BOOST_TEST((*heap.find<Table>("table"))[middle + 1] == 7);
    BOOST_TEST((*heap.find<Table>("table"))[middle + 2] == 2);
}

BOOST_AUTO_TEST_CASE(what_capture_keeps_open_across_a_save_stays_proven_and_private) {
    make(met_late(path, false));
    options.log_capacity = 64_KiB;
    const auto add = [&](TransactionalHeap& heap, int& number) { transact(heap, [&] { ++number; }); };
    TransactionalHeap heap(open_only, path, options);
    Table& table = *heap.find<Table>("table");
    int* elsewhere = nullptr;
    transact(heap, [&] { elsewhere = &heap.construct<std::array<int, 5000>>("elsewhere")[2500]; });
    add(heap, table[middle]);
    transact(heap, [&] { table.fill(3); });  // more than the log takes: a save drops the private copies
    add(heap, table[middle]);
    heap.snapshot();

    const auto file = io::posix_storage().open(path, io::Access::read_write);
    const std::uint64_t at = round_down(store::FileLayout().file_offset({place}), sector);
    std::array<std::byte, sector> whole{};
    file->read(whole, at);
    lose_sector(path, place);
    for (int i = 0; i < 100; ++i) add(heap, *elsewhere);  // capture closes the page
    add(heap, table[middle]);
    BOOST_TEST(table[middle] == 5);
    file->write(whole, at);
    heap.close();
    TransactionalHeap again(open_only, path, options);
    BOOST_TEST((*again.find<Table>("table"))[middle] == 5);
    BOOST_TEST((*again.find<Table>("table"))[middle + 1] == 3);
}

BOOST_AUTO_TEST_CASE(a_snapshot_heap_with_a_history_restores_what_its_scopes_change) {
    {
        SnapshotHeap heap(create_only, path, met_late(path));
        heap.construct<Table>("table").fill(2);
        place = offset_in(heap, &(*heap.find<Table>("table"))[middle]);
        heap.snapshot();
    }
    lose_sector(path, place);
    {
        SnapshotHeap heap(open_only, path, met_late(path));
        heap.attach_undo();
        {
            UndoScope scope(heap);
            (*heap.find<Table>("table"))[middle] = 0;
            (*heap.find<Table>("table"))[middle + 1] = 7;
        }
        heap.snapshot();
        heap.undo();
        BOOST_TEST((*heap.find<Table>("table"))[middle] == 2);
        heap.redo();
        heap.snapshot();
    }
    SnapshotHeap heap(open_only, path, met_late(path));
    BOOST_TEST((*heap.find<Table>("table"))[middle] == 0);
    BOOST_TEST((*heap.find<Table>("table"))[middle + 1] == 7);
    BOOST_TEST((*heap.find<Table>("table"))[middle + 2] == 2);
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(opening_restores_a_small_heap_and_each_one_that_is_asked_to) {
    for (const Verify verify : {Verify::automatic, Verify::at_opening}) {
        RotFixture test;
        test.make(met_late(test.path));
        lose_sector(test.path, test.place);
        test.options.verify = verify;
        {
            const ArchiveHeap reader(open_read_only, test.path, test.options);
            BOOST_TEST((*reader.find<Table>("table"))[middle] == (verify == Verify::at_opening ? 2 : 0));
        }
        SnapshotHeap heap(open_only, test.path, test.options);
        BOOST_TEST(heap.restoration().pages_healed == 1U);
        BOOST_TEST((*heap.find<Table>("table"))[middle] == 2);
        BOOST_TEST(heap.verify().ok());
    }
    make(met_late(path, false));
    lose_sector(path, place);
    options.verify = Verify::at_opening;
    BOOST_TEST((throws(errc::corrupt, [&] { ArchiveHeap(open_read_only, path, options); })));
    BOOST_TEST((throws(errc::corrupt, [&] { TransactionalHeap(open_only, path, options); })));
    options.verify = Verify::automatic;
    BOOST_TEST(!ArchiveHeap(open_only, path, options).verify().ok());  // it can be looked into
}

namespace {

using Map = taiyen::map<int, taiyen::string>;

void churn(Map& map, std::map<int, std::size_t>& model, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 400; ++i) {
        const int key = static_cast<int>(random() % 500);
        if (random() % 4 == 0) {
            map.erase(key);
            model.erase(key);
        } else {
            const std::size_t length = 20 + random() % 150;
            map[key].assign(length, static_cast<char>('a' + key % 26));
            model[key] = length;
        }
    }
}

void expect(const ArchiveHeap& heap, const std::map<int, std::size_t>& model) {
    const Map& map = *heap.find<Map>("map");
    BOOST_TEST_REQUIRE(map.size() == model.size());
    for (const auto& [key, text] : map) BOOST_TEST_REQUIRE(std::string_view(text) == std::string(model.at(key), static_cast<char>('a' + key % 26)));
}

template <class Heap, class Action>
void change(Heap& heap, Action&& action) {
    if constexpr (std::is_same_v<Heap, TransactionalHeap>)
        transact(heap, action);
    else
        action();
    heap.snapshot();
}

/// Each page that the last save changed is put back, in the heap's file alone, to what it was before: writes that the device lost. Returns how many.
template <class Heap>
int lose_writes_one_by_one() {
    const ScratchDirectory directory;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    const auto file = [&](const char* folder, const char* suffix = "") { return directory / folder / ("heap.tyn" + std::string(suffix)); };
    const auto options = [&](const char* folder) { return met_late(file(folder), !std::is_same_v<Heap, ArchiveHeap>); };
    std::filesystem::create_directory(directory / "before");
    std::map<int, std::size_t> model;
    {
        Heap heap(create_only, file("before"), options("before"));
        change(heap, [&] { churn(heap.template find_or_construct<Map>("map"), model, seed); });
        heap.close();
    }
    std::filesystem::copy(directory / "before", directory / "now");
    {
        Heap heap(open_only, file("now"), options("now"));
        change(heap, [&] { churn(*heap.template find<Map>("map"), model, seed + 1); });
        heap.close();
    }
    const std::string before = taiyen::test::file_bytes(file("before"));
    const std::string now = taiyen::test::file_bytes(file("now"));
    int pages = 0;
    for (std::uint64_t at = store::FileLayout().file_offset({page_bytes}); at + page_bytes <= std::min(before.size(), now.size()); at += page_bytes) {
        if (std::memcmp(&before[at], &now[at], page_bytes) == 0) continue;
        ++pages;
        std::filesystem::remove_all(directory / "tried");
        std::filesystem::copy(directory / "now", directory / "tried");
        io::posix_storage().open(file("tried"), io::Access::read_write)->write(std::as_bytes(std::span(before).subspan(at, page_bytes)), at);
        BOOST_TEST_CONTEXT("the page at byte " << at) {
            std::map<int, std::size_t> after = model;
            std::optional<Heap> opened(std::in_place, open_only, file("tried"), options("tried"));
            Heap& heap = *opened;
            // Where the map's own nodes are of an older save the program itself may go wrong: that is what Verify::at_opening is for.
            const std::uint64_t page = (at - store::FileLayout().file_offset({0})) / page_bytes;
            const bool is_metadata = HeapAccess::file(heap).engine().is_metadata({page * page_bytes});
            try {
                change(heap, [&] {
                    auto& numbers = heap.template find_or_construct<taiyen::vector<long>>("numbers");
                    for (int i = 0; i < 3000; ++i) numbers.push_back(i);
                    if (is_metadata) churn(*heap.template find<Map>("map"), after, seed + 2);
                });
                heap.heal();
                heap.close();
            } catch (const Error& error) {
                // Nobody saw what a plain snapshot heap's program stored on top of it: the save is refused.
                BOOST_TEST_REQUIRE((error.code() == errc::corrupt && !is_metadata && !std::is_same_v<Heap, TransactionalHeap>), error.what());
                opened.reset();
                Heap(open_only, file("tried"), options("tried")).heal();
            }
            opened.reset();
            const ArchiveHeap again(open_read_only, file("tried"), options("tried"));
            BOOST_TEST(again.verify().ok());
            expect(again, after);
        }
    }
    return pages;
}

}  // namespace

BOOST_AUTO_TEST_CASE(blocks_are_handed_out_and_freed_by_metadata_of_the_newest_save) {
    BOOST_TEST(lose_writes_one_by_one<SnapshotHeap>() > 5);
    BOOST_TEST(lose_writes_one_by_one<TransactionalHeap>() > 5);
}

BOOST_AUTO_TEST_CASE(without_a_second_copy_damaged_metadata_refuse_blocks_and_keep_those_that_are_freed) {
    const Silence silence;
    std::uint64_t lines = 0;
    {
        ArchiveHeap heap(create_only, path, met_late(path, false));
        heap.construct<taiyen::string>("text", "long enough to lie in a block of its own");
        heap.snapshot();
        lines = heap::Geometry(8_MiB).region(0).lines;
    }
    {
        const auto file = io::posix_storage().open(path, io::Access::read_write);
        const std::byte wrong{0x55};
        file->write({&wrong, 1}, store::FileLayout().file_offset({lines + 200}));
    }
    ArchiveHeap heap(open_only, path, met_late(path, false));
    BOOST_TEST((throws(errc::corrupt, [&] { heap.allocate(100); })));
    heap.deallocate(heap.find<taiyen::string>("text")->data());
    BOOST_TEST_REQUIRE(Silence::told.size() == 1U);
    BOOST_TEST((Silence::told.front() == errc::corrupt));
    heap.snapshot();  // nothing was changed
    BOOST_TEST(std::string_view(*heap.find<taiyen::string>("text")) == "long enough to lie in a block of its own");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::txn::test
