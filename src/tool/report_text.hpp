#pragma once
/// What verify() found, and what opening and healing did, as text and as JSON.

#include <taiyen/inspect/report.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"

namespace taiyen::tool {

/// The library names files by their whole path; people know them as they typed them.
std::string as_typed(const Given& given, const std::filesystem::path& path);
void print_report(const Given& given, const Report& report);
/// What was done to the files, a line each.
std::vector<std::string> deeds(const Restoration& restoration, std::uint64_t pages_healed);
/// The members of an object.
void add_report(JsonWriter& json, const Report& report);

}  // namespace taiyen::tool
