#include "logheap/object_log.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/epochs.hpp"
#include "base/pause.hpp"
#include "base/planted.hpp"

namespace taiyen::logheap {

using layout::OperationKind;
using layout::RecordHead;

namespace {

LogHeapOptions checked(const LogHeapOptions& given, const std::filesystem::path& path) {
    LogHeapOptions options = given;
    if (!(options.utilisation > 0) || options.utilisation > 0.95)
        throw Error(errc::invalid_argument, path, "utilisation must lie above 0 and be 0.95 at most: cleaning needs room to move values to");
    return options;
}

std::filesystem::path ring_path_of(const std::filesystem::path& path, const LogHeapOptions& options) {
    if (!options.log_file.empty()) return options.log_file;
    std::filesystem::path ring = path;
    return ring += ".log";
}

}  // namespace

std::unique_ptr<ObjectLog> ObjectLog::open(io::Storage& storage, const std::filesystem::path& path, const LogHeapOptions& given, Opening opening,
                                           ByteCount memory) {
    const LogHeapOptions options = checked(given, path);
    const std::filesystem::path ring = ring_path_of(path, options);
    const bool makes = opening == Opening::create || (opening == Opening::open_or_create && !storage.find(path));
    const bool writes = opening != Opening::read_only;
    LogFiles files = makes ? LogFiles::create(storage, path, ring, options)
                           : LogFiles::open(storage, path, ring, writes ? io::Access::read_write : io::Access::read_only);
    std::unique_ptr<ObjectLog> made(new ObjectLog(std::move(files), options, writes, memory));
    made->recover();
    if (writes) {
        made->files_.end_creation(storage);
        made->start_log();
    }
    return made;
}

ObjectLog::ObjectLog(LogFiles files, const LogHeapOptions& options, bool writes, ByteCount memory)
    : options_(options), writes_(writes), files_(std::move(files)), segments_(std::make_unique<Segment[]>(files_.segments() + 1)),
      usable_memory_(memory) {
    std::memcpy(&seed_, files_.header().heap, sizeof seed_);
    free_ = files_.segments();
    const ByteCount bytes = files_.segments() * files_.segment_bytes();
    memory_ = vm::Reservation::anywhere(bytes + vm::large_step);
    first_segment_ = memory_.data() +
                     (round_up(reinterpret_cast<std::uintptr_t>(memory_.data()), vm::large_step) - reinterpret_cast<std::uintptr_t>(memory_.data()));
    files_.values().map_private(first_segment_, bytes, layout::segments_begin, io::Protection::read);
}

void ObjectLog::map_file(std::uint32_t segment, std::uint64_t units) const {
    const ByteCount bytes = units * files_.segment_bytes();
    files_.values().map_private(memory_of(segment), bytes, files_.offset_of(segment), io::Protection::read);
    if (reads_alone_) vm::set_readahead(memory_of(segment), bytes, false);
}

/// Once the heap takes more than half of the memory that the process may have: what comes in with a page would make others leave. It stays so: the same heap doesn't go back and forth.
void ObjectLog::choose_read_ahead() noexcept {
    if (reads_alone_ || (files_.segments() - free_) * files_.segment_bytes() <= usable_memory_ / 2) return;
    reads_alone_ = true;  // first: what is mapped from now on is mapped so
    vm::set_readahead(first_segment_, files_.segments() * files_.segment_bytes(), false);
}

/// All of a segment, for a pass over it.
void ObjectLog::will_read(std::uint32_t segment) const noexcept {
    if (reads_alone_) vm::will_read(memory_of(segment), segments_[segment].end);
}

ObjectLog::~ObjectLog() {
    stop_keeper();
    if (has_views()) memory_.leak();  // they look at it still
}

// Reading.

const RecordHead& ObjectLog::head_at(Place place) const { return *reinterpret_cast<const RecordHead*>(memory_of(place.segment()) + place.offset()); }

std::span<const std::byte> ObjectLog::bytes_at(Place place) const {
    const std::byte* const record = memory_of(place.segment()) + place.offset();
    const RecordHead& head = head_at(place);
    if (place.is_large()) {
        const auto& segment = *reinterpret_cast<const layout::SegmentHead*>(memory_of(place.segment()));
        const std::uint64_t room = segments_[place.segment()].units * files_.segment_bytes() - place.offset() - sizeof(RecordHead);
        return {record + sizeof(RecordHead), std::min(segment.large_bytes, room)};
    }
    return {record + sizeof(RecordHead),
            std::min<std::uint64_t>(head.length & ~(layout::record_removes | layout::record_is_large), place.bytes() - sizeof(RecordHead))};
}

std::uint32_t ObjectLog::check_of(std::uint32_t segment, std::uint64_t offset, const RecordHead& head, std::span<const std::byte> bytes) const {
    const std::uint64_t birth = segments_[segment].birth.load(std::memory_order_relaxed);
    const std::uint64_t seed = mix(mix(seed_, birth), std::uint64_t{segment} << 32U | offset);
    const std::span<const std::byte> rest{reinterpret_cast<const std::byte*>(&head) + sizeof head.check, sizeof head - sizeof head.check};
    return static_cast<std::uint32_t>(checksum(bytes, checksum(rest, seed)));
}

bool ObjectLog::is_sound(std::uint32_t segment, std::uint64_t offset, const RecordHead& head, std::span<const std::byte> bytes) const {
    return check_of(segment, offset, head, bytes) == head.check;
}

LogView ObjectLog::get(LogHandle handle) const {
    if (handle.id == LogId::none) return {};
    const auto id = static_cast<std::uint64_t>(handle.id);
    Place place;
    {
        const EpochGuard guard;
        for (;;) {
            place = index_.find(id);
            if (!place) return {};
            segments_[place.segment()].pins.fetch_add(1);
            // Who frees a segment changes the index first and looks at the pins afterwards: either it sees ours, or we see the change.
            if (index_.find(id) == place) break;
            segments_[place.segment()].pins.fetch_sub(1);
        }
    }
    views_.fetch_add(1, std::memory_order_relaxed);
    LogView view;
    view.log_ = this;
    view.segment_ = place.segment();
    const RecordHead& head = head_at(place);
    view.bytes_ = bytes_at(place);
    view.handle_ = {handle.id, {head.born}};
    view.version_ = {head.version};
    if (head.id != id || (options_.checks_reads && !is_sound(place.segment(), place.offset(), head, view.bytes_))) throw_damaged(id, place);
    if (handle.born.value != 0 && handle.born.value != head.born) return {};
    return view;
}

void ObjectLog::unpin(std::uint32_t segment) const noexcept {
    segments_[segment].pins.fetch_sub(1, std::memory_order_release);
    views_.fetch_sub(1, std::memory_order_release);
}

/// Calls `f(id)`, in no guard, for each that is there; by then it may be gone.
template <class F>
void ObjectLog::for_each_id(std::uint64_t first, F&& f) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ids;  // as they lie: what memory doesn't hold is read in one direction
    std::exception_ptr unreadable;
    for (std::size_t shard = 0; shard < IdIndex::shard_count; ++shard) {
        ids.clear();
        try {
            const EpochGuard guard;
            index_.for_each_in(shard, [&](std::uint64_t id, Place place, std::uint64_t) {
                if (id >= first) ids.emplace_back(place.word, id);
            });
        } catch (const Error&) {  // the others are told all the same
            unreadable = std::current_exception();
        }
        std::sort(ids.begin(), ids.end());
        for (const auto& [place, id] : ids) f(id);
    }
    if (unreadable) std::rethrow_exception(unreadable);
}

