#include <taiyen/inspect/objects.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

Exit run_ls(const Given& given) {
    const ArchiveHeap heap(open_read_only, given.files[0], given.heap_options());
    const std::vector<StoredObject> objects = stored_objects(heap);
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("file", given.files[0]).key("objects").begin_array();
        for (const StoredObject& object : objects) {
            json.begin_object()
                .member("name", object.name)
                .member("type", object.type)
                .member("fingerprint", object.fingerprint)
                .member("offset", object.offset)
                .member("bytes", object.bytes)
                .member("count", object.count)
                .end_object();
        }
        json.end_array().end_object();
        print(json);
    } else if (given.has("names")) {
        for (const StoredObject& object : objects) print(object.name + "\n");
    } else if (objects.empty()) {
        print("no named objects\n");
    } else {
        print_table(objects, {{"NAME", Align::left, [](const StoredObject& object) { return styled(Style::bold, visible(object.name)); }},
                              {"TYPE", Align::left, [](const StoredObject& object) { return visible(object.type); }},
                              {"BYTES", Align::right, [](const StoredObject& object) { return count_text(object.bytes); }},
                              {"OFFSET", Align::right, [](const StoredObject& object) { return address_text(object.offset); }}});
    }
    return Exit::ok;
}

}  // namespace

Command ls_command() {
    return {"ls",
            "The named objects",
            "Lists each named object with its type and the size of the object itself; 'taiyen leaks' tells what it holds elsewhere in the heap.",
            {"FILE"},
            {{"names", "", "print the names only, one to a line"}},
            "",
            run_ls};
}

}  // namespace taiyen::tool
