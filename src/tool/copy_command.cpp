// `taiyen recover` and `taiyen copy`: both bring the files of a heap up to date.

#include <taiyen/inspect/up_to_date.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

/// `made`: where a copy goes; empty: nowhere.
Exit bring_files_up_to_date(const Given& given, const std::string& made) {
    UpToDateReport report;
    {
        ProgressLine line(made.empty() ? "recovering" : "copying");
        report = bring_up_to_date(given.files[0], given.heap_options(), made, line.progress());
    }
    const std::vector<std::string> lines = report.restoration.done();
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("clean", report.restoration.clean)
            .member("snapshots_replayed", report.restoration.snapshots_replayed)
            .member("transactions_replayed", report.restoration.transactions_replayed)
            .member("records_cut", report.restoration.records_cut)
            .member("generation", report.generation)
            .member("extent_bytes", report.extent_bytes);
        if (!made.empty()) json.member("made", made);
        json.key("done").begin_array();
        for (const std::string& line : lines) json.value(line);
        json.end_array().end_object();
        print(json);
        return Exit::ok;
    }
    for (const std::string& line : lines) print(line + "\n");
    print(styled(Style::good, "up to date") + ": generation " + count_text(report.generation) + ", " + bytes_text(report.extent_bytes) + " in use\n");
    if (!made.empty()) print("copied to " + visible(made) + "\n");
    return Exit::ok;
}

Exit run_recover(const Given& given) { return bring_files_up_to_date(given, {}); }
Exit run_copy(const Given& given) { return bring_files_up_to_date(given, given.files[1]); }

}  // namespace

Command recover_command() {
    return {"recover",
            "Brings the files up to date",
            "Opens the heap for writing, which replays its journal or log after a crash, and closes it: afterwards an opening has nothing to replay. "
            "A log that calls procedures of the heap's own program can only be replayed by that program.",
            {"FILE"},
            {},
            "",
            run_recover};
}

Command copy_command() {
    return {"copy",
            "Copies a heap into one new file",
            "Brings the files up to date, as recover does, and writes the newest save into OUT: a heap of its own without a second copy, every page "
            "proven by its checksum, under its name only when all of it is durable. A file that is there already is not overwritten. The copy has "
            "the uuid and the address of the heap, and its undo history.",
            {"FILE", "OUT"},
            {},
            "",
            run_copy};
}

}  // namespace taiyen::tool
