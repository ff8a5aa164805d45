#include <taiyen/store/parameters.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/log_heap.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

const char* role_text(ReplicaRole role) { return role == ReplicaRole::follower ? "follower" : role == ReplicaRole::deposed ? "deposed" : "owner"; }

Exit run_info(const Given& given) {
    if (is_of_log_heap(given)) return log_heap_info(given);
    const HeapParameters heap = read_parameters(given.files[0]);
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("format_version", heap.version)
            .member("kind", name_of(heap.kind))
            .member("uuid", heap.uuid)
            .member("address", std::uint64_t{heap.address})
            .member("position_independent", heap.position_independent)
            .member("capacity_bytes", heap.capacity_bytes)
            .member("extent_bytes", heap.extent_bytes)
            .member("file_bytes", heap.file_bytes)
            .member("allocated_bytes", heap.allocated_bytes)
            .member("generation", heap.generation)
            .member("serial", heap.serial)
            .member("role", role_text(heap.role))
            .member("clean", heap.clean)
            .member("data_file", heap.data_file.native())
            .member("journal_file", heap.journal_file.native())
            .member("log_file", heap.log_file.native());
        if (heap.written_at) json.member("written_at", time_text(*heap.written_at));
        if (heap.last_restoration) add_restoration(json, *heap.last_restoration);
        json.end_object();
        print(json);
        return Exit::ok;
    }
    std::vector<std::pair<std::string, std::string>> fields{
        {"file", visible(given.files[0])},
        {"kind", std::string(name_of(heap.kind)) + " heap, format " + std::to_string(heap.version)},
        {"uuid", heap.uuid},
        {"address", address_text(heap.address) + (heap.position_independent ? ", or anywhere: it is position-independent" : "")},
        {"capacity", bytes_text(heap.capacity_bytes)},
        {"in use", bytes_text(heap.extent_bytes) + " as of the last checkpoint"},
        {"file size", bytes_text(heap.file_bytes) + ", on disk " + bytes_text(heap.allocated_bytes)},
        {"saved", "generation " + count_text(heap.generation) + (heap.serial != 0 ? ", up to transaction " + count_text(heap.serial) : "")},
        {"closed", heap.clean ? styled(Style::good, "cleanly") + (heap.written_at ? ", " + time_text(*heap.written_at) : std::string())
                              : styled(Style::warning, "no: it is in use, or its user crashed; opening it recovers")},
    };
    if (heap.role == ReplicaRole::follower) fields.emplace_back("replica", "a follower: it is only read, until it is promoted (taiyen promote)");
    if (heap.role == ReplicaRole::deposed)
        fields.emplace_back("replica", styled(Style::warning, "deposed: another file was promoted in its place; this one can be read, and copied"));
    if (!heap.clean && heap.written_at) fields.emplace_back("header", "written " + time_text(*heap.written_at));
    if (heap.last_restoration) fields.emplace_back("recovered", restoration_text(*heap.last_restoration));
    if (!heap.data_file.empty()) fields.emplace_back("second copy", visible(given.value("data-file").value_or(heap.data_file.string())));
    if (!heap.log_file.empty()) fields.emplace_back("log", visible(given.value("log-file").value_or(heap.log_file.string())));
    if (!heap.journal_file.empty()) fields.emplace_back("journal", visible(heap.journal_file.string()));
    print_fields(fields);
    return Exit::ok;
}

}  // namespace

Command info_command() {
    return {"info",
            "What the file says about itself",
            "Reads the header only: the heap is neither opened nor locked, so this works while a program uses it, and for a heap that is too damaged "
            "to open.",
            {"FILE"},
            {},
            "",
            run_info};
}

}  // namespace taiyen::tool
