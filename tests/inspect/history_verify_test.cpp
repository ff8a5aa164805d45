// verify() and the undo history: what contradicts itself in it is found with its place in the file, also where every page has the right checksum; sound ones are found sound,
// however they lie there: in closed files, in a journal, in a log, in the memory of who has the heap open.

#include <boost/test/unit_test.hpp>

#include <functional>
#include <optional>
#include <random>

#include <taiyen/inspect/history_report.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/taiyen.hpp>

#include "seed.hpp"
#include "store/heap_probe.hpp"
#include "undo/bare_history.hpp"

BOOST_AUTO_TEST_SUITE(history_verify)

namespace {
using namespace probe;
namespace layout = taiyen::undo::layout;
using undo::test::put;
using undo::test::seal_body;
using undo::test::seal_head;
using undo::test::seal_header;
using undo::test::word;
using Numbers = taiyen::vector<int>;

template <class Heap>
void make_steps(Heap& heap, int from, int count) {
    for (int i = from; i < from + count; ++i) {
        UndoScope scope(heap, "step " + std::to_string(i));
        auto& numbers = heap.template find_or_construct<Numbers>("numbers");
        for (int k = 0; k < 200; ++k) numbers.push_back(i * 1000 + k);
        scope.commit();
    }
}

/// A closed heap with a history of five steps, the last two undone.
template <class Heap>
void make_edited(const std::filesystem::path& path) {
    Heap heap(create_only, path, small_heap());
    heap.attach_undo();
    make_steps(heap, 0, 5);
    heap.undo();
    heap.undo();
    if constexpr (std::is_same_v<Heap, SnapshotHeap>) heap.snapshot();
    heap.close();
}

/// Changes bytes of the history and saves them as they are: every page has the right checksum afterwards.
void plant(const std::filesystem::path& path, const std::function<void(std::byte* history, ByteCount bytes)>& change) {
    ArchiveHeap heap(open_only, path);
    store::HeapFile& file = HeapAccess::file(heap);
    std::byte* const annex = file.open_annex(0);
    change(annex, file.image().annex().used());
    heap.snapshot();
    heap.close();
}

/// Where a byte of the history lies in a closed heap's file.
std::uint64_t place_of(const std::filesystem::path& path, std::uint64_t byte) {
    const auto file = io::posix_storage().open(path, io::Access::read_only);
    return store::FileLayout(store::read_slots(*file).newest()->annex.places).file_offset({store::annex_start.value + byte});
}

/// Offsets of the steps, oldest first: the log of these histories has not gone round.
std::vector<std::uint64_t> steps_in(const std::byte* history) {
    std::vector<std::uint64_t> found;
    for (std::uint64_t at = word(history + offsetof(layout::HistoryHeader, oldest));;) {
        found.push_back(at);
        if (at == word(history + offsetof(layout::HistoryHeader, newest))) return found;
        at += word(history + at + offsetof(layout::StepHead, size));
    }
}

template <class Heap>
Report verified(const std::filesystem::path& path) {
    return Heap(open_read_only, path).verify();
}

void require_sound(const Report& report, std::uint64_t steps) {
    for (const Finding& finding : report.findings) BOOST_TEST(false, finding.path << " " << finding.offset << " " << finding.what);
    BOOST_TEST(report.steps_checked == steps);
}
}  // namespace

using Kinds = std::tuple<SnapshotHeap, TransactionalHeap>;

