#include "command/workplace.hpp"

#include <algorithm>

#include "command/words.hpp"

namespace cad::command {
namespace {

constexpr const char* document_name = "document";

Document* document_of(taiyen::SnapshotHeap& heap) {
    Document* const document = heap.find<Document>(document_name);
    if (document == nullptr)
        throw CommandError(heap.path().string() + ": a heap, but not of drawings: it has no object named '" + document_name + "'");
    return document;
}

/// The most that a step's name may have, and not half a character.
std::string_view step_name(std::string_view name) {
    constexpr std::size_t bytes_max = 1024;
    std::size_t size = std::min(name.size(), bytes_max);
    while (size < name.size() && size > 0 && (static_cast<unsigned char>(name[size]) & 0xc0U) == 0x80) --size;
    return name.substr(0, size);
}

template <class Map>
std::vector<std::string> names_of(const Map& map) {
    std::vector<std::string> names;
    for (const auto& named : map) names.emplace_back(named.first);
    return names;
}

[[noreturn]] void throw_unknown(const std::string& what, const std::string& name, const std::vector<std::string>& known, const std::string& remedy) {
    const std::string guess = nearest(name, known);
    throw CommandError("there is no " + what + " " + as_typed(name) + "; " + (guess.empty() ? remedy : "did you mean " + as_typed(guess) + "?"));
}

}  // namespace

OpenFile::OpenFile(taiyen::open_only_t, const std::filesystem::path& path) : heap_(taiyen::open_only, path), document_(document_of(heap_)) {
    try {
        heap_.attach_undo();
    } catch (const taiyen::Error& error) {
        // Drawings without their history are better than none.
        if (error.code() != taiyen::errc::corrupt) throw;
        remark = error.what();
        heap_.attach_undo();
    }
}

OpenFile::OpenFile(taiyen::create_only_t, const std::filesystem::path& path)
    : heap_(taiyen::create_only, path), document_(&heap_.construct<Document>(document_name)) {
    heap_.snapshot();
    heap_.attach_undo();  // now: making the document is no step
}

OpenFile& Workplace::open_file() {
    if (!file) throw CommandError("no file is open: 'open FILE' opens one, 'create FILE' makes one");
    return *file;
}

Drawing* Workplace::drawing_if_any() {
    if (!file) return nullptr;
    const auto at = file->document().drawings.find(drawing_in_use);
    return at == file->document().drawings.end() ? nullptr : &at->second;
}

Drawing& Workplace::drawing() {
    open_file();
    Drawing* const found = drawing_if_any();
    if (found == nullptr) throw CommandError("no drawing is in use: 'use NAME' picks one, 'drawing new NAME' makes one");
    return *found;
}

Drawing& Workplace::drawing_named(const std::string& name) {
    auto& drawings = open_file().document().drawings;
    const auto at = drawings.find(name);
    if (at == drawings.end()) throw_unknown("drawing", name, drawing_names(), "'list' names those that are");
    return at->second;
}

NamedLayer& Workplace::layer_named(const std::string& name) {
    auto& layers = drawing().layers;
    const auto at = layers.find(name);
    if (at == layers.end()) throw_unknown("layer", name, layer_names(), "'layer new " + as_typed(name) + "' makes it");
    return *at;
}

void Workplace::step(std::string_view name, const std::function<void()>& change) {
    OpenFile& here = open_file();
    //[ every command is a step of the history, or never happened
    taiyen::UndoScope scope(here.heap(), step_name(name));
    change();
    ++here.document().revision;
    scope.commit();
    //]
    here.changed = true;
}

void Workplace::replace_file(std::unique_ptr<OpenFile> next) {
    file.reset();
    file = std::move(next);
}

void Workplace::save() {
    OpenFile& here = open_file();
    here.heap().snapshot();
    here.changed = false;
    out << "saved " << here.name() << '\n';
}

bool Workplace::may_close() {
    if (!file || !file->changed) return true;
    if (!ask) {
        out << file->name() << ": the changes since the last save are dropped\n";
        return true;
    }
    while (true) {
        const std::string answer = ask(file->name() + " has unsaved changes. Save, drop them, or stay? [s/d/STAY] ");
        switch (answer.empty() ? '\0' : answer.front()) {
            case 's':
            case 'S': save(); return true;
            case 'd':
            case 'D': return true;
            case '\0': return false;
            default:
                if (std::string_view("stay").starts_with(answer) || answer == "STAY") return false;
        }
    }
}

std::string Workplace::prompt() {
    if (drawing_if_any() != nullptr) return drawing_in_use + "> ";
    return (file ? file->name() : std::string("cad")) + "> ";
}

std::vector<std::string> Workplace::drawing_names() { return file ? names_of(file->document().drawings) : std::vector<std::string>(); }

std::vector<std::string> Workplace::layer_names() {
    const Drawing* const here = drawing_if_any();
    return here != nullptr ? names_of(here->layers) : std::vector<std::string>();
}

}  // namespace cad::command
