// A look at all of a history: every contradiction is named by its place, also where all checksums are right; and what is found sound can be gone through in both directions.

#include "undo/bare_history.hpp"

#include <functional>
#include <optional>
#include <random>

#include <boost/test/unit_test.hpp>

#include "change/procedure_layout.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"
#include "undo/history_memory.hpp"
#include "undo/undo_fixture.hpp"

BOOST_AUTO_TEST_SUITE(history_check)

namespace {

using namespace taiyen;
using namespace taiyen::undo;
using namespace taiyen::undo::test;
using change::ChangeSet;
using layout::HistoryHeader;
using layout::StepHead;

constexpr ByteCount room = 64 * 1024;
constexpr ByteCount heap_capacity = 1_MiB;

/// The bytes of a call of a procedure whose pages are these runs.
std::vector<std::byte> call_arguments(std::vector<std::uint64_t> words) {
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
}

/// Four steps, the second one a procedure's call; one is undone. The log has gone round, so that the newest steps lie in front of the oldest one.
struct Wrapped {
    UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(room), room, true);
    std::vector<std::uint64_t> steps;  ///< offsets, oldest first

    Wrapped() {
        ChangeSet large;
        large.add_bytes({0}, std::vector<std::byte>(10'000, std::byte{1}), std::vector<std::byte>(10'000, std::byte{2}));
        ChangeSet call;
        call.add_procedure("fill", call_arguments({7, 8, 1, 3, 2}), 9);
        for (int i = 0; i < 3; ++i) append(history, large, "large");
        append(history, call, "calls");
        for (int i = 0; i < 2; ++i) append(history, large, "behind");
        history.step_back(*history.to_undo());
        history.for_each_step([&](const StepView& step, bool) { steps.push_back(step.offset); });
    }
    std::byte* base() { return history.memory().base(); }
    std::byte* field(std::size_t step, std::size_t offset) { return base() + steps[step] + offset; }
    HistoryCheck check() {
        auto copy = std::make_unique<TestMemory>(room);
        copy->extend(history.memory().bytes());
        std::memcpy(copy->base(), base(), history.memory().bytes());
        return check_history(std::move(copy), heap_capacity);
    }
};

/// A change of bytes that only the structure shows: where it is to be found, and how it is called.
struct Plant {
    const char* name;
    std::function<std::uint64_t(Wrapped&)> plant;
    const char* said;
};

/// Sets a word of the header.
std::function<std::uint64_t(Wrapped&)> header(std::size_t field, std::function<std::uint64_t(Wrapped&)> value) {
    return [field, value](Wrapped& wrapped) -> std::uint64_t {
        put(wrapped.base() + field, value(wrapped));
        seal_header(wrapped.base());
        return 0;
    };
}

/// Sets a word of a step's head.
std::function<std::uint64_t(Wrapped&)> head(std::size_t step, std::size_t field, std::function<std::uint64_t(Wrapped&)> value) {
    return [step, field, value](Wrapped& wrapped) {
        put(wrapped.field(step, field), value(wrapped));
        seal_head(wrapped.base(), wrapped.steps[step]);
        return wrapped.steps[step];
    };
}

/// Changes something behind a step's head and name.
std::function<std::uint64_t(Wrapped&)> body(std::size_t step, std::function<void(std::byte* segments)> change) {
    return [step, change](Wrapped& wrapped) {
        std::uint32_t name = 0;
        std::memcpy(&name, wrapped.field(step, offsetof(StepHead, name_bytes)), sizeof name);
        change(wrapped.field(step, sizeof(StepHead) + round_up(name, 8)));
        seal_body(wrapped.base(), wrapped.steps[step]);
        return wrapped.steps[step];
    };
}

