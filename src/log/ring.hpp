#pragma once
/// The record log: self-validating records in a prewritten ring file, each appended with one direct synchronous write.
///
/// Promises:
/// (I1) `append` returns after its record is durable; one write is in flight at a time.
/// (I2) A record is accepted by `scan` only if it belongs to this ring's life (epoch), follows its predecessor (sequence, checksum seeded with the predecessor's
///      checksum), and every 512-byte sector of it carries the right stamp.
/// (I3) The first record that is not there, or lacks a stamp, ends the log (`torn`/`end`); all stamps there but a wrong checksum is `corrupt`, and so is
///      whatever a torn write can't leave behind: a broken stamp, or a gap with a later record of the same life behind it.
/// (I4) This room does not know what a record means: kind, number and payload are the caller's.
/// Format: FORMAT.md, `ring_layout.hpp`. Thread rule: external lock.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <taiyen/base/units.hpp>

#include "base/aligned_buffer.hpp"
#include "base/uuid.hpp"
#include "io/storage.hpp"

namespace taiyen::log {

/// Where and how a ring's valid records begin; stored in the heap's header at every checkpoint.
struct RingStart {
    Epoch epoch;
    std::uint64_t position = 0;    ///< logical byte offset (grows without bound; × modulo capacity gives the place in the file), multiple of 4 KiB
    std::uint64_t sequence = 1;    ///< number of the record at `position`
    std::uint64_t chain_seed = 0;  ///< checksum of the record before it (random for a new epoch)
    bool operator==(const RingStart&) const = default;
};

/// What is stored in the ring file itself, in front of the record area.
struct RingIdentity {
    Uuid ring;
    Uuid heap;
    ByteCount capacity_bytes = 0;  ///< of the record area; a multiple of 4 KiB
    bool is_new = true;            ///< the heap that goes with it may not have been published yet (PROTOCOL R19)
    bool operator==(const RingIdentity&) const = default;
};

struct Record {
    std::uint32_t kind = 0;
    std::uint64_t number = 0;  ///< generation or serial, the caller's
    std::uint64_t sequence = 0;
    std::uint64_t position = 0;
    std::vector<std::byte> payload;
    std::uint64_t file_offset = 0;  ///< where it begins in the ring's file, for messages
};

enum class ScanEnd {
    end,   ///< nothing of this epoch and lap stands behind the last record
    torn,  ///< parts of one record stand there, but not all of them: never acknowledged
    corrupt  ///< a record that may have been acknowledged is damaged: a wrong checksum under right stamps, a broken stamp, or a later record behind a gap
};
struct ScanResult {
    ScanEnd how;
    RingStart next;  ///< where the next record would go
    std::uint64_t records = 0;
    ByteCount torn_bytes = 0;  ///< that the torn record would take, by its head; 0: that is among what is missing
};

/// A record in the making: its payload goes straight into the sectors that will be written. Memory is kept for the next one.
class RecordBuffer {
public:
    /// An empty payload.
    void clear() { payload_bytes_ = 0; }
    /// Makes room for a payload of that size in all; what was put stays. Throws: std::bad_alloc; then nothing changed.
    void reserve(ByteCount payload_bytes);
    /// Requires: reserved.
    void put(std::span<const std::byte> bytes);
    /// The head, the pieces (`bytes` in all), and zeros up to the next multiple of 8. Requires: reserved; the payload so far is a multiple of 8.
    void put_padded(std::uint64_t head, std::span<const std::span<const std::byte>> pieces, ByteCount bytes);
    /// Requires: these bytes were put before.
    void overwrite(ByteCount at, std::span<const std::byte> bytes);
    ByteCount payload_bytes() const { return payload_bytes_; }
    /// The payload, as a scan gives it. Throws: std::bad_alloc.
    std::vector<std::byte> payload() const;
    /// What was reserved, or more.
    ByteCount payload_bytes_max() const;
    /// Gives memory back if it is more than this. Requires: an empty payload.
    void keep_at_most(ByteCount bytes) {
        if (sectors_.size() > bytes) sectors_ = AlignedBuffer();
    }

private:
    friend class Ring;
    AlignedBuffer sectors_;
    ByteCount payload_bytes_ = 0;
};

class Ring {
public:
    /// In front of the record area: two identity blocks, so that a torn write of one leaves the other.
    static constexpr ByteCount header_bytes = 8192;
    static constexpr ByteCount capacity_min = 8192;
    /// What is written lasts beyond a crash, or only as long as nobody needs it after one: then no write waits for the device.
    enum class Lasting : bool { durable, scratch };

