#include "crash/explorer.hpp"

#include <algorithm>
#include <functional>
#include <random>

#include <unistd.h>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "crash/failure_words.hpp"
#include "crash/state_note.hpp"

namespace taiyen::crash {
namespace {

constexpr std::size_t exhaustive_units_max = 12;
constexpr std::size_t few_exhaustive_units_max = 6;  ///< of recoveries, and where little effort was asked for
constexpr std::uint64_t thorough_states_per_cut = 40;

bool changes_something(io::Operation::Kind kind) {
    return kind != io::Operation::Kind::issued && kind != io::Operation::Kind::acknowledged && kind != io::Operation::Kind::opened;
}

}  // namespace

void Tally::add(const Tally& other) {
    states += other.states;
    distinct += other.distinct;
    nested_states += other.nested_states;
    nested_distinct += other.nested_distinct;
    cuts += other.cuts;
    for (const auto& [select, count] : other.by_selection) by_selection[select] += count;
}

struct Explorer::Level {
    unsigned depth = 0;
    std::string prefix;
    std::size_t first_cut = 0;
    std::uint64_t states_per_cut = 0;
    std::uint64_t seed = 0;
    std::uint64_t cut_one_in = 1;
};

std::vector<StateId> Explorer::states_at(std::size_t cut, const Replay& replay, const Level& level) const {
    std::vector<StateId> states;
    const auto& pending = replay.pending();
    const std::size_t count = pending.size();
    const auto add = [&](Select select, std::uint64_t a = 0, std::uint64_t b = 0) { states.push_back({cut, select, a, b, {}}); };
    add(Select::none);
    if (count == 0) return states;
    add(Select::all);
    const std::size_t exhaustive_max =
        level.depth == 0 && level.states_per_cut >= thorough_states_per_cut ? exhaustive_units_max : few_exhaustive_units_max;
    if (replay.unit_count() <= exhaustive_max)
        for (std::uint64_t mask = 1; mask + 1 < (std::uint64_t{1} << replay.unit_count()); ++mask) add(Select::mask, mask);
    std::mt19937_64 random(mix(level.seed, cut));
    std::vector<StateId> others;
    const auto add_other = [&](Select select, std::uint64_t a = 0, std::uint64_t b = 0) { others.push_back({cut, select, a, b, {}}); };
    for (std::size_t i = 0; i < count; ++i) {
        add_other(Select::missing, i);
        add_other(Select::alone, i);
        add_other(Select::first, i + 1);
        const std::size_t units = pending[i].units;
        if (pending[i].has_size && units > 1) {
            add_other(Select::size_only, i);
            add_other(Select::size_only_alone, i);
            add_other(Select::data_only, i);
            add_other(Select::data_only_alone, i);
        }
        if (units < 2) continue;
        // Where a write tears: everywhere if it is short, else near its ends, at page borders, and somewhere.
        std::vector<std::uint64_t> tears;
        if (units <= 24) {
            for (std::uint64_t at = 1; at < units; ++at) tears.push_back(at);
        } else {
            for (const std::uint64_t at :
                 {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{8}, std::uint64_t{9}, std::uint64_t{16}, std::uint64_t{17}}) {
                tears.push_back(at);
                tears.push_back(units - at);
            }
            for (int more = 0; more < 6; ++more) tears.push_back(1 + random() % (units - 1));
        }
        for (const std::uint64_t at : tears) {
            add_other(Select::torn_head, i, at);
            add_other(Select::torn_tail, i, at);
            add_other(Select::torn_head_alone, i, at);
            add_other(Select::torn_tail_alone, i, at);
            if (pending[i].covered) add_other(Select::torn_zeroed, i, at);
        }
        for (int part = 0; part < 4; ++part) {
            add_other(Select::torn_part, i, random());
            add_other(Select::torn_part_alone, i, random());
        }
    }
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = i + 1; j < count; ++j) add_other(Select::two_missing, i, j);
    // The newest operation is what this cut is about: its states come first, then a sample of all others.
    std::vector<StateId> sorted;
    std::vector<StateId> rest;
    for (const StateId& id : others) (id.select != Select::two_missing && id.a + 1 >= count ? sorted : rest).push_back(id);
    const std::size_t own = sorted.size();
    sorted.insert(sorted.end(), rest.begin(), rest.end());
    others = std::move(sorted);
    if (others.size() > level.states_per_cut) {
        std::shuffle(others.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(own, level.states_per_cut)), others.end(), random);
        if (own > level.states_per_cut) std::shuffle(others.begin(), others.end(), random);
        others.resize(level.states_per_cut);
    }
    states.insert(states.end(), others.begin(), others.end());
    for (std::uint64_t sample = 0; sample < 4 + level.states_per_cut / 8; ++sample) {
        add(Select::some_operations, random());
        add(Select::some_units, random(), 1 + random() % 7);
    }
    return states;
}