void ObjectLog::for_each(const std::function<void(const LogView&)>& f, LogId first) const {
    for_each_id(static_cast<std::uint64_t>(first), [&](std::uint64_t id) {
        if (const LogView view = get(LogId{id})) f(view);
    });
}

LogVerification ObjectLog::verify() const {
    LogVerification found;
    for_each_id(0, [&](std::uint64_t id) {
        try {
            const LogView view = get(LogId{id});
            if (!view) return;
            const RecordHead& head = *reinterpret_cast<const RecordHead*>(view.bytes().data() - sizeof(RecordHead));
            const auto offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&head) - memory_of(view.segment_));
            if (!is_sound(view.segment_, offset, head, view.bytes()))
                throw Error(errc::corrupt, path(), files_.offset_of(view.segment_) + offset, "the value is damaged");
            ++found.values;
            found.bytes += view.bytes().size();
        } catch (const Error& error) {
            if (static_cast<errc>(error.code().value()) != errc::corrupt) throw;
            found.damaged.push_back({LogId{id}, error.offset()});
        }
    });
    return found;
}

/// Whether the handle means what has its id, and that is of that version; 0: of any.
bool ObjectLog::is_there(LogHandle handle, Serial expected) const {
    const auto id = static_cast<std::uint64_t>(handle.id);
    const std::uint64_t born = index_.born(id);
    if (born == 0 || (handle.born.value != 0 && handle.born.value != born)) return false;
    return expected.value == 0 || expected.value == version_of(id);
}

