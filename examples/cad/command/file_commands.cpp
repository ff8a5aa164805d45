#include <fstream>
#include <stdexcept>

#include "census.hpp"
#include "command/commands.hpp"
#include "command/description.hpp"
#include "dxf_export.hpp"
#include "dxf_import.hpp"
#include "picture.hpp"
#include "render_png.hpp"
#include "render_svg.hpp"

namespace cad::command {
namespace {

namespace fs = std::filesystem;

void tell_opened(Workplace& place, const char* how) {
    const auto& drawings = place.file->document().drawings;
    place.drawing_in_use = drawings.size() == 1 ? std::string(drawings.begin()->first) : std::string();
    place.out << how << ' ' << place.file->name() << ": " << counted(drawings.size(), "drawing", "drawings");
    if (const std::size_t steps = place.file->heap().undo_steps().size(); steps != 0)
        place.out << ", " << counted(steps, "step", "steps") << " of history";
    place.out << '\n' << place.file->remark << (place.file->remark.empty() ? "" : "\n");
}

template <class Tag>
void open_with(Workplace& place, Arguments& arguments, Tag tag, const char* how) {
    constexpr bool create = std::is_same_v<Tag, taiyen::create_only_t>;
    const fs::path path = arguments.next("a file");
    arguments.end();
    // The open file stays in use if this one can't be opened; only to go back to what was saved it must be closed first.
    std::error_code none;
    const bool again = place.file && fs::equivalent(place.file->heap().path(), path, none);
    std::unique_ptr<OpenFile> next = again && !create ? nullptr : std::make_unique<OpenFile>(tag, path);
    if (!place.may_close()) return;
    place.replace_file(std::move(next));
    if (again) place.replace_file(std::make_unique<OpenFile>(tag, path));
    tell_opened(place, how);
}

void write_file(const fs::path& path, const auto& write) {
    std::ofstream out(path);
    write(out);
    if (!out.flush()) throw CommandError(path.string() + ": cannot be written; is its folder there, and yours to write in?");
}

}  // namespace

void run_create(Workplace& place, Arguments& arguments) { open_with(place, arguments, taiyen::create_only, "created"); }
void run_open(Workplace& place, Arguments& arguments) { open_with(place, arguments, taiyen::open_only, "opened"); }

void run_save(Workplace& place, Arguments& arguments) {
    arguments.end();
    place.save();
}

void run_pack(Workplace& place, Arguments& arguments) {
    const fs::path path = arguments.next("a file");
    arguments.end();
    OpenFile& file = place.open_file();
    taiyen::compress(file.heap(), path);
    place.out << "packed " << path.filename().string() << (file.changed ? ", without the changes since the last save" : "") << '\n';
}

void run_unpack(Workplace& place, Arguments& arguments) {
    const fs::path packed = arguments.next("a compressed copy");
    const fs::path path = arguments.next("a file");
    arguments.end();
    // As an archive it needs no place in memory, which the open file may have; it becomes what the others are when it is opened.
    taiyen::ExpandOptions options;
    options.kind = taiyen::HeapKind::archive;
    taiyen::expand_file(packed, path, options);
    if (!place.may_close()) {
        place.out << path.filename().string() << " is there; 'open' opens it\n";
        return;
    }
    place.replace_file(nullptr);
    place.replace_file(std::make_unique<OpenFile>(taiyen::open_only, path));
    tell_opened(place, "unpacked");
}

void run_import(Workplace& place, Arguments& arguments) {
    const fs::path path = arguments.next("a DXF file");
    const std::string name = arguments.empty() ? path.stem().string() : arguments.next("a name");
    arguments.end();
    Document& document = place.open_file().document();
    if (document.drawings.contains(name))
        throw CommandError("there is a drawing " + as_typed(name) + " already; 'import FILE NAME' gives it another name");
    place.step("import " + name, [&] { import_dxf(document, name, path); });
    place.drawing_in_use = name;
    place.out << as_typed(name) << ": " << counted(place.drawing().entities.size(), "entity", "entities") << '\n';
}

void run_export(Workplace& place, Arguments& arguments) {
    const fs::path path = arguments.next("a file");
    arguments.end();
    const Drawing& drawing = place.drawing();
    const std::string extension = path.extension().string();
    if (extension == ".dxf") {
        write_file(path, [&](std::ostream& out) { out << dxf_text(drawing); });
    } else if (extension == ".svg" || extension == ".png") {
        const StrokeFont font(fs::path(font_folder) / "unicode.lff");
        PictureOptions options;
        options.font = &font;
        const Picture picture = picture_of(drawing, place.drawing_in_use, options);
        if (extension == ".png")
            write_png(picture, path);
        else
            write_file(path, [&](std::ostream& out) { write_svg(picture, out); });
    } else {
        arguments.misused("expected a file that ends in .svg, .png or .dxf, not '" + path.string() + "'");
    }
    place.out << "wrote " << path.filename().string() << '\n';
}

void run_info(Workplace& place, Arguments& arguments) {
    arguments.end();
    const OpenFile& file = place.open_file();
    const taiyen::HeapStats stats = file.heap().stats();
    place.out << "file       " << file.heap().path().string() << (file.changed ? ", with unsaved changes" : "") << '\n'
              << "document   " << counted(file.document().drawings.size(), "drawing", "drawings") << ", "
              << counted(census_of(file.document()).entities(), "entity", "entities") << '\n'
              << "heap       " << stats.live_bytes << " bytes in " << counted(stats.live_blocks, "block", "blocks") << '\n'
              << "unsaved    " << (file.changed ? file.heap().dirty_bytes() : 0) << " bytes of pages\n"
              << "history    " << history_text(file.heap()) << '\n';
}

void run_quit(Workplace& place, Arguments& arguments) {
    arguments.end();
    place.leaving = place.may_close();
}

}  // namespace cad::command
