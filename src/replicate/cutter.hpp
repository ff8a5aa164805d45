#pragma once
/// Cutter: makes the cuts of a group (C1 to C3 of cuts.hpp).
/// Thread rule: external lock.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replicate/cuts.hpp"
#include "replicate/group_member.hpp"

namespace taiyen::replicate {

class Cutter {
public:
    /// Attaches. `patience`: so long a cut waits for the members' targets.
    Cutter(ReplicationTarget& target, std::chrono::milliseconds patience);

    /// Throws: Error{invalid_argument}: the name is no member's, or it is taken, or the heap is a member.
    void add(std::string name, std::shared_ptr<GroupMember> member);
    /// Throws: Error{invalid_argument}: there is none.
    void require_members() const;
    /// Of what is the newest now, with that name; without one the newest cut, if nothing was committed since. Throws: as ReplicationGroup::cut.
    const Cut& cut(std::string_view mark);
    /// Throws: Error{not_found}; as cut.
    void unmark(std::string_view name);
    const std::vector<Cut>& marks() const { return lane_.marks(); }
    /// What was cut before `time` (microseconds since 1970) and has no name goes.
    void trim(std::uint64_t time) { lane_.trim(time); }

private:
    std::vector<Cut::Member> at_one_moment() const;
    bool wait_for(const std::vector<Cut::Member>& wanted) const;
    void keep_marks() const;

    ReplicationTarget& target_;
    const std::chrono::milliseconds patience_;
    CutLane lane_;
    std::vector<std::pair<std::string, std::shared_ptr<GroupMember>>> members_;
    Cut newest_;
};

}  // namespace taiyen::replicate