BOOST_AUTO_TEST_CASE_TEMPLATE(a_sound_history_gives_no_findings_wherever_it_lies, Heap, Kinds) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_edited<Heap>(path);
    require_sound(verified<Heap>(path), 5);
    require_sound(verified<ArchiveHeap>(path), 5);
    Heap heap(open_only, path);
    require_sound(heap.verify(), 5);  // nobody has attached it
    heap.attach_undo();
    require_sound(heap.verify(), 5);
    heap.redo();
    make_steps(heap, 5, 3);
    require_sound(heap.verify(), 7);
    {
        UndoScope scope(heap, "open");
        heap.template find<Numbers>("numbers")->front() = -1;
        require_sound(heap.verify(), 7);
        scope.commit();  // what a destructor commits is durable only soon
    }
    if constexpr (std::is_same_v<Heap, SnapshotHeap>) heap.snapshot();
    crash_copy(path, dir / "crashed.tyn");
    BOOST_TEST(heap.undo_steps().size() == 8U);
    BOOST_TEST_CONTEXT("the open heap") require_sound(heap.verify(), 8);
    heap.close();
    BOOST_TEST_CONTEXT("closed") require_sound(verified<Heap>(path), 8);
    BOOST_TEST_CONTEXT("what a crash left") require_sound(verified<Heap>(dir / "crashed.tyn"), 8);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_ended_gives_no_findings, Heap, Kinds) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_edited<Heap>(path);
    {
        Heap heap(open_only, path);  // the history is not attached, and the heap is changed
        if constexpr (std::is_same_v<Heap, SnapshotHeap>) {
            heap.template find<Numbers>("numbers")->front() = -1;
            heap.snapshot();
        } else {
            transact(heap, [&] { heap.template find<Numbers>("numbers")->front() = -1; });
        }
        // The files of a transactional heap may still hold it: that it ended stands in the log.
        BOOST_TEST(heap.verify().findings.empty());
        crash_copy(path, dir / "crashed.tyn");
        heap.close();
    }
    require_sound(verified<Heap>(path), 0);
    require_sound(verified<Heap>(dir / "crashed.tyn"), 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_only_the_structure_shows_is_found_with_its_place, Heap, Kinds) {
    struct Planted {
        const char* name;
        std::function<std::uint64_t(std::byte* history)> change;  ///< returns the place
        const char* said;
    };
    const Planted all[]{
        {"the beginning",
         [](std::byte* history) -> std::uint64_t {
             history[3] ^= std::byte{1};
             return 0;
         },
         "begins with something else"},
        {"the cursor",
         [](std::byte* history) -> std::uint64_t {
             put(history + offsetof(layout::HistoryHeader, before), steps_in(history)[0]);
             seal_header(history);
             return 0;
         },
         "before the cursor"},
        {"a count",
         [](std::byte* history) -> std::uint64_t {
             put(history + offsetof(layout::HistoryHeader, redoable), 1);
             seal_header(history);
             return 0;
         },
         "names another step as the newest"},
        {"a link",
         [](std::byte* history) {
             const auto steps = steps_in(history);
             put(history + steps[3] + offsetof(layout::StepHead, previous), steps[1]);
             seal_head(history, steps[3]);
             return steps[3];
         },
         "names another one as the step before it"},
        {"a size",
         [](std::byte* history) {
             const auto steps = steps_in(history);
             put(history + steps[1] + offsetof(layout::StepHead, size), 24);
             seal_head(history, steps[1]);
             return steps[1];
         },
         "a step's head is impossible"},
        {"a bit of what a step recorded",
         [](std::byte* history) {
             const auto steps = steps_in(history);
             history[steps[2] + 300] ^= std::byte{64};
             return steps[2];
         },
         "a step's checksum differs"},
        {"a change beyond the heap",
         [](std::byte* history) {
             const auto steps = steps_in(history);
             std::byte* const where = history + steps[2] + sizeof(layout::StepHead) + 8 + layout::segment_head_bytes;
             put(where, word(where) | std::uint64_t{1} << 40U);
             seal_body(history, steps[2]);
             return steps[2];
         },
         "no change set"},
    };
    for (const Planted& planted : all) {
        const ScratchDirectory dir;
        const auto path = dir / "a.tyn";
        make_edited<Heap>(path);
        std::uint64_t place = 0;
        plant(path, [&](std::byte* history, ByteCount) { place = planted.change(history); });
        BOOST_TEST_CONTEXT(planted.name) {
            const auto before = bytes_of(path);
            const Report report = verified<ArchiveHeap>(path);
            BOOST_TEST_REQUIRE(!report.findings.empty());
            const Finding& first = report.findings.front();
            BOOST_TEST(!report.ok());
            BOOST_TEST((first.severity == Severity::damage));
            BOOST_TEST(first.path == path);
            BOOST_TEST(first.offset == place_of(path, place));
            BOOST_TEST(first.what.find(planted.said) != std::string::npos, first.what);
            BOOST_TEST((bytes_of(path) == before));
            // The heap itself is not concerned.
            BOOST_TEST(ArchiveHeap(open_read_only, path).find<Numbers>("numbers")->size() == 600U);
        }
    }
}