BOOST_AUTO_TEST_CASE(a_history_as_it_was_written_has_no_faults) {
    Wrapped wrapped;
    BOOST_TEST_REQUIRE(wrapped.steps.size() >= 4U);
    BOOST_TEST(word(wrapped.base() + offsetof(HistoryHeader, wrap)) != 0U);
    BOOST_TEST(wrapped.history.undoable() >= 3U);
    BOOST_TEST(wrapped.history.redoable() == 1U);
    const HistoryCheck check = wrapped.check();
    for (const HistoryFault& fault : check.faults) BOOST_TEST(false, fault.offset << ": " << fault.what);
    BOOST_TEST(check.attached);
    BOOST_TEST(check.steps == wrapped.steps.size());
}

BOOST_AUTO_TEST_CASE(where_there_is_none_there_are_no_faults) {
    BOOST_TEST(!check_history(std::make_unique<TestMemory>(room), heap_capacity).attached);
    auto zeroed = std::make_unique<TestMemory>(room);
    zeroed->extend(room);
    std::memset(zeroed->base() + layout::first_step, 7, room - layout::first_step);  // garbage of one that ended
    const HistoryCheck check = check_history(std::move(zeroed), heap_capacity);
    BOOST_TEST(!check.attached);
    BOOST_TEST(check.faults.empty());
}

