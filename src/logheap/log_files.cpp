#include "logheap/log_files.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/checksum.hpp"
#include "base/planted.hpp"

namespace taiyen::logheap {

using layout::Header;

namespace {

/// Counts in headers lie below it: nothing that is added to them overflows.
constexpr std::uint64_t count_end = std::uint64_t{1} << 62U;

std::uint64_t checksum_of(const Header& header, unsigned slot) {
    return checksum({reinterpret_cast<const std::byte*>(&header), offsetof(Header, checksum)}, slot);
}

Uuid uuid_from(const std::uint8_t (&bytes)[16]) {
    Uuid uuid;
    std::copy_n(bytes, 16, uuid.bytes.begin());
    return uuid;
}

ByteCount segment_bytes_for(const LogHeapOptions& options, const std::filesystem::path& path) {
    ByteCount bytes = options.segment_bytes;
    if (bytes == 0) {
        bytes = layout::segment_bytes_max;
        while (bytes > layout::segment_bytes_min && options.capacity / bytes < 64) bytes /= 2;
    }
    if (bytes < layout::segment_bytes_min || bytes > layout::segment_bytes_max || (bytes & (bytes - 1)) != 0)
        throw Error(errc::invalid_argument, path, "segment_bytes must be a power of two from 64 KiB to 2 MiB, not " + std::to_string(bytes));
    const std::uint64_t segments = options.capacity / bytes;
    if (segments < layout::segments_min || segments > layout::segments_max)
        throw Error(errc::invalid_argument, path,
                    "capacity must have at least 16 segments of " + std::to_string(bytes) + " bytes and at most 2^24, not " +
                        std::to_string(options.capacity) + " bytes");
    if (options.log_capacity < 4 * bytes || options.log_capacity >= 1_TiB)
        throw Error(errc::invalid_argument, path,
                    "log_capacity must be at least four segments (" + std::to_string(4 * bytes) + " bytes) and less than 1 TiB");
    return bytes;
}

/// A ring whose heap was never published is removed; any other is somebody's.
void clear_orphan_ring(io::Storage& storage, const std::filesystem::path& ring) {
    const auto there = storage.find(ring);
    if (!there) return;
    if (there->kind == io::FileKind::regular) {
        try {
            const auto file = storage.open(ring, io::Access::read_write);
            if (file->try_lock(io::Lock::exclusive) && log::Ring::read_identity(*file).is_new) {
                storage.remove(ring);
                return;
            }
        } catch (const Error&) {
            // Not a ring of ours: it stays.
        }
    }
    throw Error(errc::already_exists, ring,
                "a file has the name of the heap's ring already, and may be another heap's; move it away, or name another one");
}

/// What is wrong with a slot; nothing: it counts.
std::optional<Error> problem_of(const Header& header, unsigned slot, const std::filesystem::path& path) {
    if (std::memcmp(header.magic, layout::magic, sizeof header.magic) != 0)
        return Error(errc::not_a_heap, path, slot * layout::slot_bytes, "this is no LogHeap; name another file");
    if (header.byte_order == layout::byte_order_swapped)
        return Error(errc::foreign_byte_order, path, slot * layout::slot_bytes, "written on a machine of the other byte order; open it there");
    if (header.version != layout::version || header.features_incompatible != 0)
        return Error(errc::unsupported_version, path, slot * layout::slot_bytes, "written by a newer version of taiyen; open it with that one");
    if (header.checksum != checksum_of(header, slot))
        return Error(errc::corrupt, path, slot * layout::slot_bytes, "the header's checksum is wrong; restore the file from a copy");
    const bool fits = header.segment_bytes >= layout::segment_bytes_min && header.segment_bytes <= layout::segment_bytes_max &&
                      (header.segment_bytes & (header.segment_bytes - 1)) == 0 && header.segments >= layout::segments_min &&
                      header.segments <= layout::segments_max && header.image_place <= 1 && header.image_bytes <= layout::image_room(header) &&
                      header.tail_segments <= layout::tail_max && header.sequence % 2 == slot && header.ring_position % page_bytes == 0 &&
                      header.ring_capacity % page_bytes == 0 && header.next_id != 0 &&
                      std::max({header.next_id, header.next_birth, header.serial, header.ring_sequence, header.ring_position}) < count_end;
    if (!fits) return Error(errc::corrupt, path, slot * layout::slot_bytes, "the header's fields are out of bounds; restore the file from a copy");
    return std::nullopt;
}

}  // namespace

log::RingStart LogFiles::ring_start() const {
    const Header& header = this->header();
    return {{header.ring_epoch}, header.ring_position, header.ring_sequence, header.ring_chain_seed};
}

void LogFiles::set_ring_start(const log::RingStart& start) {
    Header& header = draft();
    header.ring_epoch = start.epoch.value;
    header.ring_position = start.position;
    header.ring_sequence = start.sequence;
    header.ring_chain_seed = start.chain_seed;
}

Header& LogFiles::new_draft() {
    std::memcpy(draft_.data(), header_.data(), layout::slot_bytes);
    return draft();
}

void LogFiles::write_draft() {
    for (unsigned i = 0; i < layout::slots; ++i) {
        const auto slot = static_cast<unsigned>(++draft().sequence % layout::slots);
        draft().checksum = checksum_of(draft(), slot);
        values_->write_durable(draft_.span(), slot * layout::slot_bytes);
    }
}

void LogFiles::adopt_draft() noexcept { std::memcpy(header_.data(), draft_.data(), layout::slot_bytes); }

void LogFiles::know_sizes() noexcept {
    segment_bytes_ = header().segment_bytes;
    segments_ = header().segments;
    image_room_ = layout::image_room(header());
}

LogFiles LogFiles::create(io::Storage& storage, const std::filesystem::path& path, const std::filesystem::path& ring_path,
                          const LogHeapOptions& options) {
    const ByteCount segment_bytes = segment_bytes_for(options, path);
    if (storage.find(path)) throw Error(errc::already_exists, path, "something of that name exists; open it, or choose another name");
    clear_orphan_ring(storage, ring_path);
    LogFiles files;
    Header& header = files.draft();
    header = {};
    std::memcpy(header.magic, layout::magic, sizeof header.magic);
    header.byte_order = layout::byte_order_mark;
    header.version = layout::version;
    files.identity_ = {random_uuid(), random_uuid(), round_up(options.log_capacity, page_bytes), true};
    std::copy(files.identity_.heap.bytes.begin(), files.identity_.heap.bytes.end(), header.heap);
    std::copy(files.identity_.ring.bytes.begin(), files.identity_.ring.bytes.end(), header.ring);
    header.ring_capacity = files.identity_.capacity_bytes;
    files.set_ring_start({{random_u64()}, 0, 1, random_u64()});
    header.next_id = 1;
    header.next_birth = 1;
    header.segment_bytes = segment_bytes;
    header.segments = options.capacity / segment_bytes;
    header.flags = layout::header_is_clean;
    files.adopt_draft();
    files.know_sizes();

    std::unique_ptr<io::File> ring = storage.create_unnamed(io::directory_of(ring_path));
    if (!ring->try_lock(io::Lock::exclusive)) throw Error(errc::busy, ring_path, "another process has locked the new ring; try again");
    log::Ring::format(*ring, files.identity_);
    files.values_ = storage.create_unnamed(io::directory_of(path));
    if (!files.values_->try_lock(io::Lock::exclusive)) throw Error(errc::busy, path, "another process has locked the new heap; try again");
    files.values_->resize(files.image_offset(2));
    files.values_->allocate(0, layout::slots * layout::slot_bytes);
    files.allocate_images(header.segments * sizeof(layout::ImageSegment) + sizeof(layout::ImageFoot));
    files.values_->sync();
    files.write_draft();
    files.adopt_draft();
    files.values_->sync();
    storage.publish(*ring, ring_path);
    if (!planted(Bug::log_heap_named_before_its_ring)) storage.sync_directory(io::directory_of(ring_path));
    try {
        storage.publish(*files.values_, path);
    } catch (...) {
        storage.remove(ring_path);
        throw;
    }
    storage.sync_directory(io::directory_of(path));
    files.identity_.is_new = false;
    log::Ring::write_identity(*ring, files.identity_);
    files.ring_ = std::move(ring);
    return files;
}

void LogFiles::read_headers(const std::filesystem::path& path) {
    const ByteCount size = values_->info().size_bytes;
    if (size < layout::slots * layout::slot_bytes) {
        std::array<std::byte, sizeof layout::magic> begin{};
        const bool was_one = values_->read(begin, 0) == begin.size() && std::memcmp(begin.data(), layout::magic, begin.size()) == 0;
        throw Error(was_one ? errc::truncated : errc::not_a_heap, path,
                    was_one ? "the file ends within its headers; restore it from a copy"
                            : "this file is too short for a LogHeap; name another one, or restore it from a copy");
    }
    const AlignedBuffer both(layout::slots * layout::slot_bytes);
    if (values_->read_direct(both.span(), 0) != both.size())
        throw Error(errc::truncated, path, "the file ends within its headers; restore it from a copy");
    std::optional<unsigned> newest;
    std::optional<Error> problem;
    for (unsigned slot = 0; slot < layout::slots; ++slot) {
        const auto& header = *reinterpret_cast<const Header*>(both.data() + slot * layout::slot_bytes);
        auto found = problem_of(header, slot, path);
        if (found) {
            if (!problem || static_cast<errc>(problem->code().value()) == errc::not_a_heap) problem = std::move(found);
        } else if (!newest || header.sequence > reinterpret_cast<const Header*>(both.data() + *newest * layout::slot_bytes)->sequence) {
            newest = slot;
        }
    }
    // A newer version may have written one slot only: what it says there counts.
    if (problem && static_cast<errc>(problem->code().value()) == errc::unsupported_version) throw *problem;
    if (!newest) throw *problem;
    std::memcpy(header_.data(), both.data() + *newest * layout::slot_bytes, layout::slot_bytes);
    know_sizes();
    if (size < offset_of(segments() + 1))
        throw Error(errc::truncated, path, size,
                    "the file ends before its last segment (" + std::to_string(offset_of(segments() + 1)) + " bytes); restore it from a copy");
}

LogFiles LogFiles::look(io::Storage& storage, const std::filesystem::path& path) {
    LogFiles files;
    files.values_ = storage.open(path, io::Access::read_only);
    files.read_headers(path);
    return files;
}

Uuid LogFiles::heap_uuid() const { return uuid_from(header().heap); }

LogFiles LogFiles::open(io::Storage& storage, const std::filesystem::path& path, const std::filesystem::path& ring_path, io::Access access) {
    const bool writes = access == io::Access::read_write;
    LogFiles files;
    files.values_ = storage.open(path, access);
    if (!files.values_->try_lock(writes ? io::Lock::exclusive : io::Lock::shared))
        throw Error(errc::busy, path, "another process, or this one, has the heap open; close it there");
    files.read_headers(path);
    const Header& header = files.header();
    if (!storage.find(ring_path)) {
        throw Error(errc::log_missing, ring_path,
                    (header.flags & layout::header_is_clean) != 0
                        ? "the heap's ring is gone; the heap was closed and lacks nothing of it, but it needs one: bring the file back or restore "
                          "both from a copy"
                        : "the heap's ring is gone, and the heap was not closed: what stands there alone would be lost; bring the file back");
    }
    files.ring_ = storage.open(ring_path, access);
    if (writes && !files.ring_->try_lock(io::Lock::exclusive))
        throw Error(errc::busy, ring_path, "another process has the heap's ring open; close it there");
    files.identity_ = log::Ring::read_identity(*files.ring_);
    if (files.identity_.heap != uuid_from(header.heap) || files.identity_.ring != uuid_from(header.ring) ||
        files.identity_.capacity_bytes != header.ring_capacity)
        throw Error(errc::mismatch, ring_path, "this ring belongs to another heap than " + path.string() + "; put the right one there");
    return files;
}

void LogFiles::end_creation(io::Storage& storage) {
    if (!identity_.is_new) return;
    storage.sync_directory(io::directory_of(path()));
    identity_.is_new = false;
    log::Ring::write_identity(*ring_, identity_);
}

void LogFiles::allocate_images(ByteCount bytes) {
    if (bytes <= images_allocated_) return;
    const ByteCount to = std::min(round_up(bytes + bytes / 4, 64_KiB), image_room_);
    if (to <= images_allocated_) return;
    for (const std::uint32_t place : {0U, 1U}) values_->allocate(image_offset(place) + images_allocated_, to - images_allocated_);
    images_allocated_ = to;
}

void LogFiles::write_image(std::uint64_t serial, std::span<const layout::ImageSegment> segments,
                           const std::function<std::span<const layout::ImageCell>(std::size_t)>& cells_of) {
    Header& header = draft();
    const std::uint32_t place = header.image_bytes == 0 || planted(Bug::log_heap_image_in_place) ? header.image_place : 1 - header.image_place;
    const std::uint64_t begin = image_offset(place);
    const AlignedBuffer piece(image_piece);
    std::uint64_t written = 0;
    ByteCount filled = 0;
    const auto write = [&] {
        if (filled == 0) return;
        if (written + filled > image_room_)
            throw Error(errc::no_space, path(), begin, "the image of the index is larger than its place: ids changed while it was written");
        values_->allocate(begin + written, filled);
        values_->write(piece.first(filled), begin + written);
        values_->start_writing(begin + written, filled);
        written += filled;
        filled = 0;
    };
    const auto put = [&](std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ByteCount part = std::min(bytes.size(), image_piece - filled);
            std::memcpy(piece.data() + filled, bytes.data(), part);
            filled += part;
            bytes = bytes.subspan(part);
            if (filled == image_piece) write();
        }
    };
    layout::ImageFoot foot{};
    std::copy_n(header.heap, 16, foot.heap);
    foot.serial = serial;
    foot.segments = segments.size();
    for (std::size_t shard = 0; shard < layout::image_shards; ++shard) {
        const auto cells = cells_of(shard);
        foot.shards[shard] = {cells.size(), checksum(std::as_bytes(cells), shard)};
        put(std::as_bytes(cells));
    }
    put(std::as_bytes(segments));
    put(layout::bytes_of(foot));
    write();
    header.image_place = place;
    header.image_bytes = written;
    header.image_checksum = checksum(layout::bytes_of(foot), checksum(std::as_bytes(segments), 0));
}

