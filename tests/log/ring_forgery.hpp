#pragma once
/// Makes changed bytes of a ring file right again, as an attacker would: the checksums by FORMAT.md, not by the code under test.

#include <cstring>
#include <span>

#include "base/checksum.hpp"
#include "log/ring.hpp"
#include "log/ring_layout.hpp"

namespace taiyen::log::test {

inline std::uint64_t ring_key(const RingIdentity& identity) {
    std::uint64_t halves[2];
    std::memcpy(halves, identity.ring.bytes.data(), sizeof halves);
    return mix(halves[0], halves[1]);
}

/// Writes `slot` with its right checksum.
inline void forge_identity(std::span<std::byte> place, unsigned index, layout::IdentitySlot slot) {
    slot.checksum = checksum({reinterpret_cast<const std::byte*>(&slot), offsetof(layout::IdentitySlot, checksum)}, index);
    std::memcpy(place.data(), &slot, sizeof slot);
}

/// Writes `header` with its right own checksum into the first sector of a record.
inline void forge_header(std::byte* sector, const RingIdentity& identity, layout::RecordHeader header) {
    header.header_checksum =
        checksum({reinterpret_cast<const std::byte*>(&header), offsetof(layout::RecordHeader, header_checksum)}, ring_key(identity));
    std::memcpy(sector + sizeof(layout::SectorStamp), &header, sizeof header);
}

/// Makes the checksum of a whole record right.
inline void forge_record(std::span<std::byte> record, std::uint64_t seed) {
    std::byte* const field = record.data() + sizeof(layout::SectorStamp) + offsetof(layout::RecordHeader, record_checksum);
    std::memset(field, 0, sizeof(std::uint64_t));
    const std::uint64_t sum = checksum(record, seed);
    std::memcpy(field, &sum, sizeof sum);
}

/// Stamps a sector as the one at `position` of that life.
inline void forge_stamp(std::byte* sector, const RingIdentity& identity, Epoch epoch, std::uint64_t position, bool begins) {
    const auto fold = [](std::uint64_t value) { return static_cast<std::uint32_t>(value ^ (value >> 32U)); };
    const std::uint64_t key = ring_key(identity);
    layout::SectorStamp stamp{};
    stamp.epoch_tag = fold(mix(epoch.value, key));
    stamp.lap = static_cast<std::uint32_t>(position / identity.capacity_bytes);
    stamp.place = static_cast<std::uint32_t>(position % identity.capacity_bytes / layout::sector_bytes) | (begins ? layout::place_begins : 0U);
    stamp.check = fold(mix(mix(key, stamp.epoch_tag | (std::uint64_t{stamp.lap} << 32U)), stamp.place));
    std::memcpy(sector, &stamp, sizeof stamp);
}

}  // namespace taiyen::log::test
