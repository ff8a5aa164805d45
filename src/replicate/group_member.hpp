#pragma once
/// GroupMember: what a group asks of a heap's replication.
/// Thread rule: safe.

#include <chrono>
#include <memory>
#include <optional>

#include <taiyen/replicate/replication.hpp>

#include "base/uuid.hpp"
#include "log/group_log.hpp"
#include "store/heap_file.hpp"

namespace taiyen::replicate {

class GroupMember {
public:
    GroupMember() = default;
    GroupMember(const GroupMember&) = delete;
    GroupMember& operator=(const GroupMember&) = delete;
    virtual ~GroupMember() = default;

    virtual store::HeapFile& heap_file() const noexcept = 0;
    virtual const log::GroupLog& log() const = 0;
    /// Whether some transaction behind that one stood in no log when it was committed (RelaxedLoading).
    virtual bool has_unlogged(Serial since) const = 0;
    /// As Replication has it.
    virtual bool wait_replicated(Serial serial, std::chrono::milliseconds patience) const = 0;
    /// Whether the target, which has it, can restore the heap as of exactly that transaction. False: it came with later ones, as pages.
    virtual bool is_exact(Serial serial) const = 0;
    /// Its target keeps what that group needs to restore the heap as of that transaction, whatever its age and whoever replicates it; nothing: nothing more is kept for that group.
    /// False: the target doesn't know it in time; it will, before anything is trimmed. Throws: Error{fenced | closed | io_error}: replication has ended.
    virtual bool keep_from(const Uuid& group, std::optional<Serial> serial, std::chrono::milliseconds patience) = 0;
};

struct GroupMemberAccess {
    static std::shared_ptr<GroupMember> of(const Replication& replication);
};

}  // namespace taiyen::replicate