/// Of what is there. Throws: Error{corrupt}.
std::uint64_t ObjectLog::version_of(std::uint64_t id) const {
    const Place place = index_.find(id);
    const RecordHead& head = head_at(place);
    if (head.id != id || !is_sound(place.segment(), place.offset(), head, bytes_at(place))) throw_damaged(id, place);
    return head.version;
}

void ObjectLog::throw_damaged(std::uint64_t id, Place place) const {
    throw Error(errc::corrupt, path(), files_.offset_of(place.segment()) + place.offset(),
                "the value " + std::to_string(id) + " is damaged; restore the file from a copy, or remove the value");
}

// Writing.

std::unique_lock<std::mutex> ObjectLog::lock_for_writing() {
    std::unique_lock lock(writer_, std::try_to_lock);
    for (int i = 0; i < spins && !lock; ++i) {  // whoever has it holds it for a moment mostly
        pause_processor();
        lock.try_lock();
    }
    if (!lock) lock.lock();
    if (!writes_) throw Error(errc::read_only, path(), "the heap was opened for reading; open it for writing to change it");
    if (is_index_damaged_)  // no image can be written any more, so each operation would be one more that is found only beside a sound index
        throw Error(errc::corrupt, path(), files_.image_offset(files_.header().image_place),
                    "the image of the index is damaged, so nothing can be changed; restore the file from a copy, or open it read-only and copy what "
                    "can be read");
    if (is_poisoned_) throw Error(errc::poisoned, path(), "an earlier write failed (" + failure_ + "); close the heap and open it again");
    return lock;
}

void ObjectLog::poison(const char* what, const std::exception& error) noexcept {
    is_poisoned_ = true;
    try {
        failure_ = std::string(what) + ": " + error.what();
    } catch (const std::bad_alloc&) {  // poisoned for a reason that nobody hears
    }
}

std::uint64_t ObjectLog::limit() const {
    const std::uint64_t room = files_.segment_bytes() - sizeof(layout::SegmentHead);
    const auto share = static_cast<std::uint64_t>(options_.utilisation * static_cast<double>(files_.segments() * room));
    // Besides the reserve and both open segments, cleaning needs some that are not full.
    return std::min(share, (files_.segments() - reserve - 2 - files_.segments() / 32) * room);
}

std::uint64_t ObjectLog::checkpoint_bytes() const {
    if (options_.checkpoint_bytes != 0) return options_.checkpoint_bytes;
    return std::min<std::uint64_t>(files_.segments() * files_.segment_bytes() / 8, 1_GiB);
}

std::uint64_t ObjectLog::pinned_segments() const {
    std::uint64_t pinned = 0;
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) pinned += segments_[n].pins.load(std::memory_order_relaxed) != 0 ? 1U : 0U;
    return pinned;
}

/// Throws: HeapFull{disk}.
void ObjectLog::ensure_image_room(std::uint64_t more_ids) {
    const std::uint64_t ids = index_.size() + more_ids;
    const std::uint64_t wanted =
        (ids + ids / 16) * sizeof(layout::ImageCell) + files_.segments() * sizeof(layout::ImageSegment) + sizeof(layout::ImageFoot);
    try {
        files_.allocate_images(wanted);
    } catch (const Error& error) {
        if (static_cast<errc>(error.code().value()) != errc::no_space) throw;
        throw HeapFull(wanted, 0, HeapFull::Cause::disk, path().string());
    }
}

void ObjectLog::refuse_beyond_limit(std::uint64_t more, std::uint64_t less, std::uint64_t wanted) const {
    if (live_ - less + more <= limit()) return;
    throw HeapFull(wanted, limit() > live_ ? limit() - live_ : 0, HeapFull::Cause::values, path().string());
}

LogHandle ObjectLog::give_id() {
    while (index_.find(next_id_)) ++next_id_;
    if (next_id_ >= files_.header().next_id) flush();
    return LogId{next_id_++};
}

void ObjectLog::wait_if_sync(Serial serial) const {
    if (options_.durability == Durability::sync && !planted(Bug::log_heap_acknowledged_early)) log_->wait_durable(serial);
}

