/// System calls that fail under a real program: strace attaches to a worker and makes the k-th call of a kind fail, once or from then on. The worker must end by itself with success or a typed
/// error, and everything it acknowledged is there when the heap is opened afterwards.

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "auditor.hpp"
#include "campaign.hpp"
#include "child.hpp"

namespace outside {
namespace {

constexpr const char* help =
    "usage: taiyen_outside_injections [options]\n\n"
    "Lets system calls of a worker fail by 'strace -e inject': every kind of call that it makes, every k-th one, several errors, once and for good, "
    "on new heaps and on heaps\n"
    "that a kill left. --count takes that many of them, drawn by the seed; 0: all. Needs strace and the right to trace. Control: a worker that "
    "ignores errors.\n"
    "  --only CALL  one kind of call, for instance pwrite64\n"
    "  --one ID     one injection again, for instance sync/new/pwrite64/EIO/once/7\n"
    "  --all 1      tells all findings instead of ending with the first\n";

/// A kind of call and the errors that it may really give. Left out: futex (the C library takes a failure for a bug of its own), brk
/// (which never gives an error), write (that is how the worker tells).
struct Call {
    const char* name;
    std::vector<const char*> errors;
};
const std::vector<Call>& calls() {
    static const std::vector<Call> all{
        {"pwrite64", {"EIO", "ENOSPC", "EDQUOT", "EINTR"}},
        {"pread64", {"EIO", "EINTR"}},
        {"read", {"EIO", "EINTR"}},
        {"fdatasync", {"EIO", "ENOSPC", "EDQUOT", "EINTR"}},
        {"fsync", {"EIO", "ENOSPC", "EDQUOT", "EINTR"}},
        {"sync_file_range", {"EIO", "ENOSPC"}},
        {"ftruncate", {"EIO", "ENOSPC", "EINTR"}},
        {"fallocate", {"EIO", "ENOSPC", "EDQUOT", "EINTR", "EOPNOTSUPP"}},
        {"openat", {"EIO", "ENOSPC", "EMFILE", "EACCES", "ENOMEM"}},
        {"linkat", {"EIO", "ENOSPC", "EDQUOT", "EPERM"}},
        {"unlink", {"EIO", "EACCES"}},
        {"unlinkat", {"EIO", "EACCES"}},
        {"rename", {"EIO", "ENOSPC"}},
        {"renameat2", {"EIO", "ENOSPC"}},
        {"newfstatat", {"EIO", "ENOMEM"}},
        {"fstat", {"EIO", "ENOMEM"}},
        {"flock", {"ENOLCK", "EINTR"}},
        {"mmap", {"ENOMEM"}},
        {"mremap", {"ENOMEM"}},
        {"munmap", {"ENOMEM"}},
        {"mprotect", {"ENOMEM"}},
        {"madvise", {"ENOMEM", "EINVAL"}},
        {"munlock", {"ENOMEM"}},
        {"ioctl", {"EINVAL", "EPERM"}},
        {"clone3", {"EAGAIN", "ENOMEM"}},
        {"rt_sigaction", {"EINVAL"}},
        {"getrandom", {"ENOSYS"}},
        {"getcwd", {"ENOENT"}},
        {"memfd_create", {"EMFILE", "ENOMEM"}},
        {"close", {"EIO"}},
    };
    return all;
}

struct Scenario {
    std::string mode;
    bool fresh = true;  ///< a new heap; else one that a kill left
    std::string name() const { return mode + (fresh ? "/new" : "/killed"); }
};

struct Injection {
    std::size_t scenario;
    std::string call;
    std::string error;
    bool sticky;
    std::uint64_t k;
};

struct Tally {
    std::uint64_t injections = 0;  ///< that struck
    std::uint64_t calls = 0;       ///< that failed in all
    std::uint64_t missed = 0;      ///< fewer calls than when they were counted: the threads went another way
    std::uint64_t typed = 0;
    std::uint64_t succeeded = 0;
    std::uint64_t refused_stores = 0;  ///< told, then ended by the fault, as documented
    std::uint64_t acknowledgements = 0;
    std::map<std::string, std::uint64_t> by_call;
};

/// Whether somebody traces the process by now.
bool traced(pid_t process) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("TracerPid:")) return line.find_first_of("123456789") != std::string::npos;
    return false;
}

