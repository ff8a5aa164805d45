#pragma once
/// How much of a heap is of which type, as the shapes of its named objects tell: values, and the blocks of memory that they hold.
///
///     for (const TypeUse& use : type_histogram(heap).types) std::cout << use.type << " " << use.values << " " << use.block_bytes << "\n";
///
/// Thread rule: as the heap's; the result is a value.

#include <cstdint>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>

namespace taiyen {

class ArchiveHeap;

/// What there is of one type.
struct TypeUse {
    std::string type;  ///< as a person writes it: "map<string, Part>"
    std::uint64_t values =
        0;  ///< wherever they lie: objects, fields, elements, behind pointers. No characters of texts, bits of `vector<bool>` and keys that B-trees repeat
    std::uint64_t value_bytes = 0;  ///< that these take in place, so a structure's count for its fields' types, too
    std::uint64_t blocks =
        0;  ///< of the heap: a container's own; of other types those that begin with a named object, or with what a pointer leads to
    std::uint64_t block_bytes = 0;  ///< of these; each block of the heap counts for one type at most
};

/// What a heap consists of.
struct TypeHistogram {
    std::vector<TypeUse> types;      ///< those with the most `block_bytes` first, then those with the most `value_bytes`
    std::uint64_t other_blocks = 0;  ///< live ones of which no shape tells: an opaque value may hold them, or nothing
    std::uint64_t other_bytes = 0;   ///< of these
    /// Types of values that were not looked into: opaque ones, objects whose shape the heap doesn't know, and what pointers lead to where only its name is known. What these hold counts as other.
    std::vector<std::string> opaque;
};

/// Follows pointers as their types tell, to the beginnings of blocks: of an array behind one, the first object counts; what can't be such an object, as behind a pointer to what was freed, is told as opaque. `progress` may be empty. Durability: none, it only reads.
/// Throws: Error{closed | corrupt}. Complexity: reads twice what lies in objects, and memory of a few bits a block.
TAIYEN_EXPORT TypeHistogram type_histogram(const ArchiveHeap& heap, const Progress& progress = {});

}  // namespace taiyen
