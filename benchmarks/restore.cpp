// How long does restoring a heap take, beside the least that anybody could do?
//
// A heap of bytes that no codec makes smaller is replicated into a directory of the same disk and restored from there: pages alone, then as many bytes of transactions, too. In turns with it the frames are read, and as
// many bytes as the heap has are written and made durable.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <taiyen/taiyen.hpp>

#include "committers.hpp"
#include "harness.hpp"
#include "machine.hpp"

namespace {

std::uint64_t bytes_in(const std::filesystem::path& directory) {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory)) bytes += file.file_size();
    return bytes;
}

void wait_for_all(const taiyen::TransactionalHeap& heap, const taiyen::Replication& replication) {
    if (!replication.wait_replicated(heap.last_durable(), std::chrono::minutes(10))) throw std::runtime_error("the target doesn't get it");
}

void fill(taiyen::TransactionalHeap& heap, std::size_t mebibytes) {
    std::mt19937_64 random(1);
    constexpr std::size_t piece = std::size_t{4} << 20U;
    for (std::size_t made = 0; made < mebibytes << 20U; made += piece) {
        taiyen::Transaction transaction(heap);
        auto* const block = static_cast<char*>(heap.allocate(piece));
        transaction.touch(block, piece);
        for (std::size_t at = 0; at < piece; at += sizeof(std::uint64_t)) {
            const std::uint64_t word = random();
            std::memcpy(block + at, &word, sizeof word);
        }
        transaction.commit();
    }
    heap.snapshot();
}

/// Pages, then transactions, beside the least that anybody could do: to read the frames, and to write as many bytes as the heap has, and wait until they are durable.
void restoring(const bench::Options& options, const std::filesystem::path& folder, std::size_t mebibytes) {
    const std::filesystem::path frames = folder / "frames";
    const std::filesystem::path restored = folder / "restored.tyn";
    std::filesystem::create_directory(frames);
    const auto directory = std::make_shared<taiyen::DirectoryTarget>(frames);
    taiyen::PersistentOptions how;
    how.capture = taiyen::Capture::declared;
    how.durability = taiyen::Durability::async;
    taiyen::TransactionalHeap heap(taiyen::create_only, folder / "pages.tyn", how);
    bench::Counted& counters = bench::make_counted(heap, 0);
    fill(heap, mebibytes);
    std::vector<double> seconds;
    bench::Table table({"", "MB/s", "of writing"});
    const auto measure = [&](const char* what, std::uint64_t bytes) {
        const auto restore = [&] {
            std::filesystem::remove(restored);
            return static_cast<double>(bytes) / bench::microseconds_of([&] { (void)taiyen::restore(*directory, restored); });
        };
        const auto read = [&] {
            std::vector<char> buffer(1U << 20U);
            return static_cast<double>(bytes) / bench::microseconds_of([&] {
                       for (const auto& entry : std::filesystem::directory_iterator(frames)) {
                           std::ifstream file(entry.path(), std::ios::binary);
                           while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() != 0) {}
                       }
                   });
        };
        const auto write = [&] {
            const std::vector<char> all(std::filesystem::file_size(restored), 'x');
            const std::filesystem::path path = folder / "written";
            const double microseconds = bench::microseconds_of([&] {
                const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
                for (std::size_t at = 0; at < all.size();) {
                    const ::ssize_t done = ::write(file, all.data() + at, std::min<std::size_t>(all.size() - at, 1U << 20U));
                    if (done <= 0) throw std::runtime_error("the disk takes no more");
                    at += static_cast<std::size_t>(done);
                }
                ::fsync(file);
                ::close(file);
            });
            std::filesystem::remove(path);
            return static_cast<double>(bytes) / microseconds;
        };
        (void)restore();
        const std::vector<bench::Samples> samples = bench::interleave(options.rounds(), {{"restore", restore}, {"read", read}, {"write", write}});
        seconds.push_back(static_cast<double>(bytes) / samples[0].median() / 1e6);
        table.row({std::string(what) + ", restored", bench::spread(samples[0], 0), bench::spread(bench::ratio(samples[0], samples[2]), 2)});
        table.row({"the frames read", bench::spread(samples[1], 0), ""});
        table.row({"as many bytes as the heap has, written and durable", bench::spread(samples[2], 0), "1"});
    };
    {
        taiyen::Replication replication(heap, directory);
        wait_for_all(heap, replication);
        replication.stop();
        measure("pages", std::filesystem::file_size(folder / "pages.tyn"));
    }
    taiyen::ReplicationOptions plain;
    plain.codec = taiyen::Codec::none;
    taiyen::Replication replication(heap, directory, plain);
    const std::uint64_t before = bytes_in(frames);
    while (bytes_in(frames) - before < (mebibytes << 20U)) {
        bench::commits(heap, counters, std::chrono::milliseconds(500));
        wait_for_all(heap, replication);
    }
    replication.stop();
    measure("pages and transactions", bytes_in(frames));
    table.print();
    const auto of_transactions = static_cast<double>(bytes_in(frames) - before);
    std::printf("the frames hold %.2f GB, of those %.2f GB of transactions, which took %.2f s (%.0f MB/s); the heap has %.2f GB\n",
                static_cast<double>(bytes_in(frames)) / 1e9, of_transactions / 1e9, seconds[1] - seconds[0],
                of_transactions / 1e6 / (seconds[1] - seconds[0]), static_cast<double>(std::filesystem::file_size(restored)) / 1e9);
    heap.close();
    std::filesystem::remove_all(frames);
}

int run(const bench::Options& options) {
    bench::print_head(options, "A heap that is restored from a directory of frames");
    const bench::Folder folder(options.folder());
    restoring(options, folder / ".", options.quick() ? 32 : options.number("--mebibytes"));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv, "How long does restoring a heap take, beside the least that anybody could do?", 7,
                                     bench::Priority::normal, {{"--mebibytes", "512", "of the heap"}}, bench::Processors::all);
        return run(options);
    });
}
