// UndoHistory on a bare span of bytes: circulation against a simple model, and bytes that nobody wrote.

#include "undo/bare_history.hpp"

#include <deque>
#include <random>

#include <boost/test/unit_test.hpp>
#include <taiyen/base/error.hpp>

#include "seed.hpp"
#include "store/heap_layout.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::undo;
using namespace taiyen::undo::test;
using change::ChangeSet;

std::vector<std::byte> body(const UndoHistory& history, const StepView& step) {
    std::vector<std::byte> all;
    for (const auto& segment : history.segments(step, 1_MiB)) all.insert(all.end(), segment.bytes().begin(), segment.bytes().end());
    return all;
}

BOOST_AUTO_TEST_SUITE(history_bytes)

BOOST_AUTO_TEST_CASE(a_circulating_log_holds_what_a_list_holds) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    struct Step {
        std::string name;
        std::vector<std::byte> bytes;
    };
    for (const ByteCount limit : {~ByteCount{0}, ByteCount{40 * 1024}}) {
        std::deque<Step> model;  // oldest first
        std::size_t at = 0;
        UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(64 * 1024, limit), 64 * 1024, true);
        for (int turn = 0; turn < 4000; ++turn) {
            switch (random() % 9) {
                case 0:
                case 1:
                    if (const auto step = history.to_undo()) {
                        BOOST_REQUIRE(at > 0);
                        BOOST_REQUIRE(step->name == model[at - 1].name);
                        BOOST_REQUIRE(body(history, *step) == model[at - 1].bytes);
                        history.step_back(*step);
                        --at;
                    } else {
                        BOOST_REQUIRE(at == 0);
                    }
                    break;
                case 2:
                    if (const auto step = history.to_redo()) {
                        BOOST_REQUIRE(at < model.size());
                        BOOST_REQUIRE(body(history, *step) == model[at].bytes);
                        history.step_forward(*step);
                        ++at;
                    } else {
                        BOOST_REQUIRE(at == model.size());
                    }
                    break;
                case 3:
                    if (history.redoable() == 0 && at > 2 && random() % 4 == 0) {
                        if (!history.squash(2, "squashed")) break;
                        Step merged{"squashed", model[at - 2].bytes};
                        merged.bytes.insert(merged.bytes.end(), model[at - 1].bytes.begin(), model[at - 1].bytes.end());
                        model.resize(at - 2);
                        model.push_back(merged);
                        --at;
                        // What it needed may have cost the oldest ones nothing: squashing never drops.
                    }
                    break;
                case 4: {
                    if (random() % 10 != 0) break;
                    const ByteCount capacity = (4 + random() % 13) * page_bytes;
                    const auto before = history.steps();
                    const bool fits = history.resize(capacity);
                    const auto after = history.steps();
                    const auto bytes_from = [&](std::size_t first) {
                        ByteCount sum = 4096;
                        for (std::size_t i = first; i < before.size(); ++i) sum += before[i].bytes;
                        return sum;
                    };
                    if (!fits) {
                        BOOST_REQUIRE(bytes_from(at) > capacity);
                        BOOST_REQUIRE(after.size() == before.size());
                        break;
                    }
                    BOOST_REQUIRE(history.capacity() == capacity);
                    const std::size_t dropped = before.size() - after.size();
                    // No more than have no room, if it became smaller.
                    if (dropped != 0) BOOST_REQUIRE(bytes_from(dropped - 1) > capacity);
                    model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(dropped));
                    at -= dropped;
                    break;
                }
                default: {
                    const ChangeSet set = changes(random, random() % 20 == 0 ? 12'000 : 900);
                    const std::string name = "step " + std::to_string(turn);
                    if (!append(history, set, name)) {
                        BOOST_REQUIRE(history.capacity() < 2 * set.size());
                        break;  // and nothing changed
                    }
                    model.resize(at);
                    model.push_back({name, {set.view().bytes().begin(), set.view().bytes().end()}});
                    ++at;
                    while (model.size() > history.undoable()) {
                        model.pop_front();
                        --at;
                    }
                }
            }
            BOOST_REQUIRE(history.undoable() == at);
            BOOST_REQUIRE(history.undoable() + history.redoable() == model.size());
            const auto steps = history.steps();
            BOOST_REQUIRE(steps.size() == model.size());
            for (std::size_t i = 0; i < steps.size(); ++i) BOOST_REQUIRE(steps[i].name == model[i].name);
            HistoryCheck check;
            history.check(1_MiB, check);
            BOOST_REQUIRE(check.steps == steps.size());
            BOOST_REQUIRE(check.faults.empty());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_step_that_can_not_fit_changes_nothing) {
    std::mt19937_64 random(1);
    UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(16 * 1024), 16 * 1024, true);
    BOOST_TEST(append(history, changes(random, 10), "small"));
    ChangeSet large;
    large.add_bytes({0}, std::vector<std::byte>(20'000, std::byte{1}), std::vector<std::byte>(20'000, std::byte{2}));
    BOOST_TEST(!append(history, large, "large"));
    BOOST_TEST(history.to_undo()->name == "small");
}

