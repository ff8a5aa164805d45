// Copies of a heap: after any crash there is none, or a whole one; the heap itself is as it was.

#include <stdexcept>

#include "crash/heap_life.hpp"
#include "crash/piece_of_life.hpp"
#include "crash/scenario.hpp"

namespace taiyen::crash {
namespace {

const std::filesystem::path copy_path = "/disk/copy.tyn";

/// 1: the copy is there.
class CopySubject final : public Subject {
public:
    CopySubject(const HeapSetup& setup, History history) : setup_(setup), history_(std::move(history)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        require_newest(disk, setup_, true);
        if (!disk.find(copy_path)) return 0;
        // In the heap's place it is the heap.
        const auto copy = disk.node(copy_path);
        for (const std::filesystem::path& path : {HeapSetup::path(), setup_.data_path(), setup_.log_path()})
            if (disk.find(path)) disk.take_away(path);
        disk.put(HeapSetup::path(), copy);
        HeapSetup alone = setup_;
        alone.kind = HeapKind::archive;
        require_newest(disk, alone, false);
        return 1;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    void require_newest(io::SimulatedStorage& disk, const HeapSetup& setup, bool may_be_older) const {
        HeapLife life(disk, nullptr, setup, history_);
        life.open();
        if (life.compare() + 1 != history_.size() && !may_be_older) throw std::runtime_error("the copy is not the newest save");
        life.prove();
        life.close();
    }

    HeapSetup setup_;
    History history_;
};

Recording record_copy(const HeapSetup& setup, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    add_directories(disk);
    History history;
    {
        HeapLife life(disk, nullptr, setup);
        life.create();
        life.put("a", 9000, 1);
        life.put("b", 300, 2);
        if (setup.annex) life.write_annex(0, 6000, 3);
        life.save();
        life.close();
        history = life.history();
    }
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    HeapLife life(recorder, nullptr, setup, history);
    life.open();
    life.touch("a", 4);
    life.save();  // for the journal: what it holds must get into the copy
    recorder.issue(1);
    life.heap().companions().write_copy(copy_path);
    recorder.acknowledge(1);
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<CopySubject>(setup, life.history());
    disk.disconnect();
    life.abandon();
    return recording;
}

}  // namespace

std::vector<CrashScenario> copy_crash_scenarios() {
    std::vector<CrashScenario> all;
    const auto add = [&](const char* name, const HeapSetup& setup) {
        all.push_back({.name = name, .about = "copies of heaps", .states_per_cut = 60, .nested_one_in = 0, .record = [setup](std::uint64_t, Bug bug) {
                           return record_copy(setup, bug);
                       }});
    };
    add("copy-archive", {.kind = HeapKind::archive});
    add("copy-snapshot", {.kind = HeapKind::snapshot, .annex = true});
    return all;
}

}  // namespace taiyen::crash
