// Cleaning: what lives in segments that are half empty moves together, and they are free.
//
// Victims are looked through, and their survivors copied, without the lock; with it, the index learns where the copies are, a few at a time.

#include <algorithm>
#include <vector>

#include <taiyen/base/report.hpp>

#include "base/epochs.hpp"
#include "base/planted.hpp"
#include "logheap/object_log.hpp"

namespace taiyen::logheap {

using layout::RecordHead;

namespace {

/// So many bytes are copied at once.
constexpr std::uint64_t stretch_bytes = 128_KiB;

}  // namespace

std::uint64_t ObjectLog::segment_room() const { return files_.segment_bytes() - sizeof(layout::SegmentHead); }

bool ObjectLog::can_be_cleaned(const Segment& segment) {
    return segment.use == Use::sealed && segment.kind != layout::SegmentKind::large && !segment.in_tail && !segment.is_emptied &&
           !segment.is_damaged && segment.pins.load() == 0;
}

/// The segments that are best to clean, for as many free ones as there are to move to. Nothing: there are none. Requires: the lock.
///
/// Best is the highest (1 − u) · age / u, u the share that lives, age that of the segment, not of what it holds (Rumble and others, section 4.2).
std::optional<ObjectLog::Cleaning> ObjectLog::begin_cleaning() {
    if (tail_.size() + tail_room > layout::tail_max && !try_checkpoint()) return std::nullopt;
    struct Candidate {
        double worth;
        std::uint32_t number;
    };
    std::vector<Candidate> candidates;
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) {
        const Segment& segment = segments_[n];
        if (!can_be_cleaned(segment) || is_kept(n)) continue;
        const double used = static_cast<double>(segment.live) / static_cast<double>(segment_room());
        if (used > 0.98) continue;
        const auto age = static_cast<double>(serial_ + 1 - std::min(serial_, segment.filled_at));
        candidates.push_back({(1 - used) * age / std::max(used, 0.001), static_cast<std::uint32_t>(n)});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; });
    Cleaning cleaning;
    // The last free segment is for removals, which make more of them; cleaning takes it when there is no other one, and gives one back at once.
    cleaning.takes_last = available() == 1;
    const std::uint64_t targets =
        cleaning.takes_last ? 1 : std::min<std::uint64_t>(available() - std::min<std::uint64_t>(available(), 1), victims_max);
    // What is left of the cold segment may be too little for the next record, so it doesn't count where nothing may be left over.
    const std::uint64_t remainder = cold_.number == 0 || cleaning.takes_last ? 0 : files_.segment_bytes() - cold_.end;
    const std::uint64_t space = remainder + targets * segment_room();
    std::uint64_t moved = 0;
    for (const Candidate& candidate : candidates) {
        const Segment& segment = segments_[candidate.number];
        if (cleaning.victims.empty() && segment.live > space) continue;
        if (cleaning.victims.size() == victims_max || moved + segment.live > space) break;
        moved += segment.live;
        cleaning.victims.push_back(candidate.number);
    }
    if (cleaning.victims.empty()) return std::nullopt;
    mark_victims(cleaning);
    return cleaning;
}

void ObjectLog::mark_victims(const Cleaning& cleaning) {
    emptied_.reserve(emptied_.size() + cleaning.victims.size());
    for (const std::uint32_t number : cleaning.victims) segments_[number].is_victim = !planted(Bug::log_heap_victim_freed_at_once);
}

/// Empties segments that lie beside each other, those with the least to move, as far as there is room for what lives there. False: there are none.
bool ObjectLog::clean_run(std::uint64_t units) {
    finish_ahead();
    try_checkpoint();  // segments of the tail may be moved then
    free_unpinned();
    std::uint64_t best = 0;
    std::uint64_t least = 0;
    std::uint64_t live = 0;
    std::uint64_t length = 0;
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) {
        const Segment& segment = segments_[n];
        const bool fits = segment.use == Use::free ? segment.is_allocated || !is_disk_full_ : can_be_cleaned(segment);
        length = fits ? length + 1 : 0;
        live = fits ? live + segment.live : 0;
        if (length > units) live -= segments_[n - units].live;
        if (length >= units && (best == 0 || live < least)) {
            best = n + 1 - units;
            least = live;
        }
    }
    if (best == 0) return false;
    kept_begin_ = best;
    kept_end_ = best + units;
    struct Unkeep {
        ObjectLog& log;
        ~Unkeep() { log.kept_begin_ = log.kept_end_ = 0; }
    };
    const Unkeep unkeep{*this};
    for (std::uint64_t n = best; n < kept_end_; n += victims_max) {
        const std::span part(&segments_[n], std::min<std::uint64_t>(victims_max, kept_end_ - n));
        live = 0;
        for (const Segment& segment : part) live += segment.live;
        const auto kept = std::count_if(&segments_[best], &segments_[kept_end_], [](const Segment& segment) { return segment.use == Use::free; });
        ensure_free(static_cast<std::uint64_t>(kept) + live / segment_room() + 2, 0, 0);
        Cleaning cleaning;
        for (const Segment& segment : part)
            if (can_be_cleaned(segment)) cleaning.victims.push_back(static_cast<std::uint32_t>(&segment - &segments_[0]));
        if (cleaning.victims.empty()) continue;
        mark_victims(cleaning);
        go_on_cleaning(cleaning);
        flush();
        if (tail_.size() + tail_room > layout::tail_max && !try_checkpoint()) break;
    }
    return true;
}

