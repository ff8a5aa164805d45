// How much faster is a map that was churned once its nodes lie as a walk through it meets them, and what does laying them anew cost?
//
// The heap: a map of a million keys (an int with its value) that came in random order, while texts of random lengths came and went beside it and half of the keys were replaced by others; so nodes that
// follow one another lie pages apart. Then the heap is converted three ways: as it is; by address, holes closed; by reachability, by declared types. What is timed is the sum over all
// elements, in key order, with the heap mapped afresh and read once before.

#include <taiyen/taiyen.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include "harness.hpp"
#include "machine.hpp"

namespace {

using Map = taiyen::map<std::uint64_t, std::uint64_t>;

void make_churned_heap(const std::filesystem::path& path, std::size_t keys) {
    taiyen::ArchiveHeap heap(taiyen::create_only, path);
    const taiyen::CurrentHeap use(heap);
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
            how.base = taiyen::anywhere;  // so that all of them can be open at once
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
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "How much faster is a walk through a churned map whose nodes were laid anew?", 7,
                                  bench::Priority::normal, {{"--keys", "1000000", "elements of the map"}}));
    });
}
