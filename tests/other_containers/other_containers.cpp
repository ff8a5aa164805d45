// Containers of other libraries, in each state, are made in a heap by one process, changed by a second and looked at by a third, each with its own address layout.
// Each is good throughout, or refused with the error that the table expects. What is neither fails: a crash, a key that isn't found.
//
//   taiyen_other_containers                             runs all, and compares doc/containers.md with the table (TAIYEN_WRITE_DOCUMENTS=1: writes it)
//   taiyen_other_containers CASE STATE STEP HEAP FILE   one process; exit status 0: good, 1: failed, 2: refused; prints why

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <sstream>

#include <taiyen/inspect/report.hpp>

#include "scratch_directory.hpp"
#include "table.hpp"

extern char** environ;

namespace {

using namespace other_containers;

constexpr const char* heaps[]{"snapshot", "transactions"};

int one(char** arguments) {
    const Case& what = cases().at(std::stoul(arguments[1]));
    const int number = std::stoi(arguments[3]);
    taiyen::PersistentOptions options;
    options.capacity = 16U << 20U;
    std::optional<taiyen::SnapshotHeap> plain;
    std::optional<taiyen::TransactionalHeap> transactional;
    taiyen::SnapshotHeap* heap = nullptr;
    if (std::string_view(arguments[4]) == heaps[0])
        heap = &plain.emplace(taiyen::open_or_create, arguments[5], options);
    else
        heap = &transactional.emplace(taiyen::open_or_create, arguments[5], options);
    try {
        what.run({*heap, states[std::stoul(arguments[2])], number});
        heap->snapshot();
        expect(heap->verify().ok(), "verify() is clean");
        heap->close();
    } catch (const taiyen::Error& error) {
        std::printf("%s", error.code() == taiyen::errc::foreign_pointer ? "foreign_pointer"
                          : error.code() == taiyen::errc::type_mismatch ? "type_mismatch"
                                                                        : error.what());
        return 2;
    }
    return 0;
}

/// What comes of one step in a process of its own: "good", or why not.
std::string outcome_of_step(std::size_t what, std::size_t state, int number, const char* heap, const std::string& path) {
    int ends[2];
    expect(::pipe2(ends, O_CLOEXEC) == 0, "a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::string texts[]{"taiyen_other_containers", std::to_string(what), std::to_string(state), std::to_string(number), heap, path};
    char* arguments[7]{};
    for (std::size_t i = 0; i < std::size(texts); ++i) arguments[i] = texts[i].data();
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    expect(failed == 0, "a process");
    std::string output;
    char buffer[512];
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) output.append(buffer, static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) return "step " + std::to_string(number) + ": signal " + std::to_string(WTERMSIG(status));
    if (WEXITSTATUS(status) == 0) return "good";
    if (WEXITSTATUS(status) == 2) return output;
    return "step " + std::to_string(number) + ": " + output;
}

std::string outcome(std::size_t what, std::size_t state, const char* heap) {
    const ScratchDirectory directory;
    for (int number = 0; number < 3; ++number) {
        std::string result = outcome_of_step(what, state, number, heap, directory / "heap.tyn");
        if (result != "good") return result;
    }
    return "good";
}

/// The table of the page.
std::string table() {
    std::string text = "| container | never filled | filled | emptied | cleared |\n|---|---|---|---|---|\n";
    for (const Case& each : cases()) {
        text += "| `" + each.name.substr(0, each.name.find(',')) + "`" +
                (each.name.find(',') == std::string::npos ? "" : each.name.substr(each.name.find(',')));
        for (const std::string& one : each.expected)
            text += one == "good" ? " | good" : one == "compiler" ? " | refused by the compiler" : " | `" + one + "`";
        text += " |\n";
    }
    return text;
}

[[maybe_unused]] bool page_agrees() {
    constexpr std::string_view begin = "<!-- table: tests/other_containers -->\n", end = "<!-- end of table -->";
    const std::filesystem::path page = TAIYEN_ROOT "/doc/containers.md";
    std::stringstream read;
    read << std::ifstream(page).rdbuf();
    std::string text = read.str();
    const std::size_t from = text.find(begin), to = text.find(end);
    expect(from != std::string::npos && to != std::string::npos, "doc/containers.md has a place for the table");
    const std::string wanted = table();
    if (text.substr(from + begin.size(), to - from - begin.size()) == wanted) return true;
    if (std::getenv("TAIYEN_WRITE_DOCUMENTS") == nullptr) return false;
    text.replace(from + begin.size(), to - from - begin.size(), wanted);
    std::ofstream(page) << text;
    return true;
}

int all() {
    int failures = 0;
    for (std::size_t what = 0; what < cases().size(); ++what) {
        if (cases()[what].run == nullptr) continue;
        // Side by side, as they mostly wait for the disk.
        std::vector<std::future<std::string>> outcomes;
        for (std::size_t n = 0; n < std::size(states) * std::size(heaps); ++n)
            outcomes.push_back(std::async(std::launch::async, outcome, what, n / std::size(heaps), heaps[n % std::size(heaps)]));
        for (std::size_t n = 0; n < outcomes.size(); ++n) {
            const std::string got = outcomes[n].get();
            const std::string& expected = cases()[what].expected[n / std::size(heaps)];
            if (got == expected) continue;
            ++failures;
            std::printf("FAILED: %s, state %zu, heap %s: %s instead of %s\n", cases()[what].name.c_str(), n / std::size(heaps),
                        heaps[n % std::size(heaps)], got.c_str(), expected.c_str());
        }
    }
#if defined(TAIYEN_TEST_EVERY_LIBRARY)
    if (!page_agrees()) {
        std::printf("FAILED: the table in doc/containers.md is another one; TAIYEN_WRITE_DOCUMENTS=1 writes it\n");
        ++failures;
    }
#else
    std::printf("a library is missing (bootstrap.sh names the packages): its containers weren't tested, nor the table of the page\n");
#endif
    std::printf("%zu containers, %d failures\n", cases().size(), failures);
    return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) try {
    add_boost();
    add_linked();
    add_tables();
    add_absl();
    add_small_libraries();
    return count == 6 ? one(arguments) : all();
} catch (const std::exception& error) {
    std::printf("%s", error.what());
    return 1;
}
