#pragma once
/// The header of a heap's file as a value, and its two slots on disk.
///
/// (I1) A header is written to both slots, one durable write after the other, the older one first: a torn write never costs both, and once the call has returned,
///      the loss of either slot costs nothing.
/// (I2) A header is valid only as a whole: magic, version, byte order, page size, checksum bound to the slot, and fields within their bounds. One that would be refused
///      is not written.
/// Thread rule: external lock.

#include <array>
#include <optional>
#include <string>

#include <taiyen/base/error.hpp>

#include "base/uuid.hpp"
#include "io/storage.hpp"
#include "log/ring.hpp"
#include "store/geometry.hpp"

namespace taiyen::store {

/// A save that lies in the stage behind the ring.
struct StagedSave {
    SaveHead head{};
    AnnexHead annex{};
    log::RingStart ring_start;  ///< where the ring's records behind it begin
    std::uintptr_t base = 0;    ///< the heap's address as of it; 0: it stays
    ByteCount capacity = 0;     ///< the heap's as of it; 0: it stays
};

/// Numbers that only grow, positions in rings among them, stay below this: none ever wraps around.
inline constexpr std::uint64_t count_end = std::uint64_t{1} << 62U;
/// More than any of them grows by while a heap is open; with less left it is opened for reading only, since what it wrote could not be read.
inline constexpr std::uint64_t counts_of_an_opening = std::uint64_t{1} << 56U;

struct Header {
    Uuid heap;
    Uuid file;
    Uuid data;  ///< file uuid of the attached data file; nil: none
    FileRole role = FileRole::backing;
    FileState state = FileState::whole;
    std::uint64_t sequence = 0;
    bool clean = false;
    bool is_new = false;
    bool data_is_beside = false;  ///< the data file had its default name when the header was written
    std::uintptr_t base = 0;
    bool position_independent = false;  ///< for life
    ByteCount capacity = 0;
    ByteCount extent = 0;  ///< of the span
    AnnexHead annex{};
    Generation generation;
    Generation filling_generation;
    Serial serial;
    RingKind ring_kind = RingKind::none;
    Uuid ring;
    ByteCount ring_capacity = 0;
    log::RingStart ring_start;
    std::uint64_t table_root = 0;
    Uuid log;  ///< of the attached transaction log; nil: none
    ByteCount log_capacity = 0;
    StagedSave staged;             ///< if the state says so
    std::uint64_t written_at = 0;  ///< set by whoever writes it to the file
    OpeningRecord opening{};
    ReplicaMark replica{};

    log::RingIdentity log_identity() const { return {log, heap, log_capacity, false}; }
    log::RingIdentity ring_identity() const { return {ring, heap, ring_capacity, false}; }
    Extents extents() const { return {extent, annex.extent}; }
    /// What the header says once the staged save is in the file. Requires: staged.
    Header after_stage() const;
    /// Whether the heap may be opened for writing.
    bool may_count_on() const;
    /// Takes over what the other copy's header says of the save that both hold now.
    void take_content(const Header& from);
};

/// Why a slot was refused.
struct SlotProblem {
    errc code = errc::corrupt;
    std::string what;
};

struct Slots {
    std::array<std::optional<Header>, 2> slot;
    std::array<SlotProblem, 2> problem;

    /// The valid header with the higher sequence; null: none.
    const Header* newest() const;
    bool damaged() const { return !slot[0] || !slot[1]; }
    /// The code and sentence to throw if there is no valid header: what both slots agree on, or `corrupt`.
    SlotProblem verdict() const;
};

/// Whether a heap of that capacity can lie there: whole slots, below the end of addresses.
bool is_base(std::uintptr_t base, ByteCount capacity);

HeaderBlock encode(const Header& header);
/// Throws: Error{corrupt | unsupported_version | …} about `path`: it is no header.
Header decode(const HeaderBlock& block, const std::filesystem::path& path);
/// Reads both slots directly; one that the device refuses has the problem io_error. Throws: Error{too_many_files | …}.
Slots read_slots(const io::File& file);
/// Writes `header` durably to both slots, its sequence counted up with each; the first write is the commit point.
/// Throws: Error{corrupt}, and nothing is written: the numbers that are to be counted up are at their end.
void write_header(io::File& file, Header& header);
/// The bytes with which the file of every heap begins.
std::span<const std::byte> header_beginning();
/// Durably makes of both slots what isn't believed any more, and still tells that the file is a heap's, wherever the write was cut short. Throws: Error{io_error | …}.
void spoil_headers(io::File& file);
/// Writes both slots of a new file through the page cache, to be synced by the caller.
void write_first_headers(io::File& file, Header& header);

}  // namespace taiyen::store
