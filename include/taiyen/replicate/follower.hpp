#pragma once
/// Follower: a heap that shows, on another machine or in another process, what the one that is replicated has committed; and takes its place when that is lost.
///
///   auto target = std::make_shared<taiyen::DirectoryTarget>("/backup/bank");
///   taiyen::Follower follower(target, "bank.tyn");                          // the first time everything comes from there
///   taiyen::ReadLock lock(follower.heap());
///   follower.heap().find<taiyen::map<int, taiyen::string>>("accounts");     // as of one transaction
///   …
///   taiyen::TransactionalHeap heap = std::move(follower).promote();         // the machine that had the heap is lost
///   taiyen::Replication replication(heap, target);
///
/// It has files of its own, at the same address, with the same uuid and the same serials. What it shows is durable here: `ReadLock::serial` never goes back, not even over a crash.
/// The file is a follower's until it is promoted: opened for writing it throws Error{follower}.
/// Guide: doc/replication.md.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/progress.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/replicate/replication_target.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/txn/transactional_heap.hpp>

namespace taiyen {

/// How a heap is followed.
struct FollowerOptions {
    std::chrono::milliseconds poll{10};      ///< between two looks at a target that had nothing new
    std::chrono::milliseconds retry{1'000};  ///< between two tries while the target is away
    PersistentOptions heap{};                ///< of its files; capture, audit and durability are its own
    Progress progress{};                     ///< frames, while the file is made; on the calling thread
    bool store_only =
        false;  ///< takes no addresses of the heap's: follows it beside others, and beside the heap itself, in one process; `heap` throws
    bool replace_deposed = false;  ///< a heap there that was deposed is first renamed to PATH.deposed (PATH.deposed-2, …), with all its files
};

enum class FollowerState {
    following,  ///< what the target gets is shown
    away,       ///< the target can't be reached, or a frame of it is damaged; tried again and again
    stopped,    ///< by `stop`
    failed      ///< over: `last_error` says why
};
/// "following", ….
TAIYEN_EXPORT const char* name_of(FollowerState state) noexcept;
/// How far a follower is.
struct FollowerStatus {
    FollowerState state = FollowerState::following;
    Serial applied;                   ///< newest transaction that is shown
    Serial newest;                    ///< newest one that the target is known to have
    std::uint64_t frames = 0;         ///< of the target, up to the newest one that was read
    std::chrono::milliseconds age{};  ///< so long ago it last had everything that the target had; max(): not yet since it was opened
    std::string target;
    std::string last_error;  ///< the newest; empty: none yet
};

/// Thread rule: safe; moving, promoting and destroying excepted. In a forked child every call throws Error{forked}.
class TAIYEN_EXPORT Follower {
public:
    /// Opens the follower's file, or makes it, and goes on from where it was on a thread of its own. Complexity: opening, as any heap; making, as `restore`.
    /// Throws: Error{already_exists}: the file is a heap that follows nobody; Error{mismatch}: the target holds another heap; as `restore` and TransactionalHeap.
    Follower(std::shared_ptr<ReplicationTarget> target, const std::filesystem::path& path, const FollowerOptions& options = {});
    Follower(Follower&&) noexcept;
    Follower& operator=(Follower&&) noexcept;
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    /// As `stop`; closes the heap.
    ~Follower();

    /// Open until this object goes, or is promoted. Read it under a ReadLock; it holds up what comes, not the program that commits elsewhere. Every change throws Error{follower}.
    /// Throws: Error{invalid_argument}: `FollowerOptions::store_only`.
    const TransactionalHeap& heap() const;
    /// Newest transaction that is shown.
    Serial applied() const;
    /// Returns when that transaction is shown, true, or after that time: who has committed it elsewhere reads it here. Throws: Error{closed | io_error | …}: it will not come.
    bool wait_for(Serial serial, std::chrono::milliseconds patience) const;
    /// Throws: Error{stale}: it is longer ago than that since everything was shown that the target had; what ended following.
    void require_fresh(std::chrono::milliseconds age) const;
    FollowerStatus status() const;
    /// Ends the thread; the heap stays open, as it is. What this thread holds a ReadLock on may move on while it waits.
    void stop() noexcept;

    /// Takes the place of the one that replicates: follows to the target's end, appends there that this file goes on, and opens it as a heap like any other. From that frame on the former owner can append nothing,
    /// and its heap refuses transactions (Error{fenced}) as soon as it tries. What it had committed and not sent is lost.
    /// This object is spent then; end every ReadLock before. Interrupted by a crash, or by an exception of the target, the file still follows: make a Follower again, and promote it again. An exception of opening
    /// says that it has the place: open it when that is mended.
    /// Throws: Error{scope_open}: this thread has a ReadLock; Error{address_in_use}: `store_only`, and at the heap's address something lies: nothing has happened; Error{fenced}: another follower was promoted meanwhile; Error{diverged}: the target has lost frames; what the target throws; what opening throws.
    TransactionalHeap promote(const PersistentOptions& options = {}) &&;

private:
    class Thread;
    struct End {
        void operator()(Thread* thread) const noexcept;
    };
    std::unique_ptr<Thread, End> thread_;
};

}  // namespace taiyen
