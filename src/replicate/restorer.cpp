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

Restorer::Base Restorer::read_base(std::uint64_t number) {
    const Frame frame(target_, number);
    Base base{frame.head(), frame.begin_of_body<BaseDone>()};
    if (frame.kind() != FrameKind::base_done || base.head.begin == 0 || base.head.begin >= number || base.body.begun.previous >= base.head.begin)
        frame.throw_corrupt("it is no base's end");
    return base;
}

Restorer::Base Restorer::choose_base() {
    std::uint64_t number = Frame(target_, range_.last).head().newest_base;
    while (number != 0 && number >= range_.first) {
        const Base base = read_base(number);
        if (base.head.begin >= range_.first && is_wanted(base.head) && (!options_.serial || base.head.covered_serial <= options_.serial->value))
            return base;
        const std::uint64_t before = Frame(target_, std::max(base.head.begin, range_.first)).head().newest_base;
        if (before >= number) break;
        number = before;
    }
    throw Error(errc::not_found, target_.name(), "it has no base that is old enough; ask for a later transaction, or a later time");
}

store::Header Restorer::shape_of(const Base& base) {
    const store::Header shape = store::decode(base.body.header, target_.name());
    const bool is_plain = shape.clean && !shape.is_new && shape.role == store::FileRole::backing && shape.state == store::FileState::whole &&
                          shape.ring_kind == store::RingKind::none && shape.data.is_nil() && shape.log.is_nil();
    if (!is_plain || !std::ranges::equal(shape.heap.bytes, base.head.heap))
        throw Error(errc::corrupt, target_.name(),
                    "the base that ends with frame " + std::to_string(base.head.number) + " is of no closed heap; restore an earlier state");
    return shape;
}

Restored Restorer::run() {
    if (storage_.find(to_)) throw Error(errc::already_exists, to_, "there is a file already, and restoring overwrites nothing; name another one");
    range_ = target_.range();
    if (range_.empty()) throw Error(errc::not_found, target_.name(), "nothing was replicated there");
    remove_unfinished();
    const Base base = choose_base();
    const store::Header shape = shape_of(base);
    PageFile file(storage_.create_unnamed(io::directory_of(to_)), shape);
    store::lock_new(file.file());
    file.header.file = random_uuid();
    file.header.sequence = 0;
    write_pages(base, file);
    restored_.serial = {base.head.covered_serial};
    restored_.written_at = time_of(base.head);
    lay_log(base, file);
    store::write_first_headers(file.file(), file.header);
    file.sync();
    storage_.publish(file.file(), planted(Bug::restored_named_early) ? to_ : working_);
    storage_.sync_directory(io::directory_of(to_));
    if (planted(Bug::restored_named_early)) return restored_;
    file = PageFile(nullptr, shape);  // its lock goes with it
    recover();
    if (options_.serial && restored_.serial != *options_.serial) {
        storage_.remove(working_);
        throw Error(errc::not_found, target_.name(),
                    "it can't be restored as of transaction " + std::to_string(options_.serial->value) + ", but as of " +
                        std::to_string(restored_.serial.value) + ": what followed came as pages, not as transactions, or didn't come");
    }
    if (storage_.find(to_)) throw Error(errc::already_exists, to_, "a file came to stand there meanwhile; move it away, and restore again");
    storage_.rename(working_, to_);
    storage_.sync_directory(io::directory_of(to_));
    return restored_;
}

/// What an interrupted call has left.
void Restorer::remove_unfinished() {
    const Uuid heap = Frame(target_, range_.last).heap();
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
    std::vector<Base> bases{base};
    while (bases.back().body.begun.previous != 0) bases.push_back(read_base(bases.back().body.begun.previous));
    file.layout = store::FileLayout(file.header.annex.places);
    file.make_long_enough(file.header.extents());
    for (auto one = bases.rbegin(); one != bases.rend(); ++one) {
        std::uint64_t frames = 0;
        for_each_frame(one->head.begin, one->head.number, [&](const Frame& frame) {
            if (frame.kind() == FrameKind::pages && frame.head().begin == one->head.begin) {
                write_page_frame(frame, file);
                ++frames;
            }
            return true;
        });
        if (frames != one->body.page_frames)
            throw Error(errc::corrupt, target_.name(),
                        "frames of the base that ends with frame " + std::to_string(one->head.number) + " are missing; restore an earlier state");
    }
    std::uint64_t root = 0;
    for (const auto& [index, checksum] : tables_) root += mix(index, checksum);
    if (root != file.header.table_root)
        throw Error(
            errc::corrupt, target_.name(),
            "the pages of the base that ends with frame " + std::to_string(base.head.number) + " don't belong together; restore an earlier state");
}

