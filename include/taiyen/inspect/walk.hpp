#pragma once
/// Every block and every name of a heap of any kind, one after the other.

#include <cstddef>
#include <cstdint>
#include <functional>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/objects.hpp>

namespace taiyen {

class ArchiveHeap;
class VolatileHeap;

/// A live block.
struct HeapBlock {
    void* address = nullptr;
    std::uint64_t offset = 0;   ///< in the heap
    std::size_t bytes = 0;      ///< usable
    bool pointer_free = false;  ///< its elements hold no pointer (is_pointer_free); never said of a volatile heap's
};

/// Called for each; false: it was enough. Must not allocate in that heap, free, or name anything in it, and not throw.
using BlockVisitor = std::function<bool(const HeapBlock&)>;
using NameVisitor = std::function<bool(const StoredObject&)>;

/// The live blocks, ascending by address, without the heap's own. Transactions wait meanwhile; nobody else may change a heap without them.
/// Throws: Error{closed | poisoned | …}. Complexity: reads the metadata in use.
TAIYEN_EXPORT void for_each_block(const ArchiveHeap& heap, const BlockVisitor& visit);
/// The same of a volatile heap. Requires: no other thread is in the heap; what others freed lately may still count in a heap without guards. Throws: Error{closed}, std::bad_alloc: it keeps a list of them.
/// Complexity: O(n log n) for n blocks.
TAIYEN_EXPORT void for_each_block(const VolatileHeap& heap, const BlockVisitor& visit);

/// The named objects, by name. Locks as above. Throws: Error{closed | corrupt | …}, std::bad_alloc. Complexity: O(n log n) for n names.
TAIYEN_EXPORT void for_each_name(const ArchiveHeap& heap, const NameVisitor& visit);
/// The same of a volatile heap, whose lock is held while they are listed, and not while they are visited. Other threads may be in the heap.
TAIYEN_EXPORT void for_each_name(const VolatileHeap& heap, const NameVisitor& visit);

}  // namespace taiyen
