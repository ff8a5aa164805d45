#include "stroke_font.hpp"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace cad {
namespace {

constexpr double capital_height = 9;

/// The number in "# Key:  value" if the line is that.
std::optional<double> setting(const std::string& line, std::string_view key) {
    const std::size_t at = line.find(key);
    if (!line.starts_with('#') || at == std::string::npos) return std::nullopt;
    return std::strtod(line.c_str() + at + key.size(), nullptr);
}

std::optional<char32_t> hexadecimal(std::string_view digits) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return error == std::errc() && end != digits.data() ? std::optional(static_cast<char32_t>(value)) : std::nullopt;
}

/// "x,y;x,y,Abulge;…": a bulge bends the stroke that leads to its point.
Path stroke(const std::string& line) {
    Path path;
    std::optional<Point2> pen;
    const char* at = line.c_str();
    while (*at != '\0') {
        char* end = nullptr;
        Point2 to{};
        to.x = std::strtod(at, &end);
        if (end == at || *end != ',') break;
        at = end + 1;
        to.y = std::strtod(at, &end);
        at = end;
        double bulge = 0;
        if (at[0] == ',' && at[1] == 'A') {
            bulge = std::strtod(at + 2, &end);
            at = end;
        }
        if (!pen)
            path.move_to(to);
        else if (bulge != 0 && *pen != to)
            path.arc(bulged(*pen, to, bulge));
        else
            path.line_to(to);
        pen = to;
        at += *at == ';' ? 1 : 0;
    }
    return path;
}

}  // namespace

StrokeFont::StrokeFont(const std::filesystem::path& file) {
    std::ifstream in(file);
    Glyph* current = nullptr;
    for (std::string line; std::getline(in, line);) {
        if (const auto letter_gap = setting(line, "LetterSpacing:")) {
            letter_gap_ = *letter_gap;
        } else if (const auto word_gap = setting(line, "WordSpacing:")) {
            word_gap_ = *word_gap;
        } else if (line.starts_with('[')) {
            const auto character = hexadecimal(std::string_view(line).substr(1));
            current = character ? &glyphs_[*character] : nullptr;
        } else if (current != nullptr && line.starts_with('C')) {
            const auto base = hexadecimal(std::string_view(line).substr(1));
            if (const Glyph* other = base ? glyph(*base) : nullptr; other != nullptr && other != current) current->strokes.append(other->strokes);
        } else if (current != nullptr && !line.empty() && line[0] != '#') {
            current->strokes.append(stroke(line));
        }
        if (current != nullptr && !current->strokes.steps.empty()) current->width = bounds(current->strokes).high.x;
    }
}

const StrokeFont::Glyph* StrokeFont::glyph(char32_t character) const {
    const auto at = glyphs_.find(character);
    return at == glyphs_.end() ? nullptr : &at->second;
}

template <class Place>
double StrokeFont::lay_out(std::u32string_view text, Place place) const {
    double x = 0;
    double end = 0;
    for (const char32_t character : text) {
        if (const Glyph* found = glyph(character); found != nullptr && !found->strokes.steps.empty()) {
            place(*found, x / capital_height);
            end = x + found->width;
            x = end + letter_gap_;
        } else {
            x += word_gap_;
            end = x;
        }
    }
    return end / capital_height;
}

Path StrokeFont::line(std::u32string_view text) const {
    Path path;
    lay_out(text, [&](const Glyph& glyph, double x) {
        path.append(transformed(glyph.strokes, Affine::translation({x, 0}).after(Affine::scaling({1 / capital_height, 1 / capital_height}))));
    });
    return path;
}

double StrokeFont::width(std::u32string_view text) const {
    return lay_out(text, [](const Glyph&, double) {});
}

}  // namespace cad
