// What does it cost to know what a scope changed? By pages touched and bytes changed, for each way of capturing; and for an edit of a whole gigabyte.

#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
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
    if (recorder != nullptr && recorder->mode() == Capture::declared) recorder->touch({static_cast<std::uint64_t>(at - base)}, bytes);
    const bool hooked = recorder != nullptr && recorder->mode() == Capture::stores;
    for (std::size_t i = 0; i < bytes; i += 8) {
        if (hooked) recorder->on_store(at + i, 8);
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
        for (std::size_t& one : chosen) one = random.below(block_pages);
    };
    choose();
    ChangeSet set;
    std::uint64_t value = 1;
    const auto scope = [&] {
        if (wander) choose();
        if (recorder != nullptr) recorder->begin_scope();
        for (const std::size_t one : chosen)
            store(recorder, base, subject.block() + one * page + (bytes < page ? 64 : 0), bytes, ++value * 0x9e37'79b9'7f4a'7c15ULL);
        if (recorder != nullptr) {
            set.clear();
            recorder->cut(set);
            recorder->end_scope();
        }
    };
    for (int i = 0; i < 3; ++i) scope();
    const std::uint64_t before = recorder != nullptr ? recorder->counters().faults : 0;
    const double time = bench::processor_microseconds_of([&] {
        for (std::size_t i = 0; i < count; ++i) scope();
    });
    if (recorder != nullptr && faults != nullptr) *faults = static_cast<double>(recorder->counters().faults - before) / static_cast<double>(count);
    return time / static_cast<double>(count);
}

