/// `Engine::check`: one pass over states, lines and summaries. Everything is read with the same care as in the engine; nothing is written.

#include <algorithm>

#include "heap/engine_state.hpp"

namespace taiyen::heap {

namespace {

class Checker {
public:
    Checker(const Span& span, const PageMap& pages, const Runs& runs, std::size_t limit) : span_(span), pages_(pages), runs_(runs), limit_(limit) {}

    std::vector<Damage> run(const RootDirectory& directory) {
        check_super();
        for (unsigned index = 0; index < pages_.geometry().count() && pages_.opened(index) && !full(); ++index) {
            check_pages(index);
            check_summaries(index);
        }
        if (growth_ != pages_.super().growth_pages)
            found(offsetof(layout::SuperBlock, growth_pages), "the number of growth pages differs from the states");
        if (directories_ != (pages_.super().directory != 0 ? 1U : 0U))
            found(offsetof(layout::SuperBlock, directory), "there is not exactly one root directory");
        if (!full()) directory.check(damages_, limit_);
        return std::move(damages_);
    }

private:
    bool full() const { return damages_.size() >= limit_; }
    void found(std::uint64_t where, const char* what) {
        if (!full()) damages_.push_back({{where}, what});
    }
    std::uint64_t line_place(Page page) const { return span_.offset_of(&pages_.line(page)); }

    void check_super() {
        const layout::SuperBlock& super = pages_.super();
        if (super.magic != layout::magic || (super.version != layout::version && super.version != layout::version_with_content) ||
            super.page_bytes != page_bytes)
            found(0, "the super block's head");
        if (super.extent != std::uint64_t{pages_.extent()} * page_bytes)
            found(offsetof(layout::SuperBlock, extent), "the extent differs from the one in use");
        for (const std::uint64_t word : super.zero)
            if (word != 0) found(offsetof(layout::SuperBlock, zero), "padding of the super block is not zero");
        for (unsigned index = 0; index < 32; ++index)
            if ((index >= pages_.geometry().count() || !pages_.opened(index)) && super.regions[index] != layout::Summary{})
                found(span_.offset_of(&super.regions[index]), "a region that isn't in use has a summary");
    }

    void check_pages(unsigned index) {
        const Region& r = pages_.geometry().region(index);
        const auto* words = span_.at<std::uint64_t>(r.states);
        const Page end = std::min(r.end, pages_.extent());
        const auto raw_state = [&](Page relative) {
            return words[relative / layout::segment_pages] >> (relative % layout::segment_pages * 4) & 0xFU;
        };
        for (Page page = r.first; page < r.end && !full(); ++page)
            if ((page < r.first_user || page >= end) && raw_state(page - r.first) != 0)
                found(span_.offset_of(&words[(page - r.first) / layout::segment_pages]), "a page that isn't the user's has a state");
        for (Page page = r.first_user; page < end && !full();) page += check_page(page);
    }

    /// Returns how many pages it dealt with.
    Page check_page(Page page) {
        if (pages_.content_of(page) == Content::pointer_free && pages_.super().version == layout::version)
            found(span_.offset_of(pages_.word(page)), "a pointer-free block in a heap whose version has none");
        switch (pages_.state(page)) {
            case PageState::absent:
                if (!pages_.geometry().in_zone(page)) found(span_.offset_of(pages_.word(page)), "a page has no valid state");
                [[fallthrough]];
            case PageState::available:
            case PageState::released:
                if (!line_zero(pages_.line(page))) found(line_place(page), "the line of an available page is not zero");
                return 1;
            case PageState::small_full:
            case PageState::small_room:
            case PageState::pointer_free_full:
            case PageState::pointer_free_room: check_small(page); return 1;
            case PageState::packed_full:
            case PageState::packed_room: check_packed(page); return 1;
            case PageState::run_head: {
                const auto run = runs_.find(page);
                if (!run) {
                    found(line_place(page), "a run's line contradicts the states of its pages");
                    return 1;
                }
                check_run(*run);
                return run->pages + run->growth;
            }
            case PageState::run_body:
            case PageState::growth: found(span_.offset_of(pages_.word(page)), "a page belongs to a run that has no head"); return 1;
            default: found(span_.offset_of(pages_.word(page)), "a page has no valid state"); return 1;
        }
    }

