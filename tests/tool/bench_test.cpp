// bench: each figure is there and has a sense, and no file is left.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
}

BOOST_AUTO_TEST_SUITE(bench)

BOOST_AUTO_TEST_CASE(every_figure_is_there_and_no_file_is_left) {
    const ScratchDirectory dir;
    std::filesystem::create_directory(dir / "folder");
    const Ran ran = run_tool(dir, "bench --json --seconds 1 --mebibytes 2 --folder folder");
    BOOST_TEST_REQUIRE(ran.exit == 0, ran.err);
    BOOST_TEST(ran.err.empty());
    const auto json = ran.json();
    std::vector<std::string> names;
    for (const auto& [key, figure] : json.get_child("figures")) {
        names.push_back(figure.get<std::string>("name"));
        BOOST_TEST(figure.get<double>("value") > 0, names.back());
        if (figure.count("beside") != 0) {
            BOOST_TEST(figure.get<double>("reference") > 0, names.back());
            BOOST_TEST(figure.get<double>("ratio") > 0, names.back());
        }
    }
    BOOST_TEST((names == std::vector<std::string>{"allocate_free", "first_store", "snapshot", "reopen", "durable_commit", "async_commits"}));
    BOOST_TEST(std::filesystem::is_empty(dir / "folder"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_none_and_wrong_figures_are_refused) {
    const ScratchDirectory dir;
    std::ofstream(dir / "file");
    for (const char* words : {"--folder nowhere", "--folder file", "--seconds 0", "--seconds many", "--mebibytes 0", "heap.tyn"}) {
        const Ran ran = run_tool(dir, std::string("bench ") + words);
        BOOST_TEST(ran.exit == 2, words);
        BOOST_TEST(!ran.err.empty(), words);
    }
}

BOOST_AUTO_TEST_CASE(no_file_is_left_when_it_is_interrupted) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        const ScratchDirectory dir;
        std::filesystem::create_directory(dir / "folder");
        const std::string folder = (dir / "folder").string();
        const pid_t child = ::fork();
        BOOST_REQUIRE(child >= 0);
        if (child == 0) {
            std::signal(signal, SIG_DFL);  // the tool goes on where its caller ignores it, as under nohup
            ::execl(TAIYEN_TOOL, TAIYEN_TOOL, "bench", "--seconds", "600", "--mebibytes", "2", "--folder", folder.c_str(), nullptr);
            ::_exit(99);
        }
        const auto made_files = [&] {
            for (const auto& own : std::filesystem::directory_iterator(folder))
                if (!std::filesystem::is_empty(own.path())) return true;
            return false;
        };
        int status = 0;
        while (!made_files()) {
            BOOST_TEST_REQUIRE(::waitpid(child, &status, WNOHANG) == 0);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        ::kill(child, signal);
        BOOST_TEST_REQUIRE(::waitpid(child, &status, 0) == child);
        BOOST_TEST((WIFSIGNALED(status) && WTERMSIG(status) == signal));
        BOOST_TEST(std::filesystem::is_empty(folder));
    }
}

BOOST_AUTO_TEST_SUITE_END()
