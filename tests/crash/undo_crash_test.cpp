// A heap with an undo history through every crash state: what is recovered is one save, whole, and the history beside it fits its bytes: undone all the way down and
// redone all the way up it goes through the contents that the program saw.

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <taiyen/taiyen.hpp>

#include <boost/test/unit_test.hpp>

#include "base/planted.hpp"
#include "crash/budget.hpp"
#include "crash/explorer.hpp"
#include "crash/heap_scenarios.hpp"
#include "store/heap_access.hpp"
#include "undo/copy_recorder.hpp"
#include "undo/undo_service.hpp"

namespace taiyen::crash {
namespace {

using Texts = taiyen::map<int, taiyen::string>;

/// What a save holds, as a model that knows no bytes: the content after each step and the cursor; the steps' numbers tell saves apart.
struct SavedHistory {
    std::vector<std::string> states;
    std::size_t at = 0;
    std::vector<std::uint64_t> ids;
    bool names(const SavedHistory& other) const { return at == other.at && ids == other.ids; }
};
/// By save number; entry 0 stands for no heap.
using SavedHistories = std::vector<SavedHistory>;

/// A heap with a history, used by a random program that holds it against its model.
class UndoLife {
public:
    UndoLife(io::Storage& disk, io::RecordingStorage* marks, SavedHistories saves) : disk_(disk), marks_(marks), saves_(std::move(saves)) {}

    void create() {
        open_heap(store::OpenMode::create_only);
        heap_->construct<Texts>("texts");
        heap_->snapshot();
        heap_->attach_undo({.bytes = history_bytes});
        now_.states = {content()};
        edit("first", 1);
        save();
    }
    /// Opens, and finds out which save it is. Throws std::runtime_error: none, or another content.
    std::uint64_t open() {
        open_heap(store::OpenMode::open_only);
        heap_->attach_undo({.bytes = history_bytes});
        SavedHistory found;
        for (const UndoStep& step : heap_->undo_steps()) {
            found.ids.push_back(step.id);
            found.at += step.undone ? 0 : 1;
        }
        for (std::uint64_t number = saves_.size(); number-- > 1;) {
            if (saves_[number].names(found)) {
                now_ = saves_[number];
                expect("recovery");
                return number;
            }
        }
        throw std::runtime_error("the recovered history is that of no save");
    }
    void close() {
        heap_->close();
        abandon();
    }
    void abandon() {
        heap_.reset();
        file_.reset();
    }

    /// All the way down and up again, and back to where it stood.
    void walk() {
        const std::size_t at = now_.at;
        while (now_.at > 0) step_back();
        check(!heap_->can_undo(), "there is one step too many");
        while (now_.at + 1 < now_.states.size()) step_forward();
        check(!heap_->can_redo(), "there is one step too many");
        while (now_.at > at) step_back();
    }
    void prove() const {
        check(heap_->verify().ok(), "verify() finds damage");
    }

    void act(std::mt19937_64& random) {
        switch (random() % 9) {
            case 0:
            case 1:
                if (now_.at > 0) step_back();
                break;
            case 2:
                if (now_.at + 1 < now_.states.size()) step_forward();
                break;
            case 3: {
                UndoScope scope(*heap_, "cancelled");
                change(random());
                scope.cancel();
                expect("a cancel");
                break;
            }
            case 4: {  // outside scopes
                const CurrentHeap use(*heap_);
                change(random());
                keep();
                (void)heap_->can_undo();
                break;
            }
            case 5: save(); break;
            default: edit("edit", random());
        }
    }
    void save() {
        now_.ids.clear();
        for (const UndoStep& step : heap_->undo_steps()) now_.ids.push_back(step.id);
        const bool known = std::any_of(saves_.begin(), saves_.end(), [&](const SavedHistory& save) { return save.names(now_); });
        if (known) edit("makes it another save", 7);
        now_.ids.clear();
        for (const UndoStep& step : heap_->undo_steps()) now_.ids.push_back(step.id);
        saves_.push_back(now_);
        if (marks_ != nullptr) marks_->issue(saves_.size() - 1);
        heap_->snapshot();
        if (marks_ != nullptr) marks_->acknowledge(saves_.size() - 1);
    }
    const SavedHistories& saves() const { return saves_; }

private:
    static constexpr std::size_t history_bytes = 512 * 1024;