std::optional<Failure> Explorer::explore(const Image& base, const io::Trace& trace, Subject& subject, std::uint64_t acknowledged) {
    only_.clear();
    return explore_level(
        {.depth = 0, .prefix = scenario_ + ":", .first_cut = effort_.first_cut, .states_per_cut = effort_.states_per_cut, .seed = effort_.seed}, base,
        trace, subject, acknowledged);
}

void Explorer::read_id(const std::string& id) {
    std::string rest = id.substr(id.find(':') == std::string::npos ? 0 : id.find(':') + 1);
    only_.clear();
    while (!rest.empty()) {
        const std::size_t end = rest.find('/');
        only_.push_back(rest.substr(0, end));
        rest = end == std::string::npos ? "" : rest.substr(end + 1);
    }
}

std::optional<Failure> Explorer::replay(const std::string& id, const Image& base, const io::Trace& trace, Subject& subject,
                                        std::uint64_t acknowledged) {
    read_id(id);
    return explore_level({.depth = 0, .prefix = scenario_ + ":", .states_per_cut = effort_.states_per_cut, .seed = effort_.seed}, base, trace,
                         subject, acknowledged);
}

std::optional<Failure> Explorer::explore_level(const Level& level, const Image& base, const io::Trace& trace, Subject& subject,
                                               std::uint64_t acknowledged) {
    io::SimulatedStorage disk;
    add_directories(disk);
    Replay replay(disk, base);
    if (level.depth == 0) {
        coverage_.assign(trace.size(), {});
        last_change_ = trace.size();
        for (std::size_t number = 0; number < trace.size(); ++number) {
            coverage_[number].kind = trace[number].kind;
            coverage_[number].changes = changes_something(trace[number].kind);
        }
    }
    std::unordered_map<std::uint64_t, std::uint64_t> seen;
    std::uint64_t issued = acknowledged;
    bool fresh = true;  // something happened since the last cut that was looked at
    for (std::size_t number = 0; number <= trace.size(); ++number) {
        if (number < trace.size()) {
            replay.begin(trace[number], number);
            if (trace[number].kind == io::Operation::Kind::issued)
                issued = std::max(issued, trace[number].number);
            else if (trace[number].kind == io::Operation::Kind::acknowledged)
                acknowledged = std::max(acknowledged, trace[number].number);
            fresh = fresh || trace[number].kind != io::Operation::Kind::issued;
        }
        const bool look = only_.empty() ? fresh && number >= level.first_cut && mix(level.seed, number) % level.cut_one_in == 0
                                        : number == state_id(only_[level.depth]).cut;
        if (look && shrinks_ && level.depth + 1 == only_.size()) {
            shrink_at(level, replay, disk, trace, state_id(only_[level.depth]), subject, acknowledged, issued);
            return std::nullopt;
        }
        if (look) {
            tally_.cuts += level.depth != 0 || effort_.counts_cuts ? 1 : 0;
            for (const StateId& id : only_.empty() ? states_at(number, replay, level) : std::vector{state_id(only_[level.depth])}) {
                if (auto failure = visit(level, replay, disk, id, subject, acknowledged, issued, seen)) {
                    ::alarm(0);
                    return failure;
                }
            }
            ::alarm(0);
            fresh = false;
        }
        if (number < trace.size()) {
            replay.finish(trace[number]);
            if (level.depth == 0 && coverage_[number].changes) last_change_ = number;
            fresh = fresh || trace[number].kind == io::Operation::Kind::synced || trace[number].kind == io::Operation::Kind::durably_written ||
                    trace[number].kind == io::Operation::Kind::directory_synced;
        }
    }
    if (replay.durable_writes_outside() != 0) return Failure{level.prefix, "a durable write lay outside the durable size of its file"};
    return std::nullopt;
}

