// What lies behind the extents of a crashed heap's files has rotted: neither what recovery gives, nor what a reader sees, nor the history has anything of it, and verify() finds the recovered heap sound.

#include <boost/test/unit_test.hpp>

#include <algorithm>

#include <taiyen/inspect/report.hpp>
#include <taiyen/taiyen.hpp>

#include "seed.hpp"
#include "store/heap_probe.hpp"
#include "store/rot_behind.hpp"

BOOST_AUTO_TEST_SUITE(rotted_growth)

namespace {
using namespace probe;
using Bytes = taiyen::vector<char>;
using Blocks = taiyen::vector<Bytes>;

/// A vector of zeros with a byte here and there: what the log or the journal has of it is a small part.
void grow(SnapshotHeap& heap, std::size_t round) {
    UndoScope scope(heap, "step " + std::to_string(round));
    auto& blocks = heap.find_or_construct<Blocks>("blocks");
    Bytes& block = blocks.emplace_back(100'000 * round + 1, '\0');
    for (std::size_t at = 0; at < block.size(); at += 90'000) block[at] = static_cast<char>(round);
    scope.commit();
}

bool is_grown(const ArchiveHeap& heap, std::size_t rounds) {
    const auto* const blocks = heap.find<Blocks>("blocks");
    if (blocks == nullptr) return rounds == 0;
    if (blocks->size() != rounds) return false;
    for (std::size_t round = 1; round <= rounds; ++round) {
        const Bytes& block = (*blocks)[round - 1];
        std::string expected(100'000 * round + 1, '\0');
        for (std::size_t at = 0; at < expected.size(); at += 90'000) expected[at] = static_cast<char>(round);
        if (std::string_view(block.data(), block.size()) != expected) return false;
    }
    return true;
}

bool has_damage(const Report& report) {
    return std::ranges::any_of(report.findings, [](const Finding& finding) { return finding.severity == Severity::damage; });
}

/// `in_files`: so many rounds are in the files, the others in journal or log only.
template <class Heap>
void crash_and_look(bool data_file, bool history, std::size_t rounds, std::size_t in_files, std::uint64_t seed) {
    ScratchDirectory dir;
    const auto path = dir / "c.tyn";
    PersistentOptions options = small_heap(32U << 20U);
    {
        PersistentOptions made = options;
        if (data_file) made.data_file = dir / "a.tyn.data";
        Heap heap(create_only, dir / "a.tyn", made);
        if (history) heap.attach_undo();
        if (in_files == 0) heap.snapshot();
        for (std::size_t round = 1; round <= rounds; ++round) {
            grow(heap, round);
            if (round == in_files || std::is_same_v<Heap, SnapshotHeap>) heap.snapshot();
            if (round == in_files) HeapAccess::file(heap).saves().checkpoint();
        }
        crash_copy(dir / "a.tyn", path);
    }
    for (const char* suffix : {"", ".data"}) store::test::rot_behind(io::posix_storage(), path.string() + suffix, seed);
    std::vector<std::byte> compressed;
    {
        ArchiveHeap reader(open_read_only, path);
        BOOST_TEST(is_grown(reader, rounds));
        BOOST_TEST(!has_damage(reader.verify()));
        compressed = compress(reader);
    }
    expand(compressed, dir / "expanded.tyn");
    BOOST_TEST(is_grown(ArchiveHeap(open_read_only, dir / "expanded.tyn"), rounds));
    if (data_file) options.data_file = path.string() + ".data";
    Heap heap(open_only, path, options);
    BOOST_TEST(is_grown(heap, rounds));
    BOOST_TEST(!has_damage(heap.verify()));
    if (history) {
        heap.attach_undo();
        BOOST_TEST(heap.undo());
        BOOST_TEST(is_grown(heap, rounds - 1));
        BOOST_TEST(heap.redo());
    }
    grow(heap, rounds + 1);
    heap.snapshot();
    heap.heal();
    BOOST_TEST(heap.verify().ok());
    BOOST_TEST(is_grown(heap, rounds + 1));
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_recovered_heap_has_what_was_committed_and_zeros_between) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    for (const bool history : {false, true}) {
        for (const std::size_t rounds : {std::size_t{1}, std::size_t{6}}) {
            for (std::size_t in_files = 0; in_files < rounds; in_files += 3) {
                BOOST_TEST_CONTEXT((history ? "history, " : "") << rounds << " rounds, " << in_files << " of them in the files") {
                    crash_and_look<SnapshotHeap>(false, history, rounds, in_files, seed);
                    crash_and_look<TransactionalHeap>(false, history, rounds, in_files, seed);
                    crash_and_look<TransactionalHeap>(true, history, rounds, in_files, seed);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
