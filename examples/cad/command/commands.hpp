#pragma once
/// The commands of a session: their names, how they are used, and what they do.

#include <string>
#include <string_view>
#include <vector>

#include "command/words.hpp"
#include "command/workplace.hpp"

namespace cad::command {

struct Command {
    const char* name;
    const char* usage;
    const char* summary;
    void (*run)(Workplace&, Arguments&);
};

/// In the order in which `help` lists them.
const std::vector<Command>& commands();

/// Carries out one line; nothing for a blank one. Throws CommandError, taiyen::Error, std::exception: then nothing was changed.
void execute(Workplace& place, std::string_view line);

/// What a tab could mean: the words that may stand in place of `typed`, the last `typed.size()` bytes before the cursor, quoted where they need it.
struct Completion {
    std::string typed;
    std::vector<std::string> words;
};
Completion complete(Workplace& place, std::string_view line_to_cursor);

// One function per command; file_commands.cpp, drawing_commands.cpp, entity_commands.cpp, history_commands.cpp.
void run_create(Workplace& place, Arguments& arguments);
void run_open(Workplace& place, Arguments& arguments);
void run_save(Workplace& place, Arguments& arguments);
void run_pack(Workplace& place, Arguments& arguments);
void run_unpack(Workplace& place, Arguments& arguments);
void run_import(Workplace& place, Arguments& arguments);
void run_export(Workplace& place, Arguments& arguments);
void run_info(Workplace& place, Arguments& arguments);
void run_quit(Workplace& place, Arguments& arguments);

void run_list(Workplace& place, Arguments& arguments);
void run_use(Workplace& place, Arguments& arguments);
void run_drawing(Workplace& place, Arguments& arguments);
void run_layer(Workplace& place, Arguments& arguments);
void run_show(Workplace& place, Arguments& arguments);

void run_add(Workplace& place, Arguments& arguments);
void run_move(Workplace& place, Arguments& arguments);
void run_rotate(Workplace& place, Arguments& arguments);
void run_delete(Workplace& place, Arguments& arguments);

void run_undo(Workplace& place, Arguments& arguments);
void run_redo(Workplace& place, Arguments& arguments);
void run_history(Workplace& place, Arguments& arguments);
/// "12 steps, 3 of them undone, 4567 bytes".
std::string history_text(const taiyen::SnapshotHeap& heap);

/// Numbers of the entities that the ids name, ascending, each once. Throws CommandError for an id that is not there.
std::vector<EntityNumber> entities_named(const Drawing& drawing, const std::vector<EntityId>& ids);
/// "circle 17", "circle 17 and 2 more".
std::string entities_text(const Drawing& drawing, const std::vector<EntityNumber>& numbers);

}  // namespace cad::command