    void check_run(const Run& run) {
        const layout::RunLine& line = pages_.run_line(run.head);
        if (std::any_of(std::begin(line.zero), std::end(line.zero), [](std::uint64_t word) { return word != 0; }))
            found(line_place(run.head), "padding of a run's line is not zero");
        for (Page page = run.head + 1; page < run.head + run.pages + run.growth && !full(); ++page)
            if (!line_zero(pages_.line(page))) found(line_place(page), "the line of a run's further page is not zero");
        growth_ += run.growth;
        if (run.kind == layout::RunKind::directory) {
            ++directories_;
            if (pages_.super().directory != std::uint64_t{run.head} * page_bytes)
                found(line_place(run.head), "a root directory that the super block doesn't know");
        }
        if (run.tail_granules != 0) tail_page_ = run.head + run.pages;
    }

    void check_small(Page page) {
        const layout::Line& line = pages_.line(page);
        bool inside = tail_page_ == page;  // a front without a start belongs to the run before
        for (const layout::Pair& pair : line.pairs) {
            if ((pair.start & ~pair.occupied) != 0) found(line_place(page), "a block starts in a free granule");
            // A granule without a start continues its predecessor, which then must be occupied.
            const std::uint64_t continued = pair.occupied & ~pair.start;
            const std::uint64_t predecessors = pair.occupied << 1U | (inside ? 1U : 0U);
            if ((continued & ~predecessors) != 0) found(line_place(page), "occupied granules that no block starts");
            inside = (pair.occupied >> 63U) != 0;
        }
        const PageState state = pages_.state(page);
        if (line_full(line) != (state == PageState::small_full || state == PageState::pointer_free_full))
            found(span_.offset_of(pages_.word(page)), "a page's state and its line differ about room");
    }

    void check_packed(Page page) {
        const layout::PackedLine& line = pages_.packed_line(page);
        const unsigned packed_class = packed_class_of(line);
        if (packed_class == packed_class_count) {
            found(line_place(page), "a page of packed blocks has slots of an impossible size");
            return;
        }
        if (std::any_of(std::begin(line.zero), std::end(line.zero), [](std::uint64_t word) { return word != 0; }))
            found(line_place(page), "padding of a packed page's line is not zero");
        for (unsigned word = 0; word < PackedTables::words; ++word)
            if ((line.occupied[word] & ~packed_tables.slots[packed_class][word]) != 0)
                found(line_place(page), "a packed page has blocks behind its last slot");
        if (packed_full(line, packed_class) != (pages_.state(page) == PageState::packed_full))
            found(span_.offset_of(pages_.word(page)), "a page's state and its line differ about room");
    }

    void check_summaries(unsigned index) {
        const Region& r = pages_.geometry().region(index);
        for (unsigned level = 0; level <= r.levels && !full(); ++level) {
            const Page nodes = static_cast<Page>((r.end - r.first + PageMap::span_pages(level) - 1) / PageMap::span_pages(level));
            for (Page node = 0; node < nodes && !full(); ++node)
                if (!pages_.agrees(index, level, node))
                    found(span_.offset_of(&pages_.stored(index, level, node)), "a summary differs from what it covers");
        }
    }

    const Span& span_;
    const PageMap& pages_;
    const Runs& runs_;
    std::size_t limit_;
    std::vector<Damage> damages_;
    std::uint64_t growth_ = 0;
    unsigned directories_ = 0;
    Page tail_page_ = 0;  ///< page whose front belongs to the run seen last
};

}  // namespace

std::vector<Damage> Engine::check(std::size_t limit) const {
    return Checker(state_->span, state_->pages, state_->runs, limit).run(state_->directory);
}

}  // namespace taiyen::heap
