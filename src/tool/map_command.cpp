#include <taiyen/base/system_error.hpp>
#include <taiyen/inspect/heap_map.hpp>
#include <taiyen/store/archive_heap.hpp>

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fstream>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/log_heap.hpp"

namespace taiyen::tool {
namespace {

/// Cells of a row: a power of two that fits behind the offset, 8 to 128; without a terminal 64.
std::size_t row_cells() {
    constexpr std::size_t offset_columns = 16;
    const std::size_t columns = terminal_columns(STDOUT_FILENO).value_or(offset_columns + 64);
    return std::bit_floor(std::clamp<std::size_t>(columns > offset_columns ? columns - offset_columns : 0, 8, 128));
}

Exit run_map(const Given& given) {
    MapOptions options;
    const std::string colour = given.value("colour").value_or("size");
    if (colour != "size" && colour != "owner" && colour != "type")
        throw Error(errc::invalid_argument, "--colour is size, owner or type, not '" + colour + "'");
    options.colour = colour == "owner" ? MapColour::owner : colour == "type" ? MapColour::type : MapColour::size;
    const auto svg = given.value("svg");
    const bool is_text = !svg && !given.has("json");
    options.cells_max = given.number("cells", is_text ? row_cells() * 24 : 4096);
    HeapMap map;
    if (is_of_log_heap(given)) {
        if (given.has("colour")) throw Error(errc::invalid_argument, given.files[0], "the colours of a log heap are ages; leave --colour out");
        map = map_of(open_log_heap(given), options);
    } else {
        const ArchiveHeap heap(open_read_only, given.files[0], given.heap_options());
        ProgressLine line("looking at " + given.files[0]);
        options.progress = line.progress();
        map = map_of(heap, options);
    }
    if (svg) {
        std::ofstream out(*svg, std::ios::binary);
        out << map_svg(map);
        out.close();
        if (!out) throw error_of_errno(errno, *svg, "writing the picture");
        if (!given.has("json")) print("the picture is in " + visible(*svg) + "\n");
    }
    if (given.has("json")) print(map_json(map));
    if (is_text) print(map_text(map, row_cells()));
    return Exit::ok;
}

}  // namespace

Command map_command() {
    return {"map",
            "A picture of the heap: what is live, free, metadata",
            "Draws the heap in use as rows of cells, from its first byte to its last, each cell a page or a power of two of them, so that the "
            "picture of a heap of any size can be read. "
            "Page efficiency is how much of the pages that hold blocks is live; availability is how much of the free space can be used for blocks of "
            "a size. Of a log heap a cell is a segment, or a power of two of them.",
            {"FILE"},
            {{"svg", "OUT", "write the picture as SVG into this file"},
             {"colour", "BY",
              "'size': by the size of blocks (the default), or 'owner': by the named object that holds them, or 'type': by the type that holds them; "
              "both read the whole heap"},
             {"cells", "N", "at most so many cells (4096; as text what fits the terminal)"}},
            "",
            run_map};
}

}  // namespace taiyen::tool
