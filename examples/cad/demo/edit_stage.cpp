#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "demo/console.hpp"
#include "demo/file_anew.hpp"
#include "demo/stages.hpp"
#include "dxf_export.hpp"

namespace cad::demo {
namespace {

constexpr int rounds = 41;
constexpr int rounds_of_everything = 5;

/// Times and bytes of one way to save.
struct Samples {
    std::vector<double> microseconds;
    std::vector<double> content_bytes;
    std::vector<double> sent_bytes;

    template <class Save>
    void measure(std::size_t content, Save save) {
        const std::uint64_t before = bytes_sent_to_storage();
        const Clock::time_point start = Clock::now();
        save();
        microseconds.push_back(microseconds_since(start));
        content_bytes.push_back(static_cast<double>(content));
        sent_bytes.push_back(static_cast<double>(bytes_sent_to_storage() - before));
    }
    void print(std::string_view label) const {
        std::string remark = bytes_text(static_cast<std::uint64_t>(median(content_bytes)));
        // Some file systems, and kernels built without task accounting, count nothing.
        if (const auto sent = static_cast<std::uint64_t>(median(sent_bytes)); sent != 0) remark += ", " + bytes_text(sent) + " to the disk";
        row(label, time_text(median(microseconds)), remark);
    }
};

/// A short line somewhere in the drawing.
void draw_a_line(Drawing& drawing, int number) {
    const Box& box = drawing.extents;
    const Point2 from{box.low.x + box.width() * std::fmod(number * 0.618, 1), box.low.y + box.height() * std::fmod(number * 0.382, 1)};
    const Point2 to = from + Point2{box.width(), -box.height()} * 0.02;
    NamedLayer* layer = &*drawing.layers.begin();
    //[ an edit is what it always was; heap.snapshot() saves it
    add(drawing, Entity{.layer = layer, .colour = {.index = 3}, .shape = Line{from, to}});
    //]
}

std::string text_of_everything(const Document& document) {
    std::string text;
    for (const auto& [name, drawing] : document.drawings) text += dxf_text(drawing);
    return text;
}

}  // namespace

bool save_one_edit(const Setting& setting) {
    heading("4. One line drawn and saved, against writing the file anew");
    taiyen::SnapshotHeap heap(taiyen::open_only, setting.heap_file());
    Document& document = *heap.find<Document>("document");
    Drawing& drawing = document.drawings.find(edited_drawing)->second;
    const std::filesystem::path drawing_file = setting.out / "v21.dxf";
    const std::filesystem::path library_file = setting.out / "library.txt";

    Samples saves;
    Samples bare;
    Samples files;
    Samples everything;
    std::optional<BareDisk> disk;
    try {
        disk.emplace(setting.out / "bare.bin");
    } catch (const std::system_error& error) {
        say(std::string("(no bare disk to compare with: ") + error.what() + ")");
    }
    // Interleaved and in turns, so that the disk's moods and the neighbours' syncs strike all alike.
    for (int round = 0; round < rounds; ++round) {
        draw_a_line(drawing, round);
        ++document.revision;
        const std::size_t changed = heap.dirty_bytes();
        const std::size_t size = dxf_text(drawing).size();
        for (int turn = 0; turn < 3; ++turn) {
            switch ((round + turn) % 3) {
                case 0: saves.measure(changed, [&] { heap.snapshot(); }); break;
                case 1:
                    if (disk) bare.measure(changed, [&] { disk->write(changed); });
                    break;
                default: files.measure(size, [&] { write_file_anew(drawing_file, dxf_text(drawing)); }); break;
            }
        }
    }
    for (int round = 0; round < rounds_of_everything; ++round) {
        const std::size_t size = text_of_everything(document).size();
        everything.measure(size, [&] { write_file_anew(library_file, text_of_everything(document)); });
    }
    std::filesystem::remove(library_file);
    row("", "median", std::to_string(rounds) + " rounds, interleaved");
    saves.print("heap.snapshot()");
    if (disk) bare.print("a bare direct write of the bytes");
    files.print("this drawing's DXF anew");
    everything.print("all drawings as one text anew");
    char factors[96];
    std::snprintf(factors, sizeof factors, "%.1f x, %.0f x", median(files.microseconds) / median(saves.microseconds),
                  median(everything.microseconds) / median(saves.microseconds));
    row("the snapshot is faster by", factors, "files are written beside, synced, renamed");
    if (disk) {
        std::snprintf(factors, sizeof factors, "%.2f x the bare", median(saves.microseconds) / median(bare.microseconds));
        row("the snapshot takes", factors, "O_DIRECT | O_DSYNC, in place");
    }
    return true;
}

}  // namespace cad::demo
