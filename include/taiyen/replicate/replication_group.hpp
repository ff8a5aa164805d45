#pragma once
/// ReplicationGroup: several replicated heaps that are restored as of one moment.
///
///   taiyen::Replication accounts(accounts_heap, std::make_shared<taiyen::DirectoryTarget>("/backup/accounts"));
///   taiyen::Replication index(index_heap, std::make_shared<taiyen::DirectoryTarget>("/backup/index"));
///   taiyen::ReplicationGroup shop(std::make_shared<taiyen::DirectoryTarget>("/backup/shop"));
///   shop.add("accounts", accounts_heap, accounts);
///   shop.add("index", index_heap, index);
///   shop.start();                        // a cut each second
///   shop.mark("before the new prices");  // one that is kept
///
/// A *cut* names a transaction of each heap: the newest ones at one moment. What a program committed second is in no cut without what it had committed first, whichever heaps they went to.
/// Each heap goes to a target of its own, as before; the group's has the cuts. `restore_group` makes the heaps of one cut.
/// Format: src/replicate/FORMAT.md, "Cuts"; guide: doc/replication.md.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/progress.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/replicate/replication.hpp>
#include <taiyen/replicate/restore.hpp>

namespace taiyen {

/// How a group is cut.
struct GroupOptions {
    std::chrono::milliseconds cut_every{1'000};  ///< where something was committed since
    std::chrono::milliseconds patience{30'000};  ///< so long a cut waits for the members' targets
    std::chrono::hours keep{24};  ///< cuts without a name that are older are trimmed; at most as long as the members keep theirs. 0: for ever
};

/// Heaps as of one moment.
struct GroupCut {
    /// One of the heaps.
    struct Member {
        std::string name;
        std::string heap;  ///< its uuid
        Serial serial;     ///< newest transaction of the cut
    };
    std::uint64_t frame = 0;  ///< of the group's target, that says so
    std::chrono::system_clock::time_point made_at;
    std::string mark;  ///< its name; empty: it has none
    std::vector<Member> members;
};

/// How far a group is.
struct GroupStatus {
    std::uint64_t cuts = 0;  ///< since this object began, marks included
    GroupCut newest;         ///< frame 0: there is none yet
    bool is_over = false;    ///< somebody else makes the cuts, or a heap was closed
    std::string last_error;  ///< the newest; empty: none yet
};

/// Thread rule: safe; moving and destroying excepted. It ends before the replications of its members do. In a forked child each call throws Error{forked}.
class TAIYEN_EXPORT ReplicationGroup {
public:
    /// Attaches to the place where the cuts are kept: of this group alone. Throws: Error{mismatch}: a heap was replicated there; what the target throws.
    explicit ReplicationGroup(std::shared_ptr<ReplicationTarget> target, const GroupOptions& options = {});
    ReplicationGroup(ReplicationGroup&&) noexcept;
    ReplicationGroup& operator=(ReplicationGroup&&) noexcept;
    ReplicationGroup(const ReplicationGroup&) = delete;
    ReplicationGroup& operator=(const ReplicationGroup&) = delete;
    /// As `stop`.
    ~ReplicationGroup();

    /// `name`: up to 200 bytes, without "/": the heap's file when it is restored. Throws: Error{invalid_argument}: it is taken, or can't be one; the replication is another heap's; there are 1,024 already.
    /// Error{fenced | closed | io_error}: that replication has ended.
    void add(std::string name, TransactionalHeap& heap, const Replication& replication);
    /// A thread makes cuts from now on, again if it is over; on that thread itself (a report handler) it does nothing. Throws: Error{invalid_argument}: no heap was added; Error{too_many_threads}.
    void start();
    /// Makes a cut; returns when the group's target has it: of everything that any thread has committed before the call. Nothing new since the last one: returns that.
    /// Throws: Error{unconfirmed}: a member's target has not got its transactions in time, or a RelaxedLoading of a member has kept them out of its log so long; Error{fenced}: another program makes the cuts; Error{closed}: a heap is; what the targets throw.
    GroupCut cut();
    /// The same, with a name, in the place of an earlier one of that name. Its frames, and those of the members that it needs, are kept until `unmark`, whoever replicates them: their targets know it when this returns.
    /// Throws: as cut; Error{invalid_argument}: a name of no or over 255 bytes.
    GroupCut mark(std::string_view name);
    /// Throws: Error{not_found}; as cut.
    void unmark(std::string_view name);
    std::vector<GroupCut> marks() const;
    GroupStatus status() const;
    /// Ends the thread; a cut that it waits for is given up.
    void stop() noexcept;

private:
    class Thread;
    struct End {
        void operator()(Thread* thread) const noexcept;
    };
    std::unique_ptr<Thread, End> thread_;
};

/// Which cut a group is restored as of.
struct GroupRestoreOptions {
    std::string mark{};                                         ///< that one; empty: the newest one, or that of `at`
    std::optional<std::chrono::system_clock::time_point> at{};  ///< the newest one that was made by then
    Progress progress{};                                        ///< frames, of one heap after the other
};

/// What was restored.
struct RestoredGroup {
    GroupCut cut;
    std::vector<Restored> heaps;  ///< as `cut.members`
};

/// Makes the heaps of a cut, `folder`/NAME.tyn for each. `target_of`: where the member of that name was replicated to. Either all of them are there when it returns, or, after an exception, none that it made.
/// A crash leaves those that were whole: remove them, and call again. Complexity: as restore, of each.
/// Throws: Error{not_found}: there is no such cut, or a member's target goes not so far back; Error{already_exists}; Error{mismatch}: a target holds another heap; as restore.
TAIYEN_EXPORT RestoredGroup restore_group(ReplicationTarget& target,
                                          const std::function<std::shared_ptr<ReplicationTarget>(const std::string& name)>& target_of,
                                          const std::filesystem::path& folder, const GroupRestoreOptions& options = {});
/// The cut that `restore_group` would take. Throws: Error{not_found | corrupt | mismatch}; what the target throws.
TAIYEN_EXPORT GroupCut find_group_cut(ReplicationTarget& target, const GroupRestoreOptions& options = {});
/// Those that have names, in no order. Throws: as before.
TAIYEN_EXPORT std::vector<GroupCut> group_marks(ReplicationTarget& target);

}  // namespace taiyen
