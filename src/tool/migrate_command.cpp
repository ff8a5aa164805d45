#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/inspect/objects.hpp>
#include <taiyen/shape/shape.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

enum class Fate { same, changed, perhaps, added, removed, unknown };

const char* name_of(Fate fate) {
    switch (fate) {
        case Fate::same: return "same";
        case Fate::changed: return "changed";
        case Fate::perhaps: return "perhaps";
        case Fate::added: return "added";
        case Fate::removed: return "removed";
        case Fate::unknown: break;
    }
    return "unknown";
}

Style style_of(Fate fate) {
    return fate == Fate::same ? Style::faint : fate == Fate::added ? Style::good : fate == Fate::removed ? Style::bad : Style::warning;
}

/// What becomes of a named object.
struct Change {
    std::string name;
    Fate fate = Fate::same;
    std::optional<std::string> type_before;
    std::optional<std::string> type_after;
    std::vector<std::string> what;  ///< field by field
};

Change change_of(const std::string& name, const StoredObject* before, const StoredObject* after) {
    Change change;
    change.name = name;
    const auto type_of = [](const StoredObject& object) { return object.shape ? object.shape->type() : object.type; };
    if (before != nullptr) change.type_before = type_of(*before);
    if (after != nullptr) change.type_after = type_of(*after);
    if (before == nullptr || after == nullptr) {
        change.fate = before == nullptr ? Fate::added : Fate::removed;
    } else if (!before->shape || !after->shape) {
        change.fate = Fate::unknown;
    } else {
        for (const ShapeChange& found : changes(*before->shape, *after->shape)) {
            change.what.push_back(found.text);
            change.fate = found.is_certain || change.fate == Fate::changed ? Fate::changed : Fate::perhaps;
        }
        if (change.fate != Fate::changed && before->type != after->type) {  // as another comparison, of which shapes don't tell
            change.what.push_back("was " + before->type + ", is " + after->type);
            change.fate = Fate::changed;
        }
        if (before->count != after->count) {
            change.what.push_back(counted(before->count, "object") + " before, " + counted(after->count, "object") + " now");
            change.fate = Fate::changed;
        }
    }
    return change;
}

std::vector<StoredObject> objects_of(const std::string& file, const PersistentOptions& options) {
    return stored_objects(ArchiveHeap(open_read_only, file, options));
}

std::vector<Change> compare(const Given& given) {
    struct Both {
        const StoredObject* before = nullptr;
        const StoredObject* after = nullptr;
    };
    const std::vector<StoredObject> before = objects_of(given.files[0], given.heap_options());
    PersistentOptions like;
    if (const auto path = given.value("data-file-of-like")) like.data_file = *path;
    if (const auto path = given.value("log-file-of-like")) like.log_file = *path;
    const std::vector<StoredObject> after = objects_of(given.files[1], like);
    std::map<std::string, Both> names;
    for (const StoredObject& object : before) names[object.name].before = &object;
    for (const StoredObject& object : after) names[object.name].after = &object;
    std::vector<Change> found;
    for (const auto& [name, both] : names) found.push_back(change_of(name, both.before, both.after));
    return found;
}

JsonWriter json_of(const Given& given, const std::vector<Change>& found, bool is_same) {
    JsonWriter json;
    json.begin_object().member("file", given.files[0]).member("like", given.files[1]).member("same", is_same).key("objects").begin_array();
    for (const Change& change : found) {
        json.begin_object().member("name", change.name).member("change", name_of(change.fate));
        if (change.type_before) json.member("type_before", *change.type_before);
        if (change.type_after) json.member("type_after", *change.type_after);
        json.key("what").begin_array();
        for (const std::string& what : change.what) json.value(std::string_view(what));
        json.end_array().end_object();
    }
    json.end_array().end_object();
    return json;
}

std::string remark_on(const Change& change) {
    switch (change.fate) {
        case Fate::added: return ", which only LIKE has";
        case Fate::removed: return ", which only FILE has: it stays, unless Migration::dropped takes it";
        case Fate::perhaps: return ": one of the two may only say less";
        case Fate::unknown: return ": the shape of its type is not stored in both; a program that has the type stores it with the next change";
        default: return "";
    }
}

void print_text(const std::vector<Change>& found, bool is_same) {
    for (const Change& change : found) {
        const std::string fate = name_of(change.fate);
        print(styled(style_of(change.fate), fate) + std::string(9 - fate.size(), ' ') + visible(change.name) + ": " +
              visible(change.type_after ? *change.type_after : *change.type_before) + remark_on(change) + "\n");
        for (const std::string& what : change.what) print("           " + visible(what) + "\n");
    }
    print(found.empty() ? "neither heap has named objects\n"
          : is_same     ? "nothing has to be migrated\n"
                        : "the program that made LIKE migrates FILE by taiyen::Migration, whose dry_run() also looks at each value\n");
}

Exit run_migrate(const Given& given) {
    if (!given.has("dry-run"))
        throw Error(errc::invalid_argument,
                    "only a program that has the new types can migrate a heap (taiyen::Migration); --dry-run tells what that will change");
    const std::vector<Change> found = compare(given);
    bool is_same = true;
    for (const Change& change : found) is_same &= change.fate == Fate::same || change.fate == Fate::added;
    if (given.has("json"))
        print(json_of(given, found, is_same));
    else
        print_text(found, is_same);
    return is_same ? Exit::ok : Exit::found;
}

}  // namespace

Command migrate_command() {
    return {"migrate",
            "Which types have changed since a heap was stored, field by field",
            "Compares the types of FILE's named objects with those of LIKE's, a heap that the new version of the program has made, which may be "
            "empty but for its objects' names. A program migrates a heap itself, by taiyen::Migration: a command doesn't have its types. Nothing is "
            "written.",
            {"FILE", "LIKE"},
            {{"dry-run", "", "compare; the only thing that this command can do, so it has to be given"},
             {"data-file-of-like", "PATH", "as --data-file, which speaks of FILE"},
             {"log-file-of-like", "PATH", "as --log-file, which speaks of FILE"}},
            "types differ, or it isn't known whether they do",
            run_migrate};
}

}  // namespace taiyen::tool
