#include <optional>

#include <taiyen/base/error.hpp>
#include <taiyen/inspect/history_report.hpp>
#include <taiyen/inspect/last_resort.hpp>
#include <taiyen/inspect/reclaim.hpp>
#include <taiyen/inspect/repair.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

Exit run_scrub(const Given& given) {
    ScrubReport report;
    Restoration restoration;
    {
        PersistentOptions options = given.heap_options();
        options.verify = Verify::changes;  // all that is healed is healed by scrub(), and told
        ArchiveHeap heap(open_only, given.files[0], options);
        restoration = heap.restoration();
        ProgressLine line("scrubbing");
        report = scrub(heap, line.progress());
        heap.close();
    }
    restoration.pages_healed += report.pages_healed;
    const std::vector<std::string> lines = restoration.done();
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("file", given.files[0]).member("ok", report.pages_lost == 0).member("pages_healed", report.pages_healed);
        json.member("pages_lost", report.pages_lost).key("done").begin_array();
        for (const std::string& line : lines) json.value(line);
        json.end_array().key("lost").begin_array();
        for (const Finding& lost : report.lost)
            json.begin_object().member("file", lost.path.native()).member("offset", lost.offset).member("what", lost.what).end_object();
        json.end_array().end_object();
        print(json);
    } else {
        for (const std::string& line : lines) print(line + "\n");
        for (const Finding& lost : report.lost) {
            print(styled(Style::bad, "not repaired") + "  " + visible(as_typed(given, lost.path)) + ": at byte " + std::to_string(lost.offset) +
                  ": " + visible(lost.what) + "\n");
        }
        print(report.pages_lost != 0 ? styled(Style::bad, "damaged") + ": " + counted(report.pages_lost, "page") + " that no copy has whole\n"
                                     : styled(Style::good, "whole") + "\n");
    }
    return report.pages_lost == 0 ? Exit::ok : Exit::found;
}

/// Of a heap that is whole. Its blocks are free once that is saved.
ReclaimReport reclaim_in(const Given& given) {
    const PersistentOptions options = given.heap_options();
    if (look_at_history(given.files[0], options).attached) {
        throw Error(
            errc::invalid_argument, given.files[0],
            "the heap has an undo history, which ends with a change from outside the program; let the program attach it and call taiyen::reclaim()");
    }
    ArchiveHeap heap(open_only, given.files[0], options);
    ProgressLine line("reclaiming");
    const ReclaimReport report = reclaim(heap, line.progress());
    if (report.freed_blocks != 0) heap.snapshot();
    heap.close();
    return report;
}

void add_reclaimed(JsonWriter& json, const ReclaimReport& report) {
    json.key("reclaimed").begin_object().member("blocks", report.freed_blocks).member("bytes", report.freed_bytes);
    json.member("doubtful_blocks", report.doubtful_blocks).end_object();
}

void print_reclaimed(const ReclaimReport& report) {
    const std::string kept = report.doubtful_blocks == 0 ? std::string() : "; " + counted(report.doubtful_blocks, "doubtful block") + " stayed";
    print(report.freed_blocks == 0 ? "nothing to reclaim" + kept + "\n"
                                   : styled(Style::good, "reclaimed") + ": " + counted(report.freed_blocks, "block") + " that nothing led to, " +
                                         bytes_text(report.freed_bytes) + kept + "\n");
}

void print_json(const Given& given, const LastResort& told) {
    JsonWriter json;
    json.begin_object().member("file", given.files[0]).member("needed", told.needed).member("done", told.done);
    json.member("log", told.has_log).member("problem", told.problem).member("damage", told.damage);
    json.member("last_save", told.last_save).member("intact_up_to", told.intact_up_to).member("goes_on_from", told.goes_on_from);
    json.member("known_lost", told.known_lost).key("kept").begin_array();
    for (const KeptFile& kept : told.kept) json.value(kept.kept.native());
    json.end_array().key("sentences").begin_array();
    for (const std::string& sentence : told.sentences) json.value(sentence);
    json.end_array().end_object();
    print(json);
}

