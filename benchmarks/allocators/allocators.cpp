// What do volatile heaps cost programs that know nothing of them, beside the allocators that programs use?
//
// Each allocator serves a process of its own, loaded before all else (LD_PRELOAD), taiyen's like the others: some refuse to be loaded later. The rounds of a workload go
// through all of them in turns. Figures, ratios to taiyen and plots go to the folder --out.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "../harness.hpp"
#include "../machine.hpp"
#include "bar_chart.hpp"

namespace {

struct Allocator {
    std::string name;
    std::string preload;  ///< empty: the C library's own
};

std::vector<Allocator> installed() {
    std::vector<Allocator> found{{"taiyen", TAIYEN_BENCH_MALLOC}, {"glibc", ""}};
    const std::pair<const char*, const char*> peers[] = {{"mimalloc", "libmimalloc.so.2"},
                                                         {"jemalloc", "libjemalloc.so.2"},
                                                         {"tcmalloc", "libtcmalloc_minimal.so.4"},
                                                         {"tbbmalloc", "libtbbmalloc_proxy.so.2"}};
    for (const auto& [name, file] : peers) {
        std::string where;
        for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"})
            if (const auto path = std::filesystem::path(folder) / file; where.empty() && std::filesystem::exists(path)) where = path.string();
        if (where.empty())
            std::printf("without %s: %s is not installed (./bootstrap.sh bench installs it)\n", name, file);
        else
            found.push_back({name, where});
    }
    return found;
}

struct Workload {
    const char* name;
    const char* question;
    double share;        ///< percent of its full size in the usual run
    const char* figure;  ///< the one that is drawn and compared
    const char* unit;
    bool more_is_better = false;
};

constexpr std::array<Workload, 15> workloads{{
    {"pair", "allocate and free at once, 16 to 256 B", 50, "ns", "ns"},
    {"batch", "allocate 1,000, free them in order", 50, "ns", "ns"},
    {"shuffled", "allocate 10,000, free them in random order", 50, "ns", "ns"},
    {"churn-small", "replace random ones of 1,000 live blocks", 50, "ns", "ns"},
    {"churn", "replace random ones of 1,000,000 live blocks", 50, "ns", "ns"},
    {"larson", "two threads replace blocks and exchange them", 50, "ns", "ns"},
    {"xmalloc", "one thread allocates, another one frees", 50, "ns", "ns"},
    {"threads", "threads that start, use 20 blocks and end", 25, "us", "\u00b5s"},
    {"small-mix", "exponential sizes, mean 43 B, drifting", 50, "efficiency", "live bytes \u00f7 resident bytes", true},
    {"wide-mix", "16 B to 64 KiB, log-uniform", 25, "efficiency", "live bytes \u00f7 resident bytes", true},
    {"dynamic", "256 blocks of 16 KiB to 4 MiB that grow and shrink", 25, "us", "\u00b5s for a resize and its new pages"},
    {"relocation", "realloc of 4 MiB that must move", 25, "us", "\u00b5s"},
    {"walk", "follow pointers through blocks in random order", 50, "ns", "ns for a step"},
    {"map", "std::map filled in order, and destroyed", 20, "s", "s"},
    {"list", "std::list as a queue that grows", 20, "s", "s"},
}};

/// What taiyen is to reach at the full size of a workload.
struct Target {
    const char* workload;
    const char* figure;
    const char* peer;  ///< whose figure it is divided by; empty: nobody's
    bool at_most;
    double value;
};

constexpr std::array<Target, 20> targets{{
    {"pair", "ns", "mimalloc", true, 1.25},
    {"batch", "ns", "mimalloc", true, 1.25},
    {"shuffled", "ns", "mimalloc", true, 1.25},
    {"churn", "ns", "mimalloc", true, 1},
    {"larson", "Mop/s", "mimalloc", false, 0.95},
    {"larson", "Mop/s", "glibc", false, 1.8},
    {"xmalloc", "Mfree/s", "", false, 22},
    {"threads", "us", "glibc", true, 1},
    {"small-mix", "efficiency", "", false, 0.65},
    {"small-mix", "availability 48", "", false, 0.58},
    {"small-mix", "availability 256", "", false, 0.25},
    {"wide-mix", "efficiency", "", false, 0.85},
    {"wide-mix", "availability 16384", "", false, 0.60},
    {"dynamic", "us", "", true, 25},
    {"dynamic", "resident/live", "", true, 1.5},
    {"dynamic", "mappings/block", "", true, 6},
    {"relocation", "memcpy/it", "", false, 75},
    {"walk", "% with an extra line", "", true, 0},
    {"map", "s", "mimalloc", true, 1.15},
    {"map", "MB", "mimalloc", true, 1.02},
}};

using Figures = std::map<std::string, double>;

/// Takes that much memory from the system, and gives it back. A virtual machine may have to get pages from its host that it hasn't used for a while, at many times the price of a page fault, and which
/// allocator would have to pay depends on what ran before it: whole huge pages wait longest.
void warm_memory(std::size_t bytes) {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    for (std::size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
    ::munmap(memory, bytes);
}

/// One run of one workload in a process of its own. Nothing: it failed.
std::optional<Figures> run_worker(const Workload& workload, const Allocator& allocator, double percent, std::size_t warm_bytes) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2: " + std::string(std::strerror(errno)));
    const std::string size = bench::fixed(percent, 2);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork: " + std::string(std::strerror(errno)));
    if (child == 0) {
        warm_memory(warm_bytes);
        ::dup2(ends[1], STDOUT_FILENO);
        if (allocator.preload.empty())
            ::unsetenv("LD_PRELOAD");
        else
            ::setenv("LD_PRELOAD", allocator.preload.c_str(), 1);
        ::execl(TAIYEN_BENCH_WORKER, TAIYEN_BENCH_WORKER, workload.name, size.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    }
    ::close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t count = 0; (count = ::read(ends[0], buffer, sizeof buffer)) != 0;)
        if (count > 0)
            text.append(buffer, static_cast<std::size_t>(count));
        else if (errno != EINTR)
            break;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) return std::nullopt;
    Figures figures;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (const auto blank = line.rfind(' '); blank != std::string::npos) figures[line.substr(0, blank)] = std::stod(line.substr(blank + 1));
    return figures;
}

