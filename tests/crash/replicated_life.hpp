#pragma once
/// A heap that is replicated, or goes on as one that was, and what follows from the numbers of its transactions.

#include <optional>
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

inline const std::filesystem::path replicated_path = "/disk/heap.tyn";
inline const std::filesystem::path restored_path = "/disk/restored.tyn";
inline const std::filesystem::path frames_path = data_directory;

using ReplicatedWords = taiyen::vector<std::uint64_t>;
inline constexpr std::uint64_t replicated_cells = 40;
inline constexpr std::uint64_t cell_words = 256;
/// These transactions take more than the log has room for.
constexpr bool is_large(std::uint64_t serial) { return serial % 8 == 7; }

inline std::uint64_t word_of(std::uint64_t serial) { return mix(serial, 0x7265'706c); }

/// A heap whose transactions, each with a serial of its own, leave what follows from that number.
class ReplicatedLife {
public:
    ReplicatedLife(io::Storage& disk, const std::filesystem::path& path) : disk_(disk), path_(path) {}

    void open(store::OpenMode mode, store::RoleWanted role = store::RoleWanted::owner) {
        PersistentOptions options;
        options.capacity = 8_MiB;
        options.log_capacity = 64_KiB;
        options.snapshot_log_fill = 1;  // only when it is asked
        options.snapshot_interval = {};
        store::Tuning tuning;
        tuning.role = role;
        if (role == store::RoleWanted::follower) options.capture = Capture::declared;
        tuning.join = [&](store::HeapFile& file) { txn::TransactionService::join(file, options); };
        file_ = store::HeapFile::open(disk_, path_, mode, HeapKind::transactional, options, tuning);
        heap_.emplace(HeapAccess::make<TransactionalHeap>(file_));
    }
    void attach(ReplicationTarget& target, ByteCount frame_bytes = 256_KiB) {
        shipper_.emplace(*file_, *txn::TransactionService::of(*file_), target, frame_bytes);
        shipper_->attach();
    }
    TransactionalHeap& heap() { return *heap_; }
    store::HeapFile& file() { return *file_; }
    replicate::Shipper& shipper() { return *shipper_; }
    /// The next transaction; returns its number.
    std::uint64_t transact() {
        Transaction transaction(*heap_);
        auto& words = heap_->find_or_construct<ReplicatedWords>("words");
        const std::uint64_t serial = words.size() + 1;
        if (serial == 1) heap_->construct<ReplicatedWords>("cells").resize(replicated_cells * cell_words);
        words.push_back(word_of(serial));
        auto& all = *heap_->find<ReplicatedWords>("cells");
        const auto fill = [&](std::uint64_t cell) {
            for (std::uint64_t i = 0; i < cell_words; ++i) all[cell * cell_words + i] = word_of(serial + i);
        };
        if (is_large(serial))
            for (std::uint64_t cell = 0; cell < replicated_cells; ++cell) fill(cell);
        else
            fill(serial % replicated_cells);
        transaction.commit();
        return serial;
    }
    /// The number of the newest transaction. Throws: the heap isn't what it left.
    std::uint64_t compare() const {
        const auto* const words = heap_->find<ReplicatedWords>("words");
        const std::uint64_t serial = words == nullptr ? 0 : words->size();
        if (serial == 0) return 0;
        for (std::uint64_t i = 0; i < serial; ++i)
            if ((*words)[i] != word_of(i + 1))
                throw std::runtime_error("word " + std::to_string(i) + " is another one after transaction " + std::to_string(serial));
        const auto& all = *heap_->find<ReplicatedWords>("cells");
        for (std::uint64_t cell = 0; cell < replicated_cells; ++cell) {
            std::uint64_t last = serial;
            while (last != 0 && !is_large(last) && last % replicated_cells != cell) --last;
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
inline std::uint64_t state_of(io::Storage& disk, const std::filesystem::path& path) {
    ReplicatedLife life(disk, path);
    life.open(store::OpenMode::open_only);
    const std::uint64_t state = life.compare();
    life.prove();
    life.close();
    return state;
}

inline void remove_heap(io::Storage& disk, const std::filesystem::path& path) {
    for (const char* suffix : {"", ".log", ".journal"}) disk.remove(path.string() + suffix);
}

/// The newest state that the target gives; 0: it has no base yet.
inline std::uint64_t restored_state(io::Storage& disk) {
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

/// What the piece of life does.
class ReplicationSteps {
public:
    ReplicationSteps(ReplicatedLife& life, ReplicationTarget& target, io::RecordingStorage* recorder)
        : life_(life), target_(target), recorder_(recorder) {}
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

}  // namespace taiyen::crash
