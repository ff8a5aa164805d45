#include <taiyen/inspect/stats.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/log_heap.hpp"

namespace taiyen::tool {
namespace {

Exit run_stats(const Given& given) {
    if (is_of_log_heap(given)) return log_heap_stats(given);
    const ArchiveHeap heap(open_read_only, given.files[0], given.heap_options());
    const HeapStats stats = heap.stats();
    const Restoration restoration = heap.restoration();
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("capacity_bytes", stats.capacity_bytes)
            .member("extent_bytes", stats.extent_bytes)
            .member("live_bytes", stats.live_bytes)
            .member("live_blocks", stats.live_blocks)
            .member("free_bytes", stats.free_bytes)
            .member("released_bytes", stats.released_bytes)
            .member("metadata_bytes", stats.metadata_bytes)
            .member("largest_free_bytes", stats.largest_free_bytes)
            .member("file_bytes", stats.file_bytes)
            .member("allocated_bytes", stats.allocated_bytes)
            .member("generation", stats.generation)
            .member("serial", stats.serial)
            .member("log_capacity_bytes", stats.log_capacity_bytes)
            .member("page_tracker", stats.page_tracker)
            .member("read_ahead", stats.read_ahead)
            .member("clean", restoration.clean)
            .member("snapshots_replayed", restoration.snapshots_replayed)
            .member("transactions_replayed", restoration.transactions_replayed)
            .member("page_efficiency", stats.page_efficiency)
            .key("availability")
            .begin_array();
        for (const Availability& available : stats.availability)
            json.begin_object().member("bytes", available.bytes).member("share", available.share).end_object();
        json.end_array().end_object();
        print(json);
        return Exit::ok;
    }
    print_fields({
        {"live", bytes_text(stats.live_bytes) + " in " + counted(stats.live_blocks, "block")},
        {"free", bytes_text(stats.free_bytes) + ", the largest block that fits: " + bytes_text(stats.largest_free_bytes)},
        {"metadata", bytes_text(stats.metadata_bytes) + " (" + share_text(stats.metadata_bytes, stats.extent_bytes) + ")"},
        {"in use", bytes_text(stats.extent_bytes) + " of " + bytes_text(stats.capacity_bytes)},
        {"file size", bytes_text(stats.file_bytes) + ", on disk " + bytes_text(stats.allocated_bytes)},
        {"saved", "generation " + count_text(stats.generation)},
        {"recovery", restoration.clean ? "not needed"
                                       : styled(Style::warning, counted(restoration.snapshots_replayed, "save") + " and " +
                                                                    counted(restoration.transactions_replayed, "transaction") +
                                                                    " in the journal or log, not yet in the file")},
    });
    return Exit::ok;
}

}  // namespace

Command stats_command() {
    return {"stats",  "How much is live, free, on disk", "Counts the blocks of the heap; reads its metadata, about 2 % of it.", {"FILE"}, {}, "",
            run_stats};
}

}  // namespace taiyen::tool