/// [figure][allocator]
using Results = std::map<std::string, std::map<std::string, bench::Samples>>;

Results measure(const Workload& workload, const std::vector<Allocator>& allocators, int rounds, double percent, std::size_t warm_bytes) {
    Results results;
    std::set<std::string> failed;
    for (int round = 0; round < rounds; ++round)
        for (std::size_t k = 0; k < allocators.size(); ++k) {
            const Allocator& allocator = allocators[(static_cast<std::size_t>(round) + k) % allocators.size()];
            if (failed.contains(allocator.name)) continue;
            const auto figures = run_worker(workload, allocator, percent, warm_bytes);
            if (!figures) {
                failed.insert(allocator.name);
                std::printf("%s: %s failed\n", workload.name, allocator.name.c_str());
                continue;
            }
            for (const auto& [figure, value] : *figures) results[figure][allocator.name].add(value);
        }
    for (auto& [figure, of] : results)
        for (const std::string& name : failed) of.erase(name);
    return results;
}

void report(const Workload& workload, const Results& results, const std::vector<Allocator>& allocators, const std::filesystem::path& folder,
            std::ofstream& table_file, double percent) {
    std::printf("%s: %s\n", workload.name, workload.question);
    table_file << "## " << workload.name << "\n" << workload.question << "\n\n";
    std::vector<std::string> head{""};
    for (const auto& [figure, of] : results) head.push_back(figure);
    head.push_back(std::string(workload.figure) + ", ratio to taiyen");
    bench::Table table(head);
    table_file << "| allocator |";
    for (std::size_t i = 1; i < head.size(); ++i) table_file << ' ' << head[i] << " |";
    table_file << "\n|---|" << [&] {
        std::string rule;
        for (std::size_t i = 1; i < head.size(); ++i) rule += "---|";
        return rule;
    }() << "\n";
    std::vector<bench::Bar> bars;
    const auto main_figure = results.find(workload.figure);
    for (const Allocator& allocator : allocators) {
        std::vector<std::string> row{allocator.name};
        for (const auto& [figure, of] : results) {
            const auto samples = of.find(allocator.name);
            const int digits = samples != of.end() && samples->second.median() < 10 ? 3 : 1;
            row.push_back(samples == of.end() ? "failed" : bench::spread(samples->second, digits));
        }
        std::string ratio = "-";
        if (main_figure != results.end()) {
            const auto& of = main_figure->second;
            const auto mine = of.find("taiyen");
            const auto its = of.find(allocator.name);
            if (mine != of.end() && its != of.end()) ratio = bench::spread(bench::ratio(its->second, mine->second), 2);
            if (its != of.end()) bars.push_back({allocator.name, its->second.median(), its->second.min(), its->second.max()});
        }
        row.push_back(ratio);
        table_file << "| " << row[0] << " |";
        for (std::size_t i = 1; i < row.size(); ++i) table_file << ' ' << row[i] << " |";
        table_file << "\n";
        table.row(std::move(row));
    }
    table.print();
    table_file << "\n";
    for (const Target& target : targets) {
        const auto figure = results.find(target.figure);
        if (std::string_view(target.workload) != workload.name || figure == results.end()) continue;
        const auto& of = figure->second;
        const std::string peer = target.peer;
        if (!of.contains("taiyen") || (!peer.empty() && !of.contains(peer))) continue;
        const double reached = peer.empty() ? of.at("taiyen").median() : bench::ratio(of.at("taiyen"), of.at(peer)).median();
        const std::string line = std::string(target.figure) + (peer.empty() ? "" : ", taiyen / " + peer) + ": " + bench::fixed(reached, 2) +
                                 ", wanted " + (target.at_most ? "at most " : "at least ") + bench::fixed(target.value, 2) + ": " +
                                 ((target.at_most ? reached <= target.value : reached >= target.value) ? "met" : "missed") +
                                 (percent < 100 ? " (at " + bench::fixed(percent, 1) + " % of the full size)" : "") + "\n";
        std::printf("%s", line.c_str());
        table_file << "- " << line;
    }
    std::printf("\n");
    table_file << "\n";
    table_file.flush();
    std::ofstream(folder / (std::string(workload.name) + ".svg"))
        << bench::bar_chart(std::string(workload.name) + ": " + workload.question,
                            std::string(workload.unit) + (workload.more_is_better ? "; more is better" : "; less is better"), bars);
}

