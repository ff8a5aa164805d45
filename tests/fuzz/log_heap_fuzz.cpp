// Files of log heaps as nobody writes them: opening says so by a typed error, or gives values that were put; nothing else is read or written.
//
// An input is a recipe: which of some heaps, edits of header, image, segments and ring, and which checksums are made right again afterwards. Without the last,
// each value that can be read is one that was put under its id.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"
#include "fuzz/input.hpp"
#include "io/disks/simulated_storage.hpp"
#include "logheap/log_layout.hpp"
#include "logheap/object_log.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::logheap;
using taiyen::fuzz::Input;

const std::filesystem::path heap_path = "/disk/x.tyl";
const std::filesystem::path ring_path = "/disk/x.tyl.log";

LogHeapOptions small() {
    LogHeapOptions options;
    options.segment_bytes = 64_KiB;
    options.capacity = 16 * 64_KiB;
    options.log_capacity = 256_KiB;
    options.background = false;
    return options;
}

/// A value says whose it is.
std::vector<std::byte> value(std::uint64_t id, std::size_t length) {
    std::vector<std::byte> bytes(length);
    for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(id * 37 + length + i);
    return bytes;
}

bool was_put(const LogView& view) {
    const auto bytes = value(static_cast<std::uint64_t>(view.id()), view.bytes().size());
    return std::equal(bytes.begin(), bytes.end(), view.bytes().begin());
}

/// What the file doesn't have stays as it was.
void read_into(const io::File& file, std::span<std::byte> into, std::uint64_t offset) {
    if (!into.empty()) static_cast<void>(file.read(into, offset));
}

/// A disk with a heap on it, marked: what an input does to it is undone.
struct Heap {
    io::SimulatedStorage disk;
    layout::Header header{};
    std::uint64_t image_offset = 0;

