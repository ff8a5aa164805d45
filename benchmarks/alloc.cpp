// What does it cost to allocate and free blocks of mixed sizes in a heap that is a file, among many live ones?
//
// A replacement frees a random live block and allocates one of another size. All engines get the same sizes and the same victims. Instructions are counted in a
// child process by single-stepping through the same replacements.

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "harness.hpp"
#include "instructions.hpp"
#include "machine.hpp"
#include "peers.hpp"

namespace {

using bench::Random;

struct Mix {
    std::string name;
    std::size_t live_bytes;
    std::function<std::size_t(Random&)> draw;
    double mean;
};

std::function<std::size_t(Random&)> exponential(double mean) {
    return [mean](Random& random) {
        const double size = -mean * std::log(1 - random.unit());
        return static_cast<std::size_t>(std::clamp(size, 16.0, 1024.0));
    };
}

std::size_t log_uniform(Random& random) {
    return static_cast<std::size_t>(16 * std::pow(4096.0, random.unit()));  // 16 B … 64 KiB
}

/// The same sequence of replacements for everybody.
struct Script {
    std::vector<std::uint32_t> first_sizes;
    std::vector<std::uint32_t> victims;
    std::vector<std::uint32_t> sizes;

    Script(const Mix& mix, std::size_t replacements) {
        Random random(1);
        const auto live = static_cast<std::size_t>(static_cast<double>(mix.live_bytes) / mix.mean);
        for (std::size_t i = 0; i < live; ++i) first_sizes.push_back(static_cast<std::uint32_t>(mix.draw(random)));
        for (std::size_t i = 0; i < replacements; ++i) {
            victims.push_back(static_cast<std::uint32_t>(random.below(live)));
            sizes.push_back(static_cast<std::uint32_t>(mix.draw(random)));
        }
    }
};

/// A heap with its live blocks, and a place in the script.
template <class Blocks>
class Churn {
public:
    Churn(std::unique_ptr<Blocks> blocks, const Script& script) : blocks_(std::move(blocks)), script_(script) {
        for (const std::uint32_t size : script.first_sizes) live_.push_back(touched(blocks_->allocate(size)));
    }

    /// The next `count` replacements; nanoseconds each.
    double run(std::size_t count) {
        return 1000 * bench::processor_microseconds_of([&] { replace(count); }) / static_cast<double>(count);
    }
    void replace(std::size_t count) {
        Blocks& blocks = *blocks_;
        for (std::size_t i = 0; i < count; ++i) {
            typename Blocks::Handle& slot = live_[script_.victims[next_]];
            blocks.deallocate(slot);
            slot = touched(blocks.allocate(script_.sizes[next_]));
            next_ = next_ + 1 == script_.victims.size() ? 0 : next_ + 1;
        }
    }
    /// `count` pairs: the block just allocated is freed at once.
    double run_pairs(std::size_t count) {
        return 1000 * bench::processor_microseconds_of([&] { pairs(count); }) / static_cast<double>(count);
    }
    void pairs(std::size_t count) {
        Blocks& blocks = *blocks_;
        for (std::size_t i = 0; i < count; ++i) {
            blocks.deallocate(touched(blocks.allocate(script_.sizes[next_])));
            next_ = next_ + 1 == script_.victims.size() ? 0 : next_ + 1;
        }
    }

private:
    /// A program that asks for a block stores something in it.
    static typename Blocks::Handle touched(typename Blocks::Handle block) {
        *static_cast<volatile std::uint64_t*>(Blocks::address(block)) = 1;
        return block;
    }

