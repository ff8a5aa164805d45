#pragma once
/// What `verify()` found.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/progress.hpp>

namespace taiyen {

class ArchiveHeap;
class VolatileHeap;

/// How bad a finding is: nothing, mended by a second copy, lost.
enum class Severity { note, healable, damage };

/// One thing that verify() found, and where.
struct Finding {
    Severity severity = Severity::damage;
    std::filesystem::path path;
    std::uint64_t offset = 0;  ///< byte offset in that file
    std::string what;
};

/// How much verify() compares; each level does what the one before it does, and more.
enum class VerifyLevel {
    structure,  ///< both copies of the headers, all checksum tables, the journal's or log's head, the block engine's metadata and the names (as memory has them), and their pages: no others. Milliseconds
    sample,     ///< and pages of both copies that are chosen at random
    pages,      ///< and all pages of both copies, those behind the heap's end, too, and every record of the journal or log
    everything  ///< and the undo history (its links, its cursor, the changes in its steps), and the search for pointers to the program's memory where that is asked for
};

/// Findings, each with what, where, how bad. A healable finding (a second copy has the bytes) is damage too; notes are not.
struct Report {
    std::vector<Finding> findings;
    std::uint64_t pages_checked = 0;
    std::uint64_t blocks_checked = 0;  ///< VerifyLevel::structure checks them, and doesn't count them
    std::uint64_t steps_checked = 0;   ///< of the undo history that lies in the files
    VerifyLevel level = VerifyLevel::everything;
    std::uint64_t bytes_read = 0;  ///< of the files, to be compared; without journal and log
    std::uint64_t pages_unsaved =
        0;  ///< that the program has changed since the newest save: the files' pages were compared, as that save left them, and not what was changed
    std::uint64_t seed = 0;  ///< VerifyLevel::sample: the pages are chosen by it
    bool stopped = false;    ///< by `VerifyOptions::stop`: it is not complete
    std::chrono::nanoseconds took{0};
    bool ok() const {
        for (const Finding& finding : findings)
            if (finding.severity != Severity::note) return false;
        return true;
    }
};

/// Whether the blocks of a heap are searched for pointers to a program's own memory (its constants, malloc's memory, stacks), which lead to nothing once it has ended.
enum class ProgramSearch {
    none,
    this_process,  ///< words that lead to what this process has now
    /// Words that look like pointers of any process that had the heap open: what stands at one place of blocks of one size and leads close together. A pointer that stands alone, and literals that occur once each,
    /// are not found. Little but pointers looks like that; bytes that were never set may have been one
    any_process
};

/// How verify() works, and whom it tells how far it is.
struct VerifyOptions {
    VerifyLevel level = VerifyLevel::everything;
    double sample_fraction = 0.01;   ///< VerifyLevel::sample: of all pages, 0 to 1; at least one page
    std::uint64_t sample_pages = 0;  ///< so many instead; 0: by the fraction
    std::uint64_t seed = 0;          ///< the same one chooses the same pages of the same files; 0: a new one, which the report tells
    std::stop_token stop{};          ///< whoever holds its source may end it; what was found until then is reported
    unsigned threads = 0;            ///< that read and compute checksums; 0: one for each processor, at most 4
    Progress progress{};             ///< may be empty; called on the calling thread
    ProgramSearch program_pointers = ProgramSearch::none;  ///< found: notes, if nothing is damaged; reads every live block that may hold pointers
};

/// Proves every structure of the heap's files, as far as the level goes. Changes nothing. What the device can't read is a finding, too; blocks and history are not looked at then if it concerns the copy that is mapped.
/// The heap's verify() is the same with one thread. Of a heap that is open for writing: what its files hold; what the program has changed since the newest save is in none of them. Of one that is `guarded`, also
/// what check_guards() looks at; its damage goes to the report handler, too.
/// Thread rule: as the heap's; `heap` may be in use by readers. Transactions go on while files are compared, and saves between two pieces of 2 MiB at most; they wait while blocks, names and history are looked at.
/// Throws: Error{closed | poisoned | …}. Complexity: reads all files once, past the page cache; VerifyLevel::structure 0.2 % of them, and the metadata (up to 1.6 %) through it.
TAIYEN_EXPORT Report verify(const ArchiveHeap& heap, const VerifyOptions& options);

/// Proves the metadata of a volatile heap: blocks and names, the segments of all threads, and the guards of a guarded heap, whose damage goes to the report handler, too. Changes nothing. Offsets of findings are
/// those in the heap. Requires: no other thread is in the heap. Throws: Error{closed}, std::bad_alloc. Complexity: linear in the extent; of a guarded heap, in its live bytes.
TAIYEN_EXPORT Report verify(const VolatileHeap& heap);

}  // namespace taiyen
