// What the files have below pages that a save is about to replace.

#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/proofs.hpp"

namespace taiyen::store {
namespace {

/// Read at once where many bases are checked: stays in the processor's cache.
constexpr ByteCount base_batch_bytes = ByteCount{256} << 10U;
/// So many bases are asked for ahead: one after the other, each would be a wait for the device.
constexpr std::size_t bases_ahead = 4_MiB / page_bytes;
/// Bases so near to each other are asked for at once, with what lies between them.
constexpr std::uint64_t bases_gap_max = 8;

}  // namespace

/// The pages of a batch as the newest save left them. What rotted in the backing file comes from the data file, which still has that save's page: a page is overwritten there
/// only after its base was asked for.
void Proofs::read_bases(std::span<const ChangedPage> batch, std::span<std::byte> images) {
    const Extents extents = files_.extents();
    std::size_t asked = 0;
    for (std::size_t i = 0; i < batch.size();) {
        will_read_bases(batch, i, asked);
        std::size_t count = 1;
        while (i + count < batch.size() && batch[i + count].page.value == batch[i].page.value + count) ++count;
        files_.backing().try_read_pages(batch[i].page, images.subspan(i * page_bytes, count * page_bytes), Via::cache);
        for (std::size_t k = i; k < i + count; ++k) {
            const PageNumber page = batch[k].page;
            const auto image = images.subspan(k * page_bytes, page_bytes);
            if (!extents.hold(page)) {
                std::memset(image.data(), 0, page_bytes);
                continue;
            }
            const std::uint64_t expected = files_.table().entry(page);
            if (page_checksum(image, page, files_.table().heap()) == expected) continue;
            files_.read_whole(page, image, "its checksum differs, so what was committed on top of it can't be saved");
            files_.note_healed();
        }
        i += count;
    }
}

void Proofs::will_read_bases(std::span<const ChangedPage> pages, std::size_t next, std::size_t& asked) const noexcept {
    const std::size_t end = std::min(pages.size(), next + bases_ahead);
    if (end < pages.size() && end < asked + bases_ahead / 2) return;  // half of what is to be asked for ahead still is
    while (asked < end) {
        const PageNumber first = pages[asked].page;
        PageNumber last = first;
        while (++asked < end && pages[asked].page.value - last.value <= bases_gap_max && sequence_of(pages[asked].page) == sequence_of(first))
            last = pages[asked].page;
        files_.backing().will_read(first, last.value - first.value + 1);
    }
}

/// What was changed lies on what the newest save left. Throws: Error{corrupt}: the heap is poisoned, but its files have the page whole again if one of them had.
void Proofs::check_base(PageNumber page) {
    if (planted(Bug::rot_laundered) || !has_base(page) || is_proven(page)) return;
    const AlignedBuffer rotten(page_bytes);
    const AlignedBuffer good(page_bytes);
    files_.backing().read_pages(page, rotten.span(), Via::cache);  // what the device refuses may be given another time: nothing has happened
    try {
        files_.read_whole(page, good.span(), "its checksum differs, so the change on top of it can't be saved");
    } catch (const Error&) {
        condition_.poison("saving", "a page was damaged on disk before it was changed, and there is no good second copy");
        throw;
    }
    restore_in_file(page, good.span());
    if (hides_rot(page, rotten.span(), good.span())) return;
    condition_.poison("saving", "a page was damaged on disk before it was changed, and what was stored there can't be told from what was damaged");
    throw Error(errc::corrupt, files_.backing().path(), files_.backing().layout.file_offset(offset_of(page)),
                text_of(page) +
                    " of the heap was damaged before it was changed, and what was stored there can't be told from what was damaged: nothing "
                    "is saved. The file has the page again as the newest save left it; close the heap and open it again. Verify::at_opening "
                    "restores such pages before they are changed");
}

/// The same for many pages, read by runs.
void Proofs::check_bases(std::span<const ChangedPage> changed, bool punches) {
    const AlignedBuffer bases(base_batch_bytes);
    const std::span<const ChangedPage> all = changed;
    std::size_t asked = 0;
    while (!changed.empty()) {
        will_read_bases(all, all.size() - changed.size(), asked);
        std::size_t count = 1;
        while (count < changed.size() && count < base_batch_bytes / page_bytes && changed[count].page.value == changed[0].page.value + count) ++count;
        files_.backing().try_read_pages(changed[0].page, bases.first(count * page_bytes), Via::cache);
        for (std::size_t i = 0; i < count; ++i) {
            const PageNumber page = changed[i].page;
            const auto base = bases.span().subspan(i * page_bytes, page_bytes);
            const bool becomes_hole = punches && changed[i].checksum == 0;
            if (!becomes_hole && has_base(page) && page_checksum(base, page, files_.table().heap()) != files_.table().entry(page)) check_base(page);
        }
        changed = changed.subspan(count);
    }
}

}  // namespace taiyen::store
