// `taiyen follow` and `taiyen promote`: a file that shows what is replicated into a directory or stream, and takes the place of the heap that was.

#include <signal.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include <taiyen/replicate/follower.hpp>

#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/target.hpp"

namespace taiyen::tool {
namespace {

/// SIGINT, SIGTERM and SIGHUP, out of the process's hands from now on until it ends, also of threads that are made later: whoever ends a program often
/// sends a second one (timeout(1) does), which must not cut off an orderly end.
class Signals {
public:
    Signals() {
        ::sigemptyset(&wanted_);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
            struct sigaction now{};
            if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::sigaddset(&wanted_, signal);  // nohup(1) has it ignored
        }
        ::pthread_sigmask(SIG_BLOCK, &wanted_, nullptr);
    }
    /// Whether one came within that time.
    bool came_within(std::chrono::milliseconds time) const {
        const timespec wait{time.count() / 1000, time.count() % 1000 * 1'000'000};
        return ::sigtimedwait(&wanted_, nullptr, &wait) > 0;
    }

private:
    sigset_t wanted_{};
};

FollowerOptions options_of(const Given& given, ProgressLine& line) {
    FollowerOptions options;
    options.heap = given.heap_options();
    options.progress = line.progress();
    options.store_only = true;  // nothing here reads the heap
    options.replace_deposed = given.has("replace");
    return options;
}

void print_status(const Given& given, const FollowerStatus& status) {
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object()
            .member("file", given.files[1])
            .member("target", status.target)
            .member("state", name_of(status.state))
            .member("transaction", status.applied.value)
            .member("newest", status.newest.value)
            .member("frames", status.frames)
            .member("age_ms", static_cast<std::uint64_t>(status.age.count()));
        if (status.state == FollowerState::away || status.state == FollowerState::failed) json.member("error", status.last_error);
        json.end_object();
        print(json);
    } else {
        const bool is_well = status.state == FollowerState::following;
        print(styled(is_well ? Style::good : Style::warning, name_of(status.state)) + ": " + visible(given.files[1]) + " has transaction " +
              count_text(status.applied.value) + (is_well ? ", in " + counted(status.frames, "frame") : ": " + visible(status.last_error)) + "\n");
    }
    std::fflush(stdout);
}

Exit run_follow(const Given& given) {
    const Signals signals;
    const auto target = open_target(given, given.files[0]);
    std::optional<Follower> follower;
    {
        ProgressLine line("making the follower");
        follower.emplace(target, given.files[1], options_of(given, line));
    }
    const bool once = given.has("once");
    FollowerStatus told;
    bool is_told = false;
    for (;;) {
        const bool ends = signals.came_within(std::chrono::milliseconds(once ? 10 : 200));
        const FollowerStatus now = follower->status();
        const bool is_up_to_date = once && now.frames >= target->range().last;
        const bool is_news = !is_told || now.state != told.state || now.applied != told.applied;
        const bool is_over = ends || now.state == FollowerState::failed || (once && (is_up_to_date || now.state != FollowerState::following));
        if (is_news && (!once || is_over)) {
            print_status(given, now);
            told = now;
            is_told = true;
        }
        if (!is_over) continue;
        follower->stop();
        if (now.state == FollowerState::following) return Exit::ok;
        throw Error(errc::io_error, given.files[0], now.last_error);
    }
}

Exit run_promote(const Given& given) {
    const auto target = open_target(given, given.files[1]);
    if (!std::filesystem::exists(given.files[0])) throw Error(errc::not_found, given.files[0], "there is no such follower; make it: taiyen follow");
    ProgressLine line("promoting");
    Follower follower(target, given.files[0], options_of(given, line));
    TransactionalHeap heap = std::move(follower).promote(given.heap_options());
    const Serial serial = heap.last_durable();
    heap.close();
    if (given.has("json")) {
        JsonWriter json;
        json.begin_object().member("file", given.files[0]).member("target", given.files[1]).member("transaction", serial.value).end_object();
        print(json);
        return Exit::ok;
    }
    print(styled(Style::good, "promoted") + ": " + visible(given.files[0]) + " goes on behind transaction " + count_text(serial.value) +
          "; open it where the heap was, and replicate it to the same place\n");
    return Exit::ok;
}

}  // namespace

Command follow_command() {
    return {
        "follow",
        "Keeps a file up to date with what is replicated into a directory or stream",
        "Makes FILE out of the frames in TARGET, a directory or nats://HOST:PORT/NAME, or goes on where it was, and follows until it is interrupted: "
        "what is committed where the heap is changed is durable here moments later. FILE is a follower's: programs read it, none changes it, until "
        "it is promoted. A line tells each "
        "second or so what has come.",
        {"TARGET", "FILE"},
        with_target_options({{"once", "", "end when FILE has everything that is there"},
                             {"replace", "", "if FILE was deposed, rename it to FILE.deposed, and make a follower in its place"}}),
        "",
        run_follow,
        "the follower"};
}

Command promote_command() {
    return {
        "promote",
        "Makes a follower the heap that goes on, when the one it follows is lost",
        "Brings FILE up to date with TARGET, and appends there that it goes on: from then on the former heap can replicate nothing more, and refuses "
        "transactions as soon as it tries. What it had committed and not sent is lost. FILE is a heap like any other then.",
        {"FILE", "TARGET"},
        with_target_options({}),
        "",
        run_promote,
        "the follower"};
}

}  // namespace taiyen::tool