    static void check(bool right, const char* what) {
        if (!right) throw std::runtime_error(what);
    }
    void open_heap(store::OpenMode mode) {
        PersistentOptions options;
        options.capacity = 1_MiB;
        options.dirty_limit = 1_GiB;
        store::Tuning tuning;
        tuning.journal_bytes = 32_KiB;
        file_ = store::HeapFile::open(disk_, heap_path, mode, HeapKind::snapshot, options, tuning);
        heap_.emplace(HeapAccess::make<SnapshotHeap>(file_));
    }
    std::string content() {
        std::string all;
        for (const auto& [number, text] : *heap_->find<Texts>("texts")) all += std::to_string(number) + '=' + std::string(text) + ';';
        return all;
    }
    void expect(const char* after) {
        if (content() != now_.states[now_.at]) throw std::runtime_error(std::string("another content after ") + after);
    }
    /// Changes the content for certain.
    void change(std::uint64_t seed) {
        Texts& texts = *heap_->find<Texts>("texts");
        texts[static_cast<int>(seed % 5)] = std::string(30 + seed % 200 + (seed % 29 == 0 ? 20'000 : 0), static_cast<char>('a' + seed % 23)).c_str();
        texts[-1] = ("edit " + std::to_string(++edits_) + " of " + std::to_string(saves_.size())).c_str();
        if (seed % 3 == 0) texts.erase(static_cast<int>(seed / 5 % 5));
    }
    void edit(const char* name, std::uint64_t seed) {
        {
            UndoScope scope(*heap_, name);
            change(seed);
        }
        keep();
    }
    void keep() {
        now_.states.resize(now_.at + 1);
        now_.states.push_back(content());
        ++now_.at;
    }
    void step_back() {
        check(heap_->undo(), "a step to undo is missing");
        --now_.at;
        expect("undo");
    }
    void step_forward() {
        check(heap_->redo(), "a step to redo is missing");
        ++now_.at;
        expect("redo");
    }

    io::Storage& disk_;
    io::RecordingStorage* marks_;
    SavedHistories saves_;
    SavedHistory now_;
    std::uint64_t edits_ = 0;
    std::shared_ptr<store::HeapFile> file_;
    std::optional<SnapshotHeap> heap_;
};

class UndoSubject final : public Subject {
public:
    explicit UndoSubject(SavedHistories saves) : saves_(std::move(saves)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t state) override {
        UndoLife life(disk, nullptr, saves_);
        const std::uint64_t save = life.open();
        life.walk();
        if (state % 4 == 0) life.prove();
        if (state / 4 % 4 == 0) {  // life goes on, and the next opening finds it
            std::mt19937_64 random(state);
            for (int i = 0; i < 4; ++i) life.act(random);
            life.save();
            life.close();
            UndoLife after(disk, nullptr, life.saves());
            if (after.open() + 1 != life.saves().size()) throw std::runtime_error("a save made after recovery is not there after closing");
            after.walk();
            disk.disconnect();
            after.abandon();
            return save;
        }
        disk.disconnect();
        life.abandon();
        return save;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage& disk, std::uint64_t save, std::uint64_t state) override {
        UndoLife life(disk, &disk, SavedHistories(saves_.begin(), saves_.begin() + static_cast<std::ptrdiff_t>(save + 1)));
        std::mt19937_64 random(state);
        (void)life.open();
        for (int i = 0; i < 4; ++i) life.act(random);
        life.save();
        if (random() % 4 != 0) life.close();
        return std::make_unique<UndoSubject>(life.saves());
    }

private:
    SavedHistories saves_;
};

struct Outcome {
    Tally tally;
    std::optional<Failure> failure;
};

Outcome run(std::uint64_t program, const Effort& effort) {
    const SilentReports silent;
    const auto recorders = std::exchange(undo::UndoService::make_recorder, &undo::test::make_copy_recorder);
    repeatable_random = effort.seed | 1U;
    Outcome outcome;
    const std::string name = "undo-" + std::to_string(program);
    try {
        io::SimulatedStorage disk;
        disk.add_directory("/disk");
        SavedHistories saves(1);
        {
            UndoLife before(disk, nullptr, saves);
            before.create();
            before.close();
            saves = before.saves();
        }
        const std::uint64_t acknowledged = saves.size() - 1;
        const Image base = image_of(disk);
        io::RecordingStorage recorder(disk);
        UndoLife life(recorder, &recorder, saves);
        std::mt19937_64 random(program);
        (void)life.open();
        for (int i = 0; i < 40; ++i) life.act(random);
        life.save();
        life.walk();
        life.close();
        const io::Trace trace = recorder.take_trace();
        UndoSubject subject(life.saves());
        Explorer explorer(name, effort);
        outcome.failure = explorer.explore(base, trace, subject, acknowledged);
        outcome.tally = explorer.tally();
    } catch (const std::exception& error) {
        outcome.failure = Failure{name + ":live", error.what()};
    }
    undo::UndoService::make_recorder = recorders;
    return outcome;
}

class Planted {
public:
    explicit Planted(Bug bug) { planted_bug = bug; }
    Planted(const Planted&) = delete;
    Planted& operator=(const Planted&) = delete;
    ~Planted() { planted_bug = Bug::none; }
};

BOOST_AUTO_TEST_SUITE(a_heap_with_a_history)

BOOST_AUTO_TEST_CASE(keeps_content_and_history_together_through_every_crash_state) {
    const std::uint64_t seed = seed_of_this_run();
    Tally total;
    for (std::uint64_t program = 1; program <= 2; ++program) {
        Effort effort;
        effort.seed = seed;
        effort.states_per_cut = static_cast<std::uint64_t>(16 * budget()) + 4;
        effort.nested_one_in = 100;
        effort.nested_states_per_cut = 10;
        const Outcome outcome = run(program, effort);
        total.add(outcome.tally);
        if (outcome.failure) BOOST_ERROR(outcome.failure->id << ": " << outcome.failure->what);
    }
    std::printf("histories: %llu states, %llu distinct, nested %llu, %llu distinct\n", static_cast<unsigned long long>(total.states),
                static_cast<unsigned long long>(total.distinct), static_cast<unsigned long long>(total.nested_states),
                static_cast<unsigned long long>(total.nested_distinct));
    BOOST_TEST(total.distinct > 0U);
}

BOOST_AUTO_TEST_CASE(whose_cursor_is_outside_the_record_is_caught) {
    const Planted switched(Bug::cursor_outside_record);
    const Outcome outcome = run(1, {.states_per_cut = 40, .nested_one_in = 50, .nested_states_per_cut = 20, .seed = seed_of_this_run()});
    BOOST_REQUIRE(outcome.failure);
    std::printf("cursor_outside_record: %s: %s\n", outcome.failure->id.c_str(), outcome.failure->what.c_str());
}

BOOST_AUTO_TEST_CASE(that_drops_an_implicit_step_is_caught_by_the_model) {
    const Planted switched(Bug::drop_implicit_step);
    const Outcome outcome = run(1, {.states_per_cut = 4, .seed = seed_of_this_run()});
    BOOST_REQUIRE(outcome.failure);
    std::printf("drop_implicit_step: %s: %s\n", outcome.failure->id.c_str(), outcome.failure->what.c_str());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
