#include "replicate/cutter.hpp"

#include <algorithm>
#include <optional>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "store/opening_record.hpp"

namespace taiyen::replicate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Where pages stand in the place of transactions, another moment may do.
constexpr unsigned tries_max = 8;

}  // namespace

Cutter::Cutter(ReplicationTarget& target, milliseconds patience) : target_(target), patience_(patience), lane_(target) { lane_.attach(); }

void Cutter::add(std::string name, std::shared_ptr<GroupMember> member) {
    const auto refuse = [&](const std::string& why) { throw Error(errc::invalid_argument, target_.name(), why); };
    if (!may_name_a_member(name)) refuse("a member's name has up to 255 bytes and no '/', not '" + name + "'");
    for (const auto& [other_name, other] : members_)
        if (other_name == name || &other->heap_file() == &member->heap_file()) refuse("'" + name + "', or its heap, is a member already");
    members_.emplace_back(std::move(name), std::move(member));
    keep_marks();
}

void Cutter::require_members() const {
    if (members_.empty()) throw Error(errc::invalid_argument, target_.name(), "the group has no heap; add one");
}

/// The newest transactions at one moment.
std::vector<Cut::Member> Cutter::at_one_moment() const {
    std::vector<std::unique_ptr<store::Visits::Visit>> visits;  // they stay open meanwhile
    std::vector<const log::GroupLog*> logs;
    for (const auto& [name, member] : members_) {
        visits.push_back(std::make_unique<store::Visits::Visit>(member->heap_file().visits()));
        logs.push_back(&member->log());
    }
    const std::vector<Serial> serials = log::GroupLog::appended_together(logs);
    std::vector<Cut::Member> found;
    for (std::size_t i = 0; i < members_.size(); ++i)
        found.push_back({members_[i].first, members_[i].second->heap_file().files().table().heap(), serials[i]});
    return found;
}

/// Their targets have them. False: one of them can't be restored exactly.
bool Cutter::wait_for(const std::vector<Cut::Member>& wanted) const {
    const auto until = Clock::now() + patience_;
    bool is_exact = true;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const auto& [name, member] = members_[i];
        const auto left = std::max(std::chrono::duration_cast<milliseconds>(until - Clock::now()), milliseconds(0));
        if (!planted(Bug::cut_before_members) && !member->wait_replicated(wanted[i].serial, left))
            throw Error(errc::unconfirmed, target_.name(), "the target of '" + name + "' has not got in time what the cut needs; try again");
        is_exact = is_exact && (member->is_exact(wanted[i].serial) || planted(Bug::cut_within_gap));
    }
    return is_exact;
}

const Cut& Cutter::cut(std::string_view mark) {
    require_members();
    if (mark.size() > 255) throw Error(errc::invalid_argument, target_.name(), "a mark's name has up to 255 bytes");
    Cut cut;
    for (unsigned tries = 0;; ++tries) {
        cut.members = at_one_moment();
        if (mark.empty() && cut.members == newest_.members) return newest_;
        if (wait_for(cut.members)) break;
        if (tries == tries_max)
            throw Error(errc::unconfirmed, target_.name(), "transactions come as pages all the time, since the log hasn't got them; try again");
    }
    cut.written_at = store::microseconds_of(store::time_now());
    cut.mark = mark;
    lane_.append_cut(cut);
    if (!mark.empty()) {
        std::vector<Cut> marks = lane_.marks();
        std::erase_if(marks, [&](const Cut& other) { return other.mark == mark; });
        marks.push_back(cut);
        lane_.append_marks(std::move(marks));
        keep_marks();
    }
    newest_ = std::move(cut);
    return newest_;
}

void Cutter::unmark(std::string_view name) {
    std::vector<Cut> marks = lane_.marks();
    if (std::erase_if(marks, [&](const Cut& mark) { return mark.mark == name; }) == 0)
        throw Error(errc::not_found, target_.name(), "there is no mark '" + std::string(name) + "'");
    lane_.append_marks(std::move(marks));
    keep_marks();
}

/// The members' targets keep what the marks need.
void Cutter::keep_marks() const {
    for (const auto& [name, member] : members_) {
        const store::Visits::Visit visit(member->heap_file().visits());
        const Uuid& heap = member->heap_file().files().table().heap();
        std::optional<Serial> first;
        for (const Cut& mark : lane_.marks())
            for (const Cut::Member& kept : mark.members)
                if (kept.heap == heap && (!first || kept.serial < *first)) first = kept.serial;
        member->keep_from(lane_.group(), first);
    }
}

}  // namespace taiyen::replicate
