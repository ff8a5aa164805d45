// How fast does a heap travel, beside the bare codec library?
//
// The heap: a map of texts and lists of measured points, half of the live bytes each, with every fifth text erased again. compress() and expand() against the codec alone, which gets the same live bytes (the stream
// that Codec::none makes, in memory), in pieces of a megabyte (taiyen's own are a quarter of that with LZ4), on as many threads, each with a state of its own; it writes to the same kind of place, and a file is synced, too, of
// which the device may begin with each MiB, as in taiyen. How taiyen writes otherwise is its own: a compressed heap's file goes past the page cache.
// The codec's files hold nothing that tells where bytes belong, and no checksums. Ratios of processor time (of all threads, the kernel's share included) say what it costs where others use the machine, too.
// Other parts: the memory that both take at their peak, and how long a writer waits while its heap is compressed.

#include <fcntl.h>
#include <lz4.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "machine.hpp"

/// Types of named objects have names themselves.
namespace measured {
struct Point {
    double x;
    double y;
    double z;
    std::uint32_t layer;
    std::uint32_t colour;
};
}  // namespace measured

namespace {

using measured::Point;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t piece_bytes = mib;
using Bytes = std::vector<std::byte>;

using Texts = taiyen::map<std::uint64_t, taiyen::string>;
using Lists = taiyen::vector<taiyen::vector<Point>>;

/// Words as frequent as in a language: the n-th one every n-th time.
class Words {
public:
    explicit Words(bench::Random& random) : random_(random) {
        for (int i = 0; i < 4000; ++i) {
            std::string word;
            for (std::uint64_t length = 2 + random.below(9); length > 0; --length)
                word += static_cast<char>('a' + random.below(26) * random.below(26) / 26);
            words_.push_back(word);
        }
    }
    std::string text(std::size_t bytes) {
        std::string text;
        while (text.size() < bytes) {
            text += words_[static_cast<std::size_t>(4000.0 / (1.0 + 3999.0 * random_.unit())) - 1];
            text += ' ';
        }
        return text;
    }

private:
    bench::Random& random_;
    std::vector<std::string> words_;
};

void make_drawing(const std::filesystem::path& path, std::size_t bytes) {
    constexpr std::size_t batch_bytes = 128 * mib;
    taiyen::ArchiveHeap heap(taiyen::create_only, path);
    bench::Random random(bytes);
    Words words(random);
    auto& texts = heap.construct<Texts>("texts");
    auto& lists = heap.construct<Lists>("lists");
    std::uint64_t keys = 0;
    for (std::size_t made = 0; made < bytes;) {
        const std::size_t batch = std::min(batch_bytes, bytes - made);
        const std::uint64_t begun = keys;
        for (std::size_t left = batch / 2; left > 300;) {
            const std::string text = words.text(40 + random.below(160));
            texts.try_emplace(keys++, text.data(), text.size());
            left -= std::min(left, (72 + text.size() + 16) * 4 / 5);
        }
        for (std::uint64_t key = begun; key < keys; key += 5) texts.erase(key);
        for (std::size_t left = batch / 2; left > 4096;) {
            auto& list = lists.emplace_back();
            const std::size_t count = std::min<std::size_t>(16 + random.below(1000), left / sizeof(Point));
            list.reserve(count);
            double x = static_cast<double>(random.below(1'000'000)) / 1000;
            double y = static_cast<double>(random.below(1'000'000)) / 1000;
            const auto layer = static_cast<std::uint32_t>(random.below(40));
            for (std::size_t i = 0; i < count; ++i) {
                x += static_cast<double>(random.below(2000)) / 1000 - 1;
                y += static_cast<double>(random.below(2000)) / 1000 - 1;
                list.push_back({x, y, 0, layer, 7});
            }
            left -= count * sizeof(Point);
        }
        heap.snapshot();
        made += batch;
    }
    heap.close();
}

void check(bool fine, const char* what) {
    if (!fine) throw std::runtime_error(what);
}

struct FreeCompressor {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeExpander {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

/// One thread's part of the codec.
class Bare {
public:
    explicit Bare(taiyen::Codec codec)
        : codec_(codec), zstd_(ZSTD_createCCtx()), expander_(ZSTD_createDCtx()), lz4_(static_cast<std::size_t>(LZ4_sizeofState())) {}
    static std::size_t bound(taiyen::Codec codec, std::size_t bytes) {
        return codec == taiyen::Codec::zstd ? ZSTD_compressBound(bytes) : static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(bytes)));
    }
    std::size_t pack(std::span<const std::byte> from, std::span<std::byte> into) {
        if (codec_ == taiyen::Codec::zstd) return ZSTD_compressCCtx(zstd_.get(), into.data(), into.size(), from.data(), from.size(), 3);
        return static_cast<std::size_t>(LZ4_compress_fast_extState(lz4_.data(), reinterpret_cast<const char*>(from.data()),
                                                                   reinterpret_cast<char*>(into.data()), static_cast<int>(from.size()),
                                                                   static_cast<int>(into.size()), 1));
    }
    void unpack(std::span<const std::byte> from, std::span<std::byte> into) {
        const std::size_t got =
            codec_ == taiyen::Codec::zstd
                ? ZSTD_decompressDCtx(expander_.get(), into.data(), into.size(), from.data(), from.size())
                : static_cast<std::size_t>(LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(into.data()),
                                                               static_cast<int>(from.size()), static_cast<int>(into.size())));
        check(got == into.size(), "the codec did not give back what it got");
    }

private:
    taiyen::Codec codec_;
    std::unique_ptr<ZSTD_CCtx, FreeCompressor> zstd_;
    std::unique_ptr<ZSTD_DCtx, FreeExpander> expander_;
    std::vector<std::byte> lz4_;
};

