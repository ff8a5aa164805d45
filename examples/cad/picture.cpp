#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "code_page.hpp"
#include "outline.hpp"

namespace cad {
namespace {

constexpr double default_width = 25;  // hundredths of a millimetre
constexpr double caption_height = 15;
constexpr double caption_strip = 44;

/// What entities inherit from the insert that shows them.
struct Context {
    Affine map;
    const NamedLayer* layer = nullptr;  ///< of the insert; null at the top
    std::optional<Rgb> colour;
    std::optional<std::int32_t> line_width;
    int depth = 0;
};

std::u32string wide(std::string_view ascii) { return {ascii.begin(), ascii.end()}; }

std::vector<std::u32string_view> lines_of(std::u32string_view text) {
    std::vector<std::u32string_view> lines;
    while (true) {
        const std::size_t end = text.find(U'\n');
        lines.push_back(text.substr(0, end));
        if (end == std::u32string_view::npos) return lines;
        text.remove_prefix(end + 1);
    }
}

class Painter {
public:
    Painter(Picture& picture, const Drawing& drawing, const PictureOptions& options) : picture_(picture), drawing_(drawing), options_(options) {}

    /// Fills first, so that they hide no line.
    void paint_all(const taiyen::vector<Entity>& entities, const Context& context) {
        const auto fills = [](const Entity& e) { return std::holds_alternative<Hatch>(e.shape) || std::holds_alternative<Solid>(e.shape); };
        for (const bool pass_of_fills : {true, false}) {
            for (const Entity& entity : entities)
                if (fills(entity) == pass_of_fills) paint(entity, context);
        }
    }

    void keep(std::string_view layer, Paint paint, Path path, Path clip = {}) {
        if (path.steps.empty()) return;
        if (!picture_.items.empty() && clip.steps.empty() && paint.width > 0) {
            PictureItem& last = picture_.items.back();
            if (last.layer == layer && last.paint == paint && last.clip.steps.empty()) {
                last.path.append(path);
                return;
            }
        }
        picture_.items.push_back({std::string(layer), std::move(paint), std::move(path), std::move(clip)});
    }

private:
    void paint(const Entity& entity, const Context& context) {
        const NamedLayer& layer = layer_of(entity, context);
        if (!layer.second.visible) return;
        layer_ = layer.first;
        paint_ = {colour_of(entity, layer.second, context), pixels(width_of(entity, layer.second, context)), dashes_of(entity, context)};
        std::visit([&](const auto& shape) { paint_shape(shape, entity, context); }, entity.shape);
    }

    template <class Curve>
    void paint_shape(const Curve& curve, const Entity&, const Context& context) {
        keep(layer_, paint_, transformed(outline(curve), context.map));
    }
    void paint_shape(const PointMark& point, const Entity&, const Context& context) {
        const Point2 at = context.map(point.at);
        Path dot;
        dot.arc(circular_arc(at, paint_.width * 1.2, 0, full_turn));
        keep(layer_, {paint_.colour, 0, {}}, std::move(dot));
    }
    void paint_shape(const Solid& solid, const Entity&, const Context& context) {
        keep(layer_, {paint_.colour, 0, {}}, transformed(outline(solid), context.map));
    }
    void paint_shape(const Hatch& hatch, const Entity&, const Context& context) {
        Path area = transformed(outline(hatch), context.map);
        if (hatch.solid) {
            keep(layer_, {mixed(paint_.colour, picture_.background, 0.35), 0, {}}, std::move(area));
        } else {
            Path lines = hatch_lines(hatch, context.map, bounds(area));
            keep(layer_, {mixed(paint_.colour, picture_.background, 0.4), paint_.width * 0.6, {}}, std::move(lines), std::move(area));
        }
    }
    void paint_shape(const Text& text, const Entity& entity, const Context& context) {
        if (!has_font()) {
            paint_box(entity, context);
            return;
        }
        const std::u32string shown = plain_text(text.content);
        const double width = options_.font->width(shown);
        const double left = text.horizontal == 0 || text.horizontal == 3 || text.horizontal == 5 ? 0 : text.horizontal == 2 ? -width : -width / 2;
        const double bottom = text.vertical == 3 ? -1 : text.vertical == 2 || text.horizontal == 4 ? -0.5 : text.vertical == 1 ? 0.3 : 0;
        const Affine placed = Affine::translation(text.at).after(Affine::rotation(text.angle));
        const Affine scaled =
            placed.after(Affine::scaling({text.height * text.width_factor, text.height})).after(Affine::translation({left, bottom}));
        keep(layer_, text_paint(text.height, context), transformed(options_.font->line(shown), context.map.after(scaled)));
    }
    void paint_shape(const MText& text, const Entity& entity, const Context& context) {
        if (!has_font()) {
            paint_box(entity, context);
            return;
        }
        // DXF's single line spacing is five thirds of the height.
        const double line_step = 5.0 / 3 * text.line_spacing;
        const std::u32string shown = plain_text(text.content);
        const auto lines = lines_of(shown);
        const double all = 1 + line_step * static_cast<double>(lines.size() - 1);
        const int column = (text.attachment - 1) % 3;
        const int row = (text.attachment - 1) / 3;
        double baseline = row == 0 ? -1 : row == 1 ? all / 2 - 1 : all - 1;
        const Affine placed = Affine::translation(text.at).after(Affine::rotation(text.angle)).after(Affine::scaling({text.height, text.height}));
        for (const std::u32string_view line : lines) {
            const double left = -options_.font->width(line) * column / 2;
            const Affine here = context.map.after(placed).after(Affine::translation({left, baseline}));
            keep(layer_, text_paint(text.height, context), transformed(options_.font->line(line), here));
            baseline -= line_step;
        }
    }
    void paint_shape(const Insert& insert, const Entity& entity, const Context& context) {
        if (insert.block == nullptr || context.depth == insert_depth_max) return;
        const NamedLayer& layer = layer_of(entity, context);
        for (std::int32_t column = 0; column < insert.columns; ++column) {
            for (std::int32_t row = 0; row < insert.rows; ++row) {
                const Context inner{context.map.after(placement(insert, column, row)), &layer, colour_of(entity, layer.second, context),
                                    width_of(entity, layer.second, context), context.depth + 1};
                paint_all(insert.block->second.entities, inner);
            }
        }
    }