/// Survivors, the oldest first; damaged values are none. Needs no lock: victims stay what they are until the cleaning ends.
void ObjectLog::find_survivors(Cleaning& cleaning) const {
    const auto is_at = [&](const RecordHead& head, Place place) {
        try {
            return index_.find(head.id) == place;
        } catch (const Error&) {  // nobody knows whether the value lives
            if (!is_index_damaged_) throw;
            return false;
        }
    };
    cleaning.survivors.clear();
    for (const std::uint32_t number : cleaning.victims) {
        will_read(number);
        const EpochGuard guard;
        const std::uint64_t end = segments_[number].end;
        for (std::uint64_t at = sizeof(layout::SegmentHead); at + sizeof(RecordHead) <= end;) {
            const auto& head = *reinterpret_cast<const RecordHead*>(memory_of(number) + at);
            const std::uint64_t length = layout::record_bytes(head.length & ~(layout::record_removes | layout::record_is_large));
            const Place place = Place::at(number, at, length);
            if (at + length > end) break;
            // A damaged one stays, and so does its segment.
            if ((head.length & layout::record_removes) == 0 && is_at(head, place) && is_sound(number, at, head, bytes_at(place)))
                cleaning.survivors.push_back({head.version, head.id, place});
            at += length;
        }
    }
    std::sort(cleaning.survivors.begin(), cleaning.survivors.end(),
              [](const Cleaning::Survivor& a, const Cleaning::Survivor& b) { return a.version < b.version; });
    cleaning.step = Cleaning::Step::looked_through;
}

/// Where the next survivors go. False: there is none left, or no room for it. Requires: the lock.
bool ObjectLog::begin_stretch(Cleaning& cleaning) {
    if (cleaning.next == cleaning.survivors.size()) return false;
    const std::uint64_t first = cleaning.survivors[cleaning.next].place.bytes();
    const bool needs_segment = cold_.number == 0 || cold_.end + first > files_.segment_bytes();
    if (needs_segment && available() <= (cleaning.takes_last ? 0 : 1)) {  // what is left stays where it is
        cleaning.is_cut = true;
        return false;
    }
    ensure_room(cold_, first, Reason::cleaning);
    cleaning.copies.clear();
    cleaning.applied = 0;
    cleaning.to_segment = cold_.number;
    cleaning.to_offset = cold_.end;
    cleaning.step = Cleaning::Step::has_room;
    return true;
}

/// Needs no lock: nobody looks at what stands behind the cold segment's end.
void ObjectLog::copy_stretch(Cleaning& cleaning) const {
    std::uint64_t at = cleaning.to_offset;
    cleaning.step = Cleaning::Step::copied;
    const std::uint64_t last = std::min<std::uint64_t>(at + stretch_bytes, files_.segment_bytes());
    for (; cleaning.next < cleaning.survivors.size(); ++cleaning.next) {
        const Cleaning::Survivor& survivor = cleaning.survivors[cleaning.next];
        const std::uint64_t length = survivor.place.bytes();
        if (at + length > (cleaning.copies.empty() ? files_.segment_bytes() : last)) return;
        {
            const EpochGuard guard;
            if (index_.find(survivor.id) != survivor.place) continue;  // it is gone meanwhile
        }
        write_record(cleaning.to_segment, at, head_at(survivor.place), bytes_at(survivor.place));
        cleaning.copies.push_back({survivor, Place::at(cleaning.to_segment, at, length)});
        at += length;
    }
}

/// The index names the next copies, as far as it still names what was copied. False: those were all. Requires: the lock.
bool ObjectLog::apply_copies(Cleaning& cleaning, std::size_t count) {
    if (cleaning.applied == 0 && !cleaning.copies.empty()) grow_open(cold_, cleaning.copies.back().to.offset() + cleaning.copies.back().to.bytes());
    for (; count != 0 && cleaning.applied < cleaning.copies.size(); --count, ++cleaning.applied) {
        const auto& [from, to] = cleaning.copies[cleaning.applied];
        const Place now = index_.find(from.id);
        if (!now || (now != from.place && !planted(Bug::log_heap_moved_over_newer))) continue;
        index_.move(from.id, to);
        segments_[to.segment()].live += to.bytes();
        live_ += to.bytes();
        kill(now, serial_);
    }
    if (cleaning.applied < cleaning.copies.size()) return true;
    cleaning.step = Cleaning::Step::looked_through;
    return false;
}