    std::unique_ptr<Blocks> blocks_;
    const Script& script_;
    std::vector<typename Blocks::Handle> live_;
    std::size_t next_ = 0;
};

constexpr std::size_t pool_bytes = std::size_t{512} << 20U;

template <class Blocks>
std::unique_ptr<Blocks> make(const std::filesystem::path& path) {
    if constexpr (std::is_same_v<Blocks, bench::TaiyenBlocks>)
        return std::make_unique<Blocks>(path);
    else
        return std::make_unique<Blocks>(path, pool_bytes);
}

/// One engine in one mix: what the rounds call, and what the steps count.
struct Subject {
    std::string name;
    std::function<double(std::size_t)> churn;
    std::function<double(std::size_t)> pairs;
    std::function<void()> close;
    std::function<std::function<void()>(bool pairs, std::size_t count)> stepped;
};

template <class Blocks>
Subject subject(const bench::Folder& folder, const Script& script) {
    // The counting child makes its own heap: its process number keeps the names apart.
    const auto path = [&folder] { return folder / (std::string("heap-") + std::to_string(::getpid()) + Blocks::name); };
    auto churn = std::make_shared<std::unique_ptr<Churn<Blocks>>>();
    const auto open = [churn, path, &script]() -> Churn<Blocks>& {
        if (!*churn) *churn = std::make_unique<Churn<Blocks>>(make<Blocks>(path()), script);
        return **churn;
    };
    return {Blocks::name, [open](std::size_t count) { return open().run(count); }, [open](std::size_t count) { return open().run_pairs(count); },
            [churn] { churn->reset(); },
            [path, &script](bool pairs, std::size_t count) -> std::function<void()> {
                auto fresh = std::make_shared<Churn<Blocks>>(make<Blocks>(path()), script);
                fresh->replace(200'000);  // into the state that is timed
                if (pairs) fresh->pairs(20'000);
                return [fresh, pairs, count] { pairs ? fresh->pairs(count) : fresh->replace(count); };
            }};
}

std::vector<Subject> subjects(const bench::Folder& folder, const Script& script) {
    std::vector<Subject> all{subject<bench::TaiyenBlocks>(folder, script)};
#ifdef TAIYEN_BENCH_BOOST
    all.push_back(subject<bench::BoostBlocks<bench::BoostFile>>(folder, script));
    all.push_back(subject<bench::BoostBlocks<bench::BoostFileNoLock>>(folder, script));
#endif
#ifdef TAIYEN_BENCH_PMEMOBJ
    all.push_back(subject<bench::PmemobjBlocks>(folder, script));
#endif
    return all;
}

/// Instructions per step of each subject; 0: could not be counted.
std::vector<double> count_steps(const std::vector<Subject>& all, bool pairs, std::size_t count) {
    const auto idle = bench::count_instructions([] { return std::function<void()>([] {}); });
    std::vector<double> result;
    for (const Subject& one : all) {
        const auto steps = idle ? bench::count_instructions([&] { return one.stepped(pairs, count); }) : std::nullopt;
        result.push_back(steps ? static_cast<double>(*steps - *idle) / static_cast<double>(count) : 0);
    }
    return result;
}

void print_table(const std::vector<Subject>& all, const std::vector<bench::Samples>& samples, const std::vector<double>& instructions) {
    bench::Table table({"", "ns of processor time", "ratio to taiyen", "instructions", "ratio"});
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto times = bench::ratio(samples[i], samples[0]);
        table.row({all[i].name, bench::spread(samples[i]), bench::spread(times, 2),
                   instructions[i] != 0 ? bench::fixed(instructions[i], 0) : "not counted",
                   instructions[i] != 0 && instructions[0] != 0 ? bench::fixed(instructions[i] / instructions[0], 2) : "-"});
    }
    table.print();
}

int run(const bench::Options& options) {
    const std::size_t megabytes = options.quick() ? 2 : 16;
    const std::vector<Mix> mixes{{"small mix, mean 43 B (16 B \u2013 1 KiB, exponential)", megabytes << 20U, exponential(43), 47},
                                 {"small mix, mean 128 B", megabytes << 20U, exponential(128), 129},
                                 {"small mix, mean 256 B", megabytes << 20U, exponential(256), 252},
                                 {"wide mix, 16 B \u2013 64 KiB, log-uniform", (4 * megabytes) << 20U, log_uniform, 7877}};
    const std::size_t count = options.quick() ? 20'000 : 200'000;
    const std::size_t stepped = options.quick() ? 50 : 200;

    if (!options.text("--engine").empty()) {
        const bench::Folder folder(options.folder());
        const Mix& mix = mixes.at(options.number("--mix"));
        const Script script(mix, 1'000'000);
        for (const Subject& one : subjects(folder, script)) {
            if (one.name.find(options.text("--engine")) != std::string::npos) {
                std::printf("%s, %s: %.1f ns each\n", one.name.c_str(), mix.name.c_str(), one.churn(options.number("--count")));
                return 0;
            }
        }
        throw std::runtime_error("no engine's name contains " + options.text("--engine"));
    }

    bench::print_head(options, "Allocating and freeing in a heap that is a file");
    bench::print_peers();
    for (const Mix& mix : mixes) {
        const bench::Folder folder(options.folder());
        const Script script(mix, 1'000'000);
        const std::vector<Subject> all = subjects(folder, script);
        std::vector<bench::Contender> churn;
        std::vector<bench::Contender> pairs;
        for (const Subject& one : all) {
            one.churn(count);  // fills the heap and brings it into its steady state
            churn.push_back({one.name, [&one, count] { return one.churn(count); }});
            pairs.push_back({one.name, [&one, count] { return one.pairs(count); }});
        }
        const auto churned = bench::interleave(options.rounds(), churn);
        const auto paired = bench::interleave(options.rounds(), pairs);
        for (const Subject& one : all) one.close();
        std::printf("%s, %zu blocks (%zu MiB) live: free a random block and allocate another\n", mix.name.c_str(), script.first_sizes.size(),
                    mix.live_bytes >> 20U);
        print_table(all, churned, count_steps(all, false, stepped));
        std::printf("the same heap: allocate a block and free it at once\n");
        print_table(all, paired, count_steps(all, true, stepped));
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv,
                                     "What does it cost to allocate and free blocks of mixed sizes in a heap that is a file, among many live ones?",
                                     7, bench::Priority::normal,
                                     {{"--engine", "", "run one engine alone (part of its name), for perf or valgrind --tool=callgrind"},
                                      {"--mix", "0", "with --engine: which mix, 0 to 3"},
                                      {"--count", "1000000", "with --engine: how many replacements"}});
        return run(options);
    });
}
