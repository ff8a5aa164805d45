#pragma once
/// Restoration: what an opening found, and what it did about it.
///
/// The last one that had something to do stands in the heap's headers: read_parameters() and `taiyen info` tell it after the fact.
/// Thread rule: a value.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// What an opening found. Where more than one holds, the one that is named last, but for `unknown`.
enum class OpeningCause : std::uint32_t {
    created,           ///< nothing: the heap was made
    closed,            ///< its last user closed it
    damaged_header,    ///< the same, and one of the two headers of a file was damaged
    crash,             ///< its last user ended without closing it, or the system did
    interrupted_save,  ///< the same, and its files stood where a save, a checkpoint or a recovery leaves them when it is cut short
    damaged_file,      ///< one of its two files was cut short, or an older copy, or both of its headers were damaged
    lost_file,         ///< one of its two files was missing, empty or zero
    last_resort,       ///< its journal or log was given up, because somebody asked for that (`last_resort`)
    unknown            ///< a newer library wrote down something that this one doesn't know
};
/// "crash".
TAIYEN_EXPORT std::string_view name_of(OpeningCause cause) noexcept;

/// What had to be done to open the heap. A reader does none of it to the files, only to what it sees.
struct Restoration {
    OpeningCause cause = OpeningCause::created;
    bool read_only = false;                ///< a reader's
    bool clean = true;                     ///< the last user closed it
    std::uint64_t snapshots_replayed = 0;  ///< ring records newer than the files
    std::uint64_t transactions_replayed = 0;
    std::uint64_t records_cut = 0;   ///< torn records at the ring's end (never acknowledged)
    std::uint64_t bytes_cut = 0;     ///< of them, by the length that their heads tell; 0: a head is among what is missing
    std::uint64_t pages_healed = 0;  ///< damaged pages restored from the second copy
    std::uint64_t headers_repaired = 0;
    bool copies_levelled = false;  ///< what was newer in one of the two files was copied into the other
    bool backing_rebuilt = false;  ///< the backing file was restored from the data file
    bool data_rebuilt = false;     ///< the data file was refilled from the backing file
    bool data_detached = false;    ///< the data file was missing and is done without (`detach_data_file`)
    /// When the opening began, by the system's clock. Nothing: unknown.
    std::optional<std::chrono::system_clock::time_point> opened_at{};
    /// What the opening took until the heap was as it had to be. 0: unknown, as in a header that recovery itself wrote.
    std::chrono::microseconds took{0};
    /// When a header of the heap was written last, before this opening: the heap was closed then (`clean`), or its files were brought up to date. Saves and transactions in a journal or log have no times.
    /// Nothing: unknown, by a library that didn't note it, or the headers are lost.
    std::optional<std::chrono::system_clock::time_point> last_written{};

    /// Whether there was anything to do.
    TAIYEN_EXPORT bool needed() const noexcept;
    /// What was done, a sentence each, without capital and full stop. None: nothing was.
    TAIYEN_EXPORT std::vector<std::string> done() const;
    /// The cause, then what was done.
    TAIYEN_EXPORT std::vector<std::string> sentences() const;
};

}  // namespace taiyen
