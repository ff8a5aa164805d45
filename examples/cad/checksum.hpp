#pragma once
/// A number over everything a document says: two documents with one checksum have, for all practical purposes, one content.

#include <cstdint>
#include <string_view>

#include "document.hpp"

namespace cad {

/// A number over the whole content of a drawing, names that pointers lead to and the spatial index included.
std::uint64_t checksum(std::string_view name, const Drawing& drawing);
/// The sum of the drawings' checksums: after an edit only the edited drawing's share needs to be computed anew.
std::uint64_t checksum(const Document& document);
}  // namespace cad
