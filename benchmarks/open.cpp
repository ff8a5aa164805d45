// How long does a heap take to open, and does that depend on what is in it?

#include <sys/stat.h>

#include <memory>
#include <vector>

#include "harness.hpp"
#include "heaps.hpp"
#include "machine.hpp"

namespace {

/// What opening once took.
struct Opening {
    double microseconds = 0;
    double close_microseconds = 0;
    bench::Counters before;
    bench::Counters after;
};

template <class Heap, class Tag>
Opening open_once(Tag tag, const std::filesystem::path& path, bool cold) {
    if (cold) {
        bench::forget_cached(path);
        if (std::filesystem::exists(path.string() + ".data")) bench::forget_cached(path.string() + ".data");
    }
    Opening result;
    std::unique_ptr<Heap> heap;
    result.before = bench::Counters::now();
    result.microseconds = bench::microseconds_of([&] { heap = std::make_unique<Heap>(tag, path); });
    result.after = bench::Counters::now();
    result.close_microseconds = bench::microseconds_of([&] { heap->close(); });
    return result;
}

struct Way {
    std::string name;
    std::function<Opening(bool cold)> open;
};

template <class Heap>
void add_ways(std::vector<Way>& ways, const std::filesystem::path& path, const std::string& size) {
    const std::string kind = bench::name_of(static_cast<Heap*>(nullptr));
    ways.push_back({kind + ", " + size + ", for writing", [path](bool cold) { return open_once<Heap>(taiyen::open_only, path, cold); }});
    ways.push_back({kind + ", " + size + ", read-only", [path](bool cold) { return open_once<Heap>(taiyen::open_read_only, path, cold); }});
}

std::string bytes_text(std::uint64_t bytes) { return bench::fixed(static_cast<double>(bytes) / 1024, 0) + " KiB"; }

int run(const bench::Options& options) {
    const std::size_t large = options.quick() ? 32 : 512;
    bench::print_head(options, "Opening a heap of 1 TiB capacity");
    const bench::Folder folder(options.folder());
    taiyen::PersistentOptions terabyte;
    terabyte.capacity = std::size_t{1} << 40U;
    std::vector<Way> ways;
    for (const std::size_t megabytes : {large, std::size_t{1}}) {
        const std::string size = std::to_string(megabytes) + " MiB in it";
        const auto archive = folder / ("archive-" + std::to_string(megabytes) + ".tyn");
        const auto snapshot = folder / ("snapshot-" + std::to_string(megabytes) + ".tyn");
        bench::make_heap<taiyen::ArchiveHeap>(archive, megabytes << 20U, terabyte);
        bench::make_heap<taiyen::SnapshotHeap>(snapshot, megabytes << 20U, terabyte);
        add_ways<taiyen::ArchiveHeap>(ways, archive, size);
        add_ways<taiyen::SnapshotHeap>(ways, snapshot, size);
    }
    bench::settle(folder / "settle");
    for (const bool cold : {false, true}) {
        std::vector<bench::Samples> closing(ways.size());
        std::vector<Opening> last(ways.size());
        std::vector<bench::Contender> contenders;
        for (std::size_t i = 0; i < ways.size(); ++i) {
            ways[i].open(cold);
            contenders.push_back({ways[i].name, [&, i] {
                                      last[i] = ways[i].open(cold);
                                      closing[i].add(last[i].close_microseconds / 1000);
                                      return last[i].microseconds / 1000;
                                  }});
        }
        const auto samples = bench::interleave(options.rounds(), contenders);
        std::printf(cold ? "the heap's files thrown out of the page cache before\n" : "the heap's files in the page cache\n");
        bench::Table table({"", "open, ms", "close, ms", "page faults", "read calls", "from the device", "written"});
        for (std::size_t i = 0; i < ways.size(); ++i) {
            const bench::Counters& a = last[i].before;
            const bench::Counters& b = last[i].after;
            table.row({ways[i].name, bench::spread(samples[i], 2), bench::spread(closing[i], 2),
                       std::to_string(b.faults_minor + b.faults_major - a.faults_minor - a.faults_major), bytes_text(b.read_bytes - a.read_bytes),
                       bytes_text(b.device_read_bytes - a.device_read_bytes), bytes_text(b.write_bytes - a.write_bytes)});
        }
        table.print();
    }
    std::printf(
        "page faults, bytes and calls are those of the last opening, the constructor alone; the faults are the process's, not the heap's pages "
        "only\n");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(
            argc, argv, "How long does a heap of 1 TiB capacity take to open with 512 MiB in it, for writing and read-only, and what does it read?",
            21, bench::Priority::real_time));
    });
}
