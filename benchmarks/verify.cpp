// How fast is a large heap verified, and how long does a picture of it take?
//
// The heap: nodes of a map with a text each, and blocks of 64 KiB, half of the live bytes each. Before each run its files are thrown out of the page cache; verify() reads past it anyway.
// The yardstick reads the same files with direct reads of a megabyte, by as many threads, and computes nothing.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "heaps.hpp"
#include "machine.hpp"

namespace {

constexpr std::size_t gib = std::size_t{1} << 30U;

using Texts = taiyen::map<std::uint64_t, taiyen::string>;

/// Fills the heap up to `bytes` of live data; saves every quarter of a GiB, so that what is written stays small.
void make_mixed_heap(const std::filesystem::path& path, std::size_t bytes) {
    constexpr std::size_t batch_bytes = gib / 4;
    constexpr std::size_t text_bytes = 100;
    taiyen::ArchiveHeap heap(taiyen::create_only, path);
    const taiyen::CurrentHeap use(heap);
    bench::Random random(bytes);
    auto& texts = heap.construct<Texts>("texts");
    auto& blocks = heap.construct<taiyen::vector<std::byte*>>("blocks");
    const std::string text(text_bytes, 'x');
    for (std::size_t made = 0; made < bytes;) {
        const std::size_t batch = std::min(batch_bytes, bytes - made);
        // A node is 72 bytes, its text 112.
        for (std::size_t nodes = batch / 2 / 184; nodes != 0; --nodes) {
            texts.try_emplace(random.next(), text.data(), text.size());
        }
        for (std::size_t count = batch / 2 / bench::Document::block_bytes; count != 0; --count) {
            blocks.push_back(static_cast<std::byte*>(heap.allocate(bench::Document::block_bytes)));
            bench::fill(blocks.back(), bench::Document::block_bytes, random);
        }
        heap.snapshot();
        made += batch;
    }
    heap.close();
}

/// Direct reads of the whole file by so many threads.
void read_directly(const std::filesystem::path& path, unsigned threads) {
    constexpr std::size_t piece = std::size_t{1} << 20U;
    const std::size_t bytes = std::filesystem::file_size(path);
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::vector<std::thread> readers;
    for (unsigned i = 0; i < threads; ++i) {
        readers.emplace_back([&] {
            const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
            auto* const buffer = static_cast<std::byte*>(std::aligned_alloc(4096, piece));
            if (file < 0 || buffer == nullptr) failed = true;
            for (std::size_t at = next.fetch_add(piece); at < bytes && !failed; at = next.fetch_add(piece)) {
                if (::pread(file, buffer, piece, static_cast<off_t>(at)) < 0) failed = true;
            }
            std::free(buffer);
            if (file >= 0) ::close(file);
        });
    }
    for (std::thread& reader : readers) reader.join();
    if (failed) throw std::runtime_error(path.string() + ": direct reads fail here; name another folder with --folder");
}

int run(const bench::Options& options) {
    const std::size_t bytes = options.quick() ? gib / 8 : options.number("--gib") * gib;
    bench::print_head(options, "Verifying a heap, and a map of it");
    const bench::Folder folder(options.folder());
    const auto path = folder / "large.tyn";
    const double filling = bench::microseconds_of([&] { make_mixed_heap(path, bytes); });
    taiyen::HeapStats stats;
    {
        const taiyen::ArchiveHeap heap(taiyen::open_read_only, path);
        stats = heap.stats();
    }
    const double live_gb = static_cast<double>(stats.live_bytes) / 1e9;
    std::printf("%.2f GB live in %llu blocks, the file takes %.2f GB; filled in %.0f s\n\n", live_gb,
                static_cast<unsigned long long>(stats.live_blocks), static_cast<double>(stats.allocated_bytes) / 1e9, filling / 1e6);
    bench::settle(folder / "settle");

    std::vector<bench::Contender> contenders;
    const auto seconds = [&](auto&& action) {
        bench::forget_cached(path);
        return bench::microseconds_of(action) / 1e6;
    };
    const auto with_heap = [path](auto&& action) {
        const taiyen::ArchiveHeap heap(taiyen::open_read_only, path);
        action(heap);
    };
    for (const unsigned threads : {1U, 2U}) {
        const std::string suffix = threads == 1 ? ", 1 thread" : ", 2 threads";
        contenders.push_back({"direct reads alone" + suffix, [&, threads] { return seconds([&] { read_directly(path, threads); }); }});
        contenders.push_back({"verify" + suffix, [&, threads] {
                                  return seconds([&] {
                                      with_heap([&](const taiyen::ArchiveHeap& heap) {
                                          taiyen::VerifyOptions how;
                                          how.threads = threads;
                                          if (!taiyen::verify(heap, how).ok()) throw std::runtime_error("the heap is not sound");
                                      });
                                  });
                              }});
    }
    contenders.push_back({"map by size, as SVG", [&] {
                              return seconds([&] {
                                  with_heap([](const taiyen::ArchiveHeap& heap) {
                                      if (taiyen::map_svg(taiyen::map_of(heap)).empty()) throw std::runtime_error("the map is empty");
                                  });
                              });
                          }});
    contenders.push_back({"map by owner, as SVG", [&] {
                              return seconds([&] {
                                  with_heap([](const taiyen::ArchiveHeap& heap) {
                                      taiyen::MapOptions how;
                                      how.colour = taiyen::MapColour::owner;
                                      if (taiyen::map_svg(taiyen::map_of(heap, how)).empty()) throw std::runtime_error("the map is empty");
                                  });
                              });
                          }});
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({"opening included", "seconds", "GB/s of live data"});
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        bench::Samples rate;
        for (std::size_t round = 0; round < samples[i].size(); ++round) {
            rate.add(live_gb / samples[i][round]);
        }
        table.row({contenders[i].name, bench::spread(samples[i], 2), bench::spread(rate, 2)});
    }
    table.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "How fast is a large heap verified by one thread and by two, and how long does a map of it take?", 5,
                                  bench::Priority::normal, {{"--gib", "10", "live data, GiB; the file system must have room for it"}},
                                  bench::Processors::all));
    });
}
