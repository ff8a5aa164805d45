#include "store/save_record.hpp"

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"

namespace taiyen::store {
namespace {

/// Pages ascend, lie within the extents, and as many have a checksum as the head says.
bool entries_hold(const SaveRecord& save) {
    std::uint64_t images = 0;
    std::uint64_t next = 0;
    for (const SavedPage& saved : save.pages) {
        if (saved.page < next || !save.extents().hold({saved.page})) return false;
        next = saved.page + 1;
        images += saved.checksum != 0 ? 1 : 0;
    }
    return images == save.head.image_count;
}

bool is_bounded(const SaveRecord& save, ByteCount capacity) {
    const SaveHead& head = save.head;
    const AnnexHead& annex = save.annex;
    const bool annex_bounded =
        annex.extent <= sequence_bytes_max && annex.extent % page_bytes == 0 && annex.used <= annex.extent && annex.used % page_bytes == 0;
    return std::max(head.generation, head.serial) < count_end && head.extent <= capacity && head.extent % page_bytes == 0 && annex_bounded &&
           head.page_count <= (head.extent + annex.extent) / page_bytes && head.image_count <= head.page_count && head.reserved == 0 &&
           are_places(annex.places, save.extents());
}

bool is_stage_offset(std::uint64_t offset) { return offset >= log::Ring::header_bytes && offset % page_bytes == 0; }

}  // namespace

std::optional<SaveRecord> decode_staged(const StagedSave& staged, ByteCount capacity) {
    SaveRecord save;
    save.head = staged.head;
    save.annex = staged.annex;
    return is_bounded(save, capacity) && is_stage_offset(staged.head.stage_offset) ? std::optional(std::move(save)) : std::nullopt;
}

std::optional<SaveRecord> decode_save(const log::Record& record, ByteCount capacity) {
    SaveRecord save;
    const std::span<const std::byte> payload(record.payload);
    if (record.kind != record_images || payload.size() < sizeof save.head) return std::nullopt;
    std::memcpy(&save.head, payload.data(), sizeof save.head);
    const SaveHead& head = save.head;
    const bool has_annex = (head.flags & save_has_annex) != 0;
    ByteCount at = sizeof head;
    if (has_annex) {
        if (payload.size() < at + sizeof save.annex) return std::nullopt;
        std::memcpy(&save.annex, payload.data() + at, sizeof save.annex);
        at += sizeof save.annex;
    }
    if (head.generation != record.number || !is_bounded(save, capacity)) return std::nullopt;
    if (head.stage_offset != 0 || payload.size() != save_payload_bytes(has_annex, head.page_count, head.image_count)) return std::nullopt;
    save.pages.resize(head.page_count);
    if (head.page_count != 0) std::memcpy(save.pages.data(), payload.data() + at, head.page_count * sizeof(SavedPage));
    save.images.assign(payload.begin() + static_cast<std::ptrdiff_t>(at + head.page_count * sizeof(SavedPage)), payload.end());
    return entries_hold(save) ? std::optional(std::move(save)) : std::nullopt;
}

std::uint64_t stage_digest(std::span<const SavedPage> pages, const Uuid& heap) {
    std::uint64_t seed = 0;
    std::memcpy(&seed, heap.bytes.data(), sizeof seed);
    return checksum(std::as_bytes(pages), mix(seed, 'S'));
}

bool load_stage(const io::File& ring_file, SaveRecord& save, ByteCount capacity, const Uuid& heap) {
    const SaveHead& head = save.head;
    const ByteCount size = ring_file.info().size_bytes;
    const ByteCount needed = stage_entries_bytes(head.page_count) + head.image_count * page_bytes;
    if (head.extent > capacity || head.stage_offset > size || needed > size - head.stage_offset) return false;
    const AlignedBuffer buffer(stage_entries_bytes(head.page_count));
    if (ring_file.read_direct(buffer.span(), head.stage_offset) != buffer.size()) return false;
    save.pages.resize(head.page_count);
    std::memcpy(save.pages.data(), buffer.data(), head.page_count * sizeof(SavedPage));
    return stage_digest(save.pages, heap) == head.stage_digest && entries_hold(save) && images_hold(save, &ring_file, heap);
}

bool images_hold(const SaveRecord& save, const io::File* ring_file, const Uuid& heap) {
    bool sound = true;
    for_each_saved_page(save, ring_file, [&](PageNumber page, std::uint64_t sum, std::span<const std::byte> image) {
        sound = sound && (sum == 0 || page_checksum(image, page, heap) == sum);
    });
    return sound;
}

}  // namespace taiyen::store
