#include "dxf_import.hpp"

#include <dxflib/dl_creationadapter.h>
#include <dxflib/dl_dxf.h>

#include <algorithm>
#include <stdexcept>

#include "code_page.hpp"

namespace cad {
namespace {

constexpr int closed_flag = 1;

/// Turns dxflib's callbacks into entities of one drawing.
class Builder final : public DL_CreationAdapter {
public:
    explicit Builder(Drawing& drawing) : drawing_(drawing) {}

    void addComment(const std::string& comment) override { written_by_dxflib_ |= comment.starts_with("dxflib"); }
    void setVariableString(const std::string& key, const std::string& value, int) override {
        if (key == "$DWGCODEPAGE")
            code_page_ = value;
        else if (key == "$ACADVER")
            version_ = value;
    }
    void setVariableDouble(const std::string& key, double value, int) override {
        if (key == "$LTSCALE" && value > 0) drawing_.linetype_scale = value;
    }

    void addLayer(const DL_LayerData& data) override {
        constexpr int frozen_flag = 1;
        // A negative colour number switches a layer off.
        const int colour = attributes.getColor();
        Layer& layer = layer_named(data.name).second;
        layer.colour = {std::abs(colour), attributes.getColor24()};
        layer.line_width = attributes.getWidth();
        layer.visible = colour >= 0 && (data.flags & frozen_flag) == 0 && !data.off;
    }
    void addLinetype(const DL_LinetypeData& data) override {
        NamedLinetype& named = *drawing_.linetypes.try_emplace(taiyen::string(decoded(data.name))).first;
        // The dashes were told before.
        named.second.dashes.assign(dashes_.begin(), dashes_.end());
        dashes_.clear();
    }
    void addLinetypeDash(double length) override { dashes_.push_back(length); }
    void addBlock(const DL_BlockData& data) override {
        block_ = &block_named(data.name).second;
        block_->base = {data.bpx, data.bpy};
    }
    void endBlock() override { block_ = nullptr; }

    void addPoint(const DL_PointData& d) override { keep(PointMark{{d.x, d.y}}); }
    void addLine(const DL_LineData& d) override { keep(Line{{d.x1, d.y1}, {d.x2, d.y2}}); }
    void addCircle(const DL_CircleData& d) override { keep(Circle{{d.cx, d.cy}, d.radius}); }
    void addArc(const DL_ArcData& d) override {
        const double start = radians(d.angle1);
        keep(Arc{{d.cx, d.cy}, d.radius, start, sweep_between(start, radians(d.angle2))});
    }
    void addEllipse(const DL_EllipseData& d) override {
        keep(Ellipse{{d.cx, d.cy}, {d.mx, d.my}, d.ratio, d.angle1, sweep_between(d.angle1, d.angle2)});
    }
    void addTrace(const DL_TraceData& d) override { keep_corners(d); }
    void add3dFace(const DL_3dFaceData& d) override { keep_corners(d); }
    void addSolid(const DL_SolidData& d) override { keep_corners(d); }

    void addPolyline(const DL_PolylineData& d) override { keep(Polyline{{}, (d.flags & closed_flag) != 0}); }
    void addVertex(const DL_VertexData& d) override { last<Polyline>().vertices.push_back({{d.x, d.y}, d.bulge}); }

    void addSpline(const DL_SplineData& d) override { keep(Spline{d.degree, (d.flags & closed_flag) != 0, {}, {}, {}}); }
    void addControlPoint(const DL_ControlPointData& d) override { last<Spline>().control_points.push_back({{d.x, d.y}, d.w}); }
    void addFitPoint(const DL_FitPointData& d) override { last<Spline>().fit_points.push_back({d.x, d.y}); }
    void addKnot(const DL_KnotData& d) override { last<Spline>().knots.push_back(d.k); }

