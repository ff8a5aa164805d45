// Memory: whatever the heap, no more than 64 MiB, with as many threads as anybody may ask for. Counted by the kernel: by how much the most that the process had in memory lies above what it had before.

#include <boost/test/unit_test.hpp>

#include <malloc.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/sanitizers.hpp"
#include "transfer/transfer_fixture.hpp"

#if !defined(TAIYEN_ADDRESS_SANITIZER) && !defined(TAIYEN_THREAD_SANITIZER)  // they have memory of their own for all that is there

namespace taiyen::transfer::test {
namespace {

constexpr double limit_mib = 64;
constexpr std::size_t heap_bytes = std::size_t{640} << 20U;

double status_mib(const std::string& key) {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(key)) return std::stod(line.substr(key.size() + 1)) / 1024;
    return 0;
}

/// How far memory rose above what was there; nothing where the kernel doesn't begin a new count.
template <class F>
std::optional<double> growth_of(F&& action) {
    ::malloc_trim(0);  // what earlier work has left would serve this one uncounted
    {
        std::ofstream reset("/proc/self/clear_refs");
        reset << "5" << std::flush;
        if (!reset) return std::nullopt;
    }
    const double before = status_mib("VmRSS:");
    action();
    return status_mib("VmHWM:") - before;
}

/// Large blocks with bytes in sixteen pages of each mebibyte, none of them like another; the rest are holes.
void fill(ArchiveHeap& heap) {
    constexpr std::size_t block_bytes = std::size_t{64} << 20U;
    constexpr std::size_t filled_bytes = 16 * page_bytes;
    std::uint64_t word = 1;
    for (std::size_t made = 0; made < heap_bytes; made += block_bytes) {
        auto* const block = static_cast<char*>(heap.allocate(block_bytes));
        for (std::size_t begin = 0; begin < block_bytes; begin += std::size_t{1} << 20U) {
            for (std::size_t at = 0; at < filled_bytes; at += sizeof word) {
                word = word * 6'364'136'223'846'793'005ULL + 1'442'695'040'888'963'407ULL;
                const std::uint64_t some = word >> (at % 64 == 0 ? 0U : 44U);
                std::memcpy(block + begin + at, &some, sizeof some);
            }
        }
        heap.snapshot();
    }
}

BOOST_AUTO_TEST_SUITE(memory)

BOOST_AUTO_TEST_CASE(stays_below_64_mib_for_a_heap_of_640) {
    ScratchDirectory directory;
    PersistentOptions options;
    options.capacity = std::size_t{2} << 30U;
    ArchiveHeap heap(create_only, directory / "a.tyn", options);
    fill(heap);
    BOOST_TEST(heap.stats().live_bytes >= heap_bytes);
    for (const auto& [codec, level] : std::vector<std::pair<Codec, int>>{
             {Codec::none, 0}, {Codec::lz4, 0}, {Codec::lz4, 9}, {Codec::zstd, 0}, {Codec::zstd, 6}, {Codec::zstd, 9}}) {
        BOOST_TEST_CONTEXT("codec " << static_cast<int>(codec) << ", level " << level) {
            CompressOptions how;
            how.codec = codec;
            how.level = level;
            how.threads = 8;
            // Who takes the bytes is slow once, so that all that may be under way is.
            std::size_t pieces = 0;
            std::uint64_t content = 0;
            std::ofstream out(directory / "a.tyz", std::ios::binary);
            const auto compressing = growth_of([&] {
                content = compress(
                              heap,
                              [&](std::span<const std::byte> bytes) {
                                  if (++pieces == 4) std::this_thread::sleep_for(std::chrono::milliseconds(150));
                                  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
                              },
                              how)
                              .content_bytes;
            });
            out.close();
            if (!compressing) {
                BOOST_TEST_MESSAGE("skipped: the kernel doesn't count anew");
                return;
            }
            BOOST_TEST(content >= std::size_t{40} << 20U);
            ExpandOptions as;
            as.threads = 8;
            std::size_t steps = 0;
            as.progress = [&](std::uint64_t, std::uint64_t) {
                if (++steps == 1) std::this_thread::sleep_for(std::chrono::milliseconds(150));
            };
            const auto expanding = growth_of([&] { expand_file(directory / "a.tyz", directory / "b.tyn", as); });
            BOOST_TEST_MESSAGE("compress " << *compressing << " MiB, expand " << *expanding << " MiB");
            BOOST_TEST(*compressing < limit_mib);
            BOOST_TEST(*expanding < limit_mib);
            // It counts: less than what is under way can't be.
            BOOST_TEST(*compressing > 1);
            std::filesystem::remove(directory / "b.tyn");
        }
    }
    heap.close();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer::test

#endif
