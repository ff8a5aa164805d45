#include "command/child_process.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace bank::command {

ChildProcess::ChildProcess(const std::string& program, std::vector<std::string> words, int output, int errors) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
        // Only async-signal-safe calls between fork and exec. Who is killed takes the child along.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(output, STDOUT_FILENO);
        dup2(errors, STDERR_FILENO);
        execv(program.c_str(), arguments.data());
        _exit(127);
    }
    if (process_ < 0) throw std::system_error(errno, std::generic_category(), "a child process");
}

ChildProcess::~ChildProcess() { kill_and_wait(); }

bool ChildProcess::has_ended() {
    if (process_ > 0 && waitpid(process_, &status_, WNOHANG) == process_) process_ = -1;
    return process_ < 0;
}

void ChildProcess::signal(int number) {
    if (process_ > 0) ::kill(process_, number);
}

int ChildProcess::kill_and_wait() {
    if (process_ < 0) return status_;
    signal(SIGKILL);
    while (waitpid(process_, &status_, 0) < 0 && errno == EINTR) {}
    process_ = -1;
    return status_;
}

}  // namespace bank::command
