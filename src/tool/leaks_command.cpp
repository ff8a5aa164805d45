#include <taiyen/inspect/leaks.hpp>
#include <taiyen/store/archive_heap.hpp>

#include <algorithm>
#include <cstdio>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

const char* kind_name(LeakKind kind) {
    switch (kind) {
        case LeakKind::direct: return "direct";
        case LeakKind::indirect: return "indirect";
        case LeakKind::doubtful: return "doubtful";
        case LeakKind::hidden: return "hidden";
    }
    return "";
}

std::string hexadecimal(const LeakedBlock& leak) {
    std::string text;
    for (std::size_t i = 0; i < std::min(leak.bytes, leak.beginning.size()); ++i) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(leak.beginning[i]));
        text += digits;
    }
    return text;
}

std::string characters(const LeakedBlock& leak) {
    std::string text;
    for (std::size_t i = 0; i < std::min(leak.bytes, leak.beginning.size()); ++i) {
        const auto c = std::to_integer<unsigned char>(leak.beginning[i]);
        text += c >= 0x20 && c < 0x7f ? static_cast<char>(c) : '.';
    }
    return text;
}

JsonWriter json_of(const Given& given, const LeakReport& report) {
    JsonWriter json;
    json.begin_object()
        .member("file", given.files[0])
        .member("live_blocks", report.live_blocks)
        .member("live_bytes", report.live_bytes)
        .member("leaked_blocks", report.leaked_blocks)
        .member("leaked_bytes", report.leaked_bytes)
        .member("direct_blocks", report.direct_blocks)
        .member("doubtful_blocks", report.doubtful_blocks)
        .member("doubtful_bytes", report.doubtful_bytes)
        .member("hidden_blocks", report.hidden_blocks)
        .member("hidden_bytes", report.hidden_bytes)
        .member("by_shapes", report.is_by_shapes)
        .member("dangling_pointers", report.dangling_pointers)
        .member("program_pointers", report.program_pointers)
        .member("program_places", report.program_places)
        .member("program_words_unjudged", report.program_words_unjudged);
    json.key("objects").begin_array();
    for (const Holding& holding : report.holdings) {
        json.begin_object()
            .member("name", holding.name)
            .member("blocks", holding.blocks)
            .member("bytes", holding.bytes)
            .member("shared_words", holding.shared_words)
            .end_object();
    }
    json.end_array().key("sizes").begin_array();
    for (const LeakSize& size : report.sizes)
        json.begin_object().member("bytes_max", size.bytes_max).member("blocks", size.blocks).member("bytes", size.bytes).end_object();
    json.end_array().key("leaks").begin_array();
    for (const LeakedBlock& leak : report.leaks) {
        json.begin_object()
            .member("kind", kind_name(leak.kind))
            .member("offset", leak.offset)
            .member("bytes", leak.bytes)
            .member("generation", leak.generation)
            .member("beginning", hexadecimal(leak))
            .end_object();
    }
    json.end_array().key("dangling").begin_array();
    for (const DanglingPointer& pointer : report.dangling)
        json.begin_object().member("offset", pointer.offset).member("target", pointer.target).member("holder", pointer.holder).end_object();
    json.end_array().key("program").begin_array();
    for (const ProgramPointer& pointer : report.program) {
        json.begin_object()
            .member("offset", pointer.offset)
            .member("block", pointer.block)
            .member("block_bytes", pointer.block_bytes)
            .member("target", pointer.target)
            .member("words", pointer.words)
            .member("holder", pointer.holder)
            .member("type", pointer.type)
            .end_object();
    }
    json.end_array().end_object();
    return json;
}

