#include <taiyen/inspect/log_report.hpp>

#include <algorithm>
#include <charconv>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/fields.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

const char* name_of(LogKind kind) { return kind == LogKind::log ? "transaction log" : kind == LogKind::journal ? "journal" : "none"; }

const char* name_of(LogEnding ending) {
    switch (ending) {
        case LogEnding::unused: return "unused";
        case LogEnding::whole: return "whole";
        case LogEnding::torn: return "torn";
        case LogEnding::damaged: break;
    }
    return "damaged";
}

const char* name_of(LoggedRange::Kind kind) {
    switch (kind) {
        case LoggedRange::Kind::bytes: return "bytes";
        case LoggedRange::Kind::zeros: return "zeros";
        case LoggedRange::Kind::moved: return "moved";
        case LoggedRange::Kind::procedure: break;
    }
    return "call";
}

/// "A..B", "A.." , "..B" or "A".
void set_serials(LogOptions& options, const std::string& text) {
    const auto number = [&](std::string_view digits, std::uint64_t otherwise) {
        if (digits.empty()) return otherwise;
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc{} || end != digits.data() + digits.size())
            throw Error(errc::invalid_argument, "--serial takes A..B, A.., ..B or A, not '" + text + "'");
        return value;
    };
    const std::string_view all = text;
    const std::size_t dots = all.find("..");
    if (dots == std::string_view::npos) {
        options.first = options.last = number(all.empty() ? "?" : all, 0);
    } else {
        options.first = number(all.substr(0, dots), 0);
        options.last = number(all.substr(dots + 2), ~std::uint64_t{0});
    }
}

/// What each transaction changed; empty: that isn't wanted.
using Changes = std::vector<Fields>;

Changes changes_of(const Given& given, const LogReport& report) {
    Changes changes;
    const auto wanted = fields_wanted(given);
    if (!wanted) return changes;
    if (report.kind != LogKind::log)
        throw Error(errc::invalid_argument, given.files[0],
                    "--fields is of transactions, and this heap has no transaction log; 'taiyen diff --fields' compares copies of a heap");
    ProgressLine line("comparing");
    const Progress progress = line.progress();
    for (const LoggedWork& work : report.listed) {
        changes.push_back(fields_if_known(
            *wanted, [&](const auto& take) { return for_each_difference_of_transaction(given.files[0], work.serial, take, given.heap_options()); }));
        if (progress) progress(changes.size(), report.listed.size());
    }
    return changes;
}

JsonWriter json_of(const Given& given, const LogReport& report, bool ranges, const Changes& changes) {
    JsonWriter json;
    json.begin_object()
        .member("file", given.files[0])
        .member("kind", report.kind == LogKind::log ? "log" : name_of(report.kind))
        .member("ending", name_of(report.ending))
        .member("log_file", report.path.native())
        .member("missing", report.missing)
        .member("capacity_bytes", report.capacity_bytes)
        .member("used_bytes", report.used_bytes)
        .member("epoch", report.epoch)
        .member("position", report.position)
        .member("end_position", report.end_position)
        .member("laps", report.laps)
        .member("files_contain", report.files_contain)
        .member("durable_up_to", report.durable_up_to)
        .member("records", report.records)
        .member("transactions", report.transactions)
        .member("changed_bytes", report.changed_bytes);
    if (report.staged) json.member("staged_generation", *report.staged);
    if (!report.what.empty()) json.member("ends_at", report.damaged_at).member("what", report.what);
    json.key("listed").begin_array();
    for (std::size_t i = 0; i != report.listed.size(); ++i) {
        const LoggedWork& work = report.listed[i];
        json.begin_object()
            .member("serial", work.serial)
            .member("position", work.position)
            .member("bytes", work.bytes)
            .member("changed_bytes", work.changed_bytes)
            .member("ranges", work.ranges)
            .member("calls", work.calls)
            .member("history_ranges", work.history_ranges)
            .member("extent_bytes", work.extent_bytes);
        if (ranges) {
            json.key("changes").begin_array();
            for (const LoggedRange& range : work.changes) {
                json.begin_object().member("kind", name_of(range.kind)).member("of_history", range.of_history);
                json.member("offset", range.offset).member("bytes", range.bytes);
                if (range.kind == LoggedRange::Kind::moved) json.member("source", range.source);
                if (range.kind == LoggedRange::Kind::procedure) json.member("name", range.name);
                json.end_object();
            }
            json.end_array();
        }
        if (!changes.empty()) add_fields(json, changes[i]);
        json.end_object();
    }
    json.end_array().key("saves").begin_array();
    for (const LoggedSave& save : report.saves) {
        json.begin_object()
            .member("generation", save.generation)
            .member("position", save.position)
            .member("bytes", save.bytes)
            .member("pages", save.pages)
            .member("zero_pages", save.zero_pages)
            .end_object();
    }
    json.end_array();
    if (report.last_restoration) add_restoration(json, *report.last_restoration);
    json.end_object();
    return json;
}

