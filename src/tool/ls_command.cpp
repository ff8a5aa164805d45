#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include <taiyen/inspect/objects.hpp>
#include <taiyen/shape/shape.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

constexpr const char* kind_words[] = {"opaque",
                                      "boolean",
                                      "signed_integer",
                                      "unsigned_integer",
                                      "floating_point",
                                      "character",
                                      "enumeration",
                                      "structure",
                                      "array",
                                      "pointer",
                                      "pair",
                                      "tuple",
                                      "optional",
                                      "variant",
                                      "string",
                                      "vector",
                                      "bit_vector",
                                      "deque",
                                      "list",
                                      "forward_list",
                                      "map",
                                      "multimap",
                                      "set",
                                      "multiset",
                                      "unordered_map",
                                      "unordered_multimap",
                                      "unordered_set",
                                      "unordered_multiset",
                                      "btree_map",
                                      "btree_multimap",
                                      "btree_set",
                                      "btree_multiset",
                                      "ordered_map",
                                      "ordered_multimap",
                                      "ordered_set",
                                      "ordered_multiset",
                                      "flat_hash_map",
                                      "flat_hash_set",
                                      "other_container"};
static_assert(std::size(kind_words) == static_cast<std::size_t>(ShapeKind::other_container) + 1);

/// Its types, which refer to each other by their places in the array.
void write(JsonWriter& json, const Shape& shape) {
    json.begin_array();
    for (std::uint32_t i = 0; i < shape.nodes.size(); ++i) {
        const ShapeNode& node = shape.nodes[i];
        json.begin_object()
            .member("kind", kind_words[static_cast<std::size_t>(node.kind)])
            .member("type", shape.type(i))
            .member("bytes", node.bytes)
            .member("alignment", node.alignment);
        if (node.kind == ShapeKind::array) json.member("count", node.count);
        if (!node.parts.empty()) {
            json.key("parts").begin_array();
            for (const ShapePart& part : node.parts) {
                json.begin_object();
                if (!part.name.empty()) json.member("name", part.name);
                if (holds_in_place(node.kind)) json.member("offset", part.offset);
                json.member("index", part.node).end_object();
            }
            json.end_array();
        }
        json.end_object();
    }
    json.end_array();
}

void print_shape(const StoredObject& object) {
    print(styled(Style::bold, visible(object.name)) + ": ");
    if (!object.shape) {
        print("its type's shape is not stored; a program that has the type stores it when it opens the heap for writing and asks for the object\n");
        return;
    }
    const std::string text = object.shape->text();
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        print(visible(std::string_view(text).substr(at, end - at)) + "\n");
    }
}

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
                .member("count", object.count);
            if (given.has("shapes") && object.shape) write(json.key("shape"), *object.shape);
            json.end_object();
        }
        json.end_array().end_object();
        print(json);
    } else if (given.has("names")) {
        for (const StoredObject& object : objects) print(object.name + "\n");
    } else if (objects.empty()) {
        print("no named objects\n");
    } else if (given.has("shapes")) {
        for (const StoredObject& object : objects) print_shape(object);
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
            {{"names", "", "print the names only, one to a line"},
             {"shapes", "", "print what each type is made of: a line for each field of its structures, with its offset in bytes"}},
            "",
            run_ls};
}

}  // namespace taiyen::tool
