#include "change/page_recorder.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "base/sanitizers.hpp"
#include "change/changed_ranges.hpp"
#include "heap/fault_handler.hpp"

namespace taiyen::change {
namespace {

constexpr std::uint32_t scopes_kept = 64;
constexpr std::uint32_t scopes_on_trial = 8;
constexpr std::uint64_t pages_on_trial = 4;
constexpr std::uint64_t idle_pages_max = 128;
constexpr std::uint32_t first_uses_max = 1024;
constexpr std::uint64_t window_max = 256;
constexpr std::uint64_t populated_min = 16;
constexpr std::uint64_t idle_twins_max = 4096;

/// Page uses: the scope in the lower bits.
constexpr std::uint32_t first_use = std::uint32_t{1} << 31U;
constexpr std::uint32_t scope_mask = first_use - 1;

/// Copies pages before they become writable. Another thread may store into them as soon as they are: after the copy, by the protection, which the thread sanitizer knows nothing about.
#if defined(TAIYEN_THREAD_SANITIZER)
__attribute__((no_sanitize("thread"))) void copy_unordered(std::byte* target, const std::byte* source, ByteCount length) noexcept {
    auto* const to = reinterpret_cast<volatile std::uint64_t*>(target);
    const auto* const from = reinterpret_cast<const volatile std::uint64_t*>(source);
    for (ByteCount i = 0; i < length / sizeof(std::uint64_t); ++i) to[i] = from[i];
}
#else
void copy_unordered(std::byte* target, const std::byte* source, ByteCount length) noexcept { std::memcpy(target, source, length); }
#endif

void prefetch(const std::byte* page, const std::byte* twin) noexcept {
    for (ByteCount at = 0; at < 4 * line_bytes; at += line_bytes) {
        __builtin_prefetch(page + at);
        __builtin_prefetch(twin + at);
    }
}

/// Runs of open pages of all heaps: they share the process's mappings.
constinit std::atomic<std::uint64_t> runs_in_process{0};

}  // namespace

/// Who works on the recorder's tables: a spin lock, since a signal handler takes it. What the engine announces while its own bytes are restored comes from inside.
class PageRecorder::Guard {
public:
    explicit Guard(const PageRecorder& recorder) noexcept : owner_(recorder.owner_), inside_(is_inside(recorder)) {
        if (inside_) return;
        std::uintptr_t nobody = 0;
        while (!owner_.compare_exchange_weak(nobody, self(), std::memory_order_acquire, std::memory_order_relaxed)) {
            nobody = 0;
            sched_yield();
        }
    }
    ~Guard() {
        if (!inside_) owner_.store(0, std::memory_order_release);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    static bool is_inside(const PageRecorder& recorder) noexcept { return recorder.owner_.load(std::memory_order_relaxed) == self(); }

private:
    static std::uintptr_t self() noexcept { return static_cast<std::uintptr_t>(pthread_self()); }
    std::atomic<std::uintptr_t>& owner_;
    const bool inside_;
};

PageRecorder::PageRecorder(heap::HeapCore& core, ByteCount mapped, Audit audit, Outside outside)
    : Recorder(core, outside), twins_(core.ranges().durable_bytes / page_bytes),
      words_(core.ranges().durable_bytes / page_bytes * sizeof(std::uint32_t)), open_(core.ranges().durable_bytes / page_bytes),
      capacity_(core.ranges().durable_bytes), runs_max_(std::max<std::uint64_t>(vm::mappings_max() / 8, 16)), audit_(audit) {
    TAIYEN_CHECK(mapped % page_bytes == 0 && mapped <= capacity_);
    grow_to(mapped);
}

PageRecorder::~PageRecorder() { stop(); }

void PageRecorder::grow_to(ByteCount mapped) {
    const Page pages = mapped / page_bytes;
    twins_.grow(pages);
    words_.grow(pages * sizeof(std::uint32_t));
    open_.grow(pages);
    if (shadow_) shadow_->extended(mapped);
    mapped_ = mapped;
}

void PageRecorder::start() {
    TAIYEN_CHECK(!active_);
    heap::ensure_fault_handler();
    if (audit_ != Audit::off) shadow_.emplace(core_, mapped_);
    core_.set_listener(this);
    active_ = true;
    if (mapped_ == 0) return;
    try {
        make_joinable();
        if (!core_.protect({0}, mapped_, false)) throw HeapFull(mapped_, 0, HeapFull::Cause::address_space, core_.path().native());
    } catch (...) {
        stop();
        throw;
    }
}

void PageRecorder::make_joinable() {
    // The kernel joins neighbouring mappings only if their private copies belong to one anon_vma (linux/mm/vma.c). A mapping gets its own with its first private copy, and what is split off later
    // shares it. So one page of each mapping is made a private copy before the first split; otherwise pages that were opened apart would stay mappings apart for ever.
    const auto first = core_.ranges().durable;
    for (const vm::Mapping& mapping : vm::mappings()) {
        if (mapping.end <= first || mapping.begin >= first + mapped_ || !mapping.is_readable) continue;
        const HeapOffset where{std::max(mapping.begin, first) - first};
        volatile std::byte* const place = span() + where.value;
        const std::byte value = *place;
        if (!core_.protect(offset_of(page_of(where)), page_bytes, true))
            throw HeapFull(page_bytes, 0, HeapFull::Cause::address_space, core_.path().native());
        *place = value;
    }
}

void PageRecorder::stop() noexcept {
    if (!active_) return;
    const Guard guard(*this);
    active_ = false;
    if (core_.listener() == this) core_.set_listener(nullptr);
    shadow_.reset();
    runs_in_process.fetch_sub(runs_, std::memory_order_relaxed);
    runs_ = 0;
    if (core_.in_forked_child()) return;
    open_.for_each_run([this](Page first, Page end) { forget_twins({first, end}); });
    if (mapped_ != 0 && !core_.protect({0}, mapped_, true)) {
        // Most often the heap is on its way out, and nobody stores into it any more.
        report({errc::out_of_address_space, span(),
                "the system refuses to make the pages of a heap writable that is not captured any more (mprotect(2)); a store into it would fault: "
                "close it"});
    }
    twins_.give_back(0);
}

void PageRecorder::begin_scope() {
    heap::ensure_fault_handler();
    enter_scope();
}

void PageRecorder::end_scope() noexcept {
    leave_scope();
    if (core_.in_forked_child()) return;
    const Guard guard(*this);
    grow_older();
}

void PageRecorder::begin_inner_scope() noexcept {
    if (core_.in_forked_child()) return;
    const Guard guard(*this);
    grow_older();
}

void PageRecorder::grow_older() noexcept {
    close_unused();
    first_uses_ = 0;
    scope_ = (scope_ + 1) & scope_mask;
    if (scope_ < scopes_kept) scope_ = scopes_kept;  // the count starts again: what was used before looks old
}

// Opening

bool PageRecorder::is_first_use(Page page) const noexcept { return (use_of(page) & first_use) != 0; }

void PageRecorder::mark_used(Page page) noexcept {
    std::uint32_t& use = use_of(page);
    const std::uint32_t last = use & scope_mask;
    if (last == scope_) return;
    const bool recently = last != 0 && last < scope_ && scope_ - last < scopes_kept;
    use = scope_ | (recently ? 0 : first_use);
    if (!recently) ++first_uses_;
}

template <class F>
void PageRecorder::for_each_closed(Range range, F&& visit) const {
    for (Page at = range.first; at < range.end;) {
        const Page member = std::min(range.end, open_.next(at).value_or(range.end));
        if (at < member) visit(Range{at, member});
        at = open_.next_absent(member, range.end);
    }
}

heap::Proof PageRecorder::prove(Range range, bool asked) noexcept {
    heap::Proof worst = heap::Proof::sound;
    for_each_closed(range, [&](Range closed) {
        worst = std::max(worst, core_.about_to_change({closed.first * page_bytes}, (closed.end - closed.first) * page_bytes, asked));
    });
    return worst;
}

PageRecorder::Range PageRecorder::sound_part(Range asked, Range window) noexcept {
    if (prove({window.first, asked.first}, false) == heap::Proof::sound && prove({asked.end, window.end}, false) == heap::Proof::sound) return window;
    Range found = asked;
    while (found.first > window.first && prove({found.first - 1, found.first}, false) == heap::Proof::sound) --found.first;
    while (found.end < window.end && prove({found.end, found.end + 1}, false) == heap::Proof::sound) ++found.end;
    return found;
}

void PageRecorder::copy_twins(Range range) noexcept {
    for_each_closed(range, [&](Range closed) {
        const bool joins_before = closed.first > 0 && open_.contains(closed.first - 1);
        const bool joins_after = open_.contains(closed.end);
        take_twins(closed);
        open_.add(closed.first, closed.end);
        const std::uint64_t joined = std::uint64_t{joins_before} + std::uint64_t{joins_after};  // one run more, minus what it joins
        runs_ = runs_ + 1 - joined;
        runs_in_process.fetch_add(1 - joined, std::memory_order_relaxed);
    });
}

void PageRecorder::take_twins(Range range) noexcept {
    for (Page first = range.first; first < range.end;) {
        // As far as the slots are neighbours, too.
        const TwinPool::Slot slot = twins_.take({first, word_of(first), 0});
        word_of(first) = slot;
        Page end = first + 1;
        std::optional<TwinPool::Slot> apart;
        while (end < range.end && !apart) {
            const TwinPool::Slot next = twins_.take({end, word_of(end), 0});
            word_of(end) = next;
            if (next == slot + (end - first))
                ++end;
            else
                apart = next;
        }
        if (end - first >= populated_min) twins_.populate(slot, end - first);
        copy_unordered(twins_.at(slot), page_at(first), (end - first) * page_bytes);
        if (apart) copy_unordered(twins_.at(*apart), page_at(end++), page_bytes);
        first = end;
    }
}

void PageRecorder::forget_twins(Range range) noexcept {
    for (Page page = range.first; page < range.end; ++page) {
        const TwinPool::Slot slot = word_of(page);
        word_of(page) = twins_.owner(slot).use;
        twins_.put_back(slot);
    }
    open_.remove(range.first, range.end);
}

void PageRecorder::copy_to_twins(HeapOffset where, ByteCount length) noexcept {
    for (std::uint64_t from = where.value; length != 0;) {
        const ByteCount piece = std::min(length, page_bytes - from % page_bytes);
        std::memcpy(twin_at(from / page_bytes) + from % page_bytes, span() + from, piece);
        from += piece;
        length -= piece;
    }
}

PageRecorder::Range PageRecorder::within_budget(Range range) const noexcept {
    const std::uint64_t runs = runs_in_process.load(std::memory_order_relaxed);
    if (runs < runs_max_ / 2) return range;
    const std::uint64_t width = runs < runs_max_ * 3 / 4 ? 8 : runs < runs_max_ * 7 / 8 ? 64 : 512;
    Range wide{range.first / width * width, std::min<Page>(mapped_pages(), round_up(range.end, width))};
    if (runs < runs_max_ || runs_ == 0) return wide;
    // No further run: on to the next open page, above or else below.
    if (const auto after = open_.next(range.first)) return {wide.first, std::max(wide.end, *after)};
    for (std::uint64_t step = width; wide.first > 0 && open_.next(wide.first).value_or(range.first) >= range.first; step *= 2)
        wide.first -= std::min<Page>(wide.first, step);
    return wide;
}

bool PageRecorder::open(Range asked, Range window) noexcept {
    if (prove(asked, true) == heap::Proof::hidden) return false;
    const Range range = sound_part(asked, within_budget(window));
    const Range wanted{std::max(window.first, range.first), std::min(window.end, range.end)};
    const bool all_open = open_.next_absent(wanted.first, wanted.end) == wanted.end;
    copy_twins(range);
    if (protect(range, true)) {
        // Most of it is about to be written: one call of the system instead of a fault for each page.
        if (!all_open && wanted.end - wanted.first >= window_max) vm::populate(page_at(wanted.first), (wanted.end - wanted.first) * page_bytes);
        return true;
    }
    // What was opened before needs nothing of the system now; unless it has refused something, after which an open page may be one that can't be written.
    if (all_open && !was_refused_) return true;
    was_refused_ = true;
    // No mapping to be had for a page on its own: a wider window joins others.
    for (std::uint64_t width = 8; width != 0 && width / 8 < mapped_pages(); width *= 8) {
        const Range joined = sound_part(asked, {range.first / width * width, std::min<Page>(mapped_pages(), round_up(range.end, width))});
        copy_twins(joined);
        if (protect(joined, true)) return true;
    }
    return false;
}

PageRecorder::Range PageRecorder::window_for(Page page) const noexcept {
    if (const std::uint64_t before = open_.run_before(page, window_max); before != 0) {
        const Page end = std::min<Page>(page + before, mapped_pages());
        return {page, std::min(end, open_.next(page).value_or(end))};
    }
    if (page + 1 < mapped_pages() && open_.contains(page + 1)) {
        const std::uint64_t after = open_.next_absent(page + 1, std::min<Page>(page + 1 + window_max, mapped_pages())) - page - 1;
        Page first = page;
        while (first > 0 && page - first + 1 < after && !open_.contains(first - 1)) --first;
        return {first, page + 1};
    }
    return {page, page + 1};
}

bool PageRecorder::on_fault(void* address) noexcept {
    if (Guard::is_inside(*this) || core_.in_forked_child()) return false;
    if (is_stray()) {
        report_stray(address);
        return false;
    }
    bool opened = false;
    {
        const Guard guard(*this);
        const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(address) - span());
        if (!active_ || offset >= mapped_) return false;
        const Page page = offset / page_bytes;
        ++counters_.faults;
        mark_used(page);
        // Open already: another thread was quicker.
        opened = (open_.contains(page) && protect({page, page + 1}, true)) ||
                 open({page, page + 1}, open_.contains(page) ? Range{page, page + 1} : window_for(page));
    }
    if (!opened) {
        report({errc::out_of_address_space, address,
                "a store into the heap can't go on: the system refuses to make its page writable, even together with the whole heap (mprotect(2)); "
                "the process ends here"});
    }
    return opened;
}

void PageRecorder::about_to_write(HeapOffset offset, ByteCount length) {
    if (length == 0 || !active_) return;
    const Page first = offset.value / page_bytes;
    const Page end = (offset.value + length - 1) / page_bytes + 1;
    if (end > mapped_pages()) return;  // not ours: the span hasn't grown that far
    Page missing = first;
    while (missing < end && open_.contains(missing)) ++missing;
    if (missing == end || core_.in_forked_child()) return;
    const Guard guard(*this);
    for (Page page = missing; page < end; ++page)
        if (!open_.contains(page)) mark_used(page);
    // If the system refuses the store faults, and there it ends.
    open({missing, end});
}

void PageRecorder::touch(HeapOffset where, ByteCount length) {
    if (where.value > mapped_ || length > mapped_ - where.value) {
        throw Error(errc::invalid_argument, core_.path(), where.value,
                    "touch() of a range that lies outside the heap; pass an address and a length inside one block");
    }
    if (length == 0 || !active_ || core_.in_forked_child()) return;
    const Guard guard(*this);
    const Range range{where.value / page_bytes, (where.value + length - 1) / page_bytes + 1};
    for (Page page = range.first; page < range.end; ++page) mark_used(page);
    if (open(range)) return;
    core_.check_usable(false);  // one of them is lost
    throw HeapFull(length, 0, HeapFull::Cause::address_space, core_.path().native());
}

// Cutting

/// Twins of a very large scope that a cut has compared and that nobody will need unless the cut fails: their memory is given back in runs that are worth a call of the system.
class PageRecorder::SpentTwins {
public:
    struct Run {
        TwinPool::Slot first;
        TwinPool::Slot end;
    };