BOOST_AUTO_TEST_CASE(a_first_step_that_the_disk_has_no_room_for_is_none_and_a_smaller_one_is_the_first) {
    std::mt19937_64 random(1);
    UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(64 * 1024, 16 * 1024), 64 * 1024, true);
    ChangeSet large;
    large.add_bytes({0}, std::vector<std::byte>(20'000, std::byte{1}), std::vector<std::byte>(20'000, std::byte{2}));
    BOOST_TEST(!append(history, large, "large"));
    BOOST_TEST(history.undoable() == 0U);
    BOOST_TEST(append(history, changes(random, 10), "small"));
    BOOST_TEST(history.to_undo()->name == "small");
}

/// Whatever the bytes are: each call works, or throws Error.
void use(std::unique_ptr<HistoryMemory> memory, std::mt19937_64& random) {
    try {
        auto history = UndoHistory::resume(memory);
        if (!history) return;
        for (int i = 0; i < 12; ++i) {
            switch (random() % 6) {
                case 0:
                    if (const auto step = history->to_undo()) {
                        (void)history->segments(*step, 1_MiB);
                        history->step_back(*step);
                    }
                    break;
                case 1:
                    if (const auto step = history->to_redo()) {
                        (void)history->segments(*step, 1_MiB);
                        history->step_forward(*step);
                    }
                    break;
                case 2: (void)history->steps(); break;
                case 3: (void)history->newest(5); break;
                case 4:
                    if (history->redoable() == 0 && history->undoable() > 1) (void)history->squash(2, "x");
                    break;
                default: (void)append(*history, changes(random, 3000), "more");
            }
        }
    } catch (const Error& error) {
        BOOST_REQUIRE(error.code() == errc::corrupt || error.code() == errc::unsupported_version);
    }
}

/// Writes a step's link to the one before it.
void link(std::byte* base, std::uint64_t step, std::uint64_t previous) {
    put(base + step + offsetof(layout::StepHead, previous), previous);
    seal_head(base, step);
}

bool is_corrupt(const Error& error) { return error.code() == errc::corrupt; }

