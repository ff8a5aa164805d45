#pragma once
/// What verify() found, and what opening and healing did, as text and as JSON.

#include <chrono>
#include <filesystem>
#include <string>

#include <taiyen/inspect/report.hpp>
#include <taiyen/store/restoration.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"

namespace taiyen::tool {

/// The library names files by their whole path; people know them as they typed them.
std::string as_typed(const Given& given, const std::filesystem::path& path);
void print_report(const Given& given, const Report& report);
/// Its findings alone, a line each.
void print_findings(const Given& given, const Report& report);
/// "2026-03-01 12:00:00 UTC".
std::string time_text(std::chrono::system_clock::time_point time);
/// When, how long, why, and what was done: a line.
std::string restoration_text(const Restoration& restoration);
/// The same as the member `last_restoration` of an object.
void add_restoration(JsonWriter& json, const Restoration& restoration);
/// The members of an object.
void add_report(JsonWriter& json, const Report& report);
/// "findings" alone.
void add_findings(JsonWriter& json, const Report& report);

}  // namespace taiyen::tool
