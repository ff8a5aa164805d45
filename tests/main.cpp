#define BOOST_TEST_MODULE taiyen
#include <boost/test/unit_test.hpp>
