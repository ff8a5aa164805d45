// A heap map as SVG: cells row by row, each filled from below as far as it is live, in the colour of what most of it is; legend and figures beside them.

#include <taiyen/inspect/heap_map.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/json.hpp"
#include "inspect/figures.hpp"

namespace taiyen {
namespace {

/// Small blocks light and cold, large ones dark and warm: an order that survives grey printing.
constexpr std::array<const char*, 9> size_colours{"#b7e4f0", "#7fcbe0", "#46adc9", "#2b8cbe", "#2b62a8", "#5e4fa2", "#9e3d8f", "#d1495b", "#8c1c2e"};
/// Owners have no order: colours that are easy to tell apart, grey for the rest, red for nobody's.
constexpr std::array<const char*, 10> owner_colours{"#3366aa", "#11aa99", "#66aa55", "#ccb22b", "#ee7733",
                                                    "#aa4488", "#55b4e9", "#7a5230", "#99c94d", "#9a9a9a"};
constexpr const char* nobody_colour = "#d62728";
constexpr const char* free_colour = "#e9edf0";
constexpr const char* released_colour = "#fafafa";
constexpr const char* metadata_colour = "#4a545c";
constexpr const char* growth_colour = "#cfe3c8";
constexpr const char* dirty_colour = "#e6550d";

constexpr double left = 130;
constexpr double top = 86;
constexpr double cell_area = 640;
constexpr double legend_width = 250;
/// Steps of a cell's filling: more can't be seen.
constexpr unsigned steps = 8;

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", std::round(value * 100) / 100);
    return text;
}

/// As XML text: valid UTF-8, at most so many characters.
std::string escaped(std::string_view text, std::size_t characters_max = 1000) {
    std::string made;
    std::size_t characters = 0;
    for (std::size_t i = 0; i < text.size(); ++characters) {
        if (characters + 1 == characters_max && text.size() - i > 1) return made + "\xe2\x80\xa6";
        const char c = text[i];
        const std::size_t bytes = static_cast<unsigned char>(c) < 0x80 ? 1 : utf8_sequence_bytes(text.substr(i));
        switch (c) {
            case '&': made += "&amp;"; break;
            case '<': made += "&lt;"; break;
            case '>': made += "&gt;"; break;
            case '"': made += "&quot;"; break;
            default: made += bytes == 0 || (bytes == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) ? "?" : text.substr(i, bytes);
        }
        i += std::max<std::size_t>(1, bytes);
    }
    return made;
}

/// The look of a cell; neighbours of one look are drawn as one.
struct Look {
    const char* base = free_colour;
    const char* live = nullptr;
    unsigned filled = 0;
    bool dirty = false;
    bool operator==(const Look&) const = default;
};

class Picture {
public:
    explicit Picture(const HeapMap& map) : map_(map) {
        const std::size_t cells = std::max<std::size_t>(1, map.cells.size());
        columns_ = std::size_t{1} << static_cast<unsigned>(std::ceil(std::log2(static_cast<double>(cells)) / 2));
        rows_ = (cells + columns_ - 1) / columns_;
        side_ = cell_area / static_cast<double>(columns_);
    }

