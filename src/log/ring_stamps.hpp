#pragma once
/// What appending to a ring and scanning it must agree on: the stamps of sectors, and what the checksums of a record begin with.
///
/// Where they lie and what they say: FORMAT.md, ring_layout.hpp. Thread rule: pure functions, and immutable.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "log/ring.hpp"
#include "log/ring_layout.hpp"

namespace taiyen::log {

inline bool capacity_is_possible(ByteCount capacity) {
    return capacity >= layout::capacity_min && capacity <= layout::capacity_max && capacity % layout::block_bytes == 0;
}

template <class T>
T load(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

inline std::uint64_t key_of(const Uuid& uuid) {
    std::uint64_t halves[2];
    static_assert(sizeof halves == sizeof uuid.bytes);
    std::memcpy(halves, uuid.bytes.data(), sizeof halves);
    return mix(halves[0], halves[1]);
}

constexpr std::uint32_t fold(std::uint64_t value) { return static_cast<std::uint32_t>(value ^ (value >> 32U)); }

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

    layout::SectorStamp stamp(std::uint64_t position, bool begins) const {
        layout::SectorStamp made{tag_, lap(position), place(position) | (begins ? layout::place_begins : 0U), 0};
        made.check = check(made);
        return made;
    }

    SectorState judge(const std::byte* sector, std::uint64_t position) const {
        const auto found = load<layout::SectorStamp>(sector);
        if (found.check != check(found) || found.epoch_tag == 0)
            return is_zero({sector, layout::sector_bytes}) ? SectorState::stale : SectorState::damaged;
        if ((found.place & ~layout::place_begins) != place(position)) return SectorState::damaged;  // a misdirected write
        if (found.epoch_tag != tag_) return SectorState::stale;
        if (const std::uint32_t behind = lap(position) - found.lap; behind != 0) {
            // A later lap means that records which were still needed have been overwritten.
            return behind < (1U << 31U) ? SectorState::stale : SectorState::damaged;
        }
        return (found.place & layout::place_begins) != 0 ? SectorState::begins : SectorState::continues;
    }

    std::uint64_t ring_key() const { return ring_key_; }

private:
    std::uint32_t lap(std::uint64_t position) const { return static_cast<std::uint32_t>(position / capacity_); }
    std::uint32_t place(std::uint64_t position) const { return static_cast<std::uint32_t>(position % capacity_ / layout::sector_bytes); }
    std::uint32_t check(const layout::SectorStamp& stamp) const {
        const std::uint64_t low = stamp.epoch_tag | (std::uint64_t{stamp.lap} << 32U);
        return fold(mix(mix(ring_key_, low), stamp.place));
    }

    std::uint64_t ring_key_;
    std::uint32_t tag_;
    std::uint64_t capacity_;
};

inline std::uint64_t header_checksum(const layout::RecordHeader& header, std::uint64_t ring_key) {
    return checksum({reinterpret_cast<const std::byte*>(&header), offsetof(layout::RecordHeader, header_checksum)}, ring_key);
}

/// What the checksum of the record at `start` begins with.
inline std::uint64_t seed_of(const RingStart& start) { return planted(Bug::skip_seed) ? 0 : start.chain_seed; }

}  // namespace taiyen::log
