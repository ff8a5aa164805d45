#pragma once
/// ChildProcess: a program that ends with this one at the latest.
///
/// Thread rule: one thread; it lives as long as the thread that made it.

#include <sys/types.h>

#include <string>
#include <vector>

namespace bank::command {

class ChildProcess {
public:
    /// `words`: what the program is called as, and its arguments. Its standard output and standard error go to these descriptors. Throws: std::system_error.
    ChildProcess(const std::string& program, std::vector<std::string> words, int output, int errors);
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    bool has_ended();
    void signal(int number);
    /// Its status as waitpid tells it.
    int kill_and_wait();

private:
    pid_t process_ = -1;  ///< -1: it has ended, and its status is known
    int status_ = 0;
};

}  // namespace bank::command
