#include "store/header.hpp"

#include <algorithm>
#include <cstring>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "base/sentence.hpp"
#include "heap/core.hpp"
#include "heap/engine.hpp"
#include "heap/engine_layout.hpp"
#include "heap/geometry.hpp"
#include "store/opening_record.hpp"

namespace taiyen::store {
namespace {

Uuid uuid_from(const std::uint8_t (&bytes)[16]) {
    Uuid uuid;
    std::memcpy(uuid.bytes.data(), bytes, 16);
    return uuid;
}

std::uint64_t checksum_of(const HeaderBlock& block, std::uint64_t slot) {
    return checksum({reinterpret_cast<const std::byte*>(&block), offsetof(HeaderBlock, checksum)}, mix(header_magic, slot));
}

/// The problem with the block's fields, or none. Order: what tells the user most comes first.
std::optional<SlotProblem> problem_of(const HeaderBlock& block, std::uint64_t slot) {
    if (block.magic != header_magic)
        return SlotProblem{errc::not_a_heap, "this is not a taiyen heap: the file does not begin with a heap's magic number"};
    if (block.byte_order == __builtin_bswap32(byte_order_mark))
        return SlotProblem{errc::foreign_byte_order, "the heap was written on a machine with the other byte order; open it there"};
    if (block.version != format_version) {
        return SlotProblem{errc::unsupported_version, "the heap has format version " + std::to_string(block.version) +
                                                          ", this library reads version " + std::to_string(format_version) +
                                                          "; use the library that wrote it"};
    }
    if (block.page_size != page_bytes) {
        return SlotProblem{errc::unsupported_page_size,
                           "the heap has pages of " + std::to_string(block.page_size) + " bytes; only 4096 is supported"};
    }
    if (block.checksum != checksum_of(block, slot)) return SlotProblem{errc::corrupt, "the header's checksum differs"};
    if ((block.incompatible_features & ~known_incompatible_features) != 0)
        return SlotProblem{errc::unsupported_version, "the heap uses features that this library does not know; use a newer one"};
    const bool role_known = block.role == FileRole::backing || block.role == FileRole::data;
    const bool state_known = block.state >= FileState::whole && block.state <= FileState::staged;
    const bool capacity_fits =
        block.capacity >= heap::Engine::capacity_min && block.capacity % page_bytes == 0 && block.capacity <= heap::layout::capacity_max;
    const bool extent_fits = block.extent <= block.capacity && block.extent % page_bytes == 0 && capacity_fits &&
                             block.extent >= heap::Geometry(block.capacity).region(0).first_user * page_bytes;
    const bool annex_fits = extent_fits && block.annex_extent <= sequence_bytes_max && block.annex_extent % page_bytes == 0 &&
                            block.annex_used <= block.annex_extent && block.annex_used % page_bytes == 0 &&
                            are_places(block.annex_places, {block.extent, block.annex_extent});
    const bool base_fits = capacity_fits && is_base(block.base, block.capacity);
    const bool counts_fit =
        std::max({block.sequence, block.generation, block.filling_generation, block.serial, block.ring_sequence, block.ring_position,
                  block.stage.generation, block.stage.serial, block.stage_ring_sequence, block.stage_ring_position}) < count_end;
    const bool ring_fits = block.ring_kind <= RingKind::log && block.ring_capacity % page_bytes == 0 &&
                           block.ring_capacity < (std::uint64_t{1} << 40U) && block.ring_position % page_bytes == 0 &&
                           (block.ring_kind == RingKind::none) == (block.ring_capacity == 0);
    // What the staged save says of address and capacity.
    const std::uint64_t capacity_then = block.stage_capacity != 0 ? block.stage_capacity : block.capacity;
    const bool place_then_fits =
        (block.stage_base == 0 && block.stage_capacity == 0) ||
        (block.state == FileState::staged && capacity_then >= heap::Engine::capacity_min && capacity_then % page_bytes == 0 &&
         capacity_then <= heap::layout::capacity_max && block.stage.extent <= capacity_then &&
         is_base(block.stage_base != 0 ? block.stage_base : block.base, capacity_then));
    // What lies in the stage is looked at when it is read.
    const bool stage_fits =
        (block.state == FileState::staged) == (block.stage.stage_offset != 0) && block.stage_ring_position % page_bytes == 0 &&
        (block.state != FileState::staged || (block.ring_kind != RingKind::none && block.stage.generation == block.generation + 1)) &&
        (block.stage_base != 0) == ((block.incompatible_features & feature_staged_move) != 0) &&
        (block.stage_capacity != 0) == ((block.incompatible_features & feature_staged_resize) != 0) && place_then_fits;
    const bool role_fits = block.replica.role <= ReplicaRole::deposed &&
                           (block.replica.role != ReplicaRole::owner) == ((block.incompatible_features & feature_replica_role) != 0);
    const bool log_fits = block.log_capacity % page_bytes == 0 && block.log_capacity < (std::uint64_t{1} << 40U) &&
                          (block.log_capacity == 0) == uuid_from(block.log_uuid).is_nil();
    if (!role_known || !state_known || !capacity_fits || !extent_fits || !annex_fits || !base_fits || !ring_fits || !stage_fits || !log_fits ||
        !role_fits || !counts_fit || block.sequence % 2 != slot) {
        return SlotProblem{errc::corrupt, "the header's fields are out of bounds"};
    }
    return std::nullopt;
}

Header decode(const HeaderBlock& block) {
    Header header;
    header.heap = uuid_from(block.heap_uuid);
    header.file = uuid_from(block.file_uuid);
    header.data = uuid_from(block.data_uuid);
    header.role = block.role;
    header.state = block.state;
    header.sequence = block.sequence;
    header.clean = (block.flags & flag_clean) != 0;
    header.is_new = (block.flags & flag_is_new) != 0;
    header.data_is_beside = (block.flags & flag_data_is_beside) != 0;
    header.base = block.base;
    header.position_independent = (block.incompatible_features & feature_position_independent) != 0;
    header.capacity = block.capacity;
    header.extent = block.extent;
    header.generation = {block.generation};
    header.filling_generation = {block.filling_generation};
    header.serial = {block.serial};
    header.ring_kind = block.ring_kind;
    header.ring = uuid_from(block.ring_uuid);
    header.ring_capacity = block.ring_capacity;
    header.ring_start = {{block.ring_epoch}, block.ring_position, block.ring_sequence, block.ring_chain_seed};
    header.table_root = block.table_root;
    header.annex = {block.annex_extent, block.annex_used, block.annex_places};
    header.log = uuid_from(block.log_uuid);
    header.log_capacity = block.log_capacity;
    header.staged = {block.stage,
                     block.stage_annex,
                     {{block.stage_ring_epoch}, block.stage_ring_position, block.stage_ring_sequence, block.stage_ring_chain_seed},
                     block.stage_base,
                     block.stage_capacity};
    header.written_at = block.written_at;
    header.opening = block.opening;
    header.replica = block.replica;
    return header;
}

std::span<const std::byte> bytes_of(const HeaderBlock& block) { return {reinterpret_cast<const std::byte*>(&block), sizeof block}; }

}  // namespace

bool is_base(std::uintptr_t base, ByteCount capacity) {
    return base % heap::base_alignment == 0 && base >= heap::slot_bytes && base < address_end && capacity < address_end - base;
}

bool Header::may_count_on() const {
    return std::max({sequence, generation.value, serial.value, ring_start.sequence, ring_start.position}) < count_end - counts_of_an_opening;
}

void Header::take_content(const Header& from) {
    state = FileState::whole;
    filling_generation = {};
    if (!planted(Bug::copy_keeps_address)) base = from.base;
    if (!planted(Bug::copy_keeps_capacity)) capacity = from.capacity;
    generation = from.generation;
    serial = from.serial;
    extent = from.extent;
    annex = from.annex;
    table_root = from.table_root;
    ring_kind = from.ring_kind;
    ring = from.ring;
    ring_capacity = from.ring_capacity;
    ring_start = from.ring_start;
    log = from.log;
    log_capacity = from.log_capacity;
    replica = from.replica;
    staged = {};
    clean = from.clean;
}

Header Header::after_stage() const {
    Header after = *this;
    after.state = FileState::whole;
    after.generation = {staged.head.generation};
    after.serial = {staged.head.serial};
    after.extent = staged.head.extent;
    after.annex = staged.annex;
    if (staged.base != 0 && !planted(Bug::stage_keeps_address)) after.base = staged.base;
    if (staged.capacity != 0 && !planted(Bug::stage_keeps_capacity)) after.capacity = staged.capacity;
    after.ring_start = staged.ring_start;
    after.staged = {};
    return after;
}

HeaderBlock encode(const Header& header) {
    HeaderBlock block{};
    block.magic = header_magic;
    block.version = format_version;
    block.byte_order = byte_order_mark;
    block.page_size = page_bytes;
    std::memcpy(block.heap_uuid, header.heap.bytes.data(), 16);
    std::memcpy(block.file_uuid, header.file.bytes.data(), 16);
    std::memcpy(block.data_uuid, header.data.bytes.data(), 16);
    std::memcpy(block.ring_uuid, header.ring.bytes.data(), 16);
    block.role = header.role;
    block.state = header.state;
    block.sequence = header.sequence;
    block.flags = (header.clean ? flag_clean : 0) | (header.is_new ? flag_is_new : 0) | (header.data_is_beside ? flag_data_is_beside : 0);
    block.base = header.base;
    block.incompatible_features = header.position_independent ? feature_position_independent : 0;
    block.capacity = header.capacity;
    block.extent = header.extent;
    block.generation = header.generation.value;
    block.filling_generation = header.filling_generation.value;
    block.serial = header.serial.value;
    block.ring_kind = header.ring_kind;
    block.ring_capacity = header.ring_kind == RingKind::none ? 0 : header.ring_capacity;
    block.ring_epoch = header.ring_start.epoch.value;
    block.ring_position = header.ring_start.position;
    block.ring_sequence = header.ring_start.sequence;
    block.ring_chain_seed = header.ring_start.chain_seed;
    block.table_root = header.table_root;
    block.annex_extent = header.annex.extent;
    block.annex_used = header.annex.used;
    block.annex_places = header.annex.places;
    std::memcpy(block.log_uuid, header.log.bytes.data(), 16);
    block.log_capacity = header.log_capacity;
    if (header.state == FileState::staged) {
        block.stage = header.staged.head;
        block.stage_annex = header.staged.annex;
        block.stage_base = header.staged.base;
        block.stage_capacity = header.staged.capacity;
        block.incompatible_features |=
            (header.staged.base != 0 ? feature_staged_move : 0) | (header.staged.capacity != 0 ? feature_staged_resize : 0);
        block.stage_ring_epoch = header.staged.ring_start.epoch.value;
        block.stage_ring_position = header.staged.ring_start.position;
        block.stage_ring_sequence = header.staged.ring_start.sequence;
        block.stage_ring_chain_seed = header.staged.ring_start.chain_seed;
    }
    block.written_at = header.written_at;
    block.opening = header.opening;
    block.replica = header.replica;
    if (header.replica.role != ReplicaRole::owner) block.incompatible_features |= feature_replica_role;
    block.checksum = checksum_of(block, header.sequence % 2);
    return block;
}

Header decode(const HeaderBlock& block, const std::filesystem::path& path) {
    if (const auto problem = problem_of(block, block.sequence % 2)) throw Error(problem->code, path, problem->what);
    return decode(block);
}

const Header* Slots::newest() const {
    if (slot[0] && slot[1]) return slot[0]->sequence > slot[1]->sequence ? &*slot[0] : &*slot[1];
    return slot[0] ? &*slot[0] : slot[1] ? &*slot[1] : nullptr;
}

SlotProblem Slots::verdict() const {
    if (problem[0].code == problem[1].code) return problem[0];
    // One slot tells of a heap, the other of garbage: the more telling one, never "not a heap".
    for (const SlotProblem& candidate : problem)
        if (candidate.code != errc::not_a_heap && candidate.code != errc::corrupt && candidate.code != errc::io_error) return candidate;
    for (const std::size_t i : {0U, 1U})
        if (problem[i].code == errc::io_error && problem[1 - i].code == errc::not_a_heap) return problem[i];
    return {errc::corrupt, "both copies of the header are damaged"};
}

namespace {

/// Both slots, each alone if the device refuses; one that it then refuses still is a problem of its own. Returns how many bytes the file has of them.
ByteCount read_slot_bytes(const io::File& file, std::span<std::byte> bytes, std::array<SlotProblem, 2>& problems) {
    const auto read = [&](std::size_t from, std::size_t length, auto&& refused) -> ByteCount {
        try {
            return file.read_direct(bytes.subspan(from, length), from);
        } catch (const Error& error) {
            if (error.code() != errc::io_error) throw;
            return refused(error);
        }
    };
    return read(0, bytes.size(), [&](const Error&) {
        ByteCount got = 0;
        for (std::size_t i = 0; i < problems.size(); ++i) {
            got += read(i * header_slot_bytes, header_slot_bytes, [&](const Error& error) {
                problems[i] = {errc::io_error, sentence_of(error)};
                return header_slot_bytes;
            });
        }
        return got;
    });
}

}  // namespace

Slots read_slots(const io::File& file) {
    Slots slots;
    const AlignedBuffer buffer(chunks_offset);
    const ByteCount got = read_slot_bytes(file, buffer.span(), slots.problem);
    for (std::size_t i = 0; i < 2; ++i) {
        if (slots.problem[i].code == errc::io_error) continue;
        if (got < (i + 1) * header_slot_bytes) {
            const bool begins_as_heap = got >= sizeof header_magic && std::memcmp(buffer.data(), &header_magic, sizeof header_magic) == 0;
            slots.problem[i] = begins_as_heap
                                   ? SlotProblem{errc::truncated, "the file ends within its header (" + std::to_string(got) + " bytes)"}
                                   : SlotProblem{errc::not_a_heap, got == 0 ? "the file is empty" : "this is not a taiyen heap: it is too short"};
            continue;
        }
        HeaderBlock block;
        std::memcpy(&block, buffer.data() + i * header_slot_bytes, sizeof block);
        if (auto problem = problem_of(block, i))
            slots.problem[i] = *problem;
        else
            slots.slot[i] = decode(block);
    }
    return slots;
}

void write_header(io::File& file, Header& header) {
    Header last = header;
    last.sequence += 2;
    if (const auto problem = problem_of(encode(last), last.sequence % 2))
        throw Error(problem->code, file.path(), 0, problem->what + "; nothing was written to it; copy the heap's objects to a new heap");
    header.written_at = microseconds_of(time_now());
    alignas(page_bytes) std::array<std::byte, header_slot_bytes>
        slot{};  // not from the heap: memory that runs out here would leave nobody knowing what the file holds
    for (int copy = 0; copy < 2; ++copy) {
        ++header.sequence;
        const HeaderBlock block = encode(header);
        std::memcpy(slot.data(), &block, sizeof block);
        file.write_durable(slot, (header.sequence % 2) * header_slot_bytes);
    }
}

std::span<const std::byte> header_beginning() {
    static const HeaderBlock block = encode({});
    return bytes_of(block).first(offsetof(HeaderBlock, page_size) + sizeof block.page_size);
}

void spoil_headers(io::File& file) {
    if (file.info().size_bytes < chunks_offset) {
        file.resize(chunks_offset);
        file.sync();  // a durable write within what is durable of the file
    }
    const AlignedBuffer slots(chunks_offset);
    std::memset(slots.data(), 0, chunks_offset);
    std::array<SlotProblem, 2> unreadable;
    static_cast<void>(read_slot_bytes(file, slots.span(), unreadable));  // what the device refuses stays zero
    for (std::size_t i = 0; i < 2; ++i) {
        HeaderBlock block;
        std::memcpy(&block, slots.data() + i * header_slot_bytes, sizeof block);
        std::memcpy(&block, header_beginning().data(), header_beginning().size());
        if (const std::uint64_t sum = checksum_of(block, i); block.checksum == sum) block.checksum = ~sum;  // else it is wrong already
        const auto slot = slots.span().subspan(i * header_slot_bytes, header_slot_bytes);
        std::memcpy(slot.data(), &block, sizeof block);
        file.write_durable(slot, i * header_slot_bytes);  // the first one first: what a cut file begins with tells nothing of itself
    }
}

void write_first_headers(io::File& file, Header& header) {
    header.written_at = microseconds_of(time_now());
    for (int i = 0; i < 2; ++i) {
        ++header.sequence;
        file.write(bytes_of(encode(header)), (header.sequence % 2) * header_slot_bytes);
    }
}

}  // namespace taiyen::store