    std::string draw() {
        const double height = top + std::max(side_ * static_cast<double>(rows_), 22.0 * static_cast<double>(map_.colours.size() + 9)) + 60;
        const double width = left + cell_area + 30 + legend_width;
        svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) + "\" width=\"" + number(width) +
               "\" height=\"" + number(height) + "\" font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"12\">\n";
        svg_ += "<title>Map of the heap " + escaped(map_.path.filename().string()) + "</title>\n";
        rectangle(0, 0, width, height, "#ffffff");
        text(24, 34, escaped(map_.path.filename().string()), "font-size=\"20\" font-weight=\"bold\"");
        text(24, 56,
             inspect::bytes_text(map_.sum.live_bytes) + " live in " + std::to_string(map_.live_blocks) + " blocks; " +
                 inspect::bytes_text(map_.extent_bytes) + " in use of " + inspect::bytes_text(map_.capacity_bytes) +
                 " &#183; one cell: " + inspect::bytes_text(map_.cell_bytes) + ", a row: " + inspect::bytes_text(map_.cell_bytes * columns_),
             "fill=\"#444\"");
        draw_cells();
        draw_legend(left + cell_area + 30);
        text(24, height - 24, escaped(inspect::figures_text(map_)), "fill=\"#444\" font-size=\"10\"");
        return svg_ + "</svg>\n";
    }

private:
    void rectangle(double x, double y, double width, double height, const char* colour, const char* more = "") {
        svg_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) + "\" height=\"" + number(height) + "\" fill=\"" +
                colour + "\"" + more + "/>\n";
    }
    void text(double x, double y, const std::string& content, const char* more = "") {
        svg_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + more + ">" + content + "</text>\n";
    }

    const char* colour_of(std::size_t key) const {
        if (map_.colour == MapColour::size || map_.colour == MapColour::age) return size_colours[std::min(key, size_colours.size() - 1)];
        if (key + 1 == map_.colours.size()) return nobody_colour;
        return owner_colours[std::min(key, owner_colours.size() - 1)];
    }

    Look look_of(const MapCell& cell) const {
        Look look;
        const std::uint64_t all = std::max<std::uint64_t>(1, cell.bytes());
        look.dirty = cell.dirty_bytes != 0;
        if (cell.metadata_bytes * 2 > all) {
            look.base = metadata_colour;
            return look;
        }
        if (cell.released_bytes * 2 > all - cell.live_bytes) look.base = released_colour;
        if (cell.growth_bytes * 2 > all - cell.live_bytes) look.base = growth_colour;
        if (cell.live_bytes != 0) {
            look.live = colour_of(cell.colour);
            const double share = static_cast<double>(cell.live_bytes) / static_cast<double>(all - cell.metadata_bytes);
            look.filled = std::clamp(static_cast<unsigned>(std::lround(share * steps)), 1U, steps);
        }
        return look;
    }

    void draw_cells() {
        const std::size_t labelled = std::max<std::size_t>(1, rows_ / 16);
        for (std::size_t row = 0; row < rows_; ++row) {
            const double y = top + static_cast<double>(row) * side_;
            if (row % labelled == 0) {
                text(left - 8, y + std::min(side_, 14.0) * 0.8, inspect::offset_text(row * columns_ * map_.cell_bytes),
                     "text-anchor=\"end\" fill=\"#666\" font-size=\"10\"");
            }
            const std::size_t end = std::min((row + 1) * columns_, map_.cells.size());
            for (std::size_t i = row * columns_; i < end;) {
                const Look look = look_of(map_.cells[i]);
                std::size_t next = i + 1;
                while (next < end && look_of(map_.cells[next]) == look) ++next;
                draw_run(look, left + static_cast<double>(i - row * columns_) * side_, y, static_cast<double>(next - i) * side_);
                i = next;
            }
        }
        svg_ += "<g stroke=\"#ffffff\" stroke-width=\"" + number(std::min(1.0, side_ / 10)) + "\">\n";
        for (std::size_t column = 1; column < columns_; ++column) {
            const double x = left + static_cast<double>(column) * side_;
            line(x, top, x, top + side_ * static_cast<double>(rows_));
        }
        for (std::size_t row = 1; row < rows_; ++row) {
            const double y = top + static_cast<double>(row) * side_;
            line(left, y, left + cell_area, y);
        }
        svg_ += "</g>\n";
        svg_ += "<rect x=\"" + number(left) + "\" y=\"" + number(top) + "\" width=\"" + number(cell_area) + "\" height=\"" +
                number(side_ * static_cast<double>(rows_)) + "\" fill=\"none\" stroke=\"#c4cbd0\"/>\n";
    }
    void line(double x1, double y1, double x2, double y2) {
        svg_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) + "\"/>\n";
    }

    void draw_run(const Look& look, double x, double y, double width) {
        rectangle(x, y, width, side_, look.base);
        if (look.filled != 0) {
            const double height = side_ * look.filled / steps;
            rectangle(x, y + side_ - height, width, height, look.live);
        }
        if (look.dirty) rectangle(x, y, width, std::max(1.5, side_ / 6), dirty_colour);
    }

    void draw_legend(double x) {
        double y = top;
        const auto entry = [&](const char* colour, const std::string& label, const std::string& figure) {
            rectangle(x, y, 14, 14, colour, " stroke=\"#b0b8be\" stroke-width=\"0.5\"");
            text(x + 22, y + 11.5, escaped(label, 24));
            text(x + legend_width - 20, y + 11.5, escaped(figure), "text-anchor=\"end\" fill=\"#666\"");
            y += 22;
        };
        text(x, y + 4,
             map_.colour == MapColour::size    ? "live, by the size of blocks"
             : map_.colour == MapColour::owner ? "live, by the object that holds it"
             : map_.colour == MapColour::age   ? "live, by when its segment was filled"
                                               : "live, by the type that holds it",
             "font-weight=\"bold\"");
        y += 16;
        for (std::size_t key = 0; key < map_.colours.size(); ++key) {
            const MapKey& colour = map_.colours[key];
            if (colour.blocks != 0) entry(colour_of(key), colour.label, inspect::bytes_text(colour.bytes));
        }
        y += 20;
        text(x, y + 4, "not live", "font-weight=\"bold\"");
        y += 16;
        entry(free_colour, "free", inspect::bytes_text(map_.sum.free_bytes));
        if (map_.sum.released_bytes != 0) entry(released_colour, "free, no disk blocks", inspect::bytes_text(map_.sum.released_bytes));
        if (map_.sum.growth_bytes != 0) entry(growth_colour, "kept for growth", inspect::bytes_text(map_.sum.growth_bytes));
        entry(metadata_colour, "metadata", inspect::bytes_text(map_.sum.metadata_bytes));
        if (map_.sum.dirty_bytes != 0) entry(dirty_colour, "not saved yet", inspect::bytes_text(map_.sum.dirty_bytes));
    }

    const HeapMap& map_;
    std::size_t columns_ = 1;
    std::size_t rows_ = 1;
    double side_ = 1;
    std::string svg_;
};

}  // namespace

std::string map_svg(const HeapMap& map) { return Picture(map).draw(); }

}  // namespace taiyen
