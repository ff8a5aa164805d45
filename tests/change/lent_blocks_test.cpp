#include "change/lent_blocks.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using taiyen::change::LentBlocks;
using Fate = LentBlocks::Fate;

struct Freed {
    std::vector<void*> blocks;
    auto sink() {
        return [this](void* block) { blocks.push_back(block); };
    }
};

BOOST_AUTO_TEST_SUITE(lent_blocks)

BOOST_AUTO_TEST_CASE(serials_are_never_given_twice_and_only_scopes_in_the_expected_state_change) {
    LentBlocks lent;
    const auto first = lent.begin(1);
    const auto second = lent.begin_spare();
    BOOST_TEST(first != second);
    lent.change(first, first, Fate::open, Fate::committed);
    lent.change(first, second, Fate::open, Fate::rolled_back);
    BOOST_TEST((lent.fate(first) == Fate::committed));
    BOOST_TEST((lent.fate(second) == Fate::rolled_back));
    BOOST_TEST((lent.fate(0) == Fate::open));
    BOOST_TEST((lent.fate(second + 1) == Fate::open));
}

BOOST_AUTO_TEST_CASE(a_queued_block_is_freed_once_and_again_only_if_that_was_taken_back) {
    LentBlocks lent;
    int block = 0;
    const auto serial = lent.begin(1);
    lent.change(serial, serial, Fate::open, Fate::committed);
    lent.queue(&block, serial);
    Freed freed;
    lent.apply(freed.sink());
    lent.apply(freed.sink());
    BOOST_TEST(freed.blocks.size() == 1U);
    lent.taken_back();
    lent.apply(freed.sink());
    BOOST_TEST(freed.blocks.size() == 2U);
    lent.kept();
    BOOST_TEST(!lent.has_queued());
}

BOOST_AUTO_TEST_CASE(what_was_rolled_back_is_forgotten_and_what_was_undone_waits) {
    LentBlocks lent;
    int taken = 0;
    int waiting = 0;
    const auto first = lent.begin(1);
    const auto second = lent.begin(1);
    lent.queue(&taken, first);
    lent.queue(&waiting, second);
    lent.change(first, first, Fate::open, Fate::rolled_back);
    lent.change(second, second, Fate::open, Fate::undone);
    Freed freed;
    lent.apply(freed.sink());
    BOOST_TEST(freed.blocks.empty());
    BOOST_TEST(lent.has_queued());
    lent.change(second, second, Fate::undone, Fate::committed);
    lent.apply(freed.sink());
    BOOST_TEST((freed.blocks == std::vector<void*>{&waiting}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
