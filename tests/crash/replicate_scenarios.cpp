// A replicated heap: after any crash of the host, whose disk the target shares here, what the target holds is a state that the heap has gone through, with everything that it was told to have; and both go on.

#include <stdexcept>
#include <string>

#include <taiyen/base/error.hpp>
#include <taiyen/taiyen.hpp>

#include "base/checksum.hpp"
#include "crash/scenario.hpp"
#include "io/disks/recording_storage.hpp"
#include "replicate/directory_files.hpp"
#include "replicate/restorer.hpp"
#include "replicate/shipper.hpp"
#include "store/heap_access.hpp"

namespace taiyen::crash {
namespace {

const std::filesystem::path replicated_path = "/disk/heap.tyn";
const std::filesystem::path restored_path = "/disk/restored.tyn";
const std::filesystem::path frames_path = data_directory;

using Words = taiyen::vector<std::uint64_t>;
constexpr std::uint64_t cells = 40;
constexpr std::uint64_t cell_words = 256;
/// These transactions take more than the log has room for.
constexpr bool is_large(std::uint64_t serial) { return serial % 8 == 7; }

std::uint64_t word_of(std::uint64_t serial) { return mix(serial, 0x7265'706c); }

/// A heap whose transactions, each with a serial of its own, leave what follows from that number.
class ReplicatedLife {
public:
    ReplicatedLife(io::Storage& disk, const std::filesystem::path& path) : disk_(disk), path_(path) {}

    void open(store::OpenMode mode) {
        PersistentOptions options;
        options.capacity = 8_MiB;
        options.log_capacity = 64_KiB;
        options.snapshot_log_fill = 1;  // only when it is asked
        options.snapshot_interval = {};
        store::Tuning tuning;
        tuning.join = [&](store::HeapFile& file) { txn::TransactionService::join(file, options); };
        file_ = store::HeapFile::open(disk_, path_, mode, HeapKind::transactional, options, tuning);
        heap_.emplace(HeapAccess::make<TransactionalHeap>(file_));
    }
    void attach(ReplicationTarget& target, ByteCount frame_bytes = 256_KiB) {
        shipper_.emplace(*file_, *txn::TransactionService::of(*file_), target, frame_bytes);
        shipper_->attach();
    }
    TransactionalHeap& heap() { return *heap_; }
    replicate::Shipper& shipper() { return *shipper_; }
    /// The next transaction; returns its number.
    std::uint64_t transact() {
        Transaction transaction(*heap_);
        auto& words = heap_->find_or_construct<Words>("words");
        const std::uint64_t serial = words.size() + 1;
        if (serial == 1) heap_->construct<Words>("cells").resize(cells * cell_words);
        words.push_back(word_of(serial));
        auto& all = *heap_->find<Words>("cells");
        const auto fill = [&](std::uint64_t cell) {
            for (std::uint64_t i = 0; i < cell_words; ++i) all[cell * cell_words + i] = word_of(serial + i);
        };
        if (is_large(serial))
            for (std::uint64_t cell = 0; cell < cells; ++cell) fill(cell);
        else
            fill(serial % cells);
        transaction.commit();
        return serial;
    }
    /// The number of the newest transaction. Throws: the heap isn't what it left.
    std::uint64_t compare() const {
        const auto* const words = heap_->find<Words>("words");
        const std::uint64_t serial = words == nullptr ? 0 : words->size();
        if (serial == 0) return 0;
        for (std::uint64_t i = 0; i < serial; ++i)
            if ((*words)[i] != word_of(i + 1))
                throw std::runtime_error("word " + std::to_string(i) + " is another one after transaction " + std::to_string(serial));
        const auto& all = *heap_->find<Words>("cells");
        for (std::uint64_t cell = 0; cell < cells; ++cell) {
            std::uint64_t last = serial;
            while (last != 0 && !is_large(last) && last % cells != cell) --last;
            for (std::uint64_t i = 0; i < cell_words; ++i)
                if (all[cell * cell_words + i] != (last == 0 ? 0 : word_of(last + i)))
                    throw std::runtime_error("cell " + std::to_string(cell) + " is another one after transaction " + std::to_string(serial));
        }
        return serial;
    }
    void prove() const {
        for (const heap::Damage& damage : file_->engine().check(1)) throw std::runtime_error("engine: " + damage.what);
        for (const Finding& finding : heap_->verify().findings)
            if (finding.severity != Severity::note) throw std::runtime_error("verify: " + finding.path.string() + ": " + finding.what);
    }
    void close() {
        shipper_.reset();
        heap_->close();
        heap_.reset();
        file_.reset();
    }
    void abandon() {
        shipper_.reset();
        try {
            heap_.reset();
            file_.reset();
        } catch (const std::exception&) {  // the disk is gone
        }
    }

private:
    io::Storage& disk_;
    std::filesystem::path path_;
    std::shared_ptr<store::HeapFile> file_;
    std::optional<TransactionalHeap> heap_;
    std::optional<replicate::Shipper> shipper_;
};

/// Of what is on the disk under that name, proven. Nothing stays open.
std::uint64_t state_of(io::Storage& disk, const std::filesystem::path& path) {
    ReplicatedLife life(disk, path);
    life.open(store::OpenMode::open_only);
    const std::uint64_t state = life.compare();
    life.prove();
    life.close();
    return state;
}

void remove_heap(io::Storage& disk, const std::filesystem::path& path) {
    for (const char* suffix : {"", ".log", ".journal"}) disk.remove(path.string() + suffix);
}

/// The newest state that the target gives; 0: it has no base yet.
std::uint64_t restored_state(io::Storage& disk) {
    const auto target = ReplicationAccess::directory(disk, frames_path);
    try {
        const Restored restored = replicate::Restorer(disk, *target, restored_path, {}).run();
        const std::uint64_t state = state_of(disk, restored_path);
        remove_heap(disk, restored_path);
        if (state != restored.serial.value)
            throw std::runtime_error("restoring says transaction " + std::to_string(restored.serial.value) + ", the heap is as of " +
                                     std::to_string(state));
        return state;
    } catch (const Error& error) {
        if (error.code() != errc::not_found) throw;
        return 0;
    }
}

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

/// What the piece of life does.
class Steps {
public:
    Steps(ReplicatedLife& life, ReplicationTarget& target, io::RecordingStorage* recorder) : life_(life), target_(target), recorder_(recorder) {}
    void transact(unsigned count = 1) {
        for (unsigned i = 0; i < count; ++i) {
            if (recorder_ != nullptr) recorder_->issue(newest_ + 1);
            newest_ = life_.transact();
        }
    }
    void told() {
        if (recorder_ != nullptr) recorder_->acknowledge(life_.shipper().shipped().value);
    }
    void attach(ByteCount frame_bytes = 256_KiB) {
        life_.attach(target_, frame_bytes);
        told();
    }
    void ship() {
        life_.shipper().ship();
        told();
    }
    void make_base() {
        life_.shipper().make_base();
        told();
    }
    void trim() { life_.shipper().trim(~std::uint64_t{0}); }
    void snapshot() { life_.heap().snapshot(); }
    void reopen() {
        life_.close();
        life_.open(store::OpenMode::open_only);
        newest_ = life_.compare();
    }
    void note_newest() {
        newest_ = life_.compare();
        if (recorder_ != nullptr) recorder_->issue(newest_);
    }

private:
    ReplicatedLife& life_;
    ReplicationTarget& target_;
    io::RecordingStorage* recorder_;
    std::uint64_t newest_ = 0;
};

struct ReplicatePiece {
    const char* name;
    void (*before)(Steps&);
    void (*life)(Steps&);
};

Recording record_replication(const ReplicatePiece& piece, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    add_directories(disk);
    {
        const auto target = ReplicationAccess::directory(disk, frames_path);
        ReplicatedLife life(disk, replicated_path);
        life.open(store::OpenMode::create_only);
        Steps steps(life, *target, nullptr);
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
    Steps steps(life, *target, &recorder);
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
        Steps steps(life, *target, nullptr);
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
     [](Steps& steps) {
         steps.transact(2);
         steps.attach();
         steps.transact();
         steps.ship();
     },
     [](Steps& steps) {
         steps.attach(1);
         steps.transact();
         steps.ship();
         steps.transact(2);
         steps.snapshot();
         steps.ship();
     }},
    {"replicate-attach", [](Steps& steps) { steps.transact(2); },
     [](Steps& steps) {
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
     [](Steps& steps) {
         steps.transact(5);
         steps.attach();
     },
     [](Steps& steps) {
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
            {.name = name, .about = "replicated heaps", .states_per_cut = 200, .nested_one_in = 0, .record = [record](std::uint64_t, Bug bug) {
                 return record(bug);
             }});
    };
    for (const ReplicatePiece& piece : replicate_pieces) add(piece.name, [&piece](Bug bug) { return record_replication(piece, bug); });
    add("replicate-restore", record_restoring);
    return all;
}

}  // namespace taiyen::crash
