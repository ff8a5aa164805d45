// What does it cost to fill a map of a million nodes that lives in a file, in time and in bytes?
//
// Keys 0 … n-1 in a random order, the same for everybody, each inserted into an ordered map<int, int>. Bytes are counted as each heap counts them, against its own
// favour only for taiyen: pages written, metadata included.

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#ifdef TAIYEN_BENCH_BOOST
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/allocators/private_adaptive_pool.hpp>
#include <boost/interprocess/containers/map.hpp>
#endif

#include "harness.hpp"
#include "machine.hpp"
#include "peers.hpp"

namespace {

struct Filling {
    double milliseconds = 0;
    double bytes_per_node = 0;
    double then_milliseconds = 0;  ///< saving
};

struct Subject {
    std::string name;
    std::function<Filling(const std::vector<int>& keys)> fill;
};

template <class Map>
double fill(Map& map, const std::vector<int>& keys) {
    const double time = bench::processor_microseconds_of([&] {
        for (const int key : keys) map.emplace(key, key);
    });
    if (map.size() != keys.size()) throw std::runtime_error("the map lost nodes");
    return time / 1000;
}

Filling fill_taiyen(const std::filesystem::path& path, const std::vector<int>& keys) {
    taiyen::ArchiveHeap heap(taiyen::create_only, path);
    auto& map = heap.construct<taiyen::map<int, int>>("map");
    heap.snapshot();
    const std::size_t before = heap.dirty_bytes();
    Filling result;
    result.milliseconds = fill(map, keys);
    result.bytes_per_node = static_cast<double>(heap.dirty_bytes() - before) / static_cast<double>(keys.size());
    result.then_milliseconds = bench::microseconds_of([&] { heap.snapshot(); }) / 1000;
    return result;
}

#ifdef TAIYEN_BENCH_BOOST
void sync_file(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0 || ::fdatasync(file) != 0) throw std::runtime_error(path.string() + ": can't be synced: " + std::strerror(errno));
    ::close(file);
}

constexpr std::size_t file_bytes = std::size_t{512} << 20U;

template <template <class, class> class Allocator>
Filling fill_boost(const std::filesystem::path& path, const std::vector<int>& keys) {
    namespace ipc = boost::interprocess;
    using Manager = bench::BoostFileNoLock::segment_manager;
    using Pairs = Allocator<std::pair<const int, int>, Manager>;
    using Map = ipc::map<int, int, std::less<int>, Pairs>;
    bench::BoostFileNoLock file(ipc::create_only, path.c_str(), file_bytes);
    Map& map = *file.construct<Map>("map")(std::less<int>(), Pairs(file.get_segment_manager()));
    const std::size_t before = file.get_free_memory();
    Filling result;
    result.milliseconds = fill(map, keys);
    result.bytes_per_node = static_cast<double>(before - file.get_free_memory()) / static_cast<double>(keys.size());
    result.then_milliseconds = bench::microseconds_of([&] { sync_file(path); }) / 1000;  // file.flush() only asks the kernel to begin
    return result;
}
template <class T, class Manager>
using BestFit = boost::interprocess::allocator<T, Manager>;
template <class T, class Manager>
using AdaptivePool = boost::interprocess::private_adaptive_pool<T, Manager>;
#endif

#ifdef TAIYEN_BENCH_PMEMOBJ
/// Raw pointers into the mapped pool: a std::map as it is, good as long as the pool is mapped here.
PMEMobjpool* current_pool = nullptr;
std::uint64_t current_class = 0;

