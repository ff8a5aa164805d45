#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>

#include "demo/console.hpp"
#include "demo/stages.hpp"
#include "picture.hpp"
#include "render_png.hpp"
#include "render_svg.hpp"

namespace cad::demo {
namespace {

namespace fs = std::filesystem;

std::string file_name(std::string name) {
    std::replace(name.begin(), name.end(), '/', '-');
    return name;
}

void write_svg_file(const Picture& picture, const fs::path& file) {
    std::ofstream out(file);
    write_svg(picture, out);
    if (!out.flush()) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace

bool draw_pictures(const Setting& setting) {
    heading("3. Pictures, drawn from the heap, opened to look");
    const StrokeFont font(fs::path(font_folder) / "unicode.lff");
    if (font.empty()) say("(no stroke font in " + std::string(font_folder) + ": texts are drawn as boxes)");
    const taiyen::SnapshotHeap heap(taiyen::open_read_only, setting.heap_file());
    const Document& document = *heap.find<Document>("document");
    PictureOptions options;
    options.font = &font;
    for (const char* name : shown_drawings) {
        const auto at = document.drawings.find(name);
        if (at == document.drawings.end()) {
            say(std::string(name) + " is not in this library");
            continue;
        }
        const Picture picture = picture_of(at->second, name, options);
        const fs::path base = setting.out / file_name(name);
        const fs::path svg = fs::path(base) += ".svg";
        const fs::path png = fs::path(base) += ".png";
        write_svg_file(picture, svg);
        write_png(picture, png);
        row(fs::path(name).filename().string(), bytes_text(fs::file_size(svg)) + ", " + bytes_text(fs::file_size(png)),
            base.filename().string() + ".{svg,png}");
    }
    row("in", setting.out.string());
    return true;
}

}  // namespace cad::demo
