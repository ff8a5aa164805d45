// What does it cost to know what a scope changed? By pages touched and bytes changed, for each way of capturing; and for an edit of a whole gigabyte.

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <taiyen/base/capture.hpp>

#include "change/instrumented.hpp"
#include "change/recorder.hpp"
#include "harness.hpp"
#include "heaps.hpp"
#include "machine.hpp"

namespace {

using taiyen::Capture;
using taiyen::change::ChangeSet;
using taiyen::change::Recorder;

constexpr std::size_t page = taiyen::page_bytes;

/// An archive heap with one large block, page-aligned and saved, so that its pages are those of the file.
class Subject {
public:
    Subject(const std::filesystem::path& path, std::size_t bytes) : heap_(taiyen::create_only, path) {
        auto* const block = static_cast<std::byte*>(heap_.allocate(bytes));
        bench::Random random(1);
        bench::fill(block, bytes, random);
        heap_.snapshot();
        block_ = block;
    }
    taiyen::heap::HeapCore& core() { return *heap_.core(); }
    std::byte* block() { return block_; }
    std::unique_ptr<Recorder> recorder(Capture mode) {
        // The benchmark neither allocates nor frees while it captures: the extent stays.
        return Recorder::make(mode, core(), core().engine().extent(), taiyen::Audit::off);
    }

private:
    taiyen::ArchiveHeap heap_;
    std::byte* block_ = nullptr;
};

const char* name_of(Capture mode) { return mode == Capture::pages ? "pages" : mode == Capture::stores ? "stores" : "declared"; }

/// Stores `bytes` bytes at `at`, in pieces of 8, announced as the mode wants it. What the compiler's hooks do stands here by hand.
void store(Recorder* recorder, std::byte* base, std::byte* at, std::size_t bytes, std::uint64_t value) {
    if (recorder != nullptr && recorder->mode() == Capture::declared) {
        recorder->touch({static_cast<std::uint64_t>(at - base)}, bytes);
    }
    const bool hooked = recorder != nullptr && recorder->mode() == Capture::stores;
    for (std::size_t i = 0; i < bytes; i += 8) {
        if (hooked) {
            recorder->on_store(at + i, 8);
        }
        *static_cast<volatile std::uint64_t*>(static_cast<void*>(at + i)) = value + i;
    }
}

struct Figures {
    bench::Samples time;
    double faults = 0;
};

/// Scopes that change `bytes` bytes in each of `pages` pages: the same ones each time, or others. Microseconds of processor time per scope.
double scopes(Subject& subject, Recorder* recorder, std::size_t block_pages, std::size_t pages, std::size_t bytes, bool wander, std::size_t count,
              double* faults) {
    auto* const base = reinterpret_cast<std::byte*>(subject.core().ranges().durable);
    bench::Random random(pages * 7 + bytes);
    std::vector<std::size_t> chosen(pages);
    const auto choose = [&] {
        for (std::size_t& one : chosen) {
            one = random.below(block_pages);
        }
    };
    choose();
    ChangeSet set;
    std::uint64_t value = 1;
    const auto scope = [&] {
        if (wander) {
            choose();
        }
        if (recorder != nullptr) {
            recorder->begin_scope();
        }
        for (const std::size_t one : chosen) {
            store(recorder, base, subject.block() + one * page + (bytes < page ? 64 : 0), bytes, ++value * 0x9e37'79b9'7f4a'7c15ULL);
        }
        if (recorder != nullptr) {
            set.clear();
            recorder->cut(set);
            recorder->end_scope();
        }
    };
    for (int i = 0; i < 3; ++i) {
        scope();
    }
    const std::uint64_t before = recorder != nullptr ? recorder->counters().faults : 0;
    const double time = bench::processor_microseconds_of([&] {
        for (std::size_t i = 0; i < count; ++i) {
            scope();
        }
    });
    if (recorder != nullptr && faults != nullptr) {
        *faults = static_cast<double>(recorder->counters().faults - before) / static_cast<double>(count);
    }
    return time / static_cast<double>(count);
}

void small_scopes(const bench::Options& options, const bench::Folder& folder, bool wander) {
    const std::size_t block_pages = (options.quick() ? std::size_t{64} : std::size_t{512}) << 8U;
    Subject subject(folder / (wander ? "wander.tyn" : "steady.tyn"), block_pages * page);
    // All pages are private copies already: the first store to a page of the file costs the same with and without capture.
    for (std::size_t i = 0; i < block_pages; ++i) {
        *static_cast<volatile std::byte*>(subject.block() + i * page) = std::byte{1};
    }
    bench::Table table({wander ? "µs per scope, other pages each time" : "µs per scope, the same pages each time", "stores alone", "pages", "faults",
                        "stores", "declared"});
    for (const std::size_t pages : {1U, 8U, 64U, 512U}) {
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{256}, page}) {
            const std::size_t count = std::max<std::size_t>(2, (options.quick() ? 2'000 : 20'000) / pages / (wander ? 4 : 1));
            double faults = 0;
            std::vector<bench::Contender> contenders{
                {"alone", [&] { return scopes(subject, nullptr, block_pages, pages, bytes, wander, count, nullptr); }}};
            for (const Capture mode : {Capture::pages, Capture::stores, Capture::declared}) {
                contenders.push_back({name_of(mode), [&, mode] {
                                          const auto recorder = subject.recorder(mode);
                                          recorder->start();
                                          const double time = scopes(subject, recorder.get(), block_pages, pages, bytes, wander, count,
                                                                     mode == Capture::pages ? &faults : nullptr);
                                          recorder->stop();
                                          return time;
                                      }});
            }
            const auto samples = bench::interleave(options.rounds(), contenders);
            table.row({std::to_string(pages) + " pages, " + std::to_string(bytes) + " bytes in each", bench::spread(samples[0]),
                       bench::spread(samples[1]), bench::fixed(faults, 2), bench::spread(samples[2]), bench::spread(samples[3])});
        }
    }
    table.print();
}

