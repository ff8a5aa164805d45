#include "render_png.hpp"

#include <cairo/cairo.h>

#include <memory>
#include <stdexcept>

namespace cad {
namespace {

struct Destroy {
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
    void operator()(cairo_t* context) const { cairo_destroy(context); }
};

void set_colour(cairo_t* context, Rgb colour) { cairo_set_source_rgb(context, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0); }

/// The unit circle's arc, seen through the map that makes an ellipse of it.
void add_arc(cairo_t* context, const ArcTo& arc) {
    constexpr double flat = 1e-9;
    if (std::abs(arc.u.x * arc.v.y - arc.u.y * arc.v.x) < flat) {
        cairo_line_to(context, arc.to().x, arc.to().y);  // cairo refuses a map that can't be inverted
        return;
    }
    cairo_matrix_t before;
    cairo_get_matrix(context, &before);
    const cairo_matrix_t map{arc.u.x, arc.u.y, arc.v.x, arc.v.y, arc.centre.x, arc.centre.y};
    cairo_transform(context, &map);
    (arc.sweep >= 0 ? cairo_arc : cairo_arc_negative)(context, 0, 0, 1, arc.start, arc.start + arc.sweep);
    cairo_set_matrix(context, &before);
}

void set_path(cairo_t* context, const Path& path) {
    struct Adder {
        cairo_t* context;
        void operator()(const MoveTo& s) const { cairo_move_to(context, s.to.x, s.to.y); }
        void operator()(const LineTo& s) const { cairo_line_to(context, s.to.x, s.to.y); }
        void operator()(const CurveTo& s) const { cairo_curve_to(context, s.control1.x, s.control1.y, s.control2.x, s.control2.y, s.to.x, s.to.y); }
        void operator()(const ArcTo& s) const { add_arc(context, s); }
        void operator()(const ClosePath&) const { cairo_close_path(context); }
    };
    cairo_new_path(context);
    for (const PathStep& step : path.steps) std::visit(Adder{context}, step);
}

void paint(cairo_t* context, const PictureItem& item) {
    cairo_save(context);
    if (!item.clip.steps.empty()) {
        set_path(context, item.clip);
        cairo_clip(context);
    }
    set_colour(context, item.paint.colour);
    set_path(context, item.path);
    if (item.paint.width > 0) {
        cairo_set_line_width(context, item.paint.width);
        cairo_set_dash(context, item.paint.dashes.data(), static_cast<int>(item.paint.dashes.size()), 0);
        cairo_stroke(context);
    } else {
        cairo_fill(context);
    }
    cairo_restore(context);
}

void check(cairo_status_t status, const std::filesystem::path& file) {
    if (status != CAIRO_STATUS_SUCCESS) throw std::runtime_error(file.string() + ": " + cairo_status_to_string(status));
}

}  // namespace

void write_png(const Picture& picture, const std::filesystem::path& file) {
    const std::unique_ptr<cairo_surface_t, Destroy> surface(
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(picture.width), static_cast<int>(picture.height)));
    const std::unique_ptr<cairo_t, Destroy> context(cairo_create(surface.get()));
    cairo_set_fill_rule(context.get(), CAIRO_FILL_RULE_EVEN_ODD);
    cairo_set_line_cap(context.get(), CAIRO_LINE_CAP_ROUND);
    cairo_set_line_join(context.get(), CAIRO_LINE_JOIN_ROUND);
    set_colour(context.get(), picture.background);
    cairo_paint(context.get());
    for (const PictureItem& item : picture.items) paint(context.get(), item);
    check(cairo_status(context.get()), file);
    check(cairo_surface_write_to_png(surface.get(), file.c_str()), file);
}

}  // namespace cad