/// The victims are free with the next header. False: nothing was won. Requires: the lock.
bool ObjectLog::end_cleaning(const Cleaning& cleaning) {
    std::uint64_t won = 0;
    std::uint32_t damaged = 0;
    for (const std::uint32_t number : cleaning.victims) {
        Segment& segment = segments_[number];
        segment.is_victim = false;
        if (segment.live != 0 && !cleaning.is_cut) {  // a head or a value is damaged: it isn't touched, so that nothing more is lost
            segment.is_damaged = true;
            damaged = number;
            continue;
        }
        if (planted(Bug::log_heap_victim_freed_at_once)) {
            free_if_dead(number, serial_);
        } else {
            segment.is_emptied = true;
            emptied_.push_back(number);
        }
        if (segment.live == 0) ++won;
    }
    counts_.cleaned_segments += won;
    if (damaged != 0)
        report({errc::corrupt, nullptr,
                path().string() + ": cleaning found a damaged value in segment " + std::to_string(damaged) +
                    "; verify() tells which; the segment stays as it is"});
    return won != 0;
}

/// Moves what lives in the best segments into the cold one. False: there are none, or no room to move to.
bool ObjectLog::clean_batch() {
    std::optional<Cleaning> cleaning = begin_cleaning();
    return cleaning && go_on_cleaning(*cleaning);
}

/// To its end, with the lock.
bool ObjectLog::go_on_cleaning(Cleaning& cleaning) {
    try {
        if (cleaning.step == Cleaning::Step::chosen) find_survivors(cleaning);
        do {
            if (cleaning.step == Cleaning::Step::has_room) copy_stretch(cleaning);
            if (cleaning.step == Cleaning::Step::copied) apply_copies(cleaning, cleaning.copies.size());
        } while (begin_stretch(cleaning));
    } catch (const std::bad_alloc&) {  // no room, or no memory: what is left stays where it is
        cleaning.is_cut = true;
        if (!is_poisoned_) return end_cleaning(cleaning);
        end_cleaning(cleaning);
        throw;
    } catch (...) {
        cleaning.is_cut = true;
        end_cleaning(cleaning);
        throw;
    }
    return end_cleaning(cleaning);
}

/// Cleans until so many segments can be taken; they have blocks. Throws: HeapFull: fewer than `at_least` could be won.
void ObjectLog::ensure_free(std::uint64_t wanted, std::uint64_t at_least, std::uint64_t wanted_bytes) {
    allocate_ahead(wanted);
    if (available() >= wanted) return;
    finish_ahead();
    bool has_looked = false;
    const auto look_at_tail = [&] {  // its segments may be cleaned then, and those without a value are free
        has_looked = true;
        try_checkpoint();
    };
    free_unpinned();
    for (int idle = 0; available() < wanted && idle < 24; free_unpinned()) {
        const std::uint64_t before = available();
        const LogHeapStats counts = counts_;
        if (!emptied_.empty() || clean_batch())
            flush();
        else if (!has_looked)
            look_at_tail();
        else if (pinned_segments() != 0)
            std::this_thread::sleep_for(std::chrono::microseconds(50));  // most views live for a moment
        else
            break;
        const std::uint64_t emptied = (counts_.cleaned_segments - counts.cleaned_segments) * segment_room();
        const bool won_some =
            emptied > counts_.moved_bytes - counts.moved_bytes + segment_room() / 16;  // which will be a segment with what is won next
        if (available() <= before && !won_some) ++idle;
        if (idle == 2 && !has_looked) look_at_tail();
    }
    if (available() < at_least) throw_full(wanted_bytes);
}

std::size_t ObjectLog::clean(std::size_t bytes) {
    const auto lock = lock_for_writing();
    finish_ahead();
    const std::uint64_t before = free_;
    bool has_looked = false;
    for (int i = 0; i < 1024 && (free_ - std::min(free_, before)) * files_.segment_bytes() < bytes; ++i, free_unpinned()) {
        if (clean_batch()) {
            flush();
        } else if (!has_looked) {
            try_checkpoint();  // segments of the tail may be cleaned now
            has_looked = true;
        } else {
            break;
        }
    }
    return free_ > before ? (free_ - before) * files_.segment_bytes() : 0;
}

}  // namespace taiyen::logheap