class Sweep {
public:
    Sweep(const Options& options, const std::filesystem::path& folder) : options_(options), folder_(folder) {
        shape_.seed = options.seed;
        shape_.keys = 8;
        shape_.large_bytes = 20'000;
        for (const char* mode : {"archive", "snapshot", "undo", "sync", "async", "steps"})
            for (const bool fresh : {true, false}) scenarios_.push_back({mode, fresh});
        for (const Scenario& scenario : scenarios_)
            if (!scenario.fresh) leave_killed(scenario);
        count_calls();
    }

    /// All there are.
    std::vector<Injection> injections() const {
        std::vector<Injection> all;
        for (std::size_t s = 0; s < scenarios_.size(); ++s) {
            for (const Call& call : calls()) {
                const auto many = counts_[s].find(call.name);
                if (many == counts_[s].end()) continue;
                for (const char* const error : call.errors) {
                    for (std::uint64_t k = std::string_view(call.name) == "read" ? 2 : 1; k <= many->second; ++k) {
                        all.push_back({s, call.name, error, false, k});
                        // A call that is interrupted for ever is waited for as long.
                        if (std::string_view(error) != "EINTR") all.push_back({s, call.name, error, true, k});
                    }
                }
            }
        }
        return all;
    }

    std::string id(const Injection& injection) const {
        return scenarios_[injection.scenario].name() + "/" + injection.call + "/" + injection.error + (injection.sticky ? "/sticky/" : "/once/") +
               std::to_string(injection.k);
    }

    std::string inject(const Injection& injection, Tally& tally) {
        const std::string rule =
            "inject=" + injection.call + ":error=" + injection.error + ":when=" + std::to_string(injection.k) + (injection.sticky ? "+" : "");
        Told told;
        const End end = run(scenarios_[injection.scenario], {"-e", "trace=" + injection.call, "-e", rule}, told);
        const std::string trace = contents(trace_file());
        std::uint64_t struck = 0;
        for (std::size_t at = 0; (at = trace.find("(INJECTED)", at)) != std::string::npos; ++at) ++struck;
        if (struck == 0) {
            ++tally.missed;
        } else {
            ++tally.injections;
            ++tally.by_call[injection.call];
            tally.calls += struck;
        }
        tally.typed += end.code == 3 ? 1 : 0;
        tally.succeeded += end.signal == 0 && end.code == 0 ? 1 : 0;
        tally.acknowledgements += told.acknowledgements;
        const std::string wrong = judged(scenarios_[injection.scenario], end, told, tally);
        return wrong.empty() ? wrong : id(injection) + ": " + wrong + said();
    }

private:
    std::filesystem::path heap() const { return folder_ / "heap" / "heap.tyn"; }
    std::filesystem::path trace_file() const { return folder_ / "trace.txt"; }
    std::filesystem::path killed_folder(const Scenario& scenario) const { return folder_ / ("killed-" + scenario.mode); }

    std::string said() const {
        const std::string text = contents(folder_ / "worker.txt");
        return text.empty() ? text : "; it said: " + text;
    }

    std::vector<std::string> worker(const Scenario& scenario) const {
        return {options_.worker.string(),
                heap().string(),
                "--mode",
                scenario.mode,
                "--seed",
                std::to_string(shape_.seed),
                "--keys",
                std::to_string(shape_.keys),
                "--large",
                std::to_string(shape_.large_bytes),
                "--life",
                "5",
                "--steps",
                "6",
                "--threads",
                scenario.mode == "async" ? "2" : "1",
                "--capacity-kib",
                "2048",
                "--log-kib",
                "64",
                "--wait",
                "--control",
                options_.control ? "ignore" : "none"};
    }