    /// Fills an empty file: identity block and `capacity_bytes` of prewritten zeros, synced. Durable on return (but not its name). What is `scratch` is not prewritten.
    static void format(io::File& file, const RingIdentity& identity, Lasting lasting = Lasting::durable);
    /// Reads the identity (direct read). Throws: Error{not_a_heap | truncated | unsupported_version | foreign_byte_order | corrupt | mismatch}.
    static RingIdentity read_identity(const io::File& file);
    /// Durably clears or sets `is_new`.
    static void write_identity(io::File& file, const RingIdentity& identity);
    /// Whether the file, which has no identity that can be read, is what is left of a ring of that heap: cut short, emptied or zeroed. Nothing in it counts if the heap was closed. Throws: Error{io_error}.
    static bool is_left_of(const io::File& file, const Uuid& heap);

    /// Records from `start` are read in order and given to `sink` (return false to stop early). Reads are direct, and ahead of the sink in a long log. Bounded memory: one record and 4 MiB.
    /// `end`: the position where one of the records is known to end; nothing behind it is read.
    /// Throws: Error{io_error | truncated}, Error{corrupt} if `identity` or `start` can't be.
    static ScanResult scan(const io::File& file, const RingIdentity& identity, const RingStart& start, const std::function<bool(const Record&)>& sink,
                           std::uint64_t end = ~std::uint64_t{0});

    /// What a scan that ended at `from` did not reach: the highest number of a record of the same life that begins behind, whole or not; 0: none is seen.
    /// Throws: Error{io_error | truncated}. Complexity: reads the record area once.
    static std::uint64_t newest_behind(const io::File& file, const RingIdentity& identity, const RingStart& from);

    /// Opens for appending at `next`; `tail` is the oldest record still needed.
    Ring(std::shared_ptr<io::File> file, const RingIdentity& identity, const RingStart& next, std::uint64_t tail_position,
         Lasting lasting = Lasting::durable);
    ~Ring();

    /// Where the byte at a logical position lies in the file.
    static std::uint64_t file_offset(const RingIdentity& identity, std::uint64_t position) {
        return header_bytes + position % identity.capacity_bytes;
    }
    /// Bytes that a record with this payload takes in the ring.
    static ByteCount record_bytes(ByteCount payload_bytes);
    /// The largest payload of a record that takes no more than so many bytes; 0: not even an empty one fits.
    static ByteCount payload_bytes_max(ByteCount record_bytes);
    ByteCount capacity() const;
    ByteCount free_bytes() const;
    bool fits(ByteCount payload_bytes) const { return record_bytes(payload_bytes) <= free_bytes(); }

    /// Appends one record made of the pieces in order. Requires: fits. Throws: Error{io_error | no_space}: then nothing is known and every later call
    /// throws Error{poisoned}.
    /// Returns the record's logical position. Complexity: one copy of the payload, one direct write (two at the wrap).
    std::uint64_t append(std::uint32_t kind, std::uint64_t number, std::span<const std::span<const std::byte>> payload);
    /// The same with a payload that lies in its sectors already: nothing is copied.
    std::uint64_t append(std::uint32_t kind, std::uint64_t number, RecordBuffer& record);

    /// Makes room: the next record with a payload of that size in pieces takes no memory. Throws: std::bad_alloc; then nothing changed.
    void reserve(ByteCount payload_bytes);

    /// Where the next record goes (what a header stores as its ring start).
    const RingStart& next() const;
    /// Everything before `position` may be overwritten from now on.
    void release(std::uint64_t position);
    std::uint64_t tail() const;
    io::File& file() const;
    std::shared_ptr<io::File> shared_file() const;
    const RingIdentity& identity() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace taiyen::log
