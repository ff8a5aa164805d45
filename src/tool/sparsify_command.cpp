#include <taiyen/inspect/free_pages.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

JsonWriter json_of(const Given& given, const FreePagesReport& report) {
    JsonWriter json;
    json.begin_object()
        .member("file", given.files[0])
        .member("dry_run", given.has("dry-run"))
        .member("has_history", report.has_history)
        .member("disk_bytes_before", report.disk_bytes_before)
        .member("disk_bytes_after", report.disk_bytes_after)
        .member("live_bytes", report.live_bytes)
        .member("live_blocks", report.live_blocks)
        .member("free_pages", report.free_pages)
        .member("released_pages", report.released_pages)
        .member("pages_in_use", report.pages_in_use)
        .member("pages_needed", report.pages_needed)
        .end_object();
    return json;
}

void print_text(const FreePagesReport& report, bool dry_run) {
    const std::string before = bytes_text(report.disk_bytes_before);
    print_fields({
        {"on disk", dry_run ? before : before + " before, " + bytes_text(report.disk_bytes_after) + " now"},
        {"free",
         counted(report.free_pages, "page") + ", " + count_text(report.released_pages) + " of them without disk blocks" + (dry_run ? "" : " before")},
        {"live", bytes_text(report.live_bytes) + " in " + counted(report.live_blocks, "block")},
        {"in use", counted(report.pages_in_use, "page") + "; laid close together, the blocks would need " + count_text(report.pages_needed)},
        {"history", !report.has_history ? "none" : "its steps remember what free pages hold: they are kept"},
    });
    if (report.pages_in_use > report.pages_needed + report.pages_needed / 8 + 1)
        print("taiyen::compact() of a program that declares its types lays them together\n");
    if (dry_run) print("a dry run: nothing was written\n");
}

Exit run_sparsify(const Given& given) {
    FreePagesOptions options;
    options.dry_run = given.has("dry-run");
    options.files = given.heap_options();
    FreePagesReport report;
    {
        ProgressLine line("giving back");
        options.progress = line.progress();
        report = give_back_free_pages(given.files[0], options);
    }
    if (given.has("json"))
        print(json_of(given, report));
    else
        print_text(report, options.dry_run);
    return Exit::ok;
}

}  // namespace

Command sparsify_command() {
    return {
        "sparsify",
        "Gives the disk blocks of free pages back",
        "Opens the heap for writing, which recovers it after a crash, and closes it so that each free page is a hole in its file and in the second "
        "copy; a program gives back runs of 64 KiB and more only. No block moves: which words are the pointers to it, only the types of a program "
        "can "
        "tell. How many pages the blocks would need if they lay close together is told; taiyen::compact() of a program that declares its types comes "
        "near to that. A heap with a history keeps its free pages.",
        {"FILE"},
        {{"dry-run", "", "tell what there is, and write nothing"}},
        "",
        run_sparsify};
}

}  // namespace taiyen::tool