    /// Every pattern that is not solid is drawn as parallel lines, an eighth of an inch apart at scale 1, rising at 45 degrees.
    static Path hatch_lines(const Hatch& hatch, const Affine& map, const Box& area) {
        constexpr double spacing = 3.175;
        constexpr double closest = 3;  // pixels
        Path lines;
        if (area.empty()) return lines;
        const Point2 along = map.vector(direction(hatch.angle + radians(45)));
        const Point2 unit = along * (1 / length(along));
        const Point2 across = turned_left(unit);
        const double step = std::max(closest, spacing * hatch.scale * map.scale());
        const double reach = length(area.high - area.low) / 2;
        for (double offset = -std::floor(reach / step) * step; offset <= reach; offset += step) {
            const Point2 middle = area.centre() + across * offset;
            lines.move_to(middle - unit * reach);
            lines.line_to(middle + unit * reach);
        }
        return lines;
    }

    void paint_box(const Entity& entity, const Context& context) {
        const Box box = bounds(entity);
        const Path frame{{MoveTo{box.low}, LineTo{{box.high.x, box.low.y}}, LineTo{box.high}, LineTo{{box.low.x, box.high.y}}, ClosePath{}}};
        keep(layer_, {mixed(paint_.colour, picture_.background, 0.5), 1, {}}, transformed(frame, context.map));
    }

    bool has_font() const { return options_.font != nullptr && !options_.font->empty(); }
    /// Small letters need thin strokes.
    Paint text_paint(double height, const Context& context) const {
        return {paint_.colour, std::clamp(height * context.map.scale() * 0.1, 0.7, paint_.width), {}};
    }

    /// A block's entities on layer 0 lie on the layer of the insert.
    static const NamedLayer& layer_of(const Entity& entity, const Context& context) {
        return context.layer != nullptr && std::string_view(entity.layer->first) == "0" ? *context.layer : *entity.layer;
    }
    static Rgb colour_of(const Entity& entity, const Layer& layer, const Context& context) {
        constexpr std::int32_t by_block = 0;
        constexpr std::int32_t by_layer = 256;
        const auto seen = [](const Colour& colour) {
            return colour.rgb < 0 ? palette_colour(colour.index)
                                  : Rgb{static_cast<std::uint8_t>(colour.rgb >> 16), static_cast<std::uint8_t>(colour.rgb >> 8),
                                        static_cast<std::uint8_t>(colour.rgb)};
        };
        if (entity.colour.rgb < 0 && entity.colour.index == by_layer) return seen(layer.colour);
        if (entity.colour.rgb < 0 && entity.colour.index == by_block) return context.colour.value_or(foreground);
        return seen(entity.colour);
    }
    static std::int32_t width_of(const Entity& entity, const Layer& layer, const Context& context) {
        switch (entity.line_width) {
            case width_by_layer: return layer.line_width;
            case width_by_block: return context.line_width.value_or(width_default);
            default: return entity.line_width;
        }
    }
    double pixels(std::int32_t line_width) const {
        constexpr double narrowest = 1.7;
        constexpr double widest = 4.2;
        const double hundredths = line_width < 0 ? default_width : line_width;
        return std::clamp(options_.pen * hundredths / default_width, narrowest, widest);
    }
    std::vector<double> dashes_of(const Entity& entity, const Context& context) const {
        constexpr double shortest = 2;  // pixels
        std::vector<double> dashes;
        if (entity.linetype != nullptr) {
            const double scale = context.map.scale() * drawing_.linetype_scale * entity.linetype_scale;
            for (const double dash : entity.linetype->second.dashes) dashes.push_back(std::max(shortest, std::abs(dash) * scale));
        }
        return dashes;
    }

