#include "txn/page_patches.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/checksum.hpp"

namespace taiyen::txn {

using change::Entry;

namespace {

constexpr std::uint32_t images_per_block = 64;

/// What the entry leaves in the page at `at`. Requires: they overlap.
void put(const Entry& entry, std::uint64_t at, std::byte* image) {
    const std::uint64_t begin = entry.where.value;
    const std::uint64_t from = std::max(begin, at);
    const std::uint64_t to = std::min(begin + entry.length, at + page_bytes);
    if (entry.after.empty())
        std::memset(image + (from - at), 0, to - from);
    else
        std::memcpy(image + (from - at), entry.after.data() + (from - begin), to - from);
}

}  // namespace

// The index

std::size_t PagePatches::PageIndex::slot_of(PageNumber page) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = mix(page.value, 0) & mask;
    while (slots_[at].page_plus_one != 0 && slots_[at].page_plus_one != page.value + 1) at = (at + 1) & mask;
    return at;
}

std::uint32_t PagePatches::PageIndex::number_of(PageNumber page, bool& made) {
    std::size_t at = slot_of(page);
    made = slots_[at].page_plus_one == 0;
    if (made) {
        if (2 * (size_ + 1) > slots_.size()) {
            double_slots();
            at = slot_of(page);
        }
        slots_[at] = {page.value + 1, static_cast<std::uint32_t>(size_++)};
    }
    return slots_[at].number;
}

void PagePatches::PageIndex::double_slots() {
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : before)
        if (slot.page_plus_one != 0) slots_[slot_of({slot.page_plus_one - 1})] = slot;
}

std::vector<PageNumber> PagePatches::PageIndex::ascending() const {
    std::vector<PageNumber> pages;
    pages.reserve(size_);
    for (const Slot& slot : slots_)
        if (slot.page_plus_one != 0) pages.push_back({slot.page_plus_one - 1});
    std::ranges::sort(pages);
    return pages;
}

// The piece

PagePatches::PagePatches(const io::File& log, const log::RingIdentity& identity, const log::RingStart& start, Serial contained, Serial last,
                         ByteCount capacity, ByteCount images_max)
    : log_(log), identity_(identity), start_(start), contained_(contained), last_(last), capacity_(capacity), images_max_(images_max) {}

template <class Begin, class Visit>
void PagePatches::for_each_entry(Begin&& begin, Visit&& visit) const {
    LogWalk walk(log_.path(), capacity_, contained_);
    if (contained_ == last_) return;
    log::Ring::scan(log_, identity_, start_, [&](const log::Record& group) {
        walk.walk(group, begin, visit);
        return walk.last() < last_;  // behind it stands what is being written now
    });
    if (walk.last() != last_) {
        throw Error(errc::corrupt, log_.path(),
                    "the log holds transactions up to " + std::to_string(walk.last().value) + ", but " + std::to_string(last_.value) +
                        " was acknowledged; the log's disk loses what was written");
    }
}

std::span<std::byte> PagePatches::image(std::uint32_t number) const {
    return {blocks_[number / images_per_block].data() + number % images_per_block * page_bytes, page_bytes};
}

void PagePatches::read(const ReadBase& read_base) {
    for_each_entry(
        [&](const LoggedTransaction& transaction) {
            extent_ = transaction.extent;
            if (transaction.annex) annex_ = transaction.annex;
            needs_heap_ = needs_heap_ || transaction.needs_heap;
        },
        [&](const Entry& entry) {
            if (!needs_heap_) note(entry, read_base);
        });
    if (needs_heap_) {
        keeps_images_ = false;
        blocks_.clear();
    }
    pages_ = index_.ascending();
}

void PagePatches::note(const Entry& entry, const ReadBase& read_base) {
    const std::uint64_t end = entry.where.value + entry.length;
    for (std::uint64_t page = page_of(entry.where).value; offset_of(PageNumber{page}).value < end; ++page) {
        const std::uint64_t at = offset_of(PageNumber{page}).value;
        const bool is_overwritten = entry.where.value <= at && end >= at + page_bytes;
        if (std::byte* const target = image_of({page}, is_overwritten, read_base)) put(entry, at, target);
    }
}

/// Null: there are no images, it is noted that the page changes.
std::byte* PagePatches::image_of(PageNumber page, bool is_overwritten, const ReadBase& read_base) {
    bool made = false;
    const std::uint32_t number = index_.number_of(page, made);
    if (!keeps_images_) return nullptr;
    if (made) {
        if (index_.size() * page_bytes > images_max_) {
            keeps_images_ = false;
            blocks_.clear();
            return nullptr;
        }
        if (number / images_per_block == blocks_.size()) blocks_.emplace_back(images_per_block * page_bytes);
        if (!is_overwritten) read_base(page, image(number));
    }
    return image(number).data();
}

void PagePatches::copy_images(std::span<const PageNumber> pages, std::span<std::byte> images) const {
    TAIYEN_CHECK(images.size() == pages.size() * page_bytes && keeps_images_);
    std::byte* to = images.data();
    for (const PageNumber page : pages) {
        std::memcpy(to, image(index_.number_of(page)).data(), page_bytes);
        to += page_bytes;
    }
}

void PagePatches::patch(std::span<const PageNumber> pages, std::span<std::byte> images) const {
    TAIYEN_CHECK(images.size() == pages.size() * page_bytes && !needs_heap_);
    if (pages.empty()) return;
    for_each_entry([](const LoggedTransaction&) {},
                   [&](const Entry& entry) {
                       const std::uint64_t begin = entry.where.value;
                       const std::uint64_t end = begin + entry.length;
                       if (end <= offset_of(pages.front()).value || begin >= offset_of(pages.back()).value + page_bytes) return;
                       auto page = std::ranges::lower_bound(pages, page_of(entry.where));
                       for (; page != pages.end() && offset_of(*page).value < end; ++page)
                           put(entry, offset_of(*page).value, images.data() + static_cast<std::size_t>(page - pages.begin()) * page_bytes);
                   });
}

}  // namespace taiyen::txn
