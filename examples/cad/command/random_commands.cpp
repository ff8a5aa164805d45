#include "command/random_commands.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "command/words.hpp"

namespace cad::command {
namespace {

std::string text_of(double value) {
    char text[48];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}
std::string text_of(Point2 point) {
    std::string text = text_of(point.x);
    text += ',';
    return text += text_of(point.y);
}

/// Everything lies on a grid, as people draw.
double grid_of(const Box& box) { return std::max(box.width(), box.height()) / 80; }

Point2 place_in(const Box& box, Dice& dice) {
    const double grid = grid_of(box);
    const double column = std::floor(dice.fraction() * box.width() / grid);
    return box.low + Point2{column, std::floor(dice.fraction() * box.height() / grid)} * grid;
}

/// Up to eight grid steps each way, but not nowhere.
Point2 way_within(const Box& box, Dice& dice) {
    const auto steps = [&] { return static_cast<double>(dice.below(17)) - 8; };
    const double across = steps();
    const Point2 way{across, steps()};
    return (way == Point2{} ? Point2{1, 0} : way) * grid_of(box);
}

std::string some_layer(const Drawing& drawing, Dice& dice) {
    return as_typed(std::next(drawing.layers.begin(), static_cast<std::ptrdiff_t>(dice.below(drawing.layers.size())))->first);
}

std::string new_layer_name(Dice& dice) {
    std::string name = "\"marks and remarks, sheet ";
    name += std::to_string(dice.below(1'000'000'000));
    return name += '"';
}

std::string addition(const Drawing& drawing, const Box& canvas, Dice& dice) {
    constexpr const char* remarks[] = {"oak", "birch", "pond", "bench", "roses", "path, 1.20 wide", "lamp"};
    const Point2 at = place_in(canvas, dice);
    const double radius = grid_of(canvas) * static_cast<double>(1 + dice.below(4));
    std::string line = "add ";
    switch (dice.below(4)) {
        case 0: line.append("line ").append(text_of(at)).append(" ").append(text_of(at + way_within(canvas, dice))); break;
        case 1: line.append("circle ").append(text_of(at)).append(" ").append(text_of(radius)); break;
        case 2:
            line.append("arc ").append(text_of(at)).append(" ").append(text_of(radius));
            line.append(" ").append(std::to_string(15 * dice.below(24))).append(" ").append(std::to_string(15 * dice.below(24)));
            break;
        default:
            line.append("text ").append(text_of(at)).append(" ").append(text_of(grid_of(canvas)));
            line.append(" \"").append(remarks[dice.below(std::size(remarks))]).append("\"");
    }
    return line.append(" on ").append(some_layer(drawing, dice));
}

}  // namespace

std::uint64_t Dice::operator()() {
    state_ += 0x9e37'79b9'7f4a'7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58'476d'1ce4'e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d0'49bb'1331'11ebU;
    return z ^ (z >> 31U);
}

std::string random_edit(const Drawing& drawing, const Playground& playground, Dice& dice) {
    const std::uint64_t kind = dice.below(24);
    std::string line;
    if (drawing.layers.empty() || kind == 0)
        return line.append("layer new ").append(new_layer_name(dice)).append(" ").append(std::to_string(1 + dice.below(6)));
    if (kind == 1) return line.append("layer rename ").append(some_layer(drawing, dice)).append(" ").append(new_layer_name(dice));
    // Ids ascend: what may be touched stands behind what may not.
    const auto kept =
        std::partition_point(drawing.entities.begin(), drawing.entities.end(), [&](const Entity& e) { return e.id <= playground.kept; });
    const auto free = static_cast<std::uint64_t>(drawing.entities.end() - kept);
    if (free == 0 || kind < 14) return addition(drawing, playground.canvas, dice);
    const std::string id = std::to_string(kept[static_cast<std::ptrdiff_t>(dice.below(free))].id);
    if (kind < 18) return line.append("move ").append(id).append(" ").append(text_of(way_within(playground.canvas, dice)));
    if (kind < 20) return line.append("rotate ").append(id).append(" ").append(std::to_string(15 * (1 + dice.below(23))));
    if (kind < 22) return line.append("delete ").append(id);
    return line.append("layer assign ").append(some_layer(drawing, dice)).append(" ").append(id);
}

}  // namespace cad::command