std::string ending_text(const LogReport& report) {
    switch (report.ending) {
        case LogEnding::unused: return "nothing in it counts: the heap was closed";
        case LogEnding::whole: return styled(Style::good, "whole") + ": the last record is complete";
        case LogEnding::torn: break;
        case LogEnding::damaged: break;
    }
    const bool torn = report.ending == LogEnding::torn;
    return styled(torn ? Style::warning : Style::bad, name_of(report.ending)) + " at byte " + std::to_string(report.damaged_at) + ": " + report.what;
}

void print_ranges(const LoggedWork& work) {
    for (const LoggedRange& range : work.changes) {
        if (range.kind == LoggedRange::Kind::procedure) {
            print("        call of " + visible(range.name) + "\n");
            continue;
        }
        print("        " + address_text(range.offset) + "  " + count_text(range.bytes) + " B" + (range.of_history ? " of the history" : "") +
              (range.kind == LoggedRange::Kind::zeros   ? ", zero from now on"
               : range.kind == LoggedRange::Kind::moved ? ", moved from " + address_text(range.source)
                                                        : "") +
              "\n");
    }
}

void print_listed(const LogReport& report, bool ranges, const Changes& changes) {
    if (report.kind == LogKind::journal && !report.saves.empty()) {
        print("\n");
        print_table(report.saves, {{"SAVE", Align::right, [](const LoggedSave& save) { return count_text(save.generation); }},
                                   {"BYTES", Align::right, [](const LoggedSave& save) { return count_text(save.bytes); }},
                                   {"PAGES", Align::right, [](const LoggedSave& save) { return count_text(save.pages); }},
                                   {"OF THEM ZERO", Align::right, [](const LoggedSave& save) { return count_text(save.zero_pages); }}});
    }
    if (report.listed.empty()) return;
    if (ranges || !changes.empty()) {
        for (std::size_t i = 0; i != report.listed.size(); ++i) {
            const LoggedWork& work = report.listed[i];
            print("\n" + styled(Style::bold, "transaction " + count_text(work.serial)) + ": " + count_text(work.bytes) + " B in the log\n");
            if (ranges) print_ranges(work);
            if (!changes.empty()) print_fields(changes[i]);
        }
        return;
    }
    print("\n");
    print_table(report.listed, {{"SERIAL", Align::right, [](const LoggedWork& work) { return count_text(work.serial); }},
                                {"BYTES", Align::right, [](const LoggedWork& work) { return count_text(work.bytes); }},
                                {"RANGES", Align::right, [](const LoggedWork& work) { return count_text(work.ranges); }},
                                {"CHANGED", Align::right, [](const LoggedWork& work) { return bytes_text(work.changed_bytes); }},
                                {"CALLS", Align::right, [](const LoggedWork& work) { return count_text(work.calls); }},
                                {"HISTORY", Align::right, [](const LoggedWork& work) { return count_text(work.history_ranges); }}});
}

