// `taiyen replicate`, `taiyen restore` and `taiyen replicas`: a heap and the directory or stream that it is replicated into.

#include <memory>
#include <optional>
#include <string>

#include <taiyen/replicate/replication.hpp>
#include <taiyen/replicate/restore.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/moving.hpp"
#include "tool/replicated_group.hpp"
#include "tool/report_text.hpp"
#include "tool/target.hpp"

namespace taiyen::tool {
namespace {

Exit run_replicate(const Given& given) {
    const auto target = open_target(given, given.files[1]);
    TransactionalHeap heap(open_only, given.files[0], given.heap_options());
    ReplicationStatus status;
    {
        const ProgressLine line("replicating");
        ReplicationOptions how;
        how.codec = chosen<Codec>(given, "codec", {{"lz4", Codec::lz4}, {"zstd", Codec::zstd}, {"none", Codec::none}}, Codec::lz4);
        Replication replication(heap, target, how);
        if (given.has("forget-marks") && !replication.forget_marks(std::chrono::seconds(60)))
            throw Error(errc::unconfirmed, given.files[1], "the target has not said that it forgets the marks: " + replication.status().last_error);
        if (given.has("base")) replication.make_base();
        replication.stop();
        status = replication.status();
    }
    heap.close();
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[0])
            .member("target", status.target)
            .member("transaction", status.replicated.value)
            .member("frames", status.frames)
            .member("bases", status.bases)
            .member("bytes_sent", status.bytes_sent)
            .end_object();
        print(json);
        return Exit::ok;
    }
    print(styled(Style::good, "replicated") + ": " + visible(given.files[1]) + " has everything up to transaction " +
          count_text(status.replicated.value) + ", in " + counted(status.frames, "frame") + "\n");
    return Exit::ok;
}

/// Throws: Error{invalid_argument}.
void refuse_companions(const Given& given) {
    if (given.has("data-file") || given.has("log-file"))
        throw Error(errc::invalid_argument,
                    "--data-file and --log-file say where a heap's files are; this command has to do with frames, and makes one file");
}

Exit run_restore(const Given& given) {
    refuse_companions(given);
    if (given.has("group") || given.has("mark")) return restore_group_of(given);
    const auto opened = open_target(given, given.files[0]);
    ReplicationTarget& target = *opened;
    RestoreOptions options;
    if (given.has("serial")) options.serial = Serial{given.number("serial", 0)};
    if (const auto at = given.value("at")) options.at = time_given(*at);
    Restored restored;
    {
        ProgressLine line("restoring");
        options.progress = line.progress();
        restored = restore(target, given.files[1], options);
    }
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[1])
            .member("transaction", restored.serial.value)
            .member("replayed", restored.transactions)
            .member("written_at", time_text(restored.written_at))
            .member("frames_read", restored.frames)
            .end_object();
        print(json);
        return Exit::ok;
    }
    print(styled(Style::good, "restored") + ": " + visible(given.files[1]) + ", as of transaction " + count_text(restored.serial.value) + ", " +
          time_text(restored.written_at) + "\n");
    return Exit::ok;
}