LogHandle ObjectLog::put(std::span<const std::byte> bytes) {
    LogHandle handle;
    {
        const auto lock = lock_for_writing();
        handle = give_id();
        Operation operation{OperationKind::put, static_cast<std::uint64_t>(handle.id), bytes};
        handle.born = write({&operation, 1});
    }
    wait_if_sync(handle.born);
    return handle;
}

void ObjectLog::refuse_none(LogId id) const {
    if (id == LogId::none) throw Error(errc::invalid_argument, path(), "LogId::none is no id; choose another one");
}

LogHandle ObjectLog::put_as(LogId id, std::span<const std::byte> bytes) {
    refuse_none(id);
    Serial serial;
    LogHandle handle = id;
    {
        const auto lock = lock_for_writing();
        Operation operation{OperationKind::put, static_cast<std::uint64_t>(id), bytes};
        operation.born = index_.born(operation.id);
        serial = write({&operation, 1});
        handle.born = {operation.born};
    }
    wait_if_sync(serial);
    return handle;
}

std::optional<LogHandle> ObjectLog::insert(LogId id, std::span<const std::byte> bytes) {
    refuse_none(id);
    Serial serial;
    {
        const auto lock = lock_for_writing();
        Operation operation{OperationKind::put, static_cast<std::uint64_t>(id), bytes};
        if (index_.born(operation.id) != 0) return std::nullopt;
        serial = write({&operation, 1});
    }
    wait_if_sync(serial);
    return LogHandle(id, serial);
}

bool ObjectLog::update(LogHandle handle, Serial expected, std::span<const std::byte> bytes) {
    Serial serial;
    {
        const auto lock = lock_for_writing();
        const auto id = static_cast<std::uint64_t>(handle.id);
        if (!is_there(handle, expected)) return false;
        Operation operation{OperationKind::put, id, bytes, index_.born(id)};
        serial = write({&operation, 1});
    }
    wait_if_sync(serial);
    return true;
}

bool ObjectLog::remove(LogHandle handle, Serial expected) {
    Serial serial;
    {
        const auto lock = lock_for_writing();
        if (!is_there(handle, expected)) return false;
        Operation operation{OperationKind::remove, static_cast<std::uint64_t>(handle.id), {}};
        serial = write({&operation, 1});
    }
    wait_if_sync(serial);
    return true;
}

Serial ObjectLog::commit(const LogBatch& batch) {
    Serial serial;
    {
        const auto lock = lock_for_writing();
        std::vector<Operation> operations;
        std::vector<std::size_t> order(batch.operations_.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return std::pair(batch.operations_[a].id, a) < std::pair(batch.operations_[b].id, b); });
        for (std::size_t i = 0; i < order.size(); ++i) {
            const LogBatch::Operation& of = batch.operations_[order[i]];
            if (i + 1 < order.size() && batch.operations_[order[i + 1]].id == of.id) continue;  // a later one counts
            const std::uint64_t born = index_.born(static_cast<std::uint64_t>(of.id));
            if (of.removes && born == 0) continue;
            operations.push_back({of.removes ? OperationKind::remove : OperationKind::put, static_cast<std::uint64_t>(of.id),
                                  std::span(batch.bytes_).subspan(of.begin, of.length), born});
        }
        // What happened already, others may wait for still.
        serial = operations.empty() ? Serial{serial_} : write(operations);
    }
    wait_if_sync(serial);
    return serial;
}

