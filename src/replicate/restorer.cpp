#include "replicate/restorer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/store/archive_heap.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "heap/engine.hpp"
#include "log/group.hpp"
#include "store/companion_files.hpp"
#include "store/heap_file.hpp"
#include "store/opening_record.hpp"
#include "txn/record.hpp"

namespace taiyen::replicate {
namespace {

using layout::BaseDone;
using store::PageFile;
using store::TablePage;

std::chrono::system_clock::time_point time_of(const FrameHead& head) {
    return store::time_of(head.written_at).value_or(std::chrono::system_clock::time_point{});
}

std::filesystem::path with(const std::filesystem::path& path, const char* suffix) { return path.string() + suffix; }

}  // namespace

Restorer::Restorer(io::Storage& storage, ReplicationTarget& target, std::filesystem::path to, const RestoreOptions& options)
    : storage_(storage), target_(target), to_(std::move(to)), working_(with(to_, ".restoring")), options_(options) {}

template <class F>
void Restorer::for_each_frame(std::uint64_t first, std::uint64_t last, F&& visit) {
    std::optional<FrameHead> before;
    for (std::uint64_t number = first; number <= last; ++number) {
        const Frame frame(target_, number);
        if (before) frame.require_follows(*before);
        before = frame.head();
        ++restored_.frames;
        if (options_.progress) options_.progress(number - first + 1, last - first + 1);
        if (!visit(frame)) return;
    }
}

bool Restorer::is_wanted(const FrameHead& head) const { return !options_.at || time_of(head) <= *options_.at; }

Base Restorer::choose_base() {
    if (!options_.serial && !options_.at) {  // the newest state, or none
        const std::uint64_t newest = Frame(target_, range_.last).head().newest_base;
        if (newest == 0 || newest < range_.first) throw Error(errc::not_found, target_.name(), "it has no complete base yet");
        return read_base(target_, newest);
    }
    const auto found = find_base(target_, range_, [&](const Base& base) {
        return is_wanted(base.head) && (!options_.serial || base.head.covered_serial <= options_.serial->value);
    });
    if (!found) throw Error(errc::not_found, target_.name(), "it has no base that is old enough; ask for a later transaction, or a later time");
    return *found;
}

Restored Restorer::run_for_follower() {
    is_follower_ = true;
    return run();
}

Restored Restorer::run() {
    if (storage_.find(to_)) throw Error(errc::already_exists, to_, "there is a file already, and restoring overwrites nothing; name another one");
    range_ = target_.range();
    if (range_.empty()) throw Error(errc::not_found, target_.name(), "nothing was replicated there");
    const Base base = choose_base();
    const store::Header shape = base.shape(target_.name());
    remove_unfinished(shape.heap);
    PageFile file(storage_.create_unnamed(io::directory_of(to_)), shape);
    store::lock_new(file.file());
    file.header.file = random_uuid();
    file.header.sequence = 0;
    write_pages(base, file);
    restored_.serial = {base.head.covered_serial};
    restored_.written_at = time_of(base.head);
    lay_log(base, file);
    if (is_follower_) {
        file.header.replica.role = planted(Bug::follower_unmarked) ? store::ReplicaRole::owner : store::ReplicaRole::follower;
        file.header.replica.frame = newest_used_.number;
        file.header.replica.frame_checksum = newest_used_.checksum;
    }
    store::write_first_headers(file.file(), file.header);
    file.sync();
    storage_.publish(file.file(), planted(Bug::restored_named_early) ? to_ : working_);
    storage_.sync_directory(io::directory_of(to_));
    if (planted(Bug::restored_named_early)) return restored_;
    file = PageFile(nullptr, shape);  // its lock goes with it
    try {
        recover();
    } catch (...) {
        try {
            remove_unfinished(shape.heap);
        } catch (...) {}  // the next call removes it, or says why it can't
        throw;
    }
    if (options_.serial && restored_.serial != *options_.serial) {
        storage_.remove(working_);
        throw Error(errc::not_found, target_.name(),
                    "it can't be restored as of transaction " + std::to_string(options_.serial->value) + ", but as of " +
                        std::to_string(restored_.serial.value) + ": what followed came as pages, not as transactions, or didn't come");
    }
    storage_.rename(working_, to_, io::Existing::refused);
    storage_.sync_directory(io::directory_of(to_));
    return restored_;
}

/// What an interrupted call has left.
void Restorer::remove_unfinished(const Uuid& heap) {
    if (storage_.find(working_)) {
        const auto file = store::open_locked(storage_, working_, false);
        const store::Slots slots = store::read_slots(*file);
        const store::Header* const header = slots.newest();
        if (header == nullptr || header->heap != heap)
            throw Error(errc::already_exists, working_, "this is not what an interrupted restore of this heap has left; move it away");
        storage_.remove(working_);
    }
    store::clear_orphan_log(storage_, with(working_, ".log"), store::heap_is_ours, heap);
    store::clear_orphan_journal(storage_, with(working_, ".journal"), store::heap_is_ours, heap);
    storage_.sync_directory(io::directory_of(to_));
}

// ---- pages

void Restorer::write_pages(const Base& base, PageFile& file) {
    // The bases that it stands on, the oldest first: each has pages over those of the one before.
    file.layout = store::FileLayout(file.header.annex.places);
    file.make_long_enough(file.header.extents());
    for (const Base& one : with_those_below(target_, base)) {
        std::uint64_t frames = 0;
        for_each_frame(one.head.begin, one.head.number, [&](const Frame& frame) {
            if (frame.kind() == FrameKind::pages && frame.head().begin == one.head.begin) {
                write_page_frame(frame, file);
                ++frames;
            }
            return true;
        });
        if (frames != one.body.page_frames)
            throw Error(errc::corrupt, target_.name(),
                        "frames of the base that ends with frame " + std::to_string(one.head.number) + " are missing; restore an earlier state");
    }
    std::uint64_t root = 0;
    for (const auto& [index, checksum] : tables_) root += mix(index, checksum);
    if (root != file.header.table_root)
        throw Error(
            errc::corrupt, target_.name(),
            "the pages of the base that ends with frame " + std::to_string(base.head.number) + " don't belong together; restore an earlier state");
}

void Restorer::write_page_frame(const Frame& frame, PageFile& file) {
    const PagesFrame pages(frame, file.header.extents());
    if (!pages.is_held()) return;
    pages.for_each_run([&](PageNumber first, std::uint64_t count, std::span<const std::byte> images) {
        if (images.empty()) return file.punch_pages(first, count);
        file.write_pages(first, images);
        file.start_writing(first, count);
    });
    const TablePage& table = pages.table();
    file.write_table_page(table);
    if (table.checksum != 0)
        tables_[table.index] = table.checksum;
    else
        tables_.erase(table.index);
}

// ---- transactions

template <class F>
void Restorer::for_each_group(const Base& base, F&& visit) {
    Serial last = base.serial();
    newest_used_ = {};
    if (options_.serial && last >= *options_.serial) return;
    for_each_frame(base.head.begin, range_.last, [&](const Frame& frame) {
        if (!is_wanted(frame.head())) return false;
        const bool has_records = frame.kind() == FrameKind::records;
        if (has_records && frame.head().first_serial > last.value + 1) {
            if (options_.serial) return false;  // it came as pages
            frame.throw_corrupt("transactions before it are missing");
        }
        newest_used_ = frame.head();
        if (!has_records) return true;
        if (const auto group = transactions_behind(frame, last, options_.serial)) visit(frame, *group, last);
        return !options_.serial || last < *options_.serial;  // behind it nothing needs to be whole
    });
}

void Restorer::lay_log(const Base& base, PageFile& file) {
    ByteCount bytes = 0;
    for_each_group(base, [&](const Frame&, const log::Record& group, Serial) { bytes += log::Ring::record_bytes(group.payload.size()); });
    if (bytes == 0) return;
    log::RingIdentity identity{random_uuid(), file.header.heap, round_up(std::max<ByteCount>(bytes, 64_KiB), page_bytes), false};
    const std::filesystem::path path = with(working_, ".log");
    const std::shared_ptr<io::File> log = storage_.create_unnamed(io::directory_of(path));
    store::lock_new(*log);
    // Whoever is interrupted begins again, and has no use for it.
    log::Ring::format(*log, identity, log::Ring::Lasting::scratch);
    const log::RingStart start = store::fresh_start();
    log::Ring ring(log, identity, start, start.position, log::Ring::Lasting::scratch);
    for_each_group(base, [&](const Frame& frame, const log::Record& group, Serial last) {
        const std::array pieces{std::span<const std::byte>(group.payload)};
        ring.append(group.kind, group.number, pieces);
        restored_.serial = last;
        restored_.written_at = time_of(frame.head());
        restored_.transactions += last.value - group.number + 1;
    });
    store::publish_part(storage_, *log, path);
    storage_.sync_directory(io::directory_of(path));
    // As a heap whose user crashed: what the log holds is replayed when it is opened.
    file.header.clean = false;
    file.header.ring_kind = store::RingKind::log;
    file.header.ring = file.header.log = identity.ring;
    file.header.ring_capacity = file.header.log_capacity = identity.capacity_bytes;
    file.header.ring_start = start;
}

void Restorer::recover() {
    PersistentOptions options;
    options.verify = Verify::at_opening;
    store::Tuning tuning;
    tuning.elsewhere = true;
    if (is_follower_ && !planted(Bug::follower_unmarked)) tuning.role = store::RoleWanted::follower;
    const auto heap = store::HeapFile::open(storage_, working_, store::OpenMode::open_only, HeapKind::archive, options, tuning);
    if (const auto damages = heap->engine().check(1); !damages.empty())
        throw Error(errc::corrupt, target_.name(),
                    "what it holds is no sound heap: " + std::string(damages.front().what) + "; restore an earlier state");
    heap->companions().remove_log();
    heap->close();
    storage_.sync_directory(io::directory_of(working_));  // what went with it is gone before the heap has its name
}

}  // namespace taiyen::replicate

