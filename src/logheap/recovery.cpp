// Opening: the image of the index, the tail, the ring. Nothing is written before all three are read.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "log/group.hpp"
#include "logheap/object_log.hpp"

namespace taiyen::logheap {

using layout::OperationHead;
using layout::OperationKind;
using layout::RecordHead;
using layout::SegmentHead;
using layout::SegmentKind;

void ObjectLog::recover() {
    const auto begin = std::chrono::steady_clock::now();
    restoration_.was_clean = (files_.header().flags & layout::header_is_clean) != 0;
    if (writes_ && !restoration_.was_clean) files_.ring()->sync();  // what is found there counts from now on, whoever was killed while it was written
    serial_ = files_.header().serial;
    next_id_ = files_.header().next_id;
    next_birth_ = files_.header().next_birth + (restoration_.was_clean ? 0 : births_ahead);
    read_image();
    read_tail();
    if (restoration_.was_clean) {
        count_live();
        resume_hot();
    } else {
        read_ring();
        count_live();
    }
    restoration_.values = index_.size();
    restoration_.took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
}

void ObjectLog::read_image() {
    if (files_.header().image_bytes == 0) return;
    const auto refuse = [&](const char* what) {
        throw Error(errc::corrupt, path(), files_.image_offset(files_.header().image_place),
                    std::string("the image of the index ") + what + "; restore the file from a copy");
    };
    // Parts are whole only in the end, so what is read is believed in bounds only, and all of it is given up if the checksum is wrong.
    std::vector<std::byte> left;
    layout::ImageHead head{};
    bool has_head = false;
    bool has_tables = false;
    std::uint64_t segments = 0;
    files_.read_image([&](std::span<const std::byte> piece) {
        left.insert(left.end(), piece.begin(), piece.end());
        std::size_t used = 0;
        const auto take = [&]<class T>(T& into) {
            if (left.size() - used < sizeof(T)) return false;
            std::memcpy(&into, left.data() + used, sizeof(T));
            used += sizeof(T);
            return true;
        };
        if (!has_head) {
            has_head = take(head);
            if (std::memcmp(head.heap, files_.header().heap, sizeof head.heap) != 0) refuse("is another heap's");
        }
        layout::ImageSegment segment{};
        while (has_head && segments < head.segments && take(segment)) {
            ++segments;
            if (segment.number == 0 || segment.units == 0 || segment.number + std::uint64_t{segment.units} > files_.segments() + 1 ||
                segment.end > files_.segment_bytes())
                refuse("names segments that there are not");
            for (std::uint32_t n = 0; n < segment.units; ++n)
                if (segments_[segment.number + n].use != Use::free) refuse("names a segment twice");
            Segment& known = segments_[segment.number];
            known.use = Use::sealed;
            known.kind = segment.kind;
            known.units = segment.units;
            known.end = segment.end;
            known.newest = segment.newest;
            known.birth.store(segment.birth);
            for (std::uint32_t n = 1; n < segment.units; ++n) segments_[segment.number + n].use = Use::part;
        }
        layout::ImageCell cell{};
        if (has_head && segments == head.segments && !has_tables) {
            // Cells come in the order of a table; in a smaller one such an order makes runs that grow with the table.
            has_tables = true;
            const std::uint64_t before = sizeof head + segments * sizeof segment;
            const std::uint64_t cells = (files_.header().image_bytes - std::min(before, files_.header().image_bytes)) / sizeof cell;
            for (std::size_t shard = 0; shard < IdIndex::shard_count; ++shard)
                index_.prepare(shard, cells / IdIndex::shard_count + cells / IdIndex::shard_count / 32 + 1);
        }
        while (has_head && segments == head.segments && take(cell)) {
            const Place place{cell.place};
            const bool fits = cell.id != 0 && cell.born != 0 && place.segment() != 0 && place.segment() <= files_.segments() &&
                              place.offset() >= sizeof(SegmentHead) &&
                              (place.is_large() ? place.offset() == sizeof(SegmentHead)
                                                : (place.bytes() >= sizeof(RecordHead) && place.offset() + place.bytes() <= files_.segment_bytes()));
            if (!fits) refuse("names places that there are not");
            index_.prepare(IdIndex::shard_of(cell.id));
            index_.set(cell.id, place, cell.born);
        }
        left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(used));
    });
    if (!has_head || segments != head.segments || !left.empty()) refuse("is incomplete");
}

