/// The prompt on a terminal.

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <fstream>

#include "cad_heap.hpp"

namespace {

using namespace cad::test;

/// The program on a terminal of its own.
class Terminal {
public:
    explicit Terminal(const fs::path& folder) {
        const winsize size{24, 120, 0, 0};
        pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
        BOOST_REQUIRE(pid_ >= 0);
        if (pid_ == 0) {
            setenv("HOME", folder.c_str(), 1);
            setenv("TERM", "xterm", 1);
            if (chdir(folder.c_str()) == 0) execl(TAIYEN_CAD_COMMAND, "taiyen_cad", nullptr);
            _exit(127);
        }
    }
    ~Terminal() {
        close(terminal_);
        if (!ended_) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    void type(std::string_view keys) { BOOST_REQUIRE(write(terminal_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size())); }
    /// Reads until `text` was shown after what was waited for before; fails after a while.
    void wait_for(std::string_view text) {
        constexpr int patience_ms = 20'000;
        std::size_t at = shown_.find(text, seen_);
        while (at == std::string::npos) {
            pollfd ready{terminal_, POLLIN, 0};
            char chunk[512];
            BOOST_REQUIRE_MESSAGE(poll(&ready, 1, patience_ms) == 1, "no '" << text << "' in:\n" << shown_);
            const ssize_t got = read(terminal_, chunk, sizeof chunk);
            BOOST_REQUIRE_MESSAGE(got > 0, "it ended without '" << text << "':\n" << shown_);
            shown_.append(chunk, static_cast<std::size_t>(got));
            at = shown_.find(text, seen_);
        }
        seen_ = at + text.size();
    }
    /// As wait_for, and until keys are read one by one: libedit shows its prompt before it changes the terminal, and a ^D in between is lost.
    void wait_for_prompt(std::string_view text) {
        wait_for(text);
        termios mode{};
        for (int tries = 0; tries < 20'000; ++tries) {
            BOOST_REQUIRE(tcgetattr(terminal_, &mode) == 0);
            if ((mode.c_lflag & tcflag_t{ICANON}) == 0) return;
            usleep(1'000);
        }
        BOOST_FAIL("no editing at '" << text << "' in:\n" << shown_);
    }
    int exit_status() {
        char chunk[512];
        while (read(terminal_, chunk, sizeof chunk) > 0) {}
        int status = 0;
        BOOST_REQUIRE(waitpid(pid_, &status, 0) == pid_);
        ended_ = true;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    int terminal_ = -1;
    pid_t pid_ = -1;
    bool ended_ = false;
    std::string shown_;
    std::size_t seen_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(prompt)

BOOST_AUTO_TEST_CASE(quitting_with_unsaved_changes_asks) {
    const TemporaryFolder folder;
    Terminal terminal(folder.path());
    terminal.wait_for("cad> ");
    terminal.type("create a.tyn\n");
    terminal.wait_for("a.tyn> ");
    terminal.type("drawing new shed\n");
    terminal.wait_for("shed> ");
    terminal.type("quit\n");
    terminal.wait_for("unsaved changes");
    terminal.type("\n");
    terminal.wait_for("shed> ");
    terminal.type("frobnicate\n");
    terminal.wait_for("unknown command");
    terminal.wait_for("shed> ");
    terminal.type("quit\n");
    terminal.wait_for("unsaved changes");
    terminal.type("s\n");
    terminal.wait_for("saved a.tyn");
    BOOST_TEST(terminal.exit_status() == 0);
    taiyen::SnapshotHeap heap(taiyen::open_read_only, folder.path() / "a.tyn");
    BOOST_TEST(std::as_const(heap).find<cad::Document>("document")->drawings.size() == 1U);
}

#ifdef TAIYEN_CAD_LIBEDIT
BOOST_AUTO_TEST_CASE(a_tab_completes_and_lines_are_remembered) {
    const TemporaryFolder folder;
    Terminal terminal(folder.path());
    terminal.wait_for("cad> ");
    terminal.type("cre\ta.tyn\n");
    terminal.wait_for("created a.tyn");
    terminal.wait_for("a.tyn> ");
    terminal.type("drawing new \"garden shed\"\n");
    terminal.wait_for("garden shed> ");
    terminal.type("drawing new barn\n");
    terminal.wait_for("barn> ");
    terminal.type("use \"g\t\n");
    terminal.wait_for("\"garden shed\": 0 entities");
    terminal.wait_for_prompt("garden shed> ");
    terminal.type("sh\t\n");
    terminal.wait_for("\"garden shed\": 0 entities");
    terminal.type("use barn\n");
    terminal.wait_for("barn: 0 entities");
    terminal.wait_for_prompt("barn> ");
    terminal.type("\x10\x10\n");  // twice up: show
    terminal.wait_for("barn: 0 entities");
    terminal.wait_for("barn> ");
    terminal.type("s\t\n");
    terminal.wait_for("save  show");
    terminal.wait_for("unknown command 's'");
    terminal.wait_for_prompt("barn> ");
    terminal.type("\x04");
    terminal.wait_for("unsaved changes");
    terminal.type("d\n");
    BOOST_TEST(terminal.exit_status() == 0);
    std::ifstream remembered(folder.path() / ".taiyen_cad_history");
    const std::string lines(std::istreambuf_iterator<char>(remembered), {});
    BOOST_TEST(lines.find("use") != std::string::npos);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
