#pragma once
/// What `verify()` found.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <taiyen/base/export.hpp>
#include <taiyen/base/progress.hpp>

namespace taiyen {

class ArchiveHeap;

/// How bad a finding is: nothing, mended by a second copy, lost.
enum class Severity { note, healable, damage };

/// One thing that verify() found, and where.
struct Finding {
    Severity severity = Severity::damage;
    std::filesystem::path path;
    std::uint64_t offset = 0;  ///< byte offset in that file
    std::string what;
};

/// Findings, each with what, where, how bad. A healable finding (a second copy has the bytes) is damage too; notes are not.
struct Report {
    std::vector<Finding> findings;
    std::uint64_t pages_checked = 0;
    std::uint64_t blocks_checked = 0;
    std::uint64_t steps_checked = 0;  ///< of the undo history that lies in the files
    bool ok() const {
        for (const Finding& finding : findings) {
            if (finding.severity != Severity::note) {
                return false;
            }
        }
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
    unsigned threads = 0;                                  ///< that read and compute checksums; 0: one for each processor, at most 4
    Progress progress;                                     ///< may be empty; called on the calling thread
    ProgramSearch program_pointers = ProgramSearch::none;  ///< found: notes, if nothing is damaged; reads every live block that may hold pointers
};

/// Proves every structure of the heap's files: both header copies, checksum tables, each page of each copy, the journal or log, blocks, names, the undo history (its links, its cursor, the changes in its steps).
/// Changes nothing. What the device can't read is a finding, too; blocks and history are not looked at then if it concerns the copy that is mapped.
/// The heap's verify() is the same with one thread. Thread rule: as the heap's; `heap` may be in use by readers.
/// Throws: Error{closed | …}. Complexity: reads all files once, past the page cache.
TAIYEN_EXPORT Report verify(const ArchiveHeap& heap, const VerifyOptions& options);

}  // namespace taiyen
