// Faults with an outcome of their own, by name; what any call that fails leads to is swept in fault_sweep.cpp.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>
#include <taiyen/taiyen.hpp>

#include "base/planted.hpp"
#include "crash/heap_scenarios.hpp"
#include "crash/txn_life.hpp"
#include "io/disks/faulty_storage.hpp"
#include "scratch_directory.hpp"

namespace taiyen::crash {
namespace {

namespace fs = std::filesystem;

struct Disk {
    Disk() { disk.add_directory("/disk"); }
    io::SimulatedStorage disk{{.power_cuts = true}};
    io::FaultyStorage faulty{disk};
};

bool is_poisoned(const Error& error) { return error.code() == errc::poisoned; }

constexpr io::Fault count_syncs{.at = 1'000'000, .calls = io::Call::sync | io::Call::sync_directory};

/// A sync fails with that error; then the disk is whole again.
void fail_a_sync(HeapKind kind, int error) {
    const SilentReports silent;
    Disk world;
    const HeapSetup setup{.kind = kind};
    HeapLife life(world.faulty, nullptr, setup);
    life.create();
    life.put("a", 3000, 1);
    life.save();
    const std::uint64_t acknowledged = life.acknowledged();
    world.faulty.arm({.at = 1, .error = error, .calls = io::Call::sync});
    BOOST_CHECK_THROW(life.checkpoint(), Error);
    world.faulty.arm(count_syncs);
    life.put("a", 3000, 2);
    BOOST_CHECK_EXCEPTION(life.save(), Error, is_poisoned);
    BOOST_CHECK_EXCEPTION(life.checkpoint(), Error, is_poisoned);
    BOOST_TEST(world.faulty.calls() == 0U);  // it is not tried again
    BOOST_TEST(life.acknowledged() == acknowledged);
    world.disk.power_cut();
    life.abandon();
    world.faulty.disarm();
    HeapLife after(world.disk, nullptr, setup, life.history());
    after.open();
    BOOST_TEST(after.compare() == acknowledged);
    after.prove();
    world.disk.disconnect();
    after.abandon();
}

void fail_a_snapshot(int error, bool with_data) {
    const SilentReports silent;
    Disk world;
    const TxnSetup setup{.data_file = with_data};
    TxnLife life(world.faulty, nullptr, setup);
    life.create();
    for (std::uint64_t seed = 0; seed < 4; ++seed) life.transact(seed * 8);
    const std::uint64_t told = life.acknowledged();
    world.faulty.arm({.at = 1, .error = error, .calls = io::Call::sync});
    BOOST_CHECK_THROW(life.snapshot(), Error);
    BOOST_TEST(world.faulty.fired() == 1U);
    world.disk.power_cut();
    life.abandon();
    world.faulty.disarm();
    TxnLife after(world.disk, nullptr, setup, life.history());
    after.open();
    BOOST_TEST(after.compare() == told);
    BOOST_TEST(after.file().files().restoration().transactions_replayed >= told - 1);
    after.prove();
    world.disk.disconnect();
    after.abandon();
}

constexpr std::size_t many = 300'000;

/// Opens the heap, cuts its file under the open heap, and reads on. Ends as the system decides.
[[noreturn]] void read_on_in_a_cut_file(const fs::path& path) {
    try {
        PersistentOptions options;
        options.capacity = 8_MiB;
        ArchiveHeap heap(open_only, path, options);
        fs::resize_file(path, 64 * 1024);
        std::size_t sum = 0;
        for (const int number : *heap.find<taiyen::vector<int>>("numbers")) sum += static_cast<std::size_t>(number);
        ::_exit(sum == many ? 7 : 8);  // 8: a wrong answer without a word
    } catch (const Error&) {
        ::_exit(9);
    }
}

BOOST_AUTO_TEST_SUITE(misfortunes)

BOOST_AUTO_TEST_CASE(a_failed_sync_poisons_the_heap_for_good_and_is_not_tried_again_although_the_disk_heals) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot})
        for (const int error : {EIO, ENOSPC, EDQUOT}) fail_a_sync(kind, error);
}

BOOST_AUTO_TEST_CASE(a_sync_that_fails_within_a_snapshot_publishes_nothing_and_the_log_has_all) {
    for (const bool with_data : {false, true})
        for (const int error : {EIO, ENOSPC}) fail_a_snapshot(error, with_data);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_cut_under_an_open_heap_stops_the_program_before_it_reads_wrong_and_is_refused_afterwards) {
    const ScratchDirectory folder;
    const fs::path path = folder / "x.tyn";
    PersistentOptions options;
    options.capacity = 8_MiB;
    {
        ArchiveHeap heap(create_only, path, options);
        heap.construct<taiyen::vector<int>>("numbers").assign(many, 1);
        heap.snapshot();
        heap.close();
    }
    fs::copy_file(path, folder / "copy");
    const ::pid_t child = ::fork();
    if (child == 0) {
        for (const int signal : {SIGBUS, SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);
        read_on_in_a_cut_file(path);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST((WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS));
    BOOST_CHECK_EXCEPTION(ArchiveHeap(open_only, path, options), Error, [](const Error& error) { return error.code() == errc::truncated; });
    fs::copy_file(folder / "copy", path, fs::copy_options::overwrite_existing);
    ArchiveHeap heap(open_only, path, options);
    BOOST_TEST(std::ranges::count(*heap.find<taiyen::vector<int>>("numbers"), 1) == static_cast<std::ptrdiff_t>(many));
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
