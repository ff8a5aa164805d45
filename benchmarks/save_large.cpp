// How fast are 256 MiB of written pages saved, compared with writing the same bytes twice, one file after the other?
//
// The yardstick overwrites two existing files by sequential buffered writes of 1 MiB, each followed by one fsync: what a careful program does that writes its document
// anew beside the old one, and then over it.

#include <memory>
#include <vector>

#include "harness.hpp"
#include "heaps.hpp"
#include "machine.hpp"

namespace {

class PlainFile {
public:
    explicit PlainFile(const std::filesystem::path& path) : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        if (file_ < 0) throw std::runtime_error(path.string() + ": " + std::strerror(errno));
    }
    PlainFile(const PlainFile&) = delete;
    PlainFile& operator=(const PlainFile&) = delete;
    ~PlainFile() { ::close(file_); }
    void write_all(const std::vector<std::byte>& bytes) {
        constexpr std::size_t part = std::size_t{1} << 20U;
        for (std::size_t at = 0; at < bytes.size(); at += part)
            if (::pwrite(file_, bytes.data() + at, part, static_cast<off_t>(at)) != static_cast<ssize_t>(part))
                throw std::runtime_error(std::string("writing failed: ") + std::strerror(errno));
        if (::fsync(file_) != 0) throw std::runtime_error(std::string("fsync failed: ") + std::strerror(errno));
    }

private:
    int file_;
};

/// A heap whose pages are all written, waiting for their save.
template <class Heap>
class Edited {
public:
    Edited(const std::filesystem::path& path, std::size_t bytes) {
        bench::make_heap<Heap>(path, bytes);
        heap_ = std::make_unique<Heap>(taiyen::open_only, path);
    }
    double save() {
        const bench::Document& document = bench::document_of(*heap_);
        for (std::size_t i = 0; i < document.pages(); ++i) bench::fill(document.page(i), 4096, random_);
        return bench::microseconds_of([&] { heap_->snapshot(); }) / 1000;
    }

private:
    std::unique_ptr<Heap> heap_;
    bench::Random random_{3};
};

int run(const bench::Options& options) {
    const std::size_t bytes = (options.quick() ? std::size_t{32} : std::size_t{256}) << 20U;
    bench::print_head(options, "Saving a large edit");
    const bench::Folder folder(options.folder());
    Edited<taiyen::ArchiveHeap> archive(folder / "archive.tyn", bytes);
    Edited<taiyen::SnapshotHeap> snapshot(folder / "snapshot.tyn", bytes);
    PlainFile first(folder / "first");
    PlainFile second(folder / "second");
    std::vector<std::byte> content(bytes);
    bench::Random random(5);
    const auto twice = [&] {
        bench::fill(content.data(), content.size(), random);
        return bench::microseconds_of([&] {
                   first.write_all(content);
                   second.write_all(content);
               }) /
               1000;
    };
    const std::vector<bench::Contender> contenders{{"the same bytes written twice", twice},
                                                   {"ArchiveHeap::snapshot()", [&] { return archive.save(); }},
                                                   {"SnapshotHeap::snapshot()", [&] { return snapshot.save(); }}};
    for (const auto& contender : contenders) contender.run();  // the first round makes files and fills caches
    const auto samples = bench::interleave(options.rounds(), contenders);
    bench::Table table({std::to_string(bytes >> 20U) + " MiB, all pages written", "ms", "MiB/s", "speed relative to twice"});
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        table.row({contenders[i].name, bench::spread(samples[i], 0), bench::fixed(static_cast<double>(bytes >> 20U) * 1000 / samples[i].median(), 0),
                   bench::spread(bench::ratio(samples[0], samples[i]), 2)});
    }
    table.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "How fast are 256 MiB of written pages saved, compared with writing the same bytes twice sequentially?",
                                  5, bench::Priority::real_time));
    });
}
