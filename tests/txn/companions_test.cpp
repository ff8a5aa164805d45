// The data file comes and goes, and the log is replaced, while a heap is in use.

#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include <boost/test/unit_test.hpp>

#include "threads.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;
using taiyen::test::at_once;
using taiyen::test::require;
namespace fs = std::filesystem;

struct Companions : TransactionFixture {
    fs::path data = path.string() + ".data";
    fs::path log = path.string() + ".log";
    /// Some megabytes, most of which are in the files.
    void fill() {
        for (int i = 0; i < 40; ++i) {
            Transaction transaction(*heap);
            heap->make<std::array<std::uint64_t, 16384>>()->fill(static_cast<std::uint64_t>(i));
            transaction.commit();
        }
    }
    bool is_whole(bool with_data) { return heap->verify().ok() && heap->has_data_file() == with_data; }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(companions, Companions)

BOOST_AUTO_TEST_CASE(a_data_file_is_attached_and_detached_in_use) {
    fill();
    push(1);
    BOOST_TEST(throws(errc::not_found, [&] { heap->detach_data_file(); }));
    std::uint64_t done = 0;
    attach_data_file(*heap, {}, [&](std::uint64_t now, std::uint64_t total) {
        BOOST_TEST((now > done && now <= total));
        done = now;
    });
    BOOST_TEST(done >= heap->stats().extent_bytes - (std::size_t{1} << 20U));
    BOOST_TEST(fs::exists(data));
    BOOST_TEST(throws(errc::already_exists, [&] { heap->attach_data_file(); }));
    push(2);
    BOOST_TEST(is_whole(true));
    // It is a copy from which the heap comes back.
    heap.reset();
    fs::remove(path);
    heap.emplace(open_only, path, options);
    BOOST_TEST(values() == (std::vector{1, 2}), boost::test_tools::per_element());
    heap->detach_data_file();
    BOOST_TEST(!fs::exists(data));
    push(3);
    BOOST_TEST(is_whole(false));
    reopen();
    BOOST_TEST(values() == (std::vector{1, 2, 3}), boost::test_tools::per_element());
    BOOST_TEST(!heap->has_data_file());
}

BOOST_AUTO_TEST_CASE(a_data_file_goes_where_it_is_told_to) {
    push(1);
    options.data_file = directory / "elsewhere";
    heap->attach_data_file(options.data_file);
    push(2);
    BOOST_TEST((fs::exists(options.data_file) && !fs::exists(data)));
    crash();
    BOOST_TEST(is_whole(true));
    BOOST_TEST(values() == (std::vector{1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_stands_in_the_way_stays) {
    push(1);
    std::ofstream(data) << "notes";
    BOOST_TEST(throws(errc::mismatch, [&] { heap->attach_data_file(); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->attach_data_file(log); }));
    const fs::path other = directory / "other.log";
    std::ofstream(other) << "notes";
    BOOST_TEST(throws(errc::mismatch, [&] { heap->replace_log(0, other); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->replace_log(4096); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->replace_log(0, path); }));
    BOOST_TEST((fs::file_size(data) == 5U && fs::file_size(other) == 5U));
    {
        Transaction transaction(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { heap->replace_log(0); }));
        BOOST_TEST(throws(errc::scope_open, [&] { heap->attach_data_file(directory / "new"); }));
    }
    push(2);
    fs::remove(data);
    BOOST_TEST(is_whole(false));
}

BOOST_AUTO_TEST_CASE(a_log_may_be_replaced_at_its_own_place_however_that_is_spelled) {
    push(1);
    heap->replace_log(std::size_t{128} << 10U, directory / "." / log.filename());
    push(2);
    crash();
    BOOST_TEST(is_whole(false));
    BOOST_TEST(values() == (std::vector{1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_others_do_while_a_data_file_is_made) {
    fill();
    heap->snapshot();
    // Something comes to stand at its place: the heap goes on as it was.
    const fs::path note = directory / "note";
    BOOST_TEST(throws(errc::busy, [&] { attach_data_file(*heap, note, [&](std::uint64_t, std::uint64_t) { std::ofstream(note) << "hello"; }); }));
    push(1);
    BOOST_TEST(is_whole(false));
    // Another thread's replace_log isn't forgotten.
    std::thread other;
    options.log_file = directory / "elsewhere.log";
    attach_data_file(*heap, {}, [&](std::uint64_t, std::uint64_t) {
        if (!other.joinable()) other = std::thread([&] { heap->replace_log(0, options.log_file); });
    });
    other.join();
    heap->replace_log(0);
    BOOST_TEST((fs::exists(options.log_file) && !fs::exists(log)));
    push(2);
    crash();
    BOOST_TEST(is_whole(true));
}

BOOST_AUTO_TEST_CASE(of_two_who_attach_one_at_the_same_time_one_is_told_that_there_is_one, *boost::unit_test::label("threads")) {
    fill();
    for (int round = 0; round < 5; ++round) {
        const std::array places{directory / "one.data", directory / "another.data"};
        std::array<bool, 2> attached{};
        at_once(2, [&](unsigned number) {
            try {
                heap->attach_data_file(places[number]);
                attached[number] = true;
            } catch (const Error& error) {
                require(error.code() == errc::already_exists, "the other one was first");
            }
        });
        BOOST_TEST(attached[0] != attached[1]);
        BOOST_TEST(fs::exists(places[0]) == attached[0]);
        BOOST_TEST(fs::exists(places[1]) == attached[1]);
        push(round);
        BOOST_TEST(is_whole(true));
        heap->detach_data_file();
    }
    reopen();
    BOOST_TEST(is_whole(false));
    BOOST_TEST(values().size() == 5U);
}

BOOST_AUTO_TEST_CASE(a_data_file_goes_while_verify_looks_at_it) {
    options.data_file = data;
    replace(options);
    fill();
    heap->snapshot();
    VerifyOptions pieces;
    pieces.threads = 1;
    bool detached = false;
    pieces.progress = [&](std::uint64_t, std::uint64_t) {
        if (!std::exchange(detached, true)) std::thread([&] { heap->detach_data_file(); }).join();
    };
    BOOST_TEST(verify(*heap, pieces).ok());
    BOOST_TEST((detached && is_whole(false)));
}

BOOST_AUTO_TEST_CASE(a_log_is_replaced_by_another_size_and_in_another_place) {
    push(1);
    for (const std::size_t capacity : {std::size_t{1} << 20U, std::size_t{64} << 10U}) {
        heap->replace_log(capacity);
        BOOST_TEST(heap->transaction_stats().log_capacity_bytes == capacity);
        push(2);
    }
    BOOST_TEST(fs::file_size(log) < std::size_t{128} << 10U);
    options.log_file = directory / "elsewhere.log";
    heap->replace_log(0, options.log_file);
    BOOST_TEST((fs::exists(options.log_file) && !fs::exists(log)));
    push(3);
    reopen();
    BOOST_TEST(heap->restoration().clean);
    BOOST_TEST(values() == (std::vector{1, 2, 2, 3}), boost::test_tools::per_element());
    BOOST_TEST(heap->transaction_stats().log_capacity_bytes == std::size_t{64} << 10U);
}

BOOST_AUTO_TEST_CASE(all_of_it_happens_while_four_threads_commit, *boost::unit_test::label("threads")) {
    transact(*heap, [&] { heap->construct<taiyen::vector<std::uint64_t>>("counts").resize(4); });
    const auto counts = [&]() -> taiyen::vector<std::uint64_t>& { return *heap->find<taiyen::vector<std::uint64_t>>("counts"); };
    std::atomic<bool> done = false;
    std::array<std::uint64_t, 4> committed{};
    at_once(5, [&](unsigned thread) {
        if (thread == 4) {
            for (std::size_t round = 0; round < 3; ++round) {
                heap->attach_data_file();
                heap->replace_log((std::size_t{128} << 10U) << round);
                heap->snapshot();
                heap->detach_data_file();
                heap->replace_log(std::size_t{64} << 10U);
            }
            heap->attach_data_file();
            done = true;
            return;
        }
        while (!done || committed[thread] < 20) {
            Transaction transaction(*heap);
            counts()[thread] = ++committed[thread];
            if (committed[thread] % 8 == 0) heap->deallocate(heap->allocate(50'000));
            transaction.commit();
        }
    });
    BOOST_TEST(is_whole(true));
    crash();
    BOOST_TEST(is_whole(true));
    BOOST_TEST(counts() == committed, boost::test_tools::per_element());
    reopen();
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()
