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

/// How verify() works, and whom it tells how far it is.
struct VerifyOptions {
    unsigned threads = 0;  ///< that read and compute checksums; 0: one for each processor, at most 4
    Progress progress;     ///< may be empty; called on the calling thread
};

/// Proves every structure of the heap's files: both header copies, checksum tables, each page of each copy, the journal or log, blocks, names, the undo history (its links, its cursor, the changes in its steps).
/// Changes nothing. What the device can't read is a finding, too; blocks and history are not looked at then if it concerns the copy that is mapped.
/// The heap's verify() is the same with one thread. Thread rule: as the heap's; `heap` may be in use by readers.
/// Throws: Error{closed | …}. Complexity: reads all files once, past the page cache.
TAIYEN_EXPORT Report verify(const ArchiveHeap& heap, const VerifyOptions& options);

}  // namespace taiyen
