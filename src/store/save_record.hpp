#pragma once
/// A save as a ring record: which pages, their checksums, their images (in the record or in the stage behind the ring).
///
/// (I1) A decoded record obeys its bounds: pages ascend, lie within its extents, the span's within the capacity, sizes add up exactly.
/// Thread rule: values.

#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "io/storage.hpp"
#include "log/ring.hpp"
#include "store/header.hpp"
#include "store/page_table.hpp"

namespace taiyen::store {

struct SaveRecord {
    SaveHead head{};
    AnnexHead annex{};
    std::vector<SavedPage> pages;
    std::vector<std::byte> images;  ///< record_images: of the pages with a checksum, in order

    bool staged() const { return head.stage_offset != 0; }
    bool punches() const { return (head.flags & save_punches) != 0; }
    Extents extents() const { return {head.extent, annex.extent}; }
};

/// Payload bytes of a record_images save.
constexpr ByteCount save_payload_bytes(bool has_annex, std::uint64_t pages, std::uint64_t images) {
    return sizeof(SaveHead) + (has_annex ? sizeof(AnnexHead) : 0) + pages * sizeof(SavedPage) + images * page_bytes;
}

/// Bytes of the entries part of a stage.
constexpr ByteCount stage_entries_bytes(std::uint64_t pages) { return round_up(pages * sizeof(SavedPage), page_bytes); }

/// Nothing: the payload is not a save of this heap.
std::optional<SaveRecord> decode_save(const log::Record& record, ByteCount capacity);

/// The save that the header says lies in the stage, without its entries. Nothing: the header can't mean that.
std::optional<SaveRecord> decode_staged(const StagedSave& staged, ByteCount capacity);

/// Reads a staged save's entries and proves digest and every image; false: they are not what the header says.
bool load_stage(const io::File& ring_file, SaveRecord& save, ByteCount capacity, const Uuid& heap);

/// Whether every image is the one that its entry's checksum stands for. `ring_file`: where a staged save's images lie.
bool images_hold(const SaveRecord& save, const io::File* ring_file, const Uuid& heap);

std::uint64_t stage_digest(std::span<const SavedPage> pages, const Uuid& heap);

/// Calls `visit(PageNumber, checksum, image)` for each page; `image` is empty for a zero page. Staged images are read from the device.
template <class F>
void for_each_saved_page(const SaveRecord& save, const io::File* ring_file, F&& visit) {
    std::uint64_t image = 0;
    const AlignedBuffer buffer(save.staged() ? page_bytes : 0);
    for (const SavedPage& saved : save.pages) {
        std::span<const std::byte> bytes;
        if (saved.checksum != 0) {
            if (save.staged()) {
                const std::uint64_t at = save.head.stage_offset + stage_entries_bytes(save.pages.size()) + image * page_bytes;
                if (const ByteCount got = ring_file->read_direct(buffer.span(), at); got != page_bytes)
                    throw Error(errc::corrupt, ring_file->path(), at + got, "the staged pages of a save end early; restore the files from a copy");
                bytes = buffer.span();
            } else {
                bytes = std::span(save.images).subspan(image * page_bytes, page_bytes);
            }
            ++image;
        }
        visit(PageNumber{saved.page}, saved.checksum, bytes);
    }
}

}  // namespace taiyen::store
