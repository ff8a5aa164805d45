#include "checksum.hpp"

#include <bit>
#include <string_view>

namespace cad {
namespace {

/// Collects words into one number; the order matters.
class Digest {
public:
    void add(std::uint64_t word) {
        state_ = (std::rotl(state_, 29) ^ word) * 0x9e37'79b9'7f4a'7c15U;
        state_ ^= state_ >> 32U;
    }
    void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
    void add(std::int32_t value) { add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(value))); }
    void add(std::uint32_t value) { add(static_cast<std::uint64_t>(value)); }
    void add(bool value) { add(static_cast<std::uint64_t>(value)); }
    void add(std::string_view text) {
        add(static_cast<std::uint64_t>(text.size()));
        for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    }
    void add(Point2 p) {
        add(p.x);
        add(p.y);
    }
    void add(const Box& box) {
        add(box.low);
        add(box.high);
    }
    void add(const Colour& colour) {
        add(colour.index);
        add(colour.rgb);
    }
    template <class T>
    void add(const taiyen::vector<T>& values) {
        add(static_cast<std::uint64_t>(values.size()));
        for (const T& value : values) add(value);
    }
    template <class... Alternatives>
    void add(const std::variant<Alternatives...>& value) {
        add(static_cast<std::uint64_t>(value.index()));
        std::visit([this](const auto& alternative) { this->add(alternative); }, value);
    }
    void add(const Line& s) { all(s.from, s.to); }
    void add(const Circle& s) { all(s.centre, s.radius); }
    void add(const Arc& s) { all(s.centre, s.radius, s.start, s.sweep); }
    void add(const Ellipse& s) { all(s.centre, s.major, s.ratio, s.start, s.sweep); }
    void add(const Vertex& v) { all(v.at, v.bulge); }
    void add(const Polyline& s) { all(s.vertices, s.closed); }
    void add(const ControlPoint& c) { all(c.at, c.weight); }
    void add(const Spline& s) { all(s.degree, s.closed, s.knots, s.control_points, s.fit_points); }
    void add(const Text& s) { all(s.at, s.height, s.angle, s.width_factor, s.horizontal, s.vertical, std::string_view(s.content)); }
    void add(const MText& s) { all(s.at, s.height, s.angle, s.box_width, s.line_spacing, s.attachment, std::string_view(s.content)); }
    void add(const Insert& s) { all(name_of(s.block), s.at, s.scale, s.angle, s.columns, s.rows, s.spacing); }
    void add(const PointMark& s) { add(s.at); }
    void add(const Solid& s) { all(s.corners[0], s.corners[1], s.corners[2], s.corners[3]); }
    void add(const HatchLoop& loop) { add(loop.edges); }
    void add(const Hatch& s) { all(std::string_view(s.pattern), s.scale, s.angle, s.solid, s.loops); }
    void add(const Image& s) { all(s.at, s.u, s.v, s.pixels, std::string_view(s.file)); }
    void add(const Entity& e) { all(name_of(e.layer), name_of(e.linetype), e.colour, e.line_width, e.linetype_scale, e.id, e.shape); }
    void add(const Layer& layer) { all(layer.colour, layer.line_width, layer.visible); }
    void add(const Linetype& type) { add(type.dashes); }
    void add(const Block& block) { all(block.base, block.entities); }
    void add(const SpatialIndex& index) {
        // The table's own order says nothing, so cells are summed.
        std::uint64_t sum = 0;
        for (const auto& [cell, numbers] : index.cells) {
            Digest one;
            one.add(cell);
            one.add(numbers);
            sum += one.value();
        }
        all(index.cell_size, sum, index.large);
    }
    template <class Value>
    void add(const taiyen::map<taiyen::string, Value>& named) {
        add(static_cast<std::uint64_t>(named.size()));
        for (const auto& [name, value] : named) {
            add(std::string_view(name));
            add(value);
        }
    }
    void add(const Drawing& d) { all(d.layers, d.linetypes, d.blocks, d.entities, d.index, d.extents, d.linetype_scale, d.unsupported, d.last_id); }

    std::uint64_t value() const { return state_; }

private:
    template <class... Parts>
    void all(const Parts&... parts) {
        (add(parts), ...);
    }
    template <class Named>
    static std::string_view name_of(const Named* named) {
        return named == nullptr ? std::string_view() : std::string_view(named->first);
    }

    std::uint64_t state_ = 0x7461'6979'656eU;
};

}  // namespace

std::uint64_t checksum(std::string_view name, const Drawing& drawing) {
    Digest digest;
    digest.add(name);
    digest.add(drawing);
    return digest.value();
}

std::uint64_t checksum(const Document& document) {
    std::uint64_t sum = document.revision;
    for (const auto& [name, drawing] : document.drawings) sum += checksum(name, drawing);
    return sum;
}

}  // namespace cad