    explicit SpentTwins(TwinPool& twins) : twins_(twins) {}
    /// Throws: std::bad_alloc; then it still holds what it held.
    void add(TwinPool::Slot slot) {
        if (slot != run_.end) run_ = {slot, slot};
        if (++run_.end % align != 0 || run_.end - run_.first < run_min) return;
        discarded_.push_back(run_);
        twins_.discard(run_.first, run_.end - run_.first);
        run_.first = run_.end;
    }
    /// Calls `visit(Slot)` for each that lost what it held.
    template <class F>
    void for_each(F&& visit) const {
        for (const Run& run : discarded_)
            for (TwinPool::Slot slot = run.first; slot < run.end; ++slot) visit(slot);
    }
    bool empty() const { return discarded_.empty(); }

private:
    static constexpr TwinPool::Slot align = 512;  ///< what is left of a huge page would keep all of it
    static constexpr TwinPool::Slot run_min = 512;
    TwinPool& twins_;
    Run run_{0, 0};
    std::vector<Run> discarded_;
};

void PageRecorder::add_changes(ChangeSet& out, SpentTwins& spent) {
    for (auto page = open_.next(0); page;) {
        // A page begins with misses of caches and address translation: they are taken beside the comparison of the page before it.
        const auto next = open_.next(*page + 1);
        if (next) prefetch(page_at(*next), twin_at(*next));
        if (!planted(Bug::skip_hot_page) || (use_of(*page) & scope_mask) == scope_) {
            const ByteCount so_far = out.size();
            const ByteCount length = planted(Bug::skip_page_end) ? page_bytes - line_bytes : page_bytes;
            add_changed_ranges(out, {*page * page_bytes}, twin_at(*page), page_at(*page), length);
            if (out.size() != so_far) mark_used(*page);
        }
        if (first_uses_ > first_uses_max && use_of(*page) == (scope_ | first_use)) spent.add(word_of(*page));
        page = next;
    }
}

void PageRecorder::cut(ChangeSet& out) {
    if (core_.in_forked_child()) return;
    const Guard guard(*this);
    ++counters_.cuts;
    const ByteCount before = out.size();
    SpentTwins spent(twins_);
    try {
        counters_.pages_compared += open_.count();
        add_changes(out, spent);
        if (shadow_) {
            shadow_->follow(out.view_since(before), Direction::forward);
            if (audit_ == Audit::scope) shadow_->prove();
        }
    } catch (...) {
        if (shadow_) shadow_->follow(out.view_since(before), Direction::backward);
        make_again(spent, out.view_since(before));
        out.truncate(before);
        throw;
    }
    settle_twins(out.view_since(before));
}

void PageRecorder::make_again(const SpentTwins& spent, const ChangeSetView& changes) noexcept {
    if (spent.empty()) return;
    spent.for_each([this](TwinPool::Slot slot) { std::memcpy(twins_.at(slot), page_at(twins_.owner(slot).page), page_bytes); });
    // Entries of one capture lie within one page each; twins that are still there hold those bytes already.
    changes.for_each(Direction::backward, [this](const Entry& entry) {
        std::byte* const to = twin_at(entry.where.value / page_bytes) + entry.where.value % page_bytes;
        if (entry.before.empty())
            std::memset(to, 0, entry.length);
        else
            std::memcpy(to, entry.before.data(), entry.length);
    });
}

void PageRecorder::settle_twins(const ChangeSetView& changes) {
    if (planted(Bug::stale_twin)) return;
    const bool very_many = first_uses_ > first_uses_max;
    changes.for_each(Direction::forward, [&](const Entry& entry) {
        if (very_many && is_first_use(entry.where.value / page_bytes)) return;
        copy_to_twins(entry.where, entry.length);
    });
    if (very_many) close_first_uses();
}

void PageRecorder::close_first_uses() noexcept {
    const auto used_before = [this](Page page) {
        const std::uint32_t last = use_of(page) & scope_mask;
        return last == scope_ ? !is_first_use(page) : scope_ - last < scopes_kept;
    };
    close_except(used_before, [](Page) { return false; });
}

bool PageRecorder::has_changed() const {
    if (core_.in_forked_child()) return false;
    for (auto page = open_.next(0); page; page = open_.next(*page + 1))
        if (std::memcmp(page_at(*page), twin_at(*page), page_bytes) != 0) return true;
    return false;
}

void PageRecorder::accept() {
    if (shadow_) return Recorder::accept();  // it follows the changes
    if (core_.in_forked_child()) return;
    const Guard guard(*this);
    ++counters_.cuts;
    counters_.pages_compared += open_.count();
    for (auto page = open_.next(0); page; page = open_.next(*page + 1)) {
        if (std::memcmp(page_at(*page), twin_at(*page), page_bytes) == 0) continue;
        mark_used(*page);
        const bool closes = first_uses_ > first_uses_max && is_first_use(*page);
        if (!closes) std::memcpy(twin_at(*page), page_at(*page), page_bytes);
    }
    if (first_uses_ > first_uses_max) close_first_uses();
}

void PageRecorder::restore() noexcept {
    if (core_.in_forked_child()) return;
    const Guard guard(*this);
    open_.for_each_run([this](Page first, Page end) {
        counters_.pages_compared += end - first;
        for (Page page = first; page < end; ++page) {
            if (std::memcmp(page_at(page), twin_at(page), page_bytes) == 0) continue;
            std::memcpy(page_at(page), twin_at(page), page_bytes);
            mark_used(page);
            core_.engine().forget({page * page_bytes}, page_bytes);
        }
    });
}

bool PageRecorder::open_all(const ChangeSetView& changes, Direction direction) noexcept {
    std::optional<Range> joined;
    bool all = true;
    const auto open_joined = [&] {
        if (joined && !open(*joined)) all = false;
    };
    changes.for_each(direction, [&](const Entry& entry) {
        if (entry.kind == EntryKind::procedure || (entry.kind == EntryKind::zeroed_run && direction == Direction::backward)) return;
        const Range range{entry.where.value / page_bytes, (entry.where.value + entry.length - 1) / page_bytes + 1};
        for (Page page = range.first; page < range.end; ++page) mark_used(page);
        if (joined && range.first <= joined->end && joined->first <= range.end) {
            joined = Range{std::min(joined->first, range.first), std::max(joined->end, range.end)};
            return;
        }
        open_joined();
        joined = range;
    });
    open_joined();
    return all;
}

void PageRecorder::reserve_for(const ChangeSetView& changes) {
    if (!active_ || core_.in_forked_child()) return;
    const Guard guard(*this);
    // As far as it got, pages stay open: their twins are right.
    if (!open_all(changes, Direction::forward)) throw HeapFull(changes.bytes().size(), 0, HeapFull::Cause::address_space, core_.path().native());
}

void PageRecorder::apply(const ChangeSetView& changes, Direction direction) noexcept {
    if (core_.in_forked_child()) return;
    const Guard guard(*this);
    TAIYEN_CHECK(open_all(changes, direction));
    const auto for_each_written = [&](auto&& visit) {
        changes.for_each(direction, [&](const Entry& entry) {
            const bool writes = entry.kind != EntryKind::procedure && (entry.kind != EntryKind::zeroed_run || direction == Direction::forward);
            if (writes) visit(entry);
        });
    };
    for_each_written([&](const Entry& entry) {
        write_entry(span(), entry, direction);
        copy_to_twins(entry.where, entry.length);
    });
    // The engine reads its super block again: not before all of it is in place.
    for_each_written([&](const Entry& entry) { core_.engine().forget(entry.where, entry.length); });
    if (shadow_) shadow_->follow(changes, direction);
}

// Closing

void PageRecorder::close_range(Range range) noexcept {
    // Between its ends nothing is to stay open: one call, which doesn't touch what is read-only already.
    if (!protect(range, false)) {
        // They stay open, so their twins must be right; pages that a cut wanted to close have old ones.
        was_refused_ = true;
        for (auto page = open_.next(range.first); page && *page < range.end; page = open_.next(*page + 1))
            std::memcpy(twin_at(*page), page_at(*page), page_bytes);
        return;
    }
    for (auto first = open_.next(range.first); first && *first < range.end; first = open_.next(*first)) {
        const Page end = open_.next_absent(*first, range.end);
        const bool splits_before = *first > 0 && open_.contains(*first - 1);
        const bool splits_after = open_.contains(end);
        forget_twins({*first, end});
        const std::uint64_t left = std::uint64_t{splits_before} + std::uint64_t{splits_after};
        runs_ = runs_ + left - 1;
        runs_in_process.fetch_add(left - 1, std::memory_order_relaxed);
    }
}

template <class Keeps, class MustKeep>
void PageRecorder::close_except(Keeps&& keeps, MustKeep&& must_keep) noexcept {
    // What is closed within windows splits them: too many lone pages can't stay.
    const auto too_many_runs = [&] {
        if (open_.count() <= runs_max_ / 2) return false;
        std::uint64_t runs_kept = 0;
        open_.for_each_run([&](Page first, Page end) {
            bool kept_before = false;
            for (Page page = first; page < end; ++page) {
                const bool kept = keeps(page);
                runs_kept += kept && !kept_before ? 1 : 0;
                kept_before = kept;
            }
        });
        return runs_kept > runs_max_ / 2;
    };
    const bool keep_any = !too_many_runs();
    std::optional<Range> closing;
    open_.for_each_run([&](Page first, Page end) {
        for (Page page = first; page < end; ++page) {
            if (!(keep_any && keeps(page)) && !must_keep(page)) {
                closing = Range{closing ? closing->first : page, page + 1};
            } else if (closing) {
                close_range(*closing);
                closing.reset();
            }
        }
    });
    if (closing) close_range(*closing);
    twins_.give_back(idle_twins_max);
}

std::uint32_t PageRecorder::age_of(std::uint32_t use) const noexcept {
    const std::uint32_t last = use & scope_mask;
    return last == 0 || last > scope_ ? scopes_kept : std::min(scope_ - last, scopes_kept);
}

bool PageRecorder::has_expired(std::uint32_t use) const noexcept { return age_of(use) >= ((use & first_use) != 0 ? scopes_on_trial : scopes_kept); }

void PageRecorder::close_unused() noexcept {
    std::array<std::uint32_t, scopes_kept + 1> pages_of_age{};
    std::uint64_t dropped = 0;
    std::uint64_t on_trial = 0;
    twins_.for_each_owner([&](const TwinPool::Owner& owner) {
        if (has_expired(owner.use)) return void(++dropped);
        ++pages_of_age[age_of(owner.use)];
        if ((owner.use & first_use) != 0) ++on_trial;
    });
    const std::uint64_t idle_max = std::max<std::uint64_t>(idle_pages_max, std::uint64_t{2} * pages_of_age[0]);
    std::uint32_t age_max = 0;
    for (std::uint64_t idle = 0; age_max + 1 < scopes_kept; ++age_max) {
        idle += pages_of_age[age_max + 1];
        if (idle > idle_max) break;
    }
    for (std::uint32_t age = age_max + 1; age <= scopes_kept; ++age) dropped += pages_of_age[age];
    const bool trial_ends = on_trial >= pages_on_trial;  // one call of the system closes all that lie between two that stay
    if (dropped == 0 && !trial_ends) return;
    const auto is_recent = [&](Page page) {
        const std::uint32_t use = use_of(page);
        return age_of(use) <= age_max && !has_expired(use) && !(trial_ends && (use & first_use) != 0);
    };
    // What no cut has seen yet stays open whatever its age.
    close_except(is_recent, [this](Page page) { return std::memcmp(page_at(page), twin_at(page), page_bytes) != 0; });
}

// The rest

void PageRecorder::extended(ByteCount from, ByteCount to) {
    TAIYEN_CHECK(from == mapped_ && to >= from && to <= capacity_ && to % page_bytes == 0);
    const Guard guard(*this);
    if (active_ && to > from && !core_.protect({from}, to - from, false))
        throw HeapFull(to - from, 0, HeapFull::Cause::address_space, core_.path().native());
    grow_to(to);
}

void PageRecorder::audit() const {
    if (shadow_ && !core_.in_forked_child()) shadow_->prove();
}

RecorderCounters PageRecorder::counters() const {
    const Guard guard(*this);
    RecorderCounters counters = counters_;
    counters.pages_hot = open_.count();
    return counters;
}

}  // namespace taiyen::change
