// Threads in one ordered store: no update is lost, no reader sees half a value or an older one than before, scans miss nothing that is there all the time, and memory comes back.
#include <boost/test/unit_test.hpp>

#include "ordered/store_threads.hpp"
#include "seed.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(ordered_store_threads, *boost::unit_test::label("threads"))

namespace scenarios = taiyen::test::store_threads;

BOOST_AUTO_TEST_CASE(no_addition_and_no_exchange_is_lost) { BOOST_CHECK_NO_THROW(scenarios::add_and_exchange()); }
BOOST_AUTO_TEST_CASE(readers_see_whole_values_that_never_grow_older) { BOOST_CHECK_NO_THROW(scenarios::read_beside_writers()); }
BOOST_AUTO_TEST_CASE(scans_meet_all_that_is_there_while_others_come_and_go) { BOOST_CHECK_NO_THROW(scenarios::scan_beside_writers()); }
BOOST_AUTO_TEST_CASE(each_writer_finds_its_own_keys_among_those_of_others) {
    BOOST_CHECK_NO_THROW(scenarios::write_side_by_side(taiyen::test::seed_of_run()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
