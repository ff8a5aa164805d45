#include <optional>
#include <string>
#include <vector>

#include <taiyen/inspect/diff.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/fields.hpp"

namespace taiyen::tool {
namespace {

const char* name_of(ObjectChange change) {
    switch (change) {
        case ObjectChange::same: return "same";
        case ObjectChange::changed: return "changed";
        case ObjectChange::added: return "added";
        case ObjectChange::removed: return "removed";
        case ObjectChange::retyped: break;
    }
    return "retyped";
}

Style style_of(ObjectChange change) {
    return change == ObjectChange::added ? Style::good : change == ObjectChange::removed ? Style::bad : Style::warning;
}

void add_counts(JsonWriter& json, const ObjectDiff& object) {
    json.member("change", name_of(object.change))
        .member("blocks_added", object.blocks_added)
        .member("blocks_removed", object.blocks_removed)
        .member("blocks_changed", object.blocks_changed)
        .member("bytes_added", object.bytes_added)
        .member("bytes_removed", object.bytes_removed)
        .member("bytes_changed", object.bytes_changed);
}

JsonWriter json_of(const Given& given, const HeapDiff& diff, const std::optional<Fields>& fields) {
    JsonWriter json;
    json.begin_object()
        .member("before", given.files[0])
        .member("after", given.files[1])
        .member("same", diff.same())
        .member("same_heap", diff.same_heap)
        .member("same_address", diff.same_address)
        .member("live_blocks_before", diff.live_blocks_before)
        .member("live_blocks_after", diff.live_blocks_after)
        .member("extent_before", diff.extent_before)
        .member("extent_after", diff.extent_after)
        .member("pages_changed", diff.pages_changed);
    json.key("sum").begin_object();
    add_counts(json, diff.sum);
    json.end_object().key("unheld").begin_object();
    add_counts(json, diff.unheld);
    json.end_object().key("objects").begin_array();
    for (const ObjectDiff& object : diff.objects) {
        json.begin_object().member("name", object.name).member("type_before", object.type_before).member("type_after", object.type_after);
        add_counts(json, object);
        json.end_object();
    }
    json.end_array().key("blocks").begin_array();
    for (const BlockDiff& block : diff.blocks) {
        json.begin_object()
            .member("change", name_of(block.change))
            .member("offset", block.offset)
            .member("bytes", block.bytes)
            .member("bytes_changed", block.bytes_changed)
            .member("holder", block.holder)
            .end_object();
    }
    json.end_array().key("pages").begin_array();
    for (const PageRunDiff& run : diff.pages) json.begin_object().member("offset", run.offset).member("bytes", run.bytes).end_object();
    json.end_array();
    if (fields) add_fields(json, *fields);
    json.end_object();
    return json;
}

void print_objects(const HeapDiff& diff) {
    struct Row {
        const ObjectDiff* object;
        std::string name;
    };
    std::vector<Row> rows;
    const auto add = [&](const ObjectDiff& object, std::string name) {
        if (object.change != ObjectChange::same) rows.push_back({&object, std::move(name)});
    };
    for (const ObjectDiff& object : diff.objects) add(object, styled(Style::bold, visible(object.name)));
    add(diff.unheld, styled(Style::faint, "(held by nothing)"));
    print_table(rows, {{"", Align::left, [](const Row& row) { return styled(style_of(row.object->change), name_of(row.object->change)); }},
                       {"OBJECT", Align::left, [](const Row& row) { return row.name; }},
                       {"BLOCKS +", Align::right, [](const Row& row) { return count_text(row.object->blocks_added); }},
                       {"-", Align::right, [](const Row& row) { return count_text(row.object->blocks_removed); }},
                       {"CHANGED", Align::right, [](const Row& row) { return count_text(row.object->blocks_changed); }},
                       {"BYTES +", Align::right, [](const Row& row) { return count_text(row.object->bytes_added); }},
                       {"-", Align::right, [](const Row& row) { return count_text(row.object->bytes_removed); }},
                       {"CHANGED", Align::right, [](const Row& row) { return count_text(row.object->bytes_changed); }}});
    for (const ObjectDiff& object : diff.objects)
        if (object.change == ObjectChange::retyped)
            print(visible(object.name) + " was of type " + visible(object.type_before) + " and is of type " + visible(object.type_after) + "\n");
}

void print_text(const HeapDiff& diff) {
    if (!diff.same_heap) print(styled(Style::warning, "these are different heaps") + ": only what lies at the same place is compared\n");
    if (!diff.same_address) print(styled(Style::warning, "they have different addresses") + ": every pointer in them differs\n");
    if (diff.same()) {
        print(styled(Style::good, "same") + ": " + counted(diff.live_blocks_after, "block") + ", " + counted(diff.objects.size(), "named object") +
              "\n");
        return;
    }
    print_objects(diff);
    if (!diff.blocks.empty()) {
        print("\n");
        print_table(diff.blocks,
                    {{"BLOCK", Align::left, [](const BlockDiff& block) { return styled(style_of(block.change), name_of(block.change)); }},
                     {"OFFSET", Align::right, [](const BlockDiff& block) { return address_text(block.offset); }},
                     {"BYTES", Align::right, [](const BlockDiff& block) { return count_text(block.bytes); }},
                     {"DIFFER", Align::right, [](const BlockDiff& block) { return count_text(block.bytes_changed); }},
                     {"HELD BY", Align::left, [](const BlockDiff& block) { return visible(block.holder); }}});
    }
    if (!diff.pages.empty()) print("\n");
    for (const PageRunDiff& run : diff.pages)
        print("pages " + address_text(run.offset) + " to " + address_text(run.offset + run.bytes) + ", " + bytes_text(run.bytes) + "\n");
    const std::uint64_t blocks = diff.sum.blocks_added + diff.sum.blocks_removed + diff.sum.blocks_changed;
    print("\n" + styled(Style::warning, "different") + ": " + counted(blocks, "block") + " in " + counted(diff.pages_changed, "page") + "; " +
          bytes_text(diff.sum.bytes_changed) + " changed, " + bytes_text(diff.sum.bytes_added) + " added, " + bytes_text(diff.sum.bytes_removed) +
          " removed\n");
}

Exit run_diff(const Given& given) {
    DiffOptions options;
    options.listed_max = given.number("list", 0);
    options.pages = given.has("pages");
    const auto wanted = fields_wanted(given);
    PersistentOptions after;
    if (const auto path = given.value("data-file-of-b")) after.data_file = *path;
    if (const auto path = given.value("log-file-of-b")) after.log_file = *path;
    HeapDiff diff;
    {
        ProgressLine line("comparing");
        options.progress = line.progress();
        diff = diff_heaps(given.files[0], given.files[1], given.heap_options(), after, options);
    }
    std::optional<Fields> fields;
    if (wanted) fields.emplace();
    if (wanted && !diff.same()) {
        fields = fields_of(*wanted,
                           [&](const auto& take) { return for_each_difference(given.files[0], given.files[1], take, given.heap_options(), after); });
    }
    if (given.has("json")) {
        print(json_of(given, diff, fields));
    } else {
        print_text(diff);
        if (fields && !diff.same()) {
            print("\n");
            print_fields(*fields);
        }
    }
    return diff.same() ? Exit::ok : Exit::found;
}

}  // namespace

Command diff_command() {
    return {"diff",
            "What differs between a heap and an older copy of it",
            "A is the older one. Tells which named objects were added, removed, got another type, and which blocks of what they hold differ. Blocks "
            "are compared at the same place in "
            "both heaps: free space is no content, and neither is the undo history. All bytes of a live block count, also padding and unused "
            "capacity. A heap that was not closed is compared as an opening would find it. Nothing is written.",
            {"A", "B"},
            {fields_option("tell which fields, elements and keys differ, so many of them (0: all), by the shapes of the types"),
             {"pages", "", "list the pages in which live bytes differ"},
             {"list", "N", "list so many blocks that differ (0)"},
             {"data-file-of-b", "PATH", "as --data-file, which speaks of A"},
             {"log-file-of-b", "PATH", "as --log-file, which speaks of A"}},
            "the heaps differ",
            run_diff};
}

}  // namespace taiyen::tool
