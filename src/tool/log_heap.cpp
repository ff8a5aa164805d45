#include "tool/log_heap.hpp"

#include <taiyen/inspect/repair.hpp>
#include <taiyen/logheap/log_parameters.hpp>

#include "base/sentence.hpp"
#include "tool/console.hpp"
#include "tool/report_text.hpp"

namespace taiyen::tool {
namespace {

std::string closed_text(bool is_clean) {
    return is_clean ? styled(Style::good, "cleanly") : styled(Style::warning, "no: it is in use, or its user crashed; opening it recovers");
}

}  // namespace

bool is_of_log_heap(const Given& given) {
    try {
        return is_log_heap(given.files[0]);
    } catch (const Error&) {
        return false;
    }
}

LogHeap open_log_heap(const Given& given) {
    LogHeapOptions options;
    options.log_file = given.heap_options().log_file;
    return {open_read_only, given.files[0], options};
}

Exit log_heap_info(const Given& given) {
    const LogHeapParameters heap = read_log_heap_parameters(given.files[0]);
    const std::string ring = given.value("log-file").value_or(heap.log_file.string());
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("format_version", heap.version)
            .member("kind", "log")
            .member("uuid", heap.uuid)
            .member("capacity_bytes", heap.capacity())
            .member("segment_bytes", heap.segment_bytes)
            .member("segments", heap.segments)
            .member("log_capacity_bytes", heap.log_capacity)
            .member("file_bytes", heap.file_bytes)
            .member("allocated_bytes", heap.allocated_bytes)
            .member("serial", heap.serial)
            .member("values", heap.values)
            .member("image_bytes", heap.image_bytes)
            .member("tail_segments", heap.tail_segments)
            .member("clean", heap.clean)
            .member("log_file", ring)
            .end_object();
        print(json);
        return Exit::ok;
    }
    const std::string later =
        heap.clean ? "" : "; " + counted(heap.tail_segments, "segment") + " hold what the image doesn't know, and the ring what came later";
    print_fields({
        {"file", visible(given.files[0])},
        {"kind", "log heap, format " + std::to_string(heap.version)},
        {"uuid", heap.uuid},
        {"capacity", bytes_text(heap.capacity()) + " in " + counted(heap.segments, "segment") + " of " + bytes_text(heap.segment_bytes)},
        {"values", count_text(heap.values) + " as of the last image of the index, " + bytes_text(heap.image_bytes)},
        {"file size", bytes_text(heap.file_bytes) + ", on disk " + bytes_text(heap.allocated_bytes)},
        {"saved", "up to operation " + count_text(heap.serial) + later},
        {"closed", closed_text(heap.clean)},
        {"ring", visible(ring) + ", " + bytes_text(heap.log_capacity)},
    });
    return Exit::ok;
}

Exit log_heap_stats(const Given& given) {
    const LogHeap heap = open_log_heap(given);
    const LogHeapStats stats = heap.stats();
    const LogRestoration restoration = heap.restoration();
    const std::uint64_t used = (stats.segments - stats.free_segments) * stats.segment_bytes;
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("capacity_bytes", stats.segments * stats.segment_bytes)
            .member("segment_bytes", stats.segment_bytes)
            .member("segments", stats.segments)
            .member("free_segments", stats.free_segments)
            .member("values", stats.values)
            .member("live_bytes", stats.live_bytes)
            .member("serial", stats.appended.value)
            .member("clean", restoration.was_clean)
            .member("records_in_the_tail", restoration.from_segments)
            .member("operations_in_the_ring", restoration.from_ring)
            .end_object();
        print(json);
        return Exit::ok;
    }
    print_fields({
        {"live", bytes_text(stats.live_bytes) + " in " + counted(stats.values, "value")},
        {"in use", counted(stats.segments - stats.free_segments, "segment") + " of " + count_text(stats.segments) + ", " +
                       share_text(stats.live_bytes, used) + " of them live"},
        {"newest", "operation " + count_text(stats.appended.value)},
        {"recovery", restoration.was_clean ? "not needed"
                                           : styled(Style::warning, counted(restoration.from_segments, "record") + " in the tail and " +
                                                                        counted(restoration.from_ring, "operation") +
                                                                        " in the ring, which the image of the index doesn't know yet")},
    });
    return Exit::ok;
}

Exit log_heap_verify(const Given& given) {
    if (given.value("level").value_or("everything") != "everything" || given.has("sample") || given.has("seed"))
        throw Error(errc::invalid_argument, given.files[0], "of a log heap every value is read; leave --level, --sample and --seed out");
    Report report;
    LogVerification found;
    try {
        found = open_log_heap(given).verify();
        for (const LogVerification::Damaged& value : found.damaged)
            report.findings.push_back({Severity::damage, given.files[0], value.offset,
                                       "the value " + std::to_string(static_cast<std::uint64_t>(value.id)) +
                                           " is damaged; restore the file from a copy, or remove the value"});
    } catch (const Error& error) {
        if (!is_damage(error)) throw;
        report.findings.push_back({Severity::damage, error.path(), error.offset() == Error::no_offset ? 0 : error.offset(), sentence_of(error)});
    }
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("file", given.files[0]).member("values_checked", found.values).member("bytes_checked", found.bytes);
        json.member("ok", report.ok());
        add_findings(json, report);
        json.end_object();
        print(json);
    } else {
        print_findings(given, report);
        const std::string checked = counted(found.values, "value") + ", " + bytes_text(found.bytes) + ", checked";
        print(report.ok() ? styled(Style::good, "sound") + ": " + checked + "\n"
                          : styled(Style::bad, "damaged") + ": " + counted(report.findings.size(), "place") + "; " + checked + "\n");
    }
    return report.ok() ? Exit::ok : Exit::found;
}

}  // namespace taiyen::tool