Exit run_replicas(const Given& given) {
    refuse_companions(given);
    if (given.has("group")) return show_group(given);
    const auto opened = open_target(given, given.files[0]);
    ReplicationTarget& target = *opened;
    std::optional<ReplicaInfo> found;
    std::string damage;
    const bool verifies = given.has("verify");
    try {
        found = replica_info(target);
    } catch (const Error& error) {
        if (!verifies || error.code() != errc::corrupt) throw;
        if (given.has("json")) {
            JsonWriter json;
            json.begin_object().member("target", given.files[0]).member("damage", error.what()).end_object();
            print(json);
        } else {
            print(styled(Style::bad, "damaged") + ": " + visible(error.what()) + "\n");
        }
        return Exit::found;
    }
    if (!found) throw Error(errc::not_found, given.files[0], "nothing was replicated there");
    if (verifies) {
        ProgressLine line("verifying");
        try {
            (void)replica_info(target, true, line.progress());
        } catch (const Error& error) {
            if (error.code() != errc::corrupt && error.code() != errc::not_found) throw;
            damage = error.what();
        }
    }
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("target", given.files[0])
            .member("heap", found->heap)
            .member("host", found->host)
            .member("epoch", found->epoch)
            .member("groups_kept", static_cast<std::uint64_t>(found->groups_kept))
            .member("kept_from", found->kept_from.value)
            .member("first_frame", found->first_frame)
            .member("last_frame", found->last_frame)
            .member("transaction", found->newest.value)
            .member("written_at", time_text(found->written_at));
        if (verifies) json.member("damage", damage);
        json.key("bases").begin_array();
        for (const ReplicaBase& base : found->bases) {
            json.begin_object()
                .member("frame", base.frame)
                .member("transaction", base.serial.value)
                .member("full", base.is_full)
                .member("written_at", time_text(base.written_at))
                .end_object();
        }
        json.end_array().end_object();
        print(json);
    } else {
        std::vector<std::pair<std::string, std::string>> fields{
            {"heap", found->heap},
            {"owner", visible(found->host) + ", epoch " + count_text(found->epoch)},
            {"frames", count_text(found->first_frame) + " to " + count_text(found->last_frame)},
            {"newest", "transaction " + count_text(found->newest.value) + ", " + time_text(found->written_at)}};
        if (found->groups_kept != 0)
            fields.push_back(
                {"marks", "of " + counted(found->groups_kept, "group") + " keep transaction " + count_text(found->kept_from.value) + " and later"});
        print_fields(fields);
        print("\n");
        print_table(found->bases, {{"BASE", Align::right, [](const ReplicaBase& base) { return count_text(base.frame); }},
                                   {"TRANSACTION", Align::right, [](const ReplicaBase& base) { return count_text(base.serial.value); }},
                                   {"PAGES", Align::left, [](const ReplicaBase& base) { return std::string(base.is_full ? "all" : "changed ones"); }},
                                   {"WRITTEN", Align::left, [](const ReplicaBase& base) { return time_text(base.written_at); }}});
        if (verifies)
            print(damage.empty() ? styled(Style::good, "sound") + ": every frame continues the one before\n"
                                 : styled(Style::bad, "damaged") + ": " + visible(damage) + "\n");
    }
    return damage.empty() ? Exit::ok : Exit::found;
}

}  // namespace

Command replicate_command() {
    return {
        "replicate",
        "Brings a directory or stream of frames up to date with a heap that nobody has open",
        "Opens the heap for writing, with transactions, as its program would, and sends what TARGET lacks: the first time all pages, later those "
        "that were saved since. TARGET is a directory that is there already, or the stream of a NATS server, nats://HOST:PORT/NAME; it is no other "
        "heap's. A program that has the heap open replicates it itself (taiyen::Replication).",
        {"FILE", "TARGET"},
        with_target_options({{"base", "", "send all pages, so that restoring needs nothing older"},
                             {"forget-marks", "", "keep nothing more for groups' marks, such as of a group whose target is lost"},
                             {"codec", "CODEC", "lz4 (the default), zstd or none: makes frames smaller"}}),
        "",
        run_replicate};
}

Command restore_command() {
    return {"restore",
            "Makes a heap out of what was replicated into a directory or stream",
            "The heap is as of the newest transaction there, or as of an earlier one; it has the uuid and the address that it had. TARGET (a "
            "directory, or "
            "nats://HOST:PORT/NAME) is only read, every byte is checked, and OUT gets its name when it is complete; nothing is ever replaced.",
            {"TARGET", "OUT"},
            with_target_options(
                {{"serial", "N", "exactly as of that transaction"},
                 {"at", "TIME", "nothing that was committed later, such as '2026-03-01 12:00:00 UTC'"},
                 {"group", "", "TARGET has a group's cuts, the targets of its heaps lie beside it under their names; OUT is a folder that is there"},
                 {"mark", "NAME", "of a group: the cut of that name"}}),
            "",
            run_restore,
            "the frames"};
}

Command replicas_command() {
    return {
        "replicas",
        "What was replicated into a directory or stream",
        "Names the heap, the newest transaction, and the bases from which it can be restored: as of each transaction from a base's on. TARGET is a "
        "directory, or nats://HOST:PORT/NAME.",
        {"TARGET"},
        with_target_options({{"verify", "", "read every frame, and compare it with the one before"},
                             {"group", "", "TARGET has a group's cuts: tell the newest one, and those that have names"}}),
        "a frame is damaged or missing",
        run_replicas,
        "the frames"};
}

}  // namespace taiyen::tool
