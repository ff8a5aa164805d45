// What a lost or damaged ring leaves of a heap. The order of steps: copies, sync, their names, sync of the directories; then an ordinary recovery that stops earlier.

#include "store/last_resort.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/aligned_buffer.hpp"
#include "base/planted.hpp"

namespace taiyen::store {
namespace {

const std::filesystem::path& ring_path(const HeapPaths& paths, bool is_log) { return is_log ? paths.log : paths.journal; }

/// The heap's own ring, as the header names it. Throws: Error{log_missing | mismatch | …}.
std::shared_ptr<io::File> open_ring(io::Storage& storage, const std::filesystem::path& path, const Header& header) {
    if (!storage.find(path)) throw Error(errc::log_missing, path, "it is missing");
    std::shared_ptr<io::File> file = open_locked(storage, path, true);
    const log::RingIdentity found = log::Ring::read_identity(*file);
    if (found.ring != header.ring || found.heap != header.heap || found.capacity_bytes != header.ring_capacity)
        throw Error(errc::mismatch, path, "it belongs to another heap or to an earlier opening");
    return file;
}

void look_at_log(const io::File& file, const std::filesystem::path& path, const Header& header, const Tuning& tuning, RingRemains& remains) {
    const auto replay = tuning.log_replay(path, header.capacity, header.serial);
    const log::ScanResult found = log::Ring::scan(file, header.ring_identity(), header.ring_start, [&](const log::Record& record) {
        try {
            replay->check(record);
        } catch (const Error& error) {
            remains.damage = error.what();
            return false;
        }
        remains.intact_upto = replay->last().value;
        return true;
    });
    if (remains.damage.empty() && found.how == log::ScanEnd::corrupt)
        remains.damage = path.string() + ": at byte " + std::to_string(log::Ring::file_offset(header.ring_identity(), found.next.position)) +
                         ": an acknowledged record is damaged";
    remains.seen_upto = std::max(remains.intact_upto, log::Ring::newest_behind(file, header.ring_identity(), found.next));
}

/// The journal's saves in front of the damage are in `remains` already.
void look_at_journal(const io::File& file, const std::filesystem::path& path, const Header& header, RingRemains& remains) {
    std::uint64_t last = header.generation.value;
    const log::ScanResult found = log::Ring::scan(file, header.ring_identity(), header.ring_start, [&](const log::Record& record) {
        if (record.number == remains.last_save + 1) remains.cut_at = record.position;
        if (record.number != last + 1) return false;
        ++last;
        return true;
    });
    if (!remains.cut_at) remains.cut_at = found.next.position;
    if (remains.last_save == header.generation.value) remains.cut_at.reset();  // nothing stands in front: the headers give it up
    if (found.how == log::ScanEnd::corrupt)
        remains.damage = path.string() + ": at byte " + std::to_string(log::Ring::file_offset(header.ring_identity(), found.next.position)) +
                         ": an acknowledged record is damaged";
    remains.seen_upto = std::max({remains.intact_upto, last, log::Ring::newest_behind(file, header.ring_identity(), found.next)});
}

/// Ends the journal where the damage begins: what stands behind goes first, so that it is damaged until nothing of that is left. Then the ordinary recovery installs the saves in front.
void cut_journal(io::Storage& storage, const std::filesystem::path& path, std::uint64_t position, const Header& header) {
    const std::shared_ptr<io::File> file = open_locked(storage, path, false);
    file->prepare_durable();
    const AlignedBuffer zeros(page_bytes);
    std::memset(zeros.data(), 0, page_bytes);
    const std::uint64_t end = header.ring_start.position + header.ring_capacity;
    for (std::uint64_t at = position + page_bytes; at < end; at += page_bytes)
        file->write(zeros.first(page_bytes), log::Ring::file_offset(header.ring_identity(), at));
    file->sync();
    file->write_durable(zeros.first(page_bytes), log::Ring::file_offset(header.ring_identity(), position));
}

/// What the file holds, in one without a name, blocks and all. What the device refuses to read is a hole.
std::unique_ptr<io::File> copy_of(io::Storage& storage, const std::filesystem::path& path) {
    const std::unique_ptr<io::File> from = storage.open(path, io::Access::read_only);
    std::unique_ptr<io::File> to = storage.create_unnamed(io::directory_of(path));
    const ByteCount size = from->info().size_bytes;
    to->resize(size);
    const std::vector<io::File::Extent> extents = from->data_extents(0, size);
    for (const io::File::Extent& extent : extents) to->allocate(extent.offset, extent.length);
    const AlignedBuffer buffer(ByteCount{1} << 20U);
    for (const io::File::Extent& extent : extents) {
        for (ByteCount done = 0; done < extent.length;) {
            ByteCount part = std::min<ByteCount>(extent.length - done, buffer.size());
            const std::uint64_t at = extent.offset + done;
            try {
                to->write(buffer.first(from->read(buffer.first(part), at)), at);
            } catch (const Error& error) {
                if (error.code() != errc::io_error) throw;
                part = std::min(part, page_bytes - at % page_bytes);
                try {
                    to->write(buffer.first(from->read(buffer.first(part), at)), at);
                } catch (const Error& refused) {
                    if (refused.code() != errc::io_error) throw;
                }
            }
            done += part;
        }
    }
    if (!planted(Bug::kept_copy_without_sync)) to->sync();
    return to;
}

std::filesystem::path kept_name(const std::filesystem::path& file, unsigned number) {
    std::filesystem::path name = file;
    name += ".before-repair";
    if (number != 1) name.concat("-").concat(std::to_string(number));
    return name;
}

std::vector<KeptCopy> keep(io::Storage& storage, const std::vector<std::filesystem::path>& files) {
    unsigned number = 1;
    const auto is_taken = [&](const std::filesystem::path& file) { return storage.find(kept_name(file, number)).has_value(); };
    while (std::ranges::any_of(files, is_taken)) ++number;
    std::vector<KeptCopy> kept;
    std::vector<std::unique_ptr<io::File>> copies;
    for (const std::filesystem::path& file : files) {
        copies.push_back(copy_of(storage, file));
        kept.push_back({file, kept_name(file, number)});
    }
    std::set<std::filesystem::path> directories;
    for (std::size_t i = 0; i < files.size(); ++i) {
        storage.publish(*copies[i], kept[i].kept);
        directories.insert(io::directory_of(kept[i].kept));
    }
    if (planted(Bug::kept_names_unsynced)) return kept;
    for (const std::filesystem::path& directory : directories) storage.sync_directory(directory);
    return kept;
}

/// Whether a ring's file can be taken for a leftover of this heap, which the next opening replaces.
bool is_ours(io::Storage& storage, const std::filesystem::path& path, const Uuid& heap) {
    try {
        return log::Ring::read_identity(*open_locked(storage, path, true)).heap == heap;
    } catch (const Error& error) {
        if (error.code() == errc::busy) throw;
        return false;
    }
}

/// The header that counts, the last save proven.
Header prove_last_save(io::Storage& storage, const HeapPaths& paths, const PersistentOptions& options, const Tuning& tuning, RingRemains* remains) {
    Header newest;
    const OpenFiles files = open_files(
        storage, paths, true, options.detach_data_file, tuning.log_replay, [&](const Header& header) { newest = header; }, RingUse::given_up);
    if (remains != nullptr && newest.ring_kind != RingKind::none) {
        remains->is_log = newest.ring_kind == RingKind::log;
        const bool has_saves = !files.overlay.empty();
        remains->last_save = remains->is_log ? newest.serial.value : has_saves ? files.overlay.back().head.generation : newest.generation.value;
        remains->intact_upto = remains->seen_upto = remains->last_save;
    }
    return newest;
}

}  // namespace

RingRemains look_at_remains(io::Storage& storage, const std::filesystem::path& path, const PersistentOptions& options, const Tuning& tuning) {
    const HeapPaths paths = heap_paths(path, options);
    RingRemains remains;
    const Header newest = prove_last_save(storage, paths, options, tuning, &remains);
    if (newest.ring_kind == RingKind::none) return remains;
    const std::filesystem::path& ring = ring_path(paths, remains.is_log);
    try {
        const std::shared_ptr<io::File> file = open_ring(storage, ring, newest);
        remains.readable = true;
        remains.is_log ? look_at_log(*file, ring, newest, tuning, remains) : look_at_journal(*file, ring, newest, remains);
    } catch (const Error& error) {
        if (error.code() == errc::busy) throw;
        remains.damage = error.what();
    }
    return remains;
}

std::vector<KeptCopy> go_on_with_remains(io::Storage& storage, const std::filesystem::path& path, const PersistentOptions& options,
                                         const RingRemains& remains, std::uint64_t upto, const Tuning& tuning) {
    const HeapPaths paths = heap_paths(path, options);
    const Header newest = prove_last_save(storage, paths, options, tuning, nullptr);
    const std::filesystem::path& ring = ring_path(paths, remains.is_log);
    std::vector<std::filesystem::path> there;
    for (const std::filesystem::path& file : {paths.backing, paths.data, ring})
        if (storage.find(file)) there.push_back(file);
    const bool gives_up = !remains.is_log || upto <= remains.last_save;
    const bool removes = gives_up && storage.find(ring) && !is_ours(storage, ring, newest.heap);
    std::vector<KeptCopy> kept = keep(storage, there);
    if (removes) {
        storage.remove(ring);
        storage.sync_directory(io::directory_of(ring));
    }
    if (remains.cut_at) cut_journal(storage, ring, *remains.cut_at, newest);
    Tuning cut = tuning;
    cut.ring_use = remains.cut_at ? RingUse::cut : gives_up ? RingUse::given_up : RingUse::proven;
    cut.log_replay = replay_up_to(tuning.log_replay, {upto});
    const std::shared_ptr<HeapFile> file = HeapFile::open(storage, path, OpenMode::open_only, HeapKind::archive, options, cut);
    file->healing().heal();
    file->close();
    return kept;
}

}  // namespace taiyen::store
