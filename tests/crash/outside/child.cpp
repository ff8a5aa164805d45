#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace outside {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

[[noreturn]] void refuse(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Child::Child(std::vector<std::string> words, const std::vector<std::string>& environment, const std::string& errors) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
    variables.insert(variables.end(), environment.begin(), environment.end());
    const std::vector<char*> arguments = pointers(words);
    const std::vector<char*> with = pointers(variables);
    int out[2];
    int in[2];
    if (pipe2(out, O_CLOEXEC) != 0) refuse("a pipe for a worker");
    if (pipe2(in, O_CLOEXEC) != 0) refuse("a pipe for a worker");
    process_ = fork();
    if (process_ == 0) {
        // Only async-signal-safe calls between fork and exec.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);  // whoever interrupts the harness from a terminal interrupts only the harness
        signal(SIGPIPE, SIG_DFL);
        dup2(out[1], STDOUT_FILENO);
        dup2(in[0], STDIN_FILENO);
        if (!errors.empty()) {
            if (const int file = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600); file >= 0) dup2(file, STDERR_FILENO);
        }
        execvpe(arguments[0], arguments.data(), with.data());
        _exit(127);
    }
    close(out[1]);
    close(in[0]);
    output_ = out[0];
    input_ = in[1];
    if (process_ < 0) refuse("a worker");
}

Child::~Child() {
    if (process_ > 0) {
        kill();
        wait(std::chrono::milliseconds(10'000));
    }
    close(output_);
    close(input_);
}

void Child::release() {
    if (write(input_, "g", 1) != 1) refuse("releasing a worker");
}

bool Child::listen(std::chrono::steady_clock::time_point end, Told& told, const std::function<bool()>& enough) {
    while (true) {
        if (enough && enough()) return true;
        const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - std::chrono::steady_clock::now());
        if (left.count() <= 0) return true;
        pollfd ready{output_, POLLIN, 0};
        const timespec span{left.count() / 1'000'000, (left.count() % 1'000'000) * 1000};
        if (ppoll(&ready, 1, &span, nullptr) > 0 && !hear(told)) return false;
    }
}

void Child::drain(Told& told) {
    while (hear(told)) {}
}

End Child::wait(std::chrono::milliseconds longest) {
    const auto end = std::chrono::steady_clock::now() + longest;
    End how;
    int status = 0;
    pid_t got = 0;
    while ((got = waitpid(process_, &status, how.timed_out ? 0 : WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        if (std::chrono::steady_clock::now() >= end) {
            how.timed_out = true;
            kill();
        } else {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    }
    process_ = -1;
    how.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    how.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return how;
}

void Child::kill() {
    if (process_ > 0) ::kill(process_, SIGKILL);
}

bool Child::hear(Told& told) {
    // Messages are written whole, but a read may end within one.
    Message messages[128];
    std::size_t have = 0;
    do {
        const ssize_t got = read(output_, reinterpret_cast<char*>(messages) + have, sizeof messages - have);
        if (got == 0 || (got < 0 && errno != EINTR)) return false;
        have += got > 0 ? static_cast<std::size_t>(got) : 0;
    } while (have % sizeof(Message) != 0 || have == 0);
    for (std::size_t i = 0; i < have / sizeof(Message); ++i) told.hear(messages[i]);
    return true;
}

std::string contents(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

std::string ended_early(const End& end, const std::filesystem::path& errors) {
    const std::string how = end.signal != 0 ? "signal " + std::to_string(end.signal) : "code " + std::to_string(end.code);
    return "the worker ended before it was killed, with " + how + ": " + contents(errors);
}

void run_tool(const std::vector<std::string>& words, const std::string& log) {
    Child tool(words, {}, log);
    const End end = tool.wait(std::chrono::minutes(1));
    if (end.signal != 0 || end.code != 0) throw std::runtime_error(words[0] + " failed: " + contents(log));
}

bool has_tool(const std::string& name) {
    const char* const path = std::getenv("PATH");
    std::istringstream folders(std::string(path != nullptr ? path : "") + ":/usr/sbin:/sbin");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
    return false;
}

}  // namespace outside
