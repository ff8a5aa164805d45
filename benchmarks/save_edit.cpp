// What does saving a small edit cost, compared with a bare durable write of the same bytes, and how does it grow with the pages that were read?

#include <cstdio>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "heaps.hpp"
#include "machine.hpp"

namespace {

constexpr std::size_t edited_pages = 6;

void edit(const bench::Document& document, bench::Random& random) {
    for (std::size_t i = 0; i < edited_pages; ++i) bench::fill(document.page(random.below(document.pages())) + 512, 64, random);
}

/// The record of six pages: their images, their numbers and checksums, and the ring's own bytes, in whole sectors of 4 KiB.
constexpr std::size_t record_bytes = (edited_pages + 1) * 4096;

struct Save {
    double microseconds;
    double bare_microseconds;  ///< of a bare write of the record's bytes, right before or right after
    std::uint64_t write_calls;
    std::uint64_t write_bytes;
};

/// The save and its yardstick, side by side; which of them goes first alternates.
template <class Heap>
Save save(Heap& heap, bench::DirectFile& bare) {
    static bool bare_first = false;
    bare_first = !bare_first;
    Save result{};
    if (bare_first) result.bare_microseconds = bare.write(record_bytes);
    const bench::Counters before = bench::Counters::now();
    result.microseconds = bench::microseconds_of([&] { heap.snapshot(); });
    const bench::Counters after = bench::Counters::now();
    if (!bare_first) result.bare_microseconds = bare.write(record_bytes);
    result.write_calls = after.write_calls - before.write_calls;
    result.write_bytes = after.write_bytes - before.write_bytes;
    return result;
}

/// A heap freshly opened, `touched` bytes of it read, six pages changed; the save.
template <class Heap>
Save save_fresh(const std::filesystem::path& path, taiyen::PageTrackerChoice tracker, std::size_t touched, bool table_cached, bench::DirectFile& bare,
                bench::Random& random) {
    if (!table_cached) bench::forget_cached(path);
    taiyen::PersistentOptions options;
    options.tracker = tracker;
    Heap heap(taiyen::open_only, path, options);
    const bench::Document& document = bench::document_of(heap);
    bench::read_through(document, touched);
    edit(document, random);
    ::usleep(20'000);  // the device still discards the blocks of the last opening's journal
    const Save result = save(heap, bare);
    heap.close();
    return result;
}

template <class Heap>
void fresh_heaps(const bench::Options& options, const std::filesystem::path& path, std::size_t megabytes, taiyen::PageTrackerChoice tracker,
                 bench::DirectFile& bare) {
    struct Case {
        std::string name;
        std::size_t touched;
        bool cached;
        bench::Samples bare;
        bench::Samples slope;
    };
    std::vector<Case> cases;
    for (const std::size_t touched : {std::size_t{0}, megabytes / 8, megabytes / 2, megabytes})
        cases.push_back({"snapshot(), " + std::to_string(touched) + " MiB read since the opening", touched, true, {}, {}});
    cases.push_back({"snapshot(), nothing read, file not in the page cache before", 0, false, {}, {}});
    bench::Random random(tracker == taiyen::PageTrackerChoice::scan ? 7 : 13);  // the same edit again would change nothing
    std::uint64_t calls_min = UINT64_MAX;
    std::uint64_t calls_max = 0;
    std::uint64_t bytes = 0;
    std::vector<bench::Contender> contenders;
    for (Case& one : cases) {
        contenders.push_back({one.name, [&] {
                                  const Save result = save_fresh<Heap>(path, tracker, one.touched << 20U, one.cached, bare, random);
                                  one.bare.add(result.bare_microseconds);
                                  calls_min = std::min(calls_min, result.write_calls);
                                  calls_max = std::max(calls_max, result.write_calls);
                                  bytes = std::max(bytes, result.write_bytes);
                                  return result.microseconds;
                              }});
    }
    save_fresh<Heap>(path, tracker, megabytes << 20U, true, bare, random);  // brings the file into the page cache
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({"", "µs", "bare write beside it, µs", "ratio", "µs more per MiB read"});
    for (std::size_t i = 0; i < cases.size(); ++i) {
        for (std::size_t round = 0; cases[i].touched > 0 && round < samples[i].size(); ++round)
            cases[i].slope.add((samples[i][round] - samples[0][round]) / static_cast<double>(cases[i].touched));
        table.row({cases[i].name, bench::spread(samples[i]), bench::spread(cases[i].bare), bench::spread(bench::ratio(samples[i], cases[i].bare), 2),
                   cases[i].slope.empty() ? "" : bench::spread(cases[i].slope, 2)});
    }
    table.print();
    std::printf("write calls in snapshot(): %llu", static_cast<unsigned long long>(calls_min));
    if (calls_max != calls_min) std::printf(" to %llu", static_cast<unsigned long long>(calls_max));
    std::printf(", of at most %llu bytes; the bare write: one of %zu bytes, O_DIRECT|O_DSYNC, into blocks written before\n\n",
                static_cast<unsigned long long>(bytes), record_bytes);
}

/// Many edits in one opening: what a program pays on average, checkpoints included.
template <class Heap>
void steady(const bench::Options& options, const std::filesystem::path& path, bench::DirectFile& bare) {
    const int saves = options.quick() ? 60 : 400;
    Heap heap(taiyen::open_only, path);
    const bench::Document& document = bench::document_of(heap);
    bench::Random random(11);
    bench::Samples single;
    bench::Samples checkpoint;
    bench::Samples bare_times;
    double total = 0;
    double bare_total = 0;
    for (int i = 0; i < saves; ++i) {
        edit(document, random);
        const Save result = save(heap, bare);
        (result.write_calls == 1 ? single : checkpoint).add(result.microseconds);
        total += result.microseconds;
        bare_times.add(result.bare_microseconds);
        bare_total += result.bare_microseconds;
    }
    heap.close();
    bench::Table table({"", "saves", "µs", "mean, µs"});
    table.row(
        {"bare direct synchronous write of the same bytes", std::to_string(saves), bench::spread(bare_times), bench::fixed(bare_total / saves)});
    table.row({"snapshot() with one durable write", std::to_string(single.size()), bench::spread(single), ""});
    table.row({"snapshot() with a checkpoint", std::to_string(checkpoint.size()), bench::spread(checkpoint), ""});
    table.row({"all of them", std::to_string(saves), "", bench::fixed(total / saves)});
    table.print();
}

template <class Heap>
void all(const bench::Options& options, const bench::Folder& folder, std::size_t megabytes) {
    const char* const kind = bench::name_of(static_cast<Heap*>(nullptr));
    const auto path = folder / (std::string(kind) + ".tyn");
    bench::make_heap<Heap>(path, megabytes << 20U);
    bench::DirectFile bare(folder / (std::string(kind) + ".bare"), std::size_t{1} << 20U);
    for (const auto& [tracker, name] :
         {std::pair{taiyen::PageTrackerChoice::scan, "PAGEMAP_SCAN"}, std::pair{taiyen::PageTrackerChoice::pagemap, "pagemap"}}) {
        std::printf("%s of %zu MiB, freshly opened, six pages edited, written pages found by %s\n", kind, megabytes, name);
        bench::settle(folder / "settle");
        try {
            fresh_heaps<Heap>(options, path, megabytes, tracker, bare);
        } catch (const taiyen::Error& error) {
            std::printf("not measured: %s\n\n", error.what());
        }
    }
    std::printf("%s of %zu MiB, opened once, six pages edited and saved again and again\n", kind, megabytes);
    bench::settle(folder / "settle");
    steady<Heap>(options, path, bare);
}

int run(const bench::Options& options) {
    bench::print_head(options, "Saving a small edit");
    const std::size_t megabytes = options.quick() ? 32 : 512;
    const bench::Folder folder(options.folder());
    all<taiyen::ArchiveHeap>(options, folder, megabytes);
    all<taiyen::SnapshotHeap>(options, folder, megabytes);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded(
        [&] { return run(bench::Options(argc, argv, "What does saving six edited pages of a 512 MiB heap cost?", 15, bench::Priority::real_time)); });
}
