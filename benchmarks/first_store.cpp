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
               for (std::size_t i = 0; i < pages; ++i) *static_cast<volatile std::uint64_t*>(static_cast<void*>(page(i))) = 1;
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
        for (std::size_t i = 0; read_before && i < pages; ++i) sum += static_cast<std::uint64_t>(*static_cast<volatile std::byte*>(block + i * 4096));
        const double time = store_all(pages, [&](std::size_t i) { return block + i * 4096; });
        heap.close();
        return sum == 1 ? 0 : time;
    };
    // Where address and file offset differ by a multiple of 2 MiB, the kernel can map what is only read by huge pages; a heap's file offsets don't allow that.
    const auto in_mapping = [&](bool read_before, bool huge_congruent) {
        const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        // The last pages of the file are the block's; the heap's own metadata lies in front of them.
        const auto size = std::filesystem::file_size(path) / 4096 * 4096;
        constexpr std::size_t huge = std::size_t{2} << 20U;
        const std::size_t reserved = size + 2 * huge;
        void* const range = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        std::byte* const first =
            static_cast<std::byte*>(range) + (huge - reinterpret_cast<std::uintptr_t>(range) % huge) + (huge_congruent ? 0 : huge / 2 + 4096);
        void* const mapped =
            range == MAP_FAILED ? range : ::mmap(first, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, file, 0);
        ::close(file);
        if (mapped == MAP_FAILED) throw std::runtime_error(std::string("mmap: ") + std::strerror(errno));
        std::byte* const block = static_cast<std::byte*>(mapped) + size - bytes;
        std::uint64_t sum = 0;
        for (std::size_t i = 0; read_before && i < pages; ++i) sum += static_cast<std::uint64_t>(*static_cast<volatile std::byte*>(block + i * 4096));
        const double time = store_all(pages, [&](std::size_t i) { return block + i * 4096; });
        ::munmap(range, reserved);
        return sum == 1 ? 0 : time;
    };
    const std::vector<bench::Contender> contenders{{"untouched page, bare private mapping", [&] { return in_mapping(false, false); }},
                                                   {"untouched page, bare, congruent to 2 MiB", [&] { return in_mapping(false, true); }},
                                                   {"untouched page, open heap", [&] { return in_heap(false); }},
                                                   {"page read before, bare private mapping", [&] { return in_mapping(true, false); }},
                                                   {"page read before, bare, congruent to 2 MiB", [&] { return in_mapping(true, true); }},
                                                   {"page read before, open heap", [&] { return in_heap(true); }}};
    for (const auto& contender : contenders) contender.run();
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({std::to_string(bytes >> 20U) + " MiB, file in the page cache", "ns of processor time per page", "ratio to bare"});
    for (std::size_t i = 0; i < contenders.size(); ++i)
        table.row({contenders[i].name, bench::spread(samples[i], 0), bench::spread(bench::ratio(samples[i], samples[i / 3 * 3]), 2)});
    table.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(
            argc, argv, "What does the first store to a page of an open heap cost, compared with a bare MAP_PRIVATE mapping of the same file?", 15,
            bench::Priority::normal));
    });
}
