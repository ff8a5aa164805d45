#pragma once
/// What differs field by field: `--fields N` of diff, log and history.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/inspect/view_diff.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"

namespace taiyen::tool {

struct Fields {
    struct Field {
        std::string path;
        std::optional<std::string> before;  ///< as JSON, short; nothing: it was added
        std::optional<std::string> after;   ///< nothing: it was removed
    };
    std::vector<Field> listed;
    std::uint64_t more = 0;
    std::vector<std::string> unknown;  ///< objects of which it isn't known
    bool is_damaged = false;           ///< that is why
    std::string why_not;               ///< a sentence: what it was before or behind can't be had
};

/// The option itself.
Option fields_option(const char* of_what);
/// How many are wanted; nothing: the option isn't there. Throws: Error{invalid_argument}.
std::optional<std::uint64_t> fields_wanted(const Given& given);
/// `for_each_difference`, or one of its kind.
using Compare = std::function<std::vector<std::string>(const std::function<bool(const ViewDifference&)>& take)>;

/// Throws: as `compare`.
Fields fields_of(std::uint64_t listed_max, const Compare& compare);
/// The same of one of many: what it throws because there is damage, or the heap's program is needed, is told in `why_not`.
Fields fields_if_known(std::uint64_t listed_max, const Compare& compare);
void print_fields(const Fields& fields);
/// As members "fields", "more_fields" and "unknown".
void add_fields(JsonWriter& json, const Fields& fields);

}  // namespace taiyen::tool
