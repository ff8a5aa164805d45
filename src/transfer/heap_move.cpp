#include "transfer/heap_move.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "base/text.hpp"
#include "heap/core.hpp"
#include "heap/geometry.hpp"
#include "heap/survey.hpp"

namespace taiyen::transfer {
namespace {

/// Whether the regions that are in use begin and end where they did.
ByteCount new_capacity(const MovedHeap& heap, ByteCount wanted) {
    const ByteCount capacity = wanted == 0 ? heap.capacity : round_up(wanted, page_bytes);
    const heap::Geometry before(heap.capacity);
    ByteCount least = heap::Engine::capacity_min;
    bool fits = capacity >= least && capacity <= heap::layout::capacity_max;
    const std::optional<heap::Geometry> after = fits ? std::optional<heap::Geometry>(capacity) : std::nullopt;
    for (unsigned index = 0; index < before.count() && before.region(index).first * page_bytes < heap.extent; ++index) {
        least = before.region(index).end * page_bytes;
        fits = fits && index < after->count() && after->region(index).end == before.region(index).end;
    }
    if (!fits) {
        throw Error(errc::invalid_argument, heap.name,
                    "a heap whose pages in use reach to " + std::to_string(heap.extent) + " can't get the capacity " + std::to_string(wanted) +
                        " without moving blocks; what it had (" + std::to_string(heap.capacity) + "), or a power of two from " +
                        std::to_string(least) + " on if that is one, can be had");
    }
    return capacity;
}

/// Any that the engine takes, where blocks find places of their own.
ByteCount free_capacity(const MovedHeap& heap, ByteCount wanted) {
    const ByteCount capacity = wanted == 0 ? heap.capacity : round_up(wanted, page_bytes);
    if (capacity < heap::Engine::capacity_min || capacity > heap::layout::capacity_max)
        throw Error(errc::invalid_argument, heap.name, "no heap has a capacity of " + std::to_string(wanted) + " bytes");
    return capacity;
}

bool holds_blocks(heap::PageUse use) { return use == heap::PageUse::small || use == heap::PageUse::packed || use == heap::PageUse::run; }

}  // namespace

namespace {

[[noreturn]] void throw_unknown(const std::filesystem::path& name, const std::string& why) {
    throw Error(
        errc::type_mismatch, name,
        joined({"only the types of its objects can tell which words of a heap are pointers and may change in every bit", why.empty() ? "" : "; ", why,
                "; declare those that its shapes don't tell (PointerOptions::types) to lay its blocks anew, and have nothing guessed"}));
}

/// Throws: Error{type_mismatch}: shapes leave open what one of its pointers, or of its blocks, is.
void refuse_doubts(const FoundPointers& found, const PointerOptions& pointers, bool one_by_one, bool is_volatile, const std::filesystem::path& name) {
    if (one_by_one && found.either)
        throw Error(errc::type_mismatch, name, *found.either,
                    "a plain pointer leads here, where a block begins and another one ends, and a shape doesn't tell which of them it means; declare "
                    "the types "
                    "of its objects (PointerOptions::types) to lay its blocks anew");
    if (is_volatile && pointers.types.empty() && !pointers.conservative && found.held_outside != 0)
        throw Error(
            errc::type_mismatch, name,
            joined({std::to_string(found.held_outside),
                    " of its blocks are held by the program alone, and what in them are pointers is not known; name what leads to them, declare the "
                    "types of its objects (PointerOptions::types), or accept guesses (PointerOptions::conservative)"}));
}

}  // namespace

MovePlan plan_move(const MovedHeap& heap, ByteCount capacity, std::optional<std::uintptr_t> base, Defragment defragment,
                   const PointerOptions& pointers) {
    const bool is_laid_anew = defragment != Defragment::no;
    MovePlan plan{is_laid_anew ? free_capacity(heap, capacity) : new_capacity(heap, capacity), base.value_or(heap.base), defragment, false};
    if (is_laid_anew && heap.position_independent) {
        throw Error(errc::type_mismatch, heap.name,
                    "a position-independent heap keeps distances between its blocks, which can't move against one another");
    }
    if (is_laid_anew && ((pointers.types.empty() && !pointers.by_shapes) || pointers.conservative)) throw_unknown(heap.name, {});
    plan.in_one_go = heap.position_independent || (plan.base == heap.base && !is_laid_anew);
    if (!plan.in_one_go && !pointers.by_shapes) refuse_guessing(pointers, heap.name);
    return plan;
}

/// Pages on their way, as many at once as neighbours come.
class HeapMove::Writer {
public:
    Writer(PageTarget& target, const HeapView& heap, ByteCount extent, const std::stop_token& cancel, const Progress& progress)
        : target_(target), heap_(heap), extent_(extent), cancel_(cancel), progress_(progress), pages_(batch_pages * page_bytes) {
        checksums_.reserve(batch_pages);
    }
    /// Where the next page's bytes go; they are zero. Pages ascend.
    std::span<std::byte> next(std::uint64_t page) {
        if (checksums_.size() == batch_pages || page != first_ + checksums_.size()) {
            flush();
            first_ = page;
        }
        const auto bytes = pages_.span().subspan(checksums_.size() * page_bytes, page_bytes);
        std::memset(bytes.data(), 0, page_bytes);
        return bytes;
    }
    /// The page that `next` gave is done.
    void done() {
        const auto bytes = pages_.span().subspan(checksums_.size() * page_bytes, page_bytes);
        checksums_.push_back(target_.checksum_of({first_ + checksums_.size()}, bytes));
    }
    void flush() {
        if (cancel_.stop_requested()) throw Error(errc::cancelled, heap_.path, "expanding was cancelled");
        // Zero pages are holes.
        for (std::size_t i = 0; i < checksums_.size();) {
            std::size_t end = i;
            while (end < checksums_.size() && !is_zero(pages_.span().subspan(end * page_bytes, page_bytes))) ++end;
            if (end != i)
                target_.write({first_ + i}, pages_.span().subspan(i * page_bytes, (end - i) * page_bytes), std::span(checksums_).subspan(i, end - i));
            i = end + 1;
        }
        if (checksums_.empty()) return;
        first_ += checksums_.size();
        checksums_.clear();
        if (progress_) progress_(first_ * page_bytes, extent_);
    }

private:
    static constexpr std::size_t batch_pages = 256;
    PageTarget& target_;
    const HeapView& heap_;
    const ByteCount extent_;
    const std::stop_token& cancel_;
    const Progress& progress_;
    AlignedBuffer pages_;
    std::uint64_t first_ = 0;
    std::vector<std::uint64_t> checksums_;
};

HeapMove::HeapMove(const HeapView& old, const MovePlan& plan, const PointerOptions& pointers, bool is_volatile) : old_(old), plan_(plan) {
    report_.old_address = old.base;
    report_.new_address = plan.base;
    report_.capacity_bytes = old.capacity;
    report_.moved = report_.old_address != report_.new_address || !plan.in_one_go;
    if (plan.in_one_go) return;
    const bool one_by_one = plan.defragment != Defragment::no;
    const PointerSearch search(old, pointers);
    if (one_by_one && !search.is_exact()) throw_unknown(old.path, search.why_not());
    search.refuse_guessing();
    if (!search.is_exact()) check_distance(old.base, plan.base, old.path);
    found_ = search.find(report_);
    refuse_doubts(found_, pointers, one_by_one, is_volatile, old.path);
    refuse_ambiguous(report_, pointers, old.path);
    refuse_keys(report_, pointers, one_by_one, old.path);
    if (one_by_one) places_.emplace(old, found_.reached, plan.defragment, plan.capacity);
    found_.reached = {};
}

void HeapMove::write(PageTarget& target, const std::stop_token& cancel, const Progress& progress) const {
    Writer writer(target, old_, extent(), cancel, progress);
    if (places_)
        write_laid_out(writer);
    else
        write_in_place(writer);
    writer.flush();
}

RebaseReport HeapMove::take_report() {
    found_ = {};
    if (places_) report_.blocks = places_->take_relocation(report_.old_address, report_.new_address);
    places_.reset();
    return std::move(report_);
}

/// Every page where it was, with its pointers rewritten.
void HeapMove::write_in_place(Writer& writer) const {
    const Relocation relocation(old_.base, old_.capacity, plan_.base);
    const heap::Survey survey(old_.metadata, old_.capacity);
    survey.visit([&](const heap::PagesInUse& pages) {
        for (std::uint64_t page = pages.first; !heap::is_nobodys(pages.use) && page < pages.first + pages.count; ++page) {
            const auto bytes = writer.next(page);
            const std::byte* const from = (holds_blocks(pages.use) ? old_.bytes : old_.metadata) + page * page_bytes;
            survey.for_each_live_range(static_cast<heap::Page>(page),
                                       [&](unsigned begin, unsigned end) { std::memcpy(bytes.data() + begin, from + begin, end - begin); });
            if (page == 0) std::memcpy(bytes.data() + offsetof(heap::layout::SuperBlock, capacity), &plan_.capacity, sizeof plan_.capacity);
            if (found_.places && holds_blocks(pages.use)) found_.places->patch({page}, bytes, relocation);
            writer.done();
        }
        return true;
    });
}

/// What a pointer in a block becomes.
std::uintptr_t HeapMove::new_value(std::uint64_t value, bool is_end) const {
    const std::uint64_t offset = value - old_.base;
    // An end belongs to what it ends; where nothing does, and for any other pointer, to what begins there.
    std::optional<heap::Block> block;
    if (is_end && offset != 0) block = old_.find_block(offset - 1);
    if (!block) block = old_.find_block(offset);
    if (!block && offset != 0) block = old_.find_block(offset - 1);
    return block ? plan_.base + places_->place_of(block->offset.value) + (offset - block->offset.value) : value;
}

/// Metadata as it came into being, blocks from where they lay.
void HeapMove::write_laid_out(Writer& writer) const {
    const std::vector<NewPlaces::Move>& moves = places_->moves();
    std::size_t first = 0;
    const auto put_blocks = [&](std::uint64_t page, std::span<std::byte> bytes) {
        const std::uint64_t begin = page * page_bytes;
        while (first < moves.size() && moves[first].to + moves[first].bytes <= begin) ++first;
        for (std::size_t i = first; i < moves.size() && moves[i].to < begin + page_bytes; ++i) {
            const NewPlaces::Move& move = moves[i];
            const std::uint64_t from = std::max(move.to, begin);
            const std::uint64_t to = std::min(move.to + move.bytes, begin + page_bytes);
            const std::uint64_t back = move.from - move.to;  // from a new place to the old one
            std::memcpy(bytes.data() + (from - begin), old_.bytes + (from + back), to - from);
            found_.places->visit(from + back, to + back, [&](std::uint64_t place, std::uint64_t value, bool is_end) {
                const std::uint64_t now = new_value(value, is_end);
                std::memcpy(bytes.data() + (place - back - begin), &now, sizeof now);
            });
        }
    };
    const heap::Survey survey(places_->span(), places_->engine().capacity());
    survey.visit([&](const heap::PagesInUse& pages) {
        for (std::uint64_t page = pages.first; !heap::is_nobodys(pages.use) && page < pages.first + pages.count; ++page) {
            const auto bytes = writer.next(page);
            if (holds_blocks(pages.use))
                put_blocks(page, bytes);
            else
                std::memcpy(bytes.data(), places_->span() + page * page_bytes, page_bytes);
            writer.done();
        }
        return true;
    });
}

}  // namespace taiyen::transfer