    void addInsert(const DL_InsertData& d) override {
        keep(Insert{
            &block_named(d.name), {d.ipx, d.ipy}, {d.sx, d.sy}, radians(d.angle), std::max(d.cols, 1), std::max(d.rows, 1), {d.colSp, d.rowSp}});
    }
    void addText(const DL_TextData& d) override {
        // Left-aligned base-line text stands at its insertion point, any other at its alignment point.
        const bool at_insertion = d.hJustification == 0 && d.vJustification == 0;
        const Point2 at = at_insertion ? Point2{d.ipx, d.ipy} : Point2{d.apx, d.apy};
        keep(Text{at, d.height, d.angle, d.xScaleFactor, d.hJustification, d.vJustification, taiyen::string(decoded(d.text))});
    }
    void addMTextChunk(const std::string& text) override { chunks_ += text; }
    void addMText(const DL_MTextData& d) override {
        // dxflib turns a text's angle into radians, but not group 50 of an MTEXT in a file that it did not write itself.
        const bool has_direction = d.dirx != 0 || d.diry != 0;
        const double angle = has_direction || written_by_dxflib_ ? d.angle : radians(d.angle);
        const std::string text = std::exchange(chunks_, {}) + d.text;
        keep(MText{{d.ipx, d.ipy}, d.height, angle, d.width, d.lineSpacingFactor, d.attachmentPoint, taiyen::string(decoded(text))});
    }
    void addHatch(const DL_HatchData& d) override { keep(Hatch{taiyen::string(decoded(d.pattern)), d.scale, radians(d.angle), d.solid, {}}); }
    void addHatchLoop(const DL_HatchLoopData&) override { last<Hatch>().loops.emplace_back(); }
    void addHatchEdge(const DL_HatchEdgeData& d) override {
        Hatch& hatch = last<Hatch>();
        if (hatch.loops.empty()) hatch.loops.emplace_back();
        hatch.loops.back().edges.push_back(edge_of(d));
    }
    void addImage(const DL_ImageData& d) override {
        const Point2 pixels{static_cast<double>(d.width), static_cast<double>(d.height)};
        keep(Image{{d.ipx, d.ipy}, {d.ux, d.uy}, {d.vx, d.vy}, pixels, taiyen::string(decoded(d.ref))});
    }
    void linkImage(const DL_ImageDefData& d) override {
        // The definitions stand behind the entities; both carry the definition's handle.
        for (Entity& entity : drawing_.entities)
            if (auto* image = std::get_if<Image>(&entity.shape); image != nullptr && std::string_view(image->file) == d.ref)
                image->file = decoded(d.file);
    }

    void addXLine(const DL_XLineData&) override { ++drawing_.unsupported; }
    void addRay(const DL_RayData&) override { ++drawing_.unsupported; }
    void addArcAlignedText(const DL_ArcAlignedTextData&) override { ++drawing_.unsupported; }
    void addAttribute(const DL_AttributeData&) override { ++drawing_.unsupported; }
    void addDimAlign(const DL_DimensionData&, const DL_DimAlignedData&) override { ++drawing_.unsupported; }
    void addDimLinear(const DL_DimensionData&, const DL_DimLinearData&) override { ++drawing_.unsupported; }
    void addDimRadial(const DL_DimensionData&, const DL_DimRadialData&) override { ++drawing_.unsupported; }
    void addDimDiametric(const DL_DimensionData&, const DL_DimDiametricData&) override { ++drawing_.unsupported; }
    void addDimAngular(const DL_DimensionData&, const DL_DimAngular2LData&) override { ++drawing_.unsupported; }
    void addDimAngular3P(const DL_DimensionData&, const DL_DimAngular3PData&) override { ++drawing_.unsupported; }
    void addDimOrdinate(const DL_DimensionData&, const DL_DimOrdinateData&) override { ++drawing_.unsupported; }
    void addLeader(const DL_LeaderData&) override { ++drawing_.unsupported; }

private:
    std::string decoded(const std::string& raw) const { return utf8_from(raw, version_, code_page_); }

    NamedLayer& layer_named(const std::string& name) { return *drawing_.layers.try_emplace(taiyen::string(decoded(name))).first; }
    NamedBlock& block_named(const std::string& name) { return *drawing_.blocks.try_emplace(taiyen::string(decoded(name))).first; }
    /// Null for a line type that the file does not define, and for "as the layer".
    NamedLinetype* linetype_named(const std::string& name) {
        const auto at = drawing_.linetypes.find(std::string_view(decoded(name)));
        return at == drawing_.linetypes.end() ? nullptr : &*at;
    }

