#pragma once
/// Cutter: makes the cuts of a group (C1 to C3 of cuts.hpp).
/// Thread rule: external lock.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
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

    /// Throws: Error{invalid_argument}: the name is no member's, or it is taken, or the heap is a member, or there are too many; Error{fenced | closed | io_error}: its replication has ended.
    void add(std::string name, std::shared_ptr<GroupMember> member);
    /// Throws: Error{invalid_argument}: there is none.
    void require_members() const;
    /// Of what is the newest now, with that name; without one the newest cut, if nothing was committed since. Throws: as ReplicationGroup::cut; Error{closed}: `stop` came first.
    const Cut& cut(std::string_view mark, const std::stop_token& stop = {});
    /// Throws: Error{not_found}; as cut.
    void unmark(std::string_view name);
    const std::vector<Cut>& marks() const { return lane_.marks(); }
    /// What was cut before `time` (microseconds since 1970) and has no name goes.
    void trim(std::uint64_t time) { lane_.trim(time); }

private:
    using Time = std::chrono::steady_clock::time_point;
    [[noreturn]] void throw_unconfirmed(const std::string& why) const;
    /// Returns once it is true, or that time has come.
    bool wait_until(Time until, const std::function<bool(std::chrono::milliseconds slice)>& is_so) const;
    std::optional<std::vector<Cut::Member>> at_one_moment() const;
    bool wait_for(const std::vector<Cut::Member>& wanted, Time until) const;
    /// The members' targets keep what these need. False: not all of them know it by then.
    bool keep(const std::vector<Cut>& marks, Time until) const;

    ReplicationTarget& target_;
    const std::chrono::milliseconds patience_;
    std::stop_token stop_;  ///< of the cut that is made
    CutLane lane_;
    std::vector<std::pair<std::string, std::shared_ptr<GroupMember>>> members_;
    Cut newest_;
};

}  // namespace taiyen::replicate
