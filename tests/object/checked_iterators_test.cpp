// Checked iterators: whoever uses one that a change has invalidated is stopped. This file's sets have a name of their own, so they don't meet those of the others.
#define TAIYEN_CHECKED_ITERATORS
#include <taiyen/taiyen.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(checked_iterators)

namespace {

using Set = taiyen::object_id_set<std::allocator<std::int64_t>>;

/// Whether the action ends the process that does it by abort().
template <class F>
bool aborts(F&& action) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(2);
        std::signal(SIGABRT, SIG_DFL);
        action();
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

BOOST_AUTO_TEST_CASE(an_iterator_from_before_a_change_stops_the_program) {
    Set set{1, 2, 3};
    const auto before = set.begin();
    BOOST_TEST(*before == 1);
    BOOST_TEST(!aborts([&] { (void)*before; }));
    set.insert(4);
    BOOST_TEST(aborts([&] { (void)*before; }));
    BOOST_TEST(aborts([&] { ++set.lower_bound(2), (void)(before == set.begin()); }));
    BOOST_TEST(aborts([&] {
        auto at = before;
        ++at;
    }));
    BOOST_TEST(aborts([&] { set.erase(before); }));
}

BOOST_AUTO_TEST_CASE(what_changes_nothing_invalidates_nothing) {
    Set set{1, 2, 3};
    const auto place = set.find(2);
    set.insert(3);
    set.erase(77);
    (void)set.contains(1);
    BOOST_TEST(*place == 2);
    auto behind = set.erase(place);
    BOOST_TEST(*behind == 3);
}

BOOST_AUTO_TEST_CASE(every_way_to_change_a_set_is_noticed) {
    const auto noticed = [](auto&& change) {
        Set set{1, 2, 3};
        Set other{7};
        const auto place = set.begin();
        change(set, other);
        return aborts([&] { (void)*place; });
    };
    BOOST_TEST(noticed([](Set& set, Set&) { set.insert_interval(1, 100); }));
    BOOST_TEST(noticed([](Set& set, Set&) { set.erase_interval(2, 2); }));
    BOOST_TEST(noticed([](Set& set, Set&) { set.clear(); }));
    BOOST_TEST(noticed([](Set& set, Set&) { set.shrink_to_fit(); }));
    BOOST_TEST(noticed([](Set& set, Set& other) { set |= other; }));
    BOOST_TEST(noticed([](Set& set, Set& other) { set = other; }));
    BOOST_TEST(noticed([](Set& set, Set& other) { set.swap(other); }));
    BOOST_TEST(noticed([](Set& set, Set& other) { other = std::move(set); }));
    BOOST_TEST(noticed([](Set& set, Set& other) { set.deserialise(other.serialise()); }));
}

BOOST_AUTO_TEST_CASE(a_heap_finds_its_set_whether_iterators_are_checked_or_not) {
    const std::string checked = taiyen::stl::fingerprint<taiyen::object_id_set<>>();
    BOOST_TEST(checked.find("taiyen_checked") == std::string::npos);
    BOOST_TEST(checked.find("object_id_set") != std::string::npos);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