template <class F>
void on_threads(unsigned threads, F&& work) {
    std::atomic<bool> failed = false;
    const auto guarded = [&] {
        try {
            work();
        } catch (...) {
            failed = true;
        }
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(guarded);
    guarded();
    for (std::thread& other : others) other.join();
    check(!failed, "the codec alone failed");
}

/// Where a packed piece lies.
struct Place {
    std::size_t offset;
    std::size_t bytes;
};
using Places = std::vector<Place>;

/// `put(offset, piece)` in any order, several at once: nothing waits for anything.
template <class Put>
Places pack_alone(taiyen::Codec codec, unsigned threads, std::span<const std::byte> bytes, Put&& put) {
    Places places((bytes.size() + piece_bytes - 1) / piece_bytes);
    std::atomic<std::size_t> next = 0;
    std::atomic<std::size_t> end = 0;
    on_threads(threads, [&] {
        Bare bare(codec);
        Bytes packed(Bare::bound(codec, piece_bytes));
        for (std::size_t i = next++; i < places.size(); i = next++) {
            const std::size_t used = bare.pack(bytes.subspan(i * piece_bytes, std::min(piece_bytes, bytes.size() - i * piece_bytes)), packed);
            places[i] = {end.fetch_add(used), used};
            put(places[i].offset, std::span<const std::byte>(packed).first(used));
        }
    });
    return places;
}

/// `get(offset, bytes)` gives a packed piece; `put(offset, piece)` gets them in any order, several at once.
template <class Get, class Put>
void unpack_alone(taiyen::Codec codec, unsigned threads, const Places& places, std::size_t bytes, Get&& get, Put&& put) {
    std::atomic<std::size_t> next = 0;
    on_threads(threads, [&] {
        Bare bare(codec);
        Bytes packed(Bare::bound(codec, piece_bytes));
        Bytes piece(piece_bytes);
        for (std::size_t i = next++; i < places.size(); i = next++) {
            const auto into = std::span(piece).first(std::min(piece_bytes, bytes - i * piece_bytes));
            bare.unpack(get(places[i].offset, std::span(packed).first(places[i].bytes)), into);
            put(i * piece_bytes, into);
        }
    });
}

/// A file that the device may begin to write with each MiB.
class PlainFile {
public:
    explicit PlainFile(const std::filesystem::path& path) : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
        check(file_ >= 0, "a file can't be made");
    }
    PlainFile(const PlainFile&) = delete;
    PlainFile& operator=(const PlainFile&) = delete;
    ~PlainFile() { ::close(file_); }
    void write(std::size_t offset, std::span<const std::byte> bytes) const {
        check(::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes.size()),
              "a file can't be written");
        constexpr std::size_t ahead = mib;
        if (const std::size_t end = (offset + bytes.size()) / ahead * ahead; end > offset)
            ::sync_file_range(file_, static_cast<off_t>(end - ahead), ahead, SYNC_FILE_RANGE_WRITE);
    }
    void sync() const { check(::fsync(file_) == 0, "a file can't be synced"); }

private:
    int file_;
};

