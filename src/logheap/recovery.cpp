// Opening: the image of the index, the tail, the ring. Nothing is written before all three are read.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
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
    if (restoration_.was_clean && tail_.empty()) {
        sum_segments();  // as the image says them: so opening takes no longer, however many values there are
        resume_hot();
    } else {
        if (!restoration_.was_clean) read_ring();
        count_live();
    }
    choose_read_ahead();
    restoration_.values = index_.size();
    restoration_.took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
}

/// Cells stay where they are until somebody asks for their shard.
void ObjectLog::read_image() {
    LogFiles::Image found = files_.read_image();
    const std::vector<layout::ImageSegment> segments = std::move(found.segments);
    const auto image = std::make_shared<const LogFiles::Image>(std::move(found));
    for (const layout::ImageSegment& segment : segments) {
        const auto refuse = [&](const char* what) {
            throw Error(errc::corrupt, path(), files_.image_offset(files_.header().image_place),
                        std::string("the image of the index ") + what + "; restore the file from a copy");
        };
        if (segment.number == 0 || segment.units == 0 || segment.number + std::uint64_t{segment.units} > files_.segments() + 1 ||
            segment.end > files_.segment_bytes() || segment.live > segment.units * files_.segment_bytes())
            refuse("names segments that there are not");
        for (std::uint32_t n = 0; n < segment.units; ++n)
            if (segments_[segment.number + n].use != Use::free) refuse("names a segment twice");
        Segment& known = segments_[segment.number];
        known.use = Use::sealed;
        known.kind = segment.kind;
        known.units = segment.units;
        known.end = segment.end;
        known.filled_at = segment.filled_at;
        known.live = segment.live;
        known.birth.store(segment.birth);
        for (std::uint32_t n = 1; n < segment.units; ++n) segments_[segment.number + n].use = Use::part;
    }
    std::array<std::uint64_t, IdIndex::shard_count> cells{};
    for (std::size_t shard = 0; shard < cells.size(); ++shard) cells[shard] = image->foot.shards[shard].cells;
    index_.wait_in([this, image](std::size_t shard) { return cells_of(*image, shard); }, cells);
}

/// What the index takes from the image.
std::vector<layout::ImageCell> ObjectLog::cells_of(const LogFiles::Image& image, std::size_t shard) const {
    std::vector<layout::ImageCell> cells;
    try {
        cells = files_.read_cells(image, shard);
    } catch (const Error& error) {
        is_index_damaged_ = is_index_damaged_ || is_harmless_to_images(error);
        throw;
    }
    for (const layout::ImageCell& cell : cells) {
        const Place place{cell.place};
        const bool fits = cell.id != 0 && cell.born != 0 && IdIndex::shard_of(cell.id) == shard && place.segment() != 0 &&
                          place.segment() <= files_.segments() && place.offset() >= sizeof(SegmentHead) &&
                          (place.is_large() ? place.offset() == sizeof(SegmentHead)
                                            : (place.bytes() >= sizeof(RecordHead) && place.offset() + place.bytes() <= files_.segment_bytes()));
        if (fits) continue;
        is_index_damaged_ = true;
        throw Error(errc::corrupt, path(), image.offsets[shard],
                    "the image of the index names places that there are not; restore the file from a copy");
    }
    return cells;
}

/// False: they are damaged, and this is a reader, who does without. Throws: as cells_of, in a heap that is to be written.
bool ObjectLog::can_read_cells(std::size_t shard) const {
    try {
        index_.load(shard);
        return true;
    } catch (const Error&) {
        if (writes_ || !is_index_damaged_) throw;
        return false;
    }
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
    segment.filled_at = 0;
    segment.birth.store(head.birth);
}