Exit run_last_resort(const Given& given) {
    LastResortOptions options;
    options.heap = given.heap_options();
    if (given.has("up-to-serial")) options.up_to_serial = given.number("up-to-serial", 0);
    const bool looks = given.has("dry-run");
    const LastResort told = looks ? look_at_last_resort(given.files[0], options) : last_resort(given.files[0], options);
    if (given.has("json")) {
        print_json(given, told);
    } else {
        if (!told.damage.empty()) print(styled(Style::bad, "damaged") + ": " + visible(told.damage) + "\n");
        for (const std::string& sentence : told.sentences) print(visible(sentence) + "\n");
        if (told.done)
            print(styled(Style::good, "accepted") + ": every opening accepts the heap; remove the kept files when nothing in them is missed\n");
        if (looks) print("a dry run: nothing was written\n");
    }
    return told.needed && !told.done ? Exit::found : Exit::ok;
}

Exit run_repair(const Given& given) {
    if (given.has("accept-last-save") || given.has("up-to-serial")) {
        if (given.has("reclaim")) throw Error(errc::invalid_argument, "--reclaim is for a heap that opens: accept the last save first, then reclaim");
        return run_last_resort(given);
    }
    if (given.has("dry-run"))
        throw Error(errc::invalid_argument, "--dry-run goes with --accept-last-save or --up-to-serial: verify looks at the rest");
    RepairReport report;
    {
        ProgressLine line("repairing");
        report = repair(given.files[0], given.heap_options(), line.progress());
    }
    report.restoration.pages_healed += report.pages_healed;
    const std::vector<std::string> lines = report.restoration.done();
    std::optional<ReclaimReport> reclaimed;
    if (given.has("reclaim") && report.after.ok()) reclaimed = reclaim_in(given);
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("file", given.files[0]).key("before").begin_object();
        add_report(json, report.before);
        json.end_object().member("opened", report.opened).key("done").begin_array();
        for (const std::string& line : lines) json.value(line);
        json.end_array().member("pages_healed", report.pages_healed).member("stopped", report.stopped).key("after").begin_object();
        add_report(json, report.after);
        json.end_object();
        if (reclaimed) add_reclaimed(json, *reclaimed);
        json.end_object();
        print(json);
        return report.after.ok() ? Exit::ok : Exit::found;
    }
    if (report.before.findings.empty()) {
        print(styled(Style::good, "sound") + ": there was nothing to repair\n");
        if (reclaimed) print_reclaimed(*reclaimed);
        return Exit::ok;
    }
    print(counted(report.before.findings.size(), "finding") + " before\n");
    for (const std::string& line : lines) print(line + "\n");
    if (!report.stopped.empty()) print(styled(Style::bad, "not repaired") + ": " + visible(report.stopped) + "\n");
    print_report(given, report.after);
    if (reclaimed) print_reclaimed(*reclaimed);
    return report.after.ok() ? Exit::ok : Exit::found;
}

}  // namespace

Command scrub_command() {
    return {"scrub",
            "Compares the two copies page by page and heals from the good one",
            "Opens the heap for writing, which recovers it after a crash, reads every page of both copies from the device and writes a page that "
            "does not match its checksum again from the "
            "copy that does. What no copy has whole is listed, and keeps nothing else from being restored. For a look now and then at heaps on disks "
            "that nobody trusts.",
            {"FILE"},
            {},
            "a page is damaged in every copy",
            run_scrub};
}

Command repair_command() {
    return {
        "repair",
        "Repairs what is provably safe, and says what",
        "Verifies the heap, recovers it, restores from the other copy whatever matches its checksum there, and verifies it again. Nothing is "
        "guessed: a byte is replaced only by one that a "
        "checksum proves to be the saved one. What no copy has whole stays as it is. A sound heap is not touched.\n\n"
        "With --reclaim, blocks that no named object leads to are freed then, if nothing is damaged any more: what 'taiyen leaks' lists but "
        "calls doubtful stays. "
        "Don't, if the program keeps addresses of the heap elsewhere than in named objects.\n\n"
        "With --accept-last-save or --up-to-serial it is the last resort of a heap that no opening accepts, because its journal or log is lost or "
        "damaged: the heap goes on with the last save that lies whole in its files, or with a damaged log up to a transaction. What that gives up "
        "is printed, and the old files are kept as FILE.before-repair.",
        {"FILE"},
        {{"reclaim", "", "free what no named object leads to"},
         {"accept-last-save", "", "give up what only the lost or damaged journal or log had"},
         {"up-to-serial", "N", "give up what a damaged log has behind transaction N"},
         {"dry-run", "", "tell what would be given up, and write nothing"}},
        "damage is left, or a dry run found something to give up",
        run_repair};
}

}  // namespace taiyen::tool