class PackedFile {
public:
    explicit PackedFile(const std::filesystem::path& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        check(file_ >= 0, "a file can't be opened");
    }
    PackedFile(const PackedFile&) = delete;
    PackedFile& operator=(const PackedFile&) = delete;
    ~PackedFile() { ::close(file_); }
    std::span<const std::byte> read(std::size_t offset, std::span<std::byte> into) const {
        check(::pread(file_, into.data(), into.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(into.size()), "a file can't be read");
        return into;
    }

private:
    int file_;
};

const char* name_of(taiyen::Codec codec) { return codec == taiyen::Codec::lz4 ? "lz4" : "zstd"; }

/// Processor time of the whole process that the newest `calm_seconds` took.
double processor_seconds = 0;

double processor_now() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Runs pairs {taiyen's, the codec's} of contenders in turns: each becomes a line of GB/s and ratios.
void compare(const char* title, double live_gb, int rounds, std::vector<bench::Contender> contenders) {
    std::vector<bench::Samples> processor(contenders.size());
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        contenders[i].run = [run = std::move(contenders[i].run), &processor, i] {
            const double seconds = run();
            processor[i].add(processor_seconds);
            return seconds;
        };
    }
    const std::vector<bench::Samples> samples = bench::interleave(rounds, contenders);
    const auto rate = [&](const bench::Samples& seconds) {
        bench::Samples rates;
        for (std::size_t i = 0; i < seconds.size(); ++i) rates.add(live_gb / seconds[i]);
        return rates;
    };
    bench::Table table({title, "GB/s of live data", "the codec alone", "ratio", "of processor time: GB/s", "ratio"});
    for (std::size_t i = 0; i + 1 < contenders.size(); i += 2) {
        const bench::Samples ours = rate(samples[i]);
        const bench::Samples bare = rate(samples[i + 1]);
        const bench::Samples our_work = rate(processor[i]);
        table.row({contenders[i].name, bench::spread(ours, 2), bench::spread(bare, 2), bench::spread(bench::ratio(ours, bare), 2),
                   bench::spread(our_work, 2), bench::spread(bench::ratio(our_work, rate(processor[i + 1])), 2)});
    }
    table.print();
}

/// Seconds; what was written before is out of the way.
template <class F>
double calm_seconds(const std::filesystem::path& written, F&& action) {
    std::filesystem::remove(written);
    ::sync();
    const double before = processor_now();
    const double seconds = bench::microseconds_of(std::forward<F>(action)) / 1e6;
    processor_seconds = processor_now() - before;
    return seconds;
}

