#include "tool/report_text.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

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

std::vector<std::string> deeds(const Restoration& restoration, std::uint64_t pages_healed) {
    std::vector<std::string> lines;
    const auto add = [&](std::uint64_t count, std::string_view thing, const std::string& done) {
        if (count != 0) lines.push_back(counted(count, thing) + " " + done);
    };
    add(restoration.snapshots_replayed, "save", "of the journal brought into the files");
    add(restoration.transactions_replayed, "transaction", "of the log brought into the files");
    add(restoration.records_cut, "torn record", "cut off, which nobody was told of");
    add(restoration.headers_repaired, "header", "written again from the other one");
    if (restoration.backing_rebuilt) lines.emplace_back("the heap's file built again from its second copy");
    if (restoration.data_rebuilt) lines.emplace_back("the second copy filled again from the heap's file");
    add(pages_healed + restoration.pages_healed, "page", "restored from the copy that has it whole");
    return lines;
}

void print_report(const Given& given, const Report& report) {
    for (const Finding& finding : report.findings) {
        const Style style = finding.severity == Severity::note ? Style::faint : finding.severity == Severity::healable ? Style::warning : Style::bad;
        print(styled(style, severity_name(finding.severity)) + "  " + visible(as_typed(given, finding.path)) + ": at byte " +
              std::to_string(finding.offset) + ": " + visible(finding.what) + "\n");
    }
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
        .member("steps_checked", report.steps_checked)
        .key("findings")
        .begin_array();
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
