#include "render_svg.hpp"

#include <charconv>
#include <cmath>
#include <ostream>

namespace cad {
namespace {

/// With at most two decimals, which is a hundredth of a pixel.
std::string number(double value) {
    const double rounded = std::round(value * 100) / 100;
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, rounded == 0 ? 0.0 : rounded).ptr;
    return {text, end};
}

std::string pair(Point2 p) { return number(p.x) + ' ' + number(p.y); }

std::string hex(Rgb colour) {
    char text[8];
    std::snprintf(text, sizeof text, "#%02x%02x%02x", colour.red, colour.green, colour.blue);
    return text;
}

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            // XML has no other control characters, not even as references.
            default: result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return result;
}

/// An arc in SVG's terms. Its axes are the two conjugate vectors of the ellipse that are at right angles.
std::string arc_command(const ArcTo& arc) {
    const double dot = arc.u.x * arc.v.x + arc.u.y * arc.v.y;
    const double squares = arc.u.x * arc.u.x + arc.u.y * arc.u.y - arc.v.x * arc.v.x - arc.v.y * arc.v.y;
    const double turn = std::atan2(2 * dot, squares) / 2;
    const Point2 major = arc.u * std::cos(turn) + arc.v * std::sin(turn);
    const Point2 minor = arc.v * std::cos(turn) - arc.u * std::sin(turn);
    const bool positive = (arc.u.x * arc.v.y - arc.u.y * arc.v.x > 0) == (arc.sweep > 0);
    const std::string prefix = 'A' + number(length(major)) + ' ' + number(length(minor)) + ' ' + number(degrees(std::atan2(major.y, major.x))) +
                               " 0 " + (positive ? "1 " : "0 ");
    // Two halves: the end points of a full turn coincide, and those of nearly a half turn leave the centre undecided after rounding.
    return prefix + pair(arc.at(arc.start + arc.sweep / 2)) + prefix + pair(arc.to());
}

std::string path_data(const Path& path) {
    struct Writer {
        std::string text;
        void operator()(const MoveTo& s) { text += 'M' + pair(s.to); }
        void operator()(const LineTo& s) { text += 'L' + pair(s.to); }
        void operator()(const CurveTo& s) { text += 'C' + pair(s.control1) + ' ' + pair(s.control2) + ' ' + pair(s.to); }
        void operator()(const ArcTo& s) { text += arc_command(s); }
        void operator()(const ClosePath&) { text += 'Z'; }
    } writer;
    for (const PathStep& step : path.steps) std::visit(writer, step);
    return writer.text;
}

void write_item(const PictureItem& item, std::size_t number_of_item, std::ostream& out) {
    std::string clip;
    if (!item.clip.steps.empty()) {
        const std::string id = "clip" + std::to_string(number_of_item);
        out << "<clipPath id=\"" << id << "\"><path clip-rule=\"evenodd\" d=\"" << path_data(item.clip) << "\"/></clipPath>\n";
        clip = " clip-path=\"url(#" + id + ")\"";
    }
    out << "<path";
    if (!item.layer.empty()) out << " data-layer=\"" << escaped(item.layer) << '"';
    if (item.paint.width > 0)
        out << " stroke=\"" << hex(item.paint.colour) << "\" stroke-width=\"" << number(item.paint.width) << '"';
    else
        out << " fill=\"" << hex(item.paint.colour) << "\" fill-rule=\"evenodd\"";
    if (!item.paint.dashes.empty()) {
        out << " stroke-dasharray=\"";
        for (const double dash : item.paint.dashes) out << number(dash) << ' ';
        out << '"';
    }
    out << clip << " d=\"" << path_data(item.path) << "\"/>\n";
}

}  // namespace

void write_svg(const Picture& picture, std::ostream& out) {
    out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << number(picture.width) << "\" height=\""
        << number(picture.height) << "\" viewBox=\"0 0 " << number(picture.width) << ' ' << number(picture.height) << "\">\n<title>"
        << escaped(picture.title) << "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"" << hex(picture.background)
        << "\"/>\n<g fill=\"none\" stroke-linecap=\"round\" stroke-linejoin=\"round\">\n";
    for (std::size_t i = 0; i < picture.items.size(); ++i) write_item(picture.items[i], i, out);
    out << "</g>\n</svg>\n";
}

}  // namespace cad