void print_text(const Given& given, const LogReport& report, const LogOptions& options, const Changes& changes) {
    if (report.kind == LogKind::none) {
        print("this heap has no transaction log" + std::string(report.staged ? "" : ", and was closed: there is no journal either") + "\n");
        return;
    }
    const bool is_log = report.kind == LogKind::log;
    const std::string unit = is_log ? "transaction " : "save ";
    std::vector<std::pair<std::string, std::string>> fields{
        {is_log ? "log" : "journal", visible(as_typed(given, report.path)) + ", " + bytes_text(report.capacity_bytes) +
                                         (report.missing ? styled(Style::warning, ", missing; a new one is made when it is needed") : "")}};
    if (report.ending != LogEnding::unused) {
        fields.emplace_back("used", bytes_text(report.used_bytes) + " (" + share_text(report.used_bytes, report.capacity_bytes) + "), " +
                                        counted(report.laps, "lap") + ", epoch " + address_text(report.epoch));
        fields.emplace_back("positions", count_text(report.position) + " to " + count_text(report.end_position));
        fields.emplace_back("holds", is_log ? counted(report.transactions, "transaction") + " in " + counted(report.records, "group") +
                                                  ", which change " + bytes_text(report.changed_bytes)
                                            : counted(report.records, "save"));
    }
    fields.emplace_back("files hold", report.files_contain == 0 ? "no " + unit + "yet" : "up to " + unit + count_text(report.files_contain));
    if (report.staged) fields.emplace_back("staged", "save " + count_text(*report.staged) + ", whole, behind the records");
    fields.emplace_back("durable", report.durable_up_to == 0 ? "no " + unit + "yet" : "up to " + unit + count_text(report.durable_up_to));
    fields.emplace_back("ends", ending_text(report));
    if (report.last_restoration) fields.emplace_back("recovered", restoration_text(*report.last_restoration));
    print_fields(fields);
    print_listed(report, options.ranges, changes);
    const std::uint64_t shown = is_log ? report.listed.size() : report.saves.size();
    if (shown == options.listed_max) print_left_out(shown, is_log ? report.transactions : report.records, "older ones");
}

Exit run_log(const Given& given) {
    LogOptions options;
    options.listed_max = given.number("list", 20);
    options.ranges = given.has("ranges");
    if (const auto serials = given.value("serial")) {
        set_serials(options, *serials);
        if (!given.has("list")) options.listed_max = ~std::size_t{0};
    }
    LogReport report;
    {
        ProgressLine line("reading the log");
        options.progress = line.progress();
        report = look_at_log(given.files[0], given.heap_options(), options);
    }
    const Changes changes = changes_of(given, report);
    if (given.has("json"))
        print(json_of(given, report, options.ranges, changes));
    else
        print_text(given, report, options, changes);
    return report.ending == LogEnding::damaged || std::ranges::any_of(changes, &Fields::is_damaged) ? Exit::found : Exit::ok;
}

}  // namespace

Command log_command() {
    return {"log",
            "What stands in the transaction log",
            "Reads the log of a transactional heap, or the journal of another one, from the device, without opening the heap: after a crash it tells "
            "what the next opening will replay. Recovers nothing and writes nothing. After a clean close the log is kept, but nothing in it counts. "
            "A torn end is a write that was interrupted: nobody was told that it is durable. Damage is anything that an interrupted write can't "
            "leave behind.",
            {"FILE"},
            {fields_option("tell which fields, elements and keys each transaction changed, so many of them (0: all), by the shapes of the types; for "
                           "each of them the heap is compared with itself"),
             {"ranges", "", "list what each transaction changes: offset and length of each range, and calls"},
             {"serial", "A..B", "list the transactions A to B; A.. and ..B are fine, too"},
             {"list", "N", "how many transactions are listed, the newest ones (20; with --serial all)"}},
            "the log is damaged (a torn end doesn't count); with --fields also if the heap is",
            run_log};
}

}  // namespace taiyen::tool
