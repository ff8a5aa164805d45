#include "command/commands.hpp"

#include <algorithm>
#include <filesystem>
#include <iomanip>

namespace cad::command {
namespace {

namespace fs = std::filesystem;

void run_help(Workplace& place, Arguments& arguments);

const Command* command_named(std::string_view name) {
    const auto at = std::find_if(commands().begin(), commands().end(), [name](const Command& command) { return name == command.name; });
    return at == commands().end() ? nullptr : &*at;
}

std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const Command& command : commands()) names.emplace_back(command.name);
    return names;
}

const Command& known_command(const std::string& name) {
    const Command* const command = command_named(name);
    if (command == nullptr) {
        const std::string guess = nearest(name, command_names());
        throw CommandError("unknown command '" + name + "'; " + (guess.empty() ? "'help' lists all" : "did you mean '" + guess + "'?"));
    }
    return *command;
}

void run_help(Workplace& place, Arguments& arguments) {
    if (!arguments.empty()) {
        const Command& command = known_command(arguments.next("a command"));
        arguments.end();
        place.out << "usage: " << command.usage << "\n  " << command.summary << '\n';
        return;
    }
    for (const Command& command : commands()) place.out << "  " << std::left << std::setw(9) << command.name << command.summary << '\n';
    place.out << "'help COMMAND' tells how one is used. Points are X,Y; angles are degrees, counterclockwise; names with blanks go into \"…\".\n";
}

std::vector<std::string> files_starting_with(const std::string& typed) {
    std::vector<std::string> files;
    const fs::path folder = fs::path(typed).parent_path();
    std::error_code ignored;
    for (fs::directory_iterator at(folder.empty() ? "." : folder, ignored), end; at != end; at.increment(ignored))
        files.push_back((folder / at->path().filename()).string() + (at->is_directory(ignored) ? "/" : ""));
    return files;
}

/// Everything that may stand after `before`, whatever was typed of it.
std::vector<std::string> words_after(Workplace& place, const std::vector<std::string>& before, const std::string& typed) {
    if (before.empty()) return command_names();
    const std::string& command = before.front();
    const auto first = [&](std::vector<std::string> words) { return before.size() == 1 ? words : std::vector<std::string>(); };
    if (command == "use") return first(place.drawing_names());
    if (command == "help") return first(command_names());
    if (command == "open" || command == "create" || command == "export" || command == "import" || command == "pack" || command == "unpack")
        return first(files_starting_with(typed));
    if (before.size() == 1) {
        if (command == "add") return {"arc", "circle", "line", "text"};
        if (command == "drawing") return {"delete", "new"};
        if (command == "layer") return {"assign", "new", "rename"};
        if (command == "show") return {"all", "in"};
        return {};
    }
    if (command == "drawing" && before.size() == 2 && before[1] == "delete") return place.drawing_names();
    if (command == "layer" && before.size() == 2 && before[1] != "new") return place.layer_names();
    if (command == "add") return before.back() == "on" ? place.layer_names() : std::vector<std::string>{"on"};
    if (command == "rotate") return {"about"};
    return {};
}

/// Where the word under the cursor begins.
std::size_t last_word_of(std::string_view line) {
    std::size_t begin = 0;
    bool inside = false;
    for (std::size_t i = 0; i < line.size(); ++i)
        if (line[i] == '"')
            inside = !inside;
        else if (!inside && (line[i] == ' ' || line[i] == '\t'))
            begin = i + 1;
    return begin;
}

}  // namespace

const std::vector<Command>& commands() {
    static const std::vector<Command> all = {
        {"create", "create FILE", "makes a new file of drawings and opens it", run_create},
        {"open", "open FILE", "opens a file of drawings", run_open},
        {"save", "save", "saves everything; until then nothing reaches the file", run_save},
        {"pack", "pack FILE.tyz", "writes a compressed copy of what was saved, to send or to keep", run_pack},
        {"unpack", "unpack FILE.tyz FILE", "makes a file of drawings out of a compressed copy and opens it", run_unpack},
        {"import", "import FILE.dxf [NAME]", "adds a drawing from a DXF file", run_import},
        {"export", "export FILE.svg | FILE.png | FILE.dxf", "writes the drawing in use as a picture or as DXF", run_export},
        {"info", "info", "tells about the file", run_info},
        {"list", "list [BEGINNING]", "lists the drawings, or those whose names begin so", run_list},
        {"use", "use NAME", "picks the drawing that the commands below work on", run_use},
        {"drawing", "drawing new NAME | drawing delete NAME", "makes or deletes a drawing", run_drawing},
        {"show", "show | show all | show ID... | show in X,Y X,Y", "tells about the drawing, all or some entities, or those that touch a window",
         run_show},
        {"add", "add line X,Y X,Y | add circle X,Y RADIUS | add arc X,Y RADIUS START END | add text X,Y HEIGHT TEXT, each with [on LAYER]",
         "draws a line, a circle, an arc or a text", run_add},
        {"move", "move ID... DX,DY", "moves entities", run_move},
        {"rotate", "rotate ID... ANGLE [about X,Y]", "turns entities, each about its middle (texts and inserts: their place), or all about a point",
         run_rotate},
        {"delete", "delete ID...", "deletes entities", run_delete},
        {"layer", "layer | layer new NAME [COLOUR] | layer rename NAME NEW | layer assign NAME ID...",
         "lists the layers, makes or renames one, puts entities on one", run_layer},
        {"undo", "undo [COUNT]", "takes the last step back, or so many; also steps of earlier sessions, if they were saved", run_undo},
        {"redo", "redo [COUNT]", "does again what was undone last", run_redo},
        {"history", "history [COUNT]", "lists the last steps, and those that were undone", run_history},
        {"help", "help [COMMAND]", "lists the commands, or tells how one is used", run_help},
        {"quit", "quit", "leaves", run_quit},
    };
    return all;
}

void execute(Workplace& place, std::string_view line) {
    std::vector<std::string> words = words_of(line);
    if (words.empty()) return;
    const Command& command = known_command(words.front());
    words.erase(words.begin());
    Arguments arguments(std::move(words), command.usage);
    command.run(place, arguments);
}

Completion complete(Workplace& place, std::string_view line_to_cursor) {
    const std::size_t begin = last_word_of(line_to_cursor);
    Completion completion{std::string(line_to_cursor.substr(begin)), {}};
    const bool open_quotation = completion.typed.starts_with('"');
    const std::string text = open_quotation ? completion.typed.substr(1) : completion.typed;
    for (const std::string& word : words_after(place, words_of(line_to_cursor.substr(0, begin)), text)) {
        if (word.starts_with(text)) {
            const std::string plain = as_typed(word);
            completion.words.push_back(open_quotation && plain == word ? '"' + word + '"' : plain);
        }
    }
    std::sort(completion.words.begin(), completion.words.end());
    return completion;
}

}  // namespace cad::command