    Picture& picture_;
    const Drawing& drawing_;
    const PictureOptions& options_;
    std::string_view layer_;
    Paint paint_;
};

/// The largest of 1, 2, 5, 10, 20, … that is at most `limit`.
double round_step(double limit) {
    const double power = std::pow(10, std::floor(std::log10(limit)));
    for (const double factor : {5.0, 2.0})
        if (factor * power <= limit) return factor * power;
    return power;
}

/// Lines at multiples of `step`, a dozen or so across the picture.
void paint_grid(Painter& painter, const Picture& picture, const Affine& map, double step, double bottom) {
    Path lines;
    for (double x = std::ceil(-map.origin.x / map.x.x / step) * step; map({x, 0}).x < picture.width; x += step) {
        lines.move_to({map({x, 0}).x, 0});
        lines.line_to({map({x, 0}).x, bottom});
    }
    for (double y = std::ceil((bottom - map.origin.y) / map.y.y / step) * step; map({0, y}).y > 0; y += step) {
        lines.move_to({0, map({0, y}).y});
        lines.line_to({picture.width, map({0, y}).y});
    }
    painter.keep({}, {mixed(picture.background, foreground, 0.07), 1, {}}, std::move(lines));
}

void paint_caption(Painter& painter, const Picture& picture, const StrokeFont& font, const std::string& left, const std::string& right) {
    const double baseline = picture.height - (caption_strip - caption_height) / 2;
    const Affine scaled = Affine::scaling({caption_height, -caption_height});
    const double right_start = picture.width - 20 - font.width(wide(right)) * caption_height;
    painter.keep({}, {mixed(picture.background, foreground, 0.06), 0, {}},
                 {{MoveTo{{0, picture.height - caption_strip}}, LineTo{{picture.width, picture.height - caption_strip}},
                   LineTo{{picture.width, picture.height}}, LineTo{{0, picture.height}}, ClosePath{}}});
    painter.keep({}, {mixed(foreground, picture.background, 0.1), 1.5, {}},
                 transformed(font.line(wide(left)), Affine::translation({20, baseline}).after(scaled)));
    painter.keep({}, {mixed(foreground, picture.background, 0.45), 1.3, {}},
                 transformed(font.line(wide(right)), Affine::translation({right_start, baseline}).after(scaled)));
}

std::string caption(const Drawing& drawing, const Box& extents, double step) {
    char text[160];
    std::snprintf(text, sizeof text, "%zu entities on %zu layer%s   %.4g x %.4g   grid %g", drawing.entities.size(), drawing.layers.size(),
                  drawing.layers.size() == 1 ? "" : "s", extents.width(), extents.height(), step);
    return text;
}

}  // namespace

Picture picture_of(const Drawing& drawing, std::string_view title, const PictureOptions& options) {
    Box extents = drawing.extents;
    if (extents.empty()) extents = {{0, 0}, {1, 1}};
    const double side = std::max({extents.width(), extents.height(), 1e-9});
    const double scale = (options.long_side - 2 * options.margin) / side;
    const bool with_caption = options.font != nullptr && !options.font->empty();
    const double short_side_min = options.long_side * 0.6;  // room for the caption

    Picture picture;
    picture.title = title;
    picture.width = std::ceil(std::max(short_side_min, extents.width() * scale + 2 * options.margin));
    const double bottom = std::ceil(std::max(short_side_min, extents.height() * scale + 2 * options.margin));
    picture.height = bottom + (with_caption ? caption_strip : 0);

    Affine map = Affine::scaling({scale, -scale});
    map.origin = Point2{picture.width / 2, bottom / 2} - map.vector(extents.centre());
    Painter painter(picture, drawing, options);
    const double step = round_step(side / 8);
    if (options.grid) paint_grid(painter, picture, map, step, bottom);
    painter.paint_all(drawing.entities, {map, nullptr, {}, {}, 0});
    if (with_caption) paint_caption(painter, picture, *options.font, picture.title, caption(drawing, extents, step));
    return picture;
}

}  // namespace cad