    /// A heap that was killed in the middle of its work.
    void leave_killed(const Scenario& scenario) {
        for (int tries = 0; tries < 50; ++tries) {
            lay_out({scenario.mode, true});
            std::vector<std::string> words = worker(scenario);
            *std::next(std::ranges::find(words, "--steps")) = "0";
            words.back() = "none";
            Child child(words, {}, (folder_ / "worker.txt").string());
            child.release();
            Told told;
            child.listen(std::chrono::steady_clock::now() + std::chrono::seconds(20), told, [&] { return told.order >= 12; });
            child.kill();
            child.wait(std::chrono::seconds(20));
            child.drain(told);
            Auditor auditor(shape_);
            if (const std::string wrong = auditor.audit(heap(), told); !wrong.empty()) throw std::runtime_error("a killed heap: " + wrong);
            if (auditor.found().clean) continue;
            found_[scenario.mode] = at_least(auditor.found());
            std::filesystem::copy(heap().parent_path(), killed_folder(scenario), std::filesystem::copy_options::recursive);
            return;
        }
        throw std::runtime_error("no kill left a heap that needs recovery");
    }

    void lay_out(const Scenario& scenario) const {
        std::filesystem::remove_all(heap().parent_path());
        if (scenario.fresh)
            std::filesystem::create_directory(heap().parent_path());
        else
            std::filesystem::copy(killed_folder(scenario), heap().parent_path(), std::filesystem::copy_options::recursive);
    }