/// Every word of a large block is written in one scope.
void bulk(const bench::Options& options, const bench::Folder& folder) {
    const std::size_t bytes = (options.quick() ? std::size_t{64} : std::size_t{options.number("--bulk")}) << 20U;
    bench::Table table({std::to_string(bytes >> 20U) + " MiB written in order in one scope", "ms", "ratio to the edit alone"});
    std::uint64_t value = 0;
    const auto path = folder / "bulk.tyn";
    { Subject subject(path, bytes); }
    double parts[4] = {};
    const auto edit = [&](std::optional<Capture> mode) {
        taiyen::ArchiveHeap heap(taiyen::open_only, path);
        taiyen::heap::HeapCore& core = *heap.core();
        std::byte* block = nullptr;
        core.engine().for_each_block([&](const taiyen::heap::Block& found) {
            block = reinterpret_cast<std::byte*>(core.ranges().durable) + found.offset.value;
            return found.usable_bytes < bytes;
        });
        auto* const base = reinterpret_cast<std::byte*>(core.ranges().durable);
        const auto recorder = mode ? Recorder::make(*mode, core, core.engine().extent(), taiyen::Audit::off) : nullptr;
        if (recorder) {
            recorder->start();
        }
        ChangeSet set;
        const double time = bench::processor_microseconds_of([&] {
            ++value;
            const auto timed = [&](int part, auto&& work) { parts[part] = bench::processor_microseconds_of(work) / 1000; };
            if (recorder) {
                recorder->begin_scope();
            }
            timed(0, [&] { store(recorder.get(), base, block, bytes, value * 0x9e37'79b9'7f4a'7c15ULL); });
            if (recorder) {
                timed(1, [&] { recorder->cut(set); });
                timed(2, [&] { recorder->end_scope(); });
            }
        });
        if (recorder) {
            recorder->stop();
        }
        return time / 1000;
    };
    std::vector<bench::Contender> contenders{{"the edit alone", [&] { return edit(std::nullopt); }},
                                             {"captured through pages", [&] { return edit(Capture::pages); }}};
    for (const auto& contender : contenders) {
        contender.run();
    }
    const auto samples = bench::interleave(std::min(options.rounds(), 5), contenders);
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        table.row({contenders[i].name, bench::spread(samples[i], 0), bench::spread(bench::ratio(samples[i], samples[0]), 2)});
    }
    table.row({"  its stores with their faults", bench::fixed(parts[0], 0), ""});
    table.row({"  its cut", bench::fixed(parts[1], 0), ""});
    table.row({"  its end", bench::fixed(parts[2], 0), ""});
    table.print();
}

int run(const bench::Options& options) {
    bench::print_head(options, "The cost of capture");
    taiyen::change::register_instrumented_code();  // this program calls the hooks by hand
    const bench::Folder folder(options.folder());
    const std::string& part = options.text("--part");
    if (part == "all" || part == "steady") {
        small_scopes(options, folder, false);
    }
    if (part == "all" || part == "wander") {
        small_scopes(options, folder, true);
    }
    if (part == "all" || part == "bulk") {
        bulk(options, folder);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        taiyen::change::register_instrumented_code();  // the hooks are called by hand here
        return run(bench::Options(argc, argv,
                                  "What does it cost to know what a scope changed? By pages touched and bytes changed, for each way of capturing, "
                                  "beside the stores alone.\n"
                                  "A scope here: begin, stores, cut, end. Times are processor time of the thread, the kernel's share included.",
                                  7, bench::Priority::normal,
                                  {{"--part", "all", "steady, wander, bulk or all"}, {"--bulk", "1024", "MiB of the bulk edit"}}));
    });
}
