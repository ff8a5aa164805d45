// What does a heap that may be mapped anywhere cost where pointers are followed: finding keys of a large ordered map?
//
// The same keys in the same random order in each: the standard library's map with raw pointers, Boost's map with raw pointers (so that the container and the pointer can be told apart), Boost's map with offset_ptr in a
// position-independent heap.

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "machine.hpp"

#ifdef TAIYEN_BENCH_BOOST
#include <taiyen/stl/offset_ptr.hpp>
#endif

namespace {

volatile std::uint64_t sink = 0;  ///< what was found goes somewhere

template <class Map>
class Filled {
public:
    Filled(const std::filesystem::path& path, bool position_independent, const std::vector<int>& keys) {
        taiyen::PersistentOptions options;
        options.position_independent = position_independent;
        heap_.emplace(taiyen::create_only, path, options);
        Map& map = heap_->construct<Map>("map");
        for (const int key : keys) map.emplace(key, key);
        map_ = &map;
    }

    /// Nanoseconds for each.
    double find(const std::vector<int>& keys) const {
        std::uint64_t sum = 0;
        const double time = bench::processor_microseconds_of([&] {
            for (const int key : keys) sum += static_cast<std::uint64_t>(map_->find(key)->second);
        });
        sink = sink + sum;
        return time * 1e3 / static_cast<double>(keys.size());
    }

    double walk() const {
        std::uint64_t sum = 0;
        const double time = bench::processor_microseconds_of([&] {
            for (const auto& [key, value] : *map_) sum += static_cast<std::uint64_t>(value);
        });
        sink = sink + sum;
        return time * 1e3 / static_cast<double>(map_->size());
    }

private:
    std::optional<taiyen::ArchiveHeap> heap_;
    const Map* map_ = nullptr;
};

std::vector<int> shuffled(std::size_t count, std::uint64_t seed) {
    std::vector<int> keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = static_cast<int>(i);
    bench::Random random(seed);
    for (std::size_t i = count - 1; i > 0; --i) std::swap(keys[i], keys[random.below(i + 1)]);
    return keys;
}

int run(const bench::Options& options) {
    bench::print_head(options, "Finding keys by raw pointers and by distances");
    for (const std::size_t nodes : {std::size_t{10'000}, options.quick() ? std::size_t{100'000} : std::size_t{1'000'000}}) {
        const bench::Folder folder(options.folder());
        const std::vector<int> keys = shuffled(nodes, 9);
        const std::vector<int> asked = shuffled(nodes, 10);
        const Filled<taiyen::map<int, int>> standard(folder / "standard.tyn", false, keys);
        std::vector<bench::Contender> find{{"taiyen::map", [&] { return standard.find(asked); }}};
        std::vector<bench::Contender> walk{{"taiyen::map", [&] { return standard.walk(); }}};
#ifdef TAIYEN_BENCH_BOOST
        using Raw = boost::container::map<int, int, std::less<>, taiyen::persistent_allocator<std::pair<const int, int>>>;
        const Filled<Raw> raw(folder / "raw.tyn", false, keys);
        const Filled<taiyen::offset::map<int, int>> distances(folder / "offset.tyn", true, keys);
        find.push_back({"Boost map, raw pointers", [&] { return raw.find(asked); }});
        find.push_back({"taiyen::offset::map", [&] { return distances.find(asked); }});
        walk.push_back({"Boost map, raw pointers", [&] { return raw.walk(); }});
        walk.push_back({"taiyen::offset::map", [&] { return distances.walk(); }});
#endif
        const auto found = bench::interleave(options.rounds(), find);
        const auto walked = bench::interleave(options.rounds(), walk);
        bench::Table table({std::to_string(nodes) + " nodes", "find, ns", "ratio", "walk, ns for each", "ratio"});
        for (std::size_t i = 0; i < find.size(); ++i) {
            table.row({find[i].name, bench::spread(found[i], 0), bench::spread(bench::ratio(found[i], found[0]), 2), bench::spread(walked[i], 1),
                       bench::spread(bench::ratio(walked[i], walked[0]), 2)});
        }
        table.print();
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(
            bench::Options(argc, argv, "What does a heap that may be mapped anywhere cost where pointers are followed?", 7, bench::Priority::normal));
    });
}
