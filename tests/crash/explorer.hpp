#pragma once
/// Walks through every cut point of a trace, builds the crash states there, lets the subject recover each one, and does the same to the
/// recovery itself.
///
/// At a cut everything before the last covering barrier is on the disk; of the pending operations none, all, the first ones, all but one, one alone, all but two,
/// random ones, random sectors; each write torn at a sector (its beginning, its end, a random part, what is missing zeroed while the write is in
/// flight); sizes without data and data without sizes; every combination if at most twelve units are pending.
/// A state that equals one seen before is not recovered again: the save it held is remembered and held against the bounds of this cut.
/// A failing state shrinks to one that says which units matter.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "crash/replay.hpp"
#include "crash/state_id.hpp"

namespace taiyen::crash {

/// What lies on the disk: a heap, a ring, … together with the model of what it must hold.
class Subject {
public:
    Subject() = default;
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;
    virtual ~Subject() = default;

    /// Recovers what is on the disk, proves it sound and equal to the model after some save; returns that save's number. Throws std::exception if anything is
    /// wrong. `state` varies with the state, to vary what else is tried.
    virtual std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t state) = 0;
    /// Recovers the disk and goes on with more saves, which it issues and acknowledges. Returns the subject that knows them. Null: this subject has no second
    /// life.
    virtual std::unique_ptr<Subject> live_on(io::RecordingStorage& disk, std::uint64_t save, std::uint64_t state) = 0;
    /// What else becomes of the disk between a crash and the recovery: check() sees to it by itself, before live_on() it is done for it, unrecorded.
    virtual void rot(io::SimulatedStorage&) const {}
};

struct Failure {
    std::string id;
    std::string what;
};

/// A failing state with as few units as possible that make it fail.
struct Shrunk {
    std::string id;
    std::string what;   ///< of the shrunken state
    std::string words;  ///< what was being done, and which units of which operations reached the disk, or didn't
    std::uint64_t tried = 0;
};

struct Effort {
    std::size_t first_cut = 0;           ///< cut points before it are passed without looking
    std::uint64_t states_per_cut = 400;  ///< beyond the structured ones, samples are drawn
    std::uint64_t nested_one_in = 400;   ///< how many distinct states get their recovery explored; 0: none
    std::uint64_t nested_states_per_cut = 8;
    std::uint64_t nested_cut_one_in = 1;  ///< of a recovery's cut points
    std::uint64_t seed = 1;
    /// Of the distinct disks this explorer takes each `shards`-th only: several together see what one would, and none twice.
    std::uint64_t shard = 0;
    std::uint64_t shards = 1;
    bool counts_cuts = true;  ///< of the trace: each shard looks at all of them, so one counts them
};

/// How near crashes came to an operation of the trace that changes something.
struct Coverage {
    io::Operation::Kind kind{};
    bool changes = false;  ///< else it is a mark, or a file that was opened
    bool before = false;   ///< a crash while it had left nothing on the disk
    bool inside = false;   ///< … a part of its units
    bool behind = false;   ///< a crash after it returned, with nothing of a later operation
    std::size_t units = 0;
};

struct Tally {
    std::uint64_t states = 0;    ///< built and held against the bounds
    std::uint64_t distinct = 0;  ///< of them different from each other: recovered and checked
    std::uint64_t nested_states = 0;
    std::uint64_t nested_distinct = 0;
    std::uint64_t cuts = 0;
    std::map<Select, std::uint64_t> by_selection;

    void add(const Tally& other);
};

class Explorer {
public:
    explicit Explorer(std::string scenario, const Effort& effort) : scenario_(std::move(scenario)), effort_(effort) {}

    /// Explores the trace; stops at the first failure. `acknowledged` is the save that the base is known to hold.
    std::optional<Failure> explore(const Image& base, const io::Trace& trace, Subject& subject, std::uint64_t acknowledged = 0);
    /// Builds the one state, and checks it.
    std::optional<Failure> replay(const std::string& id, const Image& base, const io::Trace& trace, Subject& subject, std::uint64_t acknowledged = 0);

    /// Fewest surviving or fewest missing units of a state that fails. Nothing: it doesn't fail.
    std::optional<Shrunk> shrink(const std::string& id, const Image& base, const io::Trace& trace, Subject& subject, std::uint64_t acknowledged = 0);

    const Tally& tally() const { return tally_; }
    /// By operation of the trace.
    const std::vector<Coverage>& coverage() const { return coverage_; }

private:
    struct Level;

    std::optional<Failure> explore_level(const Level& level, const Image& base, const io::Trace& trace, Subject& subject, std::uint64_t acknowledged);
    std::optional<Failure> visit(const Level& level, Replay& replay, io::SimulatedStorage& disk, const StateId& id, Subject& subject,
                                 std::uint64_t acknowledged, std::uint64_t issued, std::unordered_map<std::uint64_t, std::uint64_t>& seen);
    std::optional<Failure> visit_nested(const Level& level, const std::string& id, const Image& image, Subject& subject, std::uint64_t save,
                                        std::uint64_t state);
    std::vector<StateId> states_at(std::size_t cut, const Replay& replay, const Level& level) const;
    void cover(const Replay& replay, const Replay::Selection& selection, std::size_t cut);
    void shrink_at(const Level& level, Replay& replay, io::SimulatedStorage& disk, const io::Trace& trace, const StateId& id, Subject& subject,
                   std::uint64_t acknowledged, std::uint64_t issued);
    void read_id(const std::string& id);

    std::string scenario_;
    Effort effort_;
    Tally tally_;
    std::vector<Coverage> coverage_;
    std::size_t last_change_ = 0;    ///< the newest operation that returned and changed something
    std::vector<std::string> only_;  ///< ids by level, when one state is replayed
    bool shrinks_ = false;
    std::optional<Shrunk> shrunk_;
};

}  // namespace taiyen::crash
