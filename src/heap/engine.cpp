#include "heap/engine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <taiyen/base/check.hpp>

#include "heap/engine_state.hpp"

namespace taiyen::heap {

using layout::granule_bytes;

static_assert(Engine::zone_distance_pages == layout::zone_distance);

namespace {

/// Tails that leave less than this of their page are rounded up to the page.
constexpr unsigned tail_rest_min = 4;

/// Below it copying costs less than the system calls, and the page tables' changes, that moving takes.
constexpr ByteCount moved_bytes_min = ByteCount{128} << 10U;
/// Pages with memory that a move may lose: less than one in so many.
constexpr ByteCount lost_part = 16;
/// Large blocks begin at a multiple of it where pages are moved: then whole tables of them change their place at once.
constexpr Page huge_pages = 512;

bool valid_capacity(ByteCount capacity) { return capacity >= Engine::capacity_min && capacity <= layout::capacity_max && capacity % page_bytes == 0; }

constexpr std::uint64_t granules_for(ByteCount bytes) { return bytes == 0 ? 1 : (bytes + granule_bytes - 1) / granule_bytes; }

/// Bytes of a run for a block of that many granules.
constexpr std::uint64_t run_bytes(std::uint64_t granules) {
    const std::uint64_t rest = granules % layout::page_granules;
    return rest > layout::page_granules - tail_rest_min ? round_up(granules * granule_bytes, page_bytes) : granules * granule_bytes;
}

}  // namespace

void Engine::format(std::byte* span, ByteCount capacity_bytes, SpanHost& host, WriteObserver* observer) {
    if (!valid_capacity(capacity_bytes))
        throw Error(errc::invalid_argument,
                    "a heap's capacity is a multiple of 4 KiB between 256 KiB and 8 TiB, not " + std::to_string(capacity_bytes));
    const Geometry geometry(capacity_bytes);
    const std::uint64_t extent = std::uint64_t{geometry.region(0).first_user} * page_bytes;
    host.extend(extent);
    layout::SuperBlock super{};
    super.magic = layout::magic;
    super.version = layout::version;
    super.page_bytes = static_cast<std::uint32_t>(page_bytes);
    super.capacity = capacity_bytes;
    super.extent = extent;
    Span(span, observer).store(*reinterpret_cast<layout::SuperBlock*>(span), super);
}

Engine::Engine(std::byte* span, ByteCount capacity_bytes, SpanHost& host, WriteObserver* observer, bool read_only, std::uint32_t zone_distance) {
    if (!valid_capacity(capacity_bytes))
        throw Error(errc::invalid_argument,
                    "a heap's capacity is a multiple of 4 KiB between 256 KiB and 8 TiB, not " + std::to_string(capacity_bytes));
    TAIYEN_CHECK(reinterpret_cast<std::uintptr_t>(span) % page_bytes == 0);
    const auto& super = *reinterpret_cast<const layout::SuperBlock*>(span);
    if (super.magic != layout::magic) throw_corrupt(0, "the span does not begin with a super block");
    if (super.version != layout::version && super.version != layout::version_with_content)
        throw Error(errc::unsupported_version, {}, offsetof(layout::SuperBlock, version),
                    "the block engine's format has version " + std::to_string(super.version) + ", this library reads 1 and 2");
    if (super.page_bytes != page_bytes || super.capacity != capacity_bytes)
        throw_corrupt(offsetof(layout::SuperBlock, capacity), "the super block's capacity differs from the span's");
    state_ = std::make_unique<State>(span, capacity_bytes, host, observer, read_only, zone_distance);
    state_->pages.reload();
}

Engine::~Engine() = default;

void Engine::State::require_writable() const {
    if (read_only) throw Error(errc::read_only, "the heap was opened for reading only");
}

void Engine::State::prove_block(Page page) {
    if (!pages.is_user(page)) return;
    MetadataProofs& proofs = supply.proofs();
    proofs.lines(page);
    // A run's tail lies on the page behind it.
    if (pages.state(page) == PageState::run_head) {
        const std::uint64_t behind = page + pages.run_line(page).bytes / page_bytes;
        if (behind < pages.extent()) proofs.lines(static_cast<Page>(behind));
    }
}

void Engine::State::prove_directory(bool reading) {
    if (!reading) supply.proofs().states();
    const std::uint64_t offset = pages.super().directory;
    std::atomic<std::uint64_t>& proven = reading ? readable_directory : proven_directory;
    if (offset == 0 || offset == proven.load(std::memory_order_relaxed) || offset >= capacity) return;
    const Page page = static_cast<Page>(offset / page_bytes);
    if (!reading) prove_block(page);
    if (const auto run = pages.is_user(page) ? runs.find(page) : std::nullopt) supply.proofs().bytes({offset}, run->bytes);
    proven.store(offset, std::memory_order_relaxed);
}

void* Engine::allocate(ByteCount bytes, ByteCount alignment, Content content) {
    State& s = *state_;
    if (bytes < s.class_bytes_end && alignment <= granule_bytes) [[likely]] {
        if (alignment <= packed_alignment && packed_class_of(bytes) != packed_class_count) return s.allocate_packed(bytes, content);
        const unsigned size_class = class_tables.rounded[(bytes + granule_bytes - 1) / granule_bytes];
        if (s.span.observed()) return s.allocate_observed(size_class, content);
        return s.small_of(content).allocate_class<false>(size_class);
    }
    return s.allocate_slowly(bytes, alignment, content);
}

void* Engine::State::allocate_packed(ByteCount bytes, Content content) {
    if (const std::uint64_t offset = packed.allocate(packed_class_of(bytes, content)); offset != 0) return span.base() + offset;
    const unsigned size_class = class_tables.rounded[granules_for(bytes)];
    return span.observed() ? allocate_observed(size_class, content) : small_of(content).allocate_class<false>(size_class);
}

void* Engine::State::allocate_observed(unsigned size_class, Content content) { return small_of(content).allocate_class<true>(size_class); }

void* Engine::State::allocate_slowly(ByteCount bytes, ByteCount alignment, Content content) {
    require_writable();
    if (!std::has_single_bit(alignment) || alignment > alignment_max)
        throw Error(errc::invalid_argument, "an alignment is a power of two up to 2 MiB, not " + std::to_string(alignment));
    if (bytes > capacity) supply.throw_full(bytes, HeapFull::Cause::capacity);
    const std::uint64_t granules = granules_for(bytes);
    const Page pages_aligned = static_cast<Page>(std::max<ByteCount>(1, alignment / page_bytes));
    if (granules > small_granules_max) return span.base() + std::uint64_t{runs.allocate(run_bytes(granules), pages_aligned, content)} * page_bytes;
    if (alignment < page_bytes / 2)
        return span.base() +
               small_of(content).allocate(static_cast<unsigned>(granules), static_cast<unsigned>(std::max<ByteCount>(alignment, granule_bytes)));
    return span.base() + small_of(content).allocate_on_fresh(supply.find(1, pages_aligned, bytes), static_cast<unsigned>(granules));
}

bool Engine::allocate_at(void* at, ByteCount bytes, ByteCount alignment, Content content) {
    State& s = *state_;
    s.require_writable();
    const std::uint64_t offset = s.span.offset_of(at);
    if (offset >= s.capacity || offset % packed_alignment != 0 || bytes > s.capacity - offset) return false;
    const std::uint64_t granules = granules_for(bytes);
    const Page page = static_cast<Page>(offset / page_bytes);
    const unsigned in_page = static_cast<unsigned>(offset % page_bytes);
    const unsigned packed_class = alignment <= packed_alignment ? packed_class_of(bytes, content) : packed_class_count;
    const bool slot = packed_class != packed_class_count && in_page % packed_slot_bytes(packed_class) == 0 &&
                      in_page + packed_slot_bytes(packed_class) <= page_bytes;
    const unsigned start = in_page / granule_bytes;
    const bool small = granules <= small_granules_max;
    const bool granule = in_page % granule_bytes == 0 && (small ? start + granules <= layout::page_granules : start == 0);
    if (!slot && !granule) return false;  // no allocation can have given that place
    const std::uint64_t end = page + (granules + layout::page_granules - 1) / layout::page_granules;
    if (end > s.geometry.page_end()) return false;
    const Region& region = s.geometry.region(Geometry::region_of(page));
    if (page < region.first_user || end > region.end) return false;
    if (end > s.pages.extent() && !s.supply.extend_to(static_cast<Page>(end))) s.supply.throw_full(bytes, HeapFull::Cause::disk);
    s.supply.proofs().lines(page, static_cast<Page>(end - page));
    const PageRun run{page, static_cast<Page>(end - page)};
    const auto take = [&] {
        if (!small) return s.runs.allocate_at(page, granules * granule_bytes, content);
        if (s.pages.state(page) == PageState::growth) s.supply.surrender_growth();
        const bool fits_kind =
            s.pages.is_packed(page) ? slot && packed_class_of(s.pages.packed_line(page)) == packed_class : !slot && s.pages.is_small(page, content);
        if (!fits_kind) s.supply.reclaim({page, 1});  // an empty page of another kind
        s.pages.open_zones(run);
        if (s.pages.is_available(page)) s.supply.about_to_use({page, 1});
        if (slot && s.packed.allocate_at(page, in_page, packed_class)) return true;
        return granule && s.small_of(content).allocate_at(page, start, static_cast<unsigned>(granules));
    };
    bool taken = false;
    try {
        taken = take();
    } catch (...) {
        s.pages.close_zones(run);
        throw;
    }
    s.pages.close_zones(run);
    return taken;
}

FreeResult Engine::deallocate(void* block) noexcept {
    State& s = *state_;
    const std::uint64_t offset = s.span.offset_of(block);
    if (offset < s.pages.free_end() && offset % packed_alignment == 0) [[likely]] {
        const Page page = static_cast<Page>(offset / page_bytes);
        const PageMap::Hot& hot = s.pages.hot(page);
        if (!s.supply.proofs().try_lines(page)) [[unlikely]]
            return FreeResult::freed;  // it stays allocated: a leak, where a damaged line might have freed something else
        if (hot.is_small(page) && offset % granule_bytes == 0) [[likely]]
            return s.span.observed() ? s.free_observed(offset) : s.small.free<false>(hot, offset / granule_bytes);
        if (page >= hot.first_user) {
            if (s.pages.is_packed(page)) return s.free_packed(offset);
            if (s.pages.is_pointer_free_small(page) && offset % granule_bytes == 0) return s.free_pointer_free(offset);
        }
    }
    return s.deallocate_slowly(offset);
}

FreeResult Engine::State::free_observed(std::uint64_t offset) noexcept {
    return small.free<true>(pages.hot(static_cast<Page>(offset / page_bytes)), offset / granule_bytes);
}

FreeResult Engine::State::free_pointer_free(std::uint64_t offset) noexcept {
    const PageMap::Hot& hot = pages.hot(static_cast<Page>(offset / page_bytes));
    return span.observed() ? pointer_free.free<true>(hot, offset / granule_bytes) : pointer_free.free<false>(hot, offset / granule_bytes);
}

FreeResult Engine::State::deallocate_slowly(std::uint64_t offset) noexcept {
    if (offset >= capacity) return FreeResult::foreign;
    const Page page = static_cast<Page>(offset / page_bytes);
    if (offset % page_bytes != 0 || !pages.is_user(page) || read_only) return FreeResult::not_a_block;
    if (pages.state(page) == PageState::run_head &&
        !supply.proofs().try_lines(static_cast<Page>(std::min<std::uint64_t>(page + pages.run_line(page).bytes / page_bytes, pages.extent() - 1))))
        return FreeResult::freed;  // the tail's line: as above
    const auto run = runs.find(page);
    if (!run || run->kind != layout::RunKind::user) return FreeResult::not_a_block;
    runs.free(*run);
    return FreeResult::freed;
}

void* Engine::resize(void* block, ByteCount bytes) {
    State& s = *state_;
    s.require_writable();
    if (block == nullptr) return allocate(bytes);
    const std::uint64_t offset = s.span.offset_of(block);
    if (offset >= s.capacity) throw Error(errc::foreign_pointer, "resize: the block belongs to another heap or to none");
    s.prove_block(static_cast<Page>(offset / page_bytes));
    const ByteCount usable = s.usable_at(offset);
    if (usable == 0) throw Error(errc::double_free, {}, offset, "resize: no live block starts there");
    if (bytes > s.capacity) s.supply.throw_full(bytes, HeapFull::Cause::capacity);
    const std::uint64_t granules = granules_for(bytes);
    const Page page = static_cast<Page>(offset / page_bytes);
    const bool was_small = s.pages.is_small(page);
    const Content content = s.pages.content_of(page);
    const bool was_packed = s.pages.is_packed(page);
    if (was_packed && bytes <= usable) return block;
    const bool small = granules <= small_granules_max;
    const Page pages = static_cast<Page>((granules + layout::page_granules - 1) / layout::page_granules);
    const auto move_to = [&](const Runs::Place& to, ByteCount kept) {
        const SpanHost::MovedBytes moved = s.relocate(to, static_cast<const std::byte*>(block), kept);
        deallocate(block);
        if (moved.source_is_empty) s.pages.write_available({page, static_cast<Page>(moved.count / page_bytes)}, PageState::released);
        return s.span.base() + std::uint64_t{to.head} * page_bytes;
    };
    if (was_small && small) {
        const unsigned old_granules = static_cast<unsigned>(usable / granule_bytes);
        const unsigned wanted = static_cast<unsigned>(granules <= class_granules_max ? class_granules(class_tables.rounded[granules]) : granules);
        if (wanted <= old_granules) {
            if (wanted < old_granules)
                s.small_of(content).shrink(page, static_cast<unsigned>(offset % page_bytes / granule_bytes), old_granules, wanted);
            return block;
        }
    }
    if (!was_small && !was_packed) {
        const auto run = s.runs.find(page);
        if (!run) throw_corrupt(offset, "a run contradicts itself");
        if (granules * granule_bytes <= run->bytes && run->bytes - granules * granule_bytes < page_bytes)
            return block;  // less than a page would change
        const bool shrinks = granules * granule_bytes <= run->bytes;
        // A block that shrank far looks for a lower place; one that fits a page of small blocks goes there if it can.
        if (shrinks && small) {
            void* target = nullptr;
            try {
                target = allocate(bytes, granule_bytes, content);
            } catch (const HeapFull&) {}
            if (target != nullptr) {
                s.copy(static_cast<std::byte*>(target), static_cast<const std::byte*>(block), bytes);
                deallocate(block);
                return target;
            }
        } else if (shrinks && pages < (run->pages + run->growth) / 4) {
            if (const auto lower = s.runs.allocate_below(pages, page, content)) return move_to(*lower, bytes);
        }
        if (s.runs.resize_in_place(*run, pages)) return block;
    }
    if (small) {
        void* const target = allocate(bytes, granule_bytes, content);
        s.copy(static_cast<std::byte*>(target), static_cast<const std::byte*>(block), std::min(usable, bytes));
        deallocate(block);
        return target;
    }
    const Page alignment = s.moving_host != nullptr && pages >= huge_pages ? huge_pages : 1;
    return move_to(s.runs.allocate_growing(pages, alignment, content), std::min(usable, bytes));
}

SpanHost::MovedBytes Engine::State::relocate(const Runs::Place& to, const std::byte* block, ByteCount bytes) {
    const std::uint64_t target = std::uint64_t{to.head} * page_bytes;
    SpanHost::MovedBytes moved;
    if (moving_host != nullptr && bytes >= moved_bytes_min) {
        const ByteCount whole = round_down(bytes, page_bytes);
        moved = moving_host->move_pages({span.offset_of(block)}, {target}, whole, std::uint64_t{to.dirty} * page_bytes * lost_part > whole);
    }
    copy(span.base() + target + moved.count, block + moved.count, bytes - moved.count);
    return moved;
}

void Engine::State::copy(std::byte* target, const std::byte* block, ByteCount bytes) {
    span.announce(target, bytes);
    std::memcpy(target, block, bytes);
}

ByteCount Engine::State::usable_at(std::uint64_t offset) const {
    const Page page = static_cast<Page>(offset / page_bytes);
    if (offset >= capacity || !pages.is_user(page)) return 0;
    if (pages.is_packed(page)) {
        const auto slot = packed.find(offset);
        return slot && slot->offset == offset ? slot->bytes : 0;
    }
    if (offset % granule_bytes != 0) return 0;
    const unsigned granule = static_cast<unsigned>(offset % page_bytes / granule_bytes);
    if (pages.is_small(page)) {
        const layout::Line& line = pages.line(page);
        const layout::Pair& pair = line.pairs[granule / 64];
        return ((pair.start & pair.occupied) >> (granule % 64) & 1U) == 0 ? 0 : block_granules(line, granule) * granule_bytes;
    }
    if (granule != 0) return 0;
    const auto run = runs.find(page);
    return run && run->kind == layout::RunKind::user ? run->bytes : 0;
}

Engine::Stretch Engine::stretch_at(HeapOffset offset) const {
    const State& s = *state_;
    if (offset.value >= std::uint64_t{s.pages.extent()} * page_bytes)
        return {{round_down(offset.value, page_bytes)}, {round_down(offset.value, page_bytes) + page_bytes}};
    const Page page = static_cast<Page>(offset.value / page_bytes);
    const auto pages = [](Page first, Page count, Content content) {
        return Stretch{{std::uint64_t{first} * page_bytes}, {(std::uint64_t{first} + count) * page_bytes}, content};
    };
    if (!s.pages.is_user(page)) return pages(page, 1, Content::any);
    const PageState state = s.pages.state(page);
    if (state != PageState::run_head && state != PageState::run_body) return pages(page, 1, s.pages.content_of(page));
    const auto run = s.runs.find_owner(page);
    // Damaged states may name a run that ends before the page.
    return run && page - run->head < run->pages ? pages(run->head, run->pages, run->kind == layout::RunKind::user ? run->content : Content::any)
                                                : pages(page, 1, Content::any);
}

std::optional<Engine::State::Found> Engine::State::owner(std::uint64_t offset) const {
    const Page page = static_cast<Page>(offset / page_bytes);
    if (offset >= capacity || !pages.is_user(page) || pages.is_available(page)) return std::nullopt;
    if (pages.is_packed(page)) {
        const auto slot = packed.find(offset);
        return slot ? std::optional(Found{{{slot->offset}, slot->bytes, slot->content}, false}) : std::nullopt;
    }
    if (pages.is_small(page)) {
        const layout::Line& line = pages.line(page);
        const unsigned granule = static_cast<unsigned>(offset % page_bytes / granule_bytes);
        if (((line.pairs[granule / 64].occupied >> (granule % 64)) & 1U) == 0) return std::nullopt;
        for (unsigned start = granule + 1; start-- > 0;) {
            const layout::Pair& pair = line.pairs[start / 64];
            if (((pair.occupied >> (start % 64)) & 1U) == 0) return std::nullopt;
            if (((pair.start >> (start % 64)) & 1U) != 0)
                return Found{
                    {{std::uint64_t{page} * page_bytes + start * granule_bytes}, block_granules(line, start) * granule_bytes, pages.content_of(page)},
                    false};
        }
    }
    const auto run = runs.find_owner(page);
    const std::uint64_t begin = run ? std::uint64_t{run->head} * page_bytes : 0;
    if (!run || offset - begin >= run->bytes) return std::nullopt;
    return Found{{{begin}, run->bytes, run->content}, run->kind != layout::RunKind::user};
}

void Engine::State::visit(const std::function<bool(const Found&)>& visit) const {
    for (Page page = pages.next_user(0); page < pages.extent(); page = pages.next_user(page)) {
        const PageState state = pages.state(page);
        if (static_cast<unsigned>(state) == 0 || pages.is_available(page)) {
            // Over whole words of nothing at once.
            const bool word_begins = page % layout::segment_pages == 0;
            page += word_begins && (*pages.word(page) == 0x8888'8888'8888'8888ULL || *pages.word(page) == 0x9999'9999'9999'9999ULL)
                        ? layout::segment_pages
                        : 1;
            continue;
        }
        if (state == PageState::run_head) {
            const auto run = runs.find(page);
            if (run && !visit({{{std::uint64_t{page} * page_bytes}, run->bytes, run->content}, run->kind != layout::RunKind::user})) return;
            page += run ? run->pages : 1;
            continue;
        }
        if (pages.is_packed(page) &&
            !packed.for_each(page, [&](const PackedBlocks::Slot& slot) { return visit({{{slot.offset}, slot.bytes, slot.content}, false}); }))
            return;
        if (pages.is_small(page)) {
            const layout::Line& line = pages.line(page);
            const Content content = pages.content_of(page);
            for (unsigned pair = 0; pair < 4; ++pair)
                for (std::uint64_t starts = line.pairs[pair].start & line.pairs[pair].occupied; starts != 0; starts &= starts - 1) {
                    const unsigned start = pair * 64 + static_cast<unsigned>(std::countr_zero(starts));
                    const std::uint64_t begin = std::uint64_t{page} * page_bytes + start * granule_bytes;
                    if (!visit({{{begin}, block_granules(line, start) * granule_bytes, content}, false})) return;
                }
        }
        ++page;
    }
}

ByteCount Engine::usable_size(const void* block) const noexcept { return state_->usable_at(state_->span.offset_of(block)); }

bool Engine::is_block(const void* address) const noexcept {
    const State& s = *state_;
    const std::uint64_t offset = s.span.offset_of(address);
    const Page page = static_cast<Page>(offset / page_bytes);
    if (offset % page_bytes == 0 && offset < s.capacity && s.pages.is_user(page) && s.pages.state(page) == PageState::run_head)
        return static_cast<layout::RunKind>(s.pages.run_line(page).kind) == layout::RunKind::user;
    return s.usable_at(offset) != 0;
}

std::optional<bool> Engine::seems_block(const void* address, ByteCount extent, const CopyShared& copy) const {
    const State& s = *state_;
    const std::uint64_t offset = s.span.offset_of(address);
    const Page page = static_cast<Page>(offset / page_bytes);
    if (offset >= std::min(extent, s.capacity) || page >= s.geometry.page_end() || page < s.pages.hot(page).first_user) return false;
    std::uint64_t states;
    if (!copy(s.pages.word(page), &states, sizeof states)) return std::nullopt;
    union {
        layout::Line small;
        layout::PackedLine packed;
        layout::RunLine run;
    } line;
    const auto in_page = static_cast<unsigned>(offset % page_bytes);
    const auto state = static_cast<PageState>(states >> (page % layout::segment_pages * 4) & 0xFU);
    const bool is_small = state == PageState::small_room || state == PageState::small_full || state == PageState::pointer_free_room ||
                          state == PageState::pointer_free_full;
    const bool is_packed = state == PageState::packed_room || state == PageState::packed_full;
    const bool is_run = state == PageState::run_head && in_page == 0;
    if (!is_packed && !is_run && (!is_small || in_page % granule_bytes != 0)) return false;
    if (!copy(&s.pages.line(page), &line, sizeof line)) return std::nullopt;
    if (is_run) return static_cast<layout::RunKind>(line.run.kind) == layout::RunKind::user;
    if (is_small) {
        const unsigned granule = in_page / granule_bytes;
        return (line.small.pairs[granule / 64].start & line.small.pairs[granule / 64].occupied) >> (granule % 64) & 1U;
    }
    const unsigned packed_class = packed_class_of(line.packed);
    if (packed_class == packed_class_count) return false;
    const unsigned slot = packed_slot_at(packed_class, in_page);
    return slot < packed_slots(packed_class) && slot * packed_slot_bytes(packed_class) == in_page && packed_taken(line.packed, slot);
}

bool Engine::is_metadata(HeapOffset offset) const noexcept {
    const Page page = static_cast<Page>(offset.value / page_bytes);
    return offset.value < state_->capacity && page < state_->geometry.page_end() && page < state_->pages.hot(page).first_user;
}

std::optional<Block> Engine::find_block(const void* address) const noexcept {
    const auto found = state_->owner(state_->span.offset_of(address));
    return found && !found->internal ? std::optional<Block>(found->block) : std::nullopt;
}

void Engine::for_each_block(const std::function<bool(const Block&)>& visit) const {
    state_->visit([&](const State::Found& found) { return found.internal || visit(found.block); });
}

std::optional<Root> Engine::find_root(std::string_view name) const {
    state_->prove_directory(true);
    return state_->directory.find(name);
}

void Engine::add_root(const Root& root, std::string_view shape) {
    state_->require_writable();
    state_->prove_directory();
    state_->directory.add(root, shape);
}

void Engine::add_first_roots(const std::vector<Root>& roots) {
    state_->require_writable();
    state_->directory.add_first(roots);
}

bool Engine::remove_root(std::string_view name) {
    state_->require_writable();
    state_->prove_directory();
    return state_->directory.remove(name);
}

bool Engine::move_root(std::string_view name, HeapOffset object) {
    state_->require_writable();
    state_->prove_directory();
    return state_->directory.move(name, object);
}

void Engine::replace_roots(std::span<const std::pair<Root, std::string_view>> roots) {
    state_->require_writable();
    state_->prove_directory();
    state_->directory.replace(roots);
}

bool Engine::retype_root(std::string_view name, std::string_view fingerprint) {
    state_->require_writable();
    state_->prove_directory();
    return state_->directory.retype(name, fingerprint);
}

std::vector<Root> Engine::roots() const { return state_->directory.all(); }

std::optional<std::string> Engine::shape_of(std::string_view fingerprint) const {
    state_->prove_directory(true);
    return state_->directory.shape(fingerprint);
}

void Engine::set_shape(std::string_view fingerprint, std::string_view encoded) {
    state_->require_writable();
    state_->prove_directory();
    state_->directory.set_shape(fingerprint, encoded);
}

std::vector<Root> Engine::shapes() const { return state_->directory.shapes(); }

std::vector<Damage> Engine::bad_shapes() const { return state_->directory.bad_shapes(); }

bool Engine::is_shape_name(std::string_view name) noexcept { return RootDirectory::is_shape(name); }

std::uint64_t Engine::outside_changes() const noexcept { return state_->outside_changes; }

void Engine::forget(HeapOffset offset, ByteCount length) {
    State& s = *state_;
    ++s.outside_changes;
    if (length == 0 || offset.value >= s.capacity) return;
    const std::uint64_t end = offset.value + std::min<std::uint64_t>(length, s.capacity - offset.value);
    if (offset.value < page_bytes) {
        s.pages.reload();
        s.forget({s.pages.extent(), s.geometry.page_end() - s.pages.extent()});
    }
    for (unsigned index = 0; index < s.geometry.count(); ++index) {
        const Region& r = s.geometry.region(index);
        const std::uint64_t lines_end = std::uint64_t{r.first_user} * page_bytes;
        const std::uint64_t from = std::max<std::uint64_t>(offset.value, r.states);
        const std::uint64_t to = std::min(end, lines_end);
        if (from >= to) continue;
        const std::uint64_t states_end = r.states + (r.end - r.first + layout::segment_pages - 1) / layout::segment_pages * sizeof(std::uint64_t);
        if (from < states_end) {
            const std::uint64_t first = (from - r.states) / sizeof(std::uint64_t) * layout::segment_pages;
            const std::uint64_t last = std::min<std::uint64_t>(
                r.end - r.first, ((std::min(to, states_end) - 1 - r.states) / sizeof(std::uint64_t) + 1) * layout::segment_pages);
            s.forget({static_cast<Page>(r.first + first), static_cast<Page>(last - first)});
        }
        if (to > r.lines) {
            const std::uint64_t first = (std::max(from, r.lines) - r.lines) / sizeof(layout::Line);
            const std::uint64_t last = std::min<std::uint64_t>(r.end - r.first_user, (to - 1 - r.lines) / sizeof(layout::Line) + 1);
            if (first < last) s.forget({static_cast<Page>(r.first_user + first), static_cast<Page>(last - first)});
        }
    }
}

void Engine::release_empty_pages() {
    state_->require_writable();
    state_->supply.proofs().states();
    state_->supply.release_empty_pages();
}

std::vector<FreeRun> Engine::release_free_pages(ByteCount minimum, ByteCount kept) {
    State& s = *state_;
    s.require_writable();
    s.supply.proofs().states();
    s.supply.release_empty_pages();
    std::vector<FreeRun> released;
    const Page least = static_cast<Page>(std::max<ByteCount>(1, std::min<ByteCount>(minimum, s.capacity) / page_bytes));
    for (Page page = s.pages.next_user(0); page < s.pages.extent(); page = s.pages.next_user(page)) {
        const Page run = s.pages.count_equal(page, s.pages.extent() - page, PageState::available);
        if (run >= least) released.push_back({{std::uint64_t{page} * page_bytes}, run * page_bytes});
        page += std::max<Page>(1, run);
    }
    if (kept != 0) {
        // What lies lowest is used again first.
        ByteCount left = page_totals().free;
        auto lowest = released.end();
        while (lowest != released.begin() && left > kept) {
            FreeRun& run = *--lowest;
            const ByteCount excess = std::min(run.length, std::max(minimum, round_up(left - kept, page_bytes)));
            run.offset.value += run.length - excess;
            run.length = excess;
            left -= excess;
        }
        released.erase(released.begin(), lowest);
    }
    for (const FreeRun& run : released)
        s.pages.set_states({static_cast<Page>(run.offset.value / page_bytes), static_cast<Page>(run.length / page_bytes)}, PageState::released);
    if (s.pages.take_zones_were_used())
        s.geometry.for_each_zone(0, s.pages.extent(), [&](Page first, Page end) {
            for (Page page = first; page < end; ++page) {
                const Page run = s.pages.count_equal(page, end - page, PageState::absent);
                if (run >= least) released.push_back({{std::uint64_t{page} * page_bytes}, run * page_bytes});
                page += run;
            }
        });
    return released;
}

PageTotals Engine::page_totals() const {
    const PageMap::Counts counts = state_->pages.count_states();
    return {counts.used * page_bytes, counts.available * page_bytes, counts.released * page_bytes};
}

EngineStats Engine::stats() const {
    const State& s = *state_;
    EngineStats stats;
    stats.capacity_bytes = s.capacity;
    stats.extent_bytes = extent();
    std::uint64_t user_pages = 0;
    for (unsigned index = 0; index < s.geometry.count(); ++index) {
        const Region& r = s.geometry.region(index);
        user_pages += std::min(std::max(s.pages.extent(), r.first_user), r.end) - r.first_user;
    }
    std::uint64_t internal = 0;
    s.visit([&](const State::Found& found) {
        if (found.internal) {
            internal += found.block.usable_bytes;
        } else {
            stats.live_bytes += found.block.usable_bytes;
            ++stats.live_blocks;
        }
        return true;
    });
    stats.metadata_bytes = stats.extent_bytes - user_pages * page_bytes + internal;
    stats.free_bytes = user_pages * page_bytes - std::min(user_pages * page_bytes, stats.live_bytes + internal);
    stats.largest_free_bytes = s.supply.largest_block(true);
    return stats;
}

ByteCount Engine::capacity() const { return state_->capacity; }

ByteCount Engine::extent() const { return std::uint64_t{state_->pages.extent()} * page_bytes; }

}  // namespace taiyen::heap
