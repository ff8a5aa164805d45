// Segments: taken, filled, written, sealed, freed; runs of them.

#include <algorithm>
#include <cstring>

#include <taiyen/base/check.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "base/sanitizers.hpp"
#include "logheap/object_log.hpp"

namespace taiyen::logheap {

using layout::bytes_of;
using layout::RecordHead;
using layout::SegmentHead;
using layout::SegmentKind;

/// The lowest run of segments that can be taken, so that the file takes no more than it needs; a single one has blocks already if any has. 0: there is none.
/// Complexity: linear in the segments behind the lowest free one.
std::uint32_t ObjectLog::find_free(std::uint64_t units) {
    const bool needs_blocks = units == 1 ? free_allocated_ != 0 : is_disk_full_;
    bool has_seen_free = false;
    std::uint64_t run = 0;
    for (std::uint64_t n = lowest_free_; n <= files_.segments(); ++n) {
        const bool is_free = segments_[n].use == Use::free;
        if (is_free && !has_seen_free) lowest_free_ = n;
        has_seen_free = has_seen_free || is_free;
        run = is_free && !is_kept(n) && (segments_[n].is_allocated || !needs_blocks) ? run + 1 : 0;
        if (run == units) return static_cast<std::uint32_t>(n + 1 - units);
    }
    return 0;
}

/// Disk blocks for a free segment. False: the disk is full.
bool ObjectLog::allocate(std::uint64_t segment) {
    if (segments_[segment].is_allocated) return true;
    try {
        if (writes_) files_.values().allocate(files_.offset_of(segment), files_.segment_bytes());
    } catch (const Error& error) {
        if (static_cast<errc>(error.code().value()) != errc::no_space) throw;
        return false;
    }
    segments_[segment].is_allocated = true;
    ++free_allocated_;
    return true;
}

/// So many free segments have blocks, if the disk has room: what fills them can't run out of it.
void ObjectLog::allocate_ahead(std::uint64_t count) {
    if (free_allocated_ >= std::min(count, free_)) return;
    const bool was_full = is_disk_full_;
    is_disk_full_ = false;
    for (std::uint64_t n = lowest_free_; n <= files_.segments() && free_allocated_ < count; ++n) {
        if (segments_[n].use != Use::free || allocate(n)) continue;
        is_disk_full_ = true;
        if (was_full) return;  // else others are tried, too: an earlier life of the heap may have given them blocks
    }
    is_disk_full_ = is_disk_full_ && free_allocated_ < count;
}

/// They have blocks, and every operation that made what lay there dead is durable. Throws: HeapFull{disk}.
void ObjectLog::make_reusable(std::uint32_t segment, std::uint64_t units) {
    for (std::uint64_t n = segment; n < segment + units; ++n) {
        if (!allocate(n)) {
            is_disk_full_ = true;
            throw HeapFull(files_.segment_bytes(), 0, HeapFull::Cause::disk, path().string());
        }
        if (log_ && log_->durable().value < segments_[n].reusable_from)
            durable_step("writing the ring", [&] { log_->wait_durable({segments_[n].reusable_from}); });
    }
}

void ObjectLog::begin_segment(std::uint32_t number, SegmentKind kind, std::uint32_t units, std::uint64_t large_bytes, std::byte* at) {
    Segment& segment = segments_[number];
    const std::uint64_t birth = next_birth_++;
    segment.birth.store(birth, std::memory_order_relaxed);
    segment.kind = kind;
    segment.units = units;
    segment.live = 0;
    segment.end = sizeof(SegmentHead);
    segment.filled_at = serial_;
    segment.in_tail = true;
    segment.is_emptied = segment.is_damaged = false;
    free_ -= units;
    free_allocated_ -= units;
    choose_read_ahead();
    ask_keeper();
    SegmentHead head{layout::segment_magic, {}, number, kind, birth, large_bytes, 0, 0};
    std::copy_n(files_.header().heap, 16, head.heap);
    head.checksum = checksum(bytes_of(head).first(offsetof(SegmentHead, checksum)), 0);
    std::memcpy(at, &head, sizeof head);
}

void ObjectLog::take(Open& open) {
    const std::uint32_t number = find_free(1);
    if (number == 0) throw_full(files_.segment_bytes());
    make_reusable(number, 1);
    vm::map_anonymous(memory_of(number), files_.segment_bytes());
    vm::prefer_huge_pages(memory_of(number), files_.segment_bytes());
    begin_segment(number, open.kind, 1, 0, memory_of(number));
    segments_[number].use = Use::open;
    open = {open.kind, number, sizeof(SegmentHead), 0, sizeof(SegmentHead)};
}

void ObjectLog::ensure_room(Open& open, std::uint64_t bytes, Reason reason) {
    if (open.number != 0 && open.end + bytes <= files_.segment_bytes()) return;
    // Puts leave a reserve: for removals, and for cleaning, without which nothing would ever be won.
    if (reason == Reason::value) ensure_free(reserve + 1, reserve + 1, bytes);
    if (reason == Reason::removal) ensure_free(reserve, 2, bytes);
    if (open.number != 0 && open.end + bytes <= files_.segment_bytes()) return;  // cleaning wrote a checkpoint meanwhile, and the like
    if (open.number != 0) seal(open);
    take(open);
}

/// Into memory that nobody looks at yet.
void ObjectLog::write_record(std::uint32_t number, std::uint64_t offset, RecordHead head, std::span<const std::byte> bytes) const {
    TAIYEN_CHECK(offset + sizeof head + bytes.size() <= files_.segment_bytes());
    std::byte* const at = memory_of(number) + offset;
    if (!bytes.empty()) std::memcpy(at + sizeof head, bytes.data(), bytes.size());
    head.check = check_of(number, offset, head, {at + sizeof head, bytes.size()});
    std::memcpy(at, &head, sizeof head);
}

/// Records were written up to there.
void ObjectLog::grow_open(Open& open, std::uint64_t end) {
    const std::uint64_t grown = end - open.end;
    open.end = end;
    Segment& segment = segments_[open.number];
    segment.end = static_cast<std::uint32_t>(end);
    segment.filled_at = serial_;
    (open.kind == SegmentKind::cold ? counts_.moved_bytes : counts_.put_bytes) += grown;
    since_checkpoint_ += grown;
}

Place ObjectLog::place_record(Open& open, const RecordHead& head, std::span<const std::byte> bytes) {
    const std::uint64_t offset = open.end;
    const std::uint64_t length = layout::record_bytes(bytes.size());
    TAIYEN_CHECK(open.number != 0);
    write_record(open.number, offset, head, bytes);
    grow_open(open, offset + length);
    return Place::at(open.number, offset, length);
}

/// What the file lacks of it.
void ObjectLog::write_open(Open& open) {
    if (open.number == 0 || open.written == open.end || !writes_) return;
    const std::uint64_t from = round_down(open.written, page_bytes);
    const std::uint64_t to = round_up(open.end, page_bytes);
    files_.values().write({memory_of(open.number) + from, to - from}, files_.offset_of(open.number) + from);
    files_.values().start_writing(files_.offset_of(open.number) + from, to - from);
    open.written = open.end;
}

void ObjectLog::seal(Open& open) {
    if (tail_.size() == tail_.capacity()) tail_.reserve(2 * tail_.size() + 16);  // before anything changes
    durable_step("writing a segment", [&] {
        write_open(open);
#if !defined(TAIYEN_THREAD_SANITIZER)  // which takes a mapping for a write; those who look there see the same bytes
        if (writes_) map_file(open.number, 1);
#endif
    });
    Segment& segment = segments_[open.number];
    segment.use = Use::sealed;
    segment.in_tail = open.end > open.from;
    const std::uint32_t number = open.number;
    if (segment.in_tail) tail_.push_back({number, static_cast<std::uint32_t>(open.from), static_cast<std::uint32_t>(open.end)});
    open = {open.kind};
    free_if_dead(number, serial_);
}

void ObjectLog::kill(Place place, std::uint64_t serial) {
    Segment& segment = segments_[place.segment()];
    const std::uint64_t bytes = live_bytes_at(place);
    if (segment.live < bytes) {  // the image said less than its cells do, which are read later: it counts as full, so it stays as it is
        const std::uint64_t full = std::max(bytes, segment.units * files_.segment_bytes());
        live_ += full - segment.live;
        segment.live = full;
    }
    segment.live -= bytes;
    live_ -= bytes;
    free_if_dead(place.segment(), serial);
}

void ObjectLog::free_if_dead(std::uint32_t number, std::uint64_t serial) {
    Segment& segment = segments_[number];
    if (segment.use != Use::sealed || segment.live != 0) return;
    segment.reusable_from = std::max(segment.reusable_from, serial);
    if (segment.is_victim || segment.is_emptied || (segment.in_tail && !planted(Bug::log_heap_tail_is_freed))) return;
    make_free(number);
}

/// Once no view looks at it. Whoever pins it from now on sees by a second look at the index that nothing is there.
void ObjectLog::make_free(std::uint32_t number) noexcept {
    if (segments_[number].pins.load() != 0) {
        segments_[number].use = Use::pinned;
        segments_[number].in_tail = segments_[number].is_emptied = false;
        has_pinned_ = true;
        return;
    }
    const std::uint32_t units = segments_[number].units;
    const std::uint64_t from = segments_[number].reusable_from;
    for (std::uint32_t n = number; n < number + units; ++n) {
        Segment& segment = segments_[n];
        segment.use = Use::free;
        segment.units = 1;
        segment.in_tail = segment.is_emptied = false;
        segment.reusable_from = from;
    }
    free_ += units;
    free_allocated_ += units;  // whoever took them gave them blocks
    lowest_free_ = std::min<std::uint64_t>(lowest_free_, number);
}

/// Those that views let go meanwhile.
void ObjectLog::free_unpinned() {
    if (!has_pinned_) return;
    has_pinned_ = false;
    for (std::uint32_t n = 1; n <= files_.segments(); ++n)
        if (segments_[n].use == Use::pinned) make_free(n);
}

void ObjectLog::throw_full(std::uint64_t wanted_bytes) const {
    throw HeapFull(wanted_bytes, 0, is_disk_full_ ? HeapFull::Cause::disk : HeapFull::Cause::values, path().string());
}

std::uint32_t ObjectLog::take_run(std::uint64_t units) {
    const auto take_one = [&]() -> std::uint32_t {
        const std::uint32_t number = find_free(units);
        try {
            if (number != 0) make_reusable(number, units);
            return number;
        } catch (const HeapFull&) {
            return 0;
        }
    };
    const bool was_full = is_disk_full_;
    if (const std::uint32_t number = take_one()) return number;
    if (!is_disk_full_) return 0;
    is_disk_full_ = !was_full;  // what was known of the disk may be old: it has room again, or none any more
    const std::uint32_t number = take_one();
    is_disk_full_ = is_disk_full_ || number == 0;
    return number;
}

/// The bytes are durable on return, and no record says so yet.
Place ObjectLog::write_large(std::span<const std::byte> bytes, std::uint64_t id, std::uint64_t version, std::uint64_t born) {
    const std::uint64_t units = units_of_run(bytes.size());
    finish_ahead();
    ensure_free(reserve + units, reserve + units, bytes.size());
    std::uint32_t number = take_run(units);
    for (int i = 0; (number == 0 || available() < reserve + units) && i < 8; ++i) {  // there is room, but not in one piece
        if (!clean_run(units)) {
            if (pinned_segments() == 0) break;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        if (available() < reserve + units) ensure_free(reserve + units, 0, 0);
        free_unpinned();
        number = take_run(units);
    }
    if (number == 0 || available() < reserve + units) throw_full(bytes.size());
    map_file(number, units);
    const AlignedBuffer first(page_bytes);
    std::memset(first.data(), 0, first.size());
    begin_segment(number, SegmentKind::large, static_cast<std::uint32_t>(units), bytes.size(), first.data());
    for (std::uint64_t n = number + 1; n < number + units; ++n) segments_[n].use = Use::part;
    Segment& segment = segments_[number];
    segment.use = Use::sealed;
    segment.filled_at = version;
    segment.end = sizeof(SegmentHead) + sizeof(RecordHead);
    RecordHead head{0, layout::record_is_large, id, version, born};
    head.check = check_of(number, sizeof(SegmentHead), head, bytes);
    std::memcpy(first.data() + sizeof(SegmentHead), &head, sizeof head);
    const std::uint64_t begin = sizeof(SegmentHead) + sizeof(RecordHead);
    const ByteCount beside = std::min<ByteCount>(bytes.size(), page_bytes - begin);
    std::memcpy(first.data() + begin, bytes.data(), beside);
    durable_step("writing a large value", [&] {
        files_.values().write(first.span(), files_.offset_of(number));
        files_.values().write(bytes.subspan(beside), files_.offset_of(number) + page_bytes);
        if (!planted(Bug::log_heap_large_value_unsynced)) files_.values().sync();
    });
    since_checkpoint_ += units * files_.segment_bytes();
    return Place::run_at(number, sizeof(SegmentHead));
}

}  // namespace taiyen::logheap
