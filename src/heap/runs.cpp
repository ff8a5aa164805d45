#include "heap/runs.hpp"

#include <algorithm>

namespace taiyen::heap {

using layout::RunKind;

namespace {

constexpr Page full_pages(std::uint64_t bytes) { return static_cast<Page>(bytes / page_bytes); }
constexpr unsigned tail_of(std::uint64_t bytes) { return static_cast<unsigned>(bytes % page_bytes / layout::granule_bytes); }

}  // namespace

void Runs::write(Page head, std::uint64_t bytes, Content content, RunKind kind) {
    if (content == Content::pointer_free) pages_.begin_pointer_free();
    const Page pages = full_pages(bytes);
    const unsigned tail = tail_of(bytes);
    layout::RunLine line{};
    line.bytes = bytes;
    line.kind = static_cast<std::uint32_t>(kind);
    layout::RunLine& place = pages_.run_line(head);
    span_.announce(&place, offsetof(layout::RunLine, zero));
    place.bytes = line.bytes;
    place.kind = line.kind;
    place.content = static_cast<std::uint32_t>(content);
    const bool own_tail = tail != 0 && pages_.is_available(head + pages);
    pages_.write_run_states(head, pages, own_tail);
    pages_.refresh_uniform({head, pages + (own_tail ? 1 : 0)}, false);
    if (own_tail) small_.begin_tail(head + pages, tail);
}

Page Runs::allocate(std::uint64_t bytes, Page alignment, Content content, RunKind kind) {
    const unsigned tail = tail_of(bytes);
    if (tail != 0 && alignment <= 1)
        if (const Page fitting = find_before_front(full_pages(bytes), tail); fitting != 0) {
            supply_.about_to_use({fitting, full_pages(bytes)});
            write(fitting, bytes, content, kind);
            small_.add_tail(fitting + full_pages(bytes), tail);
            return fitting;
        }
    const Page total = full_pages(bytes) + (tail != 0 ? 1 : 0);
    const Page head = supply_.find(total, alignment, bytes);
    write(head, bytes, content, kind);
    return head;
}

Page Runs::find_before_front(Page pages, unsigned tail) {
    using enum RunHints::Verdict;
    const Page behind = fronts_.take_if(pages, [&](Page page) {
        if (!pages_.is_user(page) || !pages_.is_small(page, Content::any) || pages_.count_available_before(page, pages) != pages) return drop;
        return range_free(pages_.line(page), 0, tail) ? take : keep;
    });
    return behind == 0 ? 0 : behind - pages;
}

bool Runs::allocate_at(Page head, std::uint64_t bytes, Content content) {
    const Page pages = full_pages(bytes);
    const unsigned tail = tail_of(bytes);
    const auto free = [&] {
        pages_.open_zones({head, pages});
        return pages_.count_available(head, pages) == pages;
    };
    if (!free() && !(supply_.reclaim({head, pages}) && free()) && !(supply_.surrender_growth() && free())) return false;
    if (tail != 0 && pages_.state(head + pages) == PageState::growth) supply_.surrender_growth();
    if (tail == 0) {
        supply_.about_to_use({head, pages});
        write(head, bytes, content);
        return true;
    }
    const Page last = head + pages;
    if (!pages_.is_small(last, Content::any)) {
        supply_.reclaim({last, 1});
        pages_.open_zones({last, 1});
    }
    if (pages_.is_available(last)) {
        supply_.about_to_use({head, pages + 1});
        write(head, bytes, content);
        return true;
    }
    if (!pages_.is_small(last, Content::any) || !range_free(pages_.line(last), 0, tail)) return false;
    supply_.about_to_use({head, pages});
    write(head, bytes, content);
    small_.add_tail(last, tail);
    return true;
}

std::optional<Run> Runs::find(Page head) const {
    if (pages_.state(head) != PageState::run_head) return std::nullopt;
    const layout::RunLine& line = pages_.run_line(head);
    Run run;
    run.head = head;
    run.bytes = line.bytes;
    run.kind = static_cast<RunKind>(line.kind);
    run.content = static_cast<Content>(line.content != 0);
    const Page end = std::min(pages_.geometry().region(Geometry::region_of(head)).end, pages_.extent());
    if (run.bytes < page_bytes || run.bytes % layout::granule_bytes != 0 || run.bytes / page_bytes > end - head ||
        (run.kind != RunKind::user && run.kind != RunKind::directory) || line.content > 1)
        return std::nullopt;
    run.pages = full_pages(run.bytes);
    run.tail_granules = tail_of(run.bytes);
    if (run.pages > 1 && pages_.count_equal(head + 1, run.pages - 1, PageState::run_body) != run.pages - 1) return std::nullopt;
    const Page behind = head + run.pages;
    if (behind < end && pages_.state(behind) == PageState::run_body) return std::nullopt;
    if (run.tail_granules == 0) {
        run.growth = behind < end ? pages_.count_equal(behind, end - behind, PageState::growth) : 0;
        return run;
    }
    if (behind >= end || !pages_.is_small(behind, Content::any) || front_granules(pages_.line(behind)) != run.tail_granules) return std::nullopt;
    return run;
}

std::optional<Run> Runs::find_owner(Page page) const {
    const Page first = pages_.geometry().region(Geometry::region_of(page)).first_user;
    Page head = page;
    if (pages_.is_small(page, Content::any)) {
        if (page == first) return std::nullopt;
        --head;
    }
    return find(pages_.skip_back(head));
}

void Runs::free(const Run& run) {
    layout::RunLine& line = pages_.run_line(run.head);
    span_.announce(&line, offsetof(layout::RunLine, zero));
    line.bytes = 0;
    line.kind = 0;
    line.content = 0;
    count_growth(-std::int64_t{run.growth});
    const Page behind = run.head + run.pages;
    const bool tail_too = run.tail_granules != 0 && small_.clear_tail(behind, run.tail_granules);
    pages_.set_available({run.head, run.pages + run.growth + (tail_too ? 1 : 0)});
    if (run.tail_granules != 0 && !tail_too) {
        small_.end_tail(behind, run.tail_granules);
        fronts_.add(behind, run.pages);
    }
}

void Runs::count_growth(std::int64_t pages) {
    if (pages == 0) return;
    std::uint64_t& count = pages_.super().growth_pages;
    const std::uint64_t change = static_cast<std::uint64_t>(pages);
    span_.store(count, pages < 0 && count < static_cast<std::uint64_t>(-pages) ? 0 : count + change);
}

Page Runs::reserve(Page first, Page limit) {
    if (limit == 0 || !pages_.is_user(first)) return 0;
    const Page pages = pages_.count_equal(first, limit, pages_.memory_comes_with_use() ? PageState::released : PageState::available);
    if (pages != 0) pages_.set_states({first, pages}, PageState::growth);
    return pages;
}

bool Runs::resize_in_place(Run run, Page pages) {
    const Page end = pages_.geometry().region(Geometry::region_of(run.head)).end;
    if (pages > end - run.head) return false;
    // What can be had, before anything is changed.
    const Page own = run.pages + run.growth;
    const Page behind = run.head + run.pages;
    if (pages > run.pages && run.tail_granules == 0 && pages > own) {
        const Page next = run.head + own;
        Page following = next < std::min(end, pages_.extent()) ? pages_.count_over_zones(next, pages - own) : 0;
        if (own + following < pages && next + following == pages_.extent() && supply_.extend_to(run.head + pages)) following = pages - own;
        if (own + following < pages) return false;
        supply_.about_to_use({next, pages - own});
    } else if (pages > run.pages && run.tail_granules != 0) {
        const Page next = behind + 1;
        const Page more = pages - run.pages - 1;
        Page following = more != 0 && next < std::min(end, pages_.extent()) ? pages_.count_over_zones(next, more) : 0;
        if (following < more && next + following == pages_.extent() && small_.only_tail(behind, run.tail_granules) &&
            supply_.extend_to(run.head + pages))
            following = more;
        if (following < more || !small_.only_tail(behind, run.tail_granules)) return false;
        if (more != 0) supply_.about_to_use({next, more});
    }
    // Then the change: a run without tail and growth, of the new size.
    if (run.tail_granules != 0) {
        if (pages > run.pages)
            small_.surrender_tail(behind);
        else
            small_.end_tail(behind, run.tail_granules);
    }
    if (run.growth != 0) pages_.write_available({behind, run.growth});
    if (pages > run.pages)
        pages_.write_states({behind, pages - run.pages}, PageState::run_body);
    else if (pages < run.pages)
        pages_.write_available({run.head + pages, run.pages - pages});
    span_.store(pages_.run_line(run.head).bytes, std::uint64_t{pages} * page_bytes);
    pages_.refresh({run.head, std::max(pages, own)});
    const Page rest = run.head + pages;
    const Page reserved = rest < std::min(end, pages_.extent()) ? reserve(rest, pages / 2) : 0;
    count_growth(std::int64_t{reserved} - std::int64_t{run.growth});
    return true;
}

Runs::Place Runs::allocate_growing(Page pages, Page alignment, Content content) {
    // Where runs move without a copy, a low place, which is likely to have memory, is worth more than room behind the run.
    const auto roomy = pages_.memory_comes_with_use() ? std::nullopt : pages_.find_aligned(pages + pages / 2, alignment);
    Page head = 0;
    if (roomy) {
        head = *roomy;
        supply_.about_to_use({head, pages});
    } else {
        if (alignment > 1) {
            try {
                head = supply_.find(pages, alignment, pages * page_bytes);
            } catch (const HeapFull&) {}
        }
        if (head == 0) head = supply_.find(pages, 1, pages * page_bytes);
    }
    const Page dirty = pages - pages_.count_released({head, pages});
    write(head, pages * page_bytes, content);
    const Page end = pages_.geometry().region(Geometry::region_of(head)).end;
    const Page rest = head + pages;
    count_growth(rest < std::min(end, pages_.extent()) ? reserve(rest, pages / 2) : 0);
    return {head, dirty};
}

std::optional<Runs::Place> Runs::allocate_below(Page pages, Page before, Content content) {
    const auto lower = pages_.find_available(pages);
    if (!lower || *lower >= before) return std::nullopt;
    supply_.about_to_use({*lower, pages});
    const Page dirty = pages - pages_.count_released({*lower, pages});
    write(*lower, pages * page_bytes, content);
    return Place{*lower, dirty};
}

}  // namespace taiyen::heap
