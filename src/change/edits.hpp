#pragma once
/// Edits and StepKeeper: how a history of steps goes with transactions. Rooms undo and txn don't know each other; they meet here.
///
/// Edits are the transactions of a heap: who keeps a history begins and ends them as a `Transaction` does. A StepKeeper is asked by each of them, at its commit, to keep what it did.
///
/// (E1) `keep` and `ended` come under the writer lock, in the order of serials, on the thread of the transaction. What a reader's lock protects, the keeper may read.
/// (E2) What `keep` changed is taken back by the keeper itself if `ended(false)` follows: the transaction could not be committed after all.
/// (E3) What the keeper changes in the annex stands in the log with the transaction: the history after a crash is that of the content.
/// Thread rule: Edits: safe, and a transaction belongs to one thread; StepKeeper: (E1).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <taiyen/base/units.hpp>

#include "change/change_set.hpp"
#include "change/procedure_calls.hpp"
#include "change/recorder.hpp"

namespace taiyen::change {

class StepKeeper {
public:
    virtual ~StepKeeper() = default;

    /// The outermost transaction is about to be committed; it and those within it have the loan numbers `first` to `last`. `parts`: what it did, in order; a part is changes, or one procedure's call. May be
    /// empty. Adds to `annex` what it changes in the heap's annex, offsets from the annex's begin. Throws: the transaction is rolled back.
    virtual void keep(std::uint32_t first, std::uint32_t last, std::span<const ChangeSetView> parts, ChangeSet& annex) = 0;
    /// An inner transaction is over: part of the one around it, which is `depth` deep (1: the outermost), or taken back.
    virtual void inner_ended(std::size_t depth, bool kept) noexcept = 0;
    /// It was committed, or (also without a `keep`) rolled back.
    virtual void ended(bool kept) noexcept = 0;
    /// Whether the annex is the keeper's: what it holds goes on with each transaction.
    virtual bool has_annex() const noexcept = 0;
    /// Whether steps are kept now.
    virtual bool live() const noexcept = 0;
    /// The heap is gone.
    virtual void left() noexcept = 0;
};

class Edits {
public:
    virtual ~Edits() = default;

    /// Whoever keeps steps; null: nobody. Set once in the heap's life.
    virtual std::shared_ptr<StepKeeper> keeper() const = 0;
    virtual void set_keeper(std::shared_ptr<StepKeeper> keeper) = 0;
    virtual std::shared_ptr<Edits> shared() = 0;

    /// What the outermost transaction is for.
    enum class Purpose {
        edit,    ///< the program's: pointers out of the heap are refused, frees that wait are done in it
        history  ///< applies steps or manages them: it holds what was committed once already, and nothing else
    };
    /// As `Transaction`: one writer; within a transaction of this thread an inner one, of the same purpose. Throws: as its constructor.
    virtual void begin(Purpose purpose) = 0;
    enum class Wait { durable, soon /**< the log is written by a thread of the heap, in the background */ };
    /// Throws: the transaction is over, rolled back.
    virtual Serial commit(Wait wait) = 0;
    virtual void rollback() noexcept = 0;
    /// Of this thread; 0: it has none.
    virtual std::size_t depth() const noexcept = 0;

    // Within a transaction of this thread.
    virtual bool in_call() const noexcept = 0;
    virtual void touch(const void* address, ByteCount bytes) = 0;
    virtual void call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) = 0;
    /// What the transaction did so far is a part of its own.
    virtual void end_part() = 0;
    /// Does a stored call again, or takes it back: a part of its own, as bytes. Throws: as ProcedureCalls::repeat; roll back then.
    virtual void repeat(const Entry& call, Direction direction) = 0;
    virtual const Recorder& recorder() const = 0;
    /// What the transactions numbered so lent to objects outside belongs to the heap again, or does no more. Allocates nothing. From `ended` only.
    virtual void loans_undone(std::uint32_t first, std::uint32_t last) noexcept = 0;
    virtual void loans_redone(std::uint32_t first, std::uint32_t last) noexcept = 0;
    /// What is undone now can't be redone any more.
    virtual void loans_settled() noexcept = 0;
    /// Whether the annex of the files still fits the heap's bytes: nothing was committed beside it. Within a transaction.
    virtual bool annex_fits() const noexcept = 0;

    // Readers: as `ReadLock`. False: there is nothing to unlock, this thread is in a transaction.
    virtual bool lock_shared() = 0;
    virtual void unlock_shared() noexcept = 0;
};

}  // namespace taiyen::change
