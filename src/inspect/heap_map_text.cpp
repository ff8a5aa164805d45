// A heap map as text and as JSON.

#include <taiyen/inspect/heap_map.hpp>

#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "inspect/figures.hpp"

namespace taiyen {
namespace {

/// What most of the cell is.
const char* sign_of(const MapCell& cell) {
    const std::uint64_t all = cell.bytes();
    if (all == 0) return " ";
    if (cell.metadata_bytes * 2 > all) return "m";
    if (cell.live_bytes == 0) {
        if (cell.growth_bytes * 2 > all) return "+";
        return cell.released_bytes * 2 > all ? " " : "·";
    }
    static constexpr std::array<const char*, 4> shades{"░", "▒", "▓", "█"};
    const std::uint64_t usable = all - cell.metadata_bytes;
    return shades[std::min<std::size_t>(3, static_cast<std::size_t>(cell.live_bytes * 4 / std::max<std::uint64_t>(1, usable)))];
}

}  // namespace

std::string map_text(const HeapMap& map, std::size_t columns) {
    std::string text = map.path.filename().string() + ": " + inspect::bytes_text(map.extent_bytes) + " in use, a cell is " +
                       inspect::bytes_text(map.cell_bytes) + "\n";
    columns = std::max<std::size_t>(columns, 1);
    for (std::size_t first = 0; first < map.cells.size(); first += columns) {
        const std::string label = inspect::offset_text(first * map.cell_bytes);
        text += std::string(label.size() < 14 ? 14 - label.size() : 0, ' ') + label + "  ";
        for (std::size_t i = first; i < std::min(first + columns, map.cells.size()); ++i) text += sign_of(map.cells[i]);
        text += "\n";
    }
    text += "live: ░ less than a quarter, ▒ half, ▓ three quarters, █ more   · free   (blank) free without disk blocks";
    text += map.colour == MapColour::age ? "\n" : "   m metadata   + kept for growth\n";
    text += inspect::figures_text(map) + "\n";
    return text;
}

std::string map_json(const HeapMap& map) {
    const auto add = [](JsonWriter& json, const MapCell& cell) {
        json.member("live_bytes", cell.live_bytes)
            .member("free_bytes", cell.free_bytes)
            .member("released_bytes", cell.released_bytes)
            .member("metadata_bytes", cell.metadata_bytes)
            .member("growth_bytes", cell.growth_bytes)
            .member("dirty_bytes", cell.dirty_bytes);
    };
    JsonWriter json;
    json.begin_object()
        .member("file", map.path.native())
        .member("capacity_bytes", map.capacity_bytes)
        .member("extent_bytes", map.extent_bytes)
        .member("cell_bytes", map.cell_bytes)
        .member("live_blocks", map.live_blocks);
    add(json, map.sum);
    json.member("page_efficiency", map.page_efficiency).key("availability").begin_array();
    for (const Availability& available : map.availability)
        json.begin_object().member("bytes", available.bytes).member("share", available.share).end_object();
    json.end_array()
        .member("colour", map.colour == MapColour::size    ? "size"
                          : map.colour == MapColour::owner ? "owner"
                          : map.colour == MapColour::type  ? "type"
                                                           : "age")
        .key("colours")
        .begin_array();
    for (const MapKey& key : map.colours)
        json.begin_object().member("label", key.label).member("bytes", key.bytes).member("blocks", key.blocks).end_object();
    json.end_array().key("cells").begin_array();
    for (const MapCell& cell : map.cells) {
        json.begin_object();
        add(json, cell);
        json.member("colour", cell.colour).end_object();
    }
    json.end_array().end_object();
    return json.text() + "\n";
}

}  // namespace taiyen
