#pragma once
/// The last resort of a heap that no opening accepts, because its journal or transaction log is lost or damaged: going on with what lies whole in its files, and saying what that gives up.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

/// Which heap, and how much of it is given up.
struct LastResortOptions {
    PersistentOptions heap;  ///< where the heap's other files lie
    std::optional<std::uint64_t>
        up_to_serial;  ///< of a damaged transaction log: what is in front of the damage is replayed up to it; nothing: the last save is accepted
};

/// A file of the heap, and the copy of it as it was.
struct KeptFile {
    std::filesystem::path file;
    std::filesystem::path kept;
};

/// What a last resort gives up. Numbers are serials of a transactional heap, numbers of saves of the others.
struct LastResort {
    bool needed = false;                 ///< false: the heap opens as it is, and nothing was or will be done
    bool done = false;                   ///< the heap was changed
    bool has_log = false;                ///< the heap was used with transactions
    std::string problem;                 ///< what the ordinary opening says
    std::string damage;                  ///< what is wrong with journal or log
    std::uint64_t last_save = 0;         ///< newest number that the last save contains
    std::uint64_t intact_up_to = 0;      ///< newest one in front of the damage: up to there a log can be replayed
    std::uint64_t goes_on_from = 0;      ///< newest one that the heap has afterwards
    std::uint64_t known_lost = 0;        ///< how many behind it are known to have been written; there may be more
    std::vector<KeptFile> kept;          ///< remove them when nothing in them is missed
    std::vector<std::string> sentences;  ///< the same in words
};

/// Tells what last_resort() with these options would give up; changes nothing.
/// Throws: Error{corrupt}: the last save isn't whole, with the page; Error{invalid_argument}: such a serial can't be reached; as opening for reading.
/// Complexity: reads all pages that are in use, and the whole log.
TAIYEN_EXPORT LastResort look_at_last_resort(const std::filesystem::path& path, const LastResortOptions& options = {});

/// Goes on with the last save, or with a damaged log up to a serial; what was saved or committed behind it is given up. Only for a heap that no ordinary opening accepts: another one isn't touched.
/// The last save is proven first, every page. Then the heap's files are copied beside themselves, as `x.tyn.before-repair` and so on (`…-2` if there is one), so there must be room for all of them again.
/// Afterwards every opening accepts the heap; new saves and transactions go on with the next number, and nothing in the old journal or log can come back. An undo history ends with the steps that are given up: what
/// it holds is as of the save or the serial.
/// Durability: on return; after a crash the heap is as it was, with copies beside it perhaps, and the call can be made again, or it has gone on. Throws: as look_at_last_resort(); Error{no_space | busy | …}:
/// nothing changed.
TAIYEN_EXPORT LastResort last_resort(const std::filesystem::path& path, const LastResortOptions& options = {});

}  // namespace taiyen
