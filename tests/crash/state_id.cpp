#include "crash/state_id.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

namespace taiyen::crash {
namespace {

constexpr std::array<const char*, select_count> select_names{
    "none",        "all",       "first",           "missing",   "alone",           "two-missing", "some-operations",
    "some-units",  "torn-head", "torn-head-alone", "torn-tail", "torn-tail-alone", "torn-part",   "torn-part-alone",
    "torn-zeroed", "size-only", "size-only-alone", "data-only", "data-only-alone", "mask",        "only",
    "without"};

/// "3-5,9,12z": those units, each with 1, or 2 where a z stands.
void for_each_unit(const std::string& units, const std::function<void(std::size_t unit, bool zeroed)>& f) {
    for (std::size_t at = 0; at < units.size();) {
        std::size_t end = units.find(',', at);
        end = end == std::string::npos ? units.size() : end;
        const std::string range = units.substr(at, end - at);
        const std::size_t dash = range.find('-');
        const std::size_t first = std::stoul(range);
        const std::size_t last = dash == std::string::npos ? first : std::stoul(range.substr(dash + 1));
        for (std::size_t unit = first; unit <= last; ++unit) f(unit, range.back() == 'z');
        at = end + 1;
    }
}

Replay::Selection selection_of_units(const StateId& id, Replay::Selection selection) {
    const bool only = id.select == Select::only;
    std::fill(selection.begin(), selection.end(), only ? std::uint8_t{0} : std::uint8_t{1});
    bool fits = true;
    for_each_unit(id.units, [&](std::size_t unit, bool zeroed) {
        if (unit < selection.size())
            selection[unit] = zeroed ? 2 : only ? 1 : 0;
        else
            fits = false;
    });
    return fits ? selection : Replay::Selection{};
}

}  // namespace

std::string_view name_of(Select select) { return select_names[static_cast<std::size_t>(select)]; }

std::string text_of(const StateId& id) {
    const bool by_units = id.select == Select::only || id.select == Select::without;
    return std::to_string(id.cut) + "." + select_names[static_cast<std::size_t>(id.select)] + "." + (by_units ? id.units : std::to_string(id.a)) +
           "." + std::to_string(id.b);
}

StateId state_id(const std::string& text) {
    std::vector<std::string> parts{""};
    for (const char c : text)
        if (c == '.')
            parts.emplace_back();
        else
            parts.back() += c;
    if (parts.size() == 4) {
        for (std::size_t i = 0; i < select_names.size(); ++i) {
            if (parts[1] == select_names[i] && (static_cast<Select>(i) == Select::only || static_cast<Select>(i) == Select::without))
                return {std::stoul(parts[0]), static_cast<Select>(i), 0, std::stoull(parts[3]), parts[2]};
            if (parts[1] == select_names[i]) return {std::stoul(parts[0]), static_cast<Select>(i), std::stoull(parts[2]), std::stoull(parts[3]), {}};
        }
    }
    throw std::invalid_argument("not a crash state: " + text);
}

StateId id_of(std::size_t cut, const Replay::Selection& selection) {
    const auto surviving = std::count_if(selection.begin(), selection.end(), [](std::uint8_t unit) { return unit != 0; });
    const bool only = 2 * static_cast<std::size_t>(surviving) <= selection.size();
    StateId id{cut, only ? Select::only : Select::without, 0, 0, {}};
    const std::uint8_t unnamed = only ? 0 : 1;
    for (std::size_t u = 0; u < selection.size();) {
        if (selection[u] == unnamed) {
            ++u;
            continue;
        }
        std::size_t last = u;
        while (last + 1 < selection.size() && selection[last + 1] == selection[u]) ++last;
        if (!id.units.empty()) id.units += ',';
        id.units += std::to_string(u);
        if (last > u) {
            id.units += '-';
            id.units += std::to_string(last);
        }
        if (selection[u] == 2) id.units += 'z';
        u = last + 1;
    }
    return id;
}

Replay::Selection selection_of(const StateId& id, const Replay& replay) {
    const auto& pending = replay.pending();
    const std::size_t count = pending.size();
    Replay::Selection selection(replay.unit_count(), 0);
    const auto set_all = [&](std::uint8_t value) { std::fill(selection.begin(), selection.end(), value); };
    const auto set = [&](std::uint64_t operation, std::uint8_t value) {
        std::fill_n(selection.begin() + static_cast<std::ptrdiff_t>(pending[operation].first_unit), pending[operation].units, value);
    };
    const auto needs_operation = [&](std::uint64_t operation) { return operation < count; };
    switch (id.select) {
        case Select::none: return selection;
        case Select::all: set_all(1); return selection;
        case Select::first:
            for (std::size_t i = 0; i < std::min<std::size_t>(id.a, count); ++i) set(i, 1);
            return selection;
        case Select::missing:
        case Select::two_missing:
            if (!needs_operation(id.a) || (id.select == Select::two_missing && !needs_operation(id.b))) return {};
            set_all(1);
            set(id.a, 0);
            if (id.select == Select::two_missing) set(id.b, 0);
            return selection;
        case Select::alone:
            if (!needs_operation(id.a)) return {};
            set(id.a, 1);
            return selection;
        case Select::some_operations: {
            std::mt19937_64 random(id.a);
            for (std::size_t i = 0; i < count; ++i) set(i, (random() & 1U) != 0 ? 1 : 0);
            return selection;
        }
        case Select::some_units: {
            std::mt19937_64 random(id.a);
            // Thin, even and thick choices: b of 8 units come through.
            for (auto& unit : selection) unit = random() % 8 < id.b ? 1 : 0;
            return selection;
        }
        case Select::only:
        case Select::without: return selection_of_units(id, selection);
        case Select::mask:
            for (std::size_t u = 0; u < selection.size() && u < 64; ++u) selection[u] = (id.a >> u & 1U) != 0 ? 1 : 0;
            return selection;
        default: break;
    }
    if (!needs_operation(id.a)) return {};
    const Replay::Pending& torn = pending[id.a];
    const bool alone = id.select == Select::torn_head_alone || id.select == Select::torn_tail_alone || id.select == Select::torn_part_alone ||
                       id.select == Select::size_only_alone || id.select == Select::data_only_alone;
    set_all(alone ? 0 : 1);
    std::mt19937_64 random(id.b);
    for (std::size_t u = 0; u < torn.units; ++u) {
        const bool is_size = torn.has_size && u == 0;
        std::uint8_t& unit = selection[torn.first_unit + u];
        switch (id.select) {
            case Select::torn_head:
            case Select::torn_head_alone: unit = u < id.b ? 1 : 0; break;
            case Select::torn_tail:
            case Select::torn_tail_alone: unit = u >= id.b ? 1 : 0; break;
            case Select::torn_part:
            case Select::torn_part_alone: unit = (random() & 1U) != 0 ? 1 : 0; break;
            case Select::torn_zeroed: unit = u < id.b ? 1 : 2; break;
            case Select::size_only:
            case Select::size_only_alone: unit = is_size ? 1 : 0; break;
            default: unit = is_size ? 0 : 1; break;
        }
    }
    return selection;
}

}  // namespace taiyen::crash
