#pragma once
/// What a set of ids must be, as a map of intervals; and random programs that run on both.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <taiyen/object/object_id_set.hpp>

namespace taiyen::object::test {

using Id = std::int64_t;
inline constexpr Id least = std::numeric_limits<Id>::min();
inline constexpr Id greatest = std::numeric_limits<Id>::max();

class IntervalModel {
public:
    bool contains(Id id) const {
        const auto behind = intervals_.upper_bound(id);
        return behind != intervals_.begin() && std::prev(behind)->second >= id;
    }
    void erase(Id first, Id last) {
        auto at = intervals_.upper_bound(first);
        if (at != intervals_.begin()) --at;
        while (at != intervals_.end() && at->first <= last) {
            const auto [from, to] = *at;
            if (to < first) {
                ++at;
                continue;
            }
            at = intervals_.erase(at);
            if (from < first) intervals_.emplace(from, first - 1);
            if (to > last) intervals_.emplace(last + 1, to);
        }
    }
    void insert(Id first, Id last) {
        erase(first, last);
        auto behind = intervals_.upper_bound(first);
        if (last != greatest && behind != intervals_.end() && behind->first == last + 1) {
            last = behind->second;
            behind = intervals_.erase(behind);
        }
        if (first != least && behind != intervals_.begin() && std::prev(behind)->second == first - 1) {
            first = std::prev(behind)->first;
            intervals_.erase(std::prev(behind));
        }
        intervals_.emplace(first, last);
    }
    std::uint64_t size() const { return rank(greatest) + (contains(greatest) ? 1 : 0); }
    std::uint64_t rank(Id id) const {
        std::uint64_t below = 0;
        for (const auto& [first, last] : intervals_) {
            if (first >= id) break;
            below += width(first, last < id ? last : id - 1);
        }
        return below;
    }
    std::optional<Id> not_less(Id id) const {
        if (contains(id)) return id;
        const auto behind = intervals_.upper_bound(id);
        return behind == intervals_.end() ? std::nullopt : std::optional(behind->first);
    }
    static std::uint64_t width(Id first, Id last) { return static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1; }
    const std::map<Id, Id>& intervals() const { return intervals_; }

private:
    std::map<Id, Id> intervals_;
};

inline IntervalModel combined(int operation, const IntervalModel& a, const IntervalModel& b) {
    IntervalModel result = a;
    const auto subtract = [](IntervalModel& from, const IntervalModel& what) {
        for (const auto& [first, last] : what.intervals()) from.erase(first, last);
    };
    if (operation == 0 || operation == 3)
        for (const auto& [first, last] : b.intervals()) result.insert(first, last);
    if (operation == 1 || operation == 3) {
        IntervalModel only_a = a;
        subtract(only_a, b);
        IntervalModel both = a;
        subtract(both, only_a);
        if (operation == 1) return both;
        subtract(result, both);
    }
    if (operation == 2) subtract(result, b);
    return result;
}

/// Throws what differs.
inline void check(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
}

/// The set is exactly the model: as many ids, and all that the model has.
template <class Set>
void check_equal(const Set& set, const IntervalModel& model) {
    check(set.is_sound(), "the set's invariants are broken");
    std::uint64_t below = 0;
    Id inside = 0;
    for (const auto& [first, last] : model.intervals()) {
        check(set.rank(first) == below, "rank");
        check(set.select(below) == first, "select of an interval's first id");
        below += IntervalModel::width(first, last);
        check(set.select(below - 1) == last, "select of an interval's last id");
        check(set.contains(first) && set.contains(last), "contains");
        inside = first + static_cast<Id>((static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first)) / 2);
        check(set.contains(inside), "contains in the middle");
        if (first != least) check(!set.contains(first - 1), "contains before an interval");
        if (last != greatest) check(!set.contains(last + 1), "contains behind an interval");
    }
    check(set.size() == below, "size");
    auto next = model.intervals().begin();
    set.for_each_interval([&](Id first, Id last) {
        check(next != model.intervals().end() && next->first == first && next->second == last, "for_each_interval");
        ++next;
    });
    check(next == model.intervals().end(), "for_each_interval leaves some out");
}

