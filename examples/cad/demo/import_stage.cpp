#include <string>

#include "census.hpp"
#include "demo/console.hpp"
#include "demo/stages.hpp"
#include "dxf_import.hpp"

namespace cad::demo {
namespace {

namespace fs = std::filesystem;

bool print_counts(const Census& kept, const Census& bare) {
    row("", "in the heap", "bare dxflib count");
    for (std::size_t i = 0; i < kind_count; ++i) {
        const auto kind = static_cast<Kind>(i);
        if (kept[kind] != 0 || bare[kind] != 0) {
            const bool equal = kept[kind] == bare[kind];
            row(name_of(kind), grouped(kept[kind]), grouped(bare[kind]) + (equal ? "" : "  DIFFERS"));
        }
    }
    return verdict("all counts equal", kept == bare, grouped(kept.entities()) + " entities");
}

}  // namespace

void remove_heap(const fs::path& heap_file) {
    for (const char* suffix : {"", ".data", ".journal"}) {
        fs::path file = heap_file;
        file += suffix;
        fs::remove(file);
    }
}

bool import_and_save(const Setting& setting) {
    heading("1. LibreCAD's part library, imported from DXF into a heap");
    const fs::path file = setting.heap_file();
    remove_heap(file);
    double imported_in = 0;
    const auto import_all = [&](Document& document) {
        ProgressBar bar("importing");
        const Clock::time_point start = Clock::now();
        import_library(document, setting.part_folder, [&](std::size_t done, std::size_t all, std::string_view name) { bar.show(done, all, name); });
        imported_in = microseconds_since(start);
    };
    //[ a program keeps its data in a heap
    taiyen::SnapshotHeap heap(taiyen::create_only, file);
    Document& document = heap.construct<Document>("document");
    import_all(document);
    //]
    const Clock::time_point parsing = Clock::now();
    const Census bare = census_of_files(dxf_files(setting.part_folder));
    const double parsed_in = microseconds_since(parsing);
    const bool equal = print_counts(census_of(document), bare);
    row("imported in", time_text(imported_in), grouped(document.drawings.size()) + " drawings; dxflib alone: " + time_text(parsed_in));

    const std::size_t unsaved = heap.dirty_bytes();
    const Clock::time_point saving = Clock::now();
    //[ and saves it
    heap.snapshot();
    //]
    const double saved_in = microseconds_since(saving);
    row("saved in", time_text(saved_in), bytes_text(unsaved) + ", two copies, durable");
    row("to", file.string());
    return equal;
}

}  // namespace cad::demo
