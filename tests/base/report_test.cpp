#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "threads.hpp"

namespace {

struct Told {
    taiyen::errc code{};
    const void* address = nullptr;
    std::string text;
} told;

void remember(const taiyen::Incident& incident) noexcept { told = {incident.code, incident.address, std::string(incident.text)}; }

/// What `action` writes to standard error in a child process, and how the child ends.
struct Ending {
    std::string text;
    int status = 0;
};
Ending in_child(const std::function<void()>& action) {
    int ends[2];
    BOOST_REQUIRE_EQUAL(::pipe(ends), 0);
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::dup2(ends[1], STDERR_FILENO);
        // Boost.Test turns fatal signals into its own report; here the signal is what is looked for.
        std::signal(SIGABRT, SIG_DFL);
        action();
        std::fflush(stderr);
        ::_exit(0);
    }
    ::close(ends[1]);
    Ending ending;
    char buffer[512];
    for (ssize_t count = 0; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;) ending.text.append(buffer, static_cast<std::size_t>(count));
    ::close(ends[0]);
    ::waitpid(child, &ending.status, 0);
    return ending;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reports)

BOOST_AUTO_TEST_CASE(an_incident_goes_to_the_handler_that_was_installed_last) {
    const auto before = taiyen::set_report_handler(&remember);
    const int place = 0;
    taiyen::report({taiyen::errc::double_free, &place, "freed twice"});
    BOOST_TEST((taiyen::set_report_handler(before) == &remember));
    BOOST_TEST((told.code == taiyen::errc::double_free));
    BOOST_TEST(told.address == &place);
    BOOST_TEST(told.text == "freed twice");
}

BOOST_AUTO_TEST_CASE(the_default_handler_writes_one_line_and_goes_on) {
    const auto ending = in_child([] {
        taiyen::set_report_handler(nullptr);
        taiyen::report({taiyen::errc::double_free, reinterpret_cast<const void*>(0x1000), "freed twice"});
    });
    BOOST_TEST(ending.text == "taiyen: freed twice (address 0x1000)\n");
    BOOST_TEST((WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0));
}

BOOST_AUTO_TEST_CASE(an_incident_without_an_address_names_none) {
    const auto ending = in_child([] {
        taiyen::set_report_handler(nullptr);
        taiyen::report({taiyen::errc::still_in_use, nullptr, "still in use"});
    });
    BOOST_TEST(ending.text == "taiyen: still in use\n");
}

BOOST_AUTO_TEST_CASE(handlers_are_exchanged_while_other_threads_report, *boost::unit_test::label("threads")) {
    static std::atomic<unsigned> first;
    static std::atomic<unsigned> second;
    first = second = 0;
    const taiyen::ReportHandler count_first = [](const taiyen::Incident&) noexcept { ++first; };
    const taiyen::ReportHandler count_second = [](const taiyen::Incident&) noexcept { ++second; };
    const auto before = taiyen::set_report_handler(count_first);
    taiyen::test::at_once(4, [&](unsigned number) {
        for (unsigned i = 0; i < 2000; ++i) {
            if (number < 2) {
                taiyen::report({taiyen::errc::double_free, nullptr, "freed twice"});
            } else {
                const auto replaced = taiyen::set_report_handler(i % 2 == 0 ? count_first : count_second);
                taiyen::test::require(replaced == count_first || replaced == count_second, "the one before comes back whole");
            }
        }
    });
    taiyen::set_report_handler(before);
    BOOST_TEST(first + second == 4000U);
}

BOOST_AUTO_TEST_CASE(a_failed_check_names_condition_and_place_and_aborts) {
    const auto ending = in_child([] { TAIYEN_CHECK(1 + 1 == 3); });
    BOOST_TEST(ending.text.find("report_test.cpp") != std::string::npos);
    BOOST_TEST(ending.text.find("1 + 1 == 3") != std::string::npos);
    BOOST_TEST((WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == SIGABRT));
}

BOOST_AUTO_TEST_CASE(a_check_that_holds_evaluates_its_condition_once) {
    int count = 0;
    TAIYEN_CHECK(++count == 1);
    BOOST_TEST(count == 1);
}

BOOST_AUTO_TEST_SUITE_END()