/// Forward and backward over at most `most` ids from `id`.
template <class Set>
void check_walk(const Set& set, const IntervalModel& model, Id id, int most) {
    auto at = set.lower_bound(id);
    std::optional<Id> expected = model.not_less(id);
    int steps = 0;
    for (; expected && steps < most; ++steps) {
        check(at != set.end() && *at == *expected, "lower_bound or ++");
        expected = *expected == greatest ? std::nullopt : model.not_less(*expected + 1);
        ++at;
    }
    if (!expected) check(at == set.end(), "++ to the end");
    bool at_end = at == set.end();
    Id behind = at_end ? 0 : *at;
    for (; steps > 0; --steps) {
        --at;
        check(model.contains(*at) && (at_end || *at < behind), "--");
        if (!at_end) check(model.not_less(*at + 1) == behind, "-- leaves one out");
        at_end = false;
        behind = *at;
    }
    if (!at_end) check(model.not_less(id) == behind, "-- did not come back");
}

struct Step {
    int kind;
    Id a;
    Id b;
    std::uint32_t more;
};
using Program = std::vector<Step>;
inline constexpr int step_kinds = 20;

/// Ids near what could go wrong.
inline Id random_id(std::mt19937_64& random) {
    constexpr Id anchors[] = {least,           greatest,     0,      Id{1} << 16U, -(Id{1} << 16U), Id{1} << 32U, -(Id{1} << 32U), Id{1} << 56U,
                              -(Id{1} << 56U), Id{1} << 40U, 300'000};
    constexpr std::uint64_t widths[] = {3, 40, 300, 70'000, 300'000, std::uint64_t{1} << 33U};
    const auto anchor = static_cast<std::uint64_t>(anchors[random() % std::size(anchors)]);
    const std::uint64_t width = widths[random() % std::size(widths)];
    const std::uint64_t offset = random() % width;
    return static_cast<Id>(random() % 2 == 0 ? anchor + offset : anchor - offset);  // around both ends of the numbers: both are edges
}

enum class Spread {
    edges,   ///< near what could go wrong, anywhere
    chunks,  ///< within a few chunks: every form that a chunk may have
    trees    ///< over thousands of chunks: nodes that split and merge
};

inline Program random_program(std::uint64_t seed, std::size_t steps, Spread spread) {
    std::mt19937_64 random(seed);
    Program program;
    const Id centre = random_id(random);
    for (std::size_t i = 0; i < steps; ++i) {
        const auto id = [&] {
            if (spread == Spread::edges || random() % 16 == 0) return random_id(random);
            if (spread == Spread::trees) return static_cast<Id>(static_cast<std::uint64_t>(centre) + random() % (1U << 28U));
            return static_cast<Id>(static_cast<std::uint64_t>(centre) + random() % (random() % 4 == 0 ? 200'000U : 3000U));
        };
        Step step{static_cast<int>(random() % step_kinds), id(), id(), static_cast<std::uint32_t>(random())};
        // Narrow intervals more often than wide ones.
        const std::uint64_t width = random() % 8 != 0 ? 500 : spread == Spread::trees ? 1U << 25U : 200'000;
        if (random() % 8 != 0) step.b = static_cast<Id>(static_cast<std::uint64_t>(step.a) + random() % width);
        if (step.b < step.a) std::swap(step.a, step.b);
        program.push_back(step);
    }
    return program;
}

/// Two sets and their models.
template <class Set>
struct Pair {
    Set& set;
    Set& other;
    IntervalModel model;
    IntervalModel other_model;

    void run(const Step& step) {
        switch (step.kind) {
            case 0:
            case 1:
            case 2: {
                check(set.insert(step.a) == !model.contains(step.a), "what insert says");
                model.insert(step.a, step.a);
                break;
            }
            case 3:
            case 4: {
                const Id id = step.more % 2 == 0 || set.empty() ? step.a : set.select(step.more % set.size());
                check(set.erase(id) == model.contains(id), "what erase says");
                model.erase(id, id);
                break;
            }
            case 5:
            case 6: {
                const std::uint64_t before = model.size();
                if (IntervalModel::width(step.a, step.b) == 0) break;
                IntervalModel after = model;
                after.insert(step.a, step.b);
                if (after.size() == 0) break;  // all 2^64 ids
                check(set.insert_interval(step.a, step.b) == after.size() - before, "what insert_interval says");
                model = after;
                break;
            }
            case 7: {
                const std::uint64_t before = model.size();
                model.erase(step.a, step.b);
                check(set.erase_interval(step.a, step.b) == before - model.size(), "what erase_interval says");
                break;
            }
            case 8: {
                // Every n-th id: values first, then a bitmap; or one in each chunk, or in every second one.
                std::vector<Id> ids;
                const std::uint64_t distance = step.more % 5 < 2 ? chunk_ids * (1 + step.more % 2) + 1 : 2 + step.more % 3;
                for (std::uint64_t i = 0; i < step.more % 9000; ++i)
                    ids.push_back(static_cast<Id>(static_cast<std::uint64_t>(step.a) + i * distance));
                if (ids.size() > 300 && step.more % 7 != 0) ids.resize(300);
                std::uint64_t fresh = 0;
                for (const Id id : ids) {
                    fresh += model.contains(id) ? 0 : 1;
                    model.insert(id, id);
                }
                if (step.more % 2 == 0)
                    check(set.insert(std::span<const Id>(ids)) == fresh, "what insert of many says");
                else
                    for (const Id id : ids) set.insert(id);
                break;
            }
            case 9: {
                if (step.more % 4 != 0) break;
                const int operation = static_cast<int>(step.more / 4 % 4);
                const IntervalModel after = combined(operation, model, other_model);
                if (after.size() == 0 && !after.intervals().empty()) break;
                const Set& a = set;
                const Set& b = other;
                const Set made = operation == 0 ? a | b : operation == 1 ? a & b : operation == 2 ? a - b : a ^ b;
                check_equal(made, after);
                check(made.is_subset_of(a) == (combined(2, after, model).size() == 0), "is_subset_of");
                if (operation == 0) set |= other;
                if (operation == 1) set &= other;
                if (operation == 2) set -= other;
                if (operation == 3) set ^= other;
                check(set == made, "in place and anew differ");
                model = after;
                break;
            }
            case 10:
            case 11: {
                set.swap(other);
                std::swap(model, other_model);
                break;
            }
            case 12: {
                const auto bytes = set.serialise();
                other.deserialise(bytes);
                other_model = model;
                check(other == set, "serialised and back");
                break;
            }
            case 13: {
                if (step.more % 4 == 0) set.shrink_to_fit();
                break;
            }
            case 14: {
                // Every second id goes while the program walks over them.
                auto at = set.lower_bound(step.a);
                for (std::uint32_t i = 0; i < step.more % 64 && at != set.end(); ++i) {
                    if (i % 2 == 0) {
                        ++at;
                        continue;
                    }
                    const Id id = *at;
                    check(model.contains(id), "an id that isn't there");
                    at = set.erase(at);
                    model.erase(id, id);
                    const auto next = id == greatest ? std::nullopt : model.not_less(id + 1);
                    check(next ? at != set.end() && *at == *next : at == set.end(), "what erase(iterator) returns");
                }
                break;
            }
            case 15: {
                if (step.more % 16 != 0) break;
                other = set;
                other_model = model;
                break;
            }
            case 16: {
                if (step.more % 64 == 0) {
                    set.clear();
                    model = {};
                }
                break;
            }
            default: {
                check(set.contains(step.a) == model.contains(step.a), "contains");
                check(set.rank(step.a) == model.rank(step.a), "rank");
                check(set.find(step.b) == (model.contains(step.b) ? set.lower_bound(step.b) : set.end()), "find");
                check_walk(set, model, step.a, static_cast<int>(step.more % 300));
                if (step.more % 8 == 0) check_equal(set, model);
            }
        }
        check(set.size() == model.size(), "size");
    }
};

/// What goes wrong when the program runs on fresh sets, or nothing.
template <class Set>
std::string outcome(const Program& program) {
    Set set;
    Set other;
    Pair<Set> pair{set, other, {}, {}};
    std::size_t done = 0;
    try {
        for (const Step& step : program) {
            pair.run(step);
            if (++done % 64 == 0) check_equal(set, pair.model);
        }
        check_equal(set, pair.model);
        check_equal(other, pair.other_model);
    } catch (const std::exception& error) {
        return std::string(error.what()) + " after " + std::to_string(done) + " steps";
    }
    return {};
}

/// A program that still fails and of which nothing can be left out, by halves, quarters, … (Zeller, Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).
template <class Set>
Program shrunk(Program program) {
    for (std::size_t part = program.size() / 2; part != 0; part /= 2) {
        for (std::size_t at = 0; at + part <= program.size();) {
            Program shorter = program;
            shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(at), shorter.begin() + static_cast<std::ptrdiff_t>(at + part));
            if (outcome<Set>(shorter).empty())
                at += part;
            else
                program = shorter;
        }
    }
    return program;
}

template <class Set>
std::string report(const Program& program) {
    const std::string found = outcome<Set>(program);
    if (found.empty()) return {};
    std::string text = found + "; a shortest program:";
    const Program least_steps = shrunk<Set>(program);
    for (const Step& step : least_steps) {
        text += "\n  {" + std::to_string(step.kind) + ", " + std::to_string(step.a) + ", " + std::to_string(step.b) + ", " +
                std::to_string(step.more) + "},";
    }
    return text + "\n" + outcome<Set>(least_steps);
}

}  // namespace taiyen::object::test
