#pragma once
/// Pictures as PNG, by cairo.

#include <filesystem>

#include "picture.hpp"

namespace cad {

/// Throws std::runtime_error with the path and cairo's words.
void write_png(const Picture& picture, const std::filesystem::path& file);

}  // namespace cad
