#pragma once
/// Events: what happens to the heaps of this process, told to a handler, for programs that log or export figures.
///
/// (E1) The handler runs on a thread of its own, which is there while a handler is installed; one event after the other, in the order in which they happened. No heap waits for it, none holds a lock for it, and no
///      durable step is under way because of it. It may call whatever the program may call there: stats() and more of a TransactionalHeap, of other heaps what the program's own lock allows.
/// (E2) Telling an event allocates nothing and never waits for the handler. 256 events wait for one that is slow; what comes then is counted in `Event::missed` of the next one.
/// (E3) Without a handler an event costs one relaxed load.
/// (E4) What happens within an opening or a creation, and in one that throws, is told by nobody: `recovered` and `opened` come when it is done.
/// Incidents, which somebody should look at, go to the report handler (taiyen/base/report.hpp). Heaps that are no files have no events.
/// Thread rule: safe.

#include <chrono>
#include <cstdint>
#include <string_view>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/store/restoration.hpp>

namespace taiyen {

enum class EventKind : std::uint8_t {
    recovered,  ///< an opening for writing had something to do: `restoration`
    opened,     ///< a heap was opened or made: `restoration`
    saved,      ///< a save is durable; of a heap with transactions: the files hold everything up to `serial`
    checkpointed,  ///< the files were brought up to the newest save, and the journal is free again. Large saves, and those of heaps with transactions, need none
    healed,    ///< `pages` were restored from the other copy
    poisoned,  ///< the heap refuses everything until it is opened again: `text` says why
    stalled,   ///< a transaction waited for `took`, at least `stall_told_min`, for room in the log, or for memory
    behind,    ///< Durability::async: a commit waited for `took`, because the device is behind by `loss_window`, or by 4 MiB
    closed,    ///< the heap was closed; `text`: what failed, if something did
    replication,  ///< what replication does is something else than before: `text` is "streaming", or "away", "fenced", "failed", "stopped", with ": " and why; `serial`
    based  ///< the replication target has a new base: `bytes` of all its frames; `serial`
};
/// "recovered".
TAIYEN_EXPORT std::string_view name_of(EventKind kind) noexcept;

/// Shorter waits are counted only (`TransactionStats::stalls`).
inline constexpr std::chrono::milliseconds stall_told_min{10};

/// What happened. What an event doesn't speak of is 0 or empty; views and pointers are good until the handler returns.
struct Event {
    EventKind kind = EventKind::opened;
    std::string_view heap{};                     ///< the heap's path, as the program gave it
    std::chrono::system_clock::time_point at{};  ///< when it happened
    std::chrono::microseconds took{0};           ///< recovered, opened, saved, checkpointed, closed, stalled, behind, based
    std::uint64_t generation = 0;                ///< opened, saved, checkpointed, closed: of the newest save
    std::uint64_t serial =
        0;  ///< opened, saved, closed: newest transaction that the files hold; stalled, behind: the one that waited (0: it had none yet);
            ///< replication, based: newest one that the target has
    std::uint64_t pages = 0;                   ///< saved, checkpointed: that were written; healed
    std::uint64_t bytes = 0;                   ///< the same in bytes; based
    std::string_view text{};                   ///< poisoned, closed, replication: at most 255 bytes
    const Restoration* restoration = nullptr;  ///< recovered, opened
    std::uint64_t missed = 0;                  ///< events before this one that were not told
};

using EventHandler = void (*)(const Event&) noexcept;

/// Installs `handler` (null: none) and returns the one that was installed before. That one is told everything that happened before the call, and has returned then; so call it with null before main() returns.
/// Not within a Transaction, which a handler that looks at the heap would wait for. Called by a handler it returns at once. After fork() the child has no handler until it installs one. Throws: Error{too_many_threads}, std::bad_alloc; nothing changed.
TAIYEN_EXPORT EventHandler set_event_handler(EventHandler handler);

}  // namespace taiyen
