#include "transfer/heap_maker.hpp"

#include <cstring>

#include <taiyen/base/error.hpp>

#include "heap/core.hpp"
#include "heap/engine_layout.hpp"

namespace taiyen::transfer {
namespace {

namespace fs = std::filesystem;

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
    if (storage.find(paths.heap)) throw Error(errc::already_exists, paths.heap, "something of that name exists; expand to another name");
    for (const fs::path* path : {&paths.data, &paths.journal, &paths.log})
        if (storage.find(*path))
            throw Error(errc::already_exists, *path, "it would be taken for a part of the new heap; move it away or expand to another name");
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
        for (const fs::path* path : {&paths.heap, &paths.data, &paths.journal, &paths.log})
            if (storage.remove(*path)) storage.sync_directory(io::directory_of(*path));
        throw;
    }
}

/// Throws: Error{address_in_use}: who opens the new heap would find its address taken.
void check_address(const MovePlan& plan, ByteCount extent, const fs::path& path) {
    const ByteCount bytes = heap::CoreRanges::reserved_bytes(extent, plan.capacity);
    try {
        const vm::Reservation probe(plan.base, bytes);
    } catch (const Error& error) {
        throw Error(static_cast<errc>(error.code().value()), path,
                    heap::who_takes_address(plan.base, bytes, error) +
                        "; close what is mapped there, or expand it as an archive, which becomes another kind when it is opened as one");
    }
}

/// Empty: something lies there.
vm::Reservation try_to_reserve(std::uintptr_t base, ByteCount bytes) {
    try {
        return {base, bytes};
    } catch (const Error&) {
        return {};
    }
}

/// Everything that can be refused before anything is made.
MovePlan plan_for(io::Storage& storage, const HeapShape& heap, const Paths& paths, HeapKind kind, const ExpandOptions& options) {
    if (kind == HeapKind::volatile_heap)
        throw Error(errc::invalid_argument, heap.name, "a heap's file can't be volatile; expand_volatile() makes a heap without one");
    MovePlan plan = plan_move(heap.moved(), options.capacity, options.address, options.defragment, options.pointers);
    if (options.address) check_place(*options.address, plan.capacity, paths.heap);
    if (plan.base == anywhere) {
        const vm::Reservation old = try_to_reserve(heap.base, heap.extent);  // both may be open at once
        plan.base = store::HeapFile::find_place(heap.extent, plan.capacity, within_slot(heap.base, options.pointers));
        plan.in_one_go = heap.position_independent;
    }
    if (!plan.in_one_go && options.pointers.conservative) check_distance(heap.base, plan.base, heap.name);
    if (plan.capacity >= store::address_end - plan.base)
        throw Error(errc::invalid_argument, heap.name, "with that capacity the heap would end behind 128 TiB; ask for less");
    if (kind != HeapKind::archive && !heap.position_independent) check_address(plan, heap.extent, paths.heap);
    check_free(storage, paths);
    return plan;
}

/// The new heap.
RebaseReport write_moved(io::Storage& storage, const HeapShape& heap, HeapMove& move, const Uuid& uuid, const MovePlan& plan, const fs::path& path,
                         const std::stop_token& cancel, const Progress& progress) {
    store::HeapBuilder builder(storage, path, {uuid, plan.base, heap.position_independent, plan.capacity, move.extent(), heap.serial});
    FilePages target(builder);
    move.write(target, cancel, progress);
    builder.publish();
    return move.take_report();
}

/// The same out of what the draft holds.
RebaseReport rewrite(io::Storage& storage, const HeapShape& heap, const store::HeapBuilder& draft, const MovePlan& plan, const fs::path& path,
                     const ExpandOptions& options) {
    PointerOptions pointers = options.pointers;
    const vm::Reservation view = reserve_view(heap, pointers);
    draft.map(view.data());
    MadeSpan host;
    const heap::Engine engine(view.data(), heap.capacity, host, nullptr, true);
    prove(engine, heap);
    const HeapView looked_at{engine, view.data(), heap.base, heap.capacity, heap.name};
    HeapMove move(looked_at, plan, pointers, heap.is_volatile);
    return write_moved(storage, heap, move, draft.heap(), plan, path, options.cancel, {});
}

}  // namespace

void prove(const heap::Engine& engine, const HeapShape& heap) {
    if (engine.extent() != heap.extent) throw Error(errc::corrupt, heap.name, "its first page speaks of another size");
    if (const auto damages = engine.check(1); !damages.empty())
        throw Error(errc::corrupt, heap.name, damages.front().where.value, damages.front().what + "; get another copy");
}

vm::Reservation reserve_view(const HeapShape& heap, PointerOptions& pointers) {
    if (!needs_home(pointers)) return vm::Reservation::anywhere(heap.extent);
    try {
        return {heap.base, heap.extent};
    } catch (const Error& error) {
        const bool may_guess = pointers.conservative && pointers.types.empty();
        if (!may_guess)
            throw Error(
                static_cast<errc>(error.code().value()), heap.name,
                heap::who_takes_address(heap.base, heap.extent, error) +
                    ": there the heap is looked at, since its types tell its pointers; close what is mapped there, or do it in another process");
    }
    pointers.by_shapes = false;
    return vm::Reservation::anywhere(heap.extent);
}

RebaseReport make_heap(io::Storage& storage, const HeapShape& heap, const fs::path& path, const ExpandOptions& options, const FillPages& fill) {
    const HeapKind kind = options.kind.value_or(heap.kind);
    const Paths paths = paths_of(path, options);
    const MovePlan plan = plan_for(storage, heap, paths, kind, options);
    store::HeapBuilder first(storage, path,
                             {random_uuid(), plan.in_one_go ? plan.base : heap.base, heap.position_independent,
                              plan.in_one_go ? plan.capacity : heap.capacity, heap.extent, heap.serial},
                             plan.in_one_go ? store::HeapBuilder::Purpose::heap : store::HeapBuilder::Purpose::draft);
    FilePages target(first);
    RebaseReport report;
    if (plan.in_one_go) {
        fill(target, [&](PageNumber page, std::span<std::byte> pages) {
            if (page.value != 0) return;
            std::memcpy(pages.data() + offsetof(heap::layout::SuperBlock, capacity), &plan.capacity, sizeof plan.capacity);
        });
        first.publish();
        report.old_address = heap.base;
        report.new_address = plan.base;
        report.moved = report.old_address != report.new_address;
        report.position_independent = heap.position_independent;
        report.capacity_bytes = heap.capacity;
    } else {
        fill(target, {});
        report = rewrite(storage, heap, first, plan, path, options);
    }
    if (kind != HeapKind::archive) convert(storage, paths, kind, options);
    return report;
}

RebaseReport make_heap(io::Storage& storage, const HeapShape& heap, const fs::path& path, const ExpandOptions& options, const HeapView& view) {
    const HeapKind kind = options.kind.value_or(heap.kind);
    const Paths paths = paths_of(path, options);
    const MovePlan plan = plan_for(storage, heap, paths, kind, options);
    HeapMove move(view, plan, options.pointers, heap.is_volatile);
    RebaseReport report = write_moved(storage, heap, move, random_uuid(), plan, path, options.cancel, options.progress);
    report.position_independent = heap.position_independent;
    if (kind != HeapKind::archive) convert(storage, paths, kind, options);
    return report;
}

}  // namespace taiyen::transfer