std::uint64_t ObjectLog::units_of_run(std::uint64_t bytes) const {
    return (sizeof(SegmentHead) + sizeof(RecordHead) + bytes + files_.segment_bytes() - 1) / files_.segment_bytes();
}

bool ObjectLog::is_head(const SegmentHead& head, std::uint64_t number) const {
    const std::span<const std::byte> checked{reinterpret_cast<const std::byte*>(&head), offsetof(SegmentHead, checksum)};
    return head.magic == layout::segment_magic && head.number == number && head.checksum == checksum(checked, 0) &&
           std::memcmp(head.heap, files_.header().heap, sizeof head.heap) == 0;
}

/// They are that segment, or run. What the image says of earlier lives of theirs is over, also of those that lay in one run with them.
void ObjectLog::claim(std::uint32_t number, std::uint32_t units, const SegmentHead& head) {
    const auto dissolve = [&](std::uint32_t n) {
        while (segments_[n].use == Use::part) --n;
        if (segments_[n].use == Use::free) return;
        const std::uint32_t of = segments_[n].units;
        lowest_free_ = std::min<std::uint64_t>(lowest_free_, n);
        for (std::uint32_t i = n; i < n + of; ++i) {
            segments_[i].use = Use::free;
            segments_[i].units = 1;
        }
    };
    for (std::uint32_t n = number; n < number + units; ++n) dissolve(n);
    for (std::uint32_t n = number + 1; n < number + units; ++n) segments_[n].use = Use::part;
    Segment& segment = segments_[number];
    segment.use = Use::sealed;
    segment.kind = head.kind;
    segment.units = units;
    segment.newest = 0;
    segment.birth.store(head.birth);
}

void ObjectLog::read_tail() {
    std::unordered_map<std::uint64_t, std::uint64_t> newest;  // version by id, of what the tail has, tombstones too
    const layout::Header& header = files_.header();
    for (std::uint32_t i = 0; i < header.tail_segments; ++i) {
        const layout::TailSegment& tail = header.tail[i];
        const auto refuse = [&](std::uint64_t offset, const char* what) {
            throw Error(errc::corrupt, path(), files_.offset_of(tail.number) + offset,
                        "segment " + std::to_string(tail.number) + " " + what + "; restore the file from a copy");
        };
        if (tail.number == 0 || tail.number > files_.segments() || tail.from < sizeof(SegmentHead) || tail.from > tail.end ||
            tail.end > files_.segment_bytes())
            throw Error(errc::corrupt, path(), 0, "the header names a segment that there is not; restore the file from a copy");
        SegmentHead head;
        std::memcpy(&head, memory_of(tail.number), sizeof head);
        if (!is_head(head, tail.number)) refuse(0, "has no sound head");
        std::uint64_t units = 1;
        if (head.kind == SegmentKind::large) {
            if (head.large_bytes > files_.segments() * files_.segment_bytes()) refuse(0, "is larger than the heap");
            units = units_of_run(head.large_bytes);
            if (tail.number + units > files_.segments() + 1) refuse(0, "is larger than the heap");
        }
        claim(tail.number, static_cast<std::uint32_t>(units), head);
        Segment& segment = segments_[tail.number];
        segment.in_tail = true;
        segment.end = tail.end;
        tail_.push_back(tail);
        for (std::uint64_t at = tail.from; at < tail.end;) {
            const auto& record = *reinterpret_cast<const RecordHead*>(memory_of(tail.number) + at);
            const std::uint64_t length = head.kind == SegmentKind::large
                                             ? sizeof record
                                             : layout::record_bytes(record.length & ~(layout::record_removes | layout::record_is_large));
            if (tail.end - at < sizeof record || length > tail.end - at) refuse(at, "has a record that is damaged");
            const Place place = head.kind == SegmentKind::large ? Place::run_at(tail.number, at) : Place::at(tail.number, at, length);
            if (record.id == 0 || (record.born == 0 && (record.length & layout::record_removes) == 0) ||
                !is_sound(tail.number, at, record, bytes_at(place)))
                refuse(at, "has a record that is damaged");
            segment.newest = std::max(segment.newest, record.version);
            ++restoration_.from_segments;
            std::uint64_t& known = newest[record.id];
            if (record.version >= known || planted(Bug::log_heap_last_read_counts)) {
                known = record.version;
                if ((record.length & layout::record_removes) != 0) {
                    index_.erase(record.id);
                } else {
                    index_.prepare(IdIndex::shard_of(record.id));
                    index_.set(record.id, place, record.born);
                }
            }
            at += length;
        }
    }
}

