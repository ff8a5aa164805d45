#include <taiyen/inspect/report.hpp>
#include <taiyen/store/archive_heap.hpp>

#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "tool/command.hpp"
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

/// Whether an opening that fails so has found the files themselves to be bad.
bool is_damage(const Error& error) {
    const std::array codes{errc::not_a_heap, errc::truncated, errc::corrupt, errc::mismatch, errc::log_missing, errc::io_error};
    return std::any_of(codes.begin(), codes.end(), [&](errc code) { return error.code() == code; });
}

/// The library names files by their whole path; people know them as they typed them.
std::string as_typed(const Given& given, const std::filesystem::path& path) {
    std::error_code ignored;
    const std::string whole = std::filesystem::absolute(given.files[0], ignored).string();
    const std::string text = path.string();
    return !whole.empty() && text.starts_with(whole) ? given.files[0] + text.substr(whole.size()) : text;
}

void print_json(const Given& given, const Report& report) {
    JsonWriter json;
    json.begin_object()
        .member("file", given.files[0])
        .member("ok", report.ok())
        .member("pages_checked", report.pages_checked)
        .member("blocks_checked", report.blocks_checked)
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
    json.end_array().end_object();
    print(json.text() + "\n");
}

void print_text(const Given& given, const Report& report) {
    for (const Finding& finding : report.findings) {
        const Style style = finding.severity == Severity::note ? Style::faint : finding.severity == Severity::healable ? Style::warning : Style::bad;
        print(styled(style, severity_name(finding.severity)) + "  " + visible(as_typed(given, finding.path)) + ": at byte " +
              std::to_string(finding.offset) + ": " + visible(finding.what) + "\n");
    }
    const std::string checked = count_text(report.pages_checked) + " pages and " + count_text(report.blocks_checked) + " blocks checked";
    if (report.ok()) {
        print(styled(Style::good, "sound") + ": " + checked + "\n");
        return;
    }
    const auto count = [&](Severity severity) {
        return static_cast<std::uint64_t>(
            std::count_if(report.findings.begin(), report.findings.end(), [&](const Finding& finding) { return finding.severity == severity; }));
    };
    print(styled(Style::bad, "damaged") + ": " + count_text(count(Severity::damage)) + " places that nothing else has, " +
          count_text(count(Severity::healable)) + " that the other copy has; " + checked + "\n");
}

Exit run(const Given& given) {
    VerifyOptions options;
    options.threads = static_cast<unsigned>(given.number("threads", 0));
    Report report;
    try {
        const ArchiveHeap heap(open_read_only, given.files[0], given.heap_options());
        ProgressLine line("verifying");
        options.progress = line.progress();
        report = verify(heap, options);
    } catch (const Error& error) {
        if (!is_damage(error)) throw;
        report.findings.push_back({Severity::damage, error.path(), error.offset() == Error::no_offset ? 0 : error.offset(), sentence_of(error)});
    }
    if (given.has("json")) {
        print_json(given, report);
    } else {
        print_text(given, report);
    }
    return report.ok() ? Exit::ok : Exit::found;
}

}  // namespace

Command verify_command() {
    return {"verify",
            "Whether every byte is as it was saved",
            "Reads all files of the heap past the page cache: both header copies, checksum tables, each page of both copies, free pages too, the "
            "journal or log, blocks and names. Nothing is "
            "changed and nothing repaired: 'taiyen scrub' restores what a second copy has. The heap must not be open for writing elsewhere.",
            {"FILE"},
            {{"threads", "N", "that read and compute checksums; 0: one for each processor, at most 4"}},
            "damage was found, also where a second copy can heal it",
            run};
}

}  // namespace taiyen::tool
