#include <algorithm>
#include <optional>

#include "command/commands.hpp"
#include "command/description.hpp"

namespace cad::command {
namespace {

Shape shape_from(Arguments& arguments) {
    const std::string kind = arguments.next("'line', 'circle', 'arc' or 'text'");
    if (kind == "line") {
        const Point2 from = arguments.point("the point where it begins");
        return Line{from, arguments.point("the point where it ends")};
    }
    if (kind == "circle") {
        const Point2 centre = arguments.point("the centre");
        return Circle{centre, arguments.length("a radius")};
    }
    if (kind == "arc") {
        const Point2 centre = arguments.point("the centre");
        const double radius = arguments.length("a radius");
        const double start = radians(arguments.number("the angle where it starts"));
        return Arc{centre, radius, start, sweep_between(start, radians(arguments.number("the angle where it ends")))};
    }
    if (kind == "text") {
        const Point2 at = arguments.point("the place of its lower left corner");
        const double height = arguments.length("a height");
        return Text{.at = at, .height = height, .content = taiyen::string(arguments.next("the text"))};
    }
    arguments.misused("expected 'line', 'circle', 'arc' or 'text', not '" + kind + "'");
}

/// What an entity is turned about unless it is said: where it was put, or its middle.
Point2 pivot_of(const Entity& entity) {
    return std::visit(
        [&](const auto& shape) {
            if constexpr (requires { shape.at; })
                return shape.at;
            else
                return bounds(entity).centre();
        },
        entity.shape);
}

/// Takes all words but the last `keep`, as ids.
std::vector<EntityNumber> take_entities(const Drawing& drawing, Arguments& arguments, std::size_t keep, std::string_view last) {
    std::vector<EntityId> ids;
    do {
        append_ids(arguments.next("an entity's id"), ids);
    } while (arguments.count() > keep);
    if (arguments.count() < keep) arguments.next(last);  // says what is missing
    return entities_named(drawing, ids);
}

}  // namespace

std::vector<EntityNumber> entities_named(const Drawing& drawing, const std::vector<EntityId>& ids) {
    std::vector<EntityNumber> numbers;
    for (const EntityId id : ids) {
        const std::optional<EntityNumber> number = number_of(drawing, id);
        if (!number) {
            const bool was = id <= drawing.last_id;
            throw CommandError("there is no entity " + std::to_string(id) +
                               (was                    ? " any more"
                                : drawing.last_id == 0 ? ": nothing was drawn yet"
                                                       : "; the last is " + std::to_string(drawing.last_id)));
        }
        numbers.push_back(*number);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
}

std::string entities_text(const Drawing& drawing, const std::vector<EntityNumber>& numbers) {
    const Entity& first = drawing.entities[numbers.front()];
    const std::string text = std::string(kind_of(first.shape)) + " " + std::to_string(first.id);
    return numbers.size() == 1 ? text : text + " and " + std::to_string(numbers.size() - 1) + " more";
}

void run_add(Workplace& place, Arguments& arguments) {
    Drawing& drawing = place.drawing();
    const Shape shape = shape_from(arguments);
    NamedLayer* layer = nullptr;
    if (arguments.take("on")) layer = &place.layer_named(arguments.next("a layer"));
    arguments.end();
    const std::string what = std::string(kind_of(shape)) + " " + std::to_string(drawing.last_id + 1);
    place.step("add " + what, [&] {
        layer = layer != nullptr ? layer : &*drawing.layers.try_emplace("0").first;
        add(drawing, Entity{.layer = layer, .shape = shape});
    });
    place.out << what << ' ' << place_of(drawing.entities.back()) << '\n';
}

void run_move(Workplace& place, Arguments& arguments) {
    Drawing& drawing = place.drawing();
    const std::vector<EntityNumber> numbers = take_entities(drawing, arguments, 1, "how far, DX,DY");
    const Point2 by = arguments.point("how far");
    const std::string what = entities_text(drawing, numbers);
    place.step("move " + what, [&] {
        for (const EntityNumber number : numbers) move(drawing, number, by);
    });
    place.out << "moved " << what << " by " << point_text(by) << '\n';
}

void run_rotate(Workplace& place, Arguments& arguments) {
    Drawing& drawing = place.drawing();
    std::optional<Point2> about;
    std::vector<EntityId> ids;
    // The last word before "about" or the end is the angle.
    std::string word = arguments.next("an entity's id");
    while (!arguments.empty() && arguments.peek() != "about") {
        append_ids(word, ids);
        word = arguments.next("an angle");
    }
    if (ids.empty()) arguments.misused("expected an entity's id and an angle");
    const double angle = number_in(word, "an angle in degrees");
    if (arguments.take("about")) about = arguments.point("the point to turn about");
    arguments.end();
    const std::vector<EntityNumber> numbers = entities_named(drawing, ids);
    const std::string what = entities_text(drawing, numbers);
    place.step("rotate " + what, [&] {
        for (const EntityNumber number : numbers) rotate(drawing, number, about.value_or(pivot_of(drawing.entities[number])), radians(angle));
    });
    place.out << "rotated " << what << " by " << number_text(angle) << " degrees\n";
}

void run_delete(Workplace& place, Arguments& arguments) {
    Drawing& drawing = place.drawing();
    std::vector<EntityNumber> numbers = take_entities(drawing, arguments, 0, {});
    const std::string what = entities_text(drawing, numbers);
    place.step("delete " + what, [&] {
        // From behind: the numbers before stay what they are.
        for (auto at = numbers.rbegin(); at != numbers.rend(); ++at) erase(drawing, *at);
    });
    place.out << "deleted " << what << '\n';
}

}  // namespace cad::command
