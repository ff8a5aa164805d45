// How fast is a large heap verified, and how long does a picture of it take?
//
// The heap: nodes of a map with a text each, and blocks of 64 KiB, half of the live bytes each. Before each run its files are thrown out of the page cache; verify() reads past it anyway.
// The yardstick reads the same files with direct reads of a megabyte, by as many threads, and computes nothing.
// What it costs never to read rot: a program opens the heap, looks 1,000 keys up or sums all blocks, by each PersistentOptions::verify, with the file in the page cache and without.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
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
    bench::Random random(bytes);
    auto& texts = heap.construct<Texts>("texts");
    auto& blocks = heap.construct<taiyen::vector<std::byte*>>("blocks");
    const std::string text(text_bytes, 'x');
    for (std::size_t made = 0; made < bytes;) {
        const std::size_t batch = std::min(batch_bytes, bytes - made);
        // A node is 72 bytes, its text 112.
        for (std::size_t nodes = batch / 2 / 184; nodes != 0; --nodes) texts.try_emplace(random.next(), text.data(), text.size());
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
            for (std::size_t at = next.fetch_add(piece); at < bytes && !failed; at = next.fetch_add(piece))
                if (::pread(file, buffer, piece, static_cast<off_t>(at)) < 0) failed = true;
            std::free(buffer);
            if (file >= 0) ::close(file);
        });
    }
    for (std::thread& reader : readers) reader.join();
    if (failed) throw std::runtime_error(path.string() + ": direct reads fail here; name another folder with --folder");
}

/// What was read counts as used.
volatile std::uint64_t used;

struct Reading {
    const char* name;
    void (*read)(const taiyen::ArchiveHeap& heap);
};

constexpr Reading readings[] = {{"nothing", [](const taiyen::ArchiveHeap&) {}},
                                {"1,000 keys",
                                 [](const taiyen::ArchiveHeap& heap) {
                                     const auto& texts = *heap.find<Texts>("texts");
                                     bench::Random random(1);
                                     std::size_t found = 0;
                                     for (int i = 0; i < 1000; ++i) {
                                         const auto text = texts.lower_bound(random.next());
                                         found += text != texts.end() ? text->second.size() : 0;
                                     }
                                     used = found;
                                 }},
                                {"all blocks", [](const taiyen::ArchiveHeap& heap) {
                                     std::uint64_t sum = 0;
                                     for (const std::byte* const block : *heap.find<taiyen::vector<std::byte*>>("blocks")) {
                                         for (std::size_t at = 0; at < bench::Document::block_bytes; at += sizeof sum) {
                                             std::uint64_t word = 0;
                                             std::memcpy(&word, block + at, sizeof word);
                                             sum += word;
                                         }
                                     }
                                     used = sum;
                                 }}};

/// What a program waits that opens the heap and reads so much of it.
void compare_proofs(const bench::Options& options, const std::filesystem::path& path) {
    constexpr std::pair<const char*, taiyen::Verify> choices[] = {
        {"changes", taiyen::Verify::changes}, {"at_first_touch", taiyen::Verify::at_first_touch}, {"at_opening", taiyen::Verify::at_opening}};
    std::vector<bench::Contender> contenders;
    for (const bool cached : {true, false}) {
        for (const Reading& reading : readings) {
            for (const auto& [name, verify] : choices) {
                const std::string what = std::string(reading.name) + (cached ? ", file cached, " : ", file on disk, ") + name;
                contenders.push_back({what, [&path, &reading, cached, verify = verify] {
                                          taiyen::PersistentOptions proven;
                                          proven.verify = verify;
                                          if (cached)
                                              bench::read_into_cache(path);
                                          else
                                              bench::forget_cached(path);
                                          return bench::microseconds_of([&] {
                                                     const taiyen::ArchiveHeap heap(taiyen::open_read_only, path, proven);
                                                     reading.read(heap);
                                                 }) /
                                                 1e3;
                                      }});
            }
        }
    }
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({"read after opening, by Verify::", "milliseconds", "times changes"});
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        bench::Samples ratio;
        for (std::size_t round = 0; round < samples[i].size(); ++round) ratio.add(samples[i][round] / samples[i / 3 * 3][round]);
        table.row({contenders[i].name, bench::spread(samples[i], 2), bench::spread(ratio, 2)});
    }
    table.print();
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

    {
        const taiyen::ArchiveHeap heap(taiyen::open_read_only, path);
        const auto look = [&] {
            return bench::microseconds_of([&] {
                       if (!taiyen::verify(heap, {.level = taiyen::VerifyLevel::structure}).ok()) throw std::runtime_error("the heap is not sound");
                   }) /
                   1e3;
        };
        look();
        const auto samples = bench::interleave(options.rounds(), {{"cached", look}, {"on disk", [&] {
                                                                                         bench::forget_cached(path);
                                                                                         return look();
                                                                                     }}});
        bench::Table table({"the structure of an open heap", "milliseconds"});
        table.row({"its metadata in the page cache", bench::spread(samples[0], 1)});
        table.row({"nothing in the page cache", bench::spread(samples[1], 1)});
        table.print();
    }

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
        for (std::size_t round = 0; round < samples[i].size(); ++round) rate.add(live_gb / samples[i][round]);
        table.row({contenders[i].name, bench::spread(samples[i], 2), bench::spread(rate, 2)});
    }
    table.print();
    std::printf("\n");
    compare_proofs(options, path);
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
