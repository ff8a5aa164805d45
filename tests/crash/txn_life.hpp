#pragma once
/// A transactional heap's life on a recorded disk, and the model of what it must hold.
///
/// The model knows nothing of the engine or the log: after each *state*, the names and bytes of a few objects. State 0: there is no heap; then the empty heap, and one more for each committed
/// transaction, and for each save by a heap of a lower kind. The heap holds its own state's number under the name "number".
/// What `last_durable()` says counts as told: it is asked before every change of a file, wherever in the library that happens.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/txn/relaxed_loading.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "crash/explorer.hpp"
#include "crash/shared_states.hpp"
#include "crash/txn_objects.hpp"
#include "crash/txn_stepped_storage.hpp"
#include "crash/txn_steps.hpp"
#include "store/heap_file.hpp"

namespace taiyen::crash {

struct TxnState {
    using Objects = TxnObjects::Model;
    Objects objects;
    Serial serial;             ///< of the newest transaction in it
    std::uint64_t blocks = 0;  ///< that the next process has, once its first transaction has begun; 0: unknown
    TxnSteps steps;            ///< of the undo history
};
/// By number; entry 0 stands for no heap.
using TxnHistory = SharedStates<TxnState>;

struct TxnSetup {
    HeapKind kind = HeapKind::transactional;  ///< of the recorded life
    bool data_file = false;                   ///< it has one
    Durability durability = Durability::sync;
    Capture capture = Capture::declared;
    ByteCount capacity = 2_MiB;
    ByteCount log_bytes = 64_KiB;
    bool lends = false;              ///< objects outside take blocks along: no crash may leak one
    bool history = false;            ///< an undo history may be attached: each state is a transaction, and known by its serial
    ByteCount batch_bytes = 64_MiB;  ///< of images that a background save may hold
    ByteCount dirty_limit = 1_GiB;
    bool scarce = false;  ///< calls, memory or room fail: a history may lose its oldest steps, or end, and says so
    bool detach_data_file = false;
    bool apart = false;  ///< data file and log lie in directories, and on devices, of their own

    static const std::filesystem::path& path();
    std::filesystem::path data_path() const;
    std::filesystem::path log_path() const;
};

inline const std::filesystem::path txn_path = "/disk/t.tyn";

class TxnLife {
public:
    /// `marks`: where states are begun and told durable; may be null.
    TxnLife(io::Storage& disk, io::RecordingStorage* marks, const TxnSetup& setup, TxnHistory history = {});
    TxnLife(const TxnLife&) = delete;
    TxnLife& operator=(const TxnLife&) = delete;
    ~TxnLife();

    void create();
    void open() { open(setup_.kind); }
    /// Opens, and finds out which state it is. Throws std::runtime_error: none.
    void open(HeapKind kind);
    void open_to_read();
    void close();
    /// The process is gone: the heap's handles must be dead already.
    void abandon();

    /// One transaction with random changes, seldom a rolled back one before it.
    void transact(std::uint64_t seed);
    /// One that puts `size` new bytes under a name.
    void put(const std::string& name, ByteCount size, std::uint64_t seed);
    /// One that makes `size` zeros and a byte: the heap grows, and few bytes of it change.
    void put_sparse(const std::string& name, ByteCount size);
    void remove(const std::string& name);
    /// One that calls a procedure, which the log remembers instead of the bytes.
    void call(std::uint64_t seed);
    /// One in which a container in the heap is moved to an object outside: a block and one that only it refers to.
    void lend(std::uint64_t seed);
    /// One in which the oldest such object is moved into the heap again.
    void take_back(std::uint64_t seed);
    /// The oldest such object dies, outside transactions.
    void let_go();
    /// Frees what lives before this one left behind. Throws std::runtime_error unless all of it is freed.
    void reclaim();
    /// One with inner transactions, some of which are rolled back, to a depth of four.
    void transact_nested(std::uint64_t seed);
    /// The heap's undo history goes on.
    void resume();
    /// One that attaches a new one.
    void attach();
    /// One that is a step: random changes, or new bytes of that size.
    void step(const std::string& name, std::uint64_t seed, ByteCount size = 0);
    void undo();
    void redo();
    void squash(std::size_t count, const std::string& name);
    /// A transaction that gives the history another room, for which it may drop its oldest steps.
    void resize_history(ByteCount bytes);
    /// Throws std::runtime_error unless the history is the state's; `all`: also unless each step, undone and redone, gives what it gave.
    void prove_history(bool all);
    /// From now on commits are not durable.
    void relax(RelaxedRollback takes_back = RelaxedRollback::transaction);
    /// Relaxed transactions, none of which is rolled back.
    void load(unsigned count, std::uint64_t seed);
    /// Relaxed loading ends in the middle of a transaction, which is durable.
    void end_relaxed_within(std::uint64_t seed);
    /// Relaxed transactions without capture, and a rollback that takes all of them back. Requires: everything is acknowledged.
    void take_loading_back(unsigned count, std::uint64_t seed);
    /// They are again; what was committed meanwhile becomes so later.
    void end_relaxed();
    /// Everything is durable on return, and commits are durable again.
    void make_strict();
    /// Async: everything committed is durable on return.
    void wait();
    void snapshot();
    /// A data file is attached, or detached. Everything committed is durable on return.
    void change_data_file();
    /// The same, with another log.
    void replace_log(ByteCount capacity);
    /// A snapshot; `count` transactions run in the middle of it, one before each change of a file, as long as the log has room for them.
    void snapshot_meanwhile(unsigned count, std::uint64_t seed);
    /// A snapshot; `what` runs in the middle of it, before its first change of a file.
    void snapshot_meanwhile(const std::function<void()>& what);
    /// Throws std::runtime_error unless the heap is what the model says it is, as it lives, and was so before each change of a file since the last call.
    void compare_alive();
    /// One transaction; while its group is written, `count` threads commit one each. They share the next group.
    void share(unsigned count, std::uint64_t seed);
    /// A save by a heap of a lower kind.
    void save(std::uint64_t seed);

