// Whatever the bytes of a heap's files are turned into: looking into it never crashes, and verify() finds it, unless everything that was saved is there all the same.
// A run takes a sample; TAIYEN_CORRUPTIONS=100000 asks for so many (`ctest -C campaign -L campaign`).

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/heap_map.hpp>
#include <taiyen/inspect/leaks.hpp>
#include <taiyen/inspect/objects.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/stats.hpp>

#include <cstdlib>
#include <random>

#include "io/disks/simulated_storage.hpp"
#include "seed.hpp"
#include "store/heap_probe.hpp"
#include "undo/bare_history.hpp"
#include "undo/history_memory.hpp"

namespace {
using namespace probe;

constexpr const char* heap_path = "/disk/a.tyn";
constexpr std::uint64_t steps = 5;  ///< of its undo history

std::shared_ptr<store::HeapFile> open(io::Storage& disk, store::OpenMode mode, HeapKind kind) {
    return store::HeapFile::open(disk, heap_path, mode, kind, small_heap(2U << 20U), store::Tuning{32768});
}

void make_heap(io::Storage& disk, HeapKind kind) {
    auto heap = HeapAccess::make<ArchiveHeap>(open(disk, store::OpenMode::create_only, kind));
    for (int i = 0; i < 40; ++i)
        put(heap, "n" + std::to_string(i), std::string(700 + 100 * static_cast<unsigned>(i), static_cast<char>('a' + i % 26)));
    heap.snapshot();
    heap.deallocate(find(heap, "n3"));
    heap::remove_named(*heap.core(), "n3");
    undo::UndoHistory history = undo::UndoHistory::create(undo::annex_history_memory(HeapAccess::file(heap), 64_KiB), 64_KiB, true);
    std::mt19937_64 bytes(1);
    for (std::uint64_t i = 0; i < steps; ++i) undo::test::append(history, undo::test::changes(bytes, 3000), "a step");
    history.step_back(*history.to_undo());
    heap.snapshot();
    heap.close();
}

/// Everything that can be looked at; true: something is wrong with it.
bool damage_found(io::Storage& disk, HeapKind kind) {
    try {
        const auto heap = HeapAccess::make<ArchiveHeap>(open(disk, store::OpenMode::read_only, kind));
        VerifyOptions everything;
        everything.threads = 1;
        everything.program_pointers = ProgramSearch::any_process;
        const Report report = verify(heap, everything);
        const bool sound = report.ok();
        // These believe what they read; they must come to an end with any of it.
        try {
            LeakOptions options;
            options.program_pointers = ProgramSearch::any_process;
            find_leaks(heap, options);
            map_of(heap);
            MapOptions by_owner;
            by_owner.colour = MapColour::owner;
            map_svg(map_of(heap, by_owner));
            stored_objects(heap);
            heap.stats();
        } catch (const Error&) {
            BOOST_TEST(!sound, "verify() found a heap sound in which something else met damage");
        }
        if (!sound) return true;
        BOOST_TEST(report.steps_checked == steps);
        for (int i = 0; i < 40; ++i) {
            const std::string text(700 + 100 * static_cast<unsigned>(i), static_cast<char>('a' + i % 26));
            BOOST_TEST(get(heap, "n" + std::to_string(i)) == (i == 3 ? "(none)" : text));
        }
        return false;
    } catch (const Error&) {
        return true;
    }
}

std::vector<std::byte> read(io::File& file, std::uint64_t at, std::size_t bytes) {
    std::vector<std::byte> found(bytes);
    found.resize(file.read(found, at));
    return found;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(corruption)

BOOST_AUTO_TEST_CASE(random_corruptions_are_found_or_harmless_and_never_crash) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const char* const asked = std::getenv("TAIYEN_CORRUPTIONS");
    const std::uint64_t rounds = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 2000;
    std::uint64_t found = 0;
    std::uint64_t harmless = 0;
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        make_heap(disk, kind);
        BOOST_TEST_REQUIRE(!damage_found(disk, kind));
        for (std::uint64_t round = 0; round < rounds / 2; ++round) {
            const std::string path = std::string(heap_path) + (kind == HeapKind::snapshot && random() % 2 == 0 ? ".data" : "");
            const auto file = disk.open(path, io::Access::read_write);
            const std::uint64_t size = file->info().size_bytes;
            // A few places, mostly one: a bit, a byte, a sector of zeros or noise, a page from elsewhere.
            std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> undo;
            for (std::uint64_t places = 1 + (random() % 8 == 0 ? random() % 20 : 0); places > 0; --places) {
                const std::uint64_t at = random() % 4 == 0 ? random() % 8192 : random() % size;
                const unsigned how = static_cast<unsigned>(random() % 5);
                const std::uint64_t start = how < 2 ? at : how < 4 ? round_down(at, io::sector_bytes) : round_down(at, page_bytes);
                std::vector<std::byte> bytes = read(*file, start, how < 2 ? 1 : how < 4 ? io::sector_bytes : page_bytes);
                undo.emplace_back(start, bytes);
                if (how == 0) bytes[0] ^= static_cast<std::byte>(1U << random() % 8);
                if (how == 1) bytes[0] = static_cast<std::byte>(random());
                if (how == 2) std::fill(bytes.begin(), bytes.end(), std::byte{0});
                if (how == 3) std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
                if (how == 4) bytes = read(*file, round_down(random() % size, page_bytes), bytes.size());
                file->write(bytes, start);
            }
            file->sync();
            (damage_found(disk, kind) ? found : harmless) += 1;
            for (; !undo.empty(); undo.pop_back()) file->write(undo.back().second, undo.back().first);
            file->sync();
        }
        BOOST_TEST(!damage_found(disk, kind));
    }
    BOOST_TEST_MESSAGE(found << " found, " << harmless << " harmless");
    BOOST_TEST(found > harmless);
}

BOOST_AUTO_TEST_SUITE_END()
