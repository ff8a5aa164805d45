#include "store/ring_contents.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "base/sentence.hpp"
#include "store/recovery_table.hpp"

namespace taiyen::store {
namespace {

/// Whether the error says that a ring, or a part of it, is lost.
bool says_lost(const Error& error) {
    constexpr std::array codes{errc::log_missing, errc::mismatch, errc::corrupt, errc::truncated, errc::not_a_heap, errc::io_error};
    return std::ranges::any_of(codes, [&](errc code) { return error.code() == code; });
}

const std::filesystem::path& ring_path(const HeapPaths& paths, const Header& header) {
    return header.ring_kind == RingKind::log ? paths.log : paths.journal;
}

/// Opens the journal or the transaction log that the header names. Throws: Error{log_missing | mismatch | corrupt …}.
std::shared_ptr<io::File> open_ring(io::Storage& storage, const HeapPaths& paths, const Header& header, bool read_only) {
    const std::filesystem::path& path = ring_path(paths, header);
    const std::string name = header.ring_kind == RingKind::log ? "transaction log" : "journal";
    if (!storage.find(path)) {
        throw Error(errc::log_missing, path,
                    "the heap was not closed and its " + name +
                        " is missing: put it beside the heap, or name it in the options; it may hold the newest changes");
    }
    std::shared_ptr<io::File> file = open_locked(storage, path, read_only);
    const log::RingIdentity found = log::Ring::read_identity(*file);
    if (found.ring != header.ring || found.heap != header.heap || found.capacity_bytes != header.ring_capacity) {
        throw Error(errc::mismatch, path,
                    "this " + name + " belongs to another heap or to an earlier opening; put the right one beside " + paths.backing.string());
    }
    return file;
}

/// Whether there are transactions behind what the header says is in the files; nothing: there are none. Throws: Error{corrupt}.
std::optional<LogTail> find_tail(const io::File& ring, const Header& newest, const HeapPaths& paths, Restoration& restoration) {
    const log::ScanResult first = log::Ring::scan(ring, newest.ring_identity(), newest.ring_start, [&](const log::Record& record) {
        if (record.kind != record_transactions)
            throw Error(errc::corrupt, paths.log, record.file_offset, "the record holds no transactions; restore the files from a copy");
        return false;
    });
    if (first.records != 0) return LogTail{newest.serial, newest.ring_start};
    judge_end(first, newest.ring_capacity, paths.log, restoration);
    return std::nullopt;
}

/// The save in the stage, entries and images proven. Throws: Error{corrupt}.
SaveRecord read_stage(const io::File& ring, const Header& header, const HeapPaths& paths) {
    auto save = decode_staged(header.staged, header.capacity);
    if (!save || !load_stage(ring, *save, header.capacity, header.heap)) {
        throw Error(errc::corrupt, ring_path(paths, header), header.staged.head.stage_offset,
                    "the staged pages of a save are damaged; restore the files from a copy");
    }
    return std::move(*save);
}

/// The saves behind the header's generation, consecutive, into `saves`. Throws: Error{corrupt | mismatch}; what stands before the damage is in `saves` then.
void read_saves(const io::File& ring, const Header& newest, const HeapPaths& paths, Restoration& restoration, std::vector<SaveRecord>& saves) {
    const std::size_t before = saves.size();
    std::uint64_t expected = newest.generation.value + 1;
    AnnexHead annex = newest.annex;
    log::RingIdentity identity = newest.ring_identity();
    const auto result = log::Ring::scan(ring, identity, newest.ring_start, [&](const log::Record& record) {
        if (planted(Bug::replay_first_record_only) && saves.size() != before) return false;
        auto save = decode_save(record, newest.capacity);
        if (!save)
            throw Error(errc::corrupt, paths.journal, record.file_offset, "the record holds no save of this heap; restore the files from a copy");
        if (record.number != expected) {
            throw Error(errc::mismatch, paths.journal, record.file_offset,
                        "save " + std::to_string(record.number) + " stands where save " + std::to_string(expected) +
                            " is due; the files do not belong together");
        }
        if (!grows_from(annex, save->annex)) {
            throw Error(errc::corrupt, paths.journal, record.file_offset,
                        "the save speaks of another annex than the heap has; restore the files from a copy");
        }
        if (!images_hold(*save, &ring, newest.heap)) {
            throw Error(errc::corrupt, paths.journal, record.file_offset,
                        "a page in the record differs from its checksum; restore the files from a copy");
        }
        annex = save->annex;
        ++expected;
        saves.push_back(std::move(*save));
        return true;
    });
    judge_end(result, newest.ring_capacity, paths.journal, restoration);
}

/// Calls it; false: it threw that something is lost.
template <class F>
bool is_there(F&& read) {
    try {
        read();
        return true;
    } catch (const Error& error) {
        if (!says_lost(error)) throw;
        return false;
    }
}

/// The staged save, which `newest` stands for from then on. Throws: Error{corrupt}.
void take_stage(RingContents& ring, const HeapPaths& paths, Header& newest) {
    if (newest.state != FileState::staged) return;
    SaveRecord staged = read_stage(*ring.file, newest, paths);
    if (!grows_from(newest.annex, staged.annex))
        throw Error(errc::corrupt, paths.backing, "the staged save speaks of another annex than the heap has; restore the files from a copy");
    ring.saves.push_back(std::move(staged));
    newest = newest.after_stage();
}

}  // namespace

void name_last_resort(const Error& error, const std::filesystem::path& ring, const HeapPaths& paths) {
    if (!says_lost(error) || error.path() != ring) return;
    throw Error(static_cast<errc>(error.code().value()), error.path(), error.offset(),
                sentence_of(error) + "; or go on without what only that file has: taiyen repair --accept-last-save " + paths.backing.string());
}

void judge_end(const log::ScanResult& result, ByteCount capacity, const std::filesystem::path& path, Restoration& restoration) {
    if (result.how == log::ScanEnd::corrupt) {
        throw Error(errc::corrupt, path, result.next.position % std::max<ByteCount>(capacity, 1) + log::Ring::header_bytes,
                    "an acknowledged record is damaged; restore the files from a copy");
    }
    if (result.how == log::ScanEnd::torn) {
        restoration.records_cut = 1;
        restoration.bytes_cut = result.torn_bytes;
        count_row(Row::torn_record_cut);
    }
}

RingContents read_ring(io::Storage& storage, const HeapPaths& paths, Header& newest, bool read_only, Restoration& restoration) {
    RingContents ring;
    if (newest.ring_kind == RingKind::none) return ring;
    const std::filesystem::path ring_name = ring_path(paths, newest);
    try {
        ring.file = open_ring(storage, paths, newest, read_only);
        take_stage(ring, paths, newest);
        if (newest.ring_kind == RingKind::log)
            ring.tail = find_tail(*ring.file, newest, paths, restoration);
        else
            read_saves(*ring.file, newest, paths, restoration, ring.saves);
    } catch (const Error& error) {
        name_last_resort(error, ring_name, paths);
        throw;
    }
    restoration.snapshots_replayed = ring.saves.size();
    return ring;
}

RingContents read_what_is_left(io::Storage& storage, const HeapPaths& paths, Header& newest, bool read_only, Restoration& restoration) {
    RingContents ring;
    if (newest.ring_kind == RingKind::none) return ring;
    const bool is_readable = is_there([&] {
        ring.file = open_ring(storage, paths, newest, read_only);
        take_stage(ring, paths, newest);
    });
    newest.state = FileState::whole;  // without its stage it is as it was before that, which its pages have to prove
    newest.staged = {};
    if (is_readable && newest.ring_kind == RingKind::journal) (void)is_there([&] { read_saves(*ring.file, newest, paths, restoration, ring.saves); });
    restoration.snapshots_replayed = ring.saves.size();
    return ring;
}

void check_tail(RingContents& ring, const Header& newest, const HeapPaths& paths, const LogReplayMaker& make_replay, Restoration& restoration) {
    LogTail& tail = *ring.tail;
    const std::unique_ptr<LogReplay> replay = make_replay(paths.log, newest.capacity, tail.contained);
    try {
        const auto result = log::Ring::scan(*ring.file, newest.ring_identity(), tail.start, [&](const log::Record& record) {
            replay->check(record);
            return !replay->is_done();
        });
        if (!replay->is_done()) judge_end(result, newest.ring_capacity, paths.log, restoration);
    } catch (const Error& error) {
        name_last_resort(error, paths.log, paths);
        throw;
    }
    tail.checked = true;
}

}  // namespace taiyen::store