void ObjectLog::read_ring() {
    struct FoundOperation {
        std::uint64_t serial;
        OperationHead head;
        layout::LargePlace large{};
        std::vector<std::byte> bytes{};
    };
    std::vector<FoundOperation> all;
    const auto refuse = [&](std::uint64_t offset) {
        throw Error(errc::corrupt, files_.ring()->path(), offset, "the ring has an operation that can't be; restore both files from a copy");
    };
    const auto read_group = [&](const log::Record& group) {
        const bool is_group =
            group.kind == log::record_transactions && log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte> bytes) {
                if (serial.value <= files_.header().serial) return;
                std::size_t at = 0;
                while (at < bytes.size()) {
                    FoundOperation found{serial.value, {}};
                    if (bytes.size() - at < sizeof found.head) refuse(group.file_offset);
                    std::memcpy(&found.head, bytes.data() + at, sizeof found.head);
                    at += sizeof found.head;
                    if (found.head.id == 0 || (found.head.born == 0 && found.head.kind != OperationKind::remove)) refuse(group.file_offset);
                    if (found.head.kind == OperationKind::large) {
                        if (bytes.size() - at < sizeof found.large) refuse(group.file_offset);
                        std::memcpy(&found.large, bytes.data() + at, sizeof found.large);
                        at += sizeof found.large;
                    } else if (found.head.kind == OperationKind::put) {
                        if (found.head.length > files_.segment_bytes() - sizeof(SegmentHead) - sizeof(RecordHead) ||
                            round_up(found.head.length, 8) > bytes.size() - at)
                            refuse(group.file_offset);
                        const auto value = bytes.subspan(at, found.head.length);
                        found.bytes.assign(value.begin(), value.end());
                        at += round_up(found.head.length, 8);
                    } else if (found.head.kind != OperationKind::remove) {
                        refuse(group.file_offset);
                    }
                    all.push_back(std::move(found));
                    if (planted(Bug::log_heap_batch_read_in_part)) break;
                }
                serial_ = serial.value;
            });
        if (!is_group) refuse(group.file_offset);
        return true;
    };
    const log::ScanResult scan = log::Ring::scan(*files_.ring(), files_.identity(), files_.ring_start(), read_group);
    if (scan.how == log::ScanEnd::corrupt) {
        throw Error(errc::corrupt, files_.ring()->path(), log::Ring::file_offset(files_.identity(), scan.next.position),
                    "the ring is damaged: what was durable there can't be read; restore both files from a copy");
    }
    restoration_.ring_torn_bytes = scan.torn_bytes;
    restoration_.from_ring = all.size();
    std::unordered_map<std::uint64_t, const FoundOperation*> last;
    for (const FoundOperation& found : all) last[found.head.id] = &found;
    // Runs first: they lie in segments that what follows must not take.
    for (FoundOperation& found : all) {
        if (found.head.kind != OperationKind::large) continue;
        if (last[found.head.id] != &found) {  // a later operation took the value away, and its room may be another one's
            found.large.segment = 0;
            continue;
        }
        SegmentHead head{};
        const auto number = static_cast<std::uint32_t>(std::min(found.large.segment, files_.segments() + 1));
        if (number != 0 && number <= files_.segments()) std::memcpy(&head, memory_of(number), sizeof head);
        const bool is_there = is_head(head, number) && head.kind == SegmentKind::large && head.birth == found.large.birth &&
                              head.large_bytes == found.head.length && head.large_bytes <= files_.segments() * files_.segment_bytes() &&
                              number + units_of_run(head.large_bytes) <= files_.segments() + 1;
        if (!is_there)
            throw Error(errc::corrupt, path(), files_.offset_of(number),
                        "the value " + std::to_string(found.head.id) + ", a run of segments, is damaged; restore the file from a copy");
        claim(number, static_cast<std::uint32_t>(units_of_run(head.large_bytes)), head);
        segments_[number].in_tail = true;
        segments_[number].end = sizeof(SegmentHead) + sizeof(RecordHead);
        segments_[number].newest = found.serial;
    }
    // What the image says of values that are replaced here keeps no segment: there must be as much room as there was.
    for (const FoundOperation& found : all) index_.erase(found.head.id);
    count_live();
    for (std::uint32_t n = 1; n <= files_.segments(); ++n)
        if (segments_[n].use == Use::sealed && segments_[n].live == 0 && !segments_[n].in_tail) make_free(n);
    resume_hot();
    for (const FoundOperation& found : all) {
        if (found.head.kind == OperationKind::remove) {
            ensure_room(hot_, sizeof(RecordHead), Reason::cleaning);
            place_record(hot_, {0, layout::record_removes, found.head.id, found.serial, 0}, {});
            index_.erase(found.head.id);
            continue;
        }
        index_.prepare(IdIndex::shard_of(found.head.id));
        if (found.head.kind == OperationKind::put) {
            ensure_room(hot_, layout::record_bytes(found.bytes.size()), Reason::cleaning);
            index_.set(
                found.head.id,
                place_record(hot_, {0, static_cast<std::uint32_t>(found.bytes.size()), found.head.id, found.serial, found.head.born}, found.bytes),
                found.head.born);
        } else if (found.large.segment != 0) {
            const auto number = static_cast<std::uint32_t>(found.large.segment);
            tail_.push_back({number, sizeof(SegmentHead), segments_[number].end});
            index_.set(found.head.id, Place::run_at(number, sizeof(SegmentHead)), found.head.born);
        } else {
            index_.erase(found.head.id);  // a later operation says what it is
        }
    }
}

