#include "log/ring.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "log/ring_stamps.hpp"

namespace taiyen::log {
namespace {

using layout::block_bytes;
using layout::RecordHeader;
using layout::sector_bytes;
using layout::sector_payload_bytes;
using layout::SectorStamp;

static_assert(sector_bytes == io::sector_bytes);
static_assert(block_bytes % io::direct_alignment == 0 && page_bytes % io::direct_alignment == 0);

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
        if (at_ < end)  // not if the payload fills its last sector
            std::memset(at_, 0, static_cast<std::size_t>(end - at_));
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

void RecordBuffer::reserve(ByteCount payload_bytes) {
    const ByteCount bytes = Ring::record_bytes(payload_bytes);
    if (bytes <= sectors_.size()) return;
    AlignedBuffer larger(std::max(bytes, std::min<ByteCount>(2 * sectors_.size(), buffer_kept_bytes)));
    if (payload_bytes_ > 0) std::memcpy(larger.data(), sectors_.data(), sectors_.size());
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

std::vector<std::byte> RecordBuffer::payload() const {
    std::vector<std::byte> payload(payload_bytes_);
    for (ByteCount done = 0; done < payload_bytes_;) {
        const ByteCount at = sizeof(RecordHeader) + done;
        const ByteCount part = std::min(payload_bytes_ - done, sector_payload_bytes - at % sector_payload_bytes);
        std::memcpy(payload.data() + done,
                    sectors_.data() + at / sector_payload_bytes * sector_bytes + sizeof(SectorStamp) + at % sector_payload_bytes, part);
        done += part;
    }
    return payload;
}

struct Ring::State {
    std::shared_ptr<io::File> file;
    RingIdentity identity;
    RingStart next;
    std::uint64_t tail;
    Stamper stamper;
    Lasting lasting;
    RecordBuffer buffer;
    bool failed = false;

    /// Header, padding and stamps around a payload; returns the record's checksum.
    std::uint64_t complete(std::uint32_t kind, std::uint64_t number, std::byte* sectors, ByteCount payload_bytes, ByteCount bytes) const;
    void write(const std::byte* sectors, ByteCount bytes);
    void put(std::span<const std::byte> bytes, std::uint64_t offset) {
        if (lasting == Lasting::durable)
            file->write_durable(bytes, offset);
        else
            file->write(bytes, offset);
    }
    /// A write behind the end of a file that somebody has cut would be durable, and yet never be found.
    void require_whole() const {
        if (const ByteCount size = file->info().size_bytes; size < header_bytes + identity.capacity_bytes) {
            throw Error(
                errc::truncated, file->path(), size,
                "the file was cut while the heap was open, so nothing more is acknowledged; close the heap and restore its files from a copy");
        }
    }
    void require_sound() const {
        if (failed) throw Error(errc::poisoned, file->path(), "an earlier write to this ring failed; reopen the heap");
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
        for (ByteCount done = 0; done < bytes; done += block_bytes, at += block_bytes)
            file->write({sectors + done, block_bytes}, Ring::file_offset(identity, at));
        return;
    }
    const std::uint64_t place = next.position % identity.capacity_bytes;
    const ByteCount before_wrap = std::min<std::uint64_t>(bytes, identity.capacity_bytes - place);
    if (before_wrap < bytes) {
        // The part without the header first: once a header is there, only its own write can still be incomplete.
        put({sectors + before_wrap, bytes - before_wrap}, header_bytes);
    }
    put({sectors, before_wrap}, header_bytes + place);
}

Ring::Ring(std::shared_ptr<io::File> file, const RingIdentity& identity, const RingStart& next, std::uint64_t tail_position, Lasting lasting)
    : state_(new State{std::move(file), identity, next, tail_position, Stamper(identity, next.epoch), lasting, RecordBuffer()}) {
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
    if (payload_bytes > impossible / 2) return impossible;
    const ByteCount sectors = (sizeof(RecordHeader) + payload_bytes + sector_payload_bytes - 1) / sector_payload_bytes;
    return round_up(sectors * sector_bytes, block_bytes);
}

ByteCount Ring::capacity() const { return state_->identity.capacity_bytes; }
ByteCount Ring::free_bytes() const { return capacity() - (state_->next.position - state_->tail); }

std::uint64_t Ring::append(std::uint32_t kind, std::uint64_t number, std::span<const std::span<const std::byte>> payload) {
    State& state = *state_;
    state.require_sound();
    ByteCount payload_bytes = 0;
    for (const auto& piece : payload) payload_bytes += piece.size();
    TAIYEN_CHECK(fits(payload_bytes));
    state.buffer.clear();
    state.buffer.reserve(payload_bytes);
    for (const auto& piece : payload) state.buffer.put(piece);
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
    state.require_whole();
    state.write(record.sectors_.data(), bytes);
    state.require_whole();  // it may have been cut meanwhile
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
std::shared_ptr<io::File> Ring::shared_file() const { return state_->file; }
const RingIdentity& Ring::identity() const { return state_->identity; }

}  // namespace taiyen::log
