// A heap with an undo history through every crash state: what is recovered is one save, whole, and the history beside it fits its bytes: undone all the way down and
// redone all the way up it goes through the contents that the program saw.

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/taiyen.hpp>

#include "base/planted.hpp"
#include "crash/heap_scenarios.hpp"
#include "crash/history_room.hpp"
#include "crash/scenario.hpp"
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
    ByteCount room = 0;
    bool names(const SavedHistory& other) const { return at == other.at && ids == other.ids && room == other.room; }
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
        now_.room = history_bytes;
        now_.states = {content()};
        edit("first", 1);
        save();
    }
    /// Opens, and finds out which save it is. Throws std::runtime_error: none, or another content.
    std::uint64_t open() {
        open_heap(store::OpenMode::open_only);
        heap_->attach_undo({.bytes = history_bytes});
        SavedHistory found;
        found.room = history_room(*file_);
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
    void prove() const { check(heap_->verify().ok(), "verify() finds damage"); }

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
                refuse_to_save();
                scope.cancel();
                expect("a cancel");
                break;
            }
            case 4: {  // outside scopes
                change(random());
                keep();
                (void)heap_->can_undo();
                break;
            }
            case 5: save(); break;
            default: edit("edit", random());
        }
    }
    /// The history gets another room, for which it may drop its oldest steps.
    void resize(ByteCount bytes) {
        std::vector<UndoStep> steps = heap_->undo_steps();
        ByteCount total = page_bytes;
        for (const UndoStep& step : steps) total += step.bytes;
        std::size_t dropped = 0;
        for (; total > bytes; ++dropped) total -= steps[dropped].bytes;
        heap_->resize_undo(bytes);
        now_.room = bytes;
        lose_oldest(dropped);
        check(heap_->undo_steps().size() + 1 == now_.states.size(), "resizing has dropped other steps than the oldest, for which there is no room");
        expect("resizing");
    }
    void edit(const char* name, std::uint64_t seed) {
        {
            UndoScope scope(*heap_, name);
            change(seed);
        }
        keep();
    }
    void step_back() {
        check(heap_->undo(), "a step to undo is missing");
        --now_.at;
        expect("undo");
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
    void refuse_to_save() {
        try {
            heap_->snapshot();
        } catch (const Error& error) {
            if (error.code() == errc::scope_open) return;
            throw;
        }
        throw std::runtime_error("a heap was saved within a scope");
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
    void keep() {
        now_.states.resize(now_.at + 1);
        now_.states.push_back(content());
        ++now_.at;
        lose_oldest(now_.states.size() - 1 - heap_->undo_steps().size());  // the history is circular
    }
    void lose_oldest(std::size_t count) {
        check(count <= now_.at, "steps that can be redone are lost");
        now_.states.erase(now_.states.begin(), now_.states.begin() + static_cast<std::ptrdiff_t>(count));
        now_.at -= count;
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

/// The heap's recorders are those of the tests: they need no page faults.
std::shared_ptr<void> copying_recorders() {
    const auto before = std::exchange(undo::UndoService::make_recorder, &undo::test::make_copy_recorder);
    return {nullptr, [before](void*) { undo::UndoService::make_recorder = before; }};
}

void act_at_random(UndoLife& life, std::uint64_t program) {
    std::mt19937_64 random(program);
    for (int i = 0; i < 40; ++i) life.act(random);
}

/// The history becomes smaller and larger: its steps move, the oldest are dropped, some stand behind the cursor. No room is too small for any step.
void resize_steps(UndoLife& life) {
    std::uint64_t seed = 1;
    const auto edit = [&](int count) {
        for (; count > 0; --count) life.edit("edit", ++seed);
    };
    const auto edit_much = [&](int count) {
        for (; count > 0; --count) life.edit("large", 29 * ++seed);
    };
    edit(3);
    edit_much(8);
    edit(3);
    life.save();
    life.step_back();
    life.resize(128_KiB);  // some of the large ones are dropped, what is undone is not
    life.save();
    edit_much(6);  // round it
    edit(2);
    life.save();
    life.resize(256_KiB);
    life.save();
    life.step_back();
    life.step_back();
    life.resize(1_MiB);
    life.resize(128_KiB);
    life.save();
}

Recording record_program(const std::function<void(UndoLife&)>& program, Bug bug) {
    Recording recording;
    recording.surroundings = copying_recorders();
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    SavedHistories saves(1);
    {
        UndoLife before(disk, nullptr, saves);
        before.create();
        before.close();
        saves = before.saves();
    }
    recording.acknowledged = saves.size() - 1;
    recording.base = image_of(disk);
    io::RecordingStorage recorder(disk);
    UndoLife life(recorder, &recorder, saves);
    (void)life.open();
    planted_bug = bug;
    program(life);
    life.save();
    life.walk();
    life.close();
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<UndoSubject>(life.saves());
    return recording;
}

}  // namespace

std::vector<CrashScenario> undo_crash_scenarios() {
    std::vector<CrashScenario> all;
    const auto add = [&](std::string name, const std::function<void(UndoLife&)>& program) {
        all.push_back({.name = std::move(name),
                       .about = "histories of undo",
                       .states_per_cut = 16,
                       .nested_one_in = 100,
                       .nested_states_per_cut = 10,
                       .record = [program](std::uint64_t, Bug bug) { return record_program(program, bug); }});
    };
    for (std::uint64_t program = 1; program <= 2; ++program)
        add("undo-" + std::to_string(program), [program](UndoLife& life) { act_at_random(life, program); });
    add("undo-resize", resize_steps);
    return all;
}

}  // namespace taiyen::crash
