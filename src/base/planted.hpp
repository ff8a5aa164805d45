#pragma once
/// Planted bugs: the tests of crashes, capture and threads prove that they can see by removing one safeguard at a time.
///
/// Compiled in with TAIYEN_PLANTED_BUGS only (a test build of the library); elsewhere `planted` is a constant false, `planted_step` does nothing, and both leave no code.
/// Thread rule: change `planted_bug` and `at_planted_step` while no other thread is in the library.

#include <atomic>
#include <cstdint>
#include <string_view>

namespace taiyen {

enum class Bug {
    none,
    skip_backing_sync,             ///< checkpoint: the backing file's sync is left out
    skip_data_sync,                ///< checkpoint: the data file's sync is left out
    header_before_sync,            ///< checkpoint: the header is written before pages are synced
    release_before_data_header,    ///< ring tail by one file only
    files_before_record,           ///< pages reach the files before their record is durable
    acknowledge_before_write,      ///< a record is acknowledged without a durable write
    same_epoch_after_recovery,     ///< recovery goes on in the old epoch
    ring_restarts_in_old_epoch,    ///< recovery rewinds the ring without a new epoch
    skip_seed,                     ///< a record's checksum does not depend on its predecessor
    skip_stamp_check,              ///< torn sectors are not noticed by their stamps
    trust_filling_data,            ///< recovery trusts a data file that was being filled
    whole_before_data_sync,        ///< large save: the data file is called whole before its sync
    backing_before_data_commit,    ///< large save: the backing file is written before the data file's commit point
    copy_by_entries,               ///< recovery copies only pages whose table entries differ (compare-and-skip)
    stage_without_sync,            ///< large save without a data file: the stage is not synced before its record
    truncate_stage_early,          ///< large save: the stage is given up before the backing file's header
    skip_directory_sync,           ///< creation: names are not made durable
    publish_backing_first,         ///< creation: the backing file gets its name before data file and journal are durable
    punch_before_checkpoint,       ///< freed pages become holes before the save that frees them is durable
    clean_before_checkpoint,       ///< close: the header says clean before the pages are in the files
    remove_ring_before_clean,      ///< close: the journal is removed before the header says clean
    skip_table_write,              ///< checkpoint: the checksum table is not written
    same_epoch_after_replay,       ///< recovery of a transaction log goes on in the epoch that it replayed
    install_before_staged_header,  ///< large save without a data file: the pages reach the heap before the header that speaks of the stage
    log_named_before_complete,     ///< attaching a transaction log: the header names it before it is complete and durable
    clean_despite_log,             ///< close: the header says clean although the log holds more than the files
    replay_first_record_only,      ///< recovery stops after one record
    restored_named_late,           ///< the heap's own file, restored from the data file, gets its name when the ring's saves are installed in both
    blank_backing_unmarked,  ///< a heap's own file that has zeros in the place of its headers is filled from the data file without being marked as a heap's
    copy_keeps_capacity,      ///< a file that is brought up to date keeps its old capacity
    stage_keeps_capacity,     ///< recovery installs a staged save and keeps the old capacity
    data_named_before_sync,   ///< attaching a data file: the heap names it before its pages are synced
    detached_unmarked,        ///< detaching a data file: it isn't made an orphan before the heap forgets it
    removed_before_detached,  ///< detaching a data file: it is removed before the heap forgets it
    log_replaced_unsaved,     ///< replacing a log: what stands in the old one alone isn't saved before
    log_forgotten_before_checkpoint,  ///< removing the log of another kind of heap: headers are written that free the journal before the files have what stands in it
    log_removed_before_header,   ///< replacing a log: the old one is removed before the header says that there is none
    cut_backing_is_believed,     ///< the header of a heap's own file that ends early goes on counting while it is filled from the data file
    blank_data_unmarked,         ///< a data file that has no header any more is refilled without being marked as a heap's
    cut_data_is_believed,        ///< the header of a data file that ends early goes on counting while it is refilled from the heap's own file
    detach_in_memory_only,       ///< opening without the lost data file: the header goes on naming it
    drop_implicit_step,          ///< undo: what was stored outside scopes becomes no step
    cursor_outside_record,       ///< undo: the history's cursor does not travel with the save
    annex_without_table,         ///< recovery installs pages of the annex without their checksums
    annex_after_data_sync,       ///< checkpoint: the data file gets its pages of the annex after its sync
    annex_guessed_place,         ///< recovery puts chunks of the annex where the header lets it expect them, not where the record says
    annex_ends_before_record,    ///< an annex that nobody opened is ended in the files, before the record that ends it
    history_outlives_its_bytes,  ///< transactions of a heap whose history nobody attached leave that history in the files
    undo_moves_cursor_unlogged,  ///< undo and redo on a transactional heap log the bytes, not where the history stands
    resized_history_unlogged,    ///< resizing a history on a transactional heap logs where its steps lie now, not the steps
    stage_keeps_address,         ///< recovery of a staged save that moves the heap installs its pages and keeps the address
    copy_keeps_address,          ///< recovery of a save that moves the heap copies its pages from the data file and keeps the address
    annex_ends_after_record,     ///< an annex that nobody opened is ended by a record of its own
    lost_data_leaves_tail,       ///< a heap that goes on without its data file keeps what lies behind its extents
    refill_keeps_tail,           ///< a refilled data file keeps what lies behind its extents
    install_keeps_tail,          ///< recovery of saves that grew the heap keeps what lay behind its extents
    copy_keeps_tail,             ///< recovery from the other file keeps what lies behind the extents where that file has nothing new
    replay_keeps_tail,           ///< recovery of transactions that grew the heap keeps what lay behind its extents
    cleared_without_sync,        ///< what recovery cleared behind the data file's extents isn't synced before a header holds it
    skip_hot_page,               ///< pages mode: a page that was open before the scope is not compared
    skip_page_end,               ///< pages mode: the last line of a page is not compared
    stale_twin,                  ///< pages mode: a cut doesn't bring twins up to date
    hook_misses_last_byte,       ///< stores mode: the hook for stores of any size leaves out their last byte
    lines_stay_kept,             ///< stores and declared mode: a line that was kept once is not kept again after a cut
    group_before_write,          ///< group commit: a group counts as durable when its write begins
    wake_before_poison,          ///< group commit: waiters wake as if their group were durable before a failed write poisons
    commit_before_durable,       ///< transactions: a commit returns before its group is durable
    append_one_late,           ///< transactions: the writer lock is given up before the append, and the bytes reach the log with the next transaction
    relaxed_without_save,      ///< after relaxed loading the log goes on, though the files lack what was loaded
    uncaptured_in_log,         ///< a transaction that nobody captured is appended to the log behind relaxed loading, as if it had changed nothing
    large_before_save,         ///< a transaction larger than the log is told durable before the save that holds it
    snapshot_claims_next,      ///< background snapshot: it says that it contains one transaction more than it does
    release_before_snapshot,   ///< background snapshot: the log's room is given back before the header that does without it is durable
    stale_log_start,           ///< background snapshot: its header keeps the place where the log began before
    torn_group_accepted,       ///< a torn record of the log counts as whole: neither stamps nor checksum are looked at
    replay_skips_first_group,  ///< recovery begins with the second group of the log
    other_directories_unsynced,  ///< creation and attaching: only the directory of the heap's own file is synced
    rollback_allocates,          ///< rolling back needs memory
    inner_rollback_logged,       ///< an inner transaction's rollback takes its bytes back, and leaves them in what the outer one logs
    save_within_scope,           ///< undo: a save goes through while a scope is open
    call_outcome_unchecked,      ///< replay takes whatever bytes a procedure gives
    rot_laundered,               ///< a changed page gets a fresh checksum although the page below it rotted
    scrub_without_sync,          ///< a page that a scrub restored is told so before it is durable
    scrub_below_stores,          ///< a scrub restores a page of the heap's file while the program may be storing on top of the rotten one
    metadata_unproven,           ///< the block engine believes whatever its metadata says
    replay_unproven,             ///< recovery applies the log to pages that nobody has proven
    change_unproven,             ///< capture keeps the bytes before of pages that nobody has proven
    save_without_blocks,         ///< a save is told durable before the files have disk blocks for it
    drop_without_look,           ///< after a background snapshot: private copies are dropped whether the files hold the same or not
    save_older_than_given_back,  ///< background snapshot: its point is the newest durable transaction, not the newest one
    transfer_named_before_sync,  ///< compressing into a file: it gets its name, and with it the place of the one before, before its bytes are durable
    expanded_named_before_sync,  ///< expanding: the heap gets its name before its pages are durable
    kept_copy_without_sync,      ///< last resort: the old files' copies are not synced before the files change
    kept_names_unsynced,         ///< last resort: the names of the old files' copies are not durable before the files change
    copy_named_before_sync,      ///< a copy of the heap gets its name before it is synced
    notes_behind_cut,            ///< transactions: what was noted of types is written into memory, but not into the log
    migrated_in_two_steps,       ///< migration: names lead to the new objects before pointers do, and before old blocks are free
    compact_pointers_unheard,    ///< compacting: pointers are rewritten without a word to the capture
    engine_writes_unheard,       ///< stores and declared mode: what the engine announces is not kept
    next_not_woken,              ///< check-outs: who was woken in vain wakes no other one
    sleep_without_look,          ///< check-outs: a word is not looked at again before its waiter sleeps
    passed_over_for_ever,        ///< check-outs: a request that was passed over never goes first
    kept_in_part,                ///< check-outs: what was taken before one that is taken is not given back
    entered_unseen,              ///< check-outs: a writer looks whether there is a pause only before it enters
    loaded_twice,                ///< check-outs: an object is loaded before its id is claimed
    failure_untold,              ///< check-outs: who waits for a load doesn't learn that it failed
    removed_while_held,          ///< check-outs: removing doesn't wait until nobody has the object
    ids_not_compared,            ///< check-outs: an entry that serves another id now is taken for that of the old one
    stands_for_other_id,         ///< check-outs: a request stands in the queue of an entry that serves another id now
    stop_wakes_nobody,           ///< check-outs: who waits sleeps on when the manager is stopped
    pause_loses_order,           ///< check-outs: those whom a pause held up go on from the last one to the first
    readers_pass_writers,        ///< check-outs: readers join others although a writer waits
    store_trusts_child,          ///< ordered stores: a search doesn't look whether the parent has changed when it has the child
    store_trusts_value,          ///< ordered stores: a value counts though its node has changed meanwhile
    store_trusts_copy,           ///< ordered stores: so does a cursor's copy of a leaf
    store_locks_any_version,     ///< ordered stores: a writer locks a node that isn't any more as it was when the place was found
    store_keeps_version,         ///< ordered stores: what a writer changed has the same version afterwards
    store_enters_no_epoch,       ///< ordered stores: memory is freed under readers
    frame_chain_unchecked,       ///< replication: a reader doesn't compare a frame with the one before it
    frame_named_before_sync,     ///< replication into a directory: a frame gets its name before its bytes are durable
    frame_name_unsynced,         ///< replication into a directory: a frame counts as there before its name is durable
    trimmed_before_said,         ///< replication into a directory: frames go before what says so is durable
    refused_appended_anyway,     ///< replication: whose frame is refused appends it at the new end
    gap_shipped_over,            ///< replication: transactions that the log lacks are passed over
    base_without_hold,           ///< replication: the last pages of a base are read while saves go on
    delta_from_newer,            ///< replication: a partial base has the pages that are newer than the covered save, not than the base under it
    attached_unmarked,           ///< replication: the heap's header doesn't say that it was attached
    attached_before_marked,      ///< replication: the epoch is appended before the heap's header says that it is attached
    reopening_unmarked,          ///< replication: opening an attached heap leaves no trace
    restored_named_early,        ///< restoring: the heap gets its name before its transactions are in it
    calls_replicated,            ///< replication: the log of a replicated heap has calls of procedures, not what they changed
    deposed_goes_on,             ///< replication: a heap whose place another file has taken commits on
    elsewhere_kept,              ///< following: a heap that is open elsewhere than at its address keeps that
    follower_unmarked,           ///< following: the file doesn't say that it is a follower's
    follower_gives_back,         ///< following: closing gives free pages back, as in a heap that is changed
    follower_passes_bases,       ///< following: pages that changed without a transaction aren't looked at
    followed_before_durable,     ///< following: what is shown isn't durable yet
    promoted_before_end,         ///< promoting: the place is taken before everything that is there was followed
    commit_unconfirmed,          ///< replication that commits wait for: one returns before the target has it
    begun_while_behind,          ///< replication that the log waits for: transactions go on when the log gives up what wasn't sent
    cut_one_by_one,              ///< a group's cut: the heaps are looked at one after the other
    cut_before_members,          ///< a group's cut: it is there before its transactions are
    cut_without_relaxed,         ///< a group's cut: what is loaded relaxed, and stands in no log, is left out
    kept_not_carried,            ///< trimming: the frame that says what marks need goes, too
    marked_before_kept,          ///< a group's mark: it is there before the targets of its heaps keep what it needs
    cut_within_gap,              ///< a group's cut: of a transaction that came as pages with later ones
    deposed_moved_first,         ///< following: a deposed heap gets another name before what is beside it
    promoted_unfenced,           ///< promoting: the file may be changed before the place is taken
    log_heap_named_before_its_ring,  ///< log heap, creation: the heap gets its name before that of its ring is durable
    log_heap_acknowledged_early,     ///< log heap: an operation returns before its record is durable
    log_heap_values_unsynced,        ///< log heap: the ring gives room back before segments are synced
    log_heap_large_value_unsynced,   ///< log heap: a value in a run of segments is acknowledged before it is synced
    log_heap_image_in_place,         ///< log heap: an image of the index is written over the one in force
    log_heap_closed_without_image,   ///< log heap: closing writes no image of the index although it knows less than segments hold
    log_heap_cells_unproven,         ///< log heap: cells of an image are believed whatever their checksum says
    log_heap_image_unsynced,         ///< log heap: a header names an image of the index that isn't synced
    log_heap_tail_is_freed,          ///< log heap: a segment is used again although recovery reads it
    log_heap_victim_freed_at_once,   ///< log heap: a segment is used again before a header names where its values went
    log_heap_cold_segment_unnamed,   ///< log heap: a header leaves out the segment that cleaning fills
    log_heap_last_read_counts,       ///< log heap, recovery: of several records of a value the last one read counts, not the newest
    log_heap_batch_read_in_part,     ///< log heap, recovery: of a batch the first operation alone is found
    log_heap_moved_over_newer,       ///< log heap, cleaning: a copy replaces also what was put while it was made
    log_heap_ahead_unwaited,         ///< log heap: a header names records that the ring doesn't have durably yet
    log_heap_image_unwaited,         ///< log heap: an image shows operations that the ring doesn't have durably yet
    log_heap_image_ends_late,        ///< log heap: what is put while an image is written counts as part of it
    log_heap_ids_given_twice,        ///< log heap: headers set no ids aside
    log_heap_same_epoch,             ///< log heap, recovery: the ring begins anew in its old life
};

#ifdef TAIYEN_PLANTED_BUGS
/// The bug that is switched on in this process.
inline std::atomic<Bug> planted_bug = Bug::none;
inline bool planted(Bug bug) { return planted_bug.load(std::memory_order_relaxed) == bug; }
/// What a thread does between two steps of an algorithm that runs in several: tests hold it up there. Null: nothing.
inline std::atomic<void (*)() noexcept> at_planted_step = nullptr;
inline void planted_step() noexcept {
    if (const auto call = at_planted_step.load(std::memory_order_relaxed)) call();
}
/// If not 0, `random_uuid` and `random_u64` follow from it instead of asking the system: a crash state comes again from its id alone.
inline std::uint64_t repeatable_random = 0;
#else
constexpr bool planted(Bug) { return false; }
constexpr void planted_step() noexcept {}
#endif

}  // namespace taiyen
