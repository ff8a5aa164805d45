#include <taiyen/inspect/up_to_date.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

Exit run_snapshot(const Given& given) {
    const std::string to = given.value("to").value_or("");
    if (given.has("to") && to.empty()) throw Error(errc::invalid_argument, "--to takes the path of the copy");
    UpToDateReport report;
    {
        ProgressLine line("copying");
        report = bring_up_to_date(given.files[0], given.heap_options(), to, line.progress());
    }
    const std::vector<std::string> lines = deeds(report.restoration, 0);
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
        if (!to.empty()) json.member("copy", to);
        json.key("done").begin_array();
        for (const std::string& line : lines) json.value(line);
        json.end_array().end_object();
        print(json);
        return Exit::ok;
    }
    for (const std::string& line : lines) print(line + "\n");
    print(styled(Style::good, "up to date") + ": generation " + count_text(report.generation) + ", " + bytes_text(report.extent_bytes) + " in use\n");
    if (!to.empty()) print("copied to " + visible(to) + "\n");
    return Exit::ok;
}

}  // namespace

Command snapshot_command() {
    return {"snapshot",
            "Brings the files up to date, and copies them",
            "Opens the heap for writing, which replays its journal or log after a crash, and closes it: afterwards an opening has nothing to replay. "
            "With --to the newest save is written "
            "into a new file as well: a heap of its own without a second copy, every page proven by its checksum, under its name only when all of it "
            "is durable. The copy has "
            "the uuid and the address of the heap. A log that calls procedures of the heap's own program can only be replayed by that program.",
            {"FILE"},
            {{"to", "COPY", "write a copy there; a file that is there already is not overwritten"}},
            "",
            run_snapshot};
}

}  // namespace taiyen::tool
