// What does the first store to a page of an open heap cost, compared with a bare private mapping of the same file?

#include <sys/mman.h>

#include <memory>
#include <vector>

#include "harness.hpp"
#include "heaps.hpp"
#include "machine.hpp"

namespace {

/// Stores into each page; nanoseconds of processor time per page.
template <class Page>
double store_all(std::size_t pages, Page&& page) {
    return 1000 * bench::processor_microseconds_of([&] {
               for (std::size_t i = 0; i < pages; ++i) {
                   *static_cast<volatile std::uint64_t*>(static_cast<void*>(page(i))) = 1;
               }
           }) /
           static_cast<double>(pages);
}

int run(const bench::Options& options) {
    const std::size_t bytes = (options.quick() ? std::size_t{16} : std::size_t{128}) << 20U;
    bench::print_head(options, "The first store to a page");
    const bench::Folder folder(options.folder());
    const auto path = folder / "heap.tyn";
    {
        taiyen::ArchiveHeap heap(taiyen::create_only, path);
        auto* const block = static_cast<std::byte*>(heap.allocate(bytes));
        bench::Random random(1);
        bench::fill(block, bytes, random);
        heap.construct<std::byte*>("block", block);
        heap.snapshot();
        heap.close();
    }
    const std::size_t pages = bytes / 4096;
    const auto in_heap = [&](bool read_before) {
        taiyen::ArchiveHeap heap(taiyen::open_only, path);
        std::byte* const block = *heap.find<std::byte*>("block");
        std::uint64_t sum = 0;
        for (std::size_t i = 0; read_before && i < pages; ++i) {
            sum += static_cast<std::uint64_t>(*static_cast<volatile std::byte*>(block + i * 4096));
        }
        const double time = store_all(pages, [&](std::size_t i) { return block + i * 4096; });
        heap.close();
        return sum == 1 ? 0 : time;
    };
    const auto in_mapping = [&](bool read_before) {
        const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        // The last pages of the file are the block's; the heap's own metadata lies in front of them.
        const auto size = std::filesystem::file_size(path) / 4096 * 4096;
        void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
        ::close(file);
        if (mapped == MAP_FAILED) {
            throw std::runtime_error(std::string("mmap: ") + std::strerror(errno));
        }
        std::byte* const block = static_cast<std::byte*>(mapped) + size - bytes;
        std::uint64_t sum = 0;
        for (std::size_t i = 0; read_before && i < pages; ++i) {
            sum += static_cast<std::uint64_t>(*static_cast<volatile std::byte*>(block + i * 4096));
        }
        const double time = store_all(pages, [&](std::size_t i) { return block + i * 4096; });
        ::munmap(mapped, size);
        return sum == 1 ? 0 : time;
    };
    const std::vector<bench::Contender> contenders{{"bare private mapping, untouched page", [&] { return in_mapping(false); }},
                                                   {"open heap, untouched page", [&] { return in_heap(false); }},
                                                   {"bare private mapping, page read before", [&] { return in_mapping(true); }},
                                                   {"open heap, page read before", [&] { return in_heap(true); }}};
    for (const auto& contender : contenders) {
        contender.run();
    }
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({std::to_string(bytes >> 20U) + " MiB, file in the page cache", "ns of processor time per page", "ratio to bare"});
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        table.row({contenders[i].name, bench::spread(samples[i], 0), bench::spread(bench::ratio(samples[i], samples[i / 2 * 2]), 2)});
    }
    table.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "What does the first store to a page of an open heap cost, compared with a bare MAP_PRIVATE mapping of the same file?", 15, bench::Priority::normal));
    });
}