/// Requires: the lock. Sets what was born. Nothing is changed if it throws anything but what poisons.
Serial ObjectLog::write(std::span<Operation> operations) {
    const std::uint64_t room = files_.segment_bytes() - sizeof(layout::SegmentHead);
    std::uint64_t more = 0;
    std::uint64_t less = 0;
    std::uint64_t ring_bytes = 0;
    std::uint64_t new_ids = 0;
    std::uint64_t old_ids = 0;  // that go
    bool only_removes = true;
    for (const Operation& operation : operations) {
        const Place before = index_.find(operation.id);
        if (before) less += live_bytes_at(before);
        if (operation.kind == OperationKind::remove)
            old_ids += before ? 1 : 0;
        else
            new_ids += before ? 0 : 1;
        ring_bytes += sizeof(layout::OperationHead) + sizeof(layout::LargePlace);
        if (operation.kind == OperationKind::remove) continue;
        only_removes = false;
        const std::uint64_t record = layout::record_bytes(operation.bytes.size());
        more += record <= room ? record : round_up(record + sizeof(layout::SegmentHead), files_.segment_bytes());
        if (record <= room) ring_bytes += round_up(operation.bytes.size(), 8);
    }
    // The old value goes only when the new one is durable, so both have room; what becomes smaller always finds some.
    if (!only_removes && more > less) refuse_beyond_limit(more, less, more);
    if (!log_->fits(ring_bytes)) {
        throw Error(errc::invalid_argument, path(),
                    "a batch of " + std::to_string(ring_bytes) +
                        " bytes doesn't fit into half of the ring; make it smaller, or create the heap with a larger log_capacity");
    }
    std::uint64_t small = 0;
    for (const Operation& operation : operations) {
        const std::uint64_t record = layout::record_bytes(operation.bytes.size());
        if (record <= room) small += record;
    }
    // Of two records that follow each other in different segments, one segment is half full at least.
    const std::uint64_t segments = 2 * small / room + 2;
    const auto is_large = [&](const Operation& operation) {
        return operation.kind == OperationKind::put && layout::record_bytes(operation.bytes.size()) > room;
    };
    const auto runs = static_cast<std::size_t>(std::count_if(operations.begin(), operations.end(), is_large));
    if (segments + runs > layout::tail_max / 2)
        throw Error(errc::invalid_argument, path(), "a batch of " + std::to_string(small) + " bytes takes too many segments; make it smaller");
    std::array<std::uint64_t, IdIndex::shard_count> ids{};
    for (const Operation& operation : operations) ++ids[IdIndex::shard_of(operation.id)];
    // An image must always find room, or the tail would grow until nothing can be written.
    if (new_ids > old_ids) ensure_image_room(new_ids);
    for (std::size_t shard = 0; shard < ids.size(); ++shard)
        if (ids[shard] != 0) index_.prepare(shard, ids[shard]);
    const bool must = tail_.size() + segments + runs + tail_room > layout::tail_max;
    // A thread of ours writes images in time, unless it can't keep up.
    if (must || since_checkpoint_ / (keeper_.joinable() ? 2 : 1) >= checkpoint_bytes()) {
        if (must)
            checkpoint_now(false);
        else if (!try_checkpoint())
            since_checkpoint_ = 0;  // opening reads more meanwhile
    }

    const std::uint64_t serial = serial_ + 1;
    try {
        for (Operation& operation : operations) {
            if (operation.kind != OperationKind::put) continue;
            if (operation.born == 0) operation.born = serial;
            if (!is_large(operation)) continue;
            operation.run = write_large(operation.bytes, operation.id, serial, operation.born);
            operation.kind = OperationKind::large;
        }
        // Nothing fails for want of room from the record on.
        if (small <= room) {
            ensure_room(hot_, small, only_removes || (runs == 0 && more <= less) ? Reason::removal : Reason::value);
        } else {
            finish_ahead();  // which takes segments itself
            ensure_free(reserve + segments, only_removes ? segments : reserve + segments, small);
        }
        if (tail_.size() + segments + runs + 4 > layout::tail_max) checkpoint_now(false);  // cleaning made it longer
        append(serial, operations);
    } catch (...) {
        for (const Operation& operation : operations)
            if (operation.run) make_free(operation.run.segment());
        throw;
    }
    serial_ = serial;
    durable_step("filling segments", [&] {
        for (const Operation& operation : operations) apply(operation, serial);
    });
    return {serial};
}

void ObjectLog::append(std::uint64_t serial, std::span<const Operation> operations) {
    static constexpr std::array<std::byte, 8> zeros{};
    std::vector<layout::OperationHead> heads(operations.size());
    std::vector<layout::LargePlace> places(operations.size());
    std::vector<std::span<const std::byte>> pieces;
    pieces.reserve(operations.size() * 3);
    for (std::size_t i = 0; i < operations.size(); ++i) {
        const Operation& operation = operations[i];
        heads[i] = {operation.kind, 0, operation.id, operation.born, operation.bytes.size()};
        pieces.push_back(layout::bytes_of(heads[i]));
        if (operation.kind == OperationKind::large) {
            places[i] = {operation.run.segment(), segments_[operation.run.segment()].birth.load()};
            pieces.push_back(layout::bytes_of(places[i]));
        } else if (operation.kind == OperationKind::put) {
            pieces.push_back(operation.bytes);
            pieces.push_back(std::span(zeros).first(round_up(operation.bytes.size(), 8) - operation.bytes.size()));
        }
    }
    if (log_->try_append({serial}, pieces)) return;
    flush();
    const bool fits = log_->try_append({serial}, pieces);
    TAIYEN_CHECK(fits);  // the ring is empty, and a record takes half of it at most
}

