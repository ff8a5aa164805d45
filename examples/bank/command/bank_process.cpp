#include "command/bank_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace bank::command {
namespace {

std::vector<std::string> called(std::vector<std::string> words) {
    words.insert(words.begin(), "taiyen_bank");
    return words;
}

}  // namespace

void tell(const Answer& answer) {
    if (!changes(answer.request) || answer.outcome != Outcome::done) return;
    const Acknowledgement told = acknowledgement_of(answer);
    if (write(STDOUT_FILENO, &told, sizeof told) != static_cast<ssize_t>(sizeof told)) _exit(1);
}

BankProcess::Pipe::Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "a pipe for a child process");
}
BankProcess::Pipe::~Pipe() {
    close(ends_[0]);
    close_writing_end();
}
void BankProcess::Pipe::close_writing_end() {
    if (const int end = std::exchange(ends_[1], -1); end >= 0) close(end);
}

BankProcess::BankProcess(std::vector<std::string> words) : child_("/proc/self/exe", called(std::move(words)), pipe_.writing_end(), STDERR_FILENO) {
    pipe_.close_writing_end();
}

bool BankProcess::hear(Clock::time_point end, std::vector<Acknowledgement>& told) {
    using std::chrono::milliseconds;
    const milliseconds left = std::min(std::chrono::ceil<milliseconds>(end - Clock::now()), milliseconds(1000));
    pollfd ready{pipe_.reading_end(), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::max(left, milliseconds(0)).count())) <= 0) return true;
    constexpr std::size_t many = 256;
    const std::size_t before = told.size();
    told.resize(before + many);
    auto* const into = reinterpret_cast<char*>(told.data() + before);
    std::size_t have = 0;
    bool is_open = true;
    // Messages are written whole, but a read may end within one.
    do {
        const ssize_t got = read(pipe_.reading_end(), into + have, many * sizeof(Acknowledgement) - have);
        if (got > 0)
            have += static_cast<std::size_t>(got);
        else if (got == 0 || errno != EINTR)
            is_open = false;
    } while (is_open && have % sizeof(Acknowledgement) != 0);
    told.resize(before + have / sizeof(Acknowledgement));
    return is_open;
}

}  // namespace bank::command