void small_scopes(const bench::Options& options, const bench::Folder& folder, bool wander) {
    const std::size_t block_pages = (options.quick() ? std::size_t{64} : std::size_t{512}) << 8U;
    Subject subject(folder / (wander ? "wander.tyn" : "steady.tyn"), block_pages * page);
    // All pages are private copies already: the first store to a page of the file costs the same with and without capture.
    for (std::size_t i = 0; i < block_pages; ++i) *static_cast<volatile std::byte*>(subject.block() + i * page) = std::byte{1};
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

/// What the system has to give for the memory that an edit takes. A virtual machine's free pages may be the host's: then the first store to each costs several microseconds, and that is all one would measure.
/// Both the edit alone and the captured one begin in the same state.
class Memory {
public:
    enum class State { used, fresh };

    /// used: as much as any contender takes was written by this process a moment ago. fresh: it was given back and left alone for some seconds; and what the system keeps warm of free memory is taken.
    Memory(State state, std::size_t bytes) {
        const Block taken(bytes);
        if (state == State::fresh) rest_ = true;
    }
    void settle() {
        if (rest_) {
            std::this_thread::sleep_for(std::chrono::seconds(5));
            kept_ = std::make_unique<Block>(std::size_t{3} << 29U);
        }
    }

private:
    /// Anonymous memory, all of it written.
    class Block {
    public:
        explicit Block(std::size_t bytes) : bytes_(bytes) {
            memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for the measurement");
            for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(memory_)[at] = 1;
        }
        ~Block() { ::munmap(memory_, bytes_); }
        Block(const Block&) = delete;
        Block& operator=(const Block&) = delete;

    private:
        void* memory_;
        std::size_t bytes_;
    };
    bool rest_ = false;
    std::unique_ptr<Block> kept_;
};

std::byte* block_of(taiyen::heap::HeapCore& core, std::size_t bytes) {
    std::byte* block = nullptr;
    core.engine().for_each_block([&](const taiyen::heap::Block& found) {
        block = reinterpret_cast<std::byte*>(core.ranges().durable) + found.offset.value;
        return found.usable_bytes < bytes;
    });
    return block;
}

/// Every word of a large block is written in one scope: the first edit of the pages of a heap that was just opened. Milliseconds of processor time.
class Bulk {
public:
    Bulk(std::filesystem::path path, std::size_t bytes) : path_(std::move(path)), bytes_(bytes) { const Subject subject(path_, bytes); }

    struct Parts {
        double stores = 0, cut = 0, end = 0;
    };

    double alone(Memory::State state) {
        taiyen::ArchiveHeap heap(taiyen::open_only, path_);
        auto* const block = block_of(*heap.core(), bytes_);
        return timed(state, [&] { edit(block); });
    }
    /// begin, stores, cut, end: the change set is what is wanted.
    double captured(Memory::State state, Parts& parts) {
        taiyen::ArchiveHeap heap(taiyen::open_only, path_);
        taiyen::heap::HeapCore& core = *heap.core();
        auto* const block = block_of(core, bytes_);
        const auto recorder = Recorder::make(Capture::pages, core, core.engine().extent(), taiyen::Audit::off);
        recorder->start();
        ChangeSet set;
        const double time = timed(state, [&] {
            const auto part = [](auto&& work) { return bench::processor_microseconds_of(work) / 1000; };
            recorder->begin_scope();
            parts.stores = part([&] { edit(block); });
            parts.cut = part([&] { recorder->cut(set); });
            parts.end = part([&] { recorder->end_scope(); });
        });
        recorder->stop();
        return time;
    }
    /// A scope of a heap without a history, or one that becomes a step in memory.
    double scope(Memory::State state, bool kept) {
        taiyen::SnapshotHeap heap(taiyen::open_only, path_);
        auto* const block = block_of(*heap.core(), bytes_);
        if (kept) heap.attach_undo({.bytes = 3 * bytes_, .circular = true, .persistent = false});
        {
            taiyen::UndoScope first(heap, "capture begins");
            first.commit();
        }
        return timed(state, [&] {
            taiyen::UndoScope scope(heap, "bulk");
            edit(block);
            scope.commit();
        });
    }

private:
    void edit(std::byte* block) {
        ++value_;
        store(nullptr, nullptr, block, bytes_, value_ * 0x9e37'79b9'7f4a'7c15ULL);
    }
    template <class F>
    double timed(Memory::State state, F&& work) {
        Memory memory(state, 7 * bytes_);
        memory.settle();
        return bench::processor_microseconds_of(work) / 1000;
    }

    std::filesystem::path path_;
    std::size_t bytes_;
    std::uint64_t value_ = 0;
};

void bulk(const bench::Options& options, const bench::Folder& folder) {
    const std::size_t bytes = (options.quick() ? std::size_t{64} : std::size_t{options.number("--bulk")}) << 20U;
    Bulk subject(folder / "bulk.tyn", bytes);
    for (const Memory::State state : {Memory::State::used, Memory::State::fresh}) {
        Bulk::Parts parts;
        const std::vector<bench::Contender> contenders{{"the edit alone", [&] { return subject.alone(state); }},
                                                       {"captured: begin, stores, cut, end", [&] { return subject.captured(state, parts); }},
                                                       {"UndoScope, no history", [&] { return subject.scope(state, false); }},
                                                       {"UndoScope, a step in memory", [&] { return subject.scope(state, true); }}};
        contenders.front().run();  // the file comes into the page cache
        const auto samples = bench::interleave(std::min(options.rounds(), 5), contenders);
        bench::Table table({std::to_string(bytes >> 20U) + " MiB written in order in one scope, through pages; " +
                                (state == Memory::State::used ? "memory that was in use" : "memory that the host may have to supply"),
                            "ms", "ratio to the edit alone"});
        for (std::size_t i = 0; i < contenders.size(); ++i)
            table.row({contenders[i].name, bench::spread(samples[i], 0), bench::spread(bench::ratio(samples[i], samples[0]), 2)});
        table.row({"  captured, the last time: its stores with their faults", bench::fixed(parts.stores, 0), ""});
        table.row({"  its cut", bench::fixed(parts.cut, 0), ""});
        table.row({"  its end", bench::fixed(parts.end, 0), ""});
        table.print();
    }
}

int run(const bench::Options& options) {
    bench::print_head(options, "The cost of capture");
    taiyen::change::register_instrumented_code();  // this program calls the hooks by hand
    const bench::Folder folder(options.folder());
    const std::string& part = options.text("--part");
    if (part == "all" || part == "steady") small_scopes(options, folder, false);
    if (part == "all" || part == "wander") small_scopes(options, folder, true);
    if (part == "all" || part == "bulk") bulk(options, folder);
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
