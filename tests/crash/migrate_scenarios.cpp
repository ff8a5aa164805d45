// Objects become objects of changed types, and then what they were. After any crash all of them are of the one kind or of the other, whole, and nothing is left over.

#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <variant>

#include <taiyen/inspect/leaks.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/view_text.hpp>
#include <taiyen/migrate/migration.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "base/planted.hpp"
#include "crash/scenario.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::crash {

// A field more and one less, another name, another order; numbers wider and narrower; another container; another alternative; a value that may be missing; a structure within structures; pointers to what moves; a unit.
struct MigratedWheel {
    std::int32_t teeth = 0;
    float width = 0;
    TAIYEN_DESCRIBE(MigratedWheel, teeth, width)
};
struct MigratedClock {
    taiyen::string name;
    std::int64_t seconds = 0;
    taiyen::map<int, MigratedWheel> wheels;
    taiyen::vector<taiyen::string> words;
    std::variant<int, taiyen::string> value;
    int hands = 2;
    MigratedWheel* largest = nullptr;
    MigratedWheel* spare = nullptr;
};
struct ChangedWheel {
    taiyen::string maker;
    double width = 0;
    std::int16_t teeth = 0;
    TAIYEN_DESCRIBE(ChangedWheel, maker, width, teeth)
};
struct ChangedClock {
    std::optional<int> hands;
    taiyen::string title;
    std::int64_t minutes = 0;
    taiyen::btree_map<int, taiyen::string> notes;
    taiyen::map<long, ChangedWheel> wheels;
    taiyen::deque<taiyen::string> words;
    std::variant<int, taiyen::string, double> value;
    ChangedWheel* largest = nullptr;
    ChangedWheel* spare = nullptr;
};

namespace {

const std::filesystem::path clocks_path = "/disk/clocks.tyn";

PersistentOptions clock_options() {
    PersistentOptions options;
    options.capacity = 1_MiB;
    options.log_capacity = 256_KiB;
    options.capture = Capture::pages;
    options.loss_window = std::chrono::hours(1);  // nothing is written by the clock
    options.snapshot_log_fill = 1e9;              // nothing but a full log asks for snapshots
    return options;
}

std::shared_ptr<store::HeapFile> open_clocks(io::Storage& disk, store::OpenMode mode, HeapKind kind) {
    auto file = store::HeapFile::open(disk, clocks_path, mode, kind, clock_options(), store::Tuning{32768});
    if (kind == HeapKind::transactional && mode != store::OpenMode::read_only) txn::TransactionService::join(*file, clock_options());
    return file;
}

/// All that a program without the types sees.
std::string told(const ArchiveHeap& heap) {
    std::ostringstream text;
    const View view(heap);
    for (const std::string& name : view.names()) {
        text << name << ": ";
        write_json(text, *view.find(name));
        text << '\n';
    }
    return text.str();
}

void make_clocks(io::Storage& disk) {
    auto file = open_clocks(disk, store::OpenMode::create_only, HeapKind::archive);
    auto heap = HeapAccess::make<ArchiveHeap>(file);
    for (const char* name : {"clock", "watch"}) {
        auto& clock = heap.construct<MigratedClock>(name);
        clock.name = "a name that is too long to lie within itself";
        clock.seconds = 600;
        for (int i = 0; i != 6; ++i) clock.wheels[i] = {i, static_cast<float>(i) / 4};
        clock.words = {"tick", "a word that is too long to lie within itself"};
        clock.value.emplace<1>("another one that is too long for that");
        clock.largest = &clock.wheels.at(5);
        clock.spare = heap.make<MigratedWheel>();
        clock.spare->teeth = 77;
    }
    heap.snapshot();
    heap.close();
}

template <class Heap>
void change_clocks(Heap& heap) {
    Migration change(heap);
    change.object<ChangedClock>("clock")
        .object<ChangedClock>("watch")
        .template renamed<ChangedClock>("name", "title")
        .template dropped<ChangedClock>("seconds");
    change.template with<ChangedClock>([](const ViewValue& old, ChangedClock& now) {
        now.minutes = old.get<std::int64_t>("seconds") / 60;
        now.notes.emplace(1, "a note that is too long to lie within itself");
    });
    change.run();
}

template <class Heap>
void change_back(Heap& heap) {
    Migration change(heap);
    change.object<MigratedClock>("clock")
        .object<MigratedClock>("watch")
        .template renamed<MigratedClock>("title", "name")
        .template dropped<MigratedWheel>("maker");
    change.template with<MigratedClock>([](const ViewValue& old, MigratedClock& now) { now.seconds = old.get<std::int64_t>("minutes") * 60; });
    change.run();
}

class ClockSubject final : public Subject {
public:
    explicit ClockSubject(std::vector<std::string> states) : states_(std::move(states)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        auto heap = HeapAccess::make<ArchiveHeap>(open_clocks(disk, store::OpenMode::open_only, HeapKind::archive));
        const std::string now = told(heap);
        const auto found = std::find(states_.begin(), states_.end(), now);
        if (found == states_.end()) throw std::runtime_error("the objects are neither as before a migration nor as behind it: " + now);
        if (const Report report = heap.verify(); !report.ok()) throw std::runtime_error("verify() finds: " + report.findings.front().what);
        if (const LeakReport leaks = find_leaks(heap); leaks.leaked_blocks != 0)
            throw std::runtime_error(std::to_string(leaks.leaked_blocks) + " blocks are left over");
        heap.close();
        return static_cast<std::uint64_t>(found - states_.begin());
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    std::vector<std::string> states_;
};

template <class Heap>
Recording record_migrations(HeapKind kind, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    make_clocks(disk);
    if (kind != HeapKind::archive) open_clocks(disk, store::OpenMode::open_only, kind)->close();  // its files are attached
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    std::vector<std::string> states;
    {
        auto heap = HeapAccess::make<Heap>(open_clocks(recorder, store::OpenMode::open_only, kind));
        states.push_back(told(heap));
        for (int step = 0; step != 3; ++step) {
            const std::uint64_t number = states.size();
            recorder.issue(number);
            if (step % 2 == 0)
                change_clocks(heap);
            else
                change_back(heap);
            if (kind != HeapKind::transactional) heap.snapshot();
            states.push_back(told(heap));
            recorder.acknowledge(number);
        }
        heap.close();
    }
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<ClockSubject>(std::move(states));
    return recording;
}

}  // namespace

std::vector<CrashScenario> migrate_crash_scenarios() {
    std::vector<CrashScenario> all;
    const auto add = [&](const char* name, std::function<Recording(std::uint64_t, Bug)> record) {
        all.push_back({.name = name, .about = "objects of changed types", .states_per_cut = 100, .record = std::move(record)});
    };
    add("migrate-archive", [](std::uint64_t, Bug bug) { return record_migrations<ArchiveHeap>(HeapKind::archive, bug); });
    add("migrate-snapshot", [](std::uint64_t, Bug bug) { return record_migrations<SnapshotHeap>(HeapKind::snapshot, bug); });
    add("migrate-log", [](std::uint64_t, Bug bug) { return record_migrations<TransactionalHeap>(HeapKind::transactional, bug); });
    return all;
}

}  // namespace taiyen::crash