/// What was appended happens in memory. Doesn't throw but for what poisons.
void ObjectLog::apply(const Operation& operation, std::uint64_t serial) {
    if (operation.kind == OperationKind::remove) {
        ensure_room(hot_, sizeof(RecordHead), Reason::cleaning);
        place_record(hot_, {0, layout::record_removes, operation.id, serial, 0}, {});
        if (const Place before = index_.erase(operation.id)) kill(before, serial);
        return;
    }
    Place place = operation.run;
    if (operation.kind == OperationKind::put) {
        ensure_room(hot_, layout::record_bytes(operation.bytes.size()), Reason::cleaning);
        place = place_record(hot_, {0, static_cast<std::uint32_t>(operation.bytes.size()), operation.id, serial, operation.born}, operation.bytes);
    }
    if (operation.run) {
        tail_.push_back({place.segment(), sizeof(layout::SegmentHead), segments_[place.segment()].end});
        counts_.put_bytes += layout::record_bytes(operation.bytes.size());
    }
    live_ += live_bytes_at(place);
    segments_[place.segment()].live += live_bytes_at(place);
    if (const Place before = index_.set(operation.id, place, operation.born)) kill(before, serial);
}

// Durability.

Serial ObjectLog::last_durable() const { return log_ ? log_->durable() : Serial{serial_}; }

void ObjectLog::wait_durable(Serial serial) const {
    if (!log_) {
        if (serial.value > serial_) throw Error(errc::invalid_argument, path(), "there is no such operation yet");
        return;
    }
    if (serial > log_->appended()) throw Error(errc::invalid_argument, path(), "there is no such operation yet");
    log_->wait_durable(serial);
}

void ObjectLog::checkpoint() {
    const auto lock = lock_for_writing();
    checkpoint_now(false);
}

void ObjectLog::close() {
    stop_keeper();
    if (!writes_ || is_over_ || is_poisoned_) {
        if (log_) log_->stop();
        return;
    }
    const std::lock_guard lock(writer_);
    checkpoint_now(true);  // beside a damaged index, too, if nothing has changed
    log_->stop();
    is_over_ = true;
}

LogHeapStats ObjectLog::stats() const {
    const std::lock_guard lock(writer_);
    LogHeapStats stats = counts_;
    stats.values = index_.size();
    stats.live_bytes = live_;
    stats.segment_bytes = files_.segment_bytes();
    stats.segments = files_.segments();
    stats.free_segments = free_;
    stats.pinned_segments = pinned_segments();
    stats.views = views_.load();
    stats.index_bytes = index_.bytes();
    stats.appended = {serial_};
    stats.durable = last_durable();
    return stats;
}

std::vector<LogSegment> ObjectLog::segments() const {
    const std::lock_guard lock(writer_);
    std::vector<LogSegment> all;
    // An opening knows of segments in use; what others hold of earlier lives shows in the file.
    const std::vector<io::File::Extent> data = files_.values().data_extents(layout::segments_begin, files_.segments() * files_.segment_bytes());
    auto extent = data.begin();
    for (std::uint64_t n = 1; n <= files_.segments(); n += segments_[n].units) {
        const Segment& segment = segments_[n];
        LogSegment& told = all.emplace_back();
        told.number = n;
        told.offset = files_.offset_of(n);
        told.bytes = segment.units * files_.segment_bytes();
        while (extent != data.end() && extent->offset + extent->length <= told.offset) ++extent;
        told.has_blocks = segment.is_allocated || (extent != data.end() && extent->offset < told.offset + told.bytes);
        if (segment.use == Use::free) continue;
        const auto kind = segment.kind;
        told.kind = kind == layout::SegmentKind::hot    ? LogSegment::Kind::hot
                    : kind == layout::SegmentKind::cold ? LogSegment::Kind::cold
                                                        : LogSegment::Kind::large;
        told.filled_bytes = kind == layout::SegmentKind::large ? told.bytes : segment.end - sizeof(layout::SegmentHead);
        told.live_bytes = segment.live;
        told.age = serial_ - std::min(serial_, segment.filled_at);
        told.views = segment.pins.load(std::memory_order_relaxed);
    }
    return all;
}

}  // namespace taiyen::logheap
