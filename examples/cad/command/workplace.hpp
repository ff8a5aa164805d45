#pragma once
/// What the commands of a session work on: one heap file, one drawing of it in use, and somewhere to write to.

#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"

namespace cad::command {

/// An open heap file with the document in it.
class OpenFile {
public:
    /// Resumes the history, or begins a new one if there is none or it is damaged. Throws taiyen::Error; CommandError if the heap has no document.
    OpenFile(taiyen::open_only_t, const std::filesystem::path& path);
    /// Makes the file, with an empty document, saves it and begins a history. Throws taiyen::Error.
    OpenFile(taiyen::create_only_t, const std::filesystem::path& path);

    taiyen::SnapshotHeap& heap() { return heap_; }
    const taiyen::SnapshotHeap& heap() const { return heap_; }
    Document& document() { return *document_; }
    const Document& document() const { return *document_; }
    std::string name() const { return heap_.path().filename().string(); }

    bool changed = false;  ///< since it was opened or saved
    std::string remark;    ///< what opening has to tell; mostly empty

private:
    taiyen::SnapshotHeap heap_;
    Document* document_;
};

class Workplace {
public:
    explicit Workplace(std::ostream& output) : out(output) {}

    /// Throws CommandError that says what to do if there is none; also below.
    OpenFile& open_file();
    Drawing& drawing();
    /// The drawing in use if it is (still, again) there.
    Drawing* drawing_if_any();
    /// Throws CommandError that names the nearest one.
    Drawing& drawing_named(const std::string& name);
    NamedLayer& layer_named(const std::string& name);

    /// Carries out `change` as one step of the file's history: all of it happens, or, if it throws, nothing.
    void step(std::string_view name, const std::function<void()>& change);

    /// Says, or on a terminal asks, what becomes of unsaved changes before the file is closed; false: it must stay open.
    bool may_close();
    /// Closes the open file, if there is one, and works on `next`.
    void replace_file(std::unique_ptr<OpenFile> next);
    void save();

    std::string prompt();
    std::vector<std::string> drawing_names();
    std::vector<std::string> layer_names();

    std::ostream& out;
    std::unique_ptr<OpenFile> file;
    std::string drawing_in_use;
    bool leaving = false;
    std::function<std::string(const std::string&)> ask;  ///< null: nobody is there to be asked
};

}  // namespace cad::command