BOOST_AUTO_TEST_CASE(steps_that_lead_in_a_circle_are_corrupt) {
    std::mt19937_64 random(3);
    constexpr ByteCount capacity = 64 * 1024;
    const auto make = [&] {
        UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(capacity), capacity, true);
        for (int i = 0; i < 4; ++i) BOOST_REQUIRE(append(history, changes(random, 100), "step"));
        return history;
    };
    for (const std::size_t to : {0U, 1U}) {  // to itself, to the newer one
        UndoHistory history = make();
        const auto steps = history.newest(4);  // newest first
        BOOST_REQUIRE(steps.size() == 4U);
        const bool newest_first = steps[0].offset > steps[3].offset;
        const std::uint64_t newest = steps[newest_first ? 0 : 3].offset;
        const std::uint64_t second = steps[newest_first ? 1 : 2].offset;
        link(history.memory().base(), second, to == 0 ? second : newest);
        BOOST_TEST(history.steps().size() == 4U);  // goes by sizes
        BOOST_CHECK_EXCEPTION((void)history.newest(1000), Error, is_corrupt);
        BOOST_CHECK_EXCEPTION(
            {
                while (const auto step = history.to_undo()) history.step_back(*step);
            },
            Error, is_corrupt);
    }
}

/// Gives a step another number, with the right checksum.
void number(std::byte* base, const StepView& step, std::uint64_t id) {
    std::memcpy(base + step.offset + offsetof(layout::StepHead, id), &id, sizeof id);
    link(base, step.offset, step.previous);
}

BOOST_AUTO_TEST_CASE(a_step_that_does_not_follow_the_one_that_is_redone_is_corrupt) {
    for (const bool by_number : {true, false}) {
        std::mt19937_64 random(4);
        UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(64 * 1024), 64 * 1024, true);
        for (int i = 0; i < 3; ++i) BOOST_REQUIRE(append(history, changes(random, 100), "step"));
        const auto steps = history.newest(3);  // newest first
        for (int i = 0; i < 3; ++i) history.step_back(*history.to_undo());
        std::byte* const base = history.memory().base();
        by_number ? number(base, steps[1], steps[2].id) : link(base, steps[1].offset, steps[0].offset);
        BOOST_CHECK_EXCEPTION(history.step_forward(*history.to_redo()), Error, is_corrupt);
        BOOST_TEST(history.redoable() == 3U);
    }
}

BOOST_AUTO_TEST_CASE(a_step_that_does_not_follow_the_one_that_falls_off_is_corrupt) {
    for (const bool by_number : {true, false}) {
        std::mt19937_64 random(5);
        UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(16 * 1024), 16 * 1024, true);
        while (history.base_id() == 0) BOOST_REQUIRE(append(history, changes(random, 700), "step"));  // one has fallen off: the history is full
        const auto steps = history.newest(history.undoable());
        const StepView& oldest = steps.back();
        const StepView& second = steps[steps.size() - 2];
        std::byte* const base = history.memory().base();
        by_number ? number(base, second, oldest.id) : link(base, second.offset, steps[0].offset);
        BOOST_CHECK_EXCEPTION(
            {
                for (int i = 0; i < 100; ++i) (void)append(history, changes(random, 700), "more");
            },
            Error, is_corrupt);
    }
}

