#pragma once
/// What the harnesses share as programs: options, progress, a folder that goes away, exit codes.
///
/// Thread rule: one thread.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace outside {

enum class Exit : int { passed = 0, found = 1, usage = 2, skipped = 77 };

/// What this machine can't do; ends the program as skipped.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Options of all harnesses; those of one alone are in `more`.
struct Options {
    std::uint64_t count = 0;    ///< kills, pulls, images, injections
    std::uint64_t least = 0;    ///< fewer than so many when the time is over: the run fails
    std::uint64_t seconds = 0;  ///< stops after so long; 0: never for that reason
    std::uint64_t seed = 1;
    bool control = false;  ///< a safeguard is off: the run passes when it sees a loss
    std::filesystem::path folder;
    std::filesystem::path worker;         ///< the program taiyen_outside_worker
    std::filesystem::path without_syncs;  ///< the library that swallows syncs
    std::map<std::string, std::string> more;
};

/// Runs a harness from its command line: `--help`, bad options, Unavailable and errors of the harness itself end here. `work` returns empty if nothing was found, else what was.
/// With `--control` the meaning of the outcome is turned round.
int run_harness(int count, char** words, std::string_view help, Options defaults, std::string (*work)(const Options&));

/// True after SIGINT or SIGTERM, or when the time is over.
class Clock {
public:
    explicit Clock(const Options& options);
    bool over() const;
    double seconds() const;

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::uint64_t seconds_;
};

/// What is wrong if the run stopped before --least of them; empty if it did not.
std::string too_few(const Options& options, std::uint64_t done, std::string_view what);

/// One line of progress: on a terminal again and again, elsewhere every ten seconds.
class Progress {
public:
    void show(const std::string& text);

private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// A new folder that is removed with everything in it.
class TemporaryFolder {
public:
    explicit TemporaryFolder(const std::filesystem::path& parent);
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }
    /// Stays, as evidence.
    void keep() { kept_ = true; }

private:
    std::filesystem::path path_;
    bool kept_ = false;
};

/// If the harness hangs in a heap, it ends with a sentence instead.
void watchdog(unsigned seconds, const std::string& what);

}  // namespace outside
