#pragma once
/// The demo's chapters, in the order they are told. Each prints its part and returns whether everything it checked holds.

#include <cstdint>
#include <filesystem>
#include <string>

namespace cad::demo {

struct Setting {
    std::filesystem::path part_folder;  ///< DXF files, in folders
    std::filesystem::path out;          ///< where the demo writes
    std::uint64_t seed = 0;             ///< of everything random
    std::filesystem::path heap_file() const { return out / "library.tyn"; }
};

/// The drawing that is edited and shown, and the others that are shown.
inline constexpr const char* edited_drawing = "plan/vegetation/v21";
inline constexpr const char* shown_drawings[] = {edited_drawing, "elektro/electro-vacuum-iso/Valve-ECL86", "misc/tux"};

bool import_and_save(const Setting& setting);
bool reopen_in_new_process(const Setting& setting);
bool draw_pictures(const Setting& setting);
bool save_one_edit(const Setting& setting);
bool kill_during_saves(const Setting& setting);
bool undo_after_restart(const Setting& setting);
bool send_by_mail(const Setting& setting);
/// After `send_by_mail`.
bool migrate_to_next_version(const Setting& setting);
bool closing_table(const Setting& setting);

// What children of the demo do; the result is their exit status.
int reopen_and_report(const Setting& setting);
int edit_until_killed(const Setting& setting);
int edit_and_undo(const Setting& setting);
int reopen_and_undo(const Setting& setting);
int receive_mail(const Setting& setting);

/// Removes the heap's files of an earlier run.
void remove_heap(const std::filesystem::path& heap_file);

}  // namespace cad::demo