/// The hot segment that was filled last goes on where its records end: so what is replayed takes no more segments than it took.
void ObjectLog::resume_hot() {
    std::uint32_t last = 0;
    for (std::uint32_t n = 1; n <= files_.segments(); ++n)
        if (segments_[n].use == Use::sealed && segments_[n].kind == SegmentKind::hot &&
            (last == 0 || segments_[n].birth.load() > segments_[last].birth.load()))
            last = n;
    if (last == 0) return;
    Segment& segment = segments_[last];
    SegmentHead head;
    std::memcpy(&head, memory_of(last), sizeof head);
    if (!is_head(head, last) || head.birth != segment.birth.load() || segment.end + sizeof(RecordHead) > files_.segment_bytes()) return;
    const std::vector<std::byte> bytes(memory_of(last), memory_of(last) + segment.end);
    vm::map_anonymous(memory_of(last), files_.segment_bytes());
    std::memcpy(memory_of(last), bytes.data(), bytes.size());
    hot_ = {SegmentKind::hot, last, segment.end, segment.end, segment.end};
    std::erase_if(tail_, [&](const layout::TailSegment& tail) {
        if (tail.number != last) return false;
        hot_.from = tail.from;
        return true;
    });
    segment.use = Use::open;
    segment.in_tail = true;
}

