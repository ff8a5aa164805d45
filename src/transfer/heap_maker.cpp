#include "transfer/heap_maker.hpp"

#include <algorithm>
#include <cstring>

#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "base/checksum.hpp"
#include "heap/core.hpp"
#include "heap/geometry.hpp"
#include "heap/survey.hpp"
#include "transfer/new_places.hpp"
#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {
namespace {

namespace fs = std::filesystem;

/// Whether the regions that are in use begin and end where they did.
ByteCount new_capacity(const HeapShape& heap, ByteCount wanted) {
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

struct Paths {
    fs::path heap;
    fs::path data;
    fs::path journal;
    fs::path log;
};

Paths paths_of(const fs::path& path, const ExpandOptions& options) {
    const auto beside = [&](const char* suffix) { return fs::path(path.string() + suffix); };
    return {path, options.data_file.empty() ? beside(".data") : options.data_file, beside(".journal"),
            options.log_file.empty() ? beside(".log") : options.log_file};
}

void check_free(io::Storage& storage, const Paths& paths) {
    if (storage.find(paths.heap)) {
        throw Error(errc::already_exists, paths.heap, "something of that name exists; expand to another name");
    }
    for (const fs::path* path : {&paths.data, &paths.journal, &paths.log}) {
        if (storage.find(*path)) {
            throw Error(errc::already_exists, *path, "it would be taken for a part of the new heap; move it away or expand to another name");
        }
    }
}

/// An archive becomes a heap of another kind as it always does, by being opened as one.
void convert(io::Storage& storage, const Paths& paths, HeapKind kind, const ExpandOptions& options) {
    PersistentOptions as;
    as.data_file = options.data_file;
    as.log_file = options.log_file;
    as.log_capacity = options.log_capacity;
    try {
        store::HeapFile::open(storage, paths.heap, store::OpenMode::open_only, kind, as)->close();
    } catch (...) {
        for (const fs::path* path : {&paths.heap, &paths.data, &paths.journal, &paths.log}) {
            if (storage.remove(*path)) storage.sync_directory(io::directory_of(*path));
        }
        throw;
    }
}

/// Any that the engine takes, where blocks find places of their own.
ByteCount free_capacity(const HeapShape& heap, ByteCount wanted) {
    const ByteCount capacity = wanted == 0 ? heap.capacity : round_up(wanted, page_bytes);
    if (capacity < heap::Engine::capacity_min || capacity > heap::layout::capacity_max) {
        throw Error(errc::invalid_argument, heap.name, "no heap has a capacity of " + std::to_string(wanted) + " bytes");
    }
    return capacity;
}

/// What the new heap is to be.
struct Plan {
    HeapKind kind;
    ByteCount capacity;
    std::uintptr_t base;
    bool in_one_go;  ///< pages stay as they come
};

Plan plan_for(const HeapShape& heap, const fs::path& path, const ExpandOptions& options) {
    Plan plan{options.kind.value_or(heap.kind), 0, options.base.value_or(heap.base), false};
    plan.capacity = options.defragment == Defragment::no ? new_capacity(heap, options.capacity) : free_capacity(heap, options.capacity);
    if (plan.kind == HeapKind::volatile_heap) {
        throw Error(errc::invalid_argument, heap.name, "a heap's file can't be volatile; expand it as an archive, snapshot or transactional heap");
    }
    if (options.defragment != Defragment::no && heap.position_independent) {
        throw Error(errc::type_mismatch, heap.name,
                    "a position-independent heap keeps distances between its blocks, which can't move against one another");
    }
    if (options.defragment != Defragment::no && options.pointers.types.empty()) {
        throw Error(errc::type_mismatch, heap.name,
                    "only the types of its objects can tell which words of a heap are pointers and may change in every bit; declare them "
                    "(PointerOptions::types) to lay its blocks anew");
    }
    if (options.base) check_place(*options.base, plan.capacity, path);
    if (plan.base == anywhere) plan.base = store::HeapFile::find_place(plan.capacity);
    if (heap::CoreRanges::total_bytes(plan.capacity) > store::address_end - plan.base) {
        throw Error(errc::invalid_argument, heap.name, "with that capacity the heap would end behind 128 TiB; ask for less");
    }
    plan.in_one_go = heap.position_independent || (plan.base == heap.base && options.defragment == Defragment::no);
    if (plan.kind != HeapKind::archive && !heap.position_independent) {
        try {
            const vm::Reservation probe(plan.base, heap::CoreRanges::total_bytes(plan.capacity));
        } catch (const Error& error) {
            throw Error(static_cast<errc>(error.code().value()), path,
                        "the heap's address is taken: " + std::string(error.what()) +
                            "; close what is mapped there, or expand it as an archive, which becomes another kind when it is opened as one");
        }
    }
    return plan;
}

/// Pages on their way into a file, as many at once as neighbours come.
class PageWriter {
public:
    PageWriter(store::HeapBuilder& builder, const HeapShape& heap, const ExpandOptions& options)
        : builder_(builder), heap_(heap), options_(options), pages_(batch_pages * page_bytes) {
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
        checksums_.push_back(store::page_checksum(bytes, {first_ + checksums_.size()}, builder_.heap()));
    }
    void flush() {
        if (options_.cancel.stop_requested()) throw Error(errc::cancelled, heap_.name, "expanding was cancelled");
        // Zero pages are holes.
        for (std::size_t i = 0; i < checksums_.size();) {
            std::size_t end = i;
            while (end < checksums_.size() && !is_zero(pages_.span().subspan(end * page_bytes, page_bytes))) ++end;
            if (end != i)
                builder_.write({first_ + i}, pages_.span().subspan(i * page_bytes, (end - i) * page_bytes),
                               std::span(checksums_).subspan(i, end - i));
            i = end + 1;
        }
        first_ += checksums_.size();
        checksums_.clear();
    }

private:
    static constexpr std::size_t batch_pages = 256;
    store::HeapBuilder& builder_;
    const HeapShape& heap_;
    const ExpandOptions& options_;
    AlignedBuffer pages_;
    std::uint64_t first_ = 0;
    std::vector<std::uint64_t> checksums_;
};

bool holds_blocks(heap::PageUse use) { return use == heap::PageUse::small || use == heap::PageUse::packed || use == heap::PageUse::run; }
bool is_nobodys(heap::PageUse use) { return use == heap::PageUse::available || use == heap::PageUse::released || use == heap::PageUse::growth; }

/// Every page where it was, with its pointers rewritten.
void write_in_place(const HeapView& old, ByteCount capacity, PointerFinder& finder, const Relocation& relocation, PageWriter& writer) {
    const heap::Survey survey(old.bytes, old.capacity);
    survey.visit([&](const heap::PagesInUse& pages) {
        for (std::uint64_t page = pages.first; !is_nobodys(pages.use) && page < pages.first + pages.count; ++page) {
            const auto bytes = writer.next(page);
            std::memcpy(bytes.data(), old.bytes + page * page_bytes, page_bytes);
            if (page == 0) std::memcpy(bytes.data() + offsetof(heap::layout::SuperBlock, capacity), &capacity, sizeof capacity);
            if (holds_blocks(pages.use)) finder.patch({page}, bytes, relocation);
            writer.done();
        }
        return true;
    });
}

/// Metadata as it came into being, blocks from where they lay.
void write_laid_out(const HeapView& old, const NewPlaces& places, const PointerPlaces& pointers, const Relocation& relocation, PageWriter& writer) {
    const std::vector<NewPlaces::Move>& moves = places.moves();
    std::size_t first = 0;
    const auto put_blocks = [&](std::uint64_t page, std::span<std::byte> bytes) {
        const std::uint64_t begin = page * page_bytes;
        while (first < moves.size() && moves[first].to + moves[first].bytes <= begin) ++first;
        for (std::size_t i = first; i < moves.size() && moves[i].to < begin + page_bytes; ++i) {
            const NewPlaces::Move& move = moves[i];
            const std::uint64_t from = std::max(move.to, begin);
            const std::uint64_t to = std::min(move.to + move.bytes, begin + page_bytes);
            const std::uint64_t back = move.from - move.to;  // from a new place to the old one
            std::memcpy(bytes.data() + (from - begin), old.bytes + (from + back), to - from);
            pointers.visit(from + back, to + back, [&](std::uint64_t place, std::uint64_t value, bool is_end) {
                const std::uint64_t now = moved(relocation, value, is_end);
                std::memcpy(bytes.data() + (place - back - begin), &now, sizeof now);
            });
        }
    };
    const heap::Survey survey(places.span(), places.engine().capacity());
    survey.visit([&](const heap::PagesInUse& pages) {
        for (std::uint64_t page = pages.first; !is_nobodys(pages.use) && page < pages.first + pages.count; ++page) {
            const auto bytes = writer.next(page);
            if (holds_blocks(pages.use)) {
                put_blocks(page, bytes);
            } else {
                std::memcpy(bytes.data(), places.span() + page * page_bytes, page_bytes);
            }
            writer.done();
        }
        return true;
    });
}

/// For an engine that only reads.
class MadeSpan final : public heap::SpanHost {
public:
    void extend(ByteCount) override {}
    void restore_blocks(HeapOffset, ByteCount) override {}
};

/// What the draft holds, with each pointer as it has to be, under the heap's name.
RebaseReport rewrite(io::Storage& storage, const HeapShape& heap, const store::HeapBuilder& draft, const Plan& plan, const fs::path& path,
                     const ExpandOptions& options) {
    // Whoever walks by types goes by the pointers as they are.
    const vm::Reservation view = options.pointers.types.empty() ? vm::Reservation::anywhere(heap.extent)
                                                                : vm::Reservation(heap.base, heap::CoreRanges::total_bytes(heap.capacity));
    draft.map(view.data());
    MadeSpan host;
    const heap::Engine engine(view.data(), heap.capacity, host, nullptr, true);
    if (engine.extent() != heap.extent) throw Error(errc::corrupt, heap.name, "its first page speaks of another size");
    if (const auto damages = engine.check(1); !damages.empty()) {
        throw Error(errc::corrupt, heap.name, damages.front().where.value, damages.front().what + "; get another copy");
    }
    const HeapView old{engine, view.data(), heap.base, heap.capacity, heap.name};
    RebaseReport report;
    report.from = heap.base;
    report.to = plan.base;
    report.capacity_bytes = heap.capacity;
    report.moved = true;
    const FoundPointers found = find_pointers(old, options.pointers, report);
    refuse_ambiguous(report, options.pointers, heap.name);
    const bool one_by_one = options.defragment != Defragment::no;
    refuse_keys(report, options.pointers, one_by_one, heap.name);
    std::optional<NewPlaces> places;
    if (one_by_one) {
        places.emplace(old, found.reached, options.defragment, plan.capacity);
        report.blocks = places->relocation(report.from, report.to);
    }
    const Relocation relocation = report.relocation();
    store::HeapBuilder builder(storage, path,
                               {draft.heap(), plan.base, false, plan.capacity, one_by_one ? places->engine().extent() : heap.extent, heap.serial});
    PageWriter writer(builder, heap, options);
    if (one_by_one) {
        write_laid_out(old, *places, *found.places, relocation, writer);
    } else {
        write_in_place(old, plan.capacity, *found.finder, relocation, writer);
    }
    writer.flush();
    builder.publish();
    return report;
}

}  // namespace

RebaseReport make_heap(io::Storage& storage, const HeapShape& heap, const fs::path& path, const ExpandOptions& options, const FillPages& fill) {
    const Plan plan = plan_for(heap, path, options);
    const Paths paths = paths_of(path, options);
    check_free(storage, paths);
    store::HeapBuilder first(storage, path,
                             {random_uuid(), plan.in_one_go ? plan.base : heap.base, heap.position_independent,
                              plan.in_one_go ? plan.capacity : heap.capacity, heap.extent, heap.serial});
    RebaseReport report;
    if (plan.in_one_go) {
        fill(first, [&](PageNumber page, std::span<std::byte> pages) {
            if (page.value != 0) return;
            std::memcpy(pages.data() + offsetof(heap::layout::SuperBlock, capacity), &plan.capacity, sizeof plan.capacity);
        });
        first.publish();
        report.from = heap.base;
        report.to = plan.base;
        report.moved = report.from != report.to;
        report.position_independent = heap.position_independent;
        report.capacity_bytes = heap.capacity;
    } else {
        fill(first, {});
        report = rewrite(storage, heap, first, plan, path, options);
    }
    if (plan.kind != HeapKind::archive) {
        convert(storage, paths, plan.kind, options);
    }
    return report;
}

}  // namespace taiyen::transfer
