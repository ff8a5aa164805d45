#pragma once
/// What the stage, the journal or the transaction log of a heap has and its page files lack.
/// Thread rule: external lock.

#include <memory>
#include <optional>
#include <vector>

#include <taiyen/store/restoration.hpp>

#include "log/ring.hpp"
#include "store/heap_paths.hpp"
#include "store/log_replay.hpp"
#include "store/save_record.hpp"

namespace taiyen::store {

/// The transaction log's groups from here on.
struct LogTail {
    Serial contained;  ///< newest serial that the files contain, once they are recovered
    log::RingStart start;
    bool checked = false;  ///< every group; else who applies them checks them, and nothing has been written until then
};

struct RingContents {
    std::shared_ptr<io::File> file;  ///< null: none attached
    std::vector<SaveRecord> saves;   ///< consecutive, oldest first: a staged one, then the journal's
    std::optional<LogTail> tail;
};

/// Reads what lies behind `newest`, which becomes the header as of the staged save, if there is one. Throws: Error{log_missing | mismatch | corrupt | busy …}.
RingContents read_ring(io::Storage& storage, const HeapPaths& paths, Header& newest, bool read_only, Restoration& restoration);

/// What a last resort takes from there: of a log nothing, of a journal the saves in front of the first damage; a stage if it is whole. Throws: Error{busy | unsupported_version | …}.
RingContents read_what_is_left(io::Storage& storage, const HeapPaths& paths, Header& newest, bool read_only, Restoration& restoration);

/// Checks every group of the tail. Throws: Error{corrupt | mismatch | missing_procedure}.
void check_tail(RingContents& ring, const Header& newest, const HeapPaths& paths, const LogReplayMaker& make_replay, Restoration& restoration);

/// Throws the error again, with the last resort as another remedy, if it says that the ring at `ring` is lost or damaged; else returns.
void name_last_resort(const Error& error, const std::filesystem::path& ring, const HeapPaths& paths);

/// What the end of the journal or the log at `path` means. Throws: Error{corrupt}.
void judge_end(const log::ScanResult& result, ByteCount capacity, const std::filesystem::path& path, Restoration& restoration);

}  // namespace taiyen::store