namespace taiyen {

using replicate::Frame;
using replicate::FrameKind;

Restored restore(ReplicationTarget& target, const std::filesystem::path& to, const RestoreOptions& options) {
    return replicate::Restorer(io::posix_storage(), target, std::filesystem::absolute(to), options).run();
}

std::optional<ReplicaInfo> replica_info(ReplicationTarget& target, bool all_frames, const Progress& progress) {
    const ReplicationTarget::Range range = target.range();
    if (range.empty()) return std::nullopt;
    const auto time = [](std::uint64_t written_at) { return store::time_of(written_at).value_or(std::chrono::system_clock::time_point{}); };
    const Frame newest(target, range.last);
    ReplicaInfo info;
    info.heap = newest.heap().text();
    info.epoch = newest.head().epoch;
    info.first_frame = range.first;
    info.last_frame = range.last;
    info.newest = {newest.head().last_serial};
    info.written_at = time(newest.head().written_at);
    if (newest.head().epoch_frame >= range.first) {
        const auto owner = Frame(target, newest.head().epoch_frame).begin_of_body<replicate::layout::EpochBody>();
        info.host.assign(owner.host, ::strnlen(owner.host, sizeof owner.host));
    }
    for (const auto& [group, serial] : replicate::kept_at(target, newest.head())) {
        info.kept_from = info.groups_kept == 0 ? serial : std::min(info.kept_from, serial);
        ++info.groups_kept;
    }
    for (std::uint64_t number = newest.head().newest_base; number != 0 && number >= range.first;) {
        const Frame done(target, number);
        const auto body = done.begin_of_body<replicate::layout::BaseDone>();
        if (done.head().begin < range.first || done.head().begin >= number) break;
        info.bases.push_back({number, {done.head().covered_serial}, body.begun.previous == 0, time(done.head().written_at)});
        number = Frame(target, done.head().begin).head().newest_base;
    }
    if (all_frames) {
        std::optional<replicate::FrameHead> before;
        for (std::uint64_t number = range.first; number <= range.last; ++number) {
            const Frame frame(target, number);
            if (before) frame.require_follows(*before);
            before = frame.head();
            if (progress) progress(number - range.first + 1, range.last - range.first + 1);
        }
    }
    return info;
}

}  // namespace taiyen
