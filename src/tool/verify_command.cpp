#include <taiyen/inspect/repair.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/sentence.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

Exit run_verify(const Given& given) {
    VerifyOptions options;
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
            "journal or log, blocks, names and the undo history. Nothing is "
            "changed and nothing repaired: 'taiyen scrub' restores what a second copy has. The heap must not be open for writing elsewhere. "
            "Words that look like pointers to the memory of a program (constants, malloc, stacks) are notes: what they led to has gone with it.",
            {"FILE"},
            {{"threads", "N", "that read and compute checksums; 0: one for each processor, at most 4"}},
            "damage was found, also where a second copy can heal it",
            run_verify};
}

}  // namespace taiyen::tool
