#include "replicate/cutter.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "store/opening_record.hpp"

namespace taiyen::replicate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Where pages stand in the place of transactions, another moment may do.
constexpr unsigned tries_max = 8;
/// So long nobody looks whether the cut is to be stopped.
constexpr milliseconds slice_max{50};

}  // namespace

Cutter::Cutter(ReplicationTarget& target, milliseconds patience) : target_(target), patience_(patience), lane_(target) { lane_.attach(); }

void Cutter::add(std::string name, std::shared_ptr<GroupMember> member) {
    const auto refuse = [&](const std::string& why) { throw Error(errc::invalid_argument, target_.name(), why); };
    if (!may_name_a_member(name)) refuse("a member's name has up to 200 bytes and no '/', not '" + name + "'");
    if (members_.size() == members_max) refuse("a group has up to " + std::to_string(members_max) + " members");
    for (const auto& [other_name, other] : members_)
        if (other_name == name || &other->heap_file() == &member->heap_file()) refuse("'" + name + "', or its heap, is a member already");
    stop_ = {};
    lane_.settle();
    members_.emplace_back(std::move(name), std::move(member));
    try {
        (void)keep(lane_.marks(), {});
    } catch (...) {
        members_.pop_back();
        throw;
    }
}

void Cutter::require_members() const {
    if (members_.empty()) throw Error(errc::invalid_argument, target_.name(), "the group has no heap; add one");
}

void Cutter::throw_unconfirmed(const std::string& why) const { throw Error(errc::unconfirmed, target_.name(), why + "; try again"); }

bool Cutter::wait_until(Time until, const std::function<bool(milliseconds slice)>& is_so) const {
    for (;;) {
        if (stop_.stop_requested()) throw Error(errc::closed, target_.name(), "the group was stopped");
        const auto left = std::max(std::chrono::duration_cast<milliseconds>(until - Clock::now()), milliseconds(0));
        if (is_so(std::min(left, slice_max))) return true;
        if (left.count() == 0) return false;
    }
}

/// The newest transactions at one moment. Nothing: one of them stands in no log yet.
std::optional<std::vector<Cut::Member>> Cutter::at_one_moment() const {
    std::vector<std::unique_ptr<store::Visits::Visit>> visits;  // they stay open meanwhile
    std::vector<const log::GroupLog*> logs;
    for (const auto& [name, member] : members_) {
        visits.push_back(std::make_unique<store::Visits::Visit>(member->heap_file().visits()));
        logs.push_back(&member->log());
    }
    const std::vector<Serial> serials = log::GroupLog::appended_together(logs);
    std::vector<Cut::Member> found;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        if (members_[i].second->has_unlogged(serials[i]) && !planted(Bug::cut_without_relaxed)) return std::nullopt;
        found.push_back({members_[i].first, members_[i].second->heap_file().files().table().heap(), serials[i]});
    }
    return found;
}

/// Their targets have them. False: one of them can't be restored exactly.
bool Cutter::wait_for(const std::vector<Cut::Member>& wanted, Time until) const {
    bool is_exact = true;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const auto& [name, member] = members_[i];
        const auto is_there = [&](milliseconds slice) { return member->wait_replicated(wanted[i].serial, slice); };
        if (!planted(Bug::cut_before_members) && !wait_until(until, is_there))
            throw_unconfirmed("the target of '" + name + "' has not got in time what the cut needs");
        is_exact = is_exact && (member->is_exact(wanted[i].serial) || planted(Bug::cut_within_gap));
    }
    return is_exact;
}

const Cut& Cutter::cut(std::string_view mark, const std::stop_token& stop) {
    require_members();
    stop_ = stop;
    if (mark.size() > name_bytes_max) throw Error(errc::invalid_argument, target_.name(), "a mark's name has up to 255 bytes");
    const Time until = Clock::now() + patience_;
    Cut cut;
    for (unsigned tries = 0;; ++tries) {
        const auto is_one = [&](milliseconds slice) {
            auto found = at_one_moment();
            if (found)
                cut.members = std::move(*found);
            else
                std::this_thread::sleep_for(std::min(slice, milliseconds(1)));
            return found.has_value();
        };
        if (!wait_until(until, is_one)) throw_unconfirmed("a heap has transactions that its log hasn't got, since it is loaded relaxed");
        if (mark.empty() && cut.members == newest_.members && lane_.has_newest()) return newest_;
        if (wait_for(cut.members, until)) break;
        if (tries == tries_max) throw_unconfirmed("transactions come as pages all the time, since the log hasn't got them");
    }
    cut.written_at = store::microseconds_of(store::time_now());
    cut.mark = mark;
    lane_.append_cut(cut);
    if (!mark.empty()) {
        const auto in_place = [&](std::vector<Cut>& marks) {
            std::erase_if(marks, [&](const Cut& other) { return other.mark == mark; });
            marks.push_back(cut);
        };
        // What it needs is kept before it is promised; what the one before it needed, until that is no longer.
        std::vector<Cut> both = lane_.marks();
        both.push_back(cut);
        if (!planted(Bug::marked_before_kept) && !keep(both, until)) throw_unconfirmed("a target does not know in time what the mark needs");
        lane_.change_marks(in_place);
        (void)keep(lane_.marks(), until);
    }
    newest_ = std::move(cut);
    return newest_;
}

void Cutter::unmark(std::string_view name) {
    stop_ = {};
    lane_.change_marks([&](std::vector<Cut>& marks) {
        if (std::erase_if(marks, [&](const Cut& mark) { return mark.mark == name; }) == 0)
            throw Error(errc::not_found, target_.name(), "there is no mark '" + std::string(name) + "'");
    });
    (void)keep(lane_.marks(), {});
}

bool Cutter::keep(const std::vector<Cut>& marks, Time until) const {
    bool is_known = true;
    for (const auto& [name, member] : members_) {
        const Uuid heap = [&] {
            const store::Visits::Visit visit(member->heap_file().visits());
            return member->heap_file().files().table().heap();
        }();
        std::optional<Serial> first;
        for (const Cut& mark : marks)
            for (const Cut::Member& kept : mark.members)
                if (kept.heap == heap && (!first || kept.serial < *first)) first = kept.serial;
        is_known = wait_until(until, [&](milliseconds slice) { return member->keep_from(lane_.group(), first, slice); }) && is_known;
    }
    return is_known;
}

}  // namespace taiyen::replicate
