#pragma once
/// What stands in a heap's transaction log, or in the journal of its saves: read from the device, without opening the heap. Nothing is recovered, nothing written.
///
/// It works on a heap whose last user crashed, and on one that is too damaged to open, as long as one header of it is whole. Formats: src/log/FORMAT.md, src/txn/FORMAT.md.
/// Thread rule: a value.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/store/restoration.hpp>

namespace taiyen {

/// Which transactions of a log are listed, and how.
struct LogOptions {
    std::uint64_t first = 0;                 ///< serials that are listed one by one: from here …
    std::uint64_t last = ~std::uint64_t{0};  ///< … up to here, inclusive
    std::size_t listed_max = 1000;           ///< of these the newest; all of them count in the sums
    bool ranges = false;                     ///< with what each of them changes
    Progress progress;                       ///< may be empty
};

/// One thing that a transaction does to the heap.
struct LoggedRange {
    enum class Kind {
        bytes,     ///< these bytes get other values
        zeros,     ///< these pages are given up and read as zeros
        moved,     ///< these bytes become those that stand at `source`
        procedure  ///< a registered procedure is called: `name`
    };
    Kind kind = Kind::bytes;
    bool of_history = false;   ///< in the pages of the undo history, not in those that the program sees
    std::uint64_t offset = 0;  ///< in the heap, or in the history
    std::uint64_t bytes = 0;
    std::uint64_t source = 0;  ///< moved
    std::string name;          ///< procedure
};

/// A transaction as it stands in the log.
struct LoggedWork {
    std::uint64_t serial = 0;
    std::uint64_t position = 0;        ///< of its group in the log
    std::size_t bytes = 0;             ///< that it takes in the log
    std::size_t changed_bytes = 0;     ///< of the heap, without the history
    std::uint64_t ranges = 0;          ///< of the heap
    std::uint64_t calls = 0;           ///< of procedures
    std::uint64_t history_ranges = 0;  ///< of the undo history
    std::size_t extent_bytes = 0;      ///< of the heap as of this transaction
    std::vector<LoggedRange> changes;  ///< if the options ask for them
};

/// A save as it stands in the journal.
struct LoggedSave {
    std::uint64_t generation = 0;
    std::uint64_t position = 0;
    std::size_t bytes = 0;  ///< that it takes in the journal
    std::uint64_t pages = 0;
    std::uint64_t zero_pages = 0;  ///< of these: without an image
};

enum class LogKind {
    none,     ///< the heap has neither: it is no transactional one, and was closed
    journal,  ///< saves of an archive or snapshot heap
    log       ///< transactions
};

enum class LogEnding {
    unused,  ///< nothing in it counts: the heap was closed, or another ring is in use
    whole,   ///< the last record is complete
    torn,    ///< behind the last record lies a part of one more. Nobody was ever told that it is durable; the next opening cuts it off
    damaged  ///< a record that may have been acknowledged is damaged: `what` and `damaged_at` say more
};

/// What stands in a transaction log.
struct LogReport {
    LogKind kind = LogKind::none;
    LogEnding ending = LogEnding::unused;
    std::filesystem::path path;  ///< of the log or journal; empty: none
    bool missing = false;        ///< it isn't there, and isn't needed: the next transactional opening makes a new one
    std::size_t capacity_bytes = 0;
    std::size_t used_bytes = 0;       ///< of it: by records that the files don't contain
    std::uint64_t epoch = 0;          ///< random number of this life; a record of another one doesn't count
    std::uint64_t position = 0;       ///< where the records begin: a count of bytes that only grows
    std::uint64_t end_position = 0;   ///< where the next record goes
    std::uint64_t laps = 0;           ///< how often this life has filled it
    std::uint64_t files_contain = 0;  ///< newest transaction (log) or save (journal) that the heap's files hold
    std::uint64_t durable_up_to = 0;  ///< newest one that an opening brings back
    std::uint64_t records = 0;        ///< groups of transactions, or saves
    std::uint64_t transactions = 0;
    std::size_t changed_bytes = 0;                ///< by all transactions
    std::optional<std::uint64_t> staged;          ///< a save that lies whole behind the record area and is not yet in the file
    std::uint64_t damaged_at = 0;                 ///< offset in the file `path`
    std::string what;                             ///< torn or damaged: a sentence
    std::vector<LoggedWork> listed;               ///< ascending
    std::vector<LoggedSave> saves;                ///< ascending; the newest `listed_max`
    std::optional<Restoration> last_restoration;  ///< of the last opening that had something to do; nothing: none is known
};

/// Throws: Error{not_found | not_a_regular_file | permission | not_a_heap | unsupported_version | corrupt (no header is whole) | busy (open for writing elsewhere) | log_missing | mismatch (the
/// log that lies there is another heap's) | io_error …}. Complexity: reads the log up to its end.
TAIYEN_EXPORT LogReport look_at_log(const std::filesystem::path& path, const PersistentOptions& options = {}, const LogOptions& how = {});

}  // namespace taiyen
