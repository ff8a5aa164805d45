// Safeguards that no crash alone needs: each holds, and the same piece of life without it ends wrong, so that the test is one that can see.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/change/procedure.hpp>
#include <taiyen/taiyen.hpp>

#include "base/planted.hpp"
#include "heap/geometry.hpp"
#include "io/disks/simulated_storage.hpp"
#include "scratch_directory.hpp"
#include "store/geometry.hpp"
#include "store/heap_access.hpp"

namespace taiyen::crash {
namespace {

namespace fs = std::filesystem;

/// Taken away while it lives.
class Without {
public:
    explicit Without(Bug bug) { planted_bug = bug; }
    Without(const Without&) = delete;
    Without& operator=(const Without&) = delete;
    ~Without() { planted_bug = Bug::none; }
};

PersistentOptions small_options() {
    PersistentOptions options;
    options.verify = Verify::changes;  // what rots is met as late as it can be
    options.capacity = 8_MiB;
    options.log_capacity = 64_KiB;
    return options;
}

// ---- rot

using Numbers = std::array<int, 100'000>;

void flip_a_bit(const fs::path& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
}

/// A page rots in the file; the program changes another number on it and saves. Returns what the rotten number is then, in a heap that verifies.
int number_after_rot(const ScratchDirectory& folder, const char* name, bool* refused = nullptr) {
    const fs::path path = folder / name;
    std::uint64_t place = 0;
    {
        SnapshotHeap heap(create_only, path, small_options());
        Numbers& numbers = heap.construct<Numbers>("numbers");
        numbers.fill(2);
        place = reinterpret_cast<std::uintptr_t>(&numbers[50'000]) - read_parameters(path).address;
        heap.snapshot();
        heap.close();
    }
    flip_a_bit(path, store::FileLayout().file_offset({place}));
    {
        SnapshotHeap heap(open_only, path, small_options());
        const std::size_t other = place % page_bytes == page_bytes - sizeof(int) ? 49'999 : 50'001;
        (*heap.find<Numbers>("numbers"))[other] = 7;
        try {
            heap.snapshot();
        } catch (const Error& error) {
            BOOST_TEST_REQUIRE(refused != nullptr);
            *refused = error.code() == errc::corrupt;
        }
        heap.close();
    }
    SnapshotHeap heap(open_only, path, small_options());
    BOOST_TEST(heap.verify().ok());
    return (*heap.find<Numbers>("numbers"))[50'000];
}

/// A page rots in the file; the block that it is a part of goes down into free pages. Returns what the rotten number is then, in a heap that verifies.
int number_after_move(const ScratchDirectory& folder, const char* name, bool* refused = nullptr) {
    const fs::path path = folder / name;
    std::uint64_t place = 0;
    {
        SnapshotHeap heap(create_only, path, small_options());
        void* const below = heap.allocate(sizeof(Numbers) + page_bytes);
        Numbers& numbers = heap.construct<Numbers>("numbers");
        numbers.fill(2);
        place = reinterpret_cast<std::uintptr_t>(&numbers[50'000]) - read_parameters(path).address;
        heap.deallocate(below);
        heap.snapshot();
        heap.close();
    }
    flip_a_bit(path, store::FileLayout().file_offset({place}));
    {
        SnapshotHeap heap(open_only, path, small_options());
        CompactOptions options;
        options.types.add<Numbers>();
        try {
            compact(heap, options);
        } catch (const Error& error) {
            if (refused != nullptr) *refused = error.code() == errc::corrupt;
            BOOST_TEST(heap.heal() == 1U);
            compact(heap, options);
        }
        heap.snapshot();
        heap.close();
    }
    SnapshotHeap heap(open_only, path, small_options());
    BOOST_TEST(heap.verify().ok());
    const Numbers& numbers = *heap.find<Numbers>("numbers");
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(&numbers[50'000]) - read_parameters(path).address < place);
    return numbers[50'000];
}

// ---- rot below transactions

constexpr int middle = 50'000;

void lose_sector(const fs::path& path, std::uint64_t place) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(round_down(store::FileLayout().file_offset({place}), 512)));
    const std::array<char, 512> zeros{};
    file.write(zeros.data(), zeros.size());
}

PersistentOptions two_copies(const fs::path& path) {
    PersistentOptions options = small_options();
    options.data_file = path.string() + ".data";
    return options;
}

/// A sector of a heap with two copies is lost; a transaction stores zero there, where a two was. Returns the number as the next process finds it.
int number_after_commit(const ScratchDirectory& folder, const char* name) {
    const fs::path path = folder / name;
    std::uint64_t place = 0;
    {
        TransactionalHeap heap(create_only, path, two_copies(path));
        transact(heap, [&] { heap.construct<Numbers>("numbers").fill(2); });
        place = reinterpret_cast<std::uintptr_t>(&(*heap.find<Numbers>("numbers"))[middle]) - read_parameters(path).address;
        heap.close();
    }
    lose_sector(path, place);
    {
        TransactionalHeap heap(open_only, path, two_copies(path));
        transact(heap, [&] {
            (*heap.find<Numbers>("numbers"))[middle] = 0;
            (*heap.find<Numbers>("numbers"))[middle + 1] = 7;
        });
        heap.close();
    }
    const ArchiveHeap heap(open_read_only, path, two_copies(path));
    BOOST_TEST(heap.verify().ok());
    return (*heap.find<Numbers>("numbers"))[middle];
}

/// The same when the sector is lost after a crash. Nothing: the heap can't be opened.
std::optional<int> number_after_recovery(const ScratchDirectory& folder, const char* name) {
    const fs::path path = folder / name;
    const fs::path left = folder / (std::string("left-") + name);
    std::uint64_t place = 0;
    {
        TransactionalHeap heap(create_only, path, two_copies(path));
        transact(heap, [&] { heap.construct<Numbers>("numbers").fill(2); });
        heap.snapshot();
        place = reinterpret_cast<std::uintptr_t>(&(*heap.find<Numbers>("numbers"))[middle]) - read_parameters(path).address;
        transact(heap, [&] {
            (*heap.find<Numbers>("numbers"))[middle] = 0;
            (*heap.find<Numbers>("numbers"))[middle + 1] = 7;
        });
        for (const char* suffix : {"", ".data", ".log"}) fs::copy_file(path.string() + suffix, left.string() + suffix);
    }
    lose_sector(left, place);
    try {
        const TransactionalHeap heap(open_only, left, two_copies(left));
        BOOST_TEST(heap.verify().ok());
        return (*heap.find<Numbers>("numbers"))[middle];
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        return std::nullopt;
    }
}

/// A line of the engine's metadata says that a live block is free. Returns whether the heap goes on, with that block untouched.
bool goes_on_over_a_stale_line(const ScratchDirectory& folder, const char* name) {
    const fs::path path = folder / name;
    std::uint64_t line = 0;
    {
        SnapshotHeap heap(create_only, path, small_options());
        heap.construct<taiyen::string>("text", std::size_t{40}, 't');
        heap.snapshot();
        heap.close();
        line = heap::Geometry(small_options().capacity).region(0).lines;
    }
    {
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(store::FileLayout().file_offset({line})));
        const std::array<char, 1024> zeros{};
        file.write(zeros.data(), zeros.size());
    }
    SnapshotHeap heap(open_only, path, small_options());
    try {
        for (int i = 0; i < 100; ++i) std::memset(heap.allocate(48), 'x', 48);
        heap.snapshot();
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        return false;
    }
    BOOST_TEST(std::string_view(*heap.find<taiyen::string>("text")) == std::string(40, 't'));
    BOOST_TEST(heap.restoration().pages_healed == 1U);
    heap.heal();
    BOOST_TEST(heap.verify().ok());
    return true;
}

/// A page rots, the program stores beside the rot, a scrub looks over the files, and the program saves. Returns what the rotten number is then; nothing: the save is refused.
std::optional<int> number_after_scrub(const ScratchDirectory& folder, const char* name) {
    const fs::path path = folder / name;
    {
        SnapshotHeap heap(create_only, path, small_options());
        heap.construct<Numbers>("numbers").fill(2);
        heap.snapshot();
        heap.close();
    }
    SnapshotHeap heap(open_only, path, small_options());
    Numbers& numbers = *heap.find<Numbers>("numbers");
    store::HeapFile& file = HeapAccess::file(heap);
    // The first number of a page.
    const std::uint64_t place = round_up(reinterpret_cast<std::uintptr_t>(&numbers[middle]) - read_parameters(path).address, page_bytes);
    int* const rotten =
        &numbers[middle] + (place - (reinterpret_cast<std::uintptr_t>(&numbers[middle]) - read_parameters(path).address)) / sizeof(int);
    flip_a_bit(path, store::FileLayout().file_offset({place}));
    rotten[100] = 5;
    std::vector<store::DamagedPage> damaged;
    PageNumber next{0};
    do file.healing().look_over(next, page_bytes, damaged);
    while (next.value != 0);
    BOOST_TEST(damaged.size() == 1U);
    for (const store::DamagedPage& page : damaged) file.healing().heal_one(page);
    try {
        heap.snapshot();
    } catch (const Error&) {
        return std::nullopt;
    }
    BOOST_TEST(heap.verify().ok());
    return *rotten;
}

// ---- calls

unsigned drift = 0;

void count_up(ProcedureHeap&, unsigned char* bytes, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(bytes[i] + 1 + drift);
}

using Bytes = std::array<unsigned char, 3000>;

/// What a crash leaves of a heap whose log calls the procedure.
fs::path left_with_a_call(const ScratchDirectory& folder) {
    const fs::path path = folder / "called.tyn";
    const fs::path left = folder / "left.tyn";
    TransactionalHeap heap(create_only, path, small_options());
    transact(heap, [&] { heap.construct<Bytes>("bytes").fill(1); });
    Transaction transaction(heap);
    transaction.call("safeguards: count up", heap.find<Bytes>("bytes")->data(), std::uint64_t{3000});
    transaction.commit();
    fs::copy_file(path, left);
    fs::copy_file(path.string() + ".log", left.string() + ".log");
    return left;
}

// ---- a full disk

/// A save for which the disk has no room. Returns whether the heap goes on, and saves when there is room.
bool goes_on_after_a_full_disk(HeapKind kind) {
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    auto heap = HeapAccess::make<ArchiveHeap>(store::HeapFile::open(disk, "/disk/a.tyn", store::OpenMode::create_only, kind, small_options()));
    auto* const block = static_cast<char*>(heap.allocate(300'000));
    for (int at = 0; at < 300'000; at += 1000) block[at] = 'x';
    disk.set_space(disk.used_bytes());
    try {
        heap.snapshot();
        HeapAccess::file(heap).saves().checkpoint();
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): now or later
    }
    disk.set_space(~ByteCount{0});
    if (HeapAccess::file(heap).condition().is_poisoned()) return false;
    heap.snapshot();
    return heap.heal() == 0;
}

BOOST_AUTO_TEST_SUITE(safeguards)

BOOST_AUTO_TEST_CASE(rot_under_a_changed_page_refuses_the_save_and_one_that_did_not_look_would_launder_it) {
    const ScratchDirectory folder;
    bool refused = false;
    BOOST_TEST(number_after_rot(folder, "looks.tyn", &refused) == 2);
    BOOST_TEST(refused);
    const Without check(Bug::rot_laundered);
    BOOST_TEST(number_after_rot(folder, "trusts.tyn") == 3);
}

BOOST_AUTO_TEST_CASE(zeros_committed_over_a_lost_sector_are_kept_and_capture_that_did_not_look_would_lose_them) {
    const ScratchDirectory folder;
    BOOST_TEST(number_after_commit(folder, "looks.tyn") == 0);
    const Without check(Bug::change_unproven);
    BOOST_TEST(number_after_commit(folder, "trusts.tyn") == 2);
}

BOOST_AUTO_TEST_CASE(zeros_in_the_log_over_a_lost_sector_are_kept_and_recovery_that_did_not_look_could_not_tell) {
    const ScratchDirectory folder;
    BOOST_TEST((number_after_recovery(folder, "looks.tyn") == 0));
    const Without check(Bug::replay_unproven);
    BOOST_TEST(!number_after_recovery(folder, "trusts.tyn").has_value());
}

BOOST_AUTO_TEST_CASE(blocks_are_given_by_metadata_that_are_healed_first_and_an_engine_that_did_not_look_would_lose_the_save) {
    const ScratchDirectory folder;
    BOOST_TEST(goes_on_over_a_stale_line(folder, "looks.tyn"));
    const Without check(Bug::metadata_unproven);
    BOOST_TEST(!goes_on_over_a_stale_line(folder, "trusts.tyn"));
}

BOOST_AUTO_TEST_CASE(rot_in_a_block_that_is_to_move_keeps_it_where_it_is_and_a_step_that_did_not_look_would_launder_it) {
    const ScratchDirectory folder;
    bool refused = false;
    BOOST_TEST(number_after_move(folder, "looks.tyn", &refused) == 2);
    BOOST_TEST(refused);
    const Without check(Bug::rot_laundered);
    BOOST_TEST(number_after_move(folder, "trusts.tyn") == 3);
}

BOOST_AUTO_TEST_CASE(a_scrub_leaves_a_page_that_the_program_may_store_into_to_the_next_save_and_one_that_did_not_would_launder_rot) {
    const ScratchDirectory folder;
    BOOST_TEST(!number_after_scrub(folder, "waits.tyn").has_value());
    const Without check(Bug::scrub_below_stores);
    BOOST_TEST((number_after_scrub(folder, "heals.tyn") == 3));
}

BOOST_AUTO_TEST_CASE(a_call_that_gives_other_bytes_stops_recovery_which_would_else_make_up_a_state) {
    const ScratchDirectory folder;
    drift = 0;
    register_procedure("safeguards: count up", &count_up, &count_up);
    const fs::path left = left_with_a_call(folder);
    drift = 1;
    BOOST_CHECK_EXCEPTION(TransactionalHeap(open_only, left, small_options()), Error,
                          [](const Error& error) { return error.code() == errc::mismatch; });
    {
        const Without check(Bug::call_outcome_unchecked);
        TransactionalHeap heap(open_read_only, left, small_options());
        BOOST_TEST(heap.find<Bytes>("bytes")->at(7) == 3);  // never was
    }
    drift = 0;
    TransactionalHeap heap(open_only, left, small_options());
    BOOST_TEST(heap.find<Bytes>("bytes")->at(7) == 2);
}

BOOST_AUTO_TEST_CASE(a_save_takes_its_disk_blocks_first_and_one_that_did_not_would_end_the_heap_on_a_full_disk) {
    const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        BOOST_TEST(goes_on_after_a_full_disk(kind));
        const Without check(Bug::save_without_blocks);
        BOOST_TEST(!goes_on_after_a_full_disk(kind));
    }
    set_report_handler(handler);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
