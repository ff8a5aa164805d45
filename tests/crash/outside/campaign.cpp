#include "campaign.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace outside {
namespace {

volatile sig_atomic_t interrupted = 0;
char hanging[256];

void on_interrupt(int) { interrupted = 1; }
void on_alarm(int) {
    const std::string_view text(hanging);
    if (write(STDERR_FILENO, text.data(), text.size()) >= 0) {}
    _exit(static_cast<int>(Exit::found));
}

std::uint64_t number_of(const std::string& text) {
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0') throw std::invalid_argument("'" + text + "' is not a number");
    return number;
}

Options parsed(int count, char** words, Options options) {
    if (const char* const seed = std::getenv("TAIYEN_SEED")) options.seed = number_of(seed);
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        if (word == "--control") {
            options.control = true;
            continue;
        }
        if (i + 1 == count) throw std::invalid_argument(word + " needs a value");
        const std::string value = words[++i];
        if (word == "--count")
            options.count = number_of(value);
        else if (word == "--least")
            options.least = number_of(value);
        else if (word == "--seconds")
            options.seconds = number_of(value);
        else if (word == "--seed")
            options.seed = number_of(value);
        else if (word == "--folder")
            options.folder = value;
        else if (const auto known = options.more.find(word); known != options.more.end())
            known->second = value;
        else
            throw std::invalid_argument("unknown option " + word);
    }
    return options;
}

}  // namespace

int run_harness(int count, char** words, std::string_view help, Options defaults, std::string (*work)(const Options&)) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    for (int i = 1; i < count; ++i) {
        if (std::string_view(words[i]) == "--help") {
            std::printf("%s", std::string(help).c_str());
            std::printf(
                "\n  --count N    stops after so many (default %llu)\n"
                "  --seconds N  stops after so long (default %llu; 0: never)\n"
                "  --least N    fails if the time was over before so many were done (default 0)\n"
                "  --seed N     other moments and other work (default TAIYEN_SEED, else 1)\n"
                "  --folder F   where temporary files are made (default TMPDIR, else /tmp)\n"
                "  --control    one safeguard off: passes when the loss is seen\n"
                "Exit codes: 0 nothing found (with --control: the loss was seen), 1 found, 2 wrong use or no run, 77 not possible on this machine.\n",
                static_cast<unsigned long long>(defaults.count), static_cast<unsigned long long>(defaults.seconds));
            return static_cast<int>(Exit::passed);
        }
    }
    const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    defaults.worker = beside / "taiyen_outside_worker";
    defaults.without_syncs = beside / "libtaiyen_without_syncs.so";
    defaults.folder = std::filesystem::temp_directory_path();
    try {
        const Options options = parsed(count, words, std::move(defaults));
        struct sigaction action{};
        action.sa_handler = on_interrupt;
        sigaction(SIGINT, &action, nullptr);
        sigaction(SIGTERM, &action, nullptr);
        signal(SIGPIPE, SIG_IGN);
        const std::string found = work(options);
        if (options.control) {
            std::printf("%s\n",
                        found.empty() ? "the control lost nothing: this harness is blind" : ("as it must, the control failed: " + found).c_str());
            return static_cast<int>(found.empty() ? Exit::found : Exit::passed);
        }
        if (!found.empty()) std::printf("FOUND: %s\n", found.c_str());
        return static_cast<int>(found.empty() ? Exit::passed : Exit::found);
    } catch (const Unavailable& reason) {
        std::printf("skipped: %s\n", reason.what());
        return static_cast<int>(Exit::skipped);
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "%s; see --help\n", error.what());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "the harness itself failed: %s\n", error.what());
    }
    return static_cast<int>(Exit::usage);
}

Clock::Clock(const Options& options) : seconds_(options.seconds) {}
bool Clock::over() const { return interrupted != 0 || (seconds_ != 0 && seconds() >= static_cast<double>(seconds_)); }
double Clock::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

std::string too_few(const Options& options, std::uint64_t done, std::string_view what) {
    if (done >= options.least) return {};
    return "only " + std::to_string(done) + " of at least " + std::to_string(options.least) + " " + std::string(what) + " in " +
           std::to_string(options.seconds) + " s: nothing wrong was seen, but too little was tried; give it more --seconds";
}

void Progress::show(const std::string& text) {
    static const bool terminal = isatty(STDERR_FILENO) == 1;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < (terminal ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000))) return;
    last_ = now;
    std::fprintf(stderr, terminal ? "\r\033[K%s" : "%s\n", text.c_str());
}

TemporaryFolder::TemporaryFolder(const std::filesystem::path& parent) {
    std::string name = (parent / "taiyen-outside-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "a temporary folder in " + parent.string());
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove_all(path_, ignored);
}

void watchdog(unsigned seconds, const std::string& what) {
    signal(SIGALRM, on_alarm);
    std::snprintf(hanging, sizeof hanging, "FOUND: a hang: %.200s\n", what.c_str());
    alarm(seconds);
}

}  // namespace outside
