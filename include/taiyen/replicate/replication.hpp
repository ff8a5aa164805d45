#pragma once
/// Replication: what a transactional heap commits goes to a target off the machine, on a thread of its own, as long as this object lives.
///
///   taiyen::TransactionalHeap heap(taiyen::open_or_create, "bank.tyn");
///   taiyen::Replication replication(heap, std::make_shared<taiyen::DirectoryTarget>("/backup/bank"));
///   … transactions as ever; should the machine be lost: taiyen::restore(target, "bank.tyn")
///
/// A commit waits for nothing, unless `acknowledge` says so. What the target hasn't got when the machine is lost, is lost: milliseconds of work, or as much as `status().behind` says.
/// A target that is away stops nobody, unless `when_behind` says so. When it is back, the transactions follow from the log, or, if the log has given their room back, the pages that were saved since.
/// One target at a time: a heap that is attached elsewhere can't go on at the former one.
/// Format: src/replicate/FORMAT.md; guide: doc/replication.md.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <taiyen/base/codec.hpp>
#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/replicate/replication_target.hpp>

namespace taiyen {

class TransactionalHeap;
namespace replicate {
struct GroupMemberAccess;
}
/// When a commit returns.
enum class Acknowledge {
    local,      ///< when it is durable here
    replicated  ///< when the target has it, too. Transactions of threads that commit at once travel together. Only with Durability::sync
};
/// What happens when the target lacks so much that the log is about to give it up.
enum class WhenBehind {
    resync,  ///< transactions go on, and pages follow instead of what was given up: the heap can't be restored as of each of these transactions
    block,   ///< transactions wait in their constructor
    fail     ///< a transaction's constructor throws Error{unreachable}
};

/// How a heap is replicated.
struct ReplicationOptions {
    Acknowledge acknowledge = Acknowledge::local;
    std::chrono::milliseconds confirm_timeout{
        30'000};  ///< so long a commit waits for the target (`Acknowledge::replicated`); then it throws Error{unconfirmed}: committed here, and on its way there
    WhenBehind when_behind = WhenBehind::resync;  ///< a transaction larger than an eighth of the log goes on in any case
    std::size_t frame_bytes = 1U << 20U;          ///< of transactions; a frame closes when it has so many, or nothing more is durable
    Codec codec = Codec::lz4;                     ///< makes frames smaller, where it does; who reads them sees that by itself
    std::optional<std::chrono::milliseconds>
        linger{};  ///< so long the first transaction waits for others to share its frame, unless somebody waits for it; empty: as the target says
    std::chrono::milliseconds retry{1'000};          ///< between two tries while the target is away
    std::chrono::milliseconds close_timeout{5'000};  ///< so long `stop` goes on sending
    std::chrono::hours base_every{24};               ///< a new base of all pages, at the latest; 0: never for its age
    std::size_t base_after_bytes = 0;                ///< of transactions since the last base; 0: 1 GiB, or twice the heap if that is more
    std::chrono::hours keep{24 * 7};  ///< so far back the heap can be restored: what is older is trimmed when a base is made; 0: for ever
};

enum class ReplicationState {
    streaming,  ///< what becomes durable follows at once
    away,       ///< the target can't be reached; tried again and again
    fenced,     ///< another file appends there: over
    stopped,    ///< by `stop`, or since the heap is closed
    failed      ///< over: `last_error` says why
};
/// "streaming", ….
TAIYEN_EXPORT const char* name_of(ReplicationState state) noexcept;
/// How far replication is.
struct ReplicationStatus {
    ReplicationState state = ReplicationState::streaming;
    Serial durable;                 ///< newest transaction that is durable here
    Serial replicated;              ///< newest one that the target has
    std::uint64_t unconfirmed = 0;  ///< commits that have thrown Error{unconfirmed}
    std::uint64_t behind = 0;       ///< transactions between the two
    std::uint64_t frames = 0;       ///< that the target has ever been given
    std::uint64_t bases = 0;        ///< made since this object began, full and partial
    std::uint64_t bytes_sent = 0;   ///< since this object began, as they went: packed, and again where an answer was lost
    std::string target;
    std::string last_error;  ///< the newest; empty: none yet
};

/// Thread rule: safe; moving and destroying excepted. It ends before the heap does, or with it. In a forked child every call throws Error{forked}.
class TAIYEN_EXPORT Replication {
public:
    /// Attaches: returns when the target has the whole heap, or what it lacked of it, and transactions follow. Complexity: that of sending all pages the first time, of those saved meanwhile later.
    /// With `Acknowledge::replicated` commits wait from then on, until `stop`; a transaction within another one, and undo, as its outermost one.
    /// Throws: Error{fenced}: another file of this heap replicates there; if it was promoted in this one's place, this heap refuses transactions from then on. Error{diverged}: the target holds transactions that are no part of this file's history; Error{mismatch}: it holds another heap;
    /// Error{read_only | closed | scope_open (this thread has a transaction) | invalid_argument (a null target; Acknowledge::replicated where commits don't wait for this machine's disk) | too_many_threads}; what the target throws. The heap is as before then.
    Replication(TransactionalHeap& heap, std::shared_ptr<ReplicationTarget> target, const ReplicationOptions& options = {});
    Replication(Replication&&) noexcept;
    Replication& operator=(Replication&&) noexcept;
    Replication(const Replication&) = delete;
    Replication& operator=(const Replication&) = delete;
    /// As `stop`.
    ~Replication();

    /// The newest transaction that the target has.
    Serial replicated() const;
    /// Returns when the target has it, true, or after that time. Throws: Error{fenced | closed | …}: it will not get it.
    bool wait_replicated(Serial serial, std::chrono::milliseconds patience) const;
    /// Sends a base of all pages; transactions go on meanwhile, and follow behind it. Returns when the target has it. Throws: Error{scope_open}: this thread has a transaction or a ReadLock; what ended replication, what
    /// the target throws.
    void make_base();
    /// Keeps nothing more for the marks of groups, such as of one whose own target is lost: what only they need is trimmed like the rest. Returns when the target knows it, true, or after that time.
    /// A group that still runs says what its marks need with its next mark. Throws: what ended replication.
    bool forget_marks(std::chrono::milliseconds patience);
    ReplicationStatus status() const;
    /// Sends what is durable by now, for at most `close_timeout`, and ends the thread; commits wait for this machine alone from then on. What wasn't sent follows when the heap is attached again.
    /// Requires: this thread has no transaction and no ReadLock.
    void stop() noexcept;

private:
    friend struct replicate::GroupMemberAccess;
    class Thread;
    void end() noexcept;
    std::shared_ptr<Thread> thread_;  ///< a commit that waits has it, too
};

}  // namespace taiyen
