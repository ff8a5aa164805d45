// Flushes: what segments hold is durable, a header says so, and the ring gives room back; with an image of the index, or without.
//
// In three parts, of which only the first and the last need the lock. What operations do between them stands behind the ends that the flush has noted, and in the ring.

#include <algorithm>
#include <vector>

#include <taiyen/base/check.hpp>

#include "base/epochs.hpp"
#include "base/planted.hpp"
#include "logheap/object_log.hpp"

namespace taiyen::logheap {

using layout::bytes_of;
using layout::SegmentKind;

/// Requires: the lock.
ObjectLog::Flush ObjectLog::begin_flush(bool with_image) {
    Flush flush;
    flush.with_image = with_image;
    flush.point = log_->durable_point();
    flush.serial = serial_;
    flush.next_id = next_id_;
    flush.next_birth = next_birth_;
    flush.written = since_checkpoint_;
    flush.sealed = tail_.size();
    flush.emptied = emptied_.size();
    durable_step("writing the heap's file", [&] {
        write_open(hot_);
        write_open(cold_);
    });
    for (const Open* const open : {&hot_, &cold_}) {
        if (open->number == 0) continue;
        flush.open.push_back(
            {{open->number, static_cast<std::uint32_t>(open->from), static_cast<std::uint32_t>(open->end)}, segments_[open->number].birth.load()});
        const bool is_unnamed = open->kind == SegmentKind::cold && planted(Bug::log_heap_cold_segment_unnamed);
        if (!with_image && open->end != open->from && !is_unnamed) flush.tail.push_back(flush.open.back().part);
    }
    if (!with_image) {
        flush.tail.insert(flush.tail.end(), tail_.begin(), tail_.end());
    } else {
        for (std::uint64_t n = 1; n <= files_.segments(); ++n) {
            const Segment& segment = segments_[n];
            if (segment.use != Use::sealed && segment.use != Use::open) continue;
            flush.segments.push_back(
                {static_cast<std::uint32_t>(n), segment.units, segment.birth.load(), segment.filled_at, segment.live, segment.end, segment.kind});
        }
    }
    TAIYEN_CHECK(flush.tail.size() <= layout::tail_max);
    return flush;
}

/// The image shows each value where it was at the beginning, or somewhere later: then the tail or the ring has the operation that brought it there. Cleaning waits meanwhile.
void ObjectLog::write_image(const Flush& flush, const std::function<void()>& meanwhile) {
    std::vector<layout::ImageCell> cells;
    files_.write_image(flush.serial, flush.segments, [&](std::size_t shard) {
        if (shard == IdIndex::shard_count / 2) meanwhile();
        cells.clear();
        const EpochGuard guard;
        index_.for_each_in(shard, [&](std::uint64_t id, Place place, std::uint64_t born) { cells.push_back({id, place.word, born}); });
        return std::span<const layout::ImageCell>(cells);
    });
}

/// Needs no lock. The new header is durable on return. `meanwhile`: is called in the middle of the image.
void ObjectLog::write_flush(Flush& flush, const std::function<void()>& meanwhile) {
    layout::Header& header = files_.new_draft();
    Serial newest{flush.serial};
    if (flush.with_image) {
        write_image(flush, meanwhile);
        // What was put meanwhile may be in the image.
        if (!planted(Bug::log_heap_image_unwaited)) newest = log_->appended();
    }
    flush.has_image = true;
    if (!planted(Bug::log_heap_ahead_unwaited)) log_->wait_durable(newest);
    if (!planted(flush.with_image ? Bug::log_heap_image_unsynced : Bug::log_heap_values_unsynced)) files_.values().sync();
    files_.set_ring_start(flush.point.next);
    header.serial = flush.serial;
    header.next_id = flush.next_id + (flush.is_clean || planted(Bug::log_heap_ids_given_twice) ? 0 : ids_ahead);
    header.next_birth = flush.next_birth;
    header.flags = flush.is_clean ? layout::header_is_clean : 0;
    header.tail_segments = static_cast<std::uint32_t>(flush.tail.size());
    std::copy(flush.tail.begin(), flush.tail.end(), header.tail);
    files_.write_draft();
}

/// Requires: the lock.
void ObjectLog::end_flush(const Flush& flush) {
    files_.adopt_draft();
    log_->release(flush.point.next.position);
    const auto set_free = [&](std::uint32_t number) { free_if_dead(number, segments_[number].reusable_from); };
    for (std::size_t i = 0; i < flush.emptied; ++i) {
        segments_[emptied_[i]].is_emptied = false;
        set_free(emptied_[i]);
    }
    emptied_.erase(emptied_.begin(), emptied_.begin() + static_cast<std::ptrdiff_t>(flush.emptied));
    ++counts_.flushes;
    if (!flush.with_image) return;

    const auto leave_tail = [&](std::uint32_t number) {
        segments_[number].in_tail = false;
        set_free(number);
    };
    for (std::size_t i = 0; i < flush.sealed; ++i) leave_tail(tail_[i].number);
    tail_.erase(tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(flush.sealed));
    for (const Flush::OpenSegment& was : flush.open) {
        if (segments_[was.part.number].birth.load() != was.birth) continue;  // it was sealed without a record more, and lives anew
        for (Open* const open : {&hot_, &cold_})
            if (open->number == was.part.number) open->from = planted(Bug::log_heap_image_ends_late) ? open->end : was.part.end;
        const auto sealed = std::find_if(tail_.begin(), tail_.end(), [&](const layout::TailSegment& tail) { return tail.number == was.part.number; });
        if (sealed == tail_.end()) continue;
        sealed->from = was.part.end;
        if (sealed->from != sealed->end) continue;
        tail_.erase(sealed);
        leave_tail(was.part.number);
    }
    since_checkpoint_ -= std::min(since_checkpoint_, flush.written);
    has_failed_image_ = false;
    ++counts_.checkpoints;
}

/// Everything appended lies in segments, a header names them, and the ring is empty.
void ObjectLog::flush() { flush_now(false, false); }

void ObjectLog::checkpoint_now(bool is_clean) { flush_now(true, is_clean); }

bool ObjectLog::is_harmless_to_images(const Error& error) {
    const auto code = static_cast<errc>(error.code().value());
    return code == errc::no_space || code == errc::corrupt || code == errc::truncated;
}

/// An image, if there is room for it, on the disk and in memory. False: the old one goes on counting.
bool ObjectLog::try_checkpoint() {
    try {
        checkpoint_now(false);
        return true;
    } catch (const Error& error) {
        if (is_poisoned_ || !is_harmless_to_images(error)) throw;
    } catch (const std::bad_alloc&) {
        if (is_poisoned_) throw;
    }
    return false;
}

void ObjectLog::flush_now(bool with_image, bool is_clean) {
    finish_ahead();
    durable_step("writing the ring", [&] { log_->wait_durable({serial_}); });
    if (is_clean) {
        for (Open* const open : {&hot_, &cold_})
            if (open->number != 0) seal(*open);
        with_image = !tail_.empty() && !planted(Bug::log_heap_closed_without_image);  // else the old one says it all
    }
    Flush flush = begin_flush(with_image);
    flush.is_clean = is_clean;
    try {
        write_flush(flush, [] {});
    } catch (const std::exception& error) {
        poison_unless_harmless(flush, error);
        throw;
    }
    end_flush(flush);
}

/// An image that had no room, on the disk or in memory, is no failure, nor is one that a damaged older one prevents: that one goes on counting.
void ObjectLog::poison_unless_harmless(const Flush& flush, const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    const bool is_harmless = known != nullptr ? is_harmless_to_images(*known) : dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    if (flush.with_image && !flush.has_image && is_harmless) return;
    poison("writing the heap's file", error);
}

}  // namespace taiyen::logheap
