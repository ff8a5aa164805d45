#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <taiyen/inspect/repair.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/sentence.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/log_heap.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

constexpr std::array<std::pair<std::string_view, VerifyLevel>, 4> level_names{
    {{"structure", VerifyLevel::structure}, {"sample", VerifyLevel::sample}, {"pages", VerifyLevel::pages}, {"everything", VerifyLevel::everything}}};

VerifyLevel level_of(const Given& given) {
    const bool samples = given.has("sample") || given.has("seed");
    const std::string word = given.value("level").value_or(samples ? "sample" : "everything");
    const auto* const found = std::find_if(level_names.begin(), level_names.end(), [&](const auto& level) { return level.first == word; });
    if (found == level_names.end()) throw Error(errc::invalid_argument, "--level is structure, sample, pages or everything, not '" + word + "'");
    if (samples && found->second != VerifyLevel::sample) throw Error(errc::invalid_argument, "--sample and --seed belong to --level sample");
    return found->second;
}

/// "5%": of all pages; "1000": so many.
void take_sample(const Given& given, VerifyOptions& options) {
    const std::optional<std::string> text = given.value("sample");
    if (!text) return;
    const char* const end = text->data() + text->size();
    double number = 0;
    const auto [at, failed] = std::from_chars(text->data(), end, number);
    const bool is_percentage = at + 1 == end && *at == '%';
    const bool is_count = at == end && number >= 1 && number < 1e15 && number == std::floor(number);
    if (failed != std::errc() || !(is_percentage ? number > 0 && number <= 100 : is_count))
        throw Error(errc::invalid_argument, "--sample takes a number of pages such as 1000, or a percentage such as 5%, not '" + *text + "'");
    options.sample_fraction = is_percentage ? number / 100 : 0;
    options.sample_pages = is_percentage ? 0 : static_cast<std::uint64_t>(number);
}

Exit run_verify(const Given& given) {
    if (is_of_log_heap(given)) return log_heap_verify(given);
    VerifyOptions options;
    options.level = level_of(given);
    options.seed = given.number("seed", 0);
    take_sample(given, options);
    options.threads = static_cast<unsigned>(given.number("threads", 0));
    options.program_pointers = ProgramSearch::any_process;
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
        JsonWriter json;
        json.begin_object().member("file", given.files[0]);
        add_report(json, report);
        json.end_object();
        print(json);
    } else {
        print_report(given, report);
    }
    return report.ok() ? Exit::ok : Exit::found;
}

}  // namespace

Command verify_command() {
    return {"verify",
            "Whether every byte is as it was saved",
            "Reads all files of the heap past the page cache: both header copies, checksum tables, each page of both copies, free pages too, the "
            "journal or log, blocks, names and the undo history; less with --level. Nothing is "
            "changed and nothing repaired: 'taiyen scrub' restores what a second copy has. The heap must not be open for writing elsewhere. "
            "Of a log heap every value is read. "
            "Words that look like pointers to the memory of a program (constants, malloc, stacks) are notes: what they led to has gone with it.",
            {"FILE"},
            {{"level", "LEVEL",
              "structure: headers, checksum tables, blocks and names, in milliseconds; sample: and some pages; pages: and all pages, and the journal "
              "or log; "
              "everything (default): and the undo history and pointers"},
             {"sample", "N", "pages that a sample compares: a number, or a percentage; default 1%"},
             {"seed", "N", "chooses the pages; without it each sample is another one, and the report tells which"},
             {"threads", "N", "that read and compute checksums; 0: one for each processor, at most 4"}},
            "damage was found, also where a second copy can heal it",
            run_verify};
}

}  // namespace taiyen::tool
