/// The bare count: nothing but dxflib and counters, so that the importer can be held against something that shares no code with it.

#include <dxflib/dl_creationadapter.h>
#include <dxflib/dl_dxf.h>

#include <stdexcept>

#include "census.hpp"

namespace cad {
namespace {

class Counter final : public DL_CreationAdapter {
public:
    Census census;

    void addLayer(const DL_LayerData&) override { ++census[Kind::layer]; }
    void addLinetype(const DL_LinetypeData&) override { ++census[Kind::linetype]; }
    void addBlock(const DL_BlockData&) override { ++census[Kind::block]; }
    void addPoint(const DL_PointData&) override { ++census[Kind::point]; }
    void addLine(const DL_LineData&) override { ++census[Kind::line]; }
    void addArc(const DL_ArcData&) override { ++census[Kind::arc]; }
    void addCircle(const DL_CircleData&) override { ++census[Kind::circle]; }
    void addEllipse(const DL_EllipseData&) override { ++census[Kind::ellipse]; }
    void addPolyline(const DL_PolylineData&) override { ++census[Kind::polyline]; }
    void addVertex(const DL_VertexData&) override { ++census[Kind::vertex]; }
    void addSpline(const DL_SplineData&) override { ++census[Kind::spline]; }
    void addControlPoint(const DL_ControlPointData&) override { ++census[Kind::control_point]; }
    void addFitPoint(const DL_FitPointData&) override { ++census[Kind::fit_point]; }
    void addKnot(const DL_KnotData&) override { ++census[Kind::knot]; }
    void addInsert(const DL_InsertData&) override { ++census[Kind::insert]; }
    void addTrace(const DL_TraceData&) override { ++census[Kind::solid]; }
    void add3dFace(const DL_3dFaceData&) override { ++census[Kind::solid]; }
    void addSolid(const DL_SolidData&) override { ++census[Kind::solid]; }
    void addMText(const DL_MTextData&) override { ++census[Kind::mtext]; }
    void addText(const DL_TextData&) override { ++census[Kind::text]; }
    void addHatch(const DL_HatchData&) override { ++census[Kind::hatch]; }
    void addHatchLoop(const DL_HatchLoopData&) override { ++census[Kind::hatch_loop]; }
    void addHatchEdge(const DL_HatchEdgeData&) override { ++census[Kind::hatch_edge]; }
    void addImage(const DL_ImageData&) override { ++census[Kind::image]; }

    void addXLine(const DL_XLineData&) override { ++census[Kind::unsupported]; }
    void addRay(const DL_RayData&) override { ++census[Kind::unsupported]; }
    void addArcAlignedText(const DL_ArcAlignedTextData&) override { ++census[Kind::unsupported]; }
    void addAttribute(const DL_AttributeData&) override { ++census[Kind::unsupported]; }
    void addDimAlign(const DL_DimensionData&, const DL_DimAlignedData&) override { ++census[Kind::unsupported]; }
    void addDimLinear(const DL_DimensionData&, const DL_DimLinearData&) override { ++census[Kind::unsupported]; }
    void addDimRadial(const DL_DimensionData&, const DL_DimRadialData&) override { ++census[Kind::unsupported]; }
    void addDimDiametric(const DL_DimensionData&, const DL_DimDiametricData&) override { ++census[Kind::unsupported]; }
    void addDimAngular(const DL_DimensionData&, const DL_DimAngular2LData&) override { ++census[Kind::unsupported]; }
    void addDimAngular3P(const DL_DimensionData&, const DL_DimAngular3PData&) override { ++census[Kind::unsupported]; }
    void addDimOrdinate(const DL_DimensionData&, const DL_DimOrdinateData&) override { ++census[Kind::unsupported]; }
    void addLeader(const DL_LeaderData&) override { ++census[Kind::unsupported]; }
};

}  // namespace

Census census_of_files(const std::vector<std::filesystem::path>& files) {
    Counter counter;
    for (const std::filesystem::path& file : files) {
        DL_Dxf parser;
        if (!parser.in(file.string(), &counter)) throw std::runtime_error(file.string() + ": dxflib cannot read it; is it readable?");
    }
    return counter.census;
}

}  // namespace cad