    /// Throws std::runtime_error unless the heap equals a state of the history; returns its number.
    std::uint64_t compare() const;
    /// Throws std::runtime_error unless named objects lead to as many blocks as the state has.
    void prove_leaks(const TxnState& state) const;
    /// Throws std::runtime_error unless engine and files are sound.
    void prove() const;

    const TxnHistory& history() const { return history_; }
    std::uint64_t acknowledged() const { return acknowledged_; }
    std::uint64_t issued() const { return issued_; }
    /// Opened, and the state is known.
    bool is_open() const { return ready_; }
    bool is_transactional() const { return heap_.has_value(); }
    store::HeapFile& file() { return *file_; }

private:
    void open_file(store::OpenMode mode, HeapKind kind);
    void issue(std::uint64_t number);
    void acknowledge(std::uint64_t number);
    /// What `last_durable()` says becomes an acknowledged state.
    void listen();
    void before_change(SteppedStorage::Change change, const std::filesystem::path& path);
    void run(std::uint64_t seed, const std::function<void()>& changes);
    /// A transaction that the library makes: `model` says what it does to the state.
    void library_transaction(const std::function<void(TxnState&)>& model, const std::function<void()>& call);
    /// What was done is a step, if the history is attached; else there is none any more.
    void add_step(const std::string& name);
    /// Where something is scarce: what of the model's steps is still there, oldest ones fall off first. Throws std::runtime_error: what is there is something else.
    void match_steps();
    void note_lost_steps(std::uint64_t number);
    void never_happened(std::uint64_t number, TxnState& before);
    void rolled_back(TxnState& before);
    /// Where something is scarce and the model has no such steps any more: ends the life.
    void require_steps(bool there);
    bool log_has_room() const;
    void look_alive();
    /// Random changes, some of them within inner transactions, which are kept or rolled back.
    void nest(std::mt19937_64& random, unsigned depth);
    /// `run` of changes that lend or take back.
    void run_with_loans(std::uint64_t seed, const std::function<void()>& changes);

    SteppedStorage disk_;
    io::RecordingStorage* marks_;
    TxnSetup setup_;
    TxnHistory history_;
    TxnState now_;        ///< of the working view
    TxnObjects objects_;  ///< the same
    bool ready_ = false;
    std::uint64_t opened_ = 0;  ///< state that was there at opening
    std::atomic<std::uint64_t> acknowledged_ = 0;
    std::atomic<std::uint64_t> issued_ = 0;
    std::mutex marks_mutex_;
    std::shared_ptr<store::HeapFile> file_;
    std::optional<RelaxedLoading> relaxed_;
    std::optional<TransactionalHeap> heap_;
    std::optional<ArchiveHeap> lower_;
    std::atomic<bool> listens_ = false;
    bool attached_ = false;  ///< the history is
    struct Loan {
        std::byte* block;
        std::byte* inner;
        std::uint32_t serial;
    };
    std::vector<Loan> loans_;   ///< of objects outside that are alive
    std::uint64_t leaked_ = 0;  ///< blocks of those that died with the lives before

    // What happens in the middle of something else:
    bool within_ = false;  ///< a transaction that itself runs in the middle
    unsigned meanwhile_ = 0;
    std::function<void()> once_meanwhile_;
    bool watches_ = false;     ///< looks at the open heap before each change of a file
    std::string wrong_alive_;  ///< what a look at the open heap found
    unsigned sharers_ = 0;
    std::atomic<unsigned> failed_ = 0;  ///< threads whose transaction failed
    std::uint64_t seed_ = 0;
    bool tell_ = true;  ///< commits acknowledge what they return
    std::vector<std::thread> threads_;
};

}  // namespace taiyen::crash
