#include <taiyen/store/archive_heap.hpp>
#include <taiyen/transfer/rebase.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/moving.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

JsonWriter json_of(const Given& given, const RebaseReport& report, const Report* after) {
    JsonWriter json;
    json.begin_object()
        .member("file", given.files[0])
        .member("old_address", std::uint64_t{report.old_address})
        .member("new_address", std::uint64_t{report.new_address})
        .member("moved", report.moved)
        .member("position_independent", report.position_independent)
        .member("live_blocks", report.live_blocks)
        .member("live_bytes", report.live_bytes)
        .member("pointers", report.pointers)
        .member("pages_changed", report.pages_changed)
        .member("unreached_blocks", report.unreached_blocks)
        .member("has_history", report.has_history)
        .member("ambiguous_words", report.ambiguous_words)
        .key("ambiguous")
        .begin_array();
    for (const AmbiguousWord& word : report.ambiguous) {
        json.begin_object()
            .member("offset", word.offset)
            .member("value", std::uint64_t{word.value})
            .member("target", taiyen::name_of(word.target))
            .end_object();
    }
    json.end_array();
    add_guessed(json, report);
    json.key("hashed_by_address").begin_array();
    for (const std::string& name : report.hashed_by_address) json.value(name);
    json.end_array();
    if (after != nullptr) {
        json.key("after").begin_object();
        add_report(json, *after);
        json.end_object();
    }
    json.end_object();
    return json;
}

void print_text(const RebaseReport& report, bool dry_run, bool conservative) {
    const char* const found = !report.by_declared_types ? ", guessed by their values"
                              : conservative            ? ", told by the shapes of its types, or guessed"
                                                        : ", told by the shapes of its types";
    if (report.position_independent) {
        print("it is position-independent: it opens wherever there is room, and needs no move\n");
        return;
    }
    print_fields({
        {"address", address_text(report.old_address)},
        {"new address", address_text(report.new_address)},
        {"blocks", count_text(report.live_blocks) + ", " + bytes_text(report.live_bytes) + " live"},
        {"pointers", count_text(report.pointers) + " in " + counted(report.pages_changed, "page") + found},
        {"history", !report.has_history ? "none"
                    : report.moved      ? "ended"
                                        : "there is one: only --drop-history moves the heap, and ends it"},
    });
    if (report.unreached_blocks != 0 && !conservative)
        print(counted(report.unreached_blocks, "block") + " that no name leads to " +
              (report.unreached_blocks == 1 ? "stays as it is" : "stay as they are") + "; 'taiyen leaks' tells of them\n");
    for (const std::string& name : report.hashed_by_address)
        print("'" + visible(name) + "' hashes pointers: its elements are not found at another address until they are inserted again\n");
    if (report.ambiguous_words != 0) {
        print(counted(report.ambiguous_words, "ambiguous word stays as it is", "ambiguous words stay as they are") +
              "; bytes of unused capacity that were a pointer once look the same:\n");
        for (const AmbiguousWord& word : report.ambiguous)
            print("  at " + address_text(word.offset) + ": " + address_text(word.value) + ", points to " + std::string(taiyen::name_of(word.target)) +
                  "\n");
        print_left_out(report.ambiguous.size(), report.ambiguous_words);
    }
    print_guessed(report);
    if (report.old_address == report.new_address) {
        print("it lies there already\n");
    } else if (dry_run) {
        if (!conservative && !report.by_declared_types) print("its pointers have to be guessed: only --conservative moves the heap\n");
        print("a dry run: nothing was written\n");
    }
}

Exit run_rebase(const Given& given) {
    RebaseOptions options;
    options.dry_run = given.has("dry-run");
    options.conservative = given.has("conservative");
    options.refuse_ambiguous = given.has("refuse-ambiguous");
    options.drop_history = given.has("drop-history");
    options.accept_hashed_by_address = given.has("accept-hashed-by-address");
    options.listed_max = given.number("list", 20);
    options.files = given.heap_options();
    const auto where = given.value("address");
    if (!where) throw Error(errc::invalid_argument, "rebase needs --address ADDRESS, or --address auto");
    const std::uintptr_t address = place_of(*where);
    RebaseReport report;
    {
        ProgressLine line("looking for pointers");
        options.progress = line.progress();
        report = rebase(given.files[0], address, options);
    }
    Report after;
    if (report.moved) {
        const ArchiveHeap heap(open_read_only, given.files[0], given.heap_options());
        after = heap.verify();
    }
    if (given.has("json")) {
        print(json_of(given, report, report.moved ? &after : nullptr));
    } else {
        print_text(report, options.dry_run, options.conservative);
        if (report.moved) print_report(given, after);
    }
    if (report.moved) return after.ok() ? Exit::ok : Exit::found;
    const bool moves = report.old_address != report.new_address;
    const bool refused = (moves && !options.conservative && !report.by_declared_types) || (report.has_history && !options.drop_history) ||
                         (!report.hashed_by_address.empty() && !options.accept_hashed_by_address);
    return options.dry_run && (refused || report.ambiguous_words != 0) ? Exit::found : Exit::ok;
}

}  // namespace

Command rebase_command() {
    return {
        "rebase",
        "Moves a heap to another address",
        "Rewrites its pointers, and names the new address in the files: by one save, so that a crash leaves the heap at the old address or at the "
        "new "
        "one. Where the heap knows the shapes of all its types (taiyen ls --shapes) it is exactly the pointers that change. Else they have to be "
        "guessed, which takes --conservative: every word in a live block that is the address of a live block, of a place in one or of the end of "
        "one; a "
        "number of such a value can't be told from a pointer, so words that change and don't stand where a container keeps a pointer are listed. A "
        "program that declares its types moves a heap without a guess (taiyen::rebase). A heap that was not closed is recovered first. Words that "
        "lie in the heap's range of addresses and "
        "point to nothing live are ambiguous: they are listed and stay. Verifies the heap where it lies then. The heap must be openable at its "
        "old address.",
        {"FILE"},
        {{"address", "ADDRESS", "a multiple of 2 GiB, such as 0x2300_0000_0000; auto: a free one is chosen"},
         {"conservative", "", "where shapes don't tell which words are pointers, guess it by their values; without it only a dry run is done then"},
         {"dry-run", "", "tell what would be done, and write nothing"},
         {"refuse-ambiguous", "", "fail if there is an ambiguous word"},
         {"drop-history", "", "end the undo history, whose steps hold old addresses; without it a heap with a history is refused"},
         {"accept-hashed-by-address", "", "move a heap whose containers hash pointers; their elements must be inserted again"},
         {"list", "N", "how many ambiguous and guessed words are listed, in JSON, too (20)"}},
        "a dry run has found ambiguous words or something to refuse the heap for; or the moved heap does not verify",
        run_rebase};
}

}  // namespace taiyen::tool
