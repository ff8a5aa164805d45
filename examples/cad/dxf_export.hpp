#pragma once
/// Drawings as DXF text: what a program without a heap writes anew at every save.

#include <string>

#include "document.hpp"

namespace cad {

/// Version AC1021 (UTF-8) with layers, line types, blocks and entities; images are left out, because they need an object section.
std::string dxf_text(const Drawing& drawing);

}  // namespace cad
