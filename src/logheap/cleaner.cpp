// Cleaning: what lives in segments that are half empty moves together, and they are free.

#include <algorithm>
#include <vector>

#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "logheap/object_log.hpp"

namespace taiyen::logheap {

using layout::RecordHead;

/// Moves what lives in the segments that are best to clean into the cold one; they are free with the next header. False: there are none, or no room to move to.
///
/// Best is the highest (1 − u) · age / u, u the share that lives, age that of the segment (Rumble and others, section 4.2). Survivors lie by age, the oldest first.
bool ObjectLog::clean_batch() {
    if (tail_.size() + tail_room > layout::tail_max) write_checkpoint(false);
    const std::uint64_t room = files_.segment_bytes() - sizeof(layout::SegmentHead);
    struct Candidate {
        double worth;
        std::uint32_t number;
    };
    std::vector<Candidate> candidates;
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) {
        const Segment& segment = segments_[n];
        if (segment.use != Use::sealed || segment.in_tail || segment.is_emptied || segment.is_damaged || segment.pins.load() != 0 ||
            segment.kind == layout::SegmentKind::large)
            continue;
        const double used = static_cast<double>(segment.live) / static_cast<double>(room);
        if (used > 0.98) continue;
        const auto age = static_cast<double>(serial_ + 1 - std::min(serial_, segment.newest));
        candidates.push_back({(1 - used) * age / std::max(used, 0.001), static_cast<std::uint32_t>(n)});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; });
    const std::uint64_t left = cold_.number != 0 ? files_.segment_bytes() - cold_.end : 0;
    // The last free segment is for removals, which make more of them; cleaning takes it when there is no other one, and gives one back at once.
    const bool is_last = free_ == 1;
    const std::uint64_t targets = is_last ? 1 : std::min<std::uint64_t>(free_ - std::min<std::uint64_t>(free_, 1), 8);
    const std::uint64_t space = left + targets * room;
    struct Survivor {
        std::uint64_t version;
        Place place;
    };
    std::vector<Survivor> survivors;
    std::vector<std::uint32_t> victims;
    std::uint64_t moved = 0;
    for (const Candidate& candidate : candidates) {
        Segment& segment = segments_[candidate.number];
        if (victims.size() == 8 || moved + segment.live > space) break;
        const std::size_t before = survivors.size();
        for (std::uint64_t at = sizeof(layout::SegmentHead); at + sizeof(RecordHead) <= segment.end;) {
            const auto& head = *reinterpret_cast<const RecordHead*>(memory_of(candidate.number) + at);
            const std::uint64_t length = round_up(sizeof head + (head.length & ~(layout::record_removes | layout::record_is_large)), 8);
            const Place place = Place::at(candidate.number, at, length);
            if ((head.length & layout::record_removes) == 0 && index_.find(head.id) == place) {
                if (at + length > segment.end || !is_sound(candidate.number, at, head, bytes_at(place))) break;
                survivors.push_back({head.version, place});
            }
            at += length;
        }
        std::uint64_t found = 0;
        for (std::size_t i = before; i < survivors.size(); ++i) found += survivors[i].place.bytes();
        if (found != segment.live) {  // a head or a value is damaged: its segment isn't touched, so that nothing more is lost
            survivors.resize(before);
            segment.is_damaged = true;
            report({errc::corrupt, nullptr,
                    path().string() + ": cleaning found a damaged value in segment " + std::to_string(candidate.number) +
                        "; verify() tells which; the segment stays as it is"});
            continue;
        }
        moved += segment.live;
        victims.push_back(candidate.number);
    }
    if (victims.empty()) return false;
    emptied_.reserve(emptied_.size() + victims.size());
    std::sort(survivors.begin(), survivors.end(), [](const Survivor& a, const Survivor& b) { return a.version < b.version; });
    if (!planted(Bug::log_heap_victim_freed_at_once)) {
        for (const std::uint32_t number : victims) {
            segments_[number].is_emptied = true;
            emptied_.push_back(number);
        }
    }
    for (const Survivor& survivor : survivors) {
        const RecordHead& head = head_at(survivor.place);
        const std::uint64_t id = head.id;
        const bool needs_segment = cold_.number == 0 || cold_.end + survivor.place.bytes() > files_.segment_bytes();
        if (needs_segment && free_ <= (is_last ? 0 : 1)) break;  // what is left stays where it is
        ensure_room(cold_, survivor.place.bytes(), Reason::cleaning);
        const Place to = place_record(cold_, head, bytes_at(survivor.place));
        index_.set(id, to);
        segments_[to.segment()].live += to.bytes();
        live_ += to.bytes();
        kill(survivor.place, serial_);
    }
    const auto is_dead = [&](std::uint32_t number) { return segments_[number].live == 0; };
    const auto won = static_cast<std::uint64_t>(std::count_if(victims.begin(), victims.end(), is_dead));
    counts_.cleaned_segments += won;
    return won != 0;
}

/// Cleans until so many segments are free. Throws: HeapFull: fewer than `at_least` could be won.
void ObjectLog::ensure_free(std::uint64_t wanted, std::uint64_t at_least, std::uint64_t wanted_bytes) {
    if (free_ < wanted) free_unpinned();
    bool has_checkpoint = false;
    const auto look_at_tail = [&] {  // its segments may be cleaned then, and those without a value are free
        has_checkpoint = true;
        try {
            write_checkpoint(false);
        } catch (const Error& error) {
            if (is_poisoned_ || static_cast<errc>(error.code().value()) != errc::no_space) throw;
        }
    };
    for (int idle = 0; free_ < wanted && idle < 24;) {
        const std::uint64_t before = free_;
        if (!emptied_.empty() || clean_batch())
            flush();
        else if (!has_checkpoint)
            look_at_tail();
        else
            break;
        if (free_ <= before) ++idle;
        if (idle == 2 && !has_checkpoint) look_at_tail();
    }
    if (free_ < at_least) throw HeapFull(wanted_bytes, 0, HeapFull::Cause::capacity, path().string());
}

std::size_t ObjectLog::clean(std::size_t bytes) {
    const auto lock = lock_for_writing();
    const std::uint64_t before = free_;
    bool has_checkpoint = false;
    for (int i = 0; i < 1024 && (free_ - std::min(free_, before)) * files_.segment_bytes() < bytes; ++i) {
        if (clean_batch()) {
            flush();
        } else if (!has_checkpoint) {
            write_checkpoint(false);  // segments of the tail may be cleaned now
            has_checkpoint = true;
        } else {
            break;
        }
    }
    return free_ > before ? (free_ - before) * files_.segment_bytes() : 0;
}

}  // namespace taiyen::logheap