BOOST_AUTO_TEST_CASE(a_header_is_believed_up_to_its_bounds_and_not_beyond_them) {
    using Header = layout::HistoryHeader;
    std::mt19937_64 random(6);
    static constexpr ByteCount capacity = 64 * 1024;
    const auto make = [] { return UndoHistory::create(std::make_unique<TestMemory>(capacity), capacity, true); };
    UndoHistory empty = make();
    UndoHistory filled = make();
    for (int i = 0; i < 3; ++i) BOOST_REQUIRE(append(filled, changes(random, 100), "step"));
    filled.step_back(*filled.to_undo());
    const auto is_believed = [](UndoHistory& history, std::uint64_t Header::* field, std::uint64_t value) {
        auto memory = std::make_unique<TestMemory>(capacity);
        memory->extend(history.memory().bytes());
        std::memcpy(memory->base(), history.memory().base(), capacity);
        Header header = history.cursor();
        header.*field = value;
        std::memcpy(memory->base(), &header, sizeof header);
        seal_header(memory->base());
        std::unique_ptr<HistoryMemory> given = std::move(memory);
        try {
            return UndoHistory::resume(given).has_value();
        } catch (const Error& error) {
            BOOST_TEST(is_corrupt(error));
            return false;
        }
    };
    struct Bound {
        std::uint64_t Header::* field;
        std::uint64_t inside;
        std::uint64_t outside;
    };
    const ByteCount bytes = filled.memory().bytes();
    const Bound bounds[] = {
        {&Header::capacity, UndoHistory::capacity_min, UndoHistory::capacity_min - 1},
        {&Header::capacity, store::sequence_bytes_max, store::sequence_bytes_max + 1},
        {&Header::next_id, 1, 0},
        {&Header::base_id, 3, 4},
        {&Header::undoable, bytes, bytes + 1},
        {&Header::undoable, 1, 0},
        {&Header::redoable, bytes, bytes + 1},
        {&Header::redoable, 1, 0},
        {&Header::wrap, 0, 4},
    };
    for (const Bound& bound : bounds) {
        BOOST_TEST_CONTEXT("bound " << &bound - bounds) {
            BOOST_TEST(is_believed(filled, bound.field, bound.inside));
            BOOST_TEST(!is_believed(filled, bound.field, bound.outside));
        }
    }
    for (const auto field : {&Header::oldest, &Header::newest, &Header::before, &Header::behind, &Header::wrap}) {
        for (const std::uint64_t inside : {layout::first_step, bytes - 8, bytes}) BOOST_TEST(is_believed(filled, field, inside));
        for (const std::uint64_t outside : {layout::first_step - 8, layout::first_step + 4, bytes + 8})
            BOOST_TEST(!is_believed(filled, field, outside));
        if (field == &Header::wrap) continue;  // which has no count that goes with it
        BOOST_TEST(!is_believed(filled, field, 0));
        BOOST_TEST(!is_believed(empty, field, layout::first_step));
        BOOST_TEST(is_believed(empty, field, 0));
    }
}

BOOST_AUTO_TEST_CASE(hostile_bytes_are_an_error_and_never_more) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    constexpr ByteCount capacity = 64 * 1024;
    UndoHistory history = UndoHistory::create(std::make_unique<TestMemory>(capacity), capacity, true);
    for (int i = 0; i < 120; ++i) BOOST_REQUIRE(append(history, changes(random, 1500), "step"));
    for (int i = 0; i < 7; ++i) history.step_back(*history.to_undo());
    std::vector<std::uint64_t> heads;  // offsets of steps
    for (const StepView& step : history.newest(1000)) heads.push_back(step.offset);
    const std::byte* const image = history.memory().base();
    for (int round = 0; round < 4000; ++round) {
        auto memory = std::make_unique<TestMemory>(capacity);
        memory->extend(history.memory().bytes());
        std::memcpy(memory->base(), image, capacity);
        const auto random_word = [&]() -> std::uint64_t {
            switch (random() % 4) {
                case 0: return random();
                case 1: return heads[random() % heads.size()];
                case 2: return random() % 70'000;
                default: return random() % 8 * 8;
            }
        };
        const bool in_header = random() % 2 == 0;
        const std::uint64_t begin = in_header ? 0 : heads[random() % heads.size()];
        const std::uint64_t words = in_header ? sizeof(layout::HistoryHeader) / 8 : sizeof(layout::StepHead) / 8;
        for (unsigned i = 1 + static_cast<unsigned>(random() % 3); i-- > 0;) {
            const std::uint64_t word = random_word();
            std::memcpy(memory->base() + begin + random() % words * 8, &word, 8);
        }
        if (random() % 8 != 0) {  // with the right checksum, so that the value itself is looked at
            if (in_header) {
                const std::uint64_t magic = layout::header_magic;
                std::memcpy(memory->base(), &magic, 8);
                seal_header(memory->base());
            } else {
                const std::uint32_t name = 4;
                std::memcpy(memory->base() + begin + offsetof(layout::StepHead, name_bytes), &name, 4);
                seal_head(memory->base(), begin);
            }
        }
        use(std::move(memory), random);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