template <class T>
struct PoolAllocator {
    using value_type = T;
    PoolAllocator() = default;
    template <class U>
    PoolAllocator(const PoolAllocator<U>&) {}
    T* allocate(std::size_t count) {
        PMEMoid block{};
        if (::pmemobj_xalloc(current_pool, &block, count * sizeof(T), 0, current_class, nullptr, nullptr) != 0) throw std::bad_alloc();
        return static_cast<T*>(::pmemobj_direct(block));
    }
    void deallocate(T* block, std::size_t) {
        PMEMoid id = ::pmemobj_oid(block);
        ::pmemobj_free(&id);
    }
    friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

/// `own_class`: bytes of an allocation class made for the nodes, which take 40; 0: the default classes.
Filling fill_pmemobj(const std::filesystem::path& path, const std::vector<int>& keys, std::size_t own_class) {
    bench::PmemobjBlocks blocks(path, std::size_t{512} << 20U);
    int enabled = 1;
    ::pmemobj_ctl_set(blocks.pool(), "stats.enabled", &enabled);
    current_pool = blocks.pool();
    current_class = 0;
    if (own_class != 0) {
        pobj_alloc_class_desc description{};
        description.unit_size = own_class;
        description.alignment = 0;
        description.units_per_block = 4096;
        description.header_type = POBJ_HEADER_NONE;
        if (::pmemobj_ctl_set(blocks.pool(), "heap.alloc_class.new.desc", &description) != 0)
            throw std::runtime_error(std::string("allocation class: ") + ::pmemobj_errormsg());
        current_class = POBJ_CLASS_ID(description.class_id);
    }
    const auto used = [&] {
        std::uint64_t bytes = 0;
        ::pmemobj_ctl_get(blocks.pool(), "stats.heap.curr_allocated", &bytes);
        return bytes;
    };
    const std::uint64_t before = used();
    using Map = std::map<int, int, std::less<int>, PoolAllocator<std::pair<const int, int>>>;
    auto map = std::make_unique<Map>();
    Filling result;
    result.milliseconds = fill(*map, keys);
    result.bytes_per_node = static_cast<double>(used() - before) / static_cast<double>(keys.size());
    map.release();  // its nodes go with the file
    return result;
}
#endif

int run(const bench::Options& options) {
    bench::print_head(options, "Filling an ordered map that lives in a file");
    bench::print_peers();
    std::vector<Subject> subjects{{"taiyen::map in an ArchiveHeap", nullptr}};
    const std::size_t nodes = options.quick() ? 100'000 : 1'000'000;
    std::vector<int> keys(nodes);
    for (std::size_t i = 0; i < nodes; ++i) keys[i] = static_cast<int>(i);
    bench::Random random(9);
    for (std::size_t i = nodes - 1; i > 0; --i) std::swap(keys[i], keys[random.below(i + 1)]);
    int serial = 0;
    bench::Folder folder(options.folder());
    const auto path = [&] { return folder / ("heap-" + std::to_string(serial++)); };
    subjects[0].fill = [&](const std::vector<int>& all) { return fill_taiyen(path(), all); };
#ifdef TAIYEN_BENCH_BOOST
    subjects.push_back({"Boost map, allocator (best fit)", [&](const std::vector<int>& all) { return fill_boost<BestFit>(path(), all); }});
    subjects.push_back({"Boost map, private_adaptive_pool", [&](const std::vector<int>& all) { return fill_boost<AdaptivePool>(path(), all); }});
#endif
#ifdef TAIYEN_BENCH_PMEMOBJ
    subjects.push_back({"std::map on libpmemobj, default classes", [&](const std::vector<int>& all) { return fill_pmemobj(path(), all, 0); }});
    subjects.push_back({"std::map on libpmemobj, a class of 40 B", [&](const std::vector<int>& all) { return fill_pmemobj(path(), all, 40); }});
#endif
    std::vector<Filling> last(subjects.size());
    std::vector<bench::Samples> saving(subjects.size());
    std::vector<bench::Contender> contenders;
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        contenders.push_back({subjects[i].name, [&, i] {
                                  const int file = serial;
                                  last[i] = subjects[i].fill(keys);
                                  saving[i].add(last[i].then_milliseconds);
                                  std::filesystem::remove(folder / ("heap-" + std::to_string(file)));
                                  return last[i].milliseconds;
                              }});
    }
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({std::to_string(nodes) + " nodes", "ms of processor time", "ratio to taiyen", "bytes per node", "then saving or syncing, ms"});
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        table.row({subjects[i].name, bench::spread(samples[i], 0), bench::spread(bench::ratio(samples[i], samples[0]), 2),
                   bench::fixed(last[i].bytes_per_node),
                   last[i].then_milliseconds != 0 ? bench::spread(saving[i], 0) : "durable already (on persistent memory)"});
    }
    table.print();
    std::printf(
        "bytes per node: taiyen: pages written, the heap's metadata included; Boost: get_free_memory() before and after; libpmemobj: "
        "stats.heap.curr_allocated, "
        "which leaves out its chunk metadata\n");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "What does it cost to fill a map of a million nodes that lives in a file, in time and in bytes?", 5,
                                  bench::Priority::normal));
    });
}
