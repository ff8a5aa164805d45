// A document in every standard container is made by one process and changed by four more, each with its own address layout; each compares it with what
// the same program makes of std:: containers. Between them: a clean close, a kill, unsaved changes, an exit without closing.
//
//   taiyen_reopening           runs the five processes (exit status 0: all is well)
//   taiyen_reopening STEP FILE one of them

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include <taiyen/taiyen.hpp>

#include "containers/document.hpp"
#include "scratch_directory.hpp"
#include "throws.hpp"

extern char** environ;

namespace {

using namespace taiyen;
using test::Document;
using test::InHeap;
using test::InMemory;
using test::throws;

int failures = 0;

void expect(bool condition, const char* what) {
    if (!condition) {
        std::printf("FAILED: %s\n", what);
        ++failures;
    }
}

/// What a process does in its step; the document then holds steps 0 … step.
int step(unsigned number, const char* path) {
    // Where the stack, the program and the C library lie this time: the parent checks that they move.
    std::printf("%p %p\n", static_cast<void*>(&number), reinterpret_cast<void*>(&std::printf));
    std::fflush(stdout);
    Document<InMemory> expected;
    for (unsigned earlier = 0; earlier < number; ++earlier) test::change(expected, earlier);
    SnapshotHeap heap(open_or_create, path);
    auto& document = heap.find_or_construct<Document<InHeap>>("document");
    expect(test::describe(document) == test::describe(expected), "the document is what the earlier processes left");
    expect(heap.verify().ok(), "verify() is clean");
    expect(number == 0 || throws(errc::type_mismatch, [&] { heap.find<taiyen::vector<int>>("document"); }), "another type is refused");
    expect(number == 0 || throws(errc::name_taken, [&] { heap.construct<int>("document", 1); }), "a taken name is refused");
    test::change(document, number);
    test::change(expected, number);
    expect(test::describe(document) == test::describe(expected), "a step has the same result in the heap and in memory");
    heap.snapshot();
    if (failures != 0) return 1;
    switch (number) {
        case 1:  // unsaved changes vanish
            document.words.clear();
            document.parts.clear();
            break;
        case 2: ::kill(::getpid(), SIGKILL); break;
        case 3: std::_Exit(0);
        default: break;
    }
    return 0;
}

std::string run(const char* self, unsigned number, const std::string& path, int& status) {
    int pipe_ends[2];
    if (::pipe(pipe_ends) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
    std::string step_text = std::to_string(number);
    std::string file = path;
    std::string program = self;
    char* arguments[] = {program.data(), step_text.data(), file.data(), nullptr};
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, self, &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(pipe_ends[1]);
    std::string output;
    char buffer[4096];
    for (ssize_t got = 0; failed == 0 && (got = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
        output.append(buffer, static_cast<std::size_t>(got));
    ::close(pipe_ends[0]);
    if (failed == 0) ::waitpid(child, &status, 0);
    return output;
}

int run_all() {
    const ScratchDirectory directory;
    const std::string path = directory / "document.tyn";
    std::set<std::string> layouts;
    for (unsigned number = 0; number < 5; ++number) {
        int status = -1;
        const std::string output = run("/proc/self/exe", number, path, status);
        layouts.insert(output.substr(0, output.find('\n')));
        const bool killed = number == 2 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        std::printf("process %u: %s%s", number + 1, killed ? "killed on purpose, layout " : ended ? "fine, layout " : "FAILED\n", output.c_str());
        failures += killed || ended ? 0 : 1;
    }
    expect(layouts.size() > 1, "the address layout differs between processes (is randomisation switched off?)");
    std::printf("%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return count == 3 ? step(static_cast<unsigned>(std::stoul(arguments[1])), arguments[2]) : run_all();
    } catch (const std::exception& error) {
        std::printf("FAILED: %s\n", error.what());
        return 1;
    }
}
