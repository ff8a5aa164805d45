#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "census.hpp"
#include "checksum.hpp"
#include "demo/console.hpp"
#include "demo/page_cache.hpp"
#include "demo/process.hpp"
#include "demo/stages.hpp"
#include "dxf_import.hpp"

namespace cad::demo {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> heap_files(const fs::path& heap_file) {
    fs::path data = heap_file;
    data += ".data";
    return {heap_file, data};
}

void tell_residency(const char* key, const Residency& left) {
    if (left.told)
        std::printf("%s %llu of %llu\n", key, static_cast<unsigned long long>(left.resident), static_cast<unsigned long long>(left.pages));
    else
        std::printf("%s unknown\n", key);
}

/// Opening to look: nothing is written.
void look_and_report(const Setting& setting, const std::string& when) {
    const Clock::time_point start = Clock::now();
    const taiyen::SnapshotHeap heap(taiyen::open_read_only, setting.heap_file());
    const Document& document = *heap.find<Document>("document");
    report("entities_of_drawing", std::uint64_t{document.drawings.find(edited_drawing)->second.entities.size()});
    report(when + "_look", microseconds_since(start));
}

/// Opens the heap to edit it, asks for one drawing, walks through everything; `when` goes before the keys.
void open_and_report(const Setting& setting, const std::string& when) {
    const fs::path file = setting.heap_file();
    const Clock::time_point start = Clock::now();
    //[ another process opens it again
    taiyen::SnapshotHeap heap(taiyen::open_only, file);
    const Document& document = *heap.find<Document>("document");
    const Drawing& drawing = document.drawings.find(edited_drawing)->second;
    //]
    report(when + "_open", microseconds_since(start));
    const Clock::time_point asking = Clock::now();
    report("entities_in_middle", static_cast<std::uint64_t>(entities_in(drawing, {drawing.extents.centre(), drawing.extents.centre()}).size()));
    report(when + "_query", microseconds_since(asking));
    const Clock::time_point walking = Clock::now();
    report("entities", census_of(document).entities());
    report(when + "_walk", microseconds_since(walking));
    report("checksum", checksum(document));
    const std::string broken = broken_invariant(document);
    std::printf("broken %s\n", broken.empty() ? "nothing" : broken.c_str());
    std::printf("address %p\n", static_cast<const void*>(&document));
}

std::uint64_t parse_and_report(const std::vector<fs::path>& files, const char* key) {
    const Clock::time_point start = Clock::now();
    const std::uint64_t entities = census_of_files(files).entities();
    report(key, microseconds_since(start));
    return entities;
}

}  // namespace

int reopen_and_report(const Setting& setting) {
    const std::vector<fs::path> parts = dxf_files(setting.part_folder);
    const std::vector<fs::path> files = heap_files(setting.heap_file());
    drop_from_cache(files);
    look_and_report(setting, "cold");
    tell_residency("heap_left", drop_from_cache(files));
    open_and_report(setting, "cold");
    look_and_report(setting, "warm");
    open_and_report(setting, "warm");
    tell_residency("parts_left", drop_from_cache(parts));
    parse_and_report(parts, "cold_parse");
    report("parsed", parse_and_report(parts, "warm_parse"));
    return 0;
}

bool reopen_in_new_process(const Setting& setting) {
    heading("2. A new process opens the file, instead of parsing again");
    Child child({"--reopen", "--library", setting.part_folder.string(), "--out", setting.out.string()});
    const std::map<std::string, std::string> report = parsed_report(child.read_all());
    const int status = child.wait();
    const auto text = [&](const char* key) { return report.contains(key) ? report.at(key) : std::string(); };
    const auto figure = [&](const char* key) { return report.contains(key) ? std::stod(report.at(key)) : 0.0; };
    row("process", std::to_string(child.pid()), "its parent: " + std::to_string(getpid()) + ", the document: " + text("address"));
    row("", "page cache dropped", "warm");
    row("opened to look, a drawing found", time_text(figure("cold_look")), time_text(figure("warm_look")));
    row("opened to edit, a drawing found", time_text(figure("cold_open")), time_text(figure("warm_open")));
    row("asked what lies in its middle", time_text(figure("cold_query")), time_text(figure("warm_query")));
    row("every entity walked through", time_text(figure("cold_walk")), time_text(figure("warm_walk")));
    row("the DXF files parsed again", time_text(figure("cold_parse")), time_text(figure("warm_parse")) + ", dxflib alone");
    if (figure("warm_open") > 0 && figure("warm_look") > 0) {
        const auto times = [&](const char* key) { return grouped(static_cast<std::uint64_t>(figure("warm_parse") / figure(key))) + " x"; };
        row("opening is faster than parsing", times("warm_look"), times("warm_open") + " to edit, which makes and syncs a journal");
    }
    row("pages left in the cache (mincore)", text("heap_left") + " of the heap", text("parts_left") + " of the parts (posix_fadvise)");
    bool fine = verdict("the child came to its end", WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fine &= verdict("entities in the heap as parsed", !text("entities").empty() && text("entities") == text("parsed"), text("entities"));
    fine &= verdict("pointers, spatial index, extents", text("broken") == "nothing", text("broken") == "nothing" ? "" : text("broken"));
    return fine;
}

}  // namespace cad::demo
