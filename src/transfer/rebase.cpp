#include "transfer/rebase_file.hpp"

#include <taiyen/store/parameters.hpp>

#include <algorithm>

#include "store/heap_access.hpp"
#include "transfer/pointer_finder.hpp"
#include "transfer/shape_types.hpp"
#include "vm/address_space.hpp"

namespace taiyen {
namespace transfer {
namespace {

/// Throws: Error{address_in_use}. What the heap itself occupies is free once it has moved.
void check_free(std::uintptr_t address, const store::HeapFile& file) {
    const std::filesystem::path& path = file.path();
    const ByteCount bytes = file.reserved_bytes();
    const std::uintptr_t own = file.ranges().durable;
    const auto require_free = [&](std::uintptr_t first, std::uintptr_t end) {
        if (first >= end) return;
        if (const auto taken = vm::mapping_in(first, end - first))
            throw Error(errc::address_in_use, path,
                        "the new address is taken: " + hexadecimal(taken->begin) + " to " + hexadecimal(taken->end) + " is " +
                            (taken->name.empty() ? std::string("anonymous memory") : taken->name) + " in this process; choose another one");
    };
    require_free(address, std::min(address + bytes, own));
    require_free(std::max(address, own + bytes), address + bytes);
}

HeapView view_of(const store::HeapFile& file) {
    const heap::CoreRanges& ranges = file.ranges();
    return {file.engine(), reinterpret_cast<const std::byte*>(ranges.durable), ranges.durable, ranges.durable_bytes, file.path()};
}

RebaseReport look(store::HeapFile& file, const PointerSearch& search, std::uintptr_t address, const RebaseOptions& options, FoundPointers& found) {
    const heap::CoreRanges& ranges = file.ranges();
    check_place(address, ranges.durable_bytes, file.path());
    RebaseReport report;
    report.old_address = ranges.durable;
    report.capacity_bytes = ranges.durable_bytes;
    report.new_address = address == anywhere ? store::HeapFile::find_place(file.image().mapped(), ranges.durable_bytes,
                                                                           within_slot(report.old_address, search.options()))
                                             : address;
    if (report.new_address != report.old_address) {
        if (!options.dry_run) search.refuse_guessing();
        if (!search.is_exact()) check_distance(report.old_address, report.new_address, file.path());
        check_free(report.new_address, file);
    }
    // What decides which words are pointers must be what was saved.
    if (!file.read_only()) file.proofs().prove_span();
    file.image().will_read_metadata();
    if (const std::vector<heap::Damage> damages = file.engine().check(1); !damages.empty())
        throw Error(errc::corrupt, file.path(), damages[0].where.value, damages[0].what + "; run 'taiyen verify', restore the heap from a copy");
    found = search.find(report, options.progress);
    report.has_history = has_history(file);
    return report;
}

void refuse_loss(const RebaseReport& report, const RebaseOptions& options, const std::filesystem::path& path) {
    if (report.has_history && !options.drop_history)
        throw Error(errc::history_conflict, path,
                    "the heap has a history whose steps hold old addresses: undoing one at the new address would put them back; drop the history "
                    "(drop_history), or leave the heap where it is");
    refuse_keys(report, options, false, path);
}

/// Throws: Error{type_mismatch}: neither shapes nor anybody else tells which words are pointers.
void refuse_unknown(const std::filesystem::path& path, const RebaseOptions& options) {
    const std::shared_ptr<store::HeapFile> file = HeapAccess::open(path, store::OpenMode::read_only, HeapKind::archive, options.files);
    const HeapView view = view_of(*file);
    PointerSearch(view, options).refuse_guessing();
    file->close();
}

}  // namespace

bool has_history(store::HeapFile& file) {
    if (!file.read_only()) return file.image().annex().is_saved();
    if (file.image().annex().used() == 0) return false;
    const std::byte* const annex = file.open_annex(0);
    return std::any_of(annex, annex + page_bytes, [](std::byte byte) { return byte != std::byte{0}; });
}

RebaseReport rebase_file(store::HeapFile& file, std::uintptr_t address, const RebaseOptions& options) {
    if (file.links() == heap::Links::distances) {
        // Nothing in it knows where it lies, so there is nothing to look for, and nothing to write.
        RebaseReport report;
        report.old_address = report.new_address = file.files().backing().header.base;
        report.capacity_bytes = file.ranges().durable_bytes;
        report.position_independent = true;
        return report;
    }
    const HeapView view = view_of(file);
    const PointerSearch search(view, options);
    FoundPointers found;
    RebaseReport report = look(file, search, address, options, found);
    if (report.new_address == report.old_address) return report;
    refuse_ambiguous(report, options, file.path());
    if (options.dry_run) return report;
    refuse_loss(report, options, file.path());
    const Relocation relocation = report.relocation();
    std::vector<PageNumber> numbers;
    const std::vector<PointerPlaces::Page> pages = found.places->pages();
    numbers.reserve(pages.size());
    for (const PointerPlaces::Page& page : pages) numbers.push_back({page.number});
    std::size_t next = 0;
    file.save_moved(report.new_address, numbers, [&](std::span<const PageNumber> batch, std::span<std::byte> images) {
        if (pages.empty()) return;
        for (std::size_t i = 0; i < batch.size(); ++i, ++next) {
            // Found in memory, rewritten in the bytes of the file: the same ones, or nothing of it counts.
            if (found.places->patch(batch[i], images.subspan(i * page_bytes, page_bytes), relocation) != pages[next].pointers)
                throw Error(errc::corrupt, file.path(), offset_of(batch[i]).value, "a page changed while its pointers were rewritten");
        }
    });
    report.moved = true;
    return report;
}

}  // namespace transfer

std::string_view name_of(AmbiguousTarget target) noexcept {
    switch (target) {
        case AmbiguousTarget::free_space: return "free space";
        case AmbiguousTarget::metadata: return "metadata";
        case AmbiguousTarget::beyond: return "beyond what is in use";
        case AmbiguousTarget::unaligned: return "a block, unaligned";
    }
    return "unknown";
}

RebaseReport rebase(const std::filesystem::path& path, std::uintptr_t address, const RebaseOptions& options) {
    transfer::check_place(address, heap::Engine::capacity_min, path);  // before recovery writes anything
    if (!options.dry_run) {                                            // nothing is touched, not even by recovery
        const HeapParameters heap = read_parameters(path);
        const bool is_told = heap.position_independent || heap.address == address || !options.types.empty() || options.conservative;
        if (!is_told) transfer::refuse_unknown(path, options);
    }
    const store::OpenMode mode = options.dry_run ? store::OpenMode::read_only : store::OpenMode::open_only;
    const std::shared_ptr<store::HeapFile> file = HeapAccess::open(path, mode, HeapKind::archive, options.files);
    RebaseReport report = transfer::rebase_file(*file, address, options);
    file->close();
    return report;
}

}  // namespace taiyen
