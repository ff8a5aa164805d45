#pragma once
/// A worker as another process: it is heard through a pipe, and dies with the harness.
///
/// Thread rule: one thread.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "message.hpp"

namespace outside {

/// How a process ended.
struct End {
    bool timed_out = false;  ///< it was killed because it did not end
    int code = 0;            ///< of its exit, if `signal` is 0
    int signal = 0;
};

class Child {
public:
    /// `environment`: NAME=value, added to what is there. Standard error goes to the file `errors` if it is not empty.
    Child(std::vector<std::string> words, const std::vector<std::string>& environment = {}, const std::string& errors = {});
    /// Kills it if it lives.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    pid_t process() const { return process_; }
    /// The end of the pipe that its standard output is.
    int output() const { return output_; }
    /// Lets a worker go that was started with --wait.
    void release();
    /// Hears it until the time is over (true) or it has ended (false), or until `enough` says so (true).
    bool listen(std::chrono::steady_clock::time_point end, Told& told, const std::function<bool()>& enough = {});
    /// What is left in the pipe of a process that has ended.
    void drain(Told& told);
    /// Waits for its end, so long at most; then it is killed.
    End wait(std::chrono::milliseconds longest);
    void kill();

private:
    bool hear(Told& told);

    pid_t process_ = -1;
    int output_ = -1;
    int input_ = -1;
};

/// How a worker ended that should have lived until it was killed, with what it wrote to the file `errors`.
std::string ended_early(const End& end, const std::filesystem::path& errors);
/// What a file holds; nothing if it isn't there.
std::string contents(const std::filesystem::path& file);
/// Runs a program to its end. Throws if it fails, with what it printed.
void run_tool(const std::vector<std::string>& words, const std::string& log);
/// Whether PATH has such a program.
bool has_tool(const std::string& name);

}  // namespace outside
