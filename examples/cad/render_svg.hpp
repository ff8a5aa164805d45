#pragma once
/// Pictures as SVG.

#include <iosfwd>

#include "picture.hpp"

namespace cad {

/// Circles and ellipses stay arcs; each path names its layer.
void write_svg(const Picture& picture, std::ostream& out);

}  // namespace cad
