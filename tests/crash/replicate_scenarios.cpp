// A replicated heap: after any crash of the host, whose disk the target shares here, what the target holds is a state that the heap has gone through, with everything that it was told to have; and both go on.

#include "crash/replicated_life.hpp"

namespace taiyen::crash {
namespace {

/// The number of a state is that of the newest transaction that the target has.
class ReplicateSubject final : public Subject {
public:
    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t state) override {
        const std::uint64_t here = state_of(disk, replicated_path);
        const std::uint64_t there = restored_state(disk);
        {
            const auto target = ReplicationAccess::directory(disk, frames_path);
            if (const auto range = target->range(); !range.empty()) (void)replicate::Frame(*target, range.first);  // it says what is there
        }
        if (there > here)
            throw std::runtime_error("the target has transaction " + std::to_string(there) + ", the heap " + std::to_string(here) + " only");
        if (mix(state, 0x61'7474) % 3 == 0) {  // both go on
            const auto target = ReplicationAccess::directory(disk, frames_path);
            ReplicatedLife life(disk, replicated_path);
            life.open(store::OpenMode::open_only);
            life.attach(*target);
            life.transact();
            const std::uint64_t newest = life.transact();
            life.shipper().ship();
            life.close();
            if (const std::uint64_t now = restored_state(disk); now != newest)
                throw std::runtime_error("after going on, the target has transaction " + std::to_string(now) + ", the heap " +
                                         std::to_string(newest));
        }
        return there;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }
};

struct ReplicatePiece {
    const char* name;
    void (*before)(ReplicationSteps&);
    void (*life)(ReplicationSteps&);
};

Recording record_replication(const ReplicatePiece& piece, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    add_directories(disk);
    {
        const auto target = ReplicationAccess::directory(disk, frames_path);
        ReplicatedLife life(disk, replicated_path);
        life.open(store::OpenMode::create_only);
        ReplicationSteps steps(life, *target, nullptr);
        piece.before(steps);
        life.close();
        recording.acknowledged = restored_state(disk);
    }
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    const auto target = ReplicationAccess::directory(recorder, frames_path);
    ReplicatedLife life(recorder, replicated_path);
    life.open(store::OpenMode::open_only);
    ReplicationSteps steps(life, *target, &recorder);
    steps.note_newest();
    piece.life(steps);
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<ReplicateSubject>();
    disk.disconnect();
    life.abandon();
    return recording;
}

/// 1: the restored heap is there.
class RestoreSubject final : public Subject {
public:
    explicit RestoreSubject(std::uint64_t newest) : newest_(newest) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        const bool is_there = disk.find(restored_path).has_value();
        if (!is_there) {  // the next one removes what is left of it
            const auto target = ReplicationAccess::directory(disk, frames_path);
            (void)replicate::Restorer(disk, *target, restored_path, {}).run();
        }
        if (state_of(disk, restored_path) != newest_) throw std::runtime_error("the restored heap is not the newest state");
        for (const auto& [path, node] : disk.files())
            if (path.string().find("restoring") != std::string::npos) throw std::runtime_error("restoring has left " + path.string());
        return is_there ? 1 : 0;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    std::uint64_t newest_;
};

Recording record_restoring(Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    add_directories(disk);
    std::uint64_t newest = 0;
    {
        const auto target = ReplicationAccess::directory(disk, frames_path);
        ReplicatedLife life(disk, replicated_path);
        life.open(store::OpenMode::create_only);
        ReplicationSteps steps(life, *target, nullptr);
        steps.transact(3);
        steps.attach();
        steps.transact(3);
        steps.ship();
        newest = life.compare();
        life.close();
        remove_heap(disk, replicated_path);
    }
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    const auto target = ReplicationAccess::directory(recorder, frames_path);
    recorder.issue(1);
    (void)replicate::Restorer(recorder, *target, restored_path, {}).run();
    recorder.acknowledge(1);
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<RestoreSubject>(newest);
    return recording;
}

constexpr ReplicatePiece replicate_pieces[] = {
    {"replicate-ship",
     [](ReplicationSteps& steps) {
         steps.transact(2);
         steps.attach();
         steps.transact();
         steps.ship();
     },
     [](ReplicationSteps& steps) {
         steps.attach(1);
         steps.transact();
         steps.ship();
         steps.transact(2);
         steps.snapshot();
         steps.ship();
     }},
    {"replicate-attach", [](ReplicationSteps& steps) { steps.transact(2); },
     [](ReplicationSteps& steps) {
         steps.attach();
         steps.transact();
         steps.ship();
         steps.transact();
         steps.reopen();
         steps.attach();
         steps.transact();
         steps.ship();
     }},
    {"replicate-base",
     [](ReplicationSteps& steps) {
         steps.transact(5);
         steps.attach();
     },
     [](ReplicationSteps& steps) {
         steps.attach();
         steps.transact(3);  // one of them larger than the log
         steps.ship();
         steps.transact();
         steps.make_base();
         steps.transact();
         steps.ship();
         steps.trim();
     }},
};

}  // namespace

std::vector<CrashScenario> replicate_crash_scenarios() {
    std::vector<CrashScenario> all;
    const auto add = [&](const char* name, std::function<Recording(Bug)> record) {
        all.push_back(
            {.name = name, .about = "replicated heaps", .states_per_cut = 600, .nested_one_in = 0, .record = [record](std::uint64_t, Bug bug) {
                 return record(bug);
             }});
    };
    for (const ReplicatePiece& piece : replicate_pieces) add(piece.name, [&piece](Bug bug) { return record_replication(piece, bug); });
    add("replicate-restore", record_restoring);
    return all;
}

}  // namespace taiyen::crash
