// Two heaps of a group: after any crash of the host, whose disk the targets share here, the newest cut is there that was told, and gives both heaps as of one moment.

#include "crash/replicated_life.hpp"
#include "replicate/cutter.hpp"

namespace taiyen::crash {
namespace {

constexpr std::array<const char*, 2> member_names{"first", "second"};
const std::filesystem::path cuts_path = "/disk/cuts";

std::filesystem::path heap_path_of(std::size_t which) { return std::string("/disk/") + member_names[which] + ".tyn"; }
std::filesystem::path frames_path_of(std::size_t which) { return std::string("/disk/") + member_names[which]; }

/// A replicated heap of one thread: it is replicated when a cut asks for it.
class SteppedMember final : public replicate::GroupMember {
public:
    explicit SteppedMember(ReplicatedLife& life) : life_(life) {}
    store::HeapFile& heap_file() const noexcept override { return life_.file(); }
    const log::GroupLog& log() const override { return txn::TransactionService::of(life_.file())->log(); }
    bool wait_replicated(Serial serial, std::chrono::milliseconds) const override {
        life_.shipper().ship();
        return life_.shipper().shipped() >= serial;
    }
    bool is_exact(Serial serial) const override { return serial >= life_.shipper().exact_from(); }
    bool has_unlogged(Serial) const override { return false; }
    bool keep_from(const Uuid& group, std::optional<Serial> serial, std::chrono::milliseconds) override {
        life_.shipper().keep(group.bytes, serial);
        return true;
    }

private:
    ReplicatedLife& life_;
};

/// Two heaps, each into a directory, and a third one of cuts. What is committed is committed to the first one first.
class GroupLife {
public:
    explicit GroupLife(io::Storage& disk) : cuts_(ReplicationAccess::directory(disk, cuts_path)) {
        for (std::size_t i = 0; i < member_names.size(); ++i) {
            targets_[i] = ReplicationAccess::directory(disk, frames_path_of(i));
            lives_[i].emplace(disk, heap_path_of(i));
        }
    }
    void open(store::OpenMode mode) {
        for (std::size_t i = 0; i < member_names.size(); ++i) {
            lives_[i]->open(mode);
            lives_[i]->attach(*targets_[i]);
        }
        cutter_.emplace(*cuts_, std::chrono::milliseconds(0));
        for (std::size_t i = 0; i < member_names.size(); ++i) cutter_->add(member_names[i], std::make_shared<SteppedMember>(*lives_[i]));
    }
    void transact() {
        for (auto& life : lives_) life->transact();
    }
    /// As after a long time.
    void base_and_trim() {
        for (auto& life : lives_) {
            life->shipper().make_base();
            life->shipper().trim(~std::uint64_t{0});
        }
    }
    const replicate::Cut& cut(std::string_view mark = {}) { return cutter_->cut(mark); }
    replicate::Cutter& cutter() { return *cutter_; }
    void close() {
        cutter_.reset();
        for (auto& life : lives_) life->close();
    }
    void abandon() {
        cutter_.reset();
        for (auto& life : lives_) life->abandon();
    }

private:
    std::shared_ptr<ReplicationTarget> cuts_;
    std::array<std::shared_ptr<ReplicationTarget>, 2> targets_;
    std::array<std::optional<ReplicatedLife>, 2> lives_;
    std::optional<replicate::Cutter> cutter_;
};

/// The number of a state is the transaction of the newest cut. Each transaction has one of its number in the other heap.
class GroupSubject final : public Subject {
public:
    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        const auto cuts = ReplicationAccess::directory(disk, cuts_path);
        const auto cut = replicate::find_cut(*cuts, std::nullopt, {});
        if (!cut) return 0;
        const std::vector<replicate::Cut> marks = replicate::marks_in(*cuts);
        for (const replicate::Cut& mark : marks) {
            restore(disk, mark);
            require_kept(disk, mark);
        }
        restore(disk, *cut);
        return cut->members.front().serial.value;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    /// Whoever replicates the heaps next keeps what the mark needs.
    static void require_kept(io::SimulatedStorage& disk, const replicate::Cut& mark) {
        for (std::size_t i = 0; i < member_names.size(); ++i) {
            const auto target = ReplicationAccess::directory(disk, frames_path_of(i));
            const auto kept = replicate::kept_at(*target, replicate::Frame(*target, target->range().last).head());
            if (kept.size() != 1 || kept.begin()->second > mark.members[i].serial)
                throw std::runtime_error("what the mark needs of " + std::string(member_names[i]) + " is not kept");
        }
    }
    static void restore(io::SimulatedStorage& disk, const replicate::Cut& cut) {
        if (cut.members.size() != 2 || cut.members[0].serial != cut.members[1].serial) throw std::runtime_error("a cut is of no moment");
        for (std::size_t i = 0; i < member_names.size(); ++i) {
            const auto target = ReplicationAccess::directory(disk, frames_path_of(i));
            const Serial serial = cut.members[i].serial;
            (void)replicate::Restorer(disk, *target, restored_path, {.serial = serial}).run();
            const std::uint64_t state = state_of(disk, restored_path);
            remove_heap(disk, restored_path);
            if (state != serial.value)
                throw std::runtime_error(std::string(member_names[i]) + " is as of transaction " + std::to_string(state) + ", and the cut of " +
                                         std::to_string(serial.value));
        }
    }
};

Recording record_cuts(Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    add_directories(disk);
    {
        GroupLife group(disk);
        group.open(store::OpenMode::create_only);
        group.transact();
        recording.acknowledged = group.cut().members.front().serial.value;
        group.close();
    }
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    GroupLife group(recorder);
    group.open(store::OpenMode::open_only);
    std::uint64_t newest = recording.acknowledged;
    const auto cut = [&](std::string_view mark) {
        group.transact();
        recorder.issue(++newest);
        (void)group.cut(mark);
        recorder.acknowledge(newest);
    };
    cut({});
    cut("kept");
    group.base_and_trim();
    cut("kept");
    group.base_and_trim();
    cut({});
    group.cutter().unmark("kept");
    cut({});
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<GroupSubject>();
    disk.disconnect();
    group.abandon();
    return recording;
}

}  // namespace

std::vector<CrashScenario> group_cut_crash_scenarios() {
    return {{.name = "group-cuts", .about = "groups", .states_per_cut = 400, .nested_one_in = 0, .record = [](std::uint64_t, Bug bug) {
                 return record_cuts(bug);
             }}};
}

}  // namespace taiyen::crash