BOOST_AUTO_TEST_CASE(each_contradiction_is_named_by_its_place) {
    const auto value = [](std::uint64_t fixed) { return [fixed](Wrapped&) { return fixed; }; };
    const auto of_step = [](std::size_t step) { return [step](Wrapped& wrapped) { return wrapped.steps[step]; }; };
    const auto plus = [](std::size_t field, std::int64_t difference) {
        return [=](Wrapped& wrapped) { return word(wrapped.base() + field) + static_cast<std::uint64_t>(difference); };
    };
    const Plant plants[]{
        {"a beginning of something else", header(offsetof(HistoryHeader, magic), value(77)), "begins with something else"},
        {"a header's checksum",
         [](Wrapped& wrapped) -> std::uint64_t {
             wrapped.base()[offsetof(HistoryHeader, checksum)] ^= std::byte{1};
             return 0;
         },
         "its header's checksum differs"},
        {"a capacity of nothing", header(offsetof(HistoryHeader, capacity), value(4096)), "its header is impossible"},
        {"no number to come", header(offsetof(HistoryHeader, next_id), value(0)), "its header is impossible"},
        {"a base above all numbers", header(offsetof(HistoryHeader, base_id), value(1000)), "its header is impossible"},
        {"unknown flags", header(offsetof(HistoryHeader, version), value(0xff00000001)), "its header is impossible"},
        {"an oldest step outside", header(offsetof(HistoryHeader, oldest), value(room * 2)), "its header leads outside"},
        {"a wrap outside", header(offsetof(HistoryHeader, wrap), value(8)), "its header leads outside"},
        {"a cursor elsewhere", header(offsetof(HistoryHeader, before), of_step(0)), "counts other steps to undo than there are before the cursor"},
        {"a step to redo that is another one", header(offsetof(HistoryHeader, behind), of_step(0)), "before the step to redo"},
        {"a newest step that is another one", header(offsetof(HistoryHeader, newest), of_step(1)), "names another step as the newest"},
        {"one step less to undo", header(offsetof(HistoryHeader, undoable), plus(offsetof(HistoryHeader, undoable), -1)), "counts other steps"},
        {"an oldest step that isn't",
         [](Wrapped& wrapped) -> std::uint64_t {
             put(wrapped.base() + offsetof(HistoryHeader, oldest), wrapped.steps[1]);
             put(wrapped.base() + offsetof(HistoryHeader, undoable), wrapped.history.undoable() - 1);
             put(wrapped.base() + offsetof(HistoryHeader, base_id), word(wrapped.field(1, 0)));  // it has fallen off, it says
             seal_header(wrapped.base());
             return wrapped.steps[1];
         },
         "another checksum or number"},
        {"a head's checksum",
         [](Wrapped& wrapped) {
             *wrapped.field(2, offsetof(StepHead, life)) ^= std::byte{1};
             return wrapped.steps[2];
         },
         "a step's head has another checksum or number"},
        {"a size that is none", head(1, offsetof(StepHead, size), value(12)), "a step's head is impossible"},
        {"a size that leads outside", head(1, offsetof(StepHead, size), value(room)), "a step's head is impossible"},
        {"a number that falls", head(2, offsetof(StepHead, id), [](Wrapped& wrapped) { return word(wrapped.field(1, 0)); }),
         "steps don't follow each other"},
        {"a number that is not given yet", head(2, offsetof(StepHead, id), value(1000)), "another checksum or number"},
        {"a step before that is another one", head(2, offsetof(StepHead, previous), of_step(0)), "names another one as the step before it"},
        {"an unknown flag", head(0, offsetof(StepHead, flags), value((std::uint64_t{5} << 32U) | 2U)), "a step's head is impossible"},
        {"padding that isn't",
         [](Wrapped& wrapped) {
             *wrapped.field(0, sizeof(StepHead) + 6) = std::byte{1};
             return wrapped.steps[0];
         },
         "behind a step's name lie bytes"},
        {"a body's checksum",
         [](Wrapped& wrapped) {
             *wrapped.field(2, sizeof(StepHead) + 200) ^= std::byte{1};
             return wrapped.steps[2];
         },
         "a step's checksum differs"},
        {"a segment longer than the step", body(2, [](std::byte* segments) { put(segments, 1'000'000); }), "a step's parts don't add up"},
        {"a segment shorter than its changes", body(2, [](std::byte* segments) { put(segments, word(segments) - 8); }),
         "something that is no change set"},
        {"a change beyond the heap", body(2, [](std::byte* segments) { put(segments + 8, word(segments + 8) | heap_capacity); }),
         "something that is no change set"},
        {"a change's length", body(2, [](std::byte* segments) { put(segments + 16, 1); }), "something that is no change set"},
    };
    for (const Plant& plant : plants) {
        Wrapped wrapped;
        const std::uint64_t place = plant.plant(wrapped);
        const HistoryCheck check = wrapped.check();
        BOOST_TEST_CONTEXT(plant.name) {
            BOOST_TEST_REQUIRE(!check.faults.empty());
            BOOST_TEST(check.faults.front().offset == place);
            BOOST_TEST(check.faults.front().what.find(plant.said) != std::string::npos, check.faults.front().what);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_fault_of_one_step_hides_no_other_ones) {
    Wrapped wrapped;
    *wrapped.field(0, sizeof(StepHead) + 200) ^= std::byte{1};
    *wrapped.field(2, sizeof(StepHead) + 200) ^= std::byte{1};
    const HistoryCheck check = wrapped.check();
    BOOST_TEST_REQUIRE(check.faults.size() == 2U);
    BOOST_TEST(check.faults[0].offset == wrapped.steps[0]);
    BOOST_TEST(check.faults[1].offset == wrapped.steps[2]);
    BOOST_TEST(check.steps == wrapped.steps.size());
}

BOOST_AUTO_TEST_CASE(steps_that_lie_over_each_other_are_found) {
    // The newest step grows over the oldest one: its size, the header's, and all checksums say so.
    Wrapped wrapped;
    const std::size_t last = wrapped.steps.size() - 1;
    BOOST_TEST_REQUIRE(wrapped.steps[last] < wrapped.steps[0]);
    const std::uint64_t size = wrapped.steps[0] + 64 - wrapped.steps[last];
    put(wrapped.field(last, offsetof(StepHead, size)), size);
    seal_head(wrapped.base(), wrapped.steps[last]);
    const HistoryCheck check = wrapped.check();
    BOOST_TEST_REQUIRE(!check.faults.empty());
    BOOST_TEST(check.faults.front().offset == wrapped.steps[last]);
    BOOST_TEST(check.faults.front().what.find("lies over the oldest one") != std::string::npos, check.faults.front().what);
}

BOOST_AUTO_TEST_CASE(a_call_must_be_one_and_alone) {
    const std::vector<std::uint64_t> right{7, 8, 1, 3, 2};  // signature, digest, one run: pages 3 and 4
    const auto checked = [](const std::vector<std::uint64_t>& words, bool alone) {
        UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(room), room, true);
        ChangeSet set;
        set.add_procedure("fill", call_arguments(words), 9);
        if (!alone) set.add_zeroed_run({4096}, 4096);
        append(history, set, "calls");
        HistoryCheck check;
        history.check(heap_capacity, check);
        BOOST_TEST(check.steps == 1U);
        return check.faults.empty() ? "" : check.faults.front().what;
    };
    BOOST_TEST(checked(right, true) == "");
    BOOST_TEST(checked({7, 8, 2, 3, 2, 5, 251}, true) == "");
    BOOST_TEST(checked(right, false).find("not alone") != std::string::npos);
    const std::vector<std::vector<std::uint64_t>> wrong{
        {7, 8},
        {7, 8, 2, 3, 2},  // one run is missing
        {7, 8, 1, 3, 0},  // of no pages
        {7, 8, 2, 3, 0, 9, 1},
        {7, 8, 1, 255, 2},      // beyond the heap
        {7, 8, 1, ~0ULL, 1},    // far beyond
        {7, 8, 2, 3, 2, 4, 1},  // over each other
    };
    for (const auto& words : wrong) BOOST_TEST(checked(words, true).find("call that can't be one") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_thousand_faults_are_enough) {
    constexpr ByteCount large = 1_MiB;
    UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(large), large, true);
    std::mt19937_64 random(5);
    for (std::size_t i = 0; i < HistoryCheck::faults_max + 100; ++i) BOOST_REQUIRE(append(history, changes(random, 30), "step"));
    std::byte* const base = history.memory().base();
    history.for_each_step([&](const StepView& step, bool) { base[step.offset + sizeof(StepHead) + 8 + 9] ^= std::byte{1}; });
    HistoryCheck check;
    history.check(heap_capacity, check);
    BOOST_TEST(check.steps == HistoryCheck::faults_max + 100);
    BOOST_TEST(check.faults.size() == HistoryCheck::faults_max);
}

BOOST_AUTO_TEST_CASE(it_is_looked_at_wherever_it_lies_and_nothing_is_opened_for_that) {
    const WithCopyRecorder copying;
    UndoFixture fixture;
    const auto steps = [](const ArchiveHeap& heap) {
        store::HeapFile& file = HeapAccess::file(heap);
        const bool open = file.image().annex().is_open();
        const HistoryCheck check = check_history(viewed_history_memory(file), file.files().backing().header.capacity);
        BOOST_TEST(check.faults.empty());
        BOOST_TEST(file.image().annex().is_open() == open);
        return check.attached ? static_cast<int>(check.steps) : -1;
    };
    BOOST_TEST(steps(*fixture.heap) == -1);
    fixture.heap->attach_undo();
    fixture.push(1);
    fixture.push(2);
    BOOST_TEST(steps(*fixture.heap) == 2);
    fixture.heap->snapshot();
    for (const char* suffix : {"", ".data", ".journal"})  // what a crash leaves: the steps are in the journal
        std::filesystem::copy_file(fixture.path.string() + suffix, (fixture.directory / "crashed.tyn").string() + suffix);
    fixture.reopen();
    BOOST_TEST(steps(*fixture.heap) == 2);
    fixture.numbers()[0] = 7;  // nobody has attached it
    fixture.heap->snapshot();
    BOOST_TEST(steps(*fixture.heap) == -1);
    fixture.heap.reset();
    BOOST_TEST(steps(SnapshotHeap(open_read_only, fixture.path)) == -1);
    BOOST_TEST(steps(SnapshotHeap(open_read_only, fixture.directory / "crashed.tyn")) == 2);
    SnapshotHeap(open_only, fixture.directory / "crashed.tyn").close();
    BOOST_TEST(steps(SnapshotHeap(open_read_only, fixture.directory / "crashed.tyn")) == 2);
    const auto memory = viewed_history_memory(HeapAccess::file(SnapshotHeap(open_read_only, fixture.directory / "crashed.tyn")));
    BOOST_CHECK_THROW(memory->extend(1_MiB), HeapFull);
    BOOST_CHECK_THROW(memory->about_to_write(0, 8), Error);
}

BOOST_AUTO_TEST_CASE(one_of_another_version_is_not_looked_at) {
    Wrapped wrapped;
    const std::uint32_t version = 2;
    std::memcpy(wrapped.base() + offsetof(HistoryHeader, version), &version, sizeof version);
    const HistoryCheck check = wrapped.check();
    BOOST_TEST(check.attached);
    BOOST_TEST(check.other_version);
    BOOST_TEST(check.faults.size() == 1U);
}

/// Back to the first step and forward to the last one, as undo and redo go, with every step's changes.
void go_through(UndoHistory& history) {
    for (std::uint64_t i = history.undoable(); i > 0; --i) {
        const auto step = history.to_undo();
        (void)history.segments(*step, heap_capacity);
        history.step_back(*step);
    }
    for (std::uint64_t i = history.redoable(); i > 0; --i) {
        const auto step = history.to_redo();
        (void)history.segments(*step, heap_capacity);
        history.step_forward(*step);
    }
}

BOOST_AUTO_TEST_CASE(what_is_found_sound_can_be_gone_through_whatever_the_bytes_are) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(room), room, true);
    for (int i = 0; i < 120; ++i) BOOST_REQUIRE(append(history, changes(random, 1500), "step"));
    for (int i = 0; i < 7; ++i) history.step_back(*history.to_undo());
    std::vector<std::uint64_t> heads;
    history.for_each_step([&](const StepView& step, bool) { heads.push_back(step.offset); });
    std::uint64_t sound = 0;
    constexpr int rounds = 3000;
    for (int round = 0; round < rounds; ++round) {
        auto memory = std::make_unique<TestMemory>(room);
        memory->extend(history.memory().bytes());
        std::byte* const base = memory->base();
        std::memcpy(base, history.memory().base(), history.memory().bytes());
        const std::uint64_t step = heads[random() % heads.size()];
        const unsigned where = static_cast<unsigned>(random() % 3);  // header, head, body
        const std::uint64_t words = where == 0 ? sizeof(HistoryHeader) / 8 - 1 : where == 1 ? sizeof(StepHead) / 8 - 2 : 20;
        std::byte* const begin = where == 0 ? base : base + step + (where == 2 ? sizeof(StepHead) : 0);
        std::byte* const at = begin + random() % words * 8;
        switch (random() % 4) {
            case 0: put(at, random()); break;
            case 1: put(at, heads[random() % heads.size()]); break;
            case 2: put(at, word(at) + (random() % 2 == 0 ? 1 : std::uint64_t{0} - 1) * (random() % 2 == 0 ? 8 : 1)); break;
            default: put(at, random() % 8 * 8);
        }
        // With the right checksums, as far as there is anything to compute them of.
        std::uint32_t name = 0;
        std::memcpy(&name, base + step + offsetof(StepHead, name_bytes), sizeof name);
        const std::uint64_t size = word(base + step + offsetof(StepHead, size));
        if (where == 0)
            seal_header(base);
        else if (name <= layout::name_bytes_max && size <= memory->bytes() - step && size >= sizeof(StepHead) + round_up(name, 8))
            seal_body(base, step);
        auto copy = std::make_unique<TestMemory>(room);
        copy->extend(memory->bytes());
        std::memcpy(copy->base(), base, memory->bytes());
        const HistoryCheck check = check_history(std::move(copy), heap_capacity);
        if (!check.faults.empty() || !check.attached) continue;
        ++sound;
        std::unique_ptr<HistoryMemory> found = std::move(memory);
        auto resumed = UndoHistory::resume(found);
        BOOST_REQUIRE(resumed);
        BOOST_REQUIRE_NO_THROW(go_through(*resumed));
        BOOST_REQUIRE_NO_THROW((void)resumed->newest(1000));
        BOOST_REQUIRE_NO_THROW((void)resumed->steps());
    }
    BOOST_TEST_MESSAGE(sound << " of " << rounds << " sound");
    BOOST_TEST(sound > 0U);
    BOOST_TEST(sound < static_cast<std::uint64_t>(rounds));
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
