#pragma once
/// MetadataProofs: metadata of a span is proven before a change relies on it, where the host can do that.
///
/// State words and summaries together are an eight-thousandth of the heap: all of them are proven at the first change. Lines follow, 64 pages' at a time, when a page comes into question;
/// so opening costs nothing, and a program pays for what it uses.
/// (I1) A page is handed out, or a block freed, by proven metadata only.
/// Thread rule: external lock, the engine's.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "heap/page_map.hpp"

namespace taiyen::heap {

class MetadataProofs {
public:
    MetadataProofs(PageMap& pages, SpanHost& host, bool read_only)
        : pages_(pages), host_(host), active_(host.proves() && !read_only && !planted(Bug::metadata_unproven)) {}

    /// State words and summaries. Throws: Error{corrupt | io_error}, std::bad_alloc.
    void states() {
        if (active_ && !states_) [[unlikely]]
            prove_states();
    }
    /// The same, and the lines of pages [first, first + count).
    void lines(Page first, Page count = 1) {
        if (!active_) return;
        states();
        for (Page group = first / group_pages; group <= (first + count - 1) / group_pages; ++group)
            if (!has_lines(group)) [[unlikely]]
                prove_lines(group);
    }
    /// False: they are damaged, and that was reported.
    bool try_lines(Page page) noexcept { return !active_ || has_lines(page / group_pages) || try_lines_slowly(page); }
    /// Bytes of the span outside of the metadata on which the engine relies, too: the root directory. Proven each time.
    void bytes(HeapOffset offset, ByteCount length) {
        if (active_) host_.prove(offset, length);
    }

private:
    /// 64 lines are a page.
    static constexpr Page group_pages = 64;

    bool has_lines(Page group) const noexcept { return group / 64 < lines_.size() && (lines_[group / 64] >> (group % 64) & 1U) != 0; }
    [[gnu::noinline]] bool try_lines_slowly(Page page) noexcept {
        try {
            lines(page);
            return true;
        } catch (const Error& error) {
            report({static_cast<errc>(error.code().value()), nullptr, error.what()});
        } catch (const std::exception& error) {
            report({errc::io_error, nullptr, error.what()});
        }
        return false;
    }
    [[gnu::noinline]] void prove_states() {
        const Geometry& geometry = pages_.geometry();
        for (unsigned index = 0; index < geometry.count() && pages_.opened(index); ++index) {
            const Region& region = geometry.region(index);
            host_.prove({region.states}, region.lines - region.states);
        }
        states_ = true;
    }
    [[gnu::noinline]] void prove_lines(Page group) {
        const unsigned index = Geometry::region_of(group * group_pages);
        if (index >= pages_.geometry().count()) return;
        const Region& region = pages_.geometry().region(index);
        const Page first = std::max(group * group_pages, region.first_user);
        const Page end = std::min({(group + 1) * group_pages, region.end, pages_.extent()});
        if (first < end) host_.prove({region.lines + (first - region.first_user) * sizeof(layout::Line)}, (end - first) * sizeof(layout::Line));
        if (group / 64 >= lines_.size()) lines_.resize(group / 64 + 1);
        lines_[group / 64] |= std::uint64_t{1} << (group % 64);
    }

    PageMap& pages_;
    SpanHost& host_;
    const bool active_;
    bool states_ = false;
    std::vector<std::uint64_t> lines_;  ///< a bit for each group: they are proven
};

}  // namespace taiyen::heap
