#pragma once
/// Entities and drawings in words.

#include <string>
#include <string_view>

#include "document.hpp"

namespace cad::command {

/// "10", "2.5", "-0.333333".
std::string number_text(double value);
/// "10,2.5".
std::string point_text(Point2 point);
/// "from 0,0 to 10,2.5", or "empty".
std::string box_text(const Box& box);
/// "1 entity", "3 entities".
std::string counted(std::size_t count, std::string_view one, std::string_view many);

/// "line", "circle", …
std::string_view kind_of(const Shape& shape);
/// What it is and where: "from 0,0 to 10,2.5".
std::string place_of(const Entity& entity);

}  // namespace cad::command
