#pragma once
/// LibreCAD's stroke fonts (.lff), read in place: text made of pen strokes, the same in every output.

#include <filesystem>
#include <map>
#include <string_view>

#include "path.hpp"

namespace cad {

/// Where Debian's librecad-data puts its fonts.
inline constexpr const char* font_folder = "/usr/share/librecad/fonts";

class StrokeFont {
public:
    /// No glyphs: every text is empty.
    StrokeFont() = default;
    /// Capitals are nine units high in the file. A file that is missing or holds no glyphs makes an empty font.
    explicit StrokeFont(const std::filesystem::path& file);

    bool empty() const { return glyphs_.empty(); }
    /// One line whose base line starts at the origin, capitals 1 high. Characters without a glyph leave a gap.
    Path line(std::u32string_view text) const;
    /// Its width.
    double width(std::u32string_view text) const;

private:
    struct Glyph {
        Path strokes;
        double width = 0;
    };
    const Glyph* glyph(char32_t character) const;
    /// Calls `place(glyph, x)` for each character that has strokes; returns the width.
    template <class Place>
    double lay_out(std::u32string_view text, Place place) const;

    std::map<char32_t, Glyph> glyphs_;
    double letter_gap_ = 3;
    double word_gap_ = 6.75;
};

}  // namespace cad
