// What a ring file says about itself: made, found, written anew.

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "io/blank.hpp"
#include "log/ring.hpp"
#include "log/ring_stamps.hpp"

namespace taiyen::log {
namespace {

using layout::IdentitySlot;

static_assert(Ring::header_bytes == layout::identity_slots * layout::identity_slot_bytes);
static_assert(Ring::capacity_min == layout::capacity_min);

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
    if (std::memcmp(slot.magic, layout::identity_magic, sizeof slot.magic) != 0) return SlotState::foreign;
    if (slot.byte_order == layout::byte_order_swapped) return SlotState::other_byte_order;
    if (slot.byte_order != layout::byte_order_mark || slot.checksum != slot_checksum(slot, index)) return SlotState::damaged;
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

}  // namespace

void Ring::format(io::File& file, const RingIdentity& identity, Lasting lasting) {
    TAIYEN_CHECK(capacity_is_possible(identity.capacity_bytes));
    file.allocate(0, header_bytes + identity.capacity_bytes);
    // Really written, if it is to last: a direct write into allocated but never written blocks costs a journal commit of the file system.
    const AlignedBuffer zeros(std::min<ByteCount>(1_MiB, identity.capacity_bytes));
    std::memset(zeros.data(), 0, zeros.size());
    for (ByteCount done = lasting == Lasting::scratch ? identity.capacity_bytes : 0; done < identity.capacity_bytes;) {
        const ByteCount part = std::min(zeros.size(), identity.capacity_bytes - done);
        file.write(zeros.first(part), header_bytes + done);
        done += part;
    }
    file.sync();
    // Last: a file with an identity has its whole record area.
    const AlignedBuffer header(header_bytes);
    for (unsigned index = 0; index < layout::identity_slots; ++index)
        encode(identity, index + 1, index, header.data() + index * layout::identity_slot_bytes);
    file.write_durable(header.span(), 0);
}

RingIdentity Ring::read_identity(const io::File& file) { return find_identity(file).identity; }

bool Ring::is_left_of(const io::File& file, const Uuid& heap) {
    const AlignedBuffer buffer(header_bytes);
    std::memset(buffer.data(), 0, buffer.size());
    const ByteCount got = file.read_direct(buffer.span(), 0);
    for (unsigned index = 0; index < layout::identity_slots; ++index) {
        const auto slot = load<IdentitySlot>(buffer.data() + index * layout::identity_slot_bytes);
        if (judge(slot, index) == SlotState::sound) return std::memcmp(slot.heap, heap.bytes.data(), sizeof slot.heap) == 0;
    }
    const bool ends_within_slot = got < sizeof(IdentitySlot) &&
                                  std::memcmp(buffer.data(), layout::identity_magic, std::min<ByteCount>(got, sizeof layout::identity_magic)) == 0;
    return ends_within_slot || io::is_blank(file, 0);
}

void Ring::write_identity(io::File& file, const RingIdentity& identity) {
    const FoundIdentity found = find_identity(file);
    if (found.identity.ring != identity.ring || found.identity.capacity_bytes != identity.capacity_bytes)
        throw Error(errc::mismatch, file.path(), "this is ring " + found.identity.ring.text() + ", not " + identity.ring.text());
    const unsigned index = 1 - found.index;
    const AlignedBuffer slot(layout::identity_slot_bytes);
    encode(identity, found.sequence + 1, index, slot.data());
    file.write_durable(slot.span(), index * layout::identity_slot_bytes);
}

}  // namespace taiyen::log
