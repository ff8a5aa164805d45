#include "crash/workers.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crash/state_note.hpp"

namespace taiyen::crash {
namespace {

struct Worker {
    std::size_t job = 0;
    ::pid_t process = -1;
    int pipe = -1;
    std::string answer{};
    std::size_t place = 0;  ///< of its note
};

[[noreturn]] void failed(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void write_all(int pipe, const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const ssize_t count = ::write(pipe, bytes.data() + at, bytes.size() - at);
        if (count < 0 && errno != EINTR) ::_exit(3);
        at += count < 0 ? 0 : static_cast<std::size_t>(count);
    }
}

/// Memory that the children write their notes to.
class Notes {
public:
    explicit Notes(std::size_t count) : bytes_(count * current_state_bytes) {
        void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) failed("mmap");
        memory_ = static_cast<char*>(memory);
    }
    Notes(const Notes&) = delete;
    Notes& operator=(const Notes&) = delete;
    ~Notes() { ::munmap(memory_, bytes_); }
    char* at(std::size_t place) const { return memory_ + place * current_state_bytes; }

private:
    std::size_t bytes_;
    char* memory_ = nullptr;
};

std::string how_it_died(int status) {
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        return signal == SIGALRM ? "hung" : "killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
    }
    return WEXITSTATUS(status) == 0 ? "" : "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

unsigned processors() {
    ::cpu_set_t set;
    CPU_ZERO(&set);
    return ::sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

void run_jobs(std::size_t count, unsigned workers, const std::function<std::string(std::size_t)>& job,
              const std::function<void(std::size_t, const JobEnd&)>& done, const std::function<bool()>& stop) {
    const Notes notes(workers);
    std::vector<Worker> running;
    std::vector<std::size_t> places(workers);
    for (std::size_t i = 0; i < workers; ++i) places[i] = i;
    std::size_t next = 0;
    const auto start = [&] {
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) failed("pipe");
        Worker worker{.job = next++, .place = places.back()};
        places.pop_back();
        notes.at(worker.place)[0] = 0;
        std::fflush(stdout);
        std::fflush(stderr);
        worker.process = ::fork();
        if (worker.process < 0) failed("fork");
        if (worker.process == 0) {
            ::close(ends[0]);
            keep_current_state_in(notes.at(worker.place));
            int status = 0;
            try {
                write_all(ends[1], job(worker.job));
            } catch (const std::exception& error) {
                note_current_state(error.what());
                status = 2;
            }
            std::fflush(stdout);
            ::_exit(status);
        }
        ::close(ends[1]);
        worker.pipe = ends[0];
        running.push_back(std::move(worker));
    };
    while (true) {
        while (running.size() < workers && next < count && !(stop && stop())) start();
        if (running.empty()) return;
        std::vector<::pollfd> polled;
        for (const Worker& worker : running) polled.push_back({.fd = worker.pipe, .events = POLLIN, .revents = 0});
        if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) failed("poll");
        for (std::size_t i = running.size(); i-- > 0;) {
            if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
            std::array<char, 65536> bytes{};
            const ssize_t got = ::read(running[i].pipe, bytes.data(), bytes.size());
            if (got > 0) {
                running[i].answer.append(bytes.data(), static_cast<std::size_t>(got));
                continue;
            }
            if (got < 0 && errno == EINTR) continue;
            Worker worker = std::move(running[i]);
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
            ::close(worker.pipe);
            int status = 0;
            while (::waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {}
            char* const note = notes.at(worker.place);
            JobEnd end{
                .answer = std::move(worker.answer), .died = how_it_died(status), .state = std::string(note, ::strnlen(note, current_state_bytes))};
            places.push_back(worker.place);
            done(worker.job, end);
        }
    }
}

void Packet::put(std::uint64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }

void Packet::put(std::string_view text) {
    put(text.size());
    bytes_.append(text);
}

std::uint64_t Packet::number() {
    std::uint64_t number = 0;
    if (bytes_.size() - at_ < sizeof number) throw std::runtime_error("the answer of a worker ends early");
    std::memcpy(&number, bytes_.data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
}

std::string Packet::text() {
    const std::uint64_t count = number();
    if (bytes_.size() - at_ < count) throw std::runtime_error("the answer of a worker ends early");
    std::string text = bytes_.substr(at_, count);
    at_ += count;
    return text;
}

}  // namespace taiyen::crash