void print_text(const LeakReport& report) {
    if (!report.holdings.empty()) {
        print_table(report.holdings,
                    {{"OBJECT", Align::left, [](const Holding& holding) { return styled(Style::bold, visible(holding.name)); }},
                     {"BLOCKS", Align::right, [](const Holding& holding) { return count_text(holding.blocks); }},
                     {"BYTES", Align::right, [](const Holding& holding) { return count_text(holding.bytes); }},
                     {"OF ALL", Align::right, [&](const Holding& holding) { return share_text(holding.bytes, report.live_bytes); }}});
        print("\n");
    }
    if (!report.leaks.empty()) {
        print_table(report.leaks,
                    {{"LEAK", Align::left, [](const LeakedBlock& leak) { return std::string(kind_name(leak.kind)); }},
                     {"OFFSET", Align::right, [](const LeakedBlock& leak) { return address_text(leak.offset); }},
                     {"BYTES", Align::right, [](const LeakedBlock& leak) { return count_text(leak.bytes); }},
                     {"SAVED BY", Align::right,
                      [](const LeakedBlock& leak) { return leak.generation != 0 ? "save " + count_text(leak.generation) : std::string("-"); }},
                     {"FIRST BYTES", Align::left, hexadecimal},
                     {"", Align::left, characters}});
        print_left_out(report.leaks.size(), report.leaked_blocks + report.doubtful_blocks + report.hidden_blocks);
        print("\n");
    }
    if (report.dangling_pointers != 0) {
        print(report.position_independent ? counted(report.dangling_pointers, "word is an address", "words are addresses") +
                                                " in the heap, of no use where it is mapped elsewhere:\n"
                                          : counted(report.dangling_pointers, "word points", "words point") +
                                                " into free space; bytes of unused capacity that were a pointer once look the same:\n");
        for (const DanglingPointer& pointer : report.dangling) {
            print("  at " + address_text(pointer.offset) + ", held by " + visible(pointer.holder) + ": points to " + address_text(pointer.target) +
                  "\n");
        }
        print_left_out(report.dangling.size(), report.dangling_pointers);
        print("\n");
    }
    if (report.program_pointers != 0) {
        print(counted(report.program_pointers, "word looks like a pointer", "words look like pointers") +
              " to a program's own memory; after a restart that is nothing: keep an offset, an id or a name instead:\n");
        for (const ProgramPointer& pointer : report.program) {
            print("  at " + address_text(pointer.offset) + ", byte " + count_text(pointer.offset - pointer.block) + " of a block of " +
                  count_text(pointer.block_bytes) + " B held by " + visible(pointer.holder) +
                  (pointer.type.empty() ? "" : " (" + visible(pointer.type) + ")") + ": points to " + address_text(pointer.target) +
                  (pointer.words == 1 ? "" : ", and " + count_text(pointer.words - 1) + " more in blocks of that size") + "\n");
        }
        print_left_out(report.program.size(), report.program_places);
        print("\n");
    }
    if (report.program_words_unjudged != 0)
        print(counted(report.program_words_unjudged, "more word", "more words") + " may be such pointers; the search keeps no more\n\n");
    if (report.doubtful_blocks != 0) {
        print("doubtful: " + counted(report.doubtful_blocks, "block") + ", " + bytes_text(report.doubtful_bytes) +
              "; words lead into them, or are the end of a block beside them, and none is their address\n");
    }
    if (report.hidden_blocks != 0) {
        print("hidden: " + counted(report.hidden_blocks, "block") + ", " + bytes_text(report.hidden_bytes) +
              "; words are their addresses, and by the shapes of the types no pointer is\n");
    }
    const std::string live = counted(report.live_blocks, "live block") + ", " + bytes_text(report.live_bytes);
    if (report.leaked_blocks == 0) {
        print(styled(Style::good, "no leaks") + ": " + live + "\n");
    } else {
        print(styled(Style::bad, counted(report.leaked_blocks, "leaked block")) + ", " + bytes_text(report.leaked_bytes) +
              (report.direct_blocks == report.leaked_blocks
                   ? ", held by nothing; "
                   : ", " + count_text(report.direct_blocks) + " of them held by nothing, the rest by those; ") +
              live + "\n");
    }
}

Exit run_leaks(const Given& given) {
    const ArchiveHeap heap(open_read_only, given.files[0], given.heap_options());
    LeakOptions options;
    options.listed_max = given.number("list", 20);
    options.program_pointers = ProgramSearch::any_process;
    LeakReport report;
    {
        ProgressLine line("looking for leaks");
        options.progress = line.progress();
        report = find_leaks(heap, options);
    }
    if (given.has("json"))
        print(json_of(given, report));
    else
        print_text(report);
    return report.leaked_blocks == 0 ? Exit::ok : Exit::found;
}

}  // namespace

Command leaks_command() {
    return {
        "leaks",
        "What the named objects hold, and what nothing holds",
        "Walks from the named objects over every word that is the address of a block. Blocks that are not reached are leaks: direct ones, and "
        "those that only leaks lead to. A block whose "
        "address something holds is never called a leak; one that words only lead into is called doubtful; a leak can hide behind bytes that "
        "were its address by chance. What "
        "several objects reach counts for the first of them by name. Words that look like pointers to the memory of a program (constants, malloc, "
        "stacks) are told; they are no leaks.",
        {"FILE"},
        {{"list", "N", "how many leaks, dangling pointers and places of program pointers are listed, the largest leaks first (20)"}},
        "there are leaks (doubtful ones don't count)",
        run_leaks};
}

}  // namespace taiyen::tool