/// Records of the tail in an order in which the last one of an id counts. Cold segments first: what cleaning moves is older than the tail. In each kind births go with time, so versions ascend in
/// the hot ones; runs have a version each and come between them.
void ObjectLog::read_tail() {
    const layout::Header& header = files_.header();
    std::vector<std::pair<layout::TailSegment, SegmentHead>> segments;
    for (std::uint32_t i = 0; i < header.tail_segments; ++i) {
        const layout::TailSegment& tail = header.tail[i];
        if (tail.number == 0 || tail.number > files_.segments() || tail.from < sizeof(SegmentHead) || tail.from > tail.end ||
            tail.end > files_.segment_bytes())
            throw Error(errc::corrupt, path(), 0, "the header names a segment that there is not; restore the file from a copy");
        const auto refuse = [&](const char* what) {
            throw Error(errc::corrupt, path(), files_.offset_of(tail.number),
                        "segment " + std::to_string(tail.number) + " " + what + "; restore the file from a copy");
        };
        SegmentHead head;
        std::memcpy(&head, memory_of(tail.number), sizeof head);
        if (!is_head(head, tail.number)) refuse("has no sound head");
        std::uint64_t units = 1;
        if (head.kind == SegmentKind::large) {
            if (head.large_bytes > files_.segments() * files_.segment_bytes()) refuse("is larger than the heap");
            units = units_of_run(head.large_bytes);
            if (tail.number + units > files_.segments() + 1) refuse("is larger than the heap");
        }
        claim(tail.number, static_cast<std::uint32_t>(units), head);
        segments_[tail.number].in_tail = true;
        segments_[tail.number].end = tail.end;
        segments_[tail.number].filled_at = header.serial;
        tail_.push_back(tail);
        segments.emplace_back(tail, head);
    }
    // Runs first, so that all of them are known, and each comes before the hot records that are newer.
    const auto order_of = [](const auto& segment) {
        const SegmentKind kind = segment.second.kind;
        return std::pair(kind == SegmentKind::large ? 0 : kind == SegmentKind::cold ? 1 : 2, segment.second.birth);
    };
    std::sort(segments.begin(), segments.end(), [&](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
    if (planted(Bug::log_heap_last_read_counts)) std::reverse(segments.begin(), segments.end());

    std::vector<FoundRecord> batch;
    batch.reserve(found_at_once);
    const auto add = [&](const FoundRecord& found) {
        index_.prefetch(found.id);
        batch.push_back(found);
        if (batch.size() == found_at_once) apply_found(batch);
    };
    std::multimap<std::uint64_t, FoundRecord> runs;  // by version
    const auto add_runs_before = [&](std::uint64_t version) {
        for (; !runs.empty() && runs.begin()->first < version; runs.erase(runs.begin())) add(runs.begin()->second);
    };
    std::uint64_t newest = 0;
    for (const auto& [tail, head] : segments) {
        read_segment(tail, head.kind, [&, kind = head.kind](const FoundRecord& found) {
            ++restoration_.from_segments;
            if (kind == SegmentKind::large) {
                runs.emplace(found.version, found);
                return;
            }
            if (kind == SegmentKind::hot) {
                if (found.version < newest && !planted(Bug::log_heap_last_read_counts)) refuse_record(found.segment, found.offset);
                newest = found.version;
                add_runs_before(newest);
            }
            add(found);
        });
    }
    add_runs_before(~std::uint64_t{0});
    apply_found(batch);
}

void ObjectLog::refuse_record(std::uint32_t segment, std::uint64_t offset) const {
    throw Error(errc::corrupt, path(), files_.offset_of(segment) + offset,
                "segment " + std::to_string(segment) + " has a record that is damaged; restore the file from a copy");
}

template <class F>
void ObjectLog::read_segment(const layout::TailSegment& tail, SegmentKind kind, F&& f) {
    for (std::uint64_t at = tail.from; at < tail.end;) {
        const auto& record = *reinterpret_cast<const RecordHead*>(memory_of(tail.number) + at);
        if (tail.end - at < sizeof record) refuse_record(tail.number, at);
        const bool removes = (record.length & layout::record_removes) != 0;
        const std::uint64_t length =
            kind == SegmentKind::large ? sizeof record : layout::record_bytes(record.length & ~(layout::record_removes | layout::record_is_large));
        if (length > tail.end - at) refuse_record(tail.number, at);
        const Place place = kind == SegmentKind::large ? Place::run_at(tail.number, at) : Place::at(tail.number, at, length);
        if (record.id == 0 || (record.born == 0 && !removes) || !is_sound(tail.number, at, record, bytes_at(place))) refuse_record(tail.number, at);
        f(FoundRecord{record.id, removes ? Place{} : place, record.born, record.version, tail.number, static_cast<std::uint32_t>(at)});
        at += length;
    }
}

/// The batch is empty afterwards.
void ObjectLog::apply_found(std::vector<FoundRecord>& batch) {
    for (const FoundRecord& found : batch) {
        if (!can_read_cells(IdIndex::shard_of(found.id))) continue;
        if (found.place) {
            index_.prepare(IdIndex::shard_of(found.id));
            index_.set(found.id, found.place, found.born);
        } else {
            index_.erase(found.id);
        }
    }
    batch.clear();
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
                    if (can_read_cells(IdIndex::shard_of(found.head.id))) all.push_back(std::move(found));
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
        segments_[number].filled_at = found.serial;
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
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) segments_[n].live = 0;
    for (std::size_t shard = 0; shard < IdIndex::shard_count; ++shard) {
        if (!can_read_cells(shard)) continue;
        index_.for_each_in(shard, [&](std::uint64_t id, Place place, std::uint64_t) {
            Segment& segment = segments_[place.segment()];
            if ((segment.use != Use::sealed && segment.use != Use::open) || place.is_large() != (segment.kind == SegmentKind::large) ||
                (!place.is_large() && place.offset() + place.bytes() > segment.end)) {
                throw Error(errc::corrupt, path(), files_.offset_of(place.segment()) + place.offset(),
                            "the value " + std::to_string(id) + " lies where no record is; restore the file from a copy");
            }
            segment.live += live_bytes_at(place);
        });
    }
    sum_segments();
}

void ObjectLog::sum_segments() {
    live_ = 0;
    free_ = 0;
    free_allocated_ = 0;
    for (std::uint64_t n = 1; n <= files_.segments(); ++n) {
        live_ += segments_[n].live;
        if (segments_[n].use == Use::free) ++free_;
        segments_[n].is_allocated = segments_[n].use != Use::free;
    }
}

/// A new life of the ring; what was found in the old one stands in segments that a header names.
void ObjectLog::start_log() {
    const log::RingStart start = planted(Bug::log_heap_same_epoch) ? log::RingStart{files_.ring_start().epoch, 0, 1, files_.ring_start().chain_seed}
                                                                   : log::RingStart{{random_u64()}, 0, 1, random_u64()};
    log::GroupLog::Options options;
    options.window = options_.loss_window;
    options.flusher = options_.durability == Durability::async;
    log_ = std::make_unique<log::GroupLog>(std::make_unique<log::Ring>(files_.ring(), files_.identity(), start, start.position), Serial{serial_},
                                           options);
    log_->on_pressure = [this] { ask_keeper(); };  // whoever appends has the lock
    if (tail_.size() + tail_room > layout::tail_max)
        checkpoint_now(false);
    else
        flush();
    if (!tail_.empty()) since_checkpoint_ = checkpoint_bytes();  // an image is due, and opening doesn't wait for it
    for (std::uint32_t n = 1; n <= files_.segments(); ++n) free_if_dead(n, 0);
    // Each recovery takes segments for what it finds in the ring: the next one shall have some, however short this life is.
    ensure_free(reserve + 1, 0, 0);
    try {
        ensure_image_room(0);    // later ones lie behind what images take, so one may be written meanwhile
    } catch (const HeapFull&) {  // those that there are have theirs
    }
    counts_ = {};  // of what was found nobody wants to know
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