BOOST_AUTO_TEST_CASE(where_the_other_copy_has_the_page_whole_nothing_is_lost) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_edited<SnapshotHeap>(path);
    flip_bit(path, place_of(path, layout::first_step + 300));
    const Report report = verified<ArchiveHeap>(path);
    BOOST_TEST(!report.ok());
    for (const Finding& finding : report.findings) BOOST_TEST((finding.severity == Severity::healable), finding.what);
    {
        PersistentOptions options;
        options.verify = Verify::changes;
        ArchiveHeap heap(open_only, path, options);
        BOOST_TEST(heap.heal() == 1U);
        heap.close();
    }
    require_sound(verified<ArchiveHeap>(path), 5);
    // In the heap's own metadata it is no different.
    flip_bit(path, store::FileLayout().file_offset({page_bytes + 100}));
    for (const Finding& finding : verified<ArchiveHeap>(path).findings) BOOST_TEST((finding.severity == Severity::healable), finding.what);
}

BOOST_AUTO_TEST_CASE(a_history_of_a_later_version_is_a_note) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    make_edited<SnapshotHeap>(path);
    plant(path, [](std::byte* history, ByteCount) {
        history[offsetof(layout::HistoryHeader, version)] = std::byte{9};
        seal_header(history);
    });
    const Report report = verified<ArchiveHeap>(path);
    BOOST_TEST(report.ok());
    BOOST_TEST_REQUIRE(report.findings.size() == 1U);
    BOOST_TEST((report.findings[0].severity == Severity::note));
    BOOST_TEST(report.findings[0].offset == place_of(path, 0));
}

/// Undo to the first step and redo to the last one: what went wrong.
std::string gone_through(const std::filesystem::path& path) {
    SnapshotHeap heap(open_only, path);
    try {
        heap.attach_undo();
        while (heap.undo()) {}
        while (heap.redo()) {}
        return "";
    } catch (const Error& error) {
        // Bytes that are none of the heap's are for undo to find; that they can't be a history is not.
        return error.code() == errc::history_conflict ? "" : error.what();
    }
}

BOOST_AUTO_TEST_CASE(random_changes_under_right_checksums_are_found_or_harmless) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    make_edited<SnapshotHeap>(dir / "sound.tyn");
    const char* const asked = std::getenv("TAIYEN_CORRUPTIONS");
    const std::uint64_t rounds = asked != nullptr ? std::strtoull(asked, nullptr, 10) / 100 : 40;
    const auto silent = set_report_handler([](const Incident&) noexcept {});
    std::uint64_t found = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const auto path = dir / "a.tyn";
        for (const char* suffix : {"", ".data"}) {
            std::filesystem::copy_file((dir / "sound.tyn").string() + suffix, path.string() + suffix,
                                       std::filesystem::copy_options::overwrite_existing);
        }
        plant(path, [&](std::byte* history, ByteCount) {
            const auto steps = steps_in(history);
            const std::uint64_t step = steps[random() % steps.size()];
            const bool in_header = random() % 3 == 0;
            const std::uint64_t words = in_header ? sizeof(layout::HistoryHeader) / 8 - 1 : sizeof(layout::StepHead) / 8 + 4;
            std::byte* const at = history + (in_header ? 0 : step) + random() % words * 8;
            put(at, random() % 2 == 0 ? word(at) + 8 : steps[random() % steps.size()]);
            const std::uint64_t size = word(history + step + offsetof(layout::StepHead, size));
            if (in_header)
                seal_header(history);
            else if (size >= sizeof(layout::StepHead) + 8 && size < 100'000 && history[step + offsetof(layout::StepHead, name_bytes)] < std::byte{9})
                seal_body(history, step);
        });
        if (!verified<ArchiveHeap>(path).findings.empty()) {  // another version is no damage, but not read either
            ++found;
            continue;
        }
        BOOST_TEST_CONTEXT("round " << round) BOOST_TEST(gone_through(path) == "");
    }
    set_report_handler(silent);
    BOOST_TEST_MESSAGE(found << " of " << rounds << " found");
    BOOST_TEST(found > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