    /// A worker's whole life under strace.
    End run(const Scenario& scenario, const std::vector<std::string>& rules, Told& told) {
        lay_out(scenario);
        if (!scenario.fresh) told = found_.at(scenario.mode);
        Child child(worker(scenario), {}, (folder_ / "worker.txt").string());
        // Minutes, since a busy machine may leave a worker that is traced waiting for long.
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
        // Past the loader, whose failures are not ours.
        child.listen(end, told, [&] { return told.waiting; });
        std::vector<std::string> words{"strace", "-f", "-q", "-o", trace_file().string(), "-p", std::to_string(child.process())};
        words.insert(words.end(), rules.begin(), rules.end());
        Child strace(words, {}, (folder_ / "strace.txt").string());
        // strace reads its rules before it attaches, and ends at once if it may not.
        while (!traced(child.process())) {
            siginfo_t status{};
            if (std::chrono::steady_clock::now() > end ||
                (waitid(P_PID, static_cast<id_t>(strace.process()), &status, WEXITED | WNOHANG | WNOWAIT) == 0 && status.si_pid != 0)) {
                throw Unavailable("strace does not attach: " + contents(folder_ / "strace.txt"));
            }
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        child.release();
        child.listen(end, told);
        const End how = child.wait(std::chrono::seconds(20));
        child.drain(told);
        strace.wait(std::chrono::seconds(10));
        return how;
    }

    /// How often a thread makes each kind of call, the busiest one.
    void count_calls() {
        std::string kinds;
        for (const Call& call : calls()) kinds += std::string(kinds.empty() ? "" : ",") + "?" + call.name;
        for (const Scenario& scenario : scenarios_) {
            Told told;
            const End end = run(scenario, {"-e", "trace=" + kinds}, told);
            if (end.code != 0 || end.signal != 0) throw std::runtime_error("a worker fails without any injection" + said());
            std::map<std::string, std::map<std::string, std::uint64_t>> by_thread;
            std::map<std::string, std::uint64_t> most;
            std::ifstream trace(trace_file());
            for (std::string line; std::getline(trace, line);) {
                std::istringstream words(line);
                std::string thread;
                std::string call;
                words >> thread >> call;
                const std::size_t bracket = call.find('(');
                if (bracket == std::string::npos) continue;
                call.resize(bracket);
                std::uint64_t& most_of = most[call];
                most_of = std::max(most_of, ++by_thread[thread][call]);
            }
            counts_.push_back(most);
        }
    }

    std::string judged(const Scenario& scenario, const End& end, const Told& told, Tally& tally) {
        if (end.timed_out) return "a hang";
        // A store whose page can't be made writable has nowhere to go (doc/capture.md).
        const bool refused_store = end.signal == SIGSEGV && said().find("the system refuses to make") != std::string::npos;
        if (refused_store) ++tally.refused_stores;
        if (end.signal != 0 && !refused_store) return "ended by signal " + std::to_string(end.signal) + " (" + strsignal(end.signal) + ")";
        if (end.code != 0 && end.code != 3) return "ended with code " + std::to_string(end.code);
        watchdog(60, "opening a heap after an injection");
        Auditor auditor(shape_);
        const std::string wrong = auditor.audit(heap(), told, tally.injections % 2 == 0 ? Auditor::As::writer : Auditor::As::reader);
        watchdog(0, "");
        if (wrong.empty() && !scenario.fresh && !auditor.found().exists) return "the heap is gone";
        return wrong;
    }

    const Options& options_;
    std::filesystem::path folder_;
    Shape shape_;
    std::vector<Scenario> scenarios_;
    std::map<std::string, Told> found_;  ///< in what the kills left
    std::vector<std::map<std::string, std::uint64_t>> counts_;
};

std::string injections(const Options& options) {
    if (!has_tool("strace")) throw Unavailable("strace is not installed");
    TemporaryFolder folder(options.folder);
    Sweep sweep(options, folder.path());
    std::vector<Injection> all = sweep.injections();
    const std::size_t possible = all.size();
    const std::string only = options.control ? "pwrite64" : options.more.at("--only");
    std::erase_if(all, [&](const Injection& injection) {
        return (!only.empty() && injection.call != only) || (options.control && !injection.sticky) ||
               (!options.more.at("--one").empty() && sweep.id(injection) != options.more.at("--one"));
    });
    if (all.empty()) throw std::invalid_argument("no such injection");
    std::mt19937_64 random(options.seed);
    std::ranges::shuffle(all, random);
    if (options.count != 0 && all.size() > options.count) all.resize(options.count);
    const Clock clock(options);
    Progress progress;
    Tally tally;
    const bool all_findings = options.more.at("--all") == "1";
    std::string wrong;
    for (const Injection& injection : all) {
        if (clock.over() || (!wrong.empty() && !all_findings)) break;
        if (const std::string now = sweep.inject(injection, tally); !now.empty()) {
            if (all_findings) std::printf("%s\n", now.c_str());
            wrong = now;
        }
        progress.show(std::to_string(tally.injections) + " of " + std::to_string(all.size()) + " injections, " +
                      std::to_string(static_cast<int>(clock.seconds())) + " s");
    }
    if (tally.injections == 0 && wrong.empty()) throw std::runtime_error("the time was over before anything was tried");
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf("%llu injections of %llu possible ones struck (%llu calls failed, %llu rules met no call) in %.1f s, seed %llu:",
                number(tally.injections), number(possible), number(tally.calls), number(tally.missed), clock.seconds(), number(options.seed));
    for (const auto& [call, count] : tally.by_call) std::printf(" %s %llu", call.c_str(), number(count));
    std::printf("\n%llu workers ended with a typed error, %llu succeeded, %llu told of a store that can't go on; %llu acknowledgements checked\n",
                number(tally.typed), number(tally.succeeded), number(tally.refused_stores), number(tally.acknowledgements));
    return wrong;
}

}  // namespace
}  // namespace outside

int main(int count, char** words) {
    outside::Options defaults;
    defaults.count = 500;
    defaults.more = {{"--only", ""}, {"--one", ""}, {"--all", "0"}};
    return outside::run_harness(count, words, outside::help, defaults, outside::injections);
}
