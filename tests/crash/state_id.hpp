#pragma once
/// The id of a crash state, from which it can be built again: `cut.selection.a.b`, nested ones joined by '/'.
///
/// One that was shrunk says which units matter: `cut.only.3-5.0` (of all pending units these reached the disk) or `cut.without.9.0` (all but these did; `9z`: it reached the disk as zeros).

#include <cstdint>
#include <string>
#include <string_view>

#include "crash/replay.hpp"

namespace taiyen::crash {

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

/// The shorter of the two ways to say it.
StateId id_of(std::size_t cut, const Replay::Selection& selection);
/// The selection of pending units that the id means. Empty: the id does not fit.
Replay::Selection selection_of(const StateId& id, const Replay& replay);

}  // namespace taiyen::crash
