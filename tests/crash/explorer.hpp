#pragma once
/// Walks through every cut point of a trace, builds the crash states there, lets the subject recover each one, and does the same to the
/// recovery itself.
///
/// At a cut everything before the last covering barrier is on the disk; of the pending operations none, all, the first ones, all but one, one alone, all but two,
/// random ones, random sectors; each write torn at a sector (its beginning, its end, a random part, what is missing zeroed while the write is in
/// flight); sizes without data and data without sizes; every combination if at most twelve units are pending.
/// A state that equals one seen before is not recovered again: the save it held is remembered and held against the bounds of this cut.
/// Every state has an id that builds it again: `cut.selection.a.b`, nested ones joined by '/'.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "crash/replay.hpp"

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
};

enum class Select : std::uint8_t {
    none, all, first, missing, alone, two_missing, some_operations, some_units,
    torn_head, torn_head_alone, torn_tail, torn_tail_alone, torn_part, torn_part_alone, torn_zeroed, size_only, size_only_alone, data_only, data_only_alone, mask
};

struct StateId {
    std::size_t cut = 0;
    Select select = Select::none;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
};
std::string text_of(const StateId& id);
/// Throws: std::invalid_argument.
StateId state_id(const std::string& text);

struct Failure {
    std::string id;
    std::string what;
};

struct Effort {
    std::size_t first_cut = 0;               ///< cut points before it are passed without looking
    std::uint64_t states_per_cut = 400;      ///< beyond the structured ones, samples are drawn
    std::uint64_t nested_one_in = 400;       ///< how many distinct states get their recovery explored; 0: none
    std::uint64_t nested_states_per_cut = 8;
    std::uint64_t nested_cut_one_in = 1;     ///< of a recovery's cut points
    std::uint64_t seed = 1;
};

struct Tally {
    std::uint64_t states = 0;           ///< built and held against the bounds
    std::uint64_t distinct = 0;         ///< of them different from each other: recovered and checked
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

    const Tally& tally() const { return tally_; }

private:
    struct Level;

    std::optional<Failure> explore_level(const Level& level, const Image& base, const io::Trace& trace, Subject& subject, std::uint64_t acknowledged);
    std::optional<Failure> visit(const Level& level, Replay& replay, io::SimulatedStorage& disk, const StateId& id, Subject& subject, std::uint64_t acknowledged,
                                 std::uint64_t issued, std::unordered_map<std::uint64_t, std::uint64_t>& seen);
    std::optional<Failure> visit_nested(const Level& level, const std::string& id, const Image& image, Subject& subject, std::uint64_t save, std::uint64_t state);
    std::vector<StateId> states_at(std::size_t cut, const Replay& replay, const Level& level) const;

    std::string scenario_;
    Effort effort_;
    Tally tally_;
    std::vector<std::string> only_;  ///< ids by level, when one state is replayed
};

/// The selection of pending units that the id means. Empty: the id does not fit.
Replay::Selection selection_of(const StateId& id, const Replay& replay);

/// What was being done is written to standard error if the program is killed by a signal or hangs.
void watch_for_crashes();
void note_current_state(const std::string& id);

}  // namespace taiyen::crash
