#pragma once
/// BankProcess: this program again as another process, which tells through a pipe what it has done for its clients.
///
/// Thread rule: one thread hears, another one may kill.

#include <array>
#include <string>
#include <vector>

#include "acknowledgement.hpp"
#include "command/child_process.hpp"
#include "command/figures.hpp"

namespace bank::command {

/// The process's side: standard output gets what the answer promises, if it is one to a change that was done. Ends the process when nobody listens any more.
void tell(const Answer& answer);

class BankProcess {
public:
    /// `words`: the arguments. Throws: std::system_error.
    explicit BankProcess(std::vector<std::string> words);

    /// Appends what it tells, waiting for it until `end`, a second at most. False: it has ended, and all that it told was heard.
    bool hear(Clock::time_point end, std::vector<Acknowledgement>& told);
    /// Its status as waitpid tells it.
    int kill_and_wait() { return child_.kill_and_wait(); }

private:
    class Pipe {
    public:
        Pipe();
        ~Pipe();
        Pipe(const Pipe&) = delete;
        Pipe& operator=(const Pipe&) = delete;
        int reading_end() const { return ends_[0]; }
        int writing_end() const { return ends_[1]; }
        void close_writing_end();

    private:
        std::array<int, 2> ends_{-1, -1};
    };

    Pipe pipe_;
    ChildProcess child_;
};

}  // namespace bank::command