void Restorer::write_page_frame(const Frame& frame, PageFile& file) {
    const auto table = frame.begin_of_body<TablePage>();
    const Uuid& heap = file.header.heap;
    std::span<const std::byte> images = frame.body().subspan(sizeof table);
    const store::Extents extents = file.header.extents();
    if (!store::is_sound(table, table.index, heap)) frame.throw_corrupt("its page of the checksum table is none");
    if (!store::holds_table(extents, table.index)) return;  // a later base has an annex no more
    const store::TableCover cover = store::cover_of(table.index);
    std::uint64_t count = cover.count;
    while (count != 0 && !extents.hold({cover.first.value + count - 1})) --count;
    for (std::uint64_t i = count; i < cover.count; ++i)
        if (table.entries[i] != 0) frame.throw_corrupt("it has pages behind the heap's end");
    store::for_each_alike(table, count, [&](std::uint64_t i, std::uint64_t run, bool is_zero) {
        const PageNumber first{cover.first.value + i};
        if (is_zero) return file.punch_pages(first, run);
        if (images.size() < run * page_bytes) frame.throw_corrupt("it ends early");
        for (std::uint64_t k = 0; k < run; ++k)
            if (store::page_checksum(images.subspan(k * page_bytes, page_bytes), {first.value + k}, heap) != table.entries[i + k])
                frame.throw_corrupt(store::text_of({first.value + k}) + " has another checksum");
        file.write_pages(first, images.first(run * page_bytes));
        file.start_writing(first, run);
        images = images.subspan(run * page_bytes);
    });
    if (!images.empty()) frame.throw_corrupt("it has more pages than it says");
    file.write_table_page(table);
    if (table.checksum != 0)
        tables_[table.index] = table.checksum;
    else
        tables_.erase(table.index);
}

// ---- transactions

std::vector<std::byte> Restorer::wanted_records(const Frame& frame, Serial& last) const {
    log::Record group;
    group.kind = log::record_transactions;
    group.number = frame.head().first_serial;
    group.payload.assign(frame.body().begin(), frame.body().end());
    std::vector<std::byte> body(sizeof(log::layout::GroupHead));
    log::layout::GroupHead head{};
    const bool is_group = log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte> record) {
        if (serial.value != last.value + 1 || (options_.serial && serial > *options_.serial)) return;
        const log::layout::GroupRecordHead record_head{static_cast<std::uint32_t>(record.size()), 0};
        const auto head_bytes = std::as_bytes(std::span(&record_head, 1));
        body.insert(body.end(), head_bytes.begin(), head_bytes.end());
        body.insert(body.end(), record.begin(), record.end());
        body.resize(round_up(body.size(), 8));
        ++head.records;
        last = serial;
    });
    if (!is_group) frame.throw_corrupt("it holds no transactions");
    if (head.records == 0) return {};
    std::memcpy(body.data(), &head, sizeof head);
    return body;
}

template <class F>
void Restorer::for_each_group(const Base& base, F&& visit) {
    Serial last{base.head.covered_serial};
    for_each_frame(base.head.begin, range_.last, [&](const Frame& frame) {
        if (frame.kind() != FrameKind::records) return true;
        if (!is_wanted(frame.head()) || frame.head().first_serial > last.value + 1) return false;
        const Serial before = last;
        const std::vector<std::byte> body = wanted_records(frame, last);
        if (body.empty()) return !options_.serial || last < *options_.serial;
        visit(frame, Serial{before.value + 1}, last, body);
        return true;
    });
}

void Restorer::lay_log(const Base& base, PageFile& file) {
    ByteCount bytes = 0;
    for_each_group(base, [&](const Frame&, Serial, Serial, const std::vector<std::byte>& body) { bytes += log::Ring::record_bytes(body.size()); });
    if (bytes == 0) return;
    log::RingIdentity identity{random_uuid(), file.header.heap, round_up(std::max<ByteCount>(bytes, 64_KiB), page_bytes), false};
    const std::filesystem::path path = with(working_, ".log");
    const std::shared_ptr<io::File> log = storage_.create_unnamed(io::directory_of(path));
    store::lock_new(*log);
    log::Ring::format(*log, identity);
    log->prepare_durable();
    const log::RingStart start = store::fresh_start();
    log::Ring ring(log, identity, start, start.position);
    for_each_group(base, [&](const Frame& frame, Serial first, Serial last, const std::vector<std::byte>& body) {
        const std::array pieces{std::span<const std::byte>(body)};
        ring.append(log::record_transactions, first.value, pieces);
        restored_.serial = last;
        restored_.written_at = time_of(frame.head());
        restored_.transactions += last.value - first.value + 1;
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
    const auto heap = store::HeapFile::open(storage_, working_, store::OpenMode::open_only, HeapKind::archive, options);
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
