#pragma once
/// DXF files into a document, by dxflib.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "document.hpp"

namespace cad {

/// Where Debian's librecad-data puts its parts.
inline constexpr const char* library_folder = "/usr/share/librecad/library";

/// All DXF files below `folder`, sorted. Throws std::filesystem::filesystem_error if it is no readable folder.
std::vector<std::filesystem::path> dxf_files(const std::filesystem::path& folder);
/// The name a part of the library has in the document: its path below `folder` without ".dxf".
std::string part_name(const std::filesystem::path& folder, const std::filesystem::path& file);

/// Adds the drawing that `file` describes. Throws std::runtime_error if dxflib can't read the file, std::invalid_argument if the name is taken.
Drawing& import_dxf(Document& document, std::string_view name, const std::filesystem::path& file);

/// Adds every part below `folder`; `progress` is told after each: done, all, name.
using Progress = std::function<void(std::size_t, std::size_t, std::string_view)>;
void import_library(Document& document, const std::filesystem::path& folder, const Progress& progress = {});

}  // namespace cad
