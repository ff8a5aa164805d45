#include "crash/planted_bugs.hpp"

#include <stdexcept>
#include <string>

namespace taiyen::crash {

// Left out: two second lines of defence, which no crash alone gets past the first to reach. `skip_seed`: records of an earlier epoch or lap are told apart already; `release_before_data_header`:
// no record is written between the two headers. `rot_laundered` and `call_outcome_unchecked` need rot, or a procedure that changed: safeguards_test.cpp. Those of src/change have tests of their own (tests/change/planted): they lose captured bytes, not durable ones.
const std::vector<PlantedBug>& planted_bugs() {
    static const std::vector<PlantedBug> bugs{
        {Bug::skip_backing_sync, "skip_backing_sync", {"small-archive"}, "a checkpoint syncs before the header"},
        {Bug::skip_data_sync, "skip_data_sync", {"small-snapshot", "large-snapshot"}, "a checkpoint syncs before the header"},
        {Bug::header_before_sync, "header_before_sync", {"small-archive"}, "a checkpoint syncs before the header"},
        {Bug::files_before_record, "files_before_record", {"small-archive"}, "the record comes before the files"},
        {Bug::acknowledge_before_write, "acknowledge_before_write", {"small-archive"}, "acknowledged means written"},
        {Bug::acknowledge_before_write, "acknowledge_before_write", {"ring-1"}, "acknowledged means written"},
        {Bug::acknowledge_before_write, "acknowledge_before_write", {"group-log-1"}, "acknowledged means written"},
        {Bug::acknowledge_before_write, "acknowledge_before_write", {"txn-commit"}, "acknowledged means written"},
        {Bug::same_epoch_after_recovery, "same_epoch_after_recovery", {"recover-archive"}, "each recovery begins an epoch"},
        {Bug::ring_restarts_in_old_epoch, "ring_restarts_in_old_epoch", {"recover-archive"}, "each recovery begins an epoch"},
        {Bug::skip_stamp_check, "skip_stamp_check", {"small-archive"}, "a torn record is no record"},
        {Bug::skip_stamp_check, "skip_stamp_check", {"ring-1", "ring-2"}, "a torn record is no record"},
        {Bug::skip_stamp_check, "skip_stamp_check", {"group-log-1", "group-log-2", "group-log-3"}, "a torn record is no record"},
        {Bug::skip_stamp_check, "skip_stamp_check", {"txn-commit"}, "a torn record is no record"},
        {Bug::trust_filling_data, "trust_filling_data", {"large-snapshot"}, "a copy that is being filled is never trusted"},
        {Bug::whole_before_data_sync, "whole_before_data_sync", {"large-snapshot"}, "a large save: copy, sync, header, then the other copy"},
        {Bug::backing_before_data_commit, "backing_before_data_commit", {"large-snapshot"}, "a large save: copy, sync, header, then the other copy"},
        {Bug::copy_by_entries, "copy_by_entries", {"large-snapshot"}, "recovery writes unconditionally"},
        {Bug::stage_without_sync, "stage_without_sync", {"large-archive"}, "a stage is durable before it is spoken of"},
        {Bug::truncate_stage_early, "truncate_stage_early", {"large-archive"}, "a stage is kept until the files do without it"},
        {Bug::skip_directory_sync,
         "skip_directory_sync",
         {"create-archive", "create-snapshot"},
         "files are made unpublished, the heap's own name last"},
        {Bug::publish_backing_first, "publish_backing_first", {"create-snapshot"}, "files are made unpublished, the heap's own name last"},
        {Bug::punch_before_checkpoint,
         "punch_before_checkpoint",
         {"release-archive", "release-snapshot"},
         "freed pages become holes after the save that frees them"},
        {Bug::clean_before_checkpoint, "clean_before_checkpoint", {"small-archive"}, "clean is said last"},
        {Bug::remove_ring_before_clean, "remove_ring_before_clean", {"small-archive"}, "clean is said last"},
        {Bug::skip_table_write, "skip_table_write", {"create-archive"}, "checksums travel with their pages"},
        {Bug::same_epoch_after_replay, "same_epoch_after_replay", {"recover-log", "small-log"}, "each recovery begins an epoch"},
        {Bug::install_before_staged_header, "install_before_staged_header", {"small-log"}, "a stage is durable before it is spoken of"},
        {Bug::log_named_before_complete, "log_named_before_complete", {"attach-log"}, "files are made unpublished, the heap's own name last"},
        {Bug::clean_despite_log, "clean_despite_log", {"log-unsaved"}, "clean is said last"},
        {Bug::replay_first_record_only, "replay_first_record_only", {"small-archive"}, "all that was acknowledged is replayed"},
        {Bug::annex_without_table, "annex_without_table", {"annex-archive"}, "checksums travel with their pages"},
        {Bug::annex_after_data_sync, "annex_after_data_sync", {"annex-snapshot"}, "a checkpoint syncs before the header"},
        {Bug::annex_guessed_place, "annex_guessed_place", {"annex-archive"}, "a history travels with the save"},
        {Bug::annex_ends_before_record, "annex_ends_before_record", {"annex-ends-archive"}, "a history travels with the save"},
        {Bug::annex_ends_after_record, "annex_ends_after_record", {"annex-ends-archive"}, "a history travels with the save"},
        {Bug::stage_keeps_address, "stage_keeps_address", {"move-archive"}, "a heap's address and its pointers are one save's"},
        {Bug::copy_keeps_address, "copy_keeps_address", {"move-snapshot"}, "a heap's address and its pointers are one save's"},
        {Bug::refill_keeps_tail, "refill_keeps_tail", {"annex-large-snapshot"}, "a copy that is being filled is never trusted"},
        {Bug::detach_in_memory_only, "detach_in_memory_only", {"detach"}, "attached files are named durably"},
        {Bug::commit_before_durable, "commit_before_durable", {"txn-commit"}, "acknowledged means written"},
        {Bug::group_before_write, "group_before_write", {"txn-commit"}, "acknowledged means written"},
        {Bug::group_before_write, "group_before_write", {"group-log-1", "group-log-2"}, "acknowledged means written"},
        {Bug::append_one_late, "append_one_late", {"txn-commit"}, "acknowledged means written"},
        {Bug::torn_group_accepted, "torn_group_accepted", {"txn-commit", "txn-shared"}, "a torn record is no record"},
        {Bug::relaxed_without_save,
         "relaxed_without_save",
         {"txn-relaxed", "txn-relaxed-data"},
         "the log goes on only behind a save of what was loaded relaxed"},
        {Bug::large_before_save, "large_before_save", {"txn-large", "txn-large-data"}, "a transaction larger than the log waits for its save"},
        {Bug::snapshot_claims_next, "snapshot_claims_next", {"txn-full"}, "replay begins exactly where the files end"},
        {Bug::release_before_snapshot, "release_before_snapshot", {"txn-full", "txn-full-data"}, "the log keeps what a file still needs"},
        {Bug::stale_log_start, "stale_log_start", {"txn-full"}, "replay begins exactly where the files end"},
        {Bug::replay_skips_first_group, "replay_skips_first_group", {"txn-commit"}, "replay begins exactly where the files end"},
        {Bug::same_epoch_after_replay, "same_epoch_after_replay", {"txn-recover", "txn-recover-data"}, "each recovery begins an epoch"},
        {Bug::stage_without_sync, "stage_without_sync", {"txn-snapshot"}, "a stage is durable before it is spoken of"},
        {Bug::truncate_stage_early, "truncate_stage_early", {"txn-large"}, "a stage is kept until the files do without it"},
        {Bug::install_before_staged_header, "install_before_staged_header", {"txn-snapshot"}, "a stage is durable before it is spoken of"},
        {Bug::skip_backing_sync, "skip_backing_sync", {"txn-snapshot"}, "a checkpoint syncs before the header"},
        {Bug::whole_before_data_sync, "whole_before_data_sync", {"txn-snapshot-data"}, "a large save: copy, sync, header, then the other copy"},
        {Bug::backing_before_data_commit,
         "backing_before_data_commit",
         {"txn-snapshot-data"},
         "a large save: copy, sync, header, then the other copy"},
        {Bug::trust_filling_data, "trust_filling_data", {"txn-snapshot-data"}, "a copy that is being filled is never trusted"},
        {Bug::log_named_before_complete, "log_named_before_complete", {"txn-attach-archive"}, "files are made unpublished, the heap's own name last"},
        {Bug::skip_directory_sync, "skip_directory_sync", {"txn-create"}, "files are made unpublished, the heap's own name last"},
        {Bug::publish_backing_first, "publish_backing_first", {"txn-create"}, "files are made unpublished, the heap's own name last"},
        {Bug::cursor_outside_record, "cursor_outside_record", {"undo-1"}, "a history travels with the save", nullptr, true},
        {Bug::drop_implicit_step, "drop_implicit_step", {"undo-1"}, "a history misses nothing", nullptr, true},
        {Bug::held_unsaid, "held_unsaid", {"txn-held"}, "what an object outside has taken along is nobody's after a crash"},
        {Bug::undo_moves_cursor_unlogged, "undo_moves_cursor_unlogged", {"txn-undo"}, "a history travels with the save"},
        {Bug::history_outlives_its_bytes, "history_outlives_its_bytes", {"txn-undo-unattached"}, "a history misses nothing"},
        {Bug::other_directories_unsynced,
         "other_directories_unsynced",
         {"apart-create-snapshot"},
         "files are made unpublished, the heap's own name last"},
        {Bug::other_directories_unsynced, "other_directories_unsynced", {"txn-apart-create"}, "files are made unpublished, the heap's own name last"},
        {Bug::other_directories_unsynced, "other_directories_unsynced", {"apart-attach"}, "attached files are named durably"},
        {Bug::save_within_scope, "save_within_scope", {"undo-1"}, "within a scope of its own nobody saves", nullptr, true},
        {Bug::rollback_allocates, "rollback_allocates", {"txn-commit"}, "rollback allocates nothing", "memory"},
        {Bug::drop_without_look, "drop_without_look", {"txn-give-back"}, "live pages are dropped only where the files hold the same", nullptr, true},
        {Bug::save_older_than_given_back,
         "save_older_than_given_back",
         {"txn-swing"},
         "live pages are dropped only where the files hold the same",
         nullptr,
         true},
        {Bug::wake_before_poison, "wake_before_poison", {"txn-commit"}, "a failed write poisons before anybody wakes", "short-write"},
    };
    return bugs;
}

Bug planted_bug_of(std::string_view name) {
    for (const PlantedBug& bug : planted_bugs()) {
        if (name == bug.name) return bug.bug;
    }
    throw std::invalid_argument("no planted bug has the name '" + std::string(name) + "'");
}

}  // namespace taiyen::crash
