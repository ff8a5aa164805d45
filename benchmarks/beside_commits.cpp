// What do a data file that comes and goes, and a handler of events, cost those who commit?
//
// Four threads commit small transactions for a second each time: alone, while a data file is attached and detached again and again, and with a handler of events, in turns. Then one thread's commits are counted in instructions, with
// a handler and without.

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <taiyen/store/event.hpp>
#include <taiyen/taiyen.hpp>

#include "committers.hpp"
#include "harness.hpp"
#include "instructions.hpp"
#include "machine.hpp"

namespace {

std::atomic<std::uint64_t> told{0};

/// A handler of events, as long as it lives.
class Handled {
public:
    explicit Handled(bool is_wanted) : is_wanted_(is_wanted) {
        if (is_wanted_) taiyen::set_event_handler([](const taiyen::Event&) noexcept { ++told; });
    }
    Handled(const Handled&) = delete;
    Handled& operator=(const Handled&) = delete;
    ~Handled() {
        if (is_wanted_) taiyen::set_event_handler(nullptr);
    }

private:
    const bool is_wanted_;
};

/// Instructions of a commit that nobody waits for, in user mode, the transaction's four stores included; nothing: they can't be counted here.
std::optional<double> instructions_of_commit(const std::filesystem::path& path, bool handled) {
    constexpr unsigned commits = 200;
    const auto prepare = [&]() -> std::function<void()> {
        taiyen::PersistentOptions how;
        how.capture = taiyen::Capture::declared;
        how.durability = taiyen::Durability::async;
        const auto handler = std::make_shared<Handled>(handled);
        const auto heap = std::make_shared<taiyen::TransactionalHeap>(taiyen::create_only, path, how);
        bench::Counted& counters = bench::make_counted(*heap, 1);
        const auto random = std::make_shared<bench::Random>(1);
        const auto commit = [handler, heap, &counters, random] {
            for (unsigned i = 0; i < commits; ++i) bench::commit_one(*heap, counters, 0, *random);
        };
        commit();
        return commit;
    };
    const auto counted = bench::count_instructions(prepare);
    return counted ? std::optional(static_cast<double>(*counted) / commits) : std::nullopt;
}

int run(const bench::Options& options) {
    bench::print_head(options, "A data file that comes and goes, and a handler of events, beside four threads that commit");
    const bench::Folder folder(options.folder());
    const std::size_t mebibytes = options.quick() ? 32 : options.number("--mebibytes");
    const std::chrono::milliseconds time(options.quick() ? 200 : options.number("--milliseconds"));
    for (const taiyen::Durability durability : {taiyen::Durability::sync, taiyen::Durability::async}) {
        const bool waits = durability == taiyen::Durability::sync;
        taiyen::PersistentOptions how;
        how.capture = taiyen::Capture::declared;
        how.durability = durability;
        taiyen::TransactionalHeap heap(taiyen::create_only, folder / (waits ? "sync.tyn" : "async.tyn"), how);
        bench::Counted& counters = bench::make_counted(heap, mebibytes);
        bench::commits(heap, counters, time);  // warm
        const auto alone = [&] { return bench::commits(heap, counters, time); };
        std::uint64_t rounds = 0;
        double seconds = 0;
        const auto coming_and_going = [&] {
            std::atomic<bool> done{false};
            const auto start = std::chrono::steady_clock::now();
            std::thread changing([&] {
                for (; !done; ++rounds) {
                    heap.attach_data_file();
                    heap.detach_data_file();
                }
            });
            const double figure = alone();
            done = true;
            changing.join();
            seconds += bench::microseconds_since(start) / 1e6;
            return figure;
        };
        const auto with_handler = [&] {
            const Handled handler(true);
            return alone();
        };
        const std::vector<bench::Samples> samples =
            bench::interleave(options.rounds(), {{"alone", alone}, {"data file", coming_and_going}, {"handler", with_handler}});
        std::printf("%s, a heap of %zu MiB\n", waits ? "Each commit waits until it is durable" : "Commits that nobody waits for", mebibytes);
        bench::Table table({"", "commits per second", "of those alone"});
        table.row({"alone", bench::spread(samples[0], 0), "1"});
        table.row({"a data file is attached and detached " + bench::fixed(static_cast<double>(rounds) / seconds, 1) + " times a second",
                   bench::spread(samples[1], 0), bench::spread(bench::ratio(samples[1], samples[0]), 3)});
        table.row({"with a handler of events", bench::spread(samples[2], 0), bench::spread(bench::ratio(samples[2], samples[0]), 3)});
        table.print();
        heap.close();
    }
    const auto without = instructions_of_commit(folder / "without.tyn", false);
    const auto with = instructions_of_commit(folder / "with.tyn", true);
    if (without && with)
        std::printf("Instructions of a commit: %.1f without a handler of events, %.1f with one\n", *without, *with);
    else
        std::puts("Instructions of a commit: they can't be counted here");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv, "What do a data file that comes and goes, and a handler of events, cost those who commit?", 11,
                                     bench::Priority::normal, {{"--mebibytes", "128", "of the heap"}, {"--milliseconds", "1000", "of each round"}},
                                     bench::Processors::all);
        return run(options);
    });
}