/// What lives where, and what is free.
void ObjectLog::count_live() {
    live_ = 0;
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) segments_[n].live = 0;
    for (std::size_t shard = 0; shard < IdIndex::shard_count; ++shard) {
        index_.for_each_in(shard, [&](std::uint64_t id, Place place, std::uint64_t) {
            Segment& segment = segments_[place.segment()];
            if ((segment.use != Use::sealed && segment.use != Use::open) || place.is_large() != (segment.kind == SegmentKind::large) ||
                (!place.is_large() && place.offset() + place.bytes() > segment.end)) {
                throw Error(errc::corrupt, path(), files_.offset_of(place.segment()) + place.offset(),
                            "the value " + std::to_string(id) + " lies where no record is; restore the file from a copy");
            }
            segment.live += live_bytes_at(place);
            live_ += live_bytes_at(place);
        });
    }
    free_ = 0;
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) {
        if (segments_[n].use == Use::free) ++free_;
        segments_[n].is_allocated = segments_[n].use != Use::free;
    }
}

/// A new life of the ring, and after a crash an image of what was found.
void ObjectLog::start_log() {
    const log::RingStart start = planted(Bug::log_heap_same_epoch) ? log::RingStart{files_.ring_start().epoch, 0, 1, files_.ring_start().chain_seed}
                                                                   : log::RingStart{{random_u64()}, 0, 1, random_u64()};
    log::GroupLog::Options options;
    options.window = options_.loss_window;
    options.flusher = options_.durability == Durability::async;
    log_ = std::make_unique<log::GroupLog>(std::make_unique<log::Ring>(files_.ring(), files_.identity(), start, start.position), Serial{serial_},
                                           options);
    log_->on_pressure = [this] { ask_keeper(); };  // whoever appends has the lock
    if (restoration_.was_clean && tail_.empty()) {
        flush();
    } else {
        try {
            checkpoint_now(false);
        } catch (const Error& error) {
            if (is_poisoned_ || static_cast<errc>(error.code().value()) != errc::no_space || tail_.size() + tail_room > layout::tail_max) throw;
            flush();  // a full disk has no room for an image: the old one goes on counting, with a longer tail
        }
    }
    for (std::uint32_t n = 1; n <= files_.segments(); ++n) free_if_dead(n, 0);
    // Each recovery takes segments for what it finds in the ring: the next one shall have some, however short this life is.
    ensure_free(reserve + 1, 0, 0);
    if (options_.background) keeper_ = std::thread([this] { keep(); });
}

void ObjectLog::check_sums() const {
    const std::lock_guard lock(writer_);
    const auto refuse = [&](const std::string& what) { throw Error(errc::corrupt, path(), "sums of a log heap: " + what); };
    std::vector<std::uint64_t> live(files_.segments() + 1);
    std::uint64_t all = 0;
    for (std::size_t shard = 0; shard < IdIndex::shard_count; ++shard) {
        index_.for_each_in(shard, [&](std::uint64_t, Place place, std::uint64_t) {
            live[place.segment()] += live_bytes_at(place);
            all += live_bytes_at(place);
        });
    }
    std::uint64_t free = 0;
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) {
        const Segment& segment = segments_[n];
        if (segment.use == Use::free) ++free;
        if (segment.use == Use::free || segment.use == Use::part ? live[n] != 0 : live[n] != segment.live)
            refuse("segment " + std::to_string(n) + " has " + std::to_string(live[n]) + " live bytes, not " + std::to_string(segment.live));
        if (segment.use == Use::sealed && segment.live == 0 && !segment.in_tail && !segment.is_emptied && !segment.is_victim && writes_)
            refuse("segment " + std::to_string(n) + " is dead and isn't free");
    }
    if (all != live_) refuse("live bytes");
    if (free != free_) refuse("free segments: " + std::to_string(free) + ", not " + std::to_string(free_));
}

}  // namespace taiyen::logheap
