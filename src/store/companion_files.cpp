#include "store/companion_files.hpp"

#include <optional>
#include <string>
#include <utility>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "store/page_copies.hpp"
#include "store/recovery_table.hpp"

namespace taiyen::store {
namespace {

constexpr ByteCount log_capacity_min = 64_KiB;
constexpr ByteCount log_capacity_max = 512_GiB;

/// Opens what stands there and locks it; null: nothing does. Throws: Error{busy}.
std::unique_ptr<io::File> open_possible_orphan(io::Storage& storage, const std::filesystem::path& path, const char* place) {
    while (const auto found = storage.find(path)) {
        if (found->kind != io::FileKind::regular)
            throw Error(errc::not_a_regular_file, path, std::string("something stands where ") + place + " must go; move it away");
        try {
            auto file = storage.open(path, io::Access::read_only);
            if (!file->try_lock(io::Lock::exclusive))
                throw Error(errc::busy, path, "a heap of this name is being created or used by somebody else; try again when that is done");
            if (is_still_at(storage, *file, path)) return file;
        } catch (const Error& error) {
            if (error.code() != errc::not_found)  // else it has gone meanwhile
                throw;
        }
    }
    return nullptr;
}

/// Removes a file that a killed creation left, if `is_orphan` says that it is one. Files get their names complete and synced: what can't be read is no orphan.
/// Throws: Error{busy} if its creation is still under way, Error{mismatch} if it is anything else; what `refuse_heap` throws.
template <class IsOrphan>
void clear_orphan(io::Storage& storage, const std::filesystem::path& path, const char* place, const RefuseHeap& refuse_heap, IsOrphan&& is_orphan) {
    const std::unique_ptr<io::File> file = open_possible_orphan(storage, path, place);
    if (!file) return;
    refuse_heap();
    if (!is_orphan(*file))
        throw Error(errc::mismatch, path, std::string("a file stands where ") + place + " must go, and it belongs to something else; move it away");
    storage.remove(path);  // nobody else removes or replaces it: that takes the lock
    count_row(Row::orphan_removed);
}

/// `heap`: a leftover of an earlier opening of this heap is removed too; its header says that nothing in it counts.
void clear_orphan_ring(io::Storage& storage, const std::filesystem::path& path, const char* place, const RefuseHeap& refuse_heap, const Uuid& heap) {
    clear_orphan(storage, path, place, refuse_heap, [&](const io::File& file) {
        try {
            const log::RingIdentity identity = log::Ring::read_identity(file);
            return identity.is_new || identity.heap == heap;
        } catch (const Error& error) {
            if (error.code() == errc::io_error) throw;
            return log::Ring::is_left_of(file, heap);
        }
    });
}

}  // namespace

void clear_orphan_data(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap) {
    clear_orphan(storage, path, "the heap's data file", refuse_heap, [](const io::File& file) {
        const Slots slots = read_slots(file);
        const Header* header = slots.newest();
        return header != nullptr && header->is_new && header->role == FileRole::data;
    });
}

void clear_orphan_journal(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap, const Uuid& heap) {
    clear_orphan_ring(storage, path, "the heap's journal", refuse_heap, heap);
}
void clear_orphan_log(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap, const Uuid& heap) {
    clear_orphan_ring(storage, path, "the heap's transaction log", refuse_heap, heap);
}

log::RingStart fresh_start() { return {{random_u64()}, 0, 1, random_u64()}; }

void lock_new(io::File& file) {
    if (!file.try_lock(io::Lock::exclusive)) throw Error(errc::busy, file.path(), "a file that was just made is locked; try again");
}

void sync_directory_of(io::Storage& storage, const std::filesystem::path& file, const std::filesystem::path& heap) {
    if (planted(Bug::other_directories_unsynced) && io::directory_of(file) != io::directory_of(heap)) return;
    storage.sync_directory(io::directory_of(file));
}

void publish_part(io::Storage& storage, io::File& file, const std::filesystem::path& path) {
    try {
        storage.publish(file, path);
    } catch (const Error& error) {
        if (error.code() != errc::already_exists) throw;
        throw Error(errc::busy, path, "a heap of this name is being created by somebody else; try again when that is done");
    }
}

void check_paths(const HeapPaths& paths) {
    const auto data = paths.data.lexically_normal();
    if (data == paths.backing.lexically_normal() || data == paths.journal.lexically_normal())
        throw Error(errc::invalid_argument, paths.data, "the data file can't be the heap itself or its journal; name another file");
    const auto log = paths.log.lexically_normal();
    if (log == paths.backing.lexically_normal() || log == paths.journal.lexically_normal() || log == data) {
        throw Error(errc::invalid_argument, paths.log,
                    "the transaction log can't be the heap itself, its data file or its journal; name another file");
    }
}

void check_log_capacity(ByteCount capacity, const std::filesystem::path& path) {
    if (capacity < log_capacity_min || capacity > log_capacity_max) {
        throw Error(errc::invalid_argument, path,
                    "the capacity of a transaction log must be between 64 KiB and 512 GiB, not " + std::to_string(capacity) + " bytes");
    }
}

}  // namespace taiyen::store
