#include "log/ring.hpp"

#include <algorithm>
#include <cstring>
#include <future>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "log/ring_layout.hpp"

namespace taiyen::log {
namespace {

using layout::block_bytes;
using layout::IdentitySlot;
using layout::RecordHeader;
using layout::sector_bytes;
using layout::sector_payload_bytes;
using layout::SectorStamp;

static_assert(sector_bytes == io::sector_bytes);
static_assert(block_bytes % io::direct_alignment == 0 && page_bytes % io::direct_alignment == 0);
static_assert(Ring::header_bytes == layout::identity_slots * layout::identity_slot_bytes);
static_assert(Ring::capacity_min == layout::capacity_min);

template <class T>
T load(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

std::uint64_t key_of(const Uuid& uuid) {
    std::uint64_t halves[2];
    static_assert(sizeof halves == sizeof uuid.bytes);
    std::memcpy(halves, uuid.bytes.data(), sizeof halves);
    return mix(halves[0], halves[1]);
}

constexpr std::uint32_t fold(std::uint64_t value) { return static_cast<std::uint32_t>(value ^ (value >> 32U)); }

// ---- stamps

/// What a sector says about itself, seen from the place and life where it is looked for.
enum class SectorState {
    begins,     ///< of this life and lap; a record begins with it
    continues,  ///< of this life and lap; inside a record
    stale,      ///< never written, or written in an earlier lap or another life: what a torn write leaves
    damaged     ///< what no write can leave: a stamp that contradicts itself or lies in the wrong place
};

/// Makes and judges the stamps of one ring in one life.
class Stamper {
public:
    Stamper(const RingIdentity& identity, Epoch epoch)
        : ring_key_(key_of(identity.ring)), tag_(std::max(fold(mix(epoch.value, ring_key_)), 1U)), capacity_(identity.capacity_bytes) {}

    SectorStamp stamp(std::uint64_t position, bool begins) const {
        SectorStamp made{tag_, lap(position), place(position) | (begins ? layout::place_begins : 0U), 0};
        made.check = check(made);
        return made;
    }

    SectorState judge(const std::byte* sector, std::uint64_t position) const {
        const auto found = load<SectorStamp>(sector);
        if (found.check != check(found) || found.epoch_tag == 0) {
            return is_zero({sector, sector_bytes}) ? SectorState::stale : SectorState::damaged;
        }
        if ((found.place & ~layout::place_begins) != place(position)) {
            return SectorState::damaged;  // a misdirected write
        }
        if (found.epoch_tag != tag_) {
            return SectorState::stale;
        }
        if (const std::uint32_t behind = lap(position) - found.lap; behind != 0) {
            // A later lap means that records which were still needed have been overwritten.
            return behind < (1U << 31U) ? SectorState::stale : SectorState::damaged;
        }
        return (found.place & layout::place_begins) != 0 ? SectorState::begins : SectorState::continues;
    }

    std::uint64_t ring_key() const { return ring_key_; }

private:
    std::uint32_t lap(std::uint64_t position) const { return static_cast<std::uint32_t>(position / capacity_); }
    std::uint32_t place(std::uint64_t position) const { return static_cast<std::uint32_t>(position % capacity_ / sector_bytes); }
    std::uint32_t check(const SectorStamp& stamp) const {
        const std::uint64_t low = stamp.epoch_tag | (std::uint64_t{stamp.lap} << 32U);
        return fold(mix(mix(ring_key_, low), stamp.place));
    }

    std::uint64_t ring_key_;
    std::uint32_t tag_;
    std::uint64_t capacity_;
};

std::uint64_t header_checksum(const RecordHeader& header, std::uint64_t ring_key) {
    return checksum({reinterpret_cast<const std::byte*>(&header), offsetof(RecordHeader, header_checksum)}, ring_key);
}

/// What the checksum of the record at `start` begins with.
std::uint64_t seed_of(const RingStart& start) { return planted(Bug::skip_seed) ? 0 : start.chain_seed; }

// ---- identity

bool capacity_is_possible(ByteCount capacity) {
    return capacity >= layout::capacity_min && capacity <= layout::capacity_max && capacity % block_bytes == 0;
}

std::uint64_t slot_checksum(const IdentitySlot& slot, unsigned index) {
    return checksum({reinterpret_cast<const std::byte*>(&slot), offsetof(IdentitySlot, checksum)}, index);
}

void encode(const RingIdentity& identity, std::uint64_t sequence, unsigned index, std::byte* to) {
    IdentitySlot slot;
    std::memset(static_cast<void*>(&slot), 0, sizeof slot);
    std::memcpy(slot.magic, layout::identity_magic, sizeof slot.magic);
    slot.byte_order = layout::byte_order_mark;
    slot.version = layout::version;
    slot.sequence = sequence;
    std::memcpy(slot.ring, identity.ring.bytes.data(), sizeof slot.ring);
    std::memcpy(slot.heap, identity.heap.bytes.data(), sizeof slot.heap);
    slot.capacity_bytes = identity.capacity_bytes;
    slot.flags = identity.is_new ? layout::identity_is_new : 0;
    slot.checksum = slot_checksum(slot, index);
    std::memcpy(to, &slot, sizeof slot);
}

/// The slot that counts.
struct FoundIdentity {
    RingIdentity identity;
    std::uint64_t sequence;
    unsigned index;
};

/// What is wrong with a slot, from the least telling to the most telling.
enum class SlotState { foreign, damaged, newer_version, other_byte_order, sound };

SlotState judge(const IdentitySlot& slot, unsigned index) {
    if (std::memcmp(slot.magic, layout::identity_magic, sizeof slot.magic) != 0) {
        return SlotState::foreign;
    }
    if (slot.byte_order == layout::byte_order_swapped) {
        return SlotState::other_byte_order;
    }
    if (slot.byte_order != layout::byte_order_mark || slot.checksum != slot_checksum(slot, index)) {
        return SlotState::damaged;
    }
    return slot.version == layout::version && slot.features_incompatible == 0 ? SlotState::sound : SlotState::newer_version;
}

FoundIdentity find_identity(const io::File& file) {
    const AlignedBuffer buffer(Ring::header_bytes);
    const ByteCount got = file.read_direct(buffer.span(), 0);
    if (got < Ring::header_bytes) {
        const bool ours = got > 0 && std::memcmp(buffer.data(), layout::identity_magic, std::min<ByteCount>(got, sizeof layout::identity_magic)) == 0;
        throw Error(ours ? errc::truncated : errc::not_a_heap, file.path(), got,
                    ours ? "this ring file ends within its identity" : "this is no ring file");
    }
    std::optional<FoundIdentity> best;
    auto worst_news = SlotState::foreign;
    for (unsigned index = 0; index < layout::identity_slots; ++index) {
        const auto slot = load<IdentitySlot>(buffer.data() + index * layout::identity_slot_bytes);
        const SlotState state = judge(slot, index);
        if (state != SlotState::sound) {
            worst_news = std::max(worst_news, state);
        } else if (!best || slot.sequence > best->sequence) {
            best = FoundIdentity{{}, slot.sequence, index};
            std::memcpy(best->identity.ring.bytes.data(), slot.ring, sizeof slot.ring);
            std::memcpy(best->identity.heap.bytes.data(), slot.heap, sizeof slot.heap);
            best->identity.capacity_bytes = slot.capacity_bytes;
            best->identity.is_new = (slot.flags & layout::identity_is_new) != 0;
        }
    }
    if (worst_news == SlotState::newer_version) {  // even beside a sound one: a newer library has worked here
        throw Error(errc::unsupported_version, file.path(), offsetof(IdentitySlot, version),
                    "this ring file is of a newer version; use a newer taiyen");
    }
    if (!best) {
        switch (worst_news) {
            case SlotState::foreign: throw Error(errc::not_a_heap, file.path(), 0, "this is no ring file");
            case SlotState::other_byte_order:
                throw Error(errc::foreign_byte_order, file.path(), offsetof(IdentitySlot, byte_order),
                            "this ring file was written on a machine with another byte order");
            default: throw Error(errc::corrupt, file.path(), 0, "both copies of the ring's identity are damaged");
        }
    }
    if (!capacity_is_possible(best->identity.capacity_bytes)) {
        throw Error(errc::corrupt, file.path(), best->index * layout::identity_slot_bytes + offsetof(IdentitySlot, capacity_bytes),
                    "a ring can't have " + std::to_string(best->identity.capacity_bytes) + " bytes");
    }
    if (const ByteCount size = file.info().size_bytes; size < Ring::header_bytes + best->identity.capacity_bytes) {
        throw Error(errc::truncated, file.path(), size,
                    "this ring file should have " + std::to_string(Ring::header_bytes + best->identity.capacity_bytes) + " bytes");
    }
    return *best;
}

// ---- reading

/// Serves blocks of the ring by logical position, through a window that is read directly. Who reads on is read ahead for: the window grows, and the next one comes while this one is looked at.
class BlockReader {
public:
    /// Nothing at or behind `limit` is read.
    BlockReader(const io::File& file, const RingIdentity& identity, std::uint64_t limit) : file_(file), identity_(identity), limit_(limit) {}

    /// Valid until the next call.
    const std::byte* block(std::uint64_t position) {
        if (position < begin_ || position >= end_) {
            fill(position);
        }
        return window_.data() + (position - begin_);
    }

private:
    static constexpr ByteCount first_window_bytes = 256_KiB;
    static constexpr ByteCount window_bytes_max = 2_MiB;

    void fill(std::uint64_t position) {
        const bool reads_on = end_ != 0 && position == end_;
        begin_ = end_ = 0;
        ByteCount bytes = 0;
        if (ahead_.valid()) {
            // Waited for even if something else is wanted: its buffer is ours. What went wrong there matters only if its bytes do.
            ahead_.wait();
            if (std::future<ByteCount> ahead = std::move(ahead_); position == ahead_position_) {
                bytes = ahead.get();
                std::swap(window_, ahead_window_);
            }
        }
        if (bytes == 0) {
            bytes = read(position, window_);
        }
        begin_ = position;
        end_ = position + bytes;
        if (reads_on) {
            size_ = std::min(2 * size_, window_bytes_max);
            read_ahead();
        }
    }

    void read_ahead() {
        if (end_ >= limit_) {
            return;
        }
        ahead_position_ = end_;
        try {
            ahead_ = std::async(std::launch::async, [this] { return read(ahead_position_, ahead_window_); });
        } catch (const std::system_error&) {
            // No thread to be had: every window is read when it is needed.
        }
    }

    /// As much as `size_` says, and the ring holds; returns how much.
    ByteCount read(std::uint64_t position, AlignedBuffer& window) const {
        const ByteCount wanted = std::min<std::uint64_t>({size_, identity_.capacity_bytes, limit_ - position});
        const ByteCount first = std::min<std::uint64_t>(wanted, identity_.capacity_bytes - position % identity_.capacity_bytes);
        window.grow(wanted);
        read(position, window.data(), first);
        if (first < wanted) {
            read(position + first, window.data() + first, wanted - first);
        }
        return wanted;
    }
    void read(std::uint64_t position, std::byte* to, ByteCount bytes) const {
        const std::uint64_t offset = Ring::file_offset(identity_, position);
        if (const ByteCount got = file_.read_direct({to, bytes}, offset); got != bytes) {
            throw Error(errc::truncated, file_.path(), offset + got, "this ring file has become shorter");
        }
    }

    const io::File& file_;
    const RingIdentity& identity_;
    std::uint64_t limit_;
    ByteCount size_ = first_window_bytes;
    AlignedBuffer window_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    AlignedBuffer ahead_window_;
    std::uint64_t ahead_position_ = 0;
    std::future<ByteCount> ahead_;  ///< last: its end waits for the thread that fills the window
};

/// How far behind a missing record a later one is looked for: it would prove that the missing one had been acknowledged.
constexpr ByteCount look_ahead_bytes = 1_MiB;

class Scanner {
public:
    Scanner(const io::File& file, const RingIdentity& identity, const RingStart& start)
        : identity_(identity), stamper_(identity, start.epoch), limit_(start.position + identity.capacity_bytes), reader_(file, identity, limit_),
          next_(start) {}

    /// Reads the record at `next()` into `record`; nothing: that was the end, and `how` says which.
    bool read(Record& record, ScanEnd& how) {
        if (next_.position == limit_) {
            how = ScanEnd::end;  // a full ring
            return false;
        }
        const std::byte* const first = reader_.block(next_.position);
        const SectorState beginning = judge(first, next_.position, true);
        if (beginning != SectorState::begins) {
            how = without_beginning(first, beginning);
            return false;
        }
        const auto header = load<RecordHeader>(first + sizeof(SectorStamp));
        if (header.magic != layout::record_magic || header.header_checksum != header_checksum(header, stamper_.ring_key())) {
            how = ScanEnd::corrupt;
            return false;
        }
        if (header.epoch != next_.epoch.value) {
            how = ScanEnd::end;  // of another life whose tag happens to be the same
            return false;
        }
        const ByteCount bytes = Ring::record_bytes(header.payload_bytes);
        if (header.sequence != next_.sequence || header.position != next_.position || header.flags != 0 || bytes > limit_ - next_.position ||
            std::memcmp(header.heap, identity_.heap.bytes.data(), sizeof header.heap) != 0) {
            how = ScanEnd::corrupt;
            return false;
        }
        if (const SectorState found = collect(bytes); found != SectorState::continues) {
            how = found == SectorState::stale && !begins_at(next_.position + bytes) ? ScanEnd::torn : ScanEnd::corrupt;
            return false;
        }
        std::memset(raw_.data() + sizeof(SectorStamp) + offsetof(RecordHeader, record_checksum), 0, sizeof header.record_checksum);
        if (checksum(raw_, seed_of(next_)) != header.record_checksum && !planted(Bug::torn_group_accepted)) {
            how = ScanEnd::corrupt;
            return false;
        }
        record.kind = header.kind;
        record.number = header.number;
        record.sequence = header.sequence;
        record.position = next_.position;
        record.file_offset = Ring::file_offset(identity_, next_.position);
        extract_payload(header.payload_bytes, record.payload);
        next_.position += bytes;
        ++next_.sequence;
        next_.chain_seed = header.record_checksum;
        return true;
    }

    const RingStart& next() const { return next_; }

private:
    SectorState judge(const std::byte* sector, std::uint64_t position, bool is_first) const {
        if ((planted(Bug::skip_stamp_check) || planted(Bug::torn_group_accepted)) &&
            (!is_first || load<RecordHeader>(sector + sizeof(SectorStamp)).magic == layout::record_magic)) {
            return is_first ? SectorState::begins : SectorState::continues;
        }
        return stamper_.judge(sector, position);
    }

    /// Reads the record's sectors into `raw_`, as far as they carry the right stamp. Memory grows only by what has been seen to be there.
    /// Returns `continues`, or the state of the first sector that isn't right.
    SectorState collect(ByteCount bytes) {
        raw_.clear();
        for (ByteCount at = 0; at < bytes; at += block_bytes) {
            const std::uint64_t position = next_.position + at;
            const std::byte* const block = reader_.block(position);
            for (ByteCount in_block = 0; in_block < block_bytes; in_block += sector_bytes) {
                const bool is_first = at + in_block == 0;
                const SectorState state = judge(block + in_block, position + in_block, is_first);
                if (state != (is_first ? SectorState::begins : SectorState::continues)) {
                    return state == SectorState::stale ? SectorState::stale : SectorState::damaged;
                }
            }
            raw_.insert(raw_.end(), block, block + block_bytes);
        }
        return SectorState::continues;
    }

    void extract_payload(ByteCount payload_bytes, std::vector<std::byte>& payload) const {
        payload.resize(payload_bytes);
        ByteCount done = 0;
        for (ByteCount from = sizeof(SectorStamp) + sizeof(RecordHeader); done < payload_bytes;) {
            const ByteCount part = std::min(payload_bytes - done, sector_bytes - from % sector_bytes);
            std::memcpy(payload.data() + done, raw_.data() + from, part);
            done += part;
            from += part + sizeof(SectorStamp);
        }
    }

    /// The sector where a record should begin doesn't begin one.
    ScanEnd without_beginning(const std::byte* block, SectorState beginning) {
        bool others_there = false;
        bool others_stale = true;
        for (ByteCount at = sector_bytes; at < block_bytes; at += sector_bytes) {
            const SectorState state = stamper_.judge(block + at, next_.position + at);
            others_there = others_there || state == SectorState::begins || state == SectorState::continues;
            others_stale = others_stale && state == SectorState::stale;
        }
        // A single damaged sector among stale ones is rot where no record was ever complete.
        if (beginning == SectorState::continues || (beginning == SectorState::damaged && !others_stale)) {
            return ScanEnd::corrupt;
        }
        const std::uint64_t last = std::min(limit_, next_.position + look_ahead_bytes);
        for (std::uint64_t position = next_.position + block_bytes; position < last; position += block_bytes) {
            if (begins_at(position)) {
                return ScanEnd::corrupt;
            }
        }
        return others_there ? ScanEnd::torn : ScanEnd::end;
    }

    /// Whether a record of this life and lap begins there: the one before it had been acknowledged then.
    bool begins_at(std::uint64_t position) { return position < limit_ && stamper_.judge(reader_.block(position), position) == SectorState::begins; }

    const RingIdentity& identity_;
    Stamper stamper_;
    std::uint64_t limit_;
    BlockReader reader_;
    RingStart next_;
    std::vector<std::byte> raw_;
};

// ---- writing

/// Lays bytes into the payload parts of consecutive sectors, leaving the stamps' places free.
class SectorWriter {
public:
    /// Begins at byte `at` of the payloads in a row.
    explicit SectorWriter(std::byte* sectors, ByteCount at = 0)
        : at_(sectors + at / sector_payload_bytes * sector_bytes + sizeof(SectorStamp) + at % sector_payload_bytes),
          room_(sector_payload_bytes - at % sector_payload_bytes) {}
    void put(const std::byte* bytes, ByteCount count) {
        while (count > 0) {
            if (room_ == 0) {
                at_ += sizeof(SectorStamp);
                room_ = sector_payload_bytes;
            }
            if (room_ == sector_payload_bytes && count >= sector_payload_bytes) {
                std::memcpy(at_, bytes, sector_payload_bytes);  // a constant length: vector moves, no call
                advance(bytes, count, sector_payload_bytes);
            } else {
                const ByteCount part = std::min(room_, count);
                std::memcpy(at_, bytes, part);
                advance(bytes, count, part);
            }
        }
    }
    /// So many bytes for the caller to fill; null: they don't fit into this sector, nothing was taken.
    std::byte* take(ByteCount count) {
        if (count > room_) return nullptr;
        std::byte* const taken = at_;
        at_ += count;
        room_ -= count;
        return taken;
    }
    /// Zeros from here to `end`; stamps are written later.
    void pad(const std::byte* end) {
        if (at_ < end) {  // not if the payload fills its last sector
            std::memset(at_, 0, static_cast<std::size_t>(end - at_));
        }
    }

private:
    void advance(const std::byte*& bytes, ByteCount& count, ByteCount part) {
        bytes += part;
        count -= part;
        at_ += part;
        room_ -= part;
    }

    std::byte* at_;
    ByteCount room_;
};

/// A buffer that one huge record made is not kept for the small ones.
constexpr ByteCount buffer_kept_bytes = 4_MiB;

}  // namespace

// ---- the ring file

void Ring::format(io::File& file, const RingIdentity& identity) {
    TAIYEN_CHECK(capacity_is_possible(identity.capacity_bytes));
    file.allocate(0, header_bytes + identity.capacity_bytes);
    // Really written: a direct write into allocated but never written blocks costs a journal commit of the file system.
    const AlignedBuffer zeros(std::min<ByteCount>(1_MiB, identity.capacity_bytes));
    std::memset(zeros.data(), 0, zeros.size());
    for (ByteCount done = 0; done < identity.capacity_bytes;) {
        const ByteCount part = std::min(zeros.size(), identity.capacity_bytes - done);
        file.write(zeros.first(part), header_bytes + done);
        done += part;
    }
    file.sync();
    // Last: a file with an identity has its whole record area.
    const AlignedBuffer header(header_bytes);
    for (unsigned index = 0; index < layout::identity_slots; ++index) {
        encode(identity, index + 1, index, header.data() + index * layout::identity_slot_bytes);
    }
    file.write_durable(header.span(), 0);
}

RingIdentity Ring::read_identity(const io::File& file) { return find_identity(file).identity; }

void Ring::write_identity(io::File& file, const RingIdentity& identity) {
    const FoundIdentity found = find_identity(file);
    if (found.identity.ring != identity.ring || found.identity.capacity_bytes != identity.capacity_bytes) {
        throw Error(errc::mismatch, file.path(), "this is ring " + found.identity.ring.text() + ", not " + identity.ring.text());
    }
    const unsigned index = 1 - found.index;
    const AlignedBuffer slot(layout::identity_slot_bytes);
    encode(identity, found.sequence + 1, index, slot.data());
    file.write_durable(slot.span(), index * layout::identity_slot_bytes);
}

ScanResult Ring::scan(const io::File& file, const RingIdentity& identity, const RingStart& start, const std::function<bool(const Record&)>& sink) {
    if (!capacity_is_possible(identity.capacity_bytes) || start.position % block_bytes != 0 ||
        start.position > std::numeric_limits<std::uint64_t>::max() / 2) {
        throw Error(errc::corrupt, file.path(),
                    "a ring of " + std::to_string(identity.capacity_bytes) + " bytes can't begin at position " + std::to_string(start.position));
    }
    Scanner scanner(file, identity, start);
    ScanResult result{ScanEnd::end, start, 0};
    for (Record record; scanner.read(record, result.how);) {
        ++result.records;
        if (!sink(record)) {
            break;
        }
    }
    result.next = scanner.next();
    return result;
}

// ---- appending

void RecordBuffer::reserve(ByteCount payload_bytes) {
    const ByteCount bytes = Ring::record_bytes(payload_bytes);
    if (bytes <= sectors_.size()) {
        return;
    }
    AlignedBuffer larger(std::max(bytes, std::min<ByteCount>(2 * sectors_.size(), buffer_kept_bytes)));
    if (payload_bytes_ > 0) {
        std::memcpy(larger.data(), sectors_.data(), sectors_.size());
    }
    sectors_ = std::move(larger);
}

ByteCount RecordBuffer::payload_bytes_max() const { return Ring::payload_bytes_max(sectors_.size()); }

void RecordBuffer::put(std::span<const std::byte> bytes) {
    SectorWriter(sectors_.data(), sizeof(RecordHeader) + payload_bytes_).put(bytes.data(), bytes.size());
    payload_bytes_ += bytes.size();
}

void RecordBuffer::put_padded(std::uint64_t head, std::span<const std::span<const std::byte>> pieces, ByteCount bytes) {
    constexpr std::uint64_t zeros = 0;
    const ByteCount all = sizeof head + round_up(bytes, 8);
    SectorWriter writer(sectors_.data(), sizeof(RecordHeader) + payload_bytes_);
    if (std::byte* at = writer.take(all); at != nullptr) {  // most records are small
        std::memcpy(at + (all - sizeof zeros), &zeros, sizeof zeros);
        std::memcpy(at, &head, sizeof head);
        at += sizeof head;
        for (const auto& piece : pieces) {
            if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
            at += piece.size();
        }
    } else {
        writer.put(reinterpret_cast<const std::byte*>(&head), sizeof head);
        for (const auto& piece : pieces) writer.put(piece.data(), piece.size());
        writer.put(reinterpret_cast<const std::byte*>(&zeros), all - sizeof head - bytes);
    }
    payload_bytes_ += all;
}

void RecordBuffer::overwrite(ByteCount at, std::span<const std::byte> bytes) {
    SectorWriter(sectors_.data(), sizeof(RecordHeader) + at).put(bytes.data(), bytes.size());
}

struct Ring::State {
    std::shared_ptr<io::File> file;
    RingIdentity identity;
    RingStart next;
    std::uint64_t tail;
    Stamper stamper;
    RecordBuffer buffer;
    bool failed = false;

