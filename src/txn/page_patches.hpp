#pragma once
/// PagePatches: which pages, of span and annex, the transactions of a piece of the log change, and what is in them then: for saves that go on beside the program.
///
/// The program's memory is not looked at: base images from the files, and the log's bytes, give the pages as of the newest transaction of the piece. The log is read once: the image of
/// a page is made when the page turns up first. Where the images would take more memory than they may, they are given up, and the log is read again for each batch of pages: memory stays
/// bounded whatever the log holds.
/// Thread rule: one thread; the ring may be appended to meanwhile.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <taiyen/base/units.hpp>

#include "base/aligned_buffer.hpp"
#include "io/storage.hpp"
#include "log/ring.hpp"
#include "txn/record.hpp"

namespace taiyen::txn {

class PagePatches {
public:
    /// Fills the image of a page with what the files hold of it.
    using ReadBase = std::function<void(PageNumber, std::span<std::byte>)>;

    /// The piece: from `start`, where the group of `contained` + 1 begins, to the end of the group that holds `last`, which is durable. `images_max`: bytes of images at once.
    PagePatches(const io::File& log, const log::RingIdentity& identity, const log::RingStart& start, Serial contained, Serial last,
                ByteCount capacity, ByteCount images_max);

    /// Reads the piece. Throws: Error{corrupt | io_error}, what `read_base` throws, std::bad_alloc.
    void read(const ReadBase& read_base);
    /// Pages that change, ascending.
    const std::vector<PageNumber>& pages() const { return pages_; }
    /// Of the span as of the piece's newest transaction.
    ByteCount extent() const { return extent_; }
    /// The annex as of the piece's newest transaction; nothing: none changed it.
    const std::optional<store::AnnexHead>& annex() const { return annex_; }
    /// Whether some transaction needs more than the pages that it changes; then there are neither images nor patches.
    bool needs_heap() const { return needs_heap_; }
    /// Whether all images are there. If not, `patch` gives them by the batch.
    bool has_images() const { return keeps_images_; }
    /// Copies the images of some of the pages. Requires: has_images.
    void copy_images(std::span<const PageNumber> pages, std::span<std::byte> images) const;
    /// Brings images, one for each page in its order, from before the piece to behind it. Requires: read; !needs_heap. Throws: Error{corrupt | io_error}.
    void patch(std::span<const PageNumber> pages, std::span<std::byte> images) const;

private:
    /// Numbers pages in the order in which they turn up. Open addressing: asked for each entry of the log.
    class PageIndex {
    public:
        PageIndex() : slots_(std::size_t{1} << 10U) {}
        /// `made`: the page is new. Throws: std::bad_alloc.
        std::uint32_t number_of(PageNumber page, bool& made);
        /// Requires: it is there.
        std::uint32_t number_of(PageNumber page) const { return slots_[slot_of(page)].number; }
        std::size_t size() const { return size_; }
        std::vector<PageNumber> ascending() const;

    private:
        struct Slot {
            std::uint64_t page_plus_one = 0;  ///< 0: empty
            std::uint32_t number = 0;
        };
        /// The page's slot, or the one where it goes.
        std::size_t slot_of(PageNumber page) const;
        void double_slots();

        std::vector<Slot> slots_;
        std::size_t size_ = 0;
    };

    template <class Begin, class Visit>
    void for_each_entry(Begin&& begin, Visit&& visit) const;
    void note(const change::Entry& entry, const ReadBase& read_base);
    std::byte* image_of(PageNumber page, bool is_overwritten, const ReadBase& read_base);
    std::span<std::byte> image(std::uint32_t number) const;

    const io::File& log_;
    const log::RingIdentity& identity_;
    log::RingStart start_;
    Serial contained_;
    Serial last_;
    ByteCount capacity_;
    ByteCount images_max_;
    ByteCount extent_ = 0;
    std::optional<store::AnnexHead> annex_;
    bool needs_heap_ = false;
    bool keeps_images_ = true;
    PageIndex index_;
    std::vector<AlignedBuffer> blocks_;  ///< of images, in the order of their numbers
    std::vector<PageNumber> pages_;
};

}  // namespace taiyen::txn
