#pragma once
/// A picture of a heap's address space: what is live, free, written, metadata, and where; as text, JSON or SVG.
///
/// The heap in use is cut into cells of equal size, a power of two of bytes, so many that a picture of any heap has about the same number of them: a cell is a page of a heap of a few megabytes
/// and 32 MiB of one of 100 GiB. What lies in a cell is summed up.
/// Thread rule: as the heap's; a HeapMap is a value.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/stats.hpp>

namespace taiyen {

class ArchiveHeap;
class LogHeap;

/// What the colours of a map tell.
enum class MapColour {
    size,   ///< how large the blocks are
    owner,  ///< which named object holds them (taiyen/inspect/leaks.hpp): reads the whole heap, not its metadata alone
    type,   ///< which type holds them (taiyen/inspect/type_histogram.hpp): reads what lies in objects
    age     ///< how long ago their segment was filled: of log heaps, whose maps have no other colours
};

/// What a map is to show.
struct MapOptions {
    std::size_t cells_max = 4096;
    MapColour colour = MapColour::size;
    Progress progress;  ///< may be empty; not with MapColour::size
};

/// What lies in one cell of the map.
struct MapCell {
    std::uint64_t live_bytes = 0;
    std::uint64_t free_bytes = 0;      ///< with disk blocks, in pages that hold nothing or between blocks
    std::uint64_t released_bytes = 0;  ///< free without disk blocks
    std::uint64_t metadata_bytes = 0;  ///< of the engine, and the directory of names
    std::uint64_t growth_bytes = 0;    ///< reserved behind a growing block; free to whoever needs it
    std::uint64_t dirty_bytes = 0;     ///< in pages written since the last save
    std::uint32_t colour = 0;          ///< in HeapMap::colours: what has the most live bytes here

    std::uint64_t bytes() const { return live_bytes + free_bytes + released_bytes + metadata_bytes + growth_bytes; }
};

/// One colour of the map, and how much has it.
struct MapKey {
    std::string label;
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
};

/// The heap from its first byte to its last, cut into cells of equal size.
struct HeapMap {
    std::filesystem::path path;
    std::size_t capacity_bytes = 0;
    std::size_t extent_bytes = 0;
    std::size_t cell_bytes = 0;
    MapColour colour = MapColour::size;
    std::vector<MapKey> colours;
    std::vector<MapCell> cells;  ///< ascending; the last one may be cut
    MapCell sum;
    std::uint64_t live_blocks = 0;
    double page_efficiency = 1;  ///< live bytes ÷ bytes of the pages that hold blocks
    std::vector<Availability> availability;
};

/// Throws: Error{closed | corrupt | invalid_argument (no cells) | …}. Complexity: reads the metadata, a fiftieth of the heap; by owner the whole heap; by type as `type_histogram`.
TAIYEN_EXPORT HeapMap map_of(const ArchiveHeap& heap, const MapOptions& options = {});

/// The segments of a log heap; `colour` and `progress` count for nothing. Throws: Error{closed | invalid_argument (no cells)}. Complexity: linear in the segments.
TAIYEN_EXPORT HeapMap map_of(const LogHeap& heap, const MapOptions& options = {});

/// Rows of `columns` cells with a legend, in UTF-8.
TAIYEN_EXPORT std::string map_text(const HeapMap& map, std::size_t columns = 64);
TAIYEN_EXPORT std::string map_json(const HeapMap& map);
/// A picture of about 1000 × 800 whatever the heap's size.
TAIYEN_EXPORT std::string map_svg(const HeapMap& map);

}  // namespace taiyen
