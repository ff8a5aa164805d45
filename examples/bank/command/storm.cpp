#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <system_error>
#include <vector>

#include "acknowledgement.hpp"
#include "command/commands.hpp"
#include "command/figures.hpp"

namespace bank::command {
namespace {

/// This program again as another process, with a pipe from its standard output.
class Child {
public:
    explicit Child(std::vector<std::string> words) {
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "a pipe for a child process");
        output_ = ends[0];
        process_ = fork();
        if (process_ == 0) {
            // Only async-signal-safe calls between fork and exec. Who is killed takes the child along.
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(ends[1], STDOUT_FILENO);
            execv("/proc/self/exe", arguments.data());
            _exit(127);
        }
        const int failure = errno;
        close(ends[1]);
        if (process_ < 0) {
            close(output_);
            throw std::system_error(failure, std::generic_category(), "a child process");
        }
    }
    ~Child() {
        if (process_ > 0) kill_and_wait();
        close(output_);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// What it told until `end`, or until its end.
    void listen(Clock::time_point end, std::vector<Acknowledgement>& told) {
        while (true) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
            pollfd ready{output_, POLLIN, 0};
            if (left <= 0 || (poll(&ready, 1, static_cast<int>(left)) > 0 && !hear(told))) return;
        }
    }
    /// What is left in the pipe after its end.
    void drain(std::vector<Acknowledgement>& told) {
        while (hear(told)) {}
    }
    /// Its status as waitpid tells it.
    int kill_and_wait() {
        ::kill(process_, SIGKILL);
        int status = 0;
        while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {}
        process_ = -1;
        return status;
    }

private:
    /// False at the end of the pipe.
    bool hear(std::vector<Acknowledgement>& told) {
        constexpr std::size_t many = 256;
        const std::size_t before = told.size();
        told.resize(before + many);
        auto* const into = reinterpret_cast<char*>(told.data() + before);
        std::size_t have = 0;
        bool open = true;
        // Messages are written whole, but a read may end within one.
        do {
            const ssize_t got = read(output_, into + have, many * sizeof(Acknowledgement) - have);
            if (got > 0)
                have += static_cast<std::size_t>(got);
            else if (got == 0 || errno != EINTR)
                open = false;
        } while (open && have % sizeof(Acknowledgement) != 0);
        told.resize(before + have / sizeof(Acknowledgement));
        return open;
    }

    pid_t process_ = -1;
    int output_ = -1;
};

struct Weather {
    std::uint64_t acknowledged = 0;
    std::uint64_t unacknowledged = 0;
    std::uint64_t replayed = 0;
    std::uint64_t torn = 0;
    std::uint64_t silent = 0;  ///< lives that ended before they acknowledged anything
    std::vector<std::chrono::nanoseconds> reopenings;
};

/// One life and what is left of it. Empty if all is well.
std::string one_life(const Settings& settings, std::uint64_t seed, std::chrono::microseconds length, Auditor& auditor, Weather& weather) {
    std::vector<Acknowledgement> told;
    Child child({"taiyen_bank", "live", settings.file, "--threads", std::to_string(settings.threads), "--seed", std::to_string(seed)});
    child.listen(Clock::now() + length, told);
    const int status = child.kill_and_wait();
    child.drain(told);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return "the bank ended before it was killed";
    // Reading writes nothing, so that the next life recovers for itself, and may be killed while it does.
    const auto start = Clock::now();
    const taiyen::TransactionalHeap heap(taiyen::open_read_only, settings.file);
    weather.reopenings.push_back(Clock::now() - start);
    weather.acknowledged += told.size();
    weather.silent += told.empty() ? 1 : 0;
    weather.replayed += heap.restoration().transactions_replayed;
    weather.torn += heap.restoration().records_cut;
    if (std::string broken = auditor.audit(*heap.find<Ledger>(ledger_name), told, settings.threads); !broken.empty()) return broken;
    weather.unacknowledged += auditor.unacknowledged();
    for (const Acknowledgement& acknowledged : told)
        if (taiyen::Serial{acknowledged.serial} > heap.last_durable())
            return "the heap says that serial " + std::to_string(acknowledged.serial) + ", which was acknowledged, is not durable";
    return heap.verify().ok() ? "" : "the heap is damaged";
}

void print(const Weather& weather, std::uint64_t kills) {
    auto times = weather.reopenings;
    std::ranges::sort(times);
    fmt::print("{}: {} acknowledged, all there; {} were durable and not acknowledged yet\n", counted(kills, "kill"),
               counted(weather.acknowledged, "transaction"), grouped(weather.unacknowledged));
    fmt::print("reopening: median {}, slowest {}; {} replayed in all, {} torn\n", time_text(times[times.size() / 2]), time_text(times.back()),
               counted(weather.replayed, "transaction"), counted(weather.torn, "record"));
    if (weather.silent > 0) {
        fmt::print("{} ended before the first acknowledgement, while opening or recovering\n",
                   weather.silent == 1 ? "1 life" : grouped(weather.silent) + " lives");
    }
}

}  // namespace

int storm(const Settings& settings) {
    std::optional<Auditor> auditor;
    {
        taiyen::TransactionalHeap heap = opened(settings);
        auditor.emplace(find_or_open(heap, settings.accounts));
        heap.close();
    }
    fmt::print("{} to come, each within {} ms; {}, seed {}\n", counted(settings.kills, "kill"), settings.longest_life,
               counted(settings.threads, "thread"), settings.seed);
    std::mt19937_64 random(settings.seed);
    Weather weather;
    for (std::uint64_t i = 0; i < settings.kills; ++i) {
        const std::chrono::microseconds length(random() % (std::uint64_t{settings.longest_life} * 1000 + 1));
        if (const std::string broken = one_life(settings, random(), length, *auditor, weather); !broken.empty()) {
            fmt::print("after kill {}: {}; the heap stays as it is: {}\n", i + 1, broken, settings.file);
            return 1;
        }
        if (isatty(STDERR_FILENO) == 1) {
            fmt::print(stderr, "\r\033[K{}",
                       i + 1 == settings.kills ? "" : fmt::format("kill {}, {} acknowledged", i + 1, grouped(weather.acknowledged)));
        }
    }
    print(weather, settings.kills);
    return check(settings);
}

int live(const Settings& settings) {
    taiyen::TransactionalHeap heap(taiyen::open_only, settings.file);
    Server server(heap, settings.threads, [](const Answer& answer) {
        if (changes(answer.request) && answer.outcome == Outcome::done) {
            const Acknowledgement told = acknowledgement_of(answer);
            if (write(STDOUT_FILENO, &told, sizeof told) != static_cast<ssize_t>(sizeof told)) _exit(1);  // nobody listens any more
        }
    });
    Load load(settings.seed, heap.find<Ledger>(ledger_name)->last_account);
    while (server.submit(load.next())) {}
    server.finish();
    return 1;
}

}  // namespace bank::command