void speed(const bench::Options& options, const bench::Folder& folder, const std::filesystem::path& path, unsigned threads) {
    taiyen::ArchiveHeap heap(taiyen::open_only, path);
    Bytes live;
    {
        taiyen::CompressOptions plain;
        plain.codec = taiyen::Codec::none;
        live = taiyen::compress(heap, plain);
    }
    const double live_gb = static_cast<double>(heap.stats().live_bytes) / 1e9;
    for (const taiyen::Codec codec : {taiyen::Codec::lz4, taiyen::Codec::zstd}) {
        taiyen::CompressOptions how;
        how.codec = codec;
        how.threads = threads;
        const auto stream_path = folder / "stream";
        const auto bare_path = folder / "bare";
        Bytes stream;
        std::unique_ptr<std::byte[]> bare;
        Places places;
        const std::vector<bench::Contender> compressing{
            {"compress, the bytes dropped",
             [&] { return calm_seconds(stream_path, [&] { taiyen::compress(heap, taiyen::ByteSink([](std::span<const std::byte>) {}), how); }); }},
            {"", [&] { return calm_seconds(bare_path, [&] { pack_alone(codec, threads, live, [](std::size_t, std::span<const std::byte>) {}); }); }},
            {"compress into memory",
             [&] {
                 stream = Bytes();
                 return calm_seconds(stream_path, [&] { stream = taiyen::compress(heap, how); });
             }},
            {"",
             [&] {
                 bare.reset();
                 return calm_seconds(bare_path, [&] {
                     bare.reset(new std::byte[Bare::bound(codec, piece_bytes) * (live.size() / piece_bytes + 1)]);
                     places = pack_alone(codec, threads, live, [&](std::size_t offset, std::span<const std::byte> piece) {
                         std::memcpy(bare.get() + offset, piece.data(), piece.size());
                     });
                 });
             }},
            {"compress into a std::ostream (a file, not synced)",
             [&] {
                 return calm_seconds(stream_path, [&] {
                     std::ofstream out(stream_path, std::ios::binary);
                     taiyen::compress(heap, out, how);
                 });
             }},
            {"",
             [&] {
                 return calm_seconds(bare_path, [&] {
                     std::ofstream out(bare_path, std::ios::binary);
                     std::mutex one_at_a_time;
                     pack_alone(codec, threads, live, [&](std::size_t, std::span<const std::byte> piece) {
                         const std::lock_guard lock(one_at_a_time);
                         out.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
                     });
                     check(static_cast<bool>(out.flush()), "a stream can't be written");
                 });
             }},
            {"compress into a file, durable", [&] { return calm_seconds(stream_path, [&] { taiyen::compress(heap, stream_path, how); }); }},
            {"",
             [&] {
                 return calm_seconds(bare_path, [&] {
                     const PlainFile out(bare_path);
                     pack_alone(codec, threads, live, [&](std::size_t offset, std::span<const std::byte> piece) { out.write(offset, piece); });
                     out.sync();
                 });
             }},
        };
        compare(codec == taiyen::Codec::lz4 ? "compress, lz4" : "compress, zstd", live_gb, options.rounds(), compressing);

        std::printf("%s: %.2f GB live become %.2f GB\n\n", name_of(codec), live_gb, static_cast<double>(stream.size()) / 1e9);

        // The files to read are those of the last turns; both are in the page cache.
        taiyen::compress(heap, stream_path, how);
        {
            const PlainFile out(bare_path);
            for (const Place& place : places) out.write(place.offset, {bare.get() + place.offset, place.bytes});
            out.sync();
        }
        const auto made = folder / "expanded.tyn";
        const auto plain = folder / "expanded";
        taiyen::ExpandOptions as;
        as.threads = threads;
        const auto from_memory = [&](std::size_t offset, std::span<std::byte> into) {
            return std::span<const std::byte>(bare.get() + offset, into.size());
        };
        const auto bare_from_file = [&] {
            return calm_seconds(plain, [&] {
                const PackedFile in(bare_path);
                const PlainFile out(plain);
                unpack_alone(
                    codec, threads, places, live.size(), [&](std::size_t offset, std::span<std::byte> into) { return in.read(offset, into); },
                    [&](std::size_t offset, std::span<const std::byte> piece) { out.write(offset, piece); });
                out.sync();
            });
        };
        const std::vector<bench::Contender> expanding{
            {"expand from memory into a durable heap",
             [&] { return calm_seconds(made, [&] { taiyen::expand(std::span<const std::byte>(stream), made, as); }); }},
            {"",
             [&] {
                 return calm_seconds(plain, [&] {
                     const PlainFile out(plain);
                     unpack_alone(codec, threads, places, live.size(), from_memory,
                                  [&](std::size_t offset, std::span<const std::byte> piece) { out.write(offset, piece); });
                     out.sync();
                 });
             }},
            {"expand from a std::istream",
             [&] {
                 return calm_seconds(made, [&] {
                     std::ifstream in(stream_path, std::ios::binary);
                     taiyen::expand(in, made, as);
                 });
             }},
            {"", bare_from_file},
            {"expand from a file", [&] { return calm_seconds(made, [&] { taiyen::expand_file(stream_path, made, as); }); }},
            {"", bare_from_file},
        };
        compare(codec == taiyen::Codec::lz4 ? "expand, lz4" : "expand, zstd", live_gb, options.rounds(), expanding);
        std::filesystem::remove(made);
        std::filesystem::remove(plain);
    }
    heap.close();
}

double kib_of(const char* key) { return std::stod(bench::value_in("/proc/self/status", key)); }

/// By how many MiB the most that a process had in memory grew meanwhile; a process of its own for it.
template <class F>
double peak_growth(F&& action) {
    int ends[2];
    check(::pipe(ends) == 0, "no pipe");
    const pid_t child = ::fork();
    check(child >= 0, "no process");
    if (child == 0) {
        double grown = -1;
        try {
            grown = action();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "failed: %s\n", error.what());
        }
        (void)!::write(ends[1], &grown, sizeof grown);
        ::_exit(0);
    }
    double grown = -1;
    (void)!::read(ends[0], &grown, sizeof grown);
    ::close(ends[0]);
    ::close(ends[1]);
    ::waitpid(child, nullptr, 0);
    check(grown >= 0, "what was to be measured failed");
    return grown;
}

template <class F>
double growth_of(F&& action) {
    { std::ofstream("/proc/self/clear_refs") << "5"; }
    const double before = kib_of("VmRSS");
    action();
    return (kib_of("VmHWM") - before) / 1024;
}

