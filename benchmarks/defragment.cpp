// How much faster is a map that was churned once its nodes lie as a walk through it meets them, and what does laying them anew cost? And what does it cost while the heap is open, step by step?
//
// The heap: a map of a million keys (an int with its value) that came in random order, while texts of random lengths came and went beside it and half of the keys were replaced by others; so nodes that
// follow one another lie pages apart. Then the heap is converted three ways: as it is; by address, holes closed; by reachability, by declared types. What is timed is the sum over all
// elements, in key order, with the heap mapped afresh and read once before. At last three of four elements go from a copy of the churned heap, which is then compacted while it is open: how long each step
// takes, within which the program waits, how much of that the walk takes that every step begins with (a step that moves one page), and how fast blocks move beside it.

#include <taiyen/taiyen.hpp>

#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness.hpp"
#include "machine.hpp"

namespace {

using Map = taiyen::map<std::uint64_t, std::uint64_t>;

void make_churned_heap(const std::filesystem::path& path, std::size_t keys) {
    taiyen::ArchiveHeap heap(taiyen::create_only, path);
    auto& map = heap.construct<Map>("map");
    bench::Random random(1);
    std::vector<void*> texts;
    const auto add = [&] {
        map.try_emplace(random.next(), random.next());
        if (random.next() % 2 == 0) texts.push_back(heap.allocate(8 + random.next() % 100));
        if (texts.size() > 1000) {
            std::swap(texts[random.next() % texts.size()], texts.back());
            heap.deallocate(texts.back());
            texts.pop_back();
        }
    };
    while (map.size() < keys) add();
    // Half of them go, wherever they are, and others come in their places.
    for (std::size_t i = 0; i < keys / 2; ++i) {
        const auto found = map.lower_bound(random.next());
        if (found != map.end()) map.erase(found);
    }
    while (map.size() < keys) add();
    for (void* const text : texts) heap.deallocate(text);
    heap.snapshot();
    heap.close();
}

std::uint64_t sum_of(const Map& map) {
    std::uint64_t sum = 0;
    for (const auto& [key, value] : map) sum += key ^ value;
    return sum;
}

/// One way to lay the heap, and what became of it.
struct Layout {
    std::string name;
    taiyen::Defragment order;
    std::filesystem::path path;
    double seconds = 0;
    std::size_t extent = 0;
};

taiyen::CompactReport compact_once(taiyen::ArchiveHeap& heap, std::size_t bytes) {
    taiyen::CompactOptions options;
    options.types.add<Map>();
    options.bytes_max = bytes;
    return taiyen::compact(heap, options);
}

/// Steps of at most so many bytes, up to twelve of them.
template <class Heap>
void compact_in_steps(bench::Table& table, const char* kind, const std::filesystem::path& path, std::size_t bytes, std::uint64_t expected) {
    Heap heap(taiyen::open_only, path);
    bench::Samples pauses;
    double walk = 0;
    std::uint64_t pages_before = 0;
    std::size_t moved = 0;
    taiyen::CompactReport report;
    walk = bench::microseconds_of([&] { report = compact_once(heap, 1); });
    pages_before = report.pages_before;
    double seconds = 0;
    for (int step = 0; step < 12 && report.moved_blocks != 0; ++step) {
        const double time = bench::microseconds_of([&] { report = compact_once(heap, bytes); });
        pauses.add(time / 1000);
        seconds += (time - walk) / 1e6;
        moved += report.moved_bytes;
    }
    if (sum_of(*heap.template find<Map>("map")) != expected) throw std::runtime_error("compacted, the map has other elements");
    const double mebi = 1 << 20U;
    table.row({kind, bench::fixed(static_cast<double>(bytes) / mebi, 0), bench::spread(pauses), bench::fixed(walk / 1000, 1),
               bench::fixed(static_cast<double>(moved) / mebi, 1), seconds > 0 ? bench::fixed(static_cast<double>(moved) / 1e6 / seconds, 0) : "",
               std::to_string(pages_before), std::to_string(report.pages_after), std::to_string(report.left_bytes >> 20U)});
    heap.close();
}

/// Three of four elements go; returns the sum of the others.
std::uint64_t thin_out(const std::filesystem::path& path) {
    taiyen::ArchiveHeap heap(taiyen::open_only, path);
    Map& map = *heap.find<Map>("map");
    for (auto at = map.begin(); at != map.end();) at = at->second % 4 == 0 ? std::next(at) : map.erase(at);
    const std::uint64_t sum = sum_of(map);
    heap.snapshot();
    heap.close();
    return sum;
}

void compact_copies(const std::filesystem::path& churned, const std::filesystem::path& copy) {
    bench::Table table({"open heap", "step, MiB", "pause, ms", "of that walk, ms", "moved, MiB", "MB/s", "pages before", "after", "left, MiB"});
    for (const std::size_t bytes : {std::size_t{1} << 20U, std::size_t{16} << 20U}) {
        for (const bool transactional : {false, true}) {
            std::filesystem::copy_file(churned, copy);
            const std::uint64_t expected = thin_out(copy);
            if (transactional)
                compact_in_steps<taiyen::TransactionalHeap>(table, "transactional", copy, bytes, expected);
            else
                compact_in_steps<taiyen::ArchiveHeap>(table, "archive", copy, bytes, expected);
            std::filesystem::remove(copy);
            std::filesystem::remove(copy.string() + ".log");
        }
    }
    table.print();
}

int run(const bench::Options& options) {
    const std::size_t keys = options.quick() ? 100'000 : options.number("--keys");
    bench::print_head(options, "A walk through a churned map");
    const bench::Folder folder(options.folder());
    const std::filesystem::path churned = folder / "churned.tyn";
    make_churned_heap(churned, keys);
    std::vector<Layout> layouts{{"as it was", taiyen::Defragment::no, churned},
                                {"by address", taiyen::Defragment::by_address, folder / "address.tyn"},
                                {"by reachability", taiyen::Defragment::by_reachability, folder / "reach.tyn"}};
    std::uint64_t expected = 0;
    for (Layout& layout : layouts) {
        if (layout.path != churned) {
            taiyen::ConvertOptions how;
            how.address = taiyen::anywhere;  // so that all of them can be open at once
            how.defragment = layout.order;
            how.pointers.types.add<Map>();
            layout.seconds = bench::microseconds_of([&] { taiyen::convert(churned, layout.path, how); }) / 1e6;
        }
        const taiyen::ArchiveHeap heap(taiyen::open_read_only, layout.path);
        layout.extent = heap.stats().extent_bytes;
        const std::uint64_t sum = sum_of(*heap.find<Map>("map"));
        if (layout.path == churned) expected = sum;
        if (sum != expected) throw std::runtime_error(layout.name + ": the map has other elements");
    }
    std::vector<bench::Contender> contenders;
    for (const Layout& layout : layouts) {
        contenders.push_back({layout.name, [&layout, expected] {
                                  const taiyen::ArchiveHeap heap(taiyen::open_read_only, layout.path);
                                  const Map& map = *heap.find<Map>("map");
                                  sum_of(map);  // the pages come
                                  std::uint64_t sum = 0;
                                  const double time = bench::microseconds_of([&] { sum = sum_of(map); });
                                  if (sum != expected) throw std::runtime_error("the map has other elements");
                                  return time;
                              }});
    }
    const std::vector<bench::Samples> samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({"layout", "converted in, s", "in use, MiB", "walk, ms", "times as fast"});
    for (std::size_t i = 0; i < layouts.size(); ++i) {
        bench::Samples milliseconds;
        for (std::size_t round = 0; round < samples[i].size(); ++round) milliseconds.add(samples[i][round] / 1000);
        table.row({layouts[i].name, i == 0 ? "" : bench::fixed(layouts[i].seconds, 2),
                   bench::fixed(static_cast<double>(layouts[i].extent) / (1 << 20U)), bench::spread(milliseconds),
                   bench::spread(bench::ratio(samples[0], samples[i]), 2)});
    }
    table.print();
    compact_copies(churned, folder / "compacted.tyn");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "How much faster is a walk through a churned map whose nodes were laid anew?", 7,
                                  bench::Priority::normal, {{"--keys", "1000000", "elements of the map"}}));
    });
}
