#include "demo/process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <system_error>

namespace cad::demo {
namespace {

[[noreturn]] void throw_errno(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Child::Child(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    std::string name = "taiyen_cad_demo";
    std::vector<std::string> copies = arguments;
    argv.push_back(name.data());
    for (std::string& copy : copies) argv.push_back(copy.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw_errno("a pipe for a child process");
    pid_ = fork();
    if (pid_ == 0) {
        // Only async-signal-safe calls between fork and exec.
        dup2(ends[1], STDOUT_FILENO);
        execv("/proc/self/exe", argv.data());
        _exit(127);
    }
    const int failure = errno;
    close(ends[1]);
    output_ = ends[0];
    if (pid_ < 0) {
        close(output_);
        errno = failure;
        throw_errno("a child process");
    }
}

Child::~Child() {
    if (!status_) {
        kill();
        wait();
    }
    close(output_);
}

std::string Child::read(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::size_t have = 0;
    while (have < bytes) {
        const ssize_t got = ::read(output_, text.data() + have, bytes - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
}

std::string Child::read_all() {
    constexpr std::size_t chunk = 4096;
    std::string text;
    for (std::string more = read(chunk); !more.empty(); more = read(chunk)) text += more;
    return text;
}

void Child::kill() {
    if (!status_) ::kill(pid_, SIGKILL);
}

int Child::wait() {
    int status = 0;
    while (!status_)
        if (waitpid(pid_, &status, 0) == pid_)
            status_ = status;
        else if (errno != EINTR)
            throw_errno("waiting for a child process");
    return *status_;
}

void report(const std::string& key, double value) { std::printf("%s %.2f\n", key.c_str(), value); }
void report(const std::string& key, std::uint64_t value) { std::printf("%s %llu\n", key.c_str(), static_cast<unsigned long long>(value)); }

std::map<std::string, std::string> parsed_report(const std::string& text) {
    std::map<std::string, std::string> report;
    std::istringstream in(text);
    for (std::string key, value; in >> key && std::getline(in >> std::ws, value);) report[key] = value;
    return report;
}

}  // namespace cad::demo
