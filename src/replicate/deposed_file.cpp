#include "replicate/deposed_file.hpp"

#include <array>
#include <string>
#include <utility>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "store/header.hpp"
#include "store/heap_paths.hpp"

namespace taiyen::replicate {
namespace {

using std::filesystem::path;

using Companions = std::array<path, 3>;

/// Files that lie elsewhere stay there, under a name of their own.
Companions companions_of(const path& heap, const PersistentOptions& options, const std::string& suffix) {
    const store::HeapPaths now = store::heap_paths(heap, options);
    const store::HeapPaths later = store::heap_paths(heap.string() + suffix, {});
    const auto renamed = [&](const path& file, const path& beside) {
        return file.parent_path() == heap.parent_path() ? beside : path(file.string() + suffix);
    };
    return {renamed(now.data, later.data), renamed(now.journal, later.journal), renamed(now.log, later.log)};
}

}  // namespace

std::optional<path> set_deposed_aside(io::Storage& storage, const path& heap, const PersistentOptions& options) {
    if (!storage.find(heap)) return std::nullopt;
    const auto file = store::open_locked(storage, heap, false);
    const store::Slots slots = store::read_slots(*file);
    const store::Header* const header = slots.newest();
    if (header == nullptr) {
        const store::SlotProblem problem = slots.verdict();
        throw Error(problem.code, heap, 0, problem.what);
    }
    if (header->replica.role != store::ReplicaRole::deposed) return std::nullopt;

    const store::HeapPaths here = store::heap_paths(heap, options);
    const Companions from{here.data, here.journal, here.log};
    const auto is_free = [&](const std::string& suffix) {
        if (storage.find(heap.string() + suffix)) return false;
        const Companions to = companions_of(heap, options, suffix);
        for (std::size_t i = 0; i < from.size(); ++i)
            if (storage.find(from[i]) && storage.find(to[i])) return false;
        return true;
    };
    std::string suffix = ".deposed";
    for (unsigned number = 2; !is_free(suffix); ++number) suffix = ".deposed-" + std::to_string(number);
    const path aside = heap.string() + suffix;
    const auto move_heap = [&] {
        storage.rename(heap, aside, io::Existing::refused);
        storage.sync_directory(io::directory_of(heap));
    };
    if (planted(Bug::deposed_moved_first)) move_heap();
    const Companions to = companions_of(heap, options, suffix);
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (!storage.find(from[i])) continue;
        storage.rename(from[i], to[i], io::Existing::refused);
        storage.sync_directory(io::directory_of(to[i]));
    }
    if (!planted(Bug::deposed_moved_first)) move_heap();
    return aside;
}

}  // namespace taiyen::replicate
