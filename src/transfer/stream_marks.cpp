#include "transfer/stream_marks.hpp"

#include <cstring>

#include "base/checksum.hpp"
#include "base/codecs.hpp"
#include "heap/core.hpp"
#include "heap/geometry.hpp"
#include "store/heap_layout.hpp"

namespace taiyen::transfer {
namespace {

constexpr std::uint64_t head_seed = 0x7478'6561'6448ULL;

template <class Mark>
std::uint64_t checksum_of(const Mark& mark, std::uint64_t before) {
    return checksum({reinterpret_cast<const std::byte*>(&mark), offsetof(Mark, checksum)}, before);
}

[[noreturn]] void throw_damaged(const std::filesystem::path& path, std::uint64_t offset, const char* what) {
    throw Error(errc::corrupt, path, offset, std::string("the compressed heap is damaged: ") + what + "; get another copy of it");
}

bool fits(const layout::StreamHead& head) {
    const bool capacity =
        head.capacity % page_bytes == 0 && head.capacity >= heap::Engine::capacity_min && head.capacity <= heap::layout::capacity_max;
    return capacity && head.kind >= 1 && head.kind <= 3 && heap::Geometry(head.capacity).valid_extent(head.extent) && head.base >= heap::slot_bytes &&
           head.base % heap::base_alignment == 0 && head.base < store::address_end && head.capacity < store::address_end - head.base &&
           head.serial < (std::uint64_t{1} << 62U);
}

}  // namespace

std::uint64_t body_checksum(std::span<const std::byte> body, std::uint64_t chunk) noexcept { return checksum(body, chunk); }
void seal(layout::StreamHead& head) noexcept { head.checksum = checksum_of(head, head_seed); }
void seal(layout::ChunkHead& head, std::uint64_t before) noexcept { head.checksum = checksum_of(head, before); }
void seal(layout::StreamEnd& end, std::uint64_t before) noexcept { end.checksum = checksum_of(end, before); }

void prove(const layout::StreamHead& head, const std::filesystem::path& path) {
    if (head.magic != layout::stream_magic) throw Error(errc::not_a_heap, path, 0, "this is no compressed heap; `taiyen compress` makes one");
    if (head.checksum != checksum_of(head, head_seed)) throw_damaged(path, 0, "its head does not match its checksum");
    if (head.version != layout::version || (head.incompatible_features & ~layout::known_incompatible_features) != 0)
        throw Error(errc::unsupported_version, path, 8, "the compressed heap was written by a newer version of taiyen; expand it with that one");
    if (!fits(head)) throw_damaged(path, 0, "its head speaks of a heap that can't be");
}

void prove(const layout::ChunkHead& head, std::uint64_t before, std::uint64_t next_page, std::uint64_t page_end, const std::filesystem::path& path,
           std::uint64_t offset) {
    if (head.checksum != checksum_of(head, before))
        throw_damaged(path, offset, "a part of it does not follow the one before it, or does not match its checksum");
    const std::uint64_t expanded = head.runs * sizeof(layout::Run) + std::uint64_t{head.content_bytes};
    if (head.magic != layout::chunk_magic || head.codec > layout::StoredCodec::zstd || head.first_page < next_page || head.first_page >= page_end ||
        head.runs > layout::chunk_runs_max || head.content_bytes > layout::content_bytes_max || head.content_bytes % layout::unit_bytes != 0 ||
        head.stored_bytes > expanded || (head.codec == layout::StoredCodec::none && head.stored_bytes != expanded)) {
        throw_damaged(path, offset, "a part of it speaks of sizes or places that can't be");
    }
}

void prove(const layout::StreamEnd& end, std::uint64_t before, const layout::StreamEnd& counted, const std::filesystem::path& path,
           std::uint64_t offset) {
    if (end.checksum != checksum_of(end, before)) throw_damaged(path, offset, "its end does not match its checksum");
    if (end.chunks != counted.chunks || end.content_bytes != counted.content_bytes || end.stream_bytes != counted.stream_bytes)
        throw_damaged(path, offset, "its end speaks of another stream");
}

CompressedHeap heap_of(const layout::StreamHead& head) {
    Uuid uuid;
    std::memcpy(uuid.bytes.data(), head.heap_uuid, sizeof head.heap_uuid);
    const bool is_volatile = (head.compatible_features & layout::compatible_volatile) != 0;
    return {is_volatile ? HeapKind::volatile_heap : static_cast<HeapKind>(head.kind),
            uuid.text(),
            head.base,
            (head.incompatible_features & layout::feature_position_independent) != 0,
            head.capacity,
            head.extent,
            head.names,
            {head.serial}};
}

static_assert(static_cast<std::uint32_t>(HeapKind::archive) == 1 && static_cast<std::uint32_t>(HeapKind::transactional) == 3);

}  // namespace taiyen::transfer
