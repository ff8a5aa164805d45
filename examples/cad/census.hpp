#pragma once
/// How many things of each kind there are.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "document.hpp"

namespace cad {

/// What is counted. `unsupported` are entities that a document has no shape for.
enum class Kind {
    layer,
    linetype,
    block,
    line,
    arc,
    circle,
    ellipse,
    polyline,
    spline,
    text,
    mtext,
    insert,
    point,
    solid,
    hatch,
    image,
    vertex,
    control_point,
    knot,
    fit_point,
    hatch_loop,
    hatch_edge,
    unsupported,
};
inline constexpr std::size_t kind_count = static_cast<std::size_t>(Kind::unsupported) + 1;
std::string_view name_of(Kind kind);

struct Census {
    std::array<std::uint64_t, kind_count> counts{};

    std::uint64_t& operator[](Kind kind) { return counts[static_cast<std::size_t>(kind)]; }
    std::uint64_t operator[](Kind kind) const { return counts[static_cast<std::size_t>(kind)]; }
    /// Entities of all kinds; their parts (vertices, knots, …) and the tables are not entities.
    std::uint64_t entities() const;
    bool operator==(const Census&) const = default;
};

/// Counted by walking the document.
Census census_of(const Document& document);
/// Counted by parsing the files with dxflib and counting its callbacks: nothing is kept. Throws std::runtime_error for a file that can't be read.
Census census_of_files(const std::vector<std::filesystem::path>& files);

}  // namespace cad
