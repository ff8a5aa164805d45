#pragma once
/// The files that come and go beside a heap's own one: data file, journal, transaction log. How they are made, named, and told from what others left there.
///
/// Each is made without a name, complete and synced, then published and its directory synced; the header of the heap's own file that names it is the last step.
/// Thread rule: external lock.

#include <filesystem>
#include <functional>

#include "log/ring.hpp"
#include "store/heap_paths.hpp"

namespace taiyen::store {

inline constexpr ByteCount log_capacity_default = 64_MiB;

/// Asked while nobody else can publish a heap with the file in question: throws if there is one.
using RefuseHeap = std::function<void()>;
/// For who has the heap locked.
inline void heap_is_ours() {}

/// Removes a file that a killed creation left. Throws: Error{busy} if its creation is still under way, Error{mismatch} if it is anything else, Error{not_a_regular_file}; what `refuse_heap` throws.
void clear_orphan_data(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap);
/// `heap`: a leftover of an earlier opening of this heap is removed too; its header says that nothing in it counts.
void clear_orphan_journal(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap, const Uuid& heap);
void clear_orphan_log(io::Storage& storage, const std::filesystem::path& path, const RefuseHeap& refuse_heap, const Uuid& heap);

/// Where a ring begins that nothing was appended to, in an epoch of its own.
log::RingStart fresh_start();
void lock_new(io::File& file);
/// Publishes a part of a heap that is there. Throws: Error{busy}: somebody creates a heap of this name, not having seen ours.
void publish_part(io::Storage& storage, io::File& file, const std::filesystem::path& path);
/// A name is durable when its own directory is, wherever the heap's file lies.
void sync_directory_of(io::Storage& storage, const std::filesystem::path& file, const std::filesystem::path& heap);

/// Names of one heap's files must differ: else one would be taken for, or published over, another. Throws: Error{invalid_argument}.
void check_paths(const HeapPaths& paths);
/// Throws: Error{invalid_argument}.
void check_log_capacity(ByteCount capacity, const std::filesystem::path& path);

}  // namespace taiyen::store