LogFiles::Image LogFiles::read_image() const {
    Image image;
    const Header& header = this->header();
    if (header.image_bytes == 0) return image;
    const std::uint64_t begin = image_offset(header.image_place);
    const auto read = [&](std::span<std::byte> into, std::uint64_t offset) {
        if (values_->read(into, offset) != into.size())
            throw Error(errc::truncated, path(), offset, "the file ends within the image of its index; restore it from a copy");
    };
    const auto refuse = [&] {
        throw Error(errc::corrupt, path(), begin + header.image_bytes, "the image of the index has a damaged end; restore the file from a copy");
    };
    if (header.image_bytes < sizeof image.foot) refuse();
    std::uint64_t end = begin + header.image_bytes - sizeof image.foot;
    read(std::as_writable_bytes(std::span(&image.foot, 1)), end);
    if (image.foot.segments > std::min(segments(), (end - begin) / sizeof(layout::ImageSegment))) refuse();
    image.segments.resize(image.foot.segments);
    end -= image.segments.size() * sizeof(layout::ImageSegment);
    read(std::as_writable_bytes(std::span(image.segments)), end);
    const std::uint64_t sum = checksum(layout::bytes_of(image.foot), checksum(std::as_bytes(std::span(image.segments)), 0));
    if (sum != header.image_checksum || std::memcmp(image.foot.heap, header.heap, sizeof header.heap) != 0) refuse();
    std::uint64_t at = begin;
    for (std::size_t shard = 0; shard < layout::image_shards; ++shard) {
        image.offsets[shard] = at;
        if (image.foot.shards[shard].cells > (end - at) / sizeof(layout::ImageCell)) refuse();
        at += image.foot.shards[shard].cells * sizeof(layout::ImageCell);
    }
    if (at != end) refuse();
    return image;
}

std::vector<layout::ImageCell> LogFiles::read_cells(const Image& image, std::size_t shard) const {
    std::vector<layout::ImageCell> cells(image.foot.shards[shard].cells);
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(cells));
    if (values_->read(bytes, image.offsets[shard]) != bytes.size())
        throw Error(errc::truncated, path(), image.offsets[shard], "the file ends within the image of its index; restore it from a copy");
    if (checksum(bytes, shard) != image.foot.shards[shard].checksum && !planted(Bug::log_heap_cells_unproven))
        throw Error(errc::corrupt, path(), image.offsets[shard], "the image of the index is damaged; restore the file from a copy");
    return cells;
}

}  // namespace taiyen::logheap