std::optional<Failure> Explorer::visit(const Level& level, Replay& replay, io::SimulatedStorage& disk, const StateId& id, Subject& subject,
                                       std::uint64_t acknowledged, std::uint64_t issued, std::unordered_map<std::uint64_t, std::uint64_t>& seen) {
    const Replay::Selection selection = selection_of(id, replay);
    if (selection.size() != replay.unit_count()) return std::nullopt;
    const std::uint64_t state = replay.fingerprint(selection);
    if (level.depth == 0) {
        if (state % effort_.shards != effort_.shard) return std::nullopt;
        cover(replay, selection, id.cut);
    }
    ++(level.depth == 0 ? tally_.states : tally_.nested_states);
    ++tally_.by_selection[id.select];
    const std::string name = level.prefix + text_of(id);
    std::uint64_t save = 0;
    if (const auto found = seen.find(state); found != seen.end()) {
        save = found->second;
    } else {
        ++(level.depth == 0 ? tally_.distinct : tally_.nested_distinct);
        note_current_state(name);
        replay.mount(selection);
        repeatable_random = mix(state, 1) | 1U;
        ::alarm(hang_seconds);
        try {
            save = subject.check(disk, state);
        } catch (const std::exception& error) {
            disk.rollback();
            return Failure{name, error.what()};
        }
        disk.rollback();
        seen.emplace(state, save);
        const bool goes_deeper = only_.empty()
                                     ? level.depth == 0 && effort_.nested_one_in != 0 && mix(state, effort_.seed) % effort_.nested_one_in == 0
                                     : only_.size() > level.depth + 1;
        if (goes_deeper) {
            replay.mount(selection);
            subject.rot(disk);
            const Image image = image_of(disk);
            disk.rollback();
            if (auto failure = visit_nested(level, name, image, subject, save, state)) return failure;
        }
    }
    if (save < acknowledged)
        return Failure{name, "save " + std::to_string(acknowledged) + " was acknowledged, but save " + std::to_string(save) + " was found"};
    if (save > issued) return Failure{name, "save " + std::to_string(save) + " was found, but only " + std::to_string(issued) + " was begun"};
    return std::nullopt;
}

void Explorer::cover(const Replay& replay, const Replay::Selection& selection, std::size_t cut) {
    const auto& pending = replay.pending();
    const bool in_flight = !pending.empty() && pending.back().number == cut;
    std::size_t there = 0;
    if (in_flight) {
        const auto first = selection.begin() + static_cast<std::ptrdiff_t>(pending.back().first_unit);
        there = static_cast<std::size_t>(
            std::count_if(first, first + static_cast<std::ptrdiff_t>(pending.back().units), [](std::uint8_t unit) { return unit == 1; }));
    }
    if (cut < coverage_.size()) {
        Coverage& own = coverage_[cut];
        own.units = in_flight ? pending.back().units : 0;
        own.before = own.before || there == 0;
        own.inside = own.inside || (there != 0 && there != own.units);
        own.behind = own.behind || (in_flight && there == own.units);  // the same disk
    }
    if (last_change_ < coverage_.size() && there == 0) coverage_[last_change_].behind = true;
}

// ---------------------------------------------------------------------------------------------- shrinking

namespace {

constexpr std::uint64_t shrink_tries_max = 3000;

/// Turns units to `value` as long as `fails` stays true: halves, quarters … of what differs, then one by one. Greedy, repeated until nothing changes.
Replay::Selection turned(Replay::Selection selection, std::uint8_t value, const std::function<bool(const Replay::Selection&)>& fails) {
    for (bool changed = true; changed;) {
        changed = false;
        std::vector<std::size_t> other;
        for (std::size_t u = 0; u < selection.size(); ++u)
            if (selection[u] != value) other.push_back(u);
        for (std::size_t chunk = std::max<std::size_t>(other.size(), 1); chunk != 0; chunk /= 2) {
            for (std::size_t at = 0; at < other.size(); at += chunk) {
                Replay::Selection candidate = selection;
                for (std::size_t i = at; i < std::min(at + chunk, other.size()); ++i) candidate[other[i]] = value;
                if (candidate != selection && fails(candidate)) {
                    selection = std::move(candidate);
                    changed = true;
                }
            }
        }
    }
    return selection;
}

}  // namespace