    /// How it ended: closed; dropped after a checkpoint; dropped with a tail in segments and in the ring.
    explicit Heap(unsigned end) {
        disk.add_directory("/disk");
        {
            const auto log = ObjectLog::open(disk, heap_path, small(), ObjectLog::Opening::create);
            for (std::uint64_t id = 1; id <= 120; ++id) log->put_as(LogId{id}, value(id, id * 13 % 3000));
            log->put_as(LogId{200}, value(200, 100'000));
            for (std::uint64_t id = 1; id <= 60; ++id) log->put_as(LogId{id}, value(id, id * 29 % 3000));
            for (std::uint64_t id = 40; id <= 50; ++id) log->remove(LogId{id});
            log->checkpoint();
            if (end == 0) log->close();
            if (end == 2) {
                log->clean(64_KiB);
                for (std::uint64_t id = 30; id <= 80; ++id) log->put_as(LogId{id}, value(id, id * 7 % 2000));
                log->remove(LogId{70});
                LogBatch batch;
                for (std::uint64_t id = 300; id <= 305; ++id) batch.put(LogId{id}, value(id, 50));
                batch.remove(LogId{1});
                log->commit(batch);
                log->put_as(LogId{201}, value(201, 90'000));
            }
            log->abandon();
        }
        disk.disconnect();
        const auto file = disk.open(heap_path, io::Access::read_only);
        std::array<layout::Header, 2> slots;
        read_into(*file, {reinterpret_cast<std::byte*>(slots.data()), sizeof slots}, 0);
        header = slots[slots[1].sequence > slots[0].sequence ? 1 : 0];
        image_offset = layout::segments_begin + header.segments * header.segment_bytes;
        if (header.image_place == 1) image_offset += layout::image_room(header);
        disk.mark();
    }
};

template <class T>
T read_at(const io::File& file, std::uint64_t offset) {
    T of{};
    read_into(file, {reinterpret_cast<std::byte*>(&of), sizeof of}, offset);
    return of;
}

template <class T>
void write_at(io::File& file, std::uint64_t offset, const T& of) {
    file.write(layout::bytes_of(of), offset);
}

/// Both slots say the same, with right checksums.
void forge_header(io::File& file, const layout::Header& header) {
    for (unsigned slot = 0; slot < layout::slots; ++slot) {
        auto forged = std::make_unique<layout::Header>(header);
        forged->sequence = round_up(header.sequence, 2) + slot;
        forged->checksum = checksum({reinterpret_cast<const std::byte*>(forged.get()), offsetof(layout::Header, checksum)}, slot);
        write_at(file, slot * layout::slot_bytes, *forged);
    }
}

/// The image's foot with right checksums of its shards, as far as what it says can be; and the checksum that the header has of foot and segments.
std::uint64_t forge_image(io::File& file, std::uint64_t offset, std::uint64_t bytes) {
    if (bytes < sizeof(layout::ImageFoot) || bytes > 4_MiB) return 0;
    const std::uint64_t foot_at = offset + bytes - sizeof(layout::ImageFoot);
    auto foot = read_at<layout::ImageFoot>(file, foot_at);
    std::uint64_t at = offset;
    for (std::size_t shard = 0; shard < layout::image_shards; ++shard) {
        const std::uint64_t cells = foot.shards[shard].cells;
        if (cells > (foot_at - at) / sizeof(layout::ImageCell)) break;
        std::vector<std::byte> part(cells * sizeof(layout::ImageCell));
        read_into(file, part, at);
        foot.shards[shard].checksum = checksum(part, shard);
        at += part.size();
    }
    write_at(file, foot_at, foot);
    if (foot.segments > (foot_at - offset) / sizeof(layout::ImageSegment)) return 0;
    std::vector<std::byte> segments(foot.segments * sizeof(layout::ImageSegment));
    read_into(file, segments, foot_at - segments.size());
    return checksum(layout::bytes_of(foot), checksum(segments, 0));
}

/// Reads all, and goes on if `writes`. False: it is refused.
bool use(io::SimulatedStorage& disk, bool writes, bool is_forged) {
    const auto check_error = [](const Error& error) {
        const auto code = static_cast<errc>(error.code().value());
        TAIYEN_CHECK(code == errc::corrupt || code == errc::not_a_heap || code == errc::truncated || code == errc::unsupported_version ||
                     code == errc::foreign_byte_order || code == errc::mismatch || code == errc::no_space || code == errc::invalid_argument);
    };
    try {
        const auto log = ObjectLog::open(disk, heap_path, small(), writes ? ObjectLog::Opening::open : ObjectLog::Opening::read_only);
        const LogVerification found = log->verify();
        for (std::uint64_t id = 1; id <= 310; ++id) {
            try {
                if (const LogView view = log->get(LogId{id})) TAIYEN_CHECK(is_forged || was_put(view));
            } catch (const Error& error) {
                check_error(error);
            }
        }
        if (!is_forged && found.damaged.empty()) log->check_sums();
        if (writes) {
            try {
                for (std::uint64_t id = 1; id <= 30; ++id) log->put_as(LogId{id * 7}, value(id * 7, id * 100));
                for (std::uint64_t id = 1; id <= 30; ++id) log->remove(LogId{id * 5});
                log->clean(128_KiB);
                log->checkpoint();
            } catch (const HeapFull&) {}
            for (std::uint64_t id = 1; id <= 30; ++id)
                if (id * 7 % 5 != 0)
                    if (const LogView view = log->get(LogId{id * 7})) TAIYEN_CHECK(is_forged || was_put(view));
        }
        log->abandon();
        return true;
    } catch (const Error& error) {
        check_error(error);
    } catch (const HeapFull&) {}
    return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::array<std::unique_ptr<Heap>, 3> heaps{std::make_unique<Heap>(0), std::make_unique<Heap>(1), std::make_unique<Heap>(2)};
    Input input(data, size);
    Heap& heap = *heaps[input.number(1) % heaps.size()];
    const std::uint64_t choices = input.number(1);
    const bool fixes = (choices & 1U) != 0;
    const bool fixes_records = (choices & 2U) != 0;
    heap.disk.rollback();
    {
        const auto file = heap.disk.open(heap_path, io::Access::read_write);
        const auto ring = heap.disk.open(ring_path, io::Access::read_write);
        layout::Header header = heap.header;
        for (int edits = 0; edits < 8 && !input.empty(); ++edits) {
            const std::uint64_t where = input.number(1);
            const std::uint64_t at = input.number(2);
            switch (where % 6) {
                case 0: {  // a field of the header
                    std::array<std::byte, sizeof header> bytes;
                    std::memcpy(bytes.data(), &header, sizeof header);
                    input.change(bytes, at % 2 == 0 ? at / 2 % 40 * 4 : 176 + at / 2 % (header.tail_segments * 12 + 12), at % 3 == 0 ? 8 : 4);
                    std::memcpy(&header, bytes.data(), sizeof header);
                    if (!fixes) write_at(*file, (at % 2) * layout::slot_bytes, header);
                    break;
                }
                case 1: {  // a word of the image
                    // its cells are many, its segments and its foot say more
                    const std::uint64_t bytes = std::max<std::uint64_t>(heap.header.image_bytes, 1_KiB);
                    const std::uint64_t offset = heap.image_offset + (at % 2 == 0 ? at / 2 * 8 % bytes : bytes - 8 - at / 2 * 8 % 1_KiB);
                    write_at(*file, offset, input.changed(read_at<std::uint64_t>(*file, offset)));
                    break;
                }
                case 2: {  // a word of a segment's head
                    const std::uint64_t number = 1 + at / 8 % heap.header.segments;
                    const std::uint64_t offset = layout::segments_begin + (number - 1) * heap.header.segment_bytes;
                    write_at(*file, offset + at % 8 * 8, input.changed(read_at<std::uint64_t>(*file, offset + at % 8 * 8)));
                    if (!fixes) break;
                    auto head = read_at<layout::SegmentHead>(*file, offset);
                    head.checksum = checksum(layout::bytes_of(head).first(offsetof(layout::SegmentHead, checksum)), 0);
                    write_at(*file, offset, head);
                    break;
                }
                case 3: {  // a word of a segment: a record's head or value; its check is made right if it looks like a head
                    const std::uint64_t number = 1 + at % heap.header.segments;
                    const std::uint64_t in = input.number(2) * 8 % heap.header.segment_bytes;
                    const std::uint64_t offset = layout::segments_begin + (number - 1) * heap.header.segment_bytes;
                    write_at(*file, offset + in, input.changed(read_at<std::uint64_t>(*file, offset + in)));
                    if (!fixes_records) break;
                    const auto head = read_at<layout::SegmentHead>(*file, offset);
                    std::uint64_t seed = 0;
                    std::memcpy(&seed, heap.header.heap, sizeof seed);
                    for (std::uint64_t record = sizeof head; record + sizeof(layout::RecordHead) <= heap.header.segment_bytes;) {
                        auto of = read_at<layout::RecordHead>(*file, offset + record);
                        const std::uint64_t length = layout::record_bytes(of.length & ~(layout::record_removes | layout::record_is_large));
                        if (record + length > heap.header.segment_bytes) break;
                        if (in >= record && in < record + length) {
                            std::vector<std::byte> bytes(of.length & ~(layout::record_removes | layout::record_is_large));
                            read_into(*file, bytes, offset + record + sizeof of);
                            const auto rest = layout::bytes_of(of).subspan(sizeof of.check);
                            of.check =
                                static_cast<std::uint32_t>(checksum(bytes, checksum(rest, mix(mix(seed, head.birth), number << 32U | record))));
                            write_at(*file, offset + record, of);
                            break;
                        }
                        record += length;
                    }
                    break;
                }
                case 4: {  // a word of the ring
                    const std::uint64_t offset = at * 8 % (heap.header.ring_capacity + 8_KiB);
                    write_at(*ring, offset, input.changed(read_at<std::uint64_t>(*ring, offset)));
                    break;
                }
                default:  // a file that ends early
                    if (at % 3 == 0) {
                        io::File& cut = at % 2 == 0 ? *file : *ring;
                        cut.resize(at * 512 % (cut.info().size_bytes + 1));
                    }
            }
        }
        if (fixes) {
            header.image_checksum = forge_image(*file, heap.image_offset, header.image_bytes);
            forge_header(*file, header);
        }
    }
    const bool is_forged = fixes || fixes_records;
    const bool reads = use(heap.disk, false, is_forged);
    heap.disk.disconnect();
    use(heap.disk, true, is_forged);
    heap.disk.disconnect();
    static_cast<void>(reads);
    return 0;
}
