#include <taiyen/inspect/measure.hpp>

#include <cstdio>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/own_folder.hpp"

namespace taiyen::tool {
namespace {

std::string figure(double value) {
    char text[40];
    if (value >= 1000) return count_text(static_cast<std::uint64_t>(value + 0.5));
    std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
    return text;
}

Exit run_bench(const Given& given) {
    const std::string folder = given.value("folder").value_or(".");
    const std::size_t seconds = given.number("seconds", 10);
    const std::size_t mebibytes = given.number("mebibytes", 64);
    if (seconds == 0 || seconds > 3600) throw Error(errc::invalid_argument, "--seconds takes 1 to 3600");
    if (mebibytes == 0 || mebibytes > 65'536) throw Error(errc::invalid_argument, "--mebibytes takes 1 to 65536");
    MeasureOptions options;
    options.time = std::chrono::seconds(seconds);
    options.snapshot_bytes = mebibytes << 20U;
    std::vector<Measurement> found;
    {
        ProgressLine line("measuring");
        options.progress = line.progress();
        const OwnFolder own(folder);
        found = measure(own.path(), options);
    }
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("folder", folder).member("snapshot_bytes", options.snapshot_bytes).key("figures").begin_array();
        for (const Measurement& one : found) {
            json.begin_object().member("name", one.name).member("what", one.what).member("value", one.value).member("unit", one.unit);
            if (!one.beside.empty()) json.member("beside", one.beside).member("reference", one.reference).member("ratio", one.ratio);
            json.end_object();
        }
        json.end_array().end_object();
        print(json);
        return Exit::ok;
    }
    const auto with_unit = [](double value, const Measurement& one) { return figure(value) + " " + (one.unit == "us" ? "µs" : one.unit); };
    const auto if_compared = [](const Measurement& one, const std::string& text) { return one.beside.empty() ? "" : text; };
    print_table(found, {{"MEASURED", Align::left, [](const Measurement& one) { return one.what; }},
                        {"HEAP", Align::right, [&](const Measurement& one) { return styled(Style::bold, with_unit(one.value, one)); }},
                        {"WITHOUT", Align::right, [&](const Measurement& one) { return if_compared(one, with_unit(one.reference, one)); }},
                        {"", Align::left, [](const Measurement& one) { return styled(Style::faint, one.beside); }},
                        {"SPEED", Align::right, [&](const Measurement& one) { return if_compared(one, figure(one.ratio) + " x"); }}});
    print("\nspeed: how many times as fast the heap is as what stands beside it\n");
    return Exit::ok;
}

}  // namespace

Command bench_command() {
    return {"bench",
            "Measures what heaps do on a disk",
            "Makes heaps in a folder, measures for about ten seconds, and removes them: blocks, first stores, snapshots, durable and asynchronous "
            "commits, opening; beside what "
            "the machine gives without a heap. It tells what to expect of a disk, and whether something is wrong with it; other work on the machine "
            "shows in every figure.",
            {},
            {{"folder", "DIR", "where, on the disk to be measured (.)"},
             {"seconds", "N", "about as long (10)"},
             {"mebibytes", "N", "that a snapshot saves (64); twice as much is needed on the disk"},
             {"json", "", "print one JSON object instead of text"}},
            "",
            run_bench};
}

}  // namespace taiyen::tool