void memory(const bench::Options& options, const bench::Folder& folder, unsigned threads) {
    bench::Table table({"peak of memory, MiB more", "live, MiB", "compress", "expand"});
    const std::vector<std::size_t> sizes = options.quick() ? std::vector<std::size_t>{16, 64} : std::vector<std::size_t>{64, 256, 1024};
    for (const std::size_t size : sizes) {
        const auto path = folder / "heap.tyn";
        make_drawing(path, size * mib);
        for (const auto& [codec, level] : {std::pair{taiyen::Codec::lz4, 0}, {taiyen::Codec::zstd, 3}, {taiyen::Codec::zstd, 9}}) {
            if (level == 9 && size > 256) continue;
            taiyen::CompressOptions how;
            how.codec = codec;
            how.level = level;
            how.threads = threads;
            const auto stream = folder / "stream.tyz";
            const auto made = folder / "expanded.tyn";
            const double compressing = peak_growth([&] {
                taiyen::ArchiveHeap heap(taiyen::open_only, path);
                return growth_of([&] { taiyen::compress(heap, stream, how); });
            });
            const double expanding = peak_growth([&] {
                taiyen::ExpandOptions as;
                as.threads = threads;
                return growth_of([&] { taiyen::expand_file(stream, made, as); });
            });
            table.row({level != 0 ? std::string(name_of(codec)).append(" ").append(std::to_string(level)) : std::string(name_of(codec)),
                       std::to_string(size), bench::fixed(compressing), bench::fixed(expanding)});
            std::filesystem::remove(stream);
            std::filesystem::remove(made);
        }
        std::filesystem::remove(path);
    }
    table.print();
}

/// Durable commits of six words, until `action` ends: microseconds each.
template <class F>
bench::Samples commits_beside(taiyen::TransactionalHeap& heap, F&& action) {
    std::atomic<bool> stop = false;
    bench::Samples samples;
    std::thread writer([&] {
        bench::Random random(7);
        auto& lists = *heap.find<Lists>("lists");
        while (!stop) {
            samples.add(bench::microseconds_of([&] {
                taiyen::Transaction transaction(heap);
                for (int i = 0; i < 6; ++i) {
                    auto& list = lists[random.below(lists.size())];
                    list[random.below(list.size())].z += 1;
                }
                transaction.commit();
            }));
        }
    });
    action();
    stop = true;
    writer.join();
    return samples;
}

double quantile(const bench::Samples& samples, double part) {
    std::vector<double> sorted;
    for (std::size_t i = 0; i < samples.size(); ++i) sorted.push_back(samples[i]);
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(part * static_cast<double>(sorted.size())))];
}

void writer(const bench::Options& options, const std::filesystem::path& path) {
    taiyen::TransactionalHeap heap(taiyen::open_only, path);
    bench::Table table({"a writer's commits, ms", "commits", "seconds", "median", "99 %", "longest"});
    const auto row = [&](const char* name, auto&& action) {
        bench::Samples samples;
        double seconds = 0;
        samples = commits_beside(heap, [&] { seconds = bench::microseconds_of(action) / 1e6; });
        table.row({name, std::to_string(samples.size()), bench::fixed(seconds, 2), bench::fixed(samples.median() / 1e3, 2),
                   bench::fixed(quantile(samples, .99) / 1e3, 2), bench::fixed(samples.max() / 1e3, 1)});
    };
    for (int round = 0; round < options.rounds(); ++round) {
        row("alone", [] { ::usleep(2'000'000); });
        row("beside snapshot()", [&] { heap.snapshot(); });
        for (const taiyen::Codec codec : {taiyen::Codec::lz4, taiyen::Codec::zstd}) {
            taiyen::CompressOptions how;
            how.codec = codec;
            how.threads = 1;
            row(codec == taiyen::Codec::lz4 ? "beside compress, lz4, one thread" : "beside compress, zstd, one thread",
                [&] { taiyen::compress(heap, taiyen::ByteSink([](std::span<const std::byte>) {}), how); });
        }
    }
    table.print();
    heap.close();
}

int run(const bench::Options& options) {
    const std::string& part = options.text("--part");
    const auto threads = static_cast<unsigned>(options.number("--threads"));
    const bench::Folder folder(options.folder());
    bench::print_head(options, "Heaps that travel, beside the bare codec library");
    if (part == "memory" || part == "all") memory(options, folder, threads);
    if (part == "memory") return 0;
    const auto path = folder / "drawing.tyn";
    make_drawing(path, (options.quick() ? 48 : options.number("--mib")) * mib);
    if (part == "speed" || part == "all") speed(options, folder, path, threads);
    if (part == "writer" || part == "all") writer(options, path);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(
            argc, argv,
            "How fast is a heap compressed and expanded, beside the bare codec library; what memory does it take, and how long do writers wait?", 5,
            bench::Priority::normal,
            {{"--mib", "512", "live data, MiB"}, {"--threads", "2", "that compress and expand"}, {"--part", "all", "speed, memory or writer"}},
            bench::Processors::all));
    });
}
