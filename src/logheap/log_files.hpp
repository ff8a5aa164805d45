#pragma once
/// LogFiles: the two files of a LogHeap: headers, images of the index, and where segments lie. It maps nothing and decides nothing.
///
/// (F1) A header is written durably into the slot that doesn't count; the other one goes on counting until then.
/// (F2) An image is written into the place that the header in force doesn't name.
/// Thread rule: external lock.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <taiyen/logheap/log_heap.hpp>

#include "base/aligned_buffer.hpp"
#include "base/uuid.hpp"
#include "io/storage.hpp"
#include "log/ring.hpp"
#include "logheap/log_layout.hpp"

namespace taiyen::logheap {

class LogFiles {
public:
    /// Both files, published and durable. Throws: as LogHeap's constructor.
    static LogFiles create(io::Storage& storage, const std::filesystem::path& path, const std::filesystem::path& ring, const LogHeapOptions& options);
    /// Locks; reads the headers and the ring's identity. Throws: as LogHeap's constructor.
    static LogFiles open(io::Storage& storage, const std::filesystem::path& path, const std::filesystem::path& ring, io::Access access);

    /// The heap's file alone, for reading and without a lock: what it says may be old when it is read. Throws: as LogHeap's constructor.
    static LogFiles look(io::Storage& storage, const std::filesystem::path& path);

    const std::filesystem::path& path() const { return values_->path(); }
    Uuid heap_uuid() const;
    io::File& values() const { return *values_; }
    const std::shared_ptr<io::File>& ring() const { return ring_; }
    const log::RingIdentity& identity() const { return identity_; }
    log::RingStart ring_start() const;

    /// What the newest slot says.
    const layout::Header& header() const { return *reinterpret_cast<const layout::Header*>(header_.data()); }
    /// A copy of it that can be changed, for `write_draft`. One thread at a time has it; nobody else sees it before `adopt_draft`.
    layout::Header& new_draft();
    void set_ring_start(const log::RingStart& start);
    /// The draft goes into both slots, so that whichever is damaged later, the other one speaks of the ring as it is. Durable on return. Throws: as File::write_durable.
    void write_draft();
    /// It is what `header` says from now on.
    void adopt_draft() noexcept;

    // What never changes; any thread may ask.
    ByteCount segment_bytes() const { return segment_bytes_; }
    std::uint64_t segments() const { return segments_; }
    /// Where segment n, from 1 on, begins in the file.
    std::uint64_t offset_of(std::uint64_t segment) const { return layout::segments_begin + (segment - 1) * segment_bytes(); }
    std::uint64_t image_offset(std::uint32_t place) const { return offset_of(segments() + 1) + place * image_room_; }

    /// Of a heap whose creation was cut short behind its name.
    void end_creation(io::Storage& storage);

    /// Disk blocks for an image of so many bytes in both places, or for as much as there is place. Throws: Error{no_space}. Complexity: constant mostly.
    void allocate_images(ByteCount bytes);
    /// Writes a new image where the header doesn't have one; the draft says so. Each shard is asked for once, in order; what it says counts until the next one is. Not synced.
    void write_image(std::uint64_t serial, std::span<const layout::ImageSegment> segments,
                     const std::function<std::span<const layout::ImageCell>(std::size_t shard)>& cells_of);
    /// An image, its cells excepted.
    struct Image {
        std::vector<layout::ImageSegment> segments;
        layout::ImageFoot foot{};
        std::array<std::uint64_t, layout::image_shards> offsets{};  ///< of each shard's cells, in the file
    };
    /// The header's; without one: an empty one. Throws: Error{corrupt | truncated}.
    Image read_image() const;
    /// Cells of a shard of it. Throws: Error{corrupt | truncated}. Thread rule: safe.
    std::vector<layout::ImageCell> read_cells(const Image& image, std::size_t shard) const;

private:
    static constexpr ByteCount image_piece = 1_MiB;
    void read_headers(const std::filesystem::path& path);
    void know_sizes() noexcept;
    layout::Header& draft() { return *reinterpret_cast<layout::Header*>(draft_.data()); }

    std::unique_ptr<io::File> values_;
    std::shared_ptr<io::File> ring_;
    log::RingIdentity identity_;
    ByteCount segment_bytes_ = 0;
    std::uint64_t segments_ = 0;
    ByteCount image_room_ = 0;        ///< of each place
    ByteCount images_allocated_ = 0;  ///< of each place, as far as is known
    AlignedBuffer header_{layout::slot_bytes};
    AlignedBuffer draft_{layout::slot_bytes};
};

}  // namespace taiyen::logheap
