#include "txn/page_patches.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

namespace taiyen::txn {

using change::Entry;

PagePatches::PagePatches(const io::File& log, const log::RingIdentity& identity, const log::RingStart& start, Serial contained, Serial last, ByteCount capacity)
    : log_(log), identity_(identity), start_(start), contained_(contained), last_(last), capacity_(capacity) {}

template <class F>
void PagePatches::for_each_transaction(F&& visit) const {
    LogWalk walk(log_.path(), capacity_, contained_);
    if (contained_ == last_) return;
    log::Ring::scan(log_, identity_, start_, [&](const log::Record& group) {
        walk.walk(group, visit);
        return walk.last() < last_;  // behind it stands what is being written now
    });
    if (walk.last() != last_) {
        throw Error(errc::corrupt, log_.path(),
                    "the log holds transactions up to " + std::to_string(walk.last().value) + ", but " + std::to_string(last_.value) + " was acknowledged; the log's disk loses what was written");
    }
}

void PagePatches::drop_doubles() {
    std::ranges::sort(pages_);
    pages_.erase(std::unique(pages_.begin(), pages_.end()), pages_.end());
}

void PagePatches::read() {
    pages_.clear();
    std::size_t doubles_from = std::size_t{1} << 16U;
    for_each_transaction([&](const LoggedTransaction& transaction) {
        extent_ = transaction.extent;
        if (transaction.annex) annex_ = transaction.annex;
        needs_heap_ = needs_heap_ || transaction.needs_heap;
        if (needs_heap_) return;
        transaction.for_each([&](const Entry& entry) {
            const std::uint64_t end = (entry.where.value + entry.length - 1) / page_bytes + 1;
            for (std::uint64_t page = page_of(entry.where).value; page < end; ++page) {
                if (pages_.empty() || pages_.back().value != page) pages_.push_back({page});
            }
        });
        if (pages_.size() > doubles_from) {
            drop_doubles();
            doubles_from = std::max(doubles_from, 2 * pages_.size());
        }
    });
    drop_doubles();
}

void PagePatches::patch(std::span<const PageNumber> pages, std::span<std::byte> images) const {
    TAIYEN_CHECK(images.size() == pages.size() * page_bytes && !needs_heap_);
    if (pages.empty()) return;
    for_each_transaction([&](const LoggedTransaction& transaction) {
        transaction.for_each([&](const Entry& entry) {
            const std::uint64_t begin = entry.where.value;
            const std::uint64_t end = begin + entry.length;
            if (end <= offset_of(pages.front()).value || begin >= offset_of(pages.back()).value + page_bytes) return;
            auto page = std::ranges::lower_bound(pages, page_of(entry.where));
            for (; page != pages.end() && offset_of(*page).value < end; ++page) {
                const std::uint64_t at = offset_of(*page).value;
                const std::uint64_t from = std::max(begin, at);
                const std::uint64_t to = std::min(end, at + page_bytes);
                std::byte* const target = images.data() + static_cast<std::size_t>(page - pages.begin()) * page_bytes + (from - at);
                if (entry.after.empty()) {
                    std::memset(target, 0, to - from);
                } else {
                    std::memcpy(target, entry.after.data() + (from - begin), to - from);
                }
            }
        });
    });
}

}  // namespace taiyen::txn
