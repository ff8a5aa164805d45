#include "replicate/deposed_file.hpp"

#include <array>
#include <string>
#include <utility>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "log/ring.hpp"
#include "store/header.hpp"
#include "store/heap_paths.hpp"

namespace taiyen::replicate {
namespace {

using std::filesystem::path;

/// What cannot be read is nobody's.
template <class IsOwn>
bool is_own(io::Storage& storage, const path& where, IsOwn&& is_heaps) {
    if (!storage.find(where)) return false;
    const auto file = storage.open(where, io::Access::read_only);
    try {
        return is_heaps(*file);
    } catch (const Error& error) {
        if (error.code() == errc::io_error) throw;
        return false;
    }
}

/// A file of the heap beside its own one.
struct Companion {
    const char* what;
    path from;
    bool is_needed = false;  ///< it holds what no other file has
    std::function<bool(const path&)> is_own;
    path to;
};

std::array<Companion, 2> companions_of(io::Storage& storage, const path& heap, const PersistentOptions& options, const store::Header& header) {
    const store::HeapPaths paths = store::heap_paths(heap, options);
    const auto is_data = [&storage, uuid = header.data](const path& where) {
        return is_own(storage, where, [&](const io::File& file) {
            const store::Slots slots = store::read_slots(file);
            return slots.newest() != nullptr && slots.newest()->file == uuid;
        });
    };
    const auto is_log = [&storage, uuid = header.heap](const path& where) {
        return is_own(storage, where, [&](const io::File& file) { return log::Ring::read_identity(file).heap == uuid; });
    };
    return {Companion{"second copy (--data-file)", paths.data, !header.data.is_nil(), is_data, {}},
            Companion{"transaction log (--log-file)", paths.log, header.ring_kind == store::RingKind::log, is_log, {}}};
}

}  // namespace

std::optional<path> set_deposed_aside(io::Storage& storage, const path& heap, const PersistentOptions& options,
                                      const std::function<Uuid()>& heap_to_come) {
    if (!storage.find(heap)) return std::nullopt;
    const auto file = store::open_locked(storage, heap, false);
    const store::Slots slots = store::read_slots(*file);
    const store::Header* const header = slots.newest();
    if (header == nullptr) {
        const store::SlotProblem problem = slots.verdict();
        throw Error(problem.code, heap, 0, problem.what);
    }
    if (header->replica.role != store::ReplicaRole::deposed) return std::nullopt;
    if (heap_to_come() != header->heap) throw Error(errc::mismatch, heap, "another heap than this one is replicated there; name another file");

    std::array<Companion, 2> companions = companions_of(storage, heap, options, *header);
    // The names that an interrupted call has begun with are free.
    const auto is_free = [&](const std::string& suffix) {
        if (storage.find(heap.string() + suffix)) return false;
        const store::HeapPaths beside = store::heap_paths(heap.string() + suffix, {});
        for (Companion& companion : companions) {
            const bool lies_beside = companion.from.parent_path() == heap.parent_path();
            companion.to = !lies_beside ? path(companion.from.string() + suffix) : &companion == companions.data() ? beside.data : beside.log;
            if (storage.find(companion.to) && (storage.find(companion.from) || !companion.is_own(companion.to))) return false;
        }
        return true;
    };
    std::string suffix = ".deposed";
    for (unsigned number = 2; !is_free(suffix); ++number) suffix = ".deposed-" + std::to_string(number);
    for (const Companion& companion : companions) {
        if (storage.find(companion.from) && !companion.is_own(companion.from))
            throw Error(errc::mismatch, companion.from,
                        std::string("this is not the deposed heap's ") + companion.what + "; name that, or move this away");
        if (companion.is_needed && !storage.find(companion.from) && !storage.find(companion.to))
            throw Error(errc::not_found, companion.from,
                        std::string("the deposed heap's ") + companion.what + " is not here; name it: it may hold what was never sent");
    }
    const path aside = heap.string() + suffix;
    const auto move_heap = [&] {
        storage.rename(heap, aside, io::Existing::refused);
        storage.sync_directory(io::directory_of(heap));
    };
    if (planted(Bug::deposed_moved_first)) move_heap();
    for (const Companion& companion : companions) {
        if (!storage.find(companion.from)) continue;
        storage.rename(companion.from, companion.to, io::Existing::refused);
        storage.sync_directory(io::directory_of(companion.to));
    }
    if (!planted(Bug::deposed_moved_first)) move_heap();
    return aside;
}

}  // namespace taiyen::replicate
