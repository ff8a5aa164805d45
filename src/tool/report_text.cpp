#include "tool/report_text.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string_view>
#include <utility>

#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

const char* severity_name(Severity severity) {
    switch (severity) {
        case Severity::note: return "note";
        case Severity::healable: return "healable";
        case Severity::damage: break;
    }
    return "damage";
}

std::string_view level_name(VerifyLevel level) {
    switch (level) {
        case VerifyLevel::structure: return "structure";
        case VerifyLevel::sample: return "sample";
        case VerifyLevel::pages: return "pages";
        case VerifyLevel::everything: break;
    }
    return "everything";
}

/// What was left out.
std::string scope_of(const Report& report) {
    switch (report.level) {
        case VerifyLevel::structure: return "; the structure only, not what blocks hold";
        case VerifyLevel::sample: return "; a sample, --seed " + std::to_string(report.seed);
        case VerifyLevel::pages: return "; all pages, not the undo history's links";
        case VerifyLevel::everything: break;
    }
    return "";
}

}  // namespace

std::string as_typed(const Given& given, const std::filesystem::path& path) {
    std::error_code ignored;
    const std::string whole = std::filesystem::absolute(given.files[0], ignored).string();
    const std::string text = path.string();
    return !whole.empty() && text.starts_with(whole) ? given.files[0] + text.substr(whole.size()) : text;
}

std::string time_text(std::chrono::system_clock::time_point time) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

std::string restoration_text(const Restoration& restoration) {
    std::string text = restoration.opened_at ? time_text(*restoration.opened_at) : std::string("at an unknown time");
    if (restoration.took.count() != 0) text += ", in " + count_text(static_cast<std::uint64_t>(restoration.took.count() + 999) / 1000) + " ms";
    const char* before = ": ";
    for (const std::string& sentence : restoration.sentences()) text += std::exchange(before, "; ") + sentence;
    return text;
}

void add_restoration(JsonWriter& json, const Restoration& restoration) {
    const auto time = [&](const char* name, const std::optional<std::chrono::system_clock::time_point>& at) {
        if (at) json.member(name, time_text(*at));
    };
    json.key("last_restoration").begin_object().member("cause", name_of(restoration.cause)).member("found_clean", restoration.clean);
    time("opened_at", restoration.opened_at);
    time("last_written", restoration.last_written);
    json.member("microseconds", static_cast<std::uint64_t>(restoration.took.count()))
        .member("snapshots_replayed", restoration.snapshots_replayed)
        .member("transactions_replayed", restoration.transactions_replayed)
        .member("records_cut", restoration.records_cut)
        .member("bytes_cut", restoration.bytes_cut)
        .member("pages_healed", restoration.pages_healed)
        .member("headers_repaired", restoration.headers_repaired)
        .key("done")
        .begin_array();
    for (const std::string& line : restoration.done()) json.value(line);
    json.end_array().end_object();
}

void print_findings(const Given& given, const Report& report) {
    for (const Finding& finding : report.findings) {
        const Style style = finding.severity == Severity::note ? Style::faint : finding.severity == Severity::healable ? Style::warning : Style::bad;
        print(styled(style, severity_name(finding.severity)) + "  " + visible(as_typed(given, finding.path)) + ": at byte " +
              std::to_string(finding.offset) + ": " + visible(finding.what) + "\n");
    }
}

void print_report(const Given& given, const Report& report) {
    print_findings(given, report);
    const std::string steps = report.steps_checked == 0 ? "" : " and " + counted(report.steps_checked, "undo step");
    const bool counts_blocks = report.level != VerifyLevel::structure;
    const std::string checked = counted(report.pages_checked, "page") +
                                (counts_blocks ? (steps.empty() ? " and " : ", ") + counted(report.blocks_checked, "block") + steps : "") +
                                " checked" + scope_of(report);
    if (report.ok()) {
        print(styled(Style::good, "sound") + ": " + checked + "\n");
        return;
    }
    const auto count = [&](Severity severity) {
        return static_cast<std::uint64_t>(
            std::count_if(report.findings.begin(), report.findings.end(), [&](const Finding& finding) { return finding.severity == severity; }));
    };
    print(styled(Style::bad, "damaged") + ": " + counted(count(Severity::damage), "place") + " that nothing else has, " +
          count_text(count(Severity::healable)) + " that the other copy has; " + checked + "\n");
}

void add_report(JsonWriter& json, const Report& report) {
    json.member("ok", report.ok()).member("level", level_name(report.level));
    if (report.level == VerifyLevel::sample) json.member("seed", report.seed);
    json.member("bytes_read", report.bytes_read)
        .member("milliseconds", static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(report.took).count()))
        .member("pages_checked", report.pages_checked)
        .member("blocks_checked", report.blocks_checked)
        .member("steps_checked", report.steps_checked);
    add_findings(json, report);
}

void add_findings(JsonWriter& json, const Report& report) {
    json.key("findings").begin_array();
    for (const Finding& finding : report.findings) {
        json.begin_object()
            .member("severity", severity_name(finding.severity))
            .member("file", finding.path.native())
            .member("offset", finding.offset)
            .member("what", finding.what)
            .end_object();
    }
    json.end_array();
}

}  // namespace taiyen::tool
