// A follower: after any crash of its host it shows at least what it has shown, goes on to where the target is, and either follows or has the place of the one that appends.

#include "crash/replicated_life.hpp"
#include "replicate/deposed_file.hpp"
#include "replicate/following.hpp"

namespace taiyen::crash {
namespace {

const std::filesystem::path follower_path = "/disk/follower.tyn";

/// A follower's file that is open, and what brings it on.
class FollowerLife {
public:
    FollowerLife(io::Storage& disk, ReplicationTarget& target) : disk_(disk), target_(target), life_(disk, follower_path) {}

    void make() {
        const RestoreOptions how;
        replicate::Restorer(disk_, target_, follower_path, how).run_for_follower();
    }
    void open() {
        life_.open(store::OpenMode::open_only, store::RoleWanted::follower);
        following_.emplace(life_.file(), *txn::TransactionService::of(life_.file()), target_);
    }
    replicate::Following& following() { return *following_; }
    ReplicatedLife& life() { return life_; }
    void close() {
        following_.reset();
        life_.close();
    }
    void abandon() {
        following_.reset();
        life_.abandon();
    }

private:
    io::Storage& disk_;
    ReplicationTarget& target_;
    ReplicatedLife life_;
    std::optional<replicate::Following> following_;
};

bool may_be_changed(io::Storage& disk) {
    try {
        ReplicatedLife life(disk, follower_path);
        life.open(store::OpenMode::open_only);
        life.close();
        return true;
    } catch (const Error& error) {
        if (error.code() != errc::follower) throw;
        return false;
    }
}

/// The number of a state is that of the newest transaction that the follower shows.
class FollowSubject final : public Subject {
public:
    FollowSubject(std::uint64_t newest, bool may_be_missing) : newest_(newest), may_be_missing_(may_be_missing) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t state) override {
        const auto target = ReplicationAccess::directory(disk, frames_path);
        if (may_be_missing_ && !disk.find(follower_path)) {
            FollowerLife(disk, *target).make();
            (void)shown_by_follower(disk, *target, state);
            return 0;
        }
        return may_be_changed(disk) ? shown_by_owner(disk, *target) : shown_by_follower(disk, *target, state);
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    std::uint64_t shown_by_follower(io::SimulatedStorage& disk, ReplicationTarget& target, std::uint64_t state) const {
        FollowerLife follower(disk, target);
        follower.open();
        const std::uint64_t shown = follower.life().compare();
        if (follower.following().applied().value != shown) throw std::runtime_error("it says another transaction than it shows");
        while (follower.following().step()) {}
        if (const std::uint64_t now = follower.life().compare(); now < newest_)
            throw std::runtime_error("it follows to transaction " + std::to_string(now) + ", not to " + std::to_string(newest_));
        follower.life().prove();
        const bool takes_over = mix(state, 0x70'726f'6d6f) % 4 == 0;
        if (takes_over) follower.following().take_over();
        follower.close();
        if (may_be_changed(disk) != takes_over) throw std::runtime_error(takes_over ? "it has the place, and can't be changed" : "it may be changed");
        if (takes_over) go_on(disk, target);
        return shown;
    }
    std::uint64_t shown_by_owner(io::SimulatedStorage& disk, ReplicationTarget& target) const {
        const Uuid own = [&] {
            const store::Slots slots = store::read_slots(*disk.open(follower_path, io::Access::read_only));
            return slots.newest()->file;
        }();
        if (replicate::Frame(target, target.range().last).file() != own) throw std::runtime_error("it may be changed, but has not taken the place");
        const std::uint64_t shown = state_of(disk, follower_path);
        if (shown < newest_) throw std::runtime_error("it has taken the place without what was there");
        go_on(disk, target);
        return shown;
    }
    static void go_on(io::SimulatedStorage& disk, ReplicationTarget& target) {
        ReplicatedLife life(disk, follower_path);
        life.open(store::OpenMode::open_only);
        life.attach(target);
        const std::uint64_t newest = life.transact();
        life.shipper().ship();
        life.close();
        if (restored_state(disk) != newest) throw std::runtime_error("what was committed behind the promotion isn't in the target");
    }

    const std::uint64_t newest_;  ///< in the target, before anybody was promoted
    const bool may_be_missing_;
};

struct FollowPiece {
    const char* name;
    void (*before)(ReplicationSteps&);     ///< then the follower is made
    void (*meanwhile)(ReplicationSteps&);  ///< then it follows
    void (*life)(FollowerLife&, const std::function<void()>& told);
};

Recording record_following(const FollowPiece& piece, Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    add_directories(disk);
    std::uint64_t newest = 0;
    {
        const auto target = ReplicationAccess::directory(disk, frames_path);
        ReplicatedLife primary(disk, replicated_path);
        primary.open(store::OpenMode::create_only);
        ReplicationSteps steps(primary, *target, nullptr);
        piece.before(steps);
        primary.close();
        if (piece.meanwhile != nullptr) {
            FollowerLife(disk, *target).make();
            FollowerLife follower(disk, *target);
            follower.open();
            recording.acknowledged = follower.life().compare();
            follower.close();
            primary.open(store::OpenMode::open_only);
            piece.meanwhile(steps);
            primary.close();
        }
        remove_heap(disk, replicated_path);
        newest = restored_state(disk);
    }
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    const auto target = ReplicationAccess::directory(recorder, frames_path);
    FollowerLife follower(recorder, *target);
    recorder.issue(newest + 1);
    piece.life(follower, [&] { recorder.acknowledge(follower.following().applied().value); });
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<FollowSubject>(newest, piece.meanwhile == nullptr);
    disk.disconnect();
    follower.abandon();
    return recording;
}

void follow_to_the_end(FollowerLife& follower, const std::function<void()>& told) {
    unsigned steps = 0;
    while (follower.following().step()) {
        told();
        if (++steps == 2) follower.life().file().save();
        if (steps == 3) follower.following().note_position();
    }
}

constexpr FollowPiece follow_pieces[] = {
    {"follow-make",
     [](ReplicationSteps& steps) {
         steps.transact(3);
         steps.attach();
         steps.transact(2);
         steps.ship();
     },
     nullptr,
     [](FollowerLife& follower, const std::function<void()>& told) {
         follower.make();
         follower.open();
         told();
         follower.close();
     }},
    {"follow-transactions",
     [](ReplicationSteps& steps) {
         steps.transact(2);
         steps.attach();
     },
     [](ReplicationSteps& steps) {
         // Frames of one transaction each, two and two of them next to each other.
         steps.attach(1);
         steps.transact(2);
         steps.ship();
         steps.attach(1);
         steps.transact(2);
         steps.ship();
     },
     [](FollowerLife& follower, const std::function<void()>& told) {
         follower.open();
         follow_to_the_end(follower, told);
         follower.following().note_position();
         follower.close();
     }},
    {"follow-base",
     [](ReplicationSteps& steps) {
         steps.transact(5);
         steps.attach();
     },
     [](ReplicationSteps& steps) {
         steps.attach();
         steps.transact(3);  // one of them larger than the log
         steps.ship();
         steps.transact();
         steps.make_base();
         steps.transact();
         steps.ship();
     },
     [](FollowerLife& follower, const std::function<void()>& told) {
         follower.open();
         follow_to_the_end(follower, told);
         follower.close();
     }},
    {"follow-promote",
     [](ReplicationSteps& steps) {
         steps.transact(2);
         steps.attach();
     },
     [](ReplicationSteps& steps) {
         steps.attach(1);
         steps.transact(2);
         steps.ship();
     },
     [](FollowerLife& follower, const std::function<void()>& told) {
         follower.open();
         follower.following().take_over();
         told();
         follower.close();
         follower.life().open(store::OpenMode::open_only);
         follower.life().transact();
         follower.life().close();
     }},
};

Uuid heap_in_target(io::Storage& disk) {
    const auto target = ReplicationAccess::directory(disk, frames_path);
    return replicate::Frame(*target, target->range().last).heap();
}

/// 1: the deposed heap has its other name.
class DeposedSubject final : public Subject {
public:
    explicit DeposedSubject(std::uint64_t newest) : newest_(newest) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t) override {
        const bool has_gone = !disk.find(replicated_path);
        if (!has_gone && !replicate::set_deposed_aside(disk, replicated_path, {}, [&] { return heap_in_target(disk); }))
            throw std::runtime_error("it is no longer deposed");
        const auto target = ReplicationAccess::directory(disk, frames_path);
        const RestoreOptions how;
        replicate::Restorer(disk, *target, replicated_path, how).run_for_follower();  // removes what it takes for an orphan
        ReplicatedLife aside(disk, replicated_path.string() + ".deposed");
        aside.open(store::OpenMode::open_only, store::RoleWanted::any);
        if (const std::uint64_t now = aside.compare(); now != newest_)
            throw std::runtime_error("the deposed heap is as of transaction " + std::to_string(now) + ", not " + std::to_string(newest_));
        aside.close();
        return has_gone ? 1 : 0;
    }
    std::unique_ptr<Subject> live_on(io::RecordingStorage&, std::uint64_t, std::uint64_t) override { return nullptr; }

private:
    std::uint64_t newest_;
};

Recording record_replacing(Bug bug) {
    Recording recording;
    io::SimulatedStorage disk;
    add_directories(disk);
    const auto killed = [&](ReplicatedLife& life) {
        disk.disconnect();
        life.abandon();
    };
    std::uint64_t newest = 0;
    {
        const auto target = ReplicationAccess::directory(disk, frames_path);
        ReplicatedLife former(disk, replicated_path);
        former.open(store::OpenMode::create_only);
        ReplicationSteps steps(former, *target, nullptr);
        steps.transact(2);
        steps.attach();
        steps.transact();
        steps.ship();
        steps.transact();  // in its log alone
        newest = former.compare();
        killed(former);
    }
    {
        const auto target = ReplicationAccess::directory(disk, frames_path);
        FollowerLife standby(disk, *target);
        standby.make();
        standby.open();
        standby.following().take_over();
        standby.close();
        ReplicatedLife former(disk, replicated_path);
        former.open(store::OpenMode::open_only);
        try {
            former.attach(*target);
            throw std::runtime_error("it goes on although another one has its place");
        } catch (const Error& error) {
            if (error.code() != errc::fenced) throw;
        }
        killed(former);
    }
    try {
        PersistentOptions elsewhere;
        elsewhere.log_file = frames_path / "none.log";
        (void)replicate::set_deposed_aside(disk, replicated_path, elsewhere, [&] { return heap_in_target(disk); });
        throw std::runtime_error("it makes room without its log");
    } catch (const Error& error) {
        if (error.code() != errc::not_found) throw;
    }
    recording.base = image_of(disk);
    planted_bug = bug;
    io::RecordingStorage recorder(disk);
    recorder.issue(1);
    (void)replicate::set_deposed_aside(recorder, replicated_path, {}, [&] { return heap_in_target(disk); });
    recorder.acknowledge(1);
    recording.trace = recorder.take_trace();
    recording.subject = std::make_unique<DeposedSubject>(newest);
    return recording;
}

}  // namespace

std::vector<CrashScenario> follow_crash_scenarios() {
    std::vector<CrashScenario> all;
    for (const FollowPiece& piece : follow_pieces) {
        all.push_back(
            {.name = piece.name, .about = "followers", .states_per_cut = 600, .nested_one_in = 0, .record = [&piece](std::uint64_t, Bug bug) {
                 return record_following(piece, bug);
             }});
    }
    all.push_back({.name = "follow-replace", .about = "followers", .states_per_cut = 600, .nested_one_in = 0, .record = [](std::uint64_t, Bug bug) {
                       return record_replacing(bug);
                   }});
    return all;
}

}  // namespace taiyen::crash