std::optional<Shrunk> Explorer::shrink(const std::string& id, const Image& base, const io::Trace& trace, Subject& subject,
                                       std::uint64_t acknowledged) {
    read_id(id);
    shrinks_ = true;
    shrunk_.reset();
    (void)explore_level({.depth = 0, .prefix = scenario_ + ":", .states_per_cut = effort_.states_per_cut, .seed = effort_.seed}, base, trace, subject,
                        acknowledged);
    shrinks_ = false;
    return shrunk_;
}

void Explorer::shrink_at(const Level& level, Replay& replay, io::SimulatedStorage& disk, const io::Trace& trace, const StateId& id, Subject& subject,
                         std::uint64_t acknowledged, std::uint64_t issued) {
    const Replay::Selection selection = selection_of(id, replay);
    if (selection.size() != replay.unit_count()) return;
    Shrunk best;
    const auto fails = [&](const Replay::Selection& candidate) {
        if (best.tried++ >= shrink_tries_max) return false;
        std::unordered_map<std::uint64_t, std::uint64_t> seen;
        const std::uint64_t state = replay.fingerprint(candidate);
        replay.mount(candidate);
        repeatable_random = mix(state, 1) | 1U;
        note_current_state(level.prefix + text_of(id_of(id.cut, candidate)));
        ::alarm(hang_seconds);
        std::string what;
        try {
            const std::uint64_t save = subject.check(disk, state);
            if (save < acknowledged)
                what = "save " + std::to_string(acknowledged) + " was acknowledged, but save " + std::to_string(save) + " was found";
            else if (save > issued)
                what = "save " + std::to_string(save) + " was found, but only " + std::to_string(issued) + " was begun";
        } catch (const std::exception& error) {
            what = error.what();
        }
        ::alarm(0);
        disk.rollback();
        return !what.empty() && !(best.what = what).empty();
    };
    if (!fails(selection)) return;
    // Towards a disk that nothing reached, and towards one that everything reached: whichever ends nearer.
    Replay::Selection least = turned(selection, 0, fails);
    Replay::Selection most = turned(selection, 1, fails);
    const auto surviving = std::count_if(least.begin(), least.end(), [](std::uint8_t unit) { return unit != 0; });
    const auto missing = std::count_if(most.begin(), most.end(), [](std::uint8_t unit) { return unit != 1; });
    const Replay::Selection& chosen = surviving <= missing ? least : most;
    best.tried = 0;
    (void)fails(chosen);
    best.id = level.prefix + text_of(id_of(id.cut, chosen));
    best.words = words_of(replay, chosen, trace, id.cut, 2 * surviving <= static_cast<std::ptrdiff_t>(chosen.size()) && &chosen == &least);
    shrunk_ = best;
}

std::optional<Failure> Explorer::visit_nested(const Level& level, const std::string& id, const Image& image, Subject& subject, std::uint64_t save,
                                              std::uint64_t state) {
    io::Trace trace;
    std::unique_ptr<Subject> next;
    {
        io::SimulatedStorage disk;
        const Replay base(disk, image);
        add_directories(disk);
        io::RecordingStorage recorder(disk);
        repeatable_random = mix(state, 2) | 1U;
        ::alarm(hang_seconds);
        try {
            next = subject.live_on(recorder, save, state);
        } catch (const std::exception& error) {
            return Failure{id, std::string("going on after recovery: ") + error.what()};
        }
        trace = recorder.take_trace();
    }
    if (next == nullptr) return std::nullopt;
    return explore_level({.depth = level.depth + 1,
                          .prefix = id + "/",
                          .states_per_cut = effort_.nested_states_per_cut,
                          .seed = mix(effort_.seed, state),
                          .cut_one_in = effort_.nested_cut_one_in},
                         image, trace, *next, save);
}

}  // namespace taiyen::crash
