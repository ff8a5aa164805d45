#pragma once
/// The named objects of a heap, as far as the file tells.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/shape/shape.hpp>

namespace taiyen {

class ArchiveHeap;
class VolatileHeap;

/// A named object of a heap, as it can be told without its type.
struct StoredObject {
    std::string name;
    std::string type;          ///< as a program would write it: "taiyen::map<int, taiyen::string>"; the compiler's own name where that can't be read
    std::string fingerprint;   ///< what opening it compares
    std::uint64_t offset = 0;  ///< in the heap
    std::size_t bytes = 0;     ///< of the object itself, without what it owns elsewhere in the heap (taiyen/inspect/leaks.hpp tells that)
    std::uint64_t count = 1;
    /// Of the type; objects of one type share it. Null: no program that knows shapes had the object yet, there was no room, or what is stored can't be read (`verify()` tells).
    std::shared_ptr<const Shape> shape;
};

/// All of them by name. Throws: Error{closed | corrupt | …}.
TAIYEN_EXPORT std::vector<StoredObject> stored_objects(const ArchiveHeap& heap);
/// The same of a volatile heap, under its lock.
TAIYEN_EXPORT std::vector<StoredObject> stored_objects(const VolatileHeap& heap);

}  // namespace taiyen
