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
    /// As Replication has it.
    virtual bool wait_replicated(Serial serial, std::chrono::milliseconds patience) const = 0;
    /// Whether the target, which has it, can restore the heap as of exactly that transaction. False: it came with later ones, as pages.
    virtual bool is_exact(Serial serial) const = 0;
    /// What that group needs to restore it as of that transaction is kept from now on, whatever its age; nothing: no more than `keep` says.
    virtual void keep_from(const Uuid& group, std::optional<Serial> serial) = 0;
};

struct GroupMemberAccess {
    static std::shared_ptr<GroupMember> of(const Replication& replication);
};

}  // namespace taiyen::replicate