    taiyen::vector<Entity>& target() { return block_ != nullptr ? block_->entities : drawing_.entities; }

    void keep(Shape shape) {
        target().push_back(Entity{&layer_named(attributes.getLayer()),
                                  linetype_named(attributes.getLinetype()),
                                  {attributes.getColor(), attributes.getColor24()},
                                  attributes.getWidth(),
                                  block_ != nullptr ? 0 : ++drawing_.last_id,
                                  attributes.getLinetypeScale(),
                                  std::move(shape)});
    }
    void keep_corners(const DL_TraceData& d) {
        Solid solid;
        for (std::size_t i = 0; i < solid.corners.size(); ++i) solid.corners[i] = {d.x[i], d.y[i]};
        keep(solid);
    }
    /// The entity that the parts which follow it in the file belong to.
    template <class S>
    S& last() {
        return std::get<S>(target().back().shape);
    }

    static HatchEdge edge_of(const DL_HatchEdgeData& d) {
        enum { line = 1, arc, ellipse, spline };
        // Clockwise edges count their angles clockwise. Only these two kinds have angles: in the others dxflib leaves the members unset.
        const double side = (d.type == arc || d.type == ellipse) && !d.ccw ? -1 : 1;
        switch (d.type) {
            case line: return Line{{d.x1, d.y1}, {d.x2, d.y2}};
            case arc: return Arc{{d.cx, d.cy}, d.radius, side * d.angle1, side * sweep_between(d.angle1, d.angle2)};
            case ellipse: return Ellipse{{d.cx, d.cy}, {d.mx, d.my}, d.ratio, side * d.angle1, side * sweep_between(d.angle1, d.angle2)};
            case spline: return spline_of(d);
            default: return boundary_of(d);
        }
    }
    static Spline spline_of(const DL_HatchEdgeData& d) {
        Spline spline{d.degree, d.periodic, {}, {}, {}};
        spline.knots.assign(d.knots.begin(), d.knots.end());
        for (std::size_t i = 0; i < d.controlPoints.size(); ++i)
            spline.control_points.push_back({{d.controlPoints[i].at(0), d.controlPoints[i].at(1)}, i < d.weights.size() ? d.weights[i] : 1});
        for (const std::vector<double>& point : d.fitPoints) spline.fit_points.push_back({point.at(0), point.at(1)});
        return spline;
    }
    static Polyline boundary_of(const DL_HatchEdgeData& d) {
        Polyline boundary{{}, true};
        for (const std::vector<double>& v : d.vertices) boundary.vertices.push_back({{v.at(0), v.at(1)}, v.size() > 2 ? v[2] : 0});
        return boundary;
    }

    Drawing& drawing_;
    Block* block_ = nullptr;
    std::vector<double> dashes_;
    std::string chunks_;
    std::string version_;
    std::string code_page_;
    bool written_by_dxflib_ = false;
};

}  // namespace

std::vector<std::filesystem::path> dxf_files(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file() && entry.path().extension() == ".dxf") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

std::string part_name(const std::filesystem::path& folder, const std::filesystem::path& file) {
    return file.lexically_relative(folder).replace_extension().generic_string();
}

Drawing& import_dxf(Document& document, std::string_view name, const std::filesystem::path& file) {
    const auto [at, added] = document.drawings.try_emplace(taiyen::string(name));
    if (!added) throw std::invalid_argument(std::string(name) + ": the document has a drawing of that name already");
    Drawing& drawing = at->second;
    Builder builder(drawing);
    DL_Dxf parser;
    if (!parser.in(file.string(), &builder)) {
        document.drawings.erase(at);
        throw std::runtime_error(file.string() + ": dxflib cannot read it; is it readable?");
    }
    reindex(drawing);
    return drawing;
}

void import_library(Document& document, const std::filesystem::path& folder, const Progress& progress) {
    const std::vector<std::filesystem::path> files = dxf_files(folder);
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::string name = part_name(folder, files[i]);
        import_dxf(document, name, files[i]);
        if (progress) progress(i + 1, files.size(), name);
    }
}

}  // namespace cad
