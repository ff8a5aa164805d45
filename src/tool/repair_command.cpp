#include <taiyen/inspect/repair.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

/// What was done, a line each.
std::vector<std::string> deeds(const Restoration& restoration, std::uint64_t pages_healed) {
    std::vector<std::string> lines;
    const auto add = [&](std::uint64_t count, const std::string& what) {
        if (count != 0) lines.push_back(count_text(count) + " " + what);
    };
    add(restoration.snapshots_replayed, "saves of the journal were brought into the files");
    add(restoration.transactions_replayed, "transactions of the log were brought into the files");
    add(restoration.records_cut, "torn records, which nobody was told of, were cut off");
    add(restoration.headers_repaired, "times a damaged header copy was written again");
    if (restoration.backing_rebuilt) lines.emplace_back("the heap's file was built again from its second copy");
    if (restoration.data_rebuilt) lines.emplace_back("the second copy was filled again from the heap's file");
    add(pages_healed + restoration.pages_healed, "pages were restored from the copy that has them whole");
    return lines;
}

Exit scrub(const Given& given) {
    std::uint64_t healed = 0;
    Restoration restoration;
    std::string stopped;
    {
        ArchiveHeap heap(open_only, given.files[0], given.heap_options());
        restoration = heap.restoration();
        try {
            healed = heap.heal();
        } catch (const Error& error) {
            if (!is_damage(error)) throw;
            stopped = error.what();
        }
        heap.close();
    }
    const std::vector<std::string> lines = deeds(restoration, healed);
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("file", given.files[0]).member("ok", stopped.empty()).member("pages_healed", healed).key("done").begin_array();
        for (const std::string& line : lines) json.value(line);
        json.end_array().member("stopped", stopped).end_object();
        print(json.text() + "\n");
    } else {
        for (const std::string& line : lines) print(line + "\n");
        print(!stopped.empty() ? styled(Style::bad, "not repaired") + ": " + visible(stopped) + "\n" : styled(Style::good, "whole") + "\n");
    }
    return stopped.empty() ? Exit::ok : Exit::found;
}

Exit run_repair(const Given& given) {
    RepairReport report;
    {
        ProgressLine line("repairing");
        report = repair(given.files[0], given.heap_options(), line.progress());
    }
    const std::vector<std::string> lines = deeds(report.restoration, report.pages_healed);
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("file", given.files[0]).key("before").begin_object();
        add_report(json, report.before);
        json.end_object().member("opened", report.opened).key("done").begin_array();
        for (const std::string& line : lines) json.value(line);
        json.end_array().member("pages_healed", report.pages_healed).member("stopped", report.stopped).key("after").begin_object();
        add_report(json, report.after);
        json.end_object().end_object();
        print(json.text() + "\n");
        return report.after.ok() ? Exit::ok : Exit::found;
    }
    if (report.before.findings.empty()) {
        print(styled(Style::good, "sound") + ": there was nothing to repair\n");
        return Exit::ok;
    }
    print(count_text(report.before.findings.size()) + " findings before\n");
    for (const std::string& line : lines) print(line + "\n");
    if (!report.stopped.empty()) print(styled(Style::bad, "not repaired") + ": " + visible(report.stopped) + "\n");
    print_report(given, report.after);
    return report.after.ok() ? Exit::ok : Exit::found;
}

}  // namespace

Command scrub_command() {
    return {"scrub",
            "Compares the two copies page by page and heals from the good one",
            "Opens the heap for writing, which recovers it after a crash, reads every page of both copies from the device and writes a page that "
            "does not match its checksum again from the "
            "copy that does. For a look now and then at heaps on disks that nobody trusts.",
            {"FILE"},
            {},
            "a page is damaged in every copy",
            scrub};
}

Command repair_command() {
    return {"repair",
            "Repairs what is provably safe, and says what",
            "Verifies the heap, recovers it, restores from the other copy whatever matches its checksum there, and verifies it again. Nothing is "
            "guessed: a byte is replaced only by one that a "
            "checksum proves to be the saved one. What no copy has whole stays as it is. A sound heap is not touched.",
            {"FILE"},
            {},
            "damage is left",
            run_repair};
}

}  // namespace taiyen::tool
