#pragma once
/// Walks through every cut point of a trace, builds the crash states there, lets the subject recover each one, and does the same to the
/// recovery itself.
///
/// At a cut everything before the last covering barrier is on the disk; of the pending operations none, all, the first ones, all but one, one alone, all but two,
/// random ones, random sectors; each write torn at a sector (its beginning, its end, a random part, what is missing zeroed while the write is in
/// flight); sizes without data and data without sizes; every combination if at most twelve units are pending.
/// A state that equals one seen before is not recovered again: the save it held is remembered and held against the bounds of this cut.
/// Every state has an id that builds it again: `cut.selection.a.b`, nested ones joined by '/'. A failing state shrinks to one that says which units matter: `cut.only.3-5.0`
/// (of all pending units these reached the disk) or `cut.without.9.0` (all but these did; `9z`: it reached the disk as zeros).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "crash/replay.hpp"

namespace taiyen::crash {

/// What takes longer than that for one state or one fault hangs; the machine may be busy.
inline constexpr unsigned hang_seconds = 120;

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

enum class Select : std::uint8_t {
    none,
    all,
    first,
    missing,
    alone,
    two_missing,
    some_operations,
    some_units,
    torn_head,
    torn_head_alone,
    torn_tail,
    torn_tail_alone,
    torn_part,
    torn_part_alone,
    torn_zeroed,
    size_only,
    size_only_alone,
    data_only,
    data_only_alone,
    mask,
    only,
    without
};
inline constexpr std::size_t select_count = static_cast<std::size_t>(Select::without) + 1;
std::string_view name_of(Select select);

struct StateId {
    std::size_t cut = 0;
    Select select = Select::none;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::string units = {};  ///< of `only` and `without`: "3-5,9,12z"
};
std::string text_of(const StateId& id);
/// Throws: std::invalid_argument.
StateId state_id(const std::string& text);

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

/// The selection of pending units that the id means. Empty: the id does not fit.
Replay::Selection selection_of(const StateId& id, const Replay& replay);

/// What was being done is written to standard error if the program is killed by a signal or hangs.
void watch_for_crashes();
void note_current_state(const std::string& id);
/// Where the note is kept from now on: memory that another process sees. Requires: at least `current_state_bytes`.
void keep_current_state_in(char* place);
inline constexpr std::size_t current_state_bytes = 512;

}  // namespace taiyen::crash
