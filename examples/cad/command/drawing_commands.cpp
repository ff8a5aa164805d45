#include <algorithm>
#include <iomanip>
#include <map>

#include "command/commands.hpp"
#include "command/description.hpp"

namespace cad::command {
namespace {

/// More entities than this are only listed on request.
constexpr std::size_t shown_max = 20;

void print_entity(Workplace& place, const Entity& entity) {
    place.out << std::right << std::setw(6) << entity.id << "  " << std::left << std::setw(9) << kind_of(entity.shape) << ' ' << place_of(entity);
    if (std::string_view(entity.layer->first) != "0") place.out << " on " << as_typed(entity.layer->first);
    place.out << '\n';
}

/// "2 lines, 1 hatch", most frequent first.
std::string kinds_text(const Drawing& drawing) {
    std::map<std::string_view, std::size_t> counts;
    for (const Entity& entity : drawing.entities) ++counts[kind_of(entity.shape)];
    std::vector<std::pair<std::string_view, std::size_t>> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
    std::string text;
    for (const auto& [kind, count] : sorted) {
        const std::string one(kind);
        text += text.empty() ? "" : ", ";
        text += counted(count, one, one + (kind == "hatch" ? "es" : "s"));
    }
    return text;
}

void show_summary(Workplace& place, const Drawing& drawing, bool all) {
    place.out << as_typed(place.drawing_in_use) << ": " << counted(drawing.entities.size(), "entity", "entities");
    if (!drawing.entities.empty())
        place.out << " (" << kinds_text(drawing) << ") on " << counted(drawing.layers.size(), "layer", "layers") << ", " << box_text(drawing.extents);
    place.out << '\n';
    const std::size_t shown = all ? drawing.entities.size() : std::min(shown_max, drawing.entities.size());
    for (std::size_t i = 0; i < shown; ++i) print_entity(place, drawing.entities[i]);
    if (shown < drawing.entities.size())
        place.out << "        and " << drawing.entities.size() - shown << " more; 'show all' lists them, 'show in X,Y X,Y' those in a window\n";
}

void list_layers(Workplace& place) {
    const Drawing& drawing = place.drawing();
    std::map<const NamedLayer*, std::size_t> counts;
    for (const Entity& entity : drawing.entities) ++counts[entity.layer];
    for (const NamedLayer& layer : drawing.layers) {
        place.out << "  " << std::left << std::setw(24) << as_typed(layer.first) << " colour " << layer.second.colour.index << ", "
                  << counted(counts[&layer], "entity", "entities") << (layer.second.visible ? "" : ", hidden") << '\n';
    }
    if (drawing.layers.empty()) place.out << "no layers; the first entity makes layer 0\n";
}

void new_layer(Workplace& place, Arguments& arguments) {
    constexpr double colour_max = 255;
    Drawing& drawing = place.drawing();
    const std::string name = arguments.next("a name");
    Layer layer;
    if (!arguments.empty()) {
        const double colour = arguments.number("a colour");
        if (colour < 1 || colour > colour_max || colour != std::floor(colour))
            throw CommandError("expected a colour from 1 (red) to 255, not " + number_text(colour));
        layer.colour.index = static_cast<std::int32_t>(colour);
    }
    arguments.end();
    if (name.empty() || drawing.layers.contains(name))
        throw CommandError(name.empty() ? "a layer needs a name" : "there is a layer " + as_typed(name) + " already");
    place.step("new layer " + name, [&] { drawing.layers.try_emplace(taiyen::string(name), layer); });
    place.out << "layer " << as_typed(name) << '\n';
}

void rename_layer(Workplace& place, Arguments& arguments) {
    const std::string from = arguments.next("a layer");
    const std::string to = arguments.next("a new name");
    arguments.end();
    place.layer_named(from);
    Drawing& drawing = place.drawing();
    if (to.empty() || drawing.layers.contains(to))
        throw CommandError(to.empty() ? "a layer needs a name" : "there is a layer " + as_typed(to) + " already");
    place.step("rename layer " + from + " to " + to, [&] { cad::rename_layer(drawing, from, to); });
    place.out << "layer " << as_typed(from) << " is now " << as_typed(to) << '\n';
}

void assign_layer(Workplace& place, Arguments& arguments) {
    NamedLayer& layer = place.layer_named(arguments.next("a layer"));
    std::vector<EntityId> ids;
    do {
        append_ids(arguments.next("an entity's id"), ids);
    } while (!arguments.empty());
    Drawing& drawing = place.drawing();
    const std::vector<EntityNumber> numbers = entities_named(drawing, ids);
    const std::string what = entities_text(drawing, numbers);
    place.step("put " + what + " on layer " + std::string(layer.first), [&] {
        for (const EntityNumber number : numbers) drawing.entities[number].layer = &layer;
    });
    place.out << what << " on layer " << as_typed(layer.first) << '\n';
}

}  // namespace

void run_list(Workplace& place, Arguments& arguments) {
    const std::string beginning = arguments.empty() ? std::string() : arguments.next("the beginning of a name");
    arguments.end();
    std::size_t count = 0;
    for (const auto& [name, drawing] : place.open_file().document().drawings) {
        if (std::string_view(name).starts_with(beginning)) {
            place.out << "  " << std::left << std::setw(34) << as_typed(name) << ' ' << counted(drawing.entities.size(), "entity", "entities") << ", "
                      << counted(drawing.layers.size(), "layer", "layers") << '\n';
            ++count;
        }
    }
    if (count == 0) {
        place.out << (beginning.empty() ? "no drawings; 'drawing new NAME' makes one\n"
                                        : "no drawing's name begins with " + as_typed(beginning) + "\n");
    }
}

void run_use(Workplace& place, Arguments& arguments) {
    const std::string name = arguments.next("a drawing");
    arguments.end();
    const Drawing& drawing = place.drawing_named(name);
    place.drawing_in_use = name;
    place.out << as_typed(name) << ": " << counted(drawing.entities.size(), "entity", "entities") << '\n';
}

void run_drawing(Workplace& place, Arguments& arguments) {
    const std::string what = arguments.next("'new' or 'delete'");
    const std::string name = arguments.next("a drawing's name");
    arguments.end();
    Document& document = place.open_file().document();
    if (what == "new") {
        if (name.empty() || document.drawings.contains(name))
            throw CommandError(name.empty() ? "a drawing needs a name" : "there is a drawing " + as_typed(name) + " already; 'use' picks it");
        place.step("new drawing " + name, [&] { document.drawings.try_emplace(taiyen::string(name)); });
        place.drawing_in_use = name;
        place.out << "drawing " << as_typed(name) << ", now in use\n";
    } else if (what == "delete") {
        place.drawing_named(name);
        place.step("delete drawing " + name, [&] { document.drawings.erase(document.drawings.find(name)); });
        place.out << "deleted drawing " << as_typed(name) << '\n';
    } else {
        arguments.misused("expected 'new' or 'delete', not '" + what + "'");
    }
}

void run_layer(Workplace& place, Arguments& arguments) {
    if (arguments.empty())
        list_layers(place);
    else if (arguments.take("new"))
        new_layer(place, arguments);
    else if (arguments.take("rename"))
        rename_layer(place, arguments);
    else if (arguments.take("assign"))
        assign_layer(place, arguments);
    else
        arguments.misused("expected 'new', 'rename' or 'assign', not '" + std::string(arguments.peek()) + "'");
}

void run_show(Workplace& place, Arguments& arguments) {
    const Drawing& drawing = place.drawing();
    if (arguments.empty()) {
        show_summary(place, drawing, false);
    } else if (arguments.take("all")) {
        arguments.end();
        show_summary(place, drawing, true);
    } else if (arguments.take("in")) {
        Box window;
        window.add(arguments.point("a corner"));
        window.add(arguments.point("the other corner"));
        arguments.end();
        const std::vector<EntityNumber> found = entities_in(drawing, window);
        place.out << counted(found.size(), "entity touches", "entities touch") << " the window\n";
        for (const EntityNumber number : found) print_entity(place, drawing.entities[number]);
    } else {
        std::vector<EntityId> ids;
        while (!arguments.empty()) append_ids(arguments.next("an entity's id"), ids);
        for (const EntityNumber number : entities_named(drawing, ids)) print_entity(place, drawing.entities[number]);
    }
}

}  // namespace cad::command