    /// Header, padding and stamps around a payload; returns the record's checksum.
    std::uint64_t complete(std::uint32_t kind, std::uint64_t number, std::byte* sectors, ByteCount payload_bytes, ByteCount bytes) const;
    void write(const std::byte* sectors, ByteCount bytes);
    void require_sound() const {
        if (failed) {
            throw Error(errc::poisoned, file->path(), "an earlier write to this ring failed; reopen the heap");
        }
    }
};

std::uint64_t Ring::State::complete(std::uint32_t kind, std::uint64_t number, std::byte* sectors, ByteCount payload_bytes, ByteCount bytes) const {
    RecordHeader header{};
    header.magic = layout::record_magic;
    header.kind = kind;
    header.epoch = next.epoch.value;
    header.sequence = next.sequence;
    header.number = number;
    header.position = next.position;
    header.payload_bytes = payload_bytes;
    header.durable_upto = next.sequence - 1;
    std::memcpy(header.heap, identity.heap.bytes.data(), sizeof header.heap);
    header.header_checksum = header_checksum(header, stamper.ring_key());

    SectorWriter(sectors).put(reinterpret_cast<const std::byte*>(&header), sizeof header);
    SectorWriter(sectors, sizeof header + payload_bytes).pad(sectors + bytes);
    for (ByteCount at = 0; at < bytes; at += sector_bytes) {
        const SectorStamp stamp = stamper.stamp(next.position + at, at == 0);
        std::memcpy(sectors + at, &stamp, sizeof stamp);
    }
    const std::uint64_t sum = checksum({sectors, bytes}, seed_of(next));
    std::memcpy(sectors + sizeof(SectorStamp) + offsetof(RecordHeader, record_checksum), &sum, sizeof sum);
    return sum;
}

void Ring::State::write(const std::byte* sectors, ByteCount bytes) {
    if (planted(Bug::acknowledge_before_write)) {
        std::uint64_t at = next.position;
        for (ByteCount done = 0; done < bytes; done += block_bytes, at += block_bytes) {
            file->write({sectors + done, block_bytes}, Ring::file_offset(identity, at));
        }
        return;
    }
    const std::uint64_t place = next.position % identity.capacity_bytes;
    const ByteCount before_wrap = std::min<std::uint64_t>(bytes, identity.capacity_bytes - place);
    if (before_wrap < bytes) {
        // The part without the header first: once a header is there, only its own write can still be incomplete.
        file->write_durable({sectors + before_wrap, bytes - before_wrap}, header_bytes);
    }
    file->write_durable({sectors, before_wrap}, header_bytes + place);
}

Ring::Ring(std::shared_ptr<io::File> file, const RingIdentity& identity, const RingStart& next, std::uint64_t tail_position)
    : state_(new State{std::move(file), identity, next, tail_position, Stamper(identity, next.epoch), RecordBuffer()}) {
    TAIYEN_CHECK(state_->file != nullptr && capacity_is_possible(identity.capacity_bytes) && next.position % block_bytes == 0);
    TAIYEN_CHECK(tail_position <= next.position && next.position - tail_position <= identity.capacity_bytes);
}
Ring::~Ring() = default;

ByteCount Ring::payload_bytes_max(ByteCount record_bytes) {
    const ByteCount all = record_bytes / block_bytes * (layout::sectors_per_block * sector_payload_bytes);
    return all - std::min(all, sizeof(RecordHeader));
}

ByteCount Ring::record_bytes(ByteCount payload_bytes) {
    constexpr ByteCount impossible = std::numeric_limits<ByteCount>::max() & ~(block_bytes - 1);
    if (payload_bytes > impossible / 2) {
        return impossible;
    }
    const ByteCount sectors = (sizeof(RecordHeader) + payload_bytes + sector_payload_bytes - 1) / sector_payload_bytes;
    return round_up(sectors * sector_bytes, block_bytes);
}

ByteCount Ring::capacity() const { return state_->identity.capacity_bytes; }
ByteCount Ring::free_bytes() const { return capacity() - (state_->next.position - state_->tail); }

std::uint64_t Ring::append(std::uint32_t kind, std::uint64_t number, std::span<const std::span<const std::byte>> payload) {
    State& state = *state_;
    state.require_sound();
    ByteCount payload_bytes = 0;
    for (const auto& piece : payload) {
        payload_bytes += piece.size();
    }
    TAIYEN_CHECK(fits(payload_bytes));
    state.buffer.clear();
    state.buffer.reserve(payload_bytes);
    for (const auto& piece : payload) {
        state.buffer.put(piece);
    }
    const std::uint64_t position = append(kind, number, state.buffer);
    state.buffer.clear();
    state.buffer.keep_at_most(buffer_kept_bytes);
    return position;
}

void Ring::reserve(ByteCount payload_bytes) { state_->buffer.reserve(payload_bytes); }

std::uint64_t Ring::append(std::uint32_t kind, std::uint64_t number, RecordBuffer& record) {
    State& state = *state_;
    state.require_sound();
    TAIYEN_CHECK(fits(record.payload_bytes()));
    record.reserve(record.payload_bytes());
    const ByteCount bytes = record_bytes(record.payload_bytes());
    const std::uint64_t sum = state.complete(kind, number, record.sectors_.data(), record.payload_bytes(), bytes);
    state.failed = true;  // unless the write returns
    state.write(record.sectors_.data(), bytes);
    state.failed = false;
    const std::uint64_t position = state.next.position;
    state.next.position += bytes;
    ++state.next.sequence;
    state.next.chain_seed = sum;
    return position;
}

const RingStart& Ring::next() const { return state_->next; }

void Ring::release(std::uint64_t position) {
    TAIYEN_CHECK(position <= state_->next.position);
    state_->tail = std::max(state_->tail, position);
}

std::uint64_t Ring::tail() const { return state_->tail; }
io::File& Ring::file() const { return *state_->file; }
const RingIdentity& Ring::identity() const { return state_->identity; }

}  // namespace taiyen::log