int run(const bench::Options& options) {
    bench::print_head(options, "Allocators, each in processes of its own");
    const std::filesystem::path folder = options.text("--out");
    std::filesystem::create_directories(folder);
    const bool full = options.number("--full") != 0;
    std::set<std::string> only;
    std::istringstream names(options.text("--only"));
    for (std::string name; std::getline(names, name, ',');) only.insert(name);
    const std::vector<Allocator> allocators = installed();
    std::ofstream table(folder / "allocators.md");
    table << "# Allocators\n\nMedians (smallest \u2013 largest) of " << options.rounds()
          << " interleaved rounds; times are processor time; ratios are medians of the ratios within a round. "
          << bench::value_in("/proc/cpuinfo", "model name") << ", " << ::sysconf(_SC_NPROCESSORS_ONLN) << " processors.\n\n";
    // As much as the largest workload uses.
    const std::size_t warm_bytes = std::size_t{full ? 1024U : options.quick() ? 64U : 256U} << 20U;
    bool any = false;
    for (const Workload& workload : workloads) {
        if (!only.empty() && !only.contains(workload.name)) continue;
        any = true;
        const double percent = full ? 100 : options.quick() ? workload.share / 10 : workload.share;
        report(workload, measure(workload, allocators, options.rounds(), percent, warm_bytes), allocators, folder, table, percent);
    }
    if (!any) throw std::runtime_error("there is no workload " + options.text("--only"));
    std::printf("Table and plots: %s\n", folder.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv,
                                     "What do volatile heaps cost programs that know nothing of them, beside the allocators that programs use?", 5,
                                     bench::Priority::normal,
                                     {{"--out", "allocators", "folder for the table and the plots"},
                                      {"--only", "", "workloads, separated by commas"},
                                      {"--full", "0", "1: every workload at its full size"}},
                                     bench::Processors::all);
        return run(options);
    });
}
